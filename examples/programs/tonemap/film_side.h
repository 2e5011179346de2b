/* The frames in flight on one side, input or output: a few slots of buffers, made when they are
 * first needed. Frame n uses slot n modulo their count.
 * Thread-safety: slots of different frames from different threads; everything else from one thread
 * at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_FILM_SIDE_H
#define TONEMAP_FILM_SIDE_H

#include "media/video.h"

enum { FILM_SLOTS_MAX = COX_IN_FLIGHT_MAX + 2 };

struct film_side {
    uint32_t plane_count;
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    size_t plane_bytes[COX_VIDEO_PLANES_MAX];
    uint32_t slot_count; /* set by the caller */
    uint32_t slots_made;
    bool lent; /* the buffers belong to the input, which lends them for each frame */
    cox_buffer *slots[FILM_SLOTS_MAX][COX_VIDEO_PLANES_MAX];
};

/* Set the planes: for the input, whose buffers are lent if it can lend them; and for other
 * frames. */
void film_side_describe_input(struct film_side *side, cox_runtime *runtime,
                              struct video_input *input, const struct cox_video_shape *shape);
void film_side_describe(struct film_side *side, cox_runtime *runtime,
                        const struct cox_video_format *format, uint32_t width, uint32_t height);

/* The buffers of a frame's slot; film_side_make makes them for the first frame of the slot. */
cox_buffer **film_side_planes(struct film_side *side, uint64_t frame);
cox_status film_side_make(struct film_side *side, cox_runtime *runtime, uint64_t frame);

/* Read the next frame of the input, number `frame`, into its slot. */
enum video_read film_side_read(struct film_side *side, cox_runtime *runtime,
                               struct video_input *input, uint64_t frame, struct error *error);

/* Free all buffers, or return them to the input if they are lent. */
void film_side_free(struct film_side *side, struct video_input *input);

#endif
