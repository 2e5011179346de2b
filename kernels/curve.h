/* The operators' curves in double precision, for the picture and the video tone mapper.
 *
 * Light is in multiples of SDR white, and so is what comes out. Pure: no allocation, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_CURVE_H
#define COX_KERNELS_CURVE_H

#include <coxswain/tonemap.h>

enum cox__curve_kind { COX__CURVE_RATIONAL = 0, COX__CURVE_EXPOSURE = 1, COX__CURVE_BT2390 = 2 };

struct cox__curve {
    enum cox__curve_kind kind; /* which part below is in use */
    /* Rational: (a2 x^2 + a1 x + a0) / (b2 x^2 + b1 x + b0) from x = knee on, x below it. */
    double a0, a1, a2, b0, b1, b2, knee;
    /* Exposure: x slope up to x = start, then start_out + outer log2((x - start) inner + 1). */
    double slope, start, start_out, inner, outer;
};

/* `peak` is limited to 2^-10 .. 2^24. `white_nits`, the light of SDR white, matters to bt2390 alone. */
struct cox__curve cox__curve_of(enum cox_operator op, double peak, double white_nits);

/* The curve at x >= 0, not limited to 1. */
double cox__curve_at(const struct cox__curve *c, double x);

/* Where a rising curve reaches y, between lo and hi; the nearer end if it does not. */
double cox__curve_inverse(const struct cox__curve *c, double y, double lo, double hi);

#endif
