/* Quantiles and tails of samples.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdlib.h>

/* A value of the tail is longer than LONG_NS and than TAIL_TIMES medians. */
static const double LONG_NS = 200e3;
static const double TAIL_TIMES = 6;

double lab_sample_quantile(struct lab_sample *sample, double q)
{
    return quantile_of(sample->values, sample->count, q);
}

void lab_sample_add(struct lab_sample *sample, double value)
{
    sample->values[sample->count++] = value;
}

void lab_sample_tail(struct lab_sample *sample, double *usual, struct lab_scenario_tail *tail)
{
    double median = lab_sample_quantile(sample, 0.5), limit = fmax(LONG_NS, TAIL_TIMES * median);

    if (median > LONG_NS) /* most values are of the tail */
        limit = LONG_NS;

    struct lab_sample low = {sample->values, 0};
    while (low.count < sample->count && sample->values[low.count] <= limit)
        low.count++;

    struct lab_sample high = {sample->values + low.count, sample->count - low.count};
    *usual = lab_sample_quantile(&low, 0.5);

    *tail = (struct lab_scenario_tail){0};
    if (high.count < 3)
        return;

    tail->probability = (double)high.count / (double)sample->count;
    tail->median_ns = lab_sample_quantile(&high, 0.5);
    tail->p99_ns = fmax(tail->median_ns, lab_sample_quantile(&high, 0.99));
}

static int by_size(const void *left, const void *right)
{
    double a = fabs(*(const double *)left), b = fabs(*(const double *)right);
    return (a > b) - (a < b);
}

/* The least value that at most this share exceeds, by Kaplan and Meier: a negative value was cut
 * short and would have been longer. The sample is sorted by size. `*left`: the share that exceeds
 * it. */
static double longer_than(const struct lab_sample *sample, double share, double *left)
{
    double last = 0;

    *left = 1;
    for (size_t i = 0; i < sample->count; i++) {
        if (sample->values[i] < 0)
            continue;

        *left *= 1 - 1 / (double)(sample->count - i);
        last = sample->values[i];
        if (*left <= share)
            break;
    }

    return last;
}

void lab_sample_cut_tail(struct lab_sample *sample, double usual, struct lab_scenario_tail *tail)
{
    double least = 0.5 * usual, limit = fmax(LONG_NS, TAIL_TIMES * usual);
    double left = 1;
    size_t long_ones = 0;

    *tail = (struct lab_scenario_tail){0};
    if (sample->count == 0)
        return;

    qsort(sample->values, sample->count, sizeof sample->values[0], by_size);
    for (size_t i = 0; i < sample->count; i++) {
        if (sample->values[i] > 0 && sample->values[i] < least)
            sample->values[i] = -sample->values[i];
        long_ones += sample->values[i] > limit;
    }

    /* The share that exceeds the limit. */
    for (size_t i = 0; i < sample->count && fabs(sample->values[i]) <= limit; i++)
        if (sample->values[i] >= 0)
            left *= 1 - 1 / (double)(sample->count - i);
    if (long_ones < 3)
        return;

    double beyond;
    tail->probability = left;
    tail->median_ns = longer_than(sample, 0.5 * left, &beyond);
    tail->p99_ns = fmax(tail->median_ns, longer_than(sample, 0.01 * left, &beyond));
}
