/* Reference for the picture kernels: the whole computation in scalar double precision with the C library's
 * functions. It is written from the formulas, not from the kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_TONEMAP_H
#define COX_TESTS_REF_TONEMAP_H

#include "ref_local.h"
#include <coxswain/video.h>

/* EOTF of PQ and its inverse: signal 0 .. 1 to and from cd/m2. */
double ref_pq_light(double signal);
double ref_pq_signal(double nits);

/* An operator with its peak. Fill it with ref_operator_init. */
struct ref_operator {
    enum cox_operator op;
    double peak;
    double f;               /* exposure: the constant of its logarithmic part */
    double fade;            /* luminance from which colours fade */
    struct ref_local local; /* COX_OPERATOR_LOCAL; see ref_tonemap_surround */
    uint32_t x, y;          /* the same: position of the pixel */
};

void ref_operator_init(struct ref_operator *operator, enum cox_operator op, double peak);

/* The operator for one number, without limits. */
double ref_operator_at(const struct ref_operator *operator, double x);

/* The luminance from which colours fade: where a curve reaches one half, but at least diffuse white. */
typedef double ref_curve_fn(const void *curve, double x);
double ref_fade(const void *operator, ref_curve_fn * curve);

/* The EETF of Report BT.2390 without black lift. Light and peak are multiples of SDR white, which is `white_nits`. */
double ref_bt2390(double x, double peak, double white_nits);

/* The curve of an operator that depends on the light of SDR white: bt2390, bt2446a, bt2446c, spline; else NaN. */
double ref_curve_in_nits(enum cox_operator op, double x, double peak, double white_nits);

/* The curve of HDR10+ (SMPTE ST 2094-40), by Bernstein's polynomials; in and out in cd/m2. */
double ref_hdr10plus(const struct cox_hdr10plus_curve *curve, double nits);

/* f of the exposure operator, from the two stops of the OpenEXR viewers. */
double ref_exposure_f(double k_low, double k_high);

double ref_half(uint16_t bits);

/* The half nearest to a finite value within the format's range. */
uint16_t ref_to_half(double value);

double ref_srgb(double linear);

/* A channel of a picture whose pixels are at `in`. */
double ref_tonemap_stored(const struct cox_tonemap_shape *shape, const void *in, uint32_t x, uint32_t y,
                          uint32_t channel);

/* The colour of a stored value. */
double ref_colour(double stored, enum cox_pixel_in format);

double ref_luminance(const double rgb[3]);

/* Compute the base that COX_OPERATOR_LOCAL needs, for a picture with its stored values at `in` and the exposure of
 * `settings`. Free it with ref_local_free. Returns false if memory runs out. */
bool ref_tonemap_surround(struct ref_operator *operator, const struct cox_tonemap_settings * settings,
                          const struct cox_tonemap_shape *shape, const void *in);

/* Map one pixel: stored values in, codes out as real numbers in 0 .. scale. */
void ref_tonemap_pixel(const struct ref_operator *operator, const struct cox_tonemap_settings * settings,
                       enum cox_pixel_in format, const double in[4], double scale, double out[4]);

#endif
