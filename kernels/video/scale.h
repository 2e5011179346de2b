/* A frame to another size on the host's side: the stages that make it, before one that maps.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_SCALE_H
#define COX_KERNELS_SCALE_H

#include "filter/plan.h"
#include <coxswain/video.h>

struct cox__scale_axis {
    int32_t num, offset, den, samples, reach;
    float inv_den, inv_stretch;
};

/* struct scale_params of scale.cl. */
struct cox__scale {
    int32_t width, in_pitch[3], columns[3], begin[3], samples, result_pitch;
    struct cox__scale_axis down[2], along[2];
    float unit;
};

/* Whether a side of `from` pixels can become one of `to`: an eighth to eightfold. */
bool cox__scale_ok(uint32_t from, uint32_t to);

/* Colours as they are, no Y'CbCr. */
static inline bool cox__video_is_rgb(const struct cox_video_format *f)
{
    return f->layout == COX_VIDEO_RGBA || f->layout == COX_VIDEO_BGRA || f->layout == COX_VIDEO_GBR;
}

/* For a shape with COX_SCALE_FILTER and its frame's planes. */
struct cox__scale cox__scale_of(const struct cox_video_shape *shape,
                                const struct cox_video_plane *planes, uint32_t count);

/* What is mapped then: the shape as if its frames had the output's size from the start, in planes
 * of 16 bits, 4:4:4. */
struct cox_video_shape cox__scale_result(const struct cox_video_shape *shape);

/* Two stages and their scratch: from the frame's planes, the plan's first bindings, to three planes
 * of the result, whose bindings go to `result`. The parameters lie `params_offset` bytes into the
 * frame's. */
void cox__scale_stages(struct cox__plan *plan, const struct cox_video_shape *shape,
                       const struct cox_video_plane *planes, uint32_t count, size_t params_offset,
                       uint32_t result[3]);

#endif
