/* What a frame's histogram shows, and defaults that the video pipeline and its steering share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_VIDEO_H
#define COX_KERNELS_VIDEO_H

#include <coxswain/video.h>

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

/* The light of the white of SDR input, in cd/m2: the output's white, or on an HDR display 203
 * (ITU-R BT.2408) if that is not above its peak. */
double cox__scene_sdr_nits(const struct cox_video_shape *shape,
                           const struct cox_video_settings *settings);

/* What a histogram of the video pipelines shows about its frame. */
struct cox__scene {
    float peak_nits;    /* see cox_video_adapt; 0 for a black frame */
    float average_nits; /* the light at the mean of the signal */
    uint64_t blocks;
};

/* Fill *out from a frame's histogram. `shape` and `settings` are those of the frame. They define
 * the light of each step of the histogram. */
void cox__scene_read(const struct cox_video_shape *shape, const struct cox_video_settings *settings,
                     const uint32_t *histogram, struct cox__scene *out);

/* Whether frames of the shape have use for black bars: not where a row's result depends on rows
 * far away. */
static inline bool cox__bars_matter(const struct cox_video_shape *shape)
{
    return shape->scale != COX_SCALE_FILTER && shape->op != COX_OPERATOR_LOCAL;
}

#endif
