/* The input of filters: a plane of floats, and a blur's weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PLANE_H
#define BENCH_PLANE_H

#include <coxswain/coxswain.h>
#include <stddef.h>

/* Floats from 1/1024 to 1. */
void bench_plane_fill(float *samples, size_t count);

/* Parameters of a box blur with the same radius across and down, at most 31. Errors as
 * cox_filter_separable_prepare. */
cox_status bench_blur_prepare(const struct cox_filter_shape *shape, struct cox_constants *params);

#endif
