/* The crop of a Matroska video track, which libavformat does not tell before FFmpeg 7.1.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MATROSKA_CROP_H
#define MATROSKA_CROP_H

#include <stdbool.h>
#include <stdint.h>

struct matroska_crop {
    uint64_t left, right, top, bottom;
    uint64_t display_width, display_height; /* of the cropped picture; 0 = not given */
};

/* The crop of the video track with this number, counted from 0 among the video tracks. False: that
 * track has no crop, or the file is no Matroska. */
bool matroska_crop(const char *path, uint32_t video, struct matroska_crop *crop);

#endif
