/* The operator local on the host's side: the passes that make its base, for pictures and for video.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_LOCAL_H
#define COX_KERNELS_LOCAL_H

#include "filter/plan.h"
#include "math/curve.h"

/* The parameters of every stage of these passes: struct local_params of local.clh. */
struct cox__local {
    int32_t width, height, block_log2, column_log2, stride, wide_stride;
    int32_t moments_pitch, ab_pitch, base_pitch;
    float epsilon2, detail;
    struct cox__local_curve curve;
};

/* Geometry for frames of this size. The side of a block is the smallest power of two that gives the
 * longer side at most 480 blocks, but at least 2^column_log2 pixels and at most 32. The other
 * fields are 0. */
struct cox__local cox__local_of(uint32_t width, uint32_t height, uint32_t column_log2);

/* Check and set `detail` of the public settings. */
bool cox__local_detail_ok(float detail);
void cox__local_settings(struct cox__local *local, const struct cox__curve *curve, float detail);

/* Bindings of scratch. */
struct cox__local_scratch {
    uint32_t moments, ab, base;
};
struct cox__local_scratch cox__local_bindings(struct cox__plan *plan,
                                              const struct cox__local *local);

/* Add the sums along rows to the plan's last pass, in which an earlier stage writes the blocks'
 * stops to `moments` by rows of pixels. Then add the passes that make `base`. The kernels' struct
 * local_params lies `params_offset` bytes into the frame's parameters. */
void cox__local_passes(struct cox__plan *plan, const struct cox__local *local,
                       struct cox__local_scratch scratch, size_t params_offset);

#endif
