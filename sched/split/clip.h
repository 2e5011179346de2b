/* Minimum, maximum and clipping of times (double), and pauses in frames (uint32_t).
 *
 * The C library's fmax and fmin are function calls, and decisions consist of little else. In this
 * form each is one instruction without a branch. The second argument wins over a NaN in the first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SPLIT_CLIP_H
#define COX_SPLIT_CLIP_H

#include "base/bounds.h"

#include <stdint.h>

static inline double cox__max(double a, double b)
{
    return a > b ? a : b;
}

static inline double cox__min(double a, double b)
{
    return a < b ? a : b;
}

/* A NaN becomes `low`. */
static inline double cox__clip(double value, double low, double high)
{
    return cox__min(cox__max(value, low), high);
}

/* The next pause: twice as long, but at most `most` frames. */
static inline uint32_t cox__double_pause(uint32_t frames, uint32_t most)
{
    return cox__min_u32(2 * frames, most);
}

#endif
