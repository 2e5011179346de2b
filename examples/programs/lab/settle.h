/* When frame times have settled after a change. The table of `cox-lab run` and the report share
 * this definition.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SETTLE_H
#define COX_EXAMPLES_LAB_SETTLE_H

#include <stddef.h>
#include <stdint.h>

/* The longest time of a frame that is near the oracle: the larger of 1.05 times the oracle's median
 * and the oracle's 90th percentile. NaN = unknown. */
double lab_settle_limit(double oracle_p50_ns, double oracle_p90_ns);

/* A frame's time over its limit; NaN = it does not count (it failed, or other programs ran). */
typedef double lab_settle_fn(const void *frames, size_t index);

/* The number of frames from `first` on before the first frame with settled times. That frame is
 * near the oracle, and so are three quarters of the eight frames that begin with it. At the end
 * there may be fewer frames, but at least four. SIZE_MAX if no frame before `end` fulfils this. */
size_t lab_settle(lab_settle_fn *over, const void *frames, size_t first, size_t end);

#endif
