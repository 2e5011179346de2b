/* Defaults that the video pipeline and its steering share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_VIDEO_H
#define COX_KERNELS_VIDEO_H

/* Defaults for settings that are zero, in cd/m2. */
enum {
    COX__SDR_WHITE_NITS = 203,
    COX__PEAK_NITS = 1000,
    COX__HLG_PEAK_NITS = 1000,
    COX__PQ_NITS = 10000
};

/* A setting, or the default if it is zero or NaN. */
static inline double cox__given(float setting, double otherwise)
{
    if (setting > 0.0f)
        return (double)setting;
    return otherwise;
}

#endif
