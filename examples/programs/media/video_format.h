/* What follows from a video format: its planes in files, and its name for people.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_FORMAT_H
#define VIDEO_FORMAT_H

#include "video.h"

/* A frame's planes with their rows as files have them. */
struct video_planes {
    uint32_t count;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    uint64_t frame_bytes; /* of all planes */
};

/* The planes of a format. False: no such format, or the size is not sane. */
bool video_planes_of(struct video_planes *planes, const struct cox_video_format *pixel,
                     uint64_t width, uint64_t height, struct error *error);

/* Fill `text`: "4:2:0, 10 bits" for example, after `prefix`. */
void video_describe(struct video_format *format, const char *prefix);

#endif
