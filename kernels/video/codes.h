/* SDR frames that already have the colours of the output: their codes go from one format to the
 * other, on the host's side.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_CODES_H
#define COX_KERNELS_CODES_H

#include "filter/plan.h"
#include <coxswain/video.h>

/* Codes: black, white minus black, zero chroma, the range of chroma (from -1/2 to 1/2), and the
 * largest code. */
struct cox__levels {
    double black, luma, grey, chroma, most;
};

struct cox__levels cox__codes_levels(const struct cox_video_format *format);

/* struct codes_params of codes.cl. */
struct cox__codes {
    int32_t width, height, in_pitch[3], out_pitch[3];
    float luma_scale, luma_offset, chroma_scale, chroma_offset, most;
};

/* Whether frames of the shape keep their codes: SDR of the output's curve, primaries, matrix, size,
 * and places of chroma. */
bool cox__codes_kept(const struct cox_video_shape *shape);

struct cox__codes cox__codes_of(const struct cox_video_shape *shape);

/* Add the stage that maps such frames. The plan's first `planes` bindings are planes: `in_planes`
 * of the input, then those of the output. The parameters lie `params_offset` bytes into the frame's
 * parameters. */
void cox__codes_stage(struct cox__plan *plan, const struct cox_video_shape *shape,
                      uint32_t in_planes, uint32_t planes, size_t params_offset);

#endif
