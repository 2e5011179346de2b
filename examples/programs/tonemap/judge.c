/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"
#include "judge_reference.h"
#include "messages.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Why no further frames are compared. */
enum judge_end { JUDGE_GOES_ON = 0, JUDGE_ENDED, JUDGE_FAILED, JUDGE_CANCELLED };

struct judge {
    const struct options *options;
    struct judge_reference *reference;
    struct judge_measure *measure;
    struct judge_coding coding; /* of the reference's last frame */
    uint64_t taken;             /* mapped frames, compared or not */
    uint64_t compared;
    enum judge_end end;
    struct error error; /* of JUDGE_FAILED */
};

bool judge_open(struct judge **out, const struct options *options)
{
    *out = NULL;
    if (!options->judge)
        return true;

    struct judge *judge = *out = calloc(1, sizeof *judge);
    if (!judge)
        return message_error("out of memory");
    judge->options = options;
    return judge_reference_open(&judge->reference, options);
}

bool judge_begin(struct judge *judge, const struct video_format *target, enum cox_encoding encoding,
                 double peak_nits)
{
    if (!judge)
        return true;

    const bool wide = target->colours.has_primaries;
    const struct judge_coding coding = {.pixel = target->pixel,
                                        .primaries = wide ? COX_PRIMARIES_BT2020
                                                          : COX_PRIMARIES_BT709,
                                        .curve = encoding,
                                        .peak_nits = peak_nits};
    if (!judge_reference_begin(judge->reference, target, &coding, &judge->coding))
        return false;

    judge->measure = judge_measure_create(target->width, target->height);
    if (!judge->measure)
        return message_error("out of memory");
    judge_measure_set(judge->measure, JUDGE_OUTPUT, &coding);
    judge_measure_set(judge->measure, JUDGE_REFERENCE, &judge->coding);
    return true;
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

    struct judge_frame frames[JUDGE_SIDES];
    bool recoded = false;
    judge->taken++;
    if (!judge->end)
        judge->end = end_of(judge_reference_read(judge->reference, number, &frames[JUDGE_REFERENCE],
                                                 &judge->coding, &recoded, &judge->error));
    if (judge->end)
        return;

    if (recoded)
        judge_measure_set(judge->measure, JUDGE_REFERENCE, &judge->coding);
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
        judge_reference_cancel(judge->reference);
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

    return judge_reference_goes_on(judge->reference);
}

bool judge_finish(struct judge *judge, bool whole)
{
    if (!judge || !judge->taken)
        return true;

    const char *path = judge->options->judge;
    const uint64_t missing = judge->taken - judge->compared;
    bool good = judge_reference_sound(judge->reference);
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

    judge_reference_close(&(*judge)->reference);
    judge_measure_destroy(&(*judge)->measure);
    free(*judge);
    *judge = NULL;
}
