/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_bars.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Calls for each band of a video frame on a staged device, 3 frames in flight. */
static const double bar_commands = 12, bar_others = 20;
/* The library's frame rate over the hand-written stream's, 3 in flight: one staged device, all of
 * them. */
static const double bar_one = 0.95, bar_all = 0.90;
/* The library's gain from all staged devices over the best one, over the hand-written gain, 3 in
 * flight. */
static const double bar_growth = 0.95;
/* All devices over the best one alone, any number in flight: mean and p99 interval between
 * deliveries. */
static const double bar_mean = 1.02, bar_p99 = 1.2;
/* The stream's copy rate over the rate of an idle link, 3 in flight. */
static const double bar_copy = 0.80;

static struct stream_result *add_result(struct stream *stream, double value, double bar,
                                        bool at_most, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static struct stream_result *add_result(struct stream *stream, double value, double bar,
                                        bool at_most, const char *format, ...)
{
    static struct stream_result unused;

    if (stream->result_count == STREAM_RESULTS_MAX)
        return &unused;

    struct stream_result *result = &stream->results[stream->result_count++];
    va_list args;
    va_start(args, format);
    vsnprintf(result->name, sizeof result->name, format, args);
    va_end(args);
    result->value = result->low = result->high = value;
    result->bar = bar;
    result->at_most = at_most;
    result->met = (at_most && value <= bar) || (!at_most && value >= bar);

    return result;
}

/* Median, minimum and maximum of the rounds' ratios. */
struct ratio {
    double median, low, high;
};

static struct ratio ratio_of(double ratios[STREAM_ROUNDS])
{
    struct ratio ratio = {.median = quantile_of(ratios, STREAM_ROUNDS, 0.5)}; /* sorts */
    ratio.low = ratios[0];
    ratio.high = ratios[STREAM_ROUNDS - 1];
    return ratio;
}

static void add_ratio(struct stream *stream, const struct ratio *ratio, double bar, bool at_most,
                      const char *name)
{
    struct stream_result *result = add_result(stream, ratio->median, bar, at_most,
                                              "%s, %u in flight", name, stream->in_flight);
    result->low = ratio->low;
    result->high = ratio->high;
}

static const struct stream_entrant *find(const struct stream *stream, enum stream_kind kind)
{
    for (uint32_t e = 0; e < stream->entrant_count; e++)
        if (stream->entrants[e].kind == kind)
            return &stream->entrants[e];
    return NULL;
}

static bool is_staged(const struct stream *stream, const struct stream_entrant *entrant)
{
    return stream->devices[entrant->device].mode == COX_MODE_STAGED;
}

/* The shortest mean interval in a round of the entrants of a kind, on staged devices only or on
 * all. */
static double best_interval(const struct stream *stream, enum stream_kind kind, bool staged_only,
                            int round)
{
    double best = 0;

    for (uint32_t e = 0; e < stream->entrant_count; e++) {
        const struct stream_entrant *entrant = &stream->entrants[e];
        const double ns = entrant->rounds[round].interval_ns;
        if (entrant->kind == kind && (!staged_only || is_staged(stream, entrant)) &&
            (best == 0 || ns < best))
            best = ns;
    }

    return best;
}

/* --- the driver's calls, copies --- */

/* Whether a session of the library without profile has staged devices only. */
static bool only_staged(const struct stream *stream, const struct stream_entrant *entrant)
{
    switch (entrant->kind) {
    case STREAM_SINGLE:
        return is_staged(stream, entrant);
    case STREAM_STAGED:
        return true;
    case STREAM_TOGETHER:
        return stream->staged_count == stream->device_count;
    default:
        return false;
    }
}

/* The highest counts of all sessions with staged devices only. */
static void judge_calls(struct stream *stream)
{
    double commands = 0, others = 0;

    for (uint32_t e = 0; e < stream->entrant_count; e++) {
        const struct stream_entrant *entrant = &stream->entrants[e];
        const double bands = (double)entrant->bands;

        if (!entrant->bands || !only_staged(stream, entrant))
            continue;
        commands = fmax(commands,
                        (double)bench_calls_sum(&entrant->calls, BENCH_CALL_COMMAND) / bands);
        others = fmax(others, (double)bench_calls_sum(&entrant->calls, BENCH_CALL_OTHER) / bands);
    }

    add_result(stream, commands, bar_commands, true, "commands for each staged band, %u in flight",
               stream->in_flight);
    add_result(stream, others, bar_others, true, "other calls for each staged band, %u in flight",
               stream->in_flight);
}

static void judge_copies(struct stream *stream, const struct stream_entrant *entrant)
{
    uint64_t rows = 0, ns[2] = {0};

    for (int round = 0; round < STREAM_ROUNDS; round++) {
        rows += entrant->rounds[round].rows;
        ns[0] += entrant->rounds[round].copy_in_ns;
        ns[1] += entrant->rounds[round].copy_out_ns;
    }

    const struct bench_link *link = &stream->links[entrant->device];
    const double idle_gbs[2] = {link->write_gbs, link->read_gbs};
    static const char *const names[2] = {"in", "out"};
    for (int out = 0; out < 2; out++) {
        const double bytes = (double)rows * stream_frames_row_bytes(&stream->frames, !out);
        double gbs = 0;
        if (ns[out])
            gbs = bytes / (double)ns[out];
        add_result(stream, gbs / idle_gbs[out], bar_copy, false,
                   "copies %s, device %u: %.2f of %.2f GB/s pinned", names[out], entrant->device,
                   gbs, idle_gbs[out]);
    }
}

/* --- compared with the hand-written stream --- */

/* Judge the staged device on which the library is furthest behind. */
static void judge_one(struct stream *stream)
{
    struct ratio least = {0};
    uint32_t device = COX_DEVICES_MAX;

    for (uint32_t e = 0; e < stream->entrant_count; e++) {
        const struct stream_entrant *hand = &stream->entrants[e];
        for (uint32_t o = 0; hand->kind == STREAM_HAND_ONE && o < stream->entrant_count; o++) {
            const struct stream_entrant *library = &stream->entrants[o];
            double ratios[STREAM_ROUNDS];
            if (library->kind != STREAM_SINGLE || library->device != hand->device)
                continue;
            for (int round = 0; round < STREAM_ROUNDS; round++)
                ratios[round] = hand->rounds[round].interval_ns /
                                library->rounds[round].interval_ns;
            const struct ratio ratio = ratio_of(ratios);
            if (device == COX_DEVICES_MAX || ratio.median < least.median) {
                least = ratio;
                device = hand->device;
            }
        }
    }

    char name[128];
    snprintf(name, sizeof name, "library over hand-written, one staged device (%u)", device);
    add_ratio(stream, &least, bar_one, false, name);
}

static void judge_all(struct stream *stream)
{
    const struct stream_entrant *hand = find(stream, STREAM_HAND_ALL),
                                *library = find(stream, STREAM_STAGED);
    double ratios[STREAM_ROUNDS], growth[STREAM_ROUNDS];
    char name[128];

    for (int round = 0; round < STREAM_ROUNDS; round++) {
        ratios[round] = hand->rounds[round].interval_ns / library->rounds[round].interval_ns;
        growth[round] = ratios[round] * best_interval(stream, STREAM_SINGLE, true, round) /
                        best_interval(stream, STREAM_HAND_ONE, true, round);
    }

    const struct ratio over = ratio_of(ratios), grown = ratio_of(growth);
    snprintf(name, sizeof name, "library over hand-written, all %u staged devices",
             stream->staged_count);
    add_ratio(stream, &over, bar_all, false, name);
    add_ratio(stream, &grown, bar_growth, false,
              "their gain over the best one, library over hand-written");
}

/* --- compared with the best device alone --- */

static void judge_together(struct stream *stream, const struct stream_entrant *entrant)
{
    const struct stream_entrant *best = NULL;
    double ratios[STREAM_ROUNDS];
    char name[128];

    for (uint32_t e = 0; e < stream->entrant_count; e++)
        if (stream->entrants[e].kind == STREAM_SINGLE &&
            (!best || stream->entrants[e].fps > best->fps))
            best = &stream->entrants[e];

    for (int round = 0; best && round < STREAM_ROUNDS; round++)
        ratios[round] = entrant->rounds[round].interval_ns /
                        best_interval(stream, STREAM_SINGLE, false, round);

    if (!best)
        return;

    const struct ratio ratio = ratio_of(ratios);
    snprintf(name, sizeof name, "%s: mean interval over the best device's", entrant->name);
    add_ratio(stream, &ratio, bar_mean, true, name);
    add_result(stream, entrant->p99_ms / best->p99_ms, bar_p99, true,
               "%s: p99 interval over the best device's, %u in flight", entrant->name,
               stream->in_flight);
}

/* --- all of them --- */

static bool has_others(const struct stream *stream)
{
    return stream->device_count > 1 && stream->staged_count < stream->device_count;
}

void stream_judge(struct stream *stream)
{
    for (uint32_t e = 0; has_others(stream) && e < stream->entrant_count; e++)
        if (stream->entrants[e].kind == STREAM_TOGETHER)
            judge_together(stream, &stream->entrants[e]);

    if (stream->in_flight != STREAM_JUDGED || !stream->staged_count)
        return;
    stream->judged = true;
    if (!stream->options->pictures)
        judge_calls(stream);
    judge_one(stream);
    if (stream->staged_count > 1)
        judge_all(stream);
    for (uint32_t e = 0; e < stream->entrant_count; e++)
        if (stream->entrants[e].kind == STREAM_PROFILED)
            judge_copies(stream, &stream->entrants[e]);
}

bool stream_met(const struct stream *stream)
{
    bool met = stream->same_output;
    for (uint32_t r = 0; r < stream->result_count; r++)
        met &= stream->results[r].met;
    return met;
}

void stream_left_out(const struct stream *stream, char *text, size_t bytes)
{
    const struct {
        bool missing;
        const char *text;
    } reasons[] = {
        {!stream->staged_count, "no staged device: calls, copies and the hand-written stream"},
        {stream->staged_count == 1, "one staged device: all staged devices"},
        {!has_others(stream), "no other devices: all devices over the best one"},
        {stream->staged_count && !stream->judged,
         "not with 3 in flight: calls, copies, over hand-written"},
        {stream->staged_count && stream->options->pictures, "not video: calls"},
    };
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].missing && at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? "; " : "", reasons[i].text);
}
