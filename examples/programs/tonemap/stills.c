/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "stills.h"
#include "messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 4 }; /* pixels between the cells of a sheet */

/* --- Which frames ----------------------------------------------------------------------------- */

static int by_frame(const void *a, const void *b)
{
    const struct stills_wish *one = a, *other = b;
    if (one->frame != other->frame)
        return one->frame > other->frame ? 1 : -1;
    return (one->place > other->place) - (one->place < other->place);
}

/* The middle of each of `count` equal parts of the film, or of the frames that --start and --frames
 * choose. */
static bool spread(struct stills *stills, struct video_input *input)
{
    const struct options *options = stills->options;
    const uint64_t count = stills->wish_count;
    uint64_t frames;
    struct error error;
    if (!video_input_count(input, &frames, &error))
        return message_file_error(options->input, &error);

    frames = frames > options->start ? frames - options->start : 0;
    if (options->frames && options->frames < frames)
        frames = options->frames;
    if (frames < count)
        return message_error("%s: has %" PRIu64 " frames for a sheet of %" PRIu64, options->input,
                             frames, count);

    for (uint32_t i = 0; i < count; i++)
        stills->wishes[i] = (struct stills_wish){
            options->start + (2 * (uint64_t)i + 1) * frames / (2 * count), i};
    return true;
}

static bool take_list(struct stills *stills, struct video_input *input)
{
    const struct options *options = stills->options;
    const char *at = options->frame_list;
    struct frame_place place;
    struct error error;

    for (uint32_t i = 0; options_next_frame(&at, &place) && i < stills->wish_count; i++) {
        stills->wishes[i] = (struct stills_wish){place.frame, i};
        if (place.timed && !video_input_frame_at(input, place.seconds, options->rate,
                                                 &stills->wishes[i].frame, &error))
            return message_file_error(options->input, &error);
    }
    return true;
}

bool stills_choose(struct stills *stills, const struct options *options, struct video_input *input)
{
    *stills = (struct stills){.options = options, .wish_count = 1};
    if (options->sheet_count)
        stills->wish_count = options->sheet_count;
    else if (options->frame_list)
        stills->wish_count = options->frame_count;

    stills->wishes = calloc(stills->wish_count, sizeof *stills->wishes);
    stills->frames = calloc(stills->wish_count, sizeof *stills->frames);
    if (!stills->wishes || !stills->frames)
        return message_error("out of memory");

    if (options->sheet_count && !spread(stills, input))
        return false;
    if (!options->sheet_count && options->frame_list && !take_list(stills, input))
        return false;

    qsort(stills->wishes, stills->wish_count, sizeof *stills->wishes, by_frame);
    for (uint32_t i = 0; i < stills->wish_count; i++)
        if (!i || stills->wishes[i].frame != stills->wishes[i - 1].frame)
            stills->frames[stills->frame_count++] = stills->wishes[i].frame;
    return true;
}

/* --- Where they go ---------------------------------------------------------------------------- */

char *stills_name(const struct stills *stills, uint32_t place)
{
    const struct options *options = stills->options;
    const char *pattern = options_number_pattern(options->output);
    char *name;
    if (!options->frame_list || !pattern)
        return strdup(options->output);

    const int digits = atoi(pattern + 1), head = (int)(pattern - options->output);
    const char *tail = strchr(pattern, 'd') + 1;
    if (asprintf(&name, "%.*s%0*" PRIu32 "%s", head, options->output, digits, place + 1, tail) < 0)
        return NULL;
    return name;
}

static bool open_one(struct stills *stills, uint32_t wish, const struct video_format *format,
                     struct error *error)
{
    char *name = stills_name(stills, stills->wishes[wish].place);
    const bool good = name ? still_open(&stills->one, name, format, error)
                           : error_set(error, "out of memory");
    free(name);
    return good;
}

static bool begin_sheet(struct stills *stills, const struct video_format *format,
                        struct error *error)
{
    const struct options *options = stills->options;
    still_describe(&stills->one, format);
    const size_t bytes = stills->one.pixel_bytes;
    const uint64_t width = options->sheet_columns * ((uint64_t)stills->one.width + GAP) - GAP;
    const uint64_t height = options->sheet_rows * ((uint64_t)stills->one.height + GAP) - GAP;
    if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX ||
        width * height > PICTURE_PIXELS_MAX)
        return error_set(error, "a sheet of %" PRIu64 " x %" PRIu64 " pixels is too large", width,
                         height);

    stills->sheet_width = (uint32_t)width;
    stills->sheet_height = (uint32_t)height;
    stills->cells = malloc(width * height * bytes);
    if (!stills->cells)
        return error_set(error, "out of memory");
    for (size_t i = 0; i < width * height; i++) { /* black, opaque */
        memset(stills->cells + i * bytes, 0, bytes / 4 * 3);
        memset(stills->cells + i * bytes + bytes / 4 * 3, 0xff, bytes / 4);
    }

    if (!picture_output_open(&stills->sheet, options->output, stills->sheet_width,
                             stills->sheet_height, still_pixel(&stills->one), error))
        return false;
    if (!options->scale) /* cells of a chosen size have square pixels */
        stills->one.aspect = (struct video_rational){0, 0};
    still_say_format(&stills->one, stills->sheet);
    return true;
}

bool stills_begin(struct stills *stills, const struct video_format *format, struct error *error)
{
    if (stills->options->sheet_count)
        return begin_sheet(stills, format, error);
    return open_one(stills, 0, format, error);
}

static void take_cell(struct stills *stills, const uint8_t *pixels, size_t pitch_bytes)
{
    const struct still *one = &stills->one;
    const size_t sheet_pitch = stills->sheet_width * one->pixel_bytes;
    const uint32_t place = stills->wishes[stills->written++].place;
    const size_t column = place % stills->options->sheet_columns,
                 row = place / stills->options->sheet_columns;

    still_turn(one, pixels, pitch_bytes,
               stills->cells + row * (one->height + GAP) * sheet_pitch +
                   column * (one->width + GAP) * one->pixel_bytes,
               sheet_pitch);
}

bool stills_take(struct stills *stills, const struct video_format *format, const uint8_t *pixels,
                 size_t pitch_bytes, struct error *error)
{
    const uint64_t frame = stills->frames[stills->taken++];
    if (stills->options->sheet_count) {
        take_cell(stills, pixels, pitch_bytes);
        return true;
    }

    while (stills->written < stills->wish_count && stills->wishes[stills->written].frame == frame) {
        if (!stills->one.output && !open_one(stills, stills->written, format, error))
            return false;
        stills->written++;
        if (!still_write(&stills->one, pixels, pitch_bytes, error))
            return false;

        /* The last one is finished at the end, when the film is known to be good. */
        if (stills->written < stills->wish_count && !still_close(&stills->one, true, error))
            return false;
    }
    return true;
}

bool stills_close(struct stills *stills, bool good, struct error *error)
{
    bool finished = still_close(&stills->one, good, error);
    if (stills->sheet && good && finished) {
        finished = picture_output_write(stills->sheet, stills->cells,
                                        stills->sheet_width * stills->one.pixel_bytes, error);
        if (finished)
            finished = picture_output_finish(&stills->sheet, error);
    }
    picture_output_abandon(&stills->sheet);
    return finished;
}

void stills_free(struct stills *stills)
{
    stills_close(stills, false, NULL);
    free(stills->wishes);
    free(stills->frames);
    free(stills->cells);
    stills->wishes = NULL;
    stills->frames = NULL;
    stills->cells = NULL;
}
