/* The black bars of a frame (letterbox). Their rows have one colour, so that a row is mapped in one
 * step (frame.cl). And they are no light of the scene.
 *
 * Pure: no allocation, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"
#include <string.h>

/* The planes of a frame, and the codes of black. Programs differ by up to a code of 8 bits. */
struct frame {
    uint32_t count;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const void *const *data;
    const ptrdiff_t *pitch_bytes;
    bool rgb, interleaved; /* all planes are colours; Cb and Cr share a plane */
    uint32_t black;        /* the largest, as it lies in memory */
    uint32_t grey_least, grey_most;
};

static uint32_t sample_at(const uint8_t *at, uint32_t bytes)
{
    if (bytes == 1)
        return at[0];
    return at[0] | (uint32_t)at[1] << 8;
}

/* Whether a row of a plane is black, or grey if the plane is chroma. */
static bool is_black(const struct frame *frame, uint32_t p, uint32_t plane_row)
{
    const struct cox_video_plane *plane = &frame->planes[p];
    const bool chroma = p > 0 && !frame->rgb;
    const size_t unit = (size_t)plane->sample_bytes << (chroma && frame->interleaved);
    const uint8_t *row = (const uint8_t *)frame->data[p] +
                         (ptrdiff_t)plane_row * frame->pitch_bytes[p];

    for (size_t at = 0; at < unit; at += plane->sample_bytes) {
        const uint32_t sample = sample_at(row + at, plane->sample_bytes);
        if (!chroma && sample > frame->black)
            return false;
        if (chroma && (sample < frame->grey_least || sample > frame->grey_most))
            return false;
    }

    return !memcmp(row, row + unit, plane->row_bytes - unit);
}

/* Whether a row is black in all planes. Rows that share a row of chroma come one after another, and
 * the `first_of_pair` looks at it. */
static bool row_is_black(const struct frame *frame, uint32_t row, bool first_of_pair)
{
    for (uint32_t p = 0; p < frame->count; p++) {
        const uint32_t divisor = frame->planes[p].row_divisor;
        if ((divisor == 1 || first_of_pair) && !is_black(frame, p, row / divisor))
            return false;
    }
    return true;
}

void cox_video_find_bars(const struct cox_video_shape *shape,
                         const void *const data[COX_VIDEO_PLANES_MAX],
                         const ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                         struct cox_video_settings *settings)
{
    const struct cox_video_format *format = &shape->in;
    const uint32_t height = shape->height;
    const unsigned shift = format->depth - 8 + (format->msb_aligned ? 16 - format->depth : 0);
    struct frame frame = {.data = data,
                          .pitch_bytes = pitch_bytes,
                          .rgb = format->layout == COX_VIDEO_GBR,
                          .interleaved = format->layout == COX_VIDEO_SEMI_PLANAR,
                          .black = 1u << shift,
                          .grey_least = 127u << shift,
                          .grey_most = 129u << shift};
    if (format->range == COX_RANGE_LIMITED)
        frame.black = 17u << shift;

    settings->top_bar_rows = settings->bottom_bar_rows = 0;
    frame.count = cox_video_planes(format, shape->width, height, frame.planes);
    if (frame.count < 2 || !cox__bars_matter(shape))
        return;

    uint32_t top = 0, bottom = 0;
    while (top < height && row_is_black(&frame, top, top % 2 == 0))
        top++;
    while (top + bottom < height &&
           row_is_black(&frame, height - 1 - bottom, !bottom || (height - bottom) % 2 == 0))
        bottom++;

    settings->top_bar_rows = top;
    settings->bottom_bar_rows = bottom;
}
