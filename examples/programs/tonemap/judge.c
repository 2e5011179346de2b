/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"
#include "messages.h"
#include "source.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Why no further frames are compared. */
enum judge_end { JUDGE_GOES_ON = 0, JUDGE_ENDED, JUDGE_FAILED, JUDGE_CANCELLED };

struct judge {
    const struct options *options;
    struct video_input *input;
    struct judge_measure *measure;
    struct video_colours colours; /* of the last frame */
    struct judge_frame frame;     /* of the reference */
    void *memory[COX_VIDEO_PLANES_MAX];
    uint64_t next;  /* the number of the reference's next frame */
    uint64_t taken; /* mapped frames, compared or not */
    uint64_t compared;
    enum judge_end end;
    struct error error; /* of JUDGE_FAILED */
};

bool judge_open(struct judge **out, const struct options *options)
{
    const struct video_raw raw = {.memory_max = options->raw.memory_max};
    struct error error;
    *out = NULL;
    if (!options->judge)
        return true;

    struct judge *judge = calloc(1, sizeof *judge);
    if (!judge)
        return message_error("out of memory");
    *out = judge;
    judge->options = options;
    if (!video_input_open(&judge->input, options->judge, &raw, &error))
        return message_file_error(options->judge, &error);

    if (options->no_cache)
        video_input_without_cache(judge->input);
    return true;
}

/* --- The reference's frames --- */

/* Follow the colours of the reference. Unnamed ones are those of HD video: BT.709, limited range.
 * False if it is no SDR. */
static bool follow(struct judge *judge, const struct video_colours *colours, struct error *error)
{
    const struct video_format *format = video_input_format(judge->input);
    struct judge_coding coding = {.pixel = format->pixel,
                                  .primaries = COX_PRIMARIES_BT709,
                                  .srgb = !strcmp(colours->other_transfer, "iec61966-2-1")};
    if (colours->has_transfer)
        return error_set(error, "is HDR video; --judge compares with SDR");
    if (*colours->other_primaries)
        return error_set(error, "its primaries (%s) are not supported", colours->other_primaries);

    coding.pixel.range = colours->range;
    if (colours->has_primaries) {
        coding.primaries = colours->primaries;
        coding.matrix = colours->matrix;
    }
    judge->colours = *colours;
    judge_measure_set(judge->measure, JUDGE_REFERENCE, &coding);
    return true;
}

/* Memory for a frame of the reference. */
static bool make_frame(struct judge *judge)
{
    const struct video_format *format = video_input_format(judge->input);
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(&format->pixel, format->width, format->height, planes);

    for (uint32_t p = 0; p < count; p++) {
        judge->frame.pitch_bytes[p] = video_row_bytes(&format->pixel, &planes[p]);
        judge->memory[p] = malloc(judge->frame.pitch_bytes[p] * planes[p].rows);
        judge->frame.planes[p] = judge->memory[p];
        if (!judge->memory[p])
            return message_error("out of memory");
    }
    return true;
}

bool judge_begin(struct judge *judge, const struct video_format *target, enum cox_encoding encoding)
{
    if (!judge)
        return true;

    const char *path = judge->options->judge;
    const struct video_format *format = video_input_format(judge->input);
    const struct judge_coding coding = {.pixel = target->pixel,
                                        .primaries = COX_PRIMARIES_BT709,
                                        .srgb = encoding == COX_ENCODING_SRGB};
    struct error error;
    if (format->width != target->width || format->height != target->height)
        return message_error("%s: is %u x %u, but the mapped frames are %u x %u; they can only be "
                             "compared at the same size",
                             path, format->width, format->height, target->width, target->height);

    judge->measure = judge_measure_create(target->width, target->height);
    if (!judge->measure)
        return message_error("out of memory");

    judge_measure_set(judge->measure, JUDGE_OUTPUT, &coding);
    return make_frame(judge) &&
           (follow(judge, &format->colours, &error) || message_file_error(path, &error));
}

/* Read frame `number`. */
static enum video_read read_frame(struct judge *judge, uint64_t number, struct error *error)
{
    enum video_read result = VIDEO_READ_FRAME;
    if (number > judge->next)
        result = video_input_skip(judge->input, number - judge->next, error);
    if (result == VIDEO_READ_FRAME)
        result = video_input_read(judge->input, judge->memory, judge->frame.pitch_bytes, error);
    if (result != VIDEO_READ_FRAME)
        return result;

    struct error why;
    const struct video_colours *colours = &video_input_frame(judge->input)->colours;
    judge->next = number + 1;
    if (video_colours_equal(colours, &judge->colours) || follow(judge, colours, &why))
        return VIDEO_READ_FRAME;

    error_set(error, "frame %" PRIu64 " (the first is 0): %s", number, why.text);
    return VIDEO_READ_ERROR;
}

static enum judge_end end_of(enum video_read result)
{
    switch (result) {
    case VIDEO_READ_FRAME:
        return JUDGE_GOES_ON;
    case VIDEO_READ_END:
        return JUDGE_ENDED;
    case VIDEO_READ_CANCELLED:
        return JUDGE_CANCELLED;
    default:
        return JUDGE_FAILED;
    }
}

void judge_take(struct judge *judge, uint64_t number, const void *const planes[],
                const size_t pitch_bytes[])
{
    if (!judge)
        return;

    judge->taken++;
    if (!judge->end)
        judge->end = end_of(read_frame(judge, number, &judge->error));
    if (judge->end)
        return;

    struct judge_frame frames[JUDGE_SIDES] = {[JUDGE_REFERENCE] = judge->frame};
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        frames[JUDGE_OUTPUT].planes[p] = planes[p];
        frames[JUDGE_OUTPUT].pitch_bytes[p] = pitch_bytes[p];
    }
    judge_measure_add(judge->measure, number, frames);
    judge->compared++;
}

void judge_cancel(struct judge *judge)
{
    if (judge)
        video_input_cancel(judge->input);
}

/* --- Results --- */

/* Print that the frames' counts differ: an error with --strict, else a warning. */
static bool differs(const struct judge *judge, const char *what, uint64_t count, const char *more)
{
    const char *path = judge->options->judge;
    if (judge->options->strict)
        return message_error("%s: %s %" PRIu64 " frame%s %s the mapped film", path, what, count,
                             plural(count), more);

    message_warning("%s: %s %" PRIu64 " frame%s %s the mapped film", path, what, count,
                    plural(count), more);
    return true;
}

/* Whether the reference has a frame more. */
static bool has_more(struct judge *judge)
{
    if (judge->end || !judge->compared)
        return false;

    return video_input_skip(judge->input, 1, &judge->error) == VIDEO_READ_FRAME;
}

bool judge_finish(struct judge *judge, bool whole)
{
    if (!judge || !judge->taken)
        return true;

    const char *path = judge->options->judge;
    const uint64_t missing = judge->taken - judge->compared;
    bool good = source_input_sound(judge->input, path, judge->options->strict);
    if (judge->end == JUDGE_FAILED)
        return message_file_error(path, &judge->error);
    if (judge->end == JUDGE_ENDED && !judge->compared)
        return message_error("%s: has none of the mapped frames", path);

    if (judge->end == JUDGE_ENDED)
        good &= differs(judge, "ends", missing, "before");
    else if (whole && has_more(judge))
        good &= differs(judge, "goes on after the", judge->taken, "of");
    return good;
}

bool judge_figures(const struct judge *judge, struct judge_figures *figures)
{
    if (!judge || !judge->compared)
        return false;

    judge_measure_figures(judge->measure, figures);
    return true;
}

void judge_print(const struct judge *judge)
{
    struct judge_figures figures;
    if (!judge_figures(judge, &figures))
        return;

    say("judged    %" PRIu64 " frame%s: dE ITP %.2f (mean), %.2f (median), %.2f (90 %%), %.2f "
        "(99 %%), %.2f at most\n",
        figures.frames, plural(figures.frames), figures.mean, figures.p50, figures.p90, figures.p99,
        figures.most);
    if (!isnan(figures.flicker))
        say("flicker   %.3f codes beyond the reference\n", figures.flicker);
    say("banding   %.2f edges in 1000 pixels, %.2f in the reference\n",
        figures.of[JUDGE_OUTPUT].band_edges, figures.of[JUDGE_REFERENCE].band_edges);
    say("clipped   %.2f %% white and %.2f %% black, %.2f %% and %.2f %% in the reference\n",
        100 * figures.of[JUDGE_OUTPUT].white, 100 * figures.of[JUDGE_OUTPUT].black,
        100 * figures.of[JUDGE_REFERENCE].white, 100 * figures.of[JUDGE_REFERENCE].black);
}

void judge_close(struct judge **judge)
{
    if (!*judge)
        return;

    video_input_close(&(*judge)->input);
    judge_measure_destroy(&(*judge)->measure);
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        free((*judge)->memory[p]);
    free(*judge);
    *judge = NULL;
}
