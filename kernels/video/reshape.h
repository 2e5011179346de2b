/* Reshaping: its checks, and how its light reaches BT.709.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_RESHAPE_H
#define COX_KERNELS_RESHAPE_H

#include <coxswain/video.h>

/* Whether all fields are in their ranges; false for NULL. */
bool cox__reshape_ok(const struct cox_video_reshape *reshape);

/* The product of a matrix from BT.2020 and the reshaping's light matrix. */
void cox__reshape_light(const struct cox_video_reshape *reshape, const double from_bt2020[9],
                        double product[9]);

#endif
