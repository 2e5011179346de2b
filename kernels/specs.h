/* The library's own pipelines. Each function fills in a session's rows, bindings, passes and
 * params_bytes, and leaves the other fields. They point to `storage`, which must stay in place
 * until the session is created. Public functions of the same name are documented further; each
 * filter has a function that prepares a frame's parameters.
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

/* The first pass counts the frame. Then `counted` is called; the histogram is the last buffer of
 * the application. The next passes map the frame with the constants that `counted` left.
 * Errors: as cox_video_mapping; COX_E_INVALID for a look-up table. */
cox_status cox__video_counted_mapping(const struct cox_video_shape *shape,
                                      cox_pass_done_fn *counted, void *user,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session);
cox_status cox__tonemap_mapping(const struct cox_tonemap_shape *shape,
                                struct cox__pipeline_storage *storage,
                                struct cox__session_spec *session);
cox_status cox__tonemap_analysis_spec(const struct cox_tonemap_shape *shape,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session);
cox_status cox__convolution_separable(const struct cox_filter_shape *shape,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session);
cox_status cox__convolution_full(const struct cox_filter_shape *shape,
                                 struct cox__pipeline_storage *storage,
                                 struct cox__session_spec *session);
cox_status cox__gauss_filter(const struct cox_filter_shape *shape,
                             struct cox__pipeline_storage *storage,
                             struct cox__session_spec *session);
cox_status cox__window_guided(const struct cox_filter_shape *shape,
                              struct cox__pipeline_storage *storage,
                              struct cox__session_spec *session);

/* --- without a public function --- */

/* Mean of a window of integer samples, radii up to 127: of its part inside the frame, rounded.
 * Bindings: input, output. */
cox_status cox__window_box(const struct cox_filter_shape *shape,
                           struct cox__pipeline_storage *storage,
                           struct cox__session_spec *session);
cox_status cox__window_box_prepare(const struct cox_filter_shape *shape,
                                   struct cox_constants *params);

/* Transposition of pixels of 4 bytes (channels 1) or 16 bytes (channels 4). `sample` is
 * COX_FILTER_FLOAT, and any bits pass. The output has `width` rows of `height` pixels. Bindings:
 * input, output. */
cox_status cox__lines_transposition(const struct cox_filter_shape *shape,
                                    struct cox__pipeline_storage *storage,
                                    struct cox__session_spec *session);
cox_status cox__lines_transposition_prepare(const struct cox_filter_shape *shape,
                                            struct cox_constants *params);

/* Prefix sums along rows of integer samples, one channel: the output's uint32_t x is the sum of
 * samples 0 .. x, modulo 2^32. Bindings: input, output. */
cox_status cox__lines_prefix_sums(const struct cox_filter_shape *shape,
                                  struct cox__pipeline_storage *storage,
                                  struct cox__session_spec *session);
cox_status cox__lines_prefix_sums_prepare(const struct cox_filter_shape *shape,
                                          struct cox_constants *params);

#endif
