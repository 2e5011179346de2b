/* How frames are to look: makes a pipeline's shape and a frame's settings of the application's
 * options, and adapts the curve from frame to frame.
 * Thread-safety: none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_OPTIONS_H
#define COX_STREAM_OPTIONS_H

#include <coxswain/stream.h>

/* Errors: as cox_video_stream_set. `from` NULL = all defaults. */
cox_status cox__options_read(struct cox_tonemap_options *to,
                             const struct cox_tonemap_options *from);

/* All of the shape but its pitches. cox_video_mapping checks it later. */
void cox__options_shape(const struct cox_tonemap_options *look, const struct cox_video_image *in,
                        const struct cox_video_image *out, struct cox_video_shape *shape);

/* Whether two shapes are equal apart from their pitches. */
bool cox__options_shapes_alike(const struct cox_video_shape *a, const struct cox_video_shape *b);

/* Whether the pitches of two shapes are equal. */
bool cox__options_pitches_alike(const struct cox_video_shape *a, const struct cox_video_shape *b);

/* Whether the settings of two frames are equal. */
bool cox__options_alike(const struct cox_video_settings *a, const struct cox_video_settings *b);

/* What the curve has learnt. All zeros is the state before the first frame. */
struct cox__curve {
    struct cox_adaptation_state steer;
    bool begun;      /* false: no histogram yet, and peak_nits and gain mean nothing */
    float peak_nits; /* of the next frame, by cox_video_adapt */
    float gain;      /* likewise */
};

/* Adapt the curve to a frame's histogram, and fill in the result's cut and scene. */
void cox__options_follow_curve(struct cox__curve *curve, const struct cox_tonemap_options *look,
                               const struct cox_video_shape *shape, float peak_said_nits,
                               const cox_buffer *histogram, struct cox_video_result *result);

/* The settings of the next frame. */
struct cox_video_settings cox__options_curve_settings(const struct cox__curve *curve,
                                                      const struct cox_tonemap_options *look);

#endif
