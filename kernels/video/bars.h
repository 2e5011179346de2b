/* Which shapes have use for a frame's black bars.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_VIDEO_BARS_H
#define COX_KERNELS_VIDEO_BARS_H

#include <coxswain/video.h>

/* Not where a row's result depends on rows far away. */
bool cox__video_uses_bars(const struct cox_video_shape *shape);

#endif
