/* Pictures and frames for the operator local: what its tests map, and how far a result is from the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_LOCAL_CASE_H
#define COX_TESTS_REF_LOCAL_CASE_H

#include "ref_tonemap.h"
#include "ref_video.h"

/* The operator's bindings beside the application's. */
enum { LOCAL_SCRATCH = 3 };

/* A picture's pixel, and a code of the result. */
void local_case_put(const struct cox_tonemap_shape *shape, void *in, uint32_t x, uint32_t y, const double rgb[3]);
double local_case_code(const struct cox_tonemap_shape *shape, const void *out, uint32_t x, uint32_t y,
                       uint32_t channel);

/* Even, -1 .. 1. */
double local_case_noise(uint32_t *state);

/* Patches of light over 20 stops, with texture of a third of a stop and a few bright points, some of it coloured. */
void local_case_picture(const struct cox_tonemap_shape *shape, void *in, uint32_t seed);

/* The largest distance between a device's codes and the reference's. False without memory. */
bool local_case_picture_error(const struct cox_tonemap_shape *shape, const struct cox_tonemap_settings *settings,
                              const void *in, const void *out, double *error);

/* Layouts, depths, subsamplings and transfers, each at least once; pitches are 0. */
enum { LOCAL_FILMS = 11 };
struct cox_video_shape local_case_film(uint32_t number);

/* Patches of colour with noise of 1 % of the signal. */
void local_case_frame(const struct cox_video_shape *shape, void *const in[COX_VIDEO_PLANES_MAX], uint32_t seed,
                      uint32_t noise);
bool local_case_frame_error(const struct cox_video_shape *shape, const struct cox_video_settings *settings,
                            const void *const in[COX_VIDEO_PLANES_MAX], const void *const out[COX_VIDEO_PLANES_MAX],
                            double *error);

#endif
