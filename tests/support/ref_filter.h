/* The filters as their formulas say, sample by sample, for tests. Planes are arrays of `height` rows of `width` times
 * `channels` doubles, which hold floats and integer samples exactly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_FILTER_H
#define COX_TESTS_REF_FILTER_H

#include <coxswain/filter.h>

/* A float as the kernels take it: small ones and NaN 0, large ones limited. */
double ref_filter_clean(float x);

/* Convolutions. Integers: exactly what the kernels must give. Floats: the sums in the promised order, each product and
 * sum rounded to float; and where `ulps` is not NULL, the largest distance of a result from the exact sum, as a
 * multiple of 2^-24 times the sum of the magnitudes added up. */
void ref_filter_separable(const struct cox_filter_shape *shape, const double *in,
                          const struct cox_filter_weights *weights, double *out, double *ulps);
void ref_filter_convolution(const struct cox_filter_shape *shape, const double *in,
                            const struct cox_filter_weights *weights, double *out, double *ulps);

/* The recursive Gaussian in its direct form, in double precision, along lines made long enough at both ends; and the
 * sampled Gaussian that it stands for. */
void ref_filter_recursive(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                          double *out);
void ref_filter_gaussian(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                         double *out);

void ref_filter_box(const struct cox_filter_shape *shape, const double *in, double *out);

/* The guided filter in integers, as the kernel's head says, and in double precision, as the paper does, not rounded. */
void ref_filter_guided(const struct cox_filter_shape *shape, const double *in, const double *guide, double epsilon,
                       double *out);
void ref_filter_guided_exact(const struct cox_filter_shape *shape, const double *in, const double *guide,
                             double epsilon, double *out);

#endif
