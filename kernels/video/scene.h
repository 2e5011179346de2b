/* What the video pipeline and its steering share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_VIDEO_H
#define COX_KERNELS_VIDEO_H

/* Where cox_video_settings says nothing. cd/m2. */
enum {
    COX__SDR_WHITE_NITS = 203,
    COX__PEAK_NITS = 1000,
    COX__HLG_PEAK_NITS = 1000,
    COX__PQ_NITS = 10000
};

/* A setting, or the default where it is zero or no number. */
static inline double cox__given(float setting, double otherwise)
{
    return setting > 0.0f ? (double)setting : otherwise;
}

#endif
