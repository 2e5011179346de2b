/* What the kernels' build options need to know of a sample format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_SAMPLE_FORMAT_H
#define COX_KERNELS_SAMPLE_FORMAT_H

#include <coxswain/video.h>

/* Whether R, G, B and A are in one plane. */
static inline bool cox__video_is_packed_rgb(const struct cox_video_format *f)
{
    return f->layout == COX_VIDEO_RGBA || f->layout == COX_VIDEO_BGRA;
}

/* Whether the format has colours and not Y'CbCr. */
static inline bool cox__video_is_rgb(const struct cox_video_format *f)
{
    return cox__video_is_packed_rgb(f) || f->layout == COX_VIDEO_GBR;
}

/* Bytes of a sample in memory. */
static inline uint32_t cox__video_sample_bytes(const struct cox_video_format *format)
{
    if (format->depth > 8)
        return 2;
    return 1;
}

/* Bits below a sample's code in memory. */
static inline uint32_t cox__video_sample_shift(const struct cox_video_format *format)
{
    if (format->msb_aligned)
        return 16 - format->depth;
    return 0;
}

#endif
