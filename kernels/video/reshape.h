/* Reshaping: its checks, and products of matrices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_RESHAPE_H
#define COX_KERNELS_RESHAPE_H

#include <coxswain/video.h>

/* Whether all fields are in their ranges; false for NULL. */
bool cox__reshape_ok(const struct cox_video_reshape *reshape);

/* The product a b of two matrices of 3 x 3. */
void cox__reshape_product(const double a[9], const double b[9], double product[9]);

#endif
