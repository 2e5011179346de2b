/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_reference.h"
#include "media/photo.h"
#include "messages.h"
#include "source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct judge_reference {
    const struct options *options;
    struct video_input *video;     /* NULL = it is a PNG */
    struct picture_input *picture; /* NULL = it is a video */
    struct judge_coding mapped;
    struct video_colours colours; /* of the last frame of a video */
    struct judge_frame frame;
    void *memory[COX_VIDEO_PLANES_MAX];
    uint64_t next; /* the number of the next frame */
};

bool judge_reference_open(struct judge_reference **out, const struct options *options)
{
    const struct video_raw raw = {.memory_max = options->raw.memory_max};
    const char *path = options->judge;
    struct error error;
    struct judge_reference *reference = *out = calloc(1, sizeof *reference);
    if (!reference)
        return message_error("out of memory");

    reference->options = options;
    if (video_kind_of(path) == VIDEO_KIND_NONE)
        return picture_input_open_coded(&reference->picture, path, &error) ||
               message_file_error(path, &error);
    if (!video_input_open(&reference->video, path, &raw, &error))
        return message_file_error(path, &error);

    if (options->no_cache)
        video_input_without_cache(reference->video);
    return true;
}

/* --- Codings ---------------------------------------------------------------------------------- */

/* Refuse a reference of the other kind. */
static bool same_kind(const struct judge_reference *reference, bool hdr, struct error *error)
{
    const bool wants_hdr = reference->mapped.curve == COX_ENCODING_PQ;
    if (hdr && !wants_hdr)
        return error_set(error, "is HDR; --judge compares it with the output of --hdr only");
    if (!hdr && wants_hdr)
        return error_set(error, "is SDR, or does not name PQ; with --hdr the reference must be PQ");
    return true;
}

/* How frames of a video with these colours are coded. */
static bool follow_video(struct judge_reference *reference, const struct video_colours *colours,
                         struct judge_coding *coding, struct error *error)
{
    const struct video_format *format = video_input_format(reference->video);
    *coding = reference->mapped;
    coding->pixel = format->pixel;
    coding->pixel.range = colours->range;
    reference->colours = *colours;
    if (*colours->other_primaries)
        return error_set(error, "its primaries (%s) are not supported", colours->other_primaries);
    if (!format->can_name_colours) {
        if (coding->curve == COX_ENCODING_SRGB) /* y4m is video, not a still */
            coding->curve = COX_ENCODING_BT1886;
        return true;
    }

    const bool hdr = colours->has_transfer;
    if (!same_kind(reference, hdr, error))
        return false;
    if (hdr && colours->transfer != COX_TRANSFER_PQ)
        return error_set(error, "is HLG; --judge compares PQ");
    coding->primaries = hdr ? COX_PRIMARIES_BT2020 : COX_PRIMARIES_BT709;
    if (colours->has_primaries) {
        coding->primaries = colours->primaries;
        coding->matrix = colours->matrix;
    }
    if (!hdr)
        coding->curve = strcmp(colours->other_transfer, "iec61966-2-1") ? COX_ENCODING_BT1886
                                                                        : COX_ENCODING_SRGB;
    return true;
}

static bool follow_primaries(unsigned number, enum cox_primaries *primaries)
{
    static const struct {
        unsigned number; /* of H.273 */
        enum cox_primaries primaries;
    } known[] = {{1, COX_PRIMARIES_BT709},     {5, COX_PRIMARIES_BT601_625},
                 {6, COX_PRIMARIES_BT601_525}, {7, COX_PRIMARIES_BT601_525},
                 {9, COX_PRIMARIES_BT2020},    {11, COX_PRIMARIES_P3_DCI},
                 {12, COX_PRIMARIES_P3_D65}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == number) {
            *primaries = known[i].primaries;
            return true;
        }
    return false;
}

/* How the PNG is coded. */
static bool follow_picture(const struct judge_reference *reference, struct judge_coding *coding,
                           struct error *error)
{
    const struct picture_format *format = picture_input_format(reference->picture);
    *coding = reference->mapped;
    coding->pixel = (struct cox_video_format){
        .layout = COX_VIDEO_RGBA, .depth = 16, .range = COX_RANGE_FULL};
    coding->matrix = COX_MATRIX_AUTO;
    if (format->transfer == CICP_UNKNOWN)
        return error_set(error, "its ICC profile is not that of sRGB, and it has no cICP");
    if (!follow_primaries(format->primaries, &coding->primaries))
        return error_set(error, "its primaries (number %u) are not supported", format->primaries);

    switch (format->transfer) {
    case CICP_PQ:
        return same_kind(reference, true, error);
    case CICP_SRGB:
        coding->curve = COX_ENCODING_SRGB;
        break;
    case 1: /* as video */
    case 6:
    case 14:
    case 15:
        coding->curve = COX_ENCODING_BT1886;
        break;
    default:
        return error_set(error, "its transfer curve (%s) is not supported",
                         photo_transfer_name(format->transfer));
    }
    return same_kind(reference, false, error);
}

/* --- Frames ----------------------------------------------------------------------------------- */

static bool make_frame(struct judge_reference *reference, const struct cox_video_format *pixel,
                       uint32_t width, uint32_t height)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(pixel, width, height, planes);

    for (uint32_t p = 0; p < count; p++) {
        reference->frame.pitch_bytes[p] = video_row_bytes(pixel, &planes[p]);
        reference->memory[p] = malloc(reference->frame.pitch_bytes[p] * planes[p].rows);
        reference->frame.planes[p] = reference->memory[p];
        if (!reference->memory[p])
            return message_error("out of memory");
    }
    return true;
}

bool judge_reference_begin(struct judge_reference *reference, const struct video_format *target,
                           const struct judge_coding *mapped, struct judge_coding *coding)
{
    const char *path = reference->options->judge;
    const struct video_turn turn = target->turn;
    uint32_t width, height;
    struct error error;
    reference->mapped = *mapped;
    if (reference->video) {
        width = video_input_format(reference->video)->width;
        height = video_input_format(reference->video)->height;
    } else {
        width = picture_input_format(reference->picture)->width;
        height = picture_input_format(reference->picture)->height;
        if (turn.transposed || turn.flip_x || turn.flip_y)
            return message_error("%s: a PNG cannot be compared with a film that is to be turned",
                                 path);
    }
    if (width != target->width || height != target->height)
        return message_error("%s: is %u x %u, but the mapped frames are %u x %u; they can only be "
                             "compared at the same size",
                             path, width, height, target->width, target->height);

    const bool follows = reference->video
                             ? follow_video(reference,
                                            &video_input_format(reference->video)->colours, coding,
                                            &error)
                             : follow_picture(reference, coding, &error);
    if (!follows)
        return message_file_error(path, &error);
    return make_frame(reference, &coding->pixel, width, height);
}

/* Whether all pixels of the PNG are opaque. */
static bool is_opaque(const struct judge_reference *reference)
{
    const struct picture_format *format = picture_input_format(reference->picture);
    const uint16_t *codes = reference->memory[0];
    const size_t count = (size_t)format->width * format->height;
    for (size_t i = 0; i < count; i++)
        if (codes[4 * i + 3] != UINT16_MAX)
            return false;
    return true;
}

static enum video_read read_picture(struct judge_reference *reference, struct error *error)
{
    if (reference->next++)
        return VIDEO_READ_END;
    if (picture_input_read(reference->picture, reference->memory[0],
                           reference->frame.pitch_bytes[0], error) != PICTURE_READ_FRAME)
        return VIDEO_READ_ERROR;
    if (is_opaque(reference))
        return VIDEO_READ_FRAME;

    error_set(error, "has transparent parts, which cannot be compared");
    return VIDEO_READ_ERROR;
}

enum video_read judge_reference_read(struct judge_reference *reference, uint64_t number,
                                     struct judge_frame *frame, struct judge_coding *coding,
                                     bool *recoded, struct error *error)
{
    enum video_read result = VIDEO_READ_FRAME;
    *frame = reference->frame;
    *recoded = false;
    if (reference->picture)
        return read_picture(reference, error);
    if (number > reference->next)
        result = video_input_skip(reference->video, number - reference->next, error);
    if (result == VIDEO_READ_FRAME)
        result = video_input_read(reference->video, reference->memory, reference->frame.pitch_bytes,
                                  error);
    if (result != VIDEO_READ_FRAME)
        return result;

    struct error why;
    const struct video_colours *colours = &video_input_frame(reference->video)->colours;
    reference->next = number + 1;
    if (video_colours_equal(colours, &reference->colours))
        return VIDEO_READ_FRAME;

    *recoded = follow_video(reference, colours, coding, &why);
    if (*recoded)
        return VIDEO_READ_FRAME;

    error_set(error, "frame %" PRIu64 " (the first is 0): %s", number, why.text);
    return VIDEO_READ_ERROR;
}

bool judge_reference_goes_on(struct judge_reference *reference)
{
    struct error error;
    return reference->video && video_input_skip(reference->video, 1, &error) == VIDEO_READ_FRAME;
}

void judge_reference_cancel(struct judge_reference *reference)
{
    if (reference->video)
        video_input_cancel(reference->video);
}

bool judge_reference_sound(struct judge_reference *reference)
{
    const struct options *options = reference->options;
    return !reference->video ||
           source_input_sound(reference->video, options->judge, options->strict);
}

void judge_reference_close(struct judge_reference **reference)
{
    if (!*reference)
        return;

    video_input_close(&(*reference)->video);
    picture_input_close(&(*reference)->picture);
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        free((*reference)->memory[p]);
    free(*reference);
    *reference = NULL;
}
