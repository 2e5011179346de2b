/* SPDX-License-Identifier: Apache-2.0 */
#include "video_format.h"

#include <stdio.h>
#include <string.h>

static bool same(double a, double b)
{
    return a <= b && a >= b;
}

bool video_colours_equal(const struct video_colours *a, const struct video_colours *b)
{
    return a->has_range == b->has_range && a->has_transfer == b->has_transfer &&
           a->has_primaries == b->has_primaries && a->reshapes == b->reshapes &&
           a->transfer == b->transfer && a->primaries == b->primaries && a->matrix == b->matrix &&
           a->range == b->range && a->chroma_location == b->chroma_location &&
           !strcmp(a->other_transfer, b->other_transfer) &&
           !strcmp(a->other_primaries, b->other_primaries) &&
           same(a->mastering_peak_nits, b->mastering_peak_nits) &&
           same(a->max_cll_nits, b->max_cll_nits) && same(a->scene_peak_nits, b->scene_peak_nits);
}

size_t video_row_bytes(const struct cox_video_format *pixel, const struct cox_video_plane *plane)
{
    if (pixel->layout == COX_VIDEO_V210)
        return (plane->row_bytes + 127) / 128 * 128;
    return plane->row_bytes;
}

bool video_planes_of(struct video_planes *planes, const struct cox_video_format *pixel,
                     uint64_t width, uint64_t height, struct error *error)
{
    const unsigned long long shown_width = width, shown_height = height;
    if (!width || !height)
        return error_set(error, "the frames have no pixels (%llu x %llu)", shown_width,
                         shown_height);
    if (width > VIDEO_SIDE_MAX || height > VIDEO_SIDE_MAX || width * height > VIDEO_PIXELS_MAX)
        return error_set(
            error,
            "the frames are too large: %llu x %llu pixels; at most %d on a side and %llu in all",
            shown_width, shown_height, VIDEO_SIDE_MAX, (unsigned long long)VIDEO_PIXELS_MAX);

    planes->count = cox_video_planes(pixel, (uint32_t)width, (uint32_t)height, planes->plane);
    if (!planes->count)
        return error_set(error, "unsupported sample format");
    planes->frame_bytes = 0;
    for (uint32_t p = 0; p < planes->count; p++) {
        planes->plane[p].row_bytes = video_row_bytes(pixel, &planes->plane[p]);
        planes->frame_bytes += (uint64_t)planes->plane[p].row_bytes * planes->plane[p].rows;
    }

    return true;
}

/* "4:2:0", "semi-planar 4:2:0", "v210, 4:2:2", "BGRA" for example. */
static void name_samples(const struct video_format *format, char *text, size_t bytes)
{
    const struct cox_video_format *pixel = &format->pixel;
    const char *chroma = "4:2:2", *before = "";

    if (!pixel->chroma_x_log2)
        chroma = "4:4:4";
    else if (pixel->chroma_y_log2)
        chroma = "4:2:0";

    switch (pixel->layout) {
    case COX_VIDEO_RGBA:
        chroma = "RGBA";
        break;
    case COX_VIDEO_BGRA:
        chroma = "BGRA";
        break;
    case COX_VIDEO_GBR:
        chroma = "R'G'B' in planes";
        break;
    case COX_VIDEO_SEMI_PLANAR:
        before = "semi-planar ";
        break;
    case COX_VIDEO_V210:
        before = "v210, ";
        break;
    default:
        break;
    }

    snprintf(text, bytes, "%s%s", before, chroma);
}

void video_describe(struct video_format *format, const char *prefix)
{
    const struct cox_video_format *pixel = &format->pixel;
    const bool pixels = pixel->layout == COX_VIDEO_RGBA || pixel->layout == COX_VIDEO_BGRA;
    const char *range = "";
    char samples[32];

    name_samples(format, samples, sizeof samples);
    if (pixel->range == COX_RANGE_FULL && !pixels)
        range = ", full range";
    if (format->light)
        snprintf(format->text, sizeof format->text, "%s, RGBA, half", prefix);
    else
        snprintf(format->text, sizeof format->text, "%s, %s, %u bits%s", prefix, samples,
                 pixel->depth, range);
}
