/* Raw frames: nothing but samples, one frame after another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#include <stdio.h>
#include <string.h>

const char video_raw_names[] =
    "nv12, nv16, p010, p012, p016, p210, p216, v210, yuv420p, yuv422p, yuv444p, gbrp, each of "
    "these four also with 10, 12, 14 or 16 bits (yuv420p10), rgba, bgra, rgba64, bgra64, rgba16f";

/* The depth from the digits after a planar name; 0 = there is no such depth. */
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

#define SEMI_PLANAR(bits, y_log2)                                                               \
    {                                                                                           \
        .layout = COX_VIDEO_SEMI_PLANAR, .depth = (bits),                                       \
        .msb_aligned = (bits) > 8 && (bits) < 16, .chroma_x_log2 = 1, .chroma_y_log2 = (y_log2) \
    }
#define PIXELS(order, bits)                                                   \
    {                                                                         \
        .layout = COX_VIDEO_##order, .depth = (bits), .range = COX_RANGE_FULL \
    }

static bool find_whole(const char *name, struct video_raw *raw)
{
    static const struct {
        const char *name;
        struct cox_video_format pixel;
        bool light;
    } whole[] = {
        {"nv12", SEMI_PLANAR(8, 1), false},
        {"nv16", SEMI_PLANAR(8, 0), false},
        {"p010", SEMI_PLANAR(10, 1), false},
        {"p012", SEMI_PLANAR(12, 1), false},
        {"p016", SEMI_PLANAR(16, 1), false},
        {"p210", SEMI_PLANAR(10, 0), false},
        {"p216", SEMI_PLANAR(16, 0), false},
        {"v210", {.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1}, false},
        {"rgba", PIXELS(RGBA, 8), false},
        {"bgra", PIXELS(BGRA, 8), false},
        {"rgba64", PIXELS(RGBA, 16), false},
        {"bgra64", PIXELS(BGRA, 16), false},
        {"rgba16f", PIXELS(RGBA, 16), true},
        {"rgbaf16", PIXELS(RGBA, 16), true}, /* ffmpeg's name for it */
    };

    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (!strcmp(name, whole[i].name)) {
            raw->pixel = whole[i].pixel;
            raw->light = whole[i].light;
            return true;
        }

    return false;
}

/* A prefix, and the depth in digits. */
static bool find_planar(const char *name, struct video_raw *raw)
{
    static const struct {
        const char *prefix;
        struct cox_video_format pixel;
    } planar[] = {{"yuv420p", {.chroma_x_log2 = 1, .chroma_y_log2 = 1}},
                  {"yuv422p", {.chroma_x_log2 = 1}},
                  {"yuv444p", {.chroma_x_log2 = 0}},
                  {"gbrp", {.layout = COX_VIDEO_GBR, .range = COX_RANGE_FULL}}};

    for (size_t i = 0; i < sizeof planar / sizeof planar[0]; i++) {
        const size_t letters = strlen(planar[i].prefix);
        if (strncmp(name, planar[i].prefix, letters))
            continue;

        const uint32_t depth = depth_of(name + letters);
        if (!depth)
            return false;
        raw->pixel = planar[i].pixel;
        raw->pixel.depth = depth;
        raw->light = false;
        return true;
    }
    return false;
}

bool video_raw_find(const char *name, struct video_raw *raw)
{
    char plain[16];
    const size_t length = strlen(name);
    if (length >= sizeof plain)
        return false;

    /* ffmpeg's names may end in "le": here all samples are little-endian. */
    strcpy(plain, name);
    if (length > 4 && !strcmp(plain + length - 2, "le"))
        plain[length - 2] = 0;
    return find_whole(plain, raw) || find_planar(plain, raw);
}

static bool raw_open(struct video_input *input, struct error *error)
{
    struct video_format *format = &input->format; /* has size, samples and rate already */
    if (!video_planes_of(&input->planes, &format->pixel, format->width, format->height, error))
        return false;

    uint64_t bytes;
    if (!video_source_bytes(&input->source, &bytes, error))
        return false;
    format->interlacing = 'p';
    format->frames = bytes / input->planes.frame_bytes;
    input->cut = bytes % input->planes.frame_bytes != 0;
    if (!format->rate.num || !format->rate.den)
        format->rate = (struct video_rational){25, 1};
    video_describe(format, "raw");
    return true;
}

static enum video_read raw_read(struct video_input *input, void *const memory[],
                                const size_t pitch_bytes[], struct error *error)
{
    return video_read_samples(input, input->source.offset, memory, pitch_bytes, error);
}

const struct video_reader video_reader_raw = {
    .from_source = true, .open = raw_open, .read = raw_read, .lender = &video_lender_file};
