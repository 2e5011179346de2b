/* SPDX-License-Identifier: Apache-2.0 */
#include "video_rows.h"

bool video_rows_fit(const struct video_planes *planes, const size_t pitch_bytes[],
                    struct error *error)
{
    for (uint32_t p = 0; p < planes->count; p++)
        if (pitch_bytes[p] < planes->plane[p].row_bytes)
            return error_set(error, "the pitch of plane %u is shorter than its rows", p);
    return true;
}

size_t video_rows_next(struct video_rows *rows, const struct video_planes *planes,
                       void *const memory[], const size_t pitch_bytes[],
                       struct iovec pieces[VIDEO_PIECES])
{
    size_t count = 0;

    while (count < VIDEO_PIECES && rows->plane < planes->count) {
        const struct cox_video_plane *plane = &planes->plane[rows->plane];
        const size_t pitch = pitch_bytes[rows->plane];
        uint8_t *from = (uint8_t *)memory[rows->plane] + rows->row * pitch;
        uint32_t taken = 1;
        if (pitch == plane->row_bytes) /* the rest of the plane is one piece */
            taken = plane->rows - rows->row;

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
