/* The larger and the smaller of two numbers, and a number clipped to a range.
 *
 * The C library's fmax and fmin are function calls, and decisions consist of little else. In this
 * form each is one instruction without a branch. The second argument wins over a NaN in the first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SPLIT_CLIP_H
#define COX_SPLIT_CLIP_H

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

#endif
