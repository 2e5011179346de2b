/* The frames of cox-bench kernels; all devices work on the same ones.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_KERNELS_FRAMES_H
#define BENCH_KERNELS_FRAMES_H

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stdint.h>

struct kernels_frames {
    uint32_t width, height;
    cox_buffer *half, *single, *picture_out, *picture_counts;
    size_t half_pitch, single_pitch, out_pitch;
    cox_buffer *video[2][COX_VIDEO_PLANES_MAX]; /* PQ, HLG */
    cox_buffer *video_out[COX_VIDEO_PLANES_MAX], *video_counts;
    struct cox_video_shape video_shape;
    cox_buffer *ceiling_in, *ceiling_out;
    cox_buffer *plane_in, *plane_out; /* of floats */
    size_t plane_pitch;
};

/* Create and fill all buffers; width and height must be set. Returns false after a message. Free
 * them in either case. */
bool kernels_frames_make(cox_runtime *runtime, struct kernels_frames *frames);
void kernels_frames_free(struct kernels_frames *frames);

#endif
