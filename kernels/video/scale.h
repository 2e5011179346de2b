/* Scaling a frame on the host's side: the stages that run before the one that maps.
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

/* Whether a side of `from` pixels can be scaled to `to`: from an eighth to eight times as many. */
bool cox__scale_ok(uint32_t from, uint32_t to);

/* The parameters for a shape with COX_SCALE_FILTER and the planes of its frames. */
struct cox__scale cox__scale_of(const struct cox_video_shape *shape,
                                const struct cox_video_plane *planes, uint32_t count);

/* The shape to map after scaling: as if the frames had the output's size from the start, in planes
 * of 16 bits, 4:4:4. */
struct cox_video_shape cox__scale_result(const struct cox_video_shape *shape);

/* Add two stages and their scratch. They go from the frame's planes, which are the plan's first
 * bindings, to three planes of the scaled frame, whose bindings go to `result`. The parameters lie
 * `params_offset` bytes into the frame's parameters. */
void cox__scale_stages(struct cox__plan *plan, const struct cox_video_shape *shape,
                       const struct cox_video_plane *planes, uint32_t count, size_t params_offset,
                       uint32_t result[3]);

#endif
