/* Which shapes have use for a frame's black bars.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_VIDEO_BARS_H
#define COX_KERNELS_VIDEO_BARS_H

#include <coxswain/video.h>

/* Not where a row's result depends on rows far away. */
static inline bool cox__bars_matter(const struct cox_video_shape *shape)
{
    return shape->scale != COX_SCALE_FILTER && shape->op != COX_OPERATOR_LOCAL;
}

#endif
