/* How frames are to look: what the application asks for, made into a pipeline's shape and a frame's settings; and the
 * curve's way from frame to frame.
 * Thread-safety: none of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_LOOK_H
#define COX_STREAM_LOOK_H

#include <coxswain/stream.h>

/* A look with what it points to. */
struct cox__look {
    struct cox_tonemap_options look; /* its pointers are NULL: what they pointed to is below */
    struct cox_video_settings settings;
    struct cox_adaptation_options steering;
};

/* Errors: as cox_video_stream_set. `from` NULL = all defaults. */
cox_status cox__options_read(struct cox__look *to, const struct cox_tonemap_options *from);

/* All of the shape but its pitches. Not checked: cox_video_mapping does. */
void cox__options_shape(const struct cox__look *look, const struct cox_video_image *in,
                        const struct cox_video_image *out, struct cox_video_shape *shape);

/* Whether two shapes are the same but for their pitches; their pitches; two frames' settings. */
bool cox__options_shapes_alike(const struct cox_video_shape *a, const struct cox_video_shape *b);
bool cox__options_pitches_alike(const struct cox_video_shape *a, const struct cox_video_shape *b);
bool cox__options_alike(const struct cox_video_settings *a, const struct cox_video_settings *b);

/* What the curve has learnt. All zeros is the state before the first frame. */
struct cox__curve {
    struct cox_adaptation_state steer;
    bool begun;      /* a histogram has told the light; else peak and gain mean nothing */
    float peak_nits; /* of the next frame, as cox_video_adapt found them */
    float gain;
};

/* A frame's histogram: fills the result's cut and scene. */
void cox__options_follow_curve(struct cox__curve *curve, const struct cox__look *look,
                               const struct cox_video_shape *shape, float peak_said_nits,
                               const cox_buffer *histogram, struct cox_video_result *result);

/* The settings of the next frame. */
struct cox_video_settings cox__options_curve_settings(const struct cox__curve *curve,
                                                      const struct cox__look *look);

#endif
