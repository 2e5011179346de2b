/* The operators' curves in double precision, for the picture and the video tone mapper.
 *
 * Light is in multiples of SDR white, in and out. Pure: no allocation, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_CURVE_H
#define COX_KERNELS_CURVE_H

#include <coxswain/video.h>

enum cox__curve_kind {
    COX__CURVE_RATIONAL = 0,
    COX__CURVE_EXPOSURE = 1,
    COX__CURVE_BT2390 = 2,
    COX__CURVE_LOCAL = 3,
    COX__CURVE_JOINED = 4 /* any other; `at` has it */
};

struct cox__curve {
    enum cox__curve_kind kind; /* which part below is in use */
    /* Rational: (a2 x^2 + a1 x + a0) / (b2 x^2 + b1 x + b0) from x = knee on, x below it. */
    double a0, a1, a2, b0, b1, b2, knee;
    /* Exposure: x slope up to x = start, then start_out + outer log2((x - start) inner + 1). */
    double slope, start, start_out, inner, outer;
    /* Values of bt2390:
     *   `source`  PQ signal of the peak
     *   `most`    PQ signal of SDR white, relative to `source`
     *   `spline`  PQ signal of the knee, relative to `source`
     *   `white`   light of SDR white over 10 000 cd/m2
     *   `peak`    light of the peak in multiples of SDR white */
    double source, most, spline, white, peak;
    /* local: x^power (1 + half peak^-power) / (x^power + half) from 2^-8 to the peak, with the
     * ratio to x kept beyond. */
    double power, half;
    /* Joined: the curve up to `peak`. It is straight up to `begin`, then smooth except at `join`.
     * `k` has its constants. */
    double (*at)(const struct cox__curve *c, double x);
    double begin, join, k[6];
    const struct cox_hdr10plus_curve *hdr10plus;
};

/* The constants of bt2390 for kernels: struct bt2390_params of pq.clh. */
struct cox__bt2390 {
    float peak, scale, offset;
    float q[7];
};

/* The base of the operator local for kernels, in struct local_params of local.clh. */
struct cox__local_curve {
    float scale, offset;
    float q[11];
};

/* The constants for kernels of a curve in two pieces: struct joined_params of joined.clh. */
struct cox__joined {
    float peak, join;
    float scale[2], offset[2];
    float q[2][8];
};

/* The constants of an operator's curve. `peak` is limited to 2^-10 .. 2^24. `white_nits` is the
 * light of SDR white. Only bt2390, bt2446a, bt2446c and spline use it. They also limit the peak to
 * 10 000 cd/m2. */
struct cox__curve cox__curve_of(enum cox_operator op, double peak, double white_nits);

/* The curve of HDR10+, from light to light of its target display. `from` must outlive it. */
struct cox__curve cox__curve_hdr10plus(const struct cox_hdr10plus_curve *from, double white_nits);

/* The curve's value at x >= 0, not limited to 1. */
double cox__curve_at(const struct cox__curve *c, double x);

/* The x between lo and hi where a rising curve reaches y; the nearer end if it does not. */
double cox__curve_inverse(const struct cox__curve *c, double y, double lo, double hi);

/* The constants for kernels. Unless the curve is of kind COX__CURVE_BT2390, light up to 1 stays. */
void cox__curve_bt2390(const struct cox__curve *c, struct cox__bt2390 *out);

/* The same for COX__CURVE_JOINED. */
void cox__curve_joined(const struct cox__curve *c, struct cox__joined *out);

/* The same for COX__CURVE_LOCAL. */
void cox__curve_local(const struct cox__curve *c, struct cox__local_curve *out);

/* PQ (SMPTE ST 2084): light 0 .. 1, where 1 is 10 000 cd/m2, to signal, and back. */
double cox__curve_pq_signal(double light);
double cox__curve_pq_light(double signal);

#endif
