/* Quantiles, percentiles, medians.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef QUANTILES_H
#define QUANTILES_H

#include <stddef.h>
#include <stdint.h>

/* Sorts. `share` 0.5 = the median. Interpolates between two values. 0 for no values. */
double quantile_of(double *values, size_t count, double share);

/* Sorts. The smallest value that is not below `percent` of all (nearest rank, as SQL finds it). 0
 * for no values. */
double percentile_of(double *values, size_t count, unsigned percent);

/* The same by thousandths: 999 is p99.9. */
double per_mille_of(double *values, size_t count, unsigned per_mille);

/* The nearest rank itself: how many values, from the smallest, the quantile reaches. */
uint64_t rank_of(uint64_t count, unsigned per_mille);

/* The values keep their order; `scratch` has room for `count`. */
double median_of(const double *values, size_t count, double *scratch);

#endif
