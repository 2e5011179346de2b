/* The library's own pipelines: each function fills a session's rows, bindings, passes and
 * params_bytes, and leaves the other fields. What it points to lives in `storage`, which stays
 * where it is until the session is created. Public functions of the same name say more; each filter
 * has a function that prepares a frame's parameters.
 *
 * Pure: no allocation, no log. Thread-safety: any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_SPECS_H
#define COX_KERNELS_SPECS_H

#include "base/spec.h"

#include <coxswain/filter.h>
#include <coxswain/video.h>

cox_status cox__video_mapping(const struct cox_video_shape *shape, bool analyse,
                              struct cox__pipeline_storage *storage,
                              struct cox__session_spec *session);
cox_status cox__video_analysis(const struct cox_video_shape *shape,
                               struct cox__pipeline_storage *storage,
                               struct cox__session_spec *session);
cox_status cox__tonemap_mapping(const struct cox_tonemap_shape *shape,
                                struct cox__pipeline_storage *storage,
                                struct cox__session_spec *session);
cox_status cox__tonemap_analysis_spec(const struct cox_tonemap_shape *shape,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session);
cox_status cox__filter_separable(const struct cox_filter_shape *shape,
                                 struct cox__pipeline_storage *storage,
                                 struct cox__session_spec *session);
cox_status cox__filter_convolution(const struct cox_filter_shape *shape,
                                   struct cox__pipeline_storage *storage,
                                   struct cox__session_spec *session);
cox_status cox__filter_gaussian(const struct cox_filter_shape *shape,
                                struct cox__pipeline_storage *storage,
                                struct cox__session_spec *session);
cox_status cox__filter_guided(const struct cox_filter_shape *shape,
                              struct cox__pipeline_storage *storage,
                              struct cox__session_spec *session);

/* ---- without a public function ---- */

/* Mean of a window, radii up to 127, of integer samples: of its part in the frame, rounded.
 * Bindings: input, output. */
cox_status cox__filter_box(const struct cox_filter_shape *shape,
                           struct cox__pipeline_storage *storage,
                           struct cox__session_spec *session);
cox_status cox__filter_box_prepare(const struct cox_filter_shape *shape,
                                   struct cox_filter_params *params);

/* Transposition of 4-byte (channels 1) or 16-byte (channels 4) pixels; `sample` is
 * COX_FILTER_FLOAT, and any bits pass. The output has `width` rows of `height` pixels. Bindings:
 * input, output. */
cox_status cox__filter_transposition(const struct cox_filter_shape *shape,
                                     struct cox__pipeline_storage *storage,
                                     struct cox__session_spec *session);
cox_status cox__filter_transposition_prepare(const struct cox_filter_shape *shape,
                                             struct cox_filter_params *params);

/* Prefix sums along rows of integer samples, one channel: the output's uint32_t x is the sum of
 * samples 0 .. x, modulo 2^32. Bindings: input, output. */
cox_status cox__filter_prefix_sums(const struct cox_filter_shape *shape,
                                   struct cox__pipeline_storage *storage,
                                   struct cox__session_spec *session);
cox_status cox__filter_prefix_sums_prepare(const struct cox_filter_shape *shape,
                                           struct cox_filter_params *params);

#endif
