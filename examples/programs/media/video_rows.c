/* A frame's rows as pieces for readv and writev, so that samples move between a file and the caller's memory without a
 * copy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

size_t video_row_bytes(const struct cox_video_format *pixel, const struct cox_video_plane *plane)
{
    return pixel->layout == COX_VIDEO_V210 ? (plane->row_bytes + 127) / 128 * 128
                                           : plane->row_bytes;
}

bool video_planes_of(struct video_planes *planes, const struct cox_video_format *pixel,
                     uint64_t width, uint64_t height, struct error *error)
{
    if (!width || !height)
        return error_set(error, "the frames have no pixels (%llu x %llu)",
                         (unsigned long long)width, (unsigned long long)height);
    if (width > VIDEO_SIDE_MAX || height > VIDEO_SIDE_MAX || width * height > VIDEO_PIXELS_MAX)
        return error_set(
            error,
            "the frames are too large: %llu x %llu pixels; at most %d on a side and %llu in all",
            (unsigned long long)width, (unsigned long long)height, VIDEO_SIDE_MAX,
            (unsigned long long)VIDEO_PIXELS_MAX);
    planes->count = cox_video_planes(pixel, (uint32_t)width, (uint32_t)height, planes->plane);
    if (!planes->count)
        return error_set(error, "a sample format that this program does not work with");
    planes->frame_bytes = 0;
    for (uint32_t p = 0; p < planes->count; p++) {
        planes->plane[p].row_bytes = video_row_bytes(pixel, &planes->plane[p]);
        planes->frame_bytes += (uint64_t)planes->plane[p].row_bytes * planes->plane[p].rows;
    }
    return true;
}

bool video_rows_fit(const struct video_planes *planes, const size_t pitch_bytes[],
                    struct error *error)
{
    for (uint32_t p = 0; p < planes->count; p++)
        if (pitch_bytes[p] < planes->plane[p].row_bytes)
            return error_set(error, "the rows of plane %u of the memory given are too short", p);
    return true;
}

size_t video_rows_next(struct video_rows *rows, const struct video_planes *planes,
                       void *const memory[], const size_t pitch_bytes[],
                       struct iovec pieces[VIDEO_PIECES])
{
    size_t count = 0;
    while (count < VIDEO_PIECES && rows->plane < planes->count) {
        const struct cox_video_plane *plane = &planes->plane[rows->plane];
        uint8_t *from = (uint8_t *)memory[rows->plane] + rows->row * pitch_bytes[rows->plane];
        uint32_t taken = pitch_bytes[rows->plane] == plane->row_bytes ? plane->rows - rows->row : 1;
        pieces[count++] = (struct iovec){from, plane->row_bytes * taken};
        rows->row += taken;
        if (rows->row == plane->rows)
            *rows = (struct video_rows){.plane = rows->plane + 1};
    }
    return count;
}

struct iovec *video_rows_advance(struct iovec *pieces, size_t *count, size_t bytes)
{
    while (*count && bytes >= pieces->iov_len) {
        bytes -= pieces->iov_len;
        pieces++;
        --*count;
    }
    if (bytes) {
        pieces->iov_base = (uint8_t *)pieces->iov_base + bytes;
        pieces->iov_len -= bytes;
    }
    return pieces;
}
