/* SPDX-License-Identifier: Apache-2.0 */
#include "common/quantiles.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double quantile_of(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;

    qsort(values, count, sizeof *values, by_value);
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return values[count - 1];
    return values[below] + (at - (double)below) * (values[below + 1] - values[below]);
}

uint64_t rank_of(uint64_t count, unsigned per_mille)
{
    return (count * per_mille + 999) / 1000;
}

double per_mille_of(double *values, size_t count, unsigned per_mille)
{
    if (count == 0)
        return 0;

    qsort(values, count, sizeof *values, by_value);
    size_t place = (size_t)rank_of(count, per_mille);
    if (place)
        place--;
    return values[place];
}

double percentile_of(double *values, size_t count, unsigned percent)
{
    return per_mille_of(values, count, 10 * percent);
}

double median_of(const double *values, size_t count, double *scratch)
{
    memcpy(scratch, values, count * sizeof *values);
    return quantile_of(scratch, count, 0.5);
}
