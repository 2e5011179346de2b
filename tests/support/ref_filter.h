/* Reference for the filters, computed sample by sample from their formulas. Planes are arrays of `height` rows of
 * `width` times `channels` doubles, which hold float and integer samples exactly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_FILTER_H
#define COX_TESTS_REF_FILTER_H

#include <coxswain/filter.h>

/* A float as the kernels read it: tiny values and NaN become 0, large ones are limited. */
double ref_filter_clean(float x);

/* Convolutions.
 *   Integers: exactly the kernels' results.
 *   Floats: the sums in the documented order. Each product and sum is rounded to float. If `ulps` is not NULL, it
 *     gets the largest distance of a result from the exact sum. Its unit is 2^-24 times the sum of the terms'
 *     magnitudes. */
void ref_filter_separable(const struct cox_filter_shape *shape, const double *in,
                          const struct cox_filter_weights *weights, double *out, double *ulps);
void ref_filter_convolution(const struct cox_filter_shape *shape, const double *in,
                            const struct cox_filter_weights *weights, double *out, double *ulps);

/* The recursive Gaussian in direct form, in double precision, on lines extended far enough at both ends; and the
 * sampled Gaussian that it approximates. */
void ref_filter_recursive(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                          double *out);
void ref_filter_gaussian(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                         double *out);

void ref_filter_box(const struct cox_filter_shape *shape, const double *in, double *out);

/* The guided filter, in integers as in the kernel's file head, and in double precision without rounding as in the
 * paper. */
void ref_filter_guided(const struct cox_filter_shape *shape, const double *in, const double *guide, double epsilon,
                       double *out);
void ref_filter_guided_exact(const struct cox_filter_shape *shape, const double *in, const double *guide,
                             double epsilon, double *out);

#endif
