/* A frame's rows as pieces for readv and writev: samples move between a file and the caller's
 * memory without a copy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_ROWS_H
#define VIDEO_ROWS_H

#include "video_format.h"

#include <sys/uio.h>

/* The next row of a frame. All zeros is the first one. */
struct video_rows {
    uint32_t plane;
    uint32_t row;
};

/* As many as the kernel takes in one call. */
enum { VIDEO_PIECES = 1024 };

/* Fill `pieces` from the next row on: one piece per row, or one per plane if its rows have no gap
 * between them. Returns how many; 0 at the frame's end. */
size_t video_rows_next(struct video_rows *rows, const struct video_planes *planes,
                       void *const memory[], const size_t pitch_bytes[],
                       struct iovec pieces[VIDEO_PIECES]);

/* Take `bytes` off the front of `*count` pieces; returns the first one that is left. */
struct iovec *video_rows_advance(struct iovec *pieces, size_t *count, size_t bytes);

/* False if a pitch is shorter than a row. */
bool video_rows_fit(const struct video_planes *planes, const size_t pitch_bytes[],
                    struct error *error);

#endif
