/* Transposition, alone and as a pass of another filter.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_FILTER_LINES_H
#define COX_FILTER_LINES_H

#include "plan.h"

/* struct transpose_params of transpose.cl: width and height of the input in pixels. */
struct cox__transpose_params {
    int32_t width, height, in_pitch, out_pitch;
};

/* Whether the shape's pixels are of 4 or 16 bytes, and its pitches let those of 16 be read whole. */
bool cox__lines_transpose_fits(const struct cox_filter_shape *shape);

/* A pass that transposes `from`, width by height pixels, into `to`. */
void cox__lines_transpose_pass(struct cox__plan *plan, const char *name,
                               const struct cox_filter_shape *shape, uint32_t width,
                               uint32_t height, uint32_t from, uint32_t to, size_t params_offset);

#endif
