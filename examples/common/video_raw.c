/* Raw frames: nothing but samples, one frame after another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#include <stdio.h>
#include <string.h>

const char video_raw_names[] =
    "nv12, p010, p012, p016, yuv420p, yuv422p, yuv444p, each of these three also with 10, 12, 14 "
    "or 16 bits (yuv420p10), rgba16f";

/* What follows "yuv420p" and the like; 0 = no such thing. */
static uint32_t depth_of(const char *digits)
{
    static const struct {
        const char *digits;
        uint32_t depth;
    } known[] = {{"", 8}, {"10", 10}, {"12", 12}, {"14", 14}, {"16", 16}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(digits, known[i].digits))
            return known[i].depth;
    return 0;
}

bool video_raw_find(const char *name, struct cox_video_format *pixel)
{
    static const struct {
        const char *name;
        struct cox_video_format pixel;
    } whole[] = {
        {"nv12", {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1}},
        {"p010",
         {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .high_bits = true, .chroma_x_log2 = 1, .chroma_y_log2 = 1}},
        {"p012",
         {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 12, .high_bits = true, .chroma_x_log2 = 1, .chroma_y_log2 = 1}},
        {"p016", {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 16, .chroma_x_log2 = 1, .chroma_y_log2 = 1}},
        {"rgba16f", {.layout = COX_VIDEO_RGBA, .depth = 16, .range = COX_RANGE_FULL}},
        {"rgbaf16", {.layout = COX_VIDEO_RGBA, .depth = 16, .range = COX_RANGE_FULL}}, /* ffmpeg's name for it */
    };
    static const struct {
        const char *prefix;
        struct cox_video_format pixel;
    } planar[] = {{"yuv420p", {.chroma_x_log2 = 1, .chroma_y_log2 = 1}},
                  {"yuv422p", {.chroma_x_log2 = 1}},
                  {"yuv444p", {.chroma_x_log2 = 0}}};
    /* ffmpeg says where the low byte is; here there is one way. */
    char plain[16];
    size_t length = strlen(name);
    if (length >= sizeof plain)
        return false;
    strcpy(plain, name);
    if (length > 6 - 2 && !strcmp(plain + length - 2, "le"))
        plain[length - 2] = 0;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (!strcmp(plain, whole[i].name)) {
            *pixel = whole[i].pixel;
            return true;
        }
    for (size_t i = 0; i < sizeof planar / sizeof planar[0]; i++)
        if (!strncmp(plain, planar[i].prefix, 7)) {
            struct cox_video_format found = planar[i].pixel;
            found.depth = depth_of(plain + 7);
            if (!found.depth)
                return false;
            *pixel = found;
            return true;
        }
    return false;
}

static bool raw_open(struct video_input *input, struct picture_error *error)
{
    struct video_format *format = &input->format; /* has size, samples and rate already */
    if (!video_planes_of(&input->planes, &format->pixel, format->width, format->height, error))
        return false;
    format->interlacing = 'p';
    format->frames = video_source_bytes(&input->source) / input->planes.frame_bytes;
    if (!format->rate.num || !format->rate.den)
        format->rate = (struct video_rational){25, 1};
    video_describe(format, "raw");
    return true;
}

static enum video_read raw_read(struct video_input *input, void *const memory[], const size_t pitch_bytes[],
                                struct picture_error *error)
{
    return video_read_samples(input, input->source.offset, memory, pitch_bytes, error);
}

const struct video_reader video_reader_raw = {.open = raw_open, .read = raw_read, .lender = &video_lender_file};
