/* When frame times have settled after a change: the one definition of the runs' table and of the
 * report.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SETTLE_H
#define COX_EXAMPLES_LAB_SETTLE_H

#include <stddef.h>
#include <stdint.h>

/* What a frame may take to be near the oracle: 1.05 times its median, or the time that nine of ten
 * of its own frames keep to, since on a real machine even these do not all stay. NaN = unknown. */
double lab_settle_limit(double oracle_p50_ns, double oracle_p90_ns);

/* A frame's time over its limit; NaN = it counts for neither side (it failed, or other programs
 * ran). */
typedef double lab_settle_fn(const void *frames, size_t index);

/* Frames from `first` on until one is near the oracle and with it three quarters of the eight that
 * begin with it (fewer at the end, at least four). SIZE_MAX = never before `end`. */
size_t lab_settle(lab_settle_fn *over, const void *frames, size_t first, size_t end);

#endif
