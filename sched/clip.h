/* The larger, the smaller, and a value taken into a range. NaN gives way; the C library's fmax and fmin are function calls,
 * and decisions are made of little else. In this form each is one instruction without a branch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_CLIP_H
#define COX_SCHED_CLIP_H

/* A NaN in `a` gives b. */
static inline double cox__most(double a, double b)
{
    return a > b ? a : b;
}

static inline double cox__least(double a, double b)
{
    return a < b ? a : b;
}

/* NaN is low. */
static inline double cox__clip(double value, double low, double high)
{
    return cox__least(cox__most(value, low), high);
}

#endif
