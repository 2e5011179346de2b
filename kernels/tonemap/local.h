/* The operator local on the host's side: the passes that make the base, for pictures and for video.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_LOCAL_H
#define COX_KERNELS_LOCAL_H

#include "filter/plan.h"
#include "math/curve.h"

/* struct local_params of local.clh: what every stage of these passes takes. */
struct cox__local {
    int32_t width, height, block_log2, column_log2, stride, wide_stride;
    int32_t moments_pitch, ab_pitch, base_pitch;
    float epsilon2, detail;
    struct cox__local_curve curve;
};

/* Geometry for frames of this size: blocks of the smallest power of two that makes the longer side
 * no more than 480 of them, at least of 2^column_log2 pixels and at most of 32. The rest is 0. */
struct cox__local cox__local_of(uint32_t width, uint32_t height, uint32_t column_log2);

/* detail as the public settings have it. */
bool cox__local_detail_ok(float detail);
void cox__local_settings(struct cox__local *local, const struct cox__curve *curve, float detail);

/* Bindings of scratch. */
struct cox__local_scratch {
    uint32_t moments, ab, base;
};
struct cox__local_scratch cox__local_bindings(struct cox__plan *plan,
                                              const struct cox__local *local);

/* To the plan's last pass, in which an earlier stage writes the blocks' stops to `moments` by rows
 * of pixels: the sums along rows. Then the passes that make `base`. The kernels' struct
 * local_params lies `params_offset` bytes into the frame's parameters. */
void cox__local_passes(struct cox__plan *plan, const struct cox__local *local,
                       struct cox__local_scratch scratch, size_t params_offset);

#endif
