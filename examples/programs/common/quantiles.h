/* Order statistics.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef QUANTILES_H
#define QUANTILES_H

#include <stddef.h>

/* Sorts. `share` 0.5 = the median; between two values: interpolated. 0 for no values. */
double figures_quantile(double *values, size_t count, double share);

/* Sorts. The least value that `percent` of all do not exceed (nearest rank): one of the values, as SQL finds it too. 0
 * for no values. */
double figures_percentile(double *values, size_t count, unsigned percent);

/* Of values that keep their order; `scratch` has room for `count`. */
double figures_median_of(const double *values, size_t count, double *scratch);

#endif
