/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_print.h"
#include "json_members.h"
#include "lines.h"
#include "stream_bars.h"

#include <stdio.h>

enum { LEFT_OUT_BYTES = 512 };

/* Per frame of a run, with its lead. */
static double per_frame(const struct stream *stream, uint64_t count)
{
    return (double)count / ((double)STREAM_ROUNDS * (STREAM_LEAD + stream->frame_count));
}

static double calls_per_frame(const struct stream *stream, const struct stream_entrant *entrant,
                              enum bench_call_kind kind)
{
    return per_frame(stream, bench_calls_sum(&entrant->calls, kind));
}

/* --- text --- */

static void text_head(struct stream *stream, const struct machine *machine)
{
    bench_print_machine(machine);
    const char *what = "4:2:0, 10 bits to 8";
    if (stream->options->pictures)
        what = "RGBA half to RGBA8";
    printf("stream: %u x %u, %s; %d rounds of %u frames of each after %d, in turns\n",
           stream->frames.width, stream->frames.height, what, STREAM_ROUNDS, stream->frame_count,
           STREAM_LEAD);
    for (uint32_t d = 0; d < stream->device_count; d++)
        printf("device %u: %s (%s, %s), %s memory\n", d, stream->devices[d].name,
               stream->devices[d].platform, cox_device_type_name(stream->devices[d].type),
               cox_memory_mode_name(stream->devices[d].mode));

    printf("frames/s: median of the rounds (least .. most); ms: interval between deliveries "
           "in all rounds;\n"
           "per frame: commands enqueued, other OpenCL calls, polls for the end of a command\n");
}

static void text_entrants(const struct stream *stream)
{
    char head[32];

    snprintf(head, sizeof head, "%u in flight", stream->in_flight);
    printf("\n%-36s %8s %20s %8s %8s %8s %7s %7s\n", head, "frames/s", "(least .. most)", "mean ms",
           "p99 ms", "commands", "others", "polls");

    for (uint32_t e = 0; e < stream->entrant_count; e++) {
        const struct stream_entrant *entrant = &stream->entrants[e];
        printf("  %-34s %8.1f (%8.1f ..%8.1f) %8.3f %8.3f %8.2f %7.2f %7.2f\n", entrant->name,
               entrant->fps, entrant->fps_low, entrant->fps_high, entrant->mean_ms, entrant->p99_ms,
               calls_per_frame(stream, entrant, BENCH_CALL_COMMAND),
               calls_per_frame(stream, entrant, BENCH_CALL_OTHER),
               calls_per_frame(stream, entrant, BENCH_CALL_POLL));
    }

    for (uint32_t e = 0; stream->options->calls && e < stream->entrant_count; e++)
        bench_calls_print(&stream->entrants[e].calls, stream->entrants[e].name,
                          (double)STREAM_ROUNDS * (STREAM_LEAD + stream->frame_count));

    fflush(stdout);
}

static void text_results(struct stream *stream, const char *left_out)
{
    printf("\n");

    for (uint32_t r = 0; r < stream->result_count; r++) {
        const struct stream_result *result = &stream->results[r];
        printf("%s: %.3f", result->name, result->value);
        if (result->low < result->high)
            printf(" (%.3f .. %.3f)", result->low, result->high);
        printf(", at %s %.2f: %s\n", result->at_most ? "most" : "least", result->bar,
               bench_verdict(result->met));
    }

    if (left_out[0])
        printf("not measured: %s\n", left_out);
    bench_print_quiet(&stream->quiet, "rounds");
    printf("output bits: %s\n", stream->same_output ? "equal" : "DIFFERENT");
    printf("bars: %s\n", bench_verdict(stream_met(stream)));
}

/* --- JSON --- */

static void json_head(struct stream *stream, const struct machine *machine)
{
    struct json *json = &stream->json;

    json_report_begin(json, "stream", machine);
    json_member_string(json, "kernel", stream->options->pictures ? "pictures" : "video");
    json_member_unsigned(json, "width", stream->frames.width);
    json_member_unsigned(json, "height", stream->frames.height);
    json_member_unsigned(json, "rounds", STREAM_ROUNDS);
    json_member_unsigned(json, "frames_per_round", stream->frame_count);
    json_member_array(json, "devices", false);

    for (uint32_t d = 0; d < stream->device_count; d++) {
        json_open_object(json, true);
        json_member_string(json, "name", stream->devices[d].name);
        json_member_string(json, "platform", stream->devices[d].platform);
        json_member_string(json, "driver", stream->devices[d].driver);
        json_member_string(json, "mode", cox_memory_mode_name(stream->devices[d].mode));
        json_close_object(json);
    }

    json_close_array(json);
    json_member_array(json, "entrants", false);
}

static void json_calls(struct json *json, const struct stream *stream,
                       const struct stream_entrant *entrant)
{
    json_member_number(json, "commands_per_frame",
                       calls_per_frame(stream, entrant, BENCH_CALL_COMMAND));
    json_member_number(json, "others_per_frame",
                       calls_per_frame(stream, entrant, BENCH_CALL_OTHER));
    json_member_number(json, "polls_per_frame", calls_per_frame(stream, entrant, BENCH_CALL_POLL));

    /* The hand-written stream reports no bands. */
    member_known(json, "bands_per_frame", entrant->session, per_frame(stream, entrant->bands));
    json_member_object(json, "calls_per_frame", true);

    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        if (!entrant->calls.of[call])
            continue;
        json_member_number(json, bench_call_name((enum bench_call)call),
                           per_frame(stream, entrant->calls.of[call]));
    }

    json_close_object(json);
}

static void json_entrant(struct json *json, const struct stream *stream,
                         const struct stream_entrant *entrant)
{
    json_open_object(json, false);
    json_member_unsigned(json, "in_flight", stream->in_flight);
    json_member_string(json, "name", entrant->name);
    json_member_number(json, "fps", entrant->fps);
    member_range(json, "fps_range", entrant->fps_low, entrant->fps_high);
    json_member_number(json, "interval_mean_ms", entrant->mean_ms);
    json_member_number(json, "interval_p99_ms", entrant->p99_ms);
    json_calls(json, stream, entrant);
    json_close_object(json);
}

static void json_result(struct json *json, const struct stream_result *result)
{
    json_open_object(json, true);
    json_member_string(json, "name", result->name);
    json_member_number(json, "value", result->value);
    json_member_number(json, "low", result->low);
    json_member_number(json, "high", result->high);
    json_member_number(json, result->at_most ? "at_most" : "at_least", result->bar);
    json_member_bool(json, "met", result->met);
    json_close_object(json);
}

static void json_results(struct stream *stream, const char *left_out)
{
    struct json *json = &stream->json;

    json_close_array(json);
    json_member_array(json, "results", false);
    for (uint32_t r = 0; r < stream->result_count; r++)
        json_result(json, &stream->results[r]);
    json_close_array(json);
    json_member_string(json, "left_out", left_out);
    member_quiet(json, "rounds_again", &stream->quiet);
    json_member_bool(json, "same_output", stream->same_output);
    json_member_bool(json, "met", stream_met(stream));
    json_report_end(json);
}

/* --- either --- */

void stream_print_head(struct stream *stream)
{
    struct machine machine;

    machine_read(&machine);
    if (stream->options->json)
        json_head(stream, &machine);
    else
        text_head(stream, &machine);
}

void stream_print_entrants(struct stream *stream)
{
    if (!stream->options->json)
        text_entrants(stream);
    for (uint32_t e = 0; stream->options->json && e < stream->entrant_count; e++)
        json_entrant(&stream->json, stream, &stream->entrants[e]);
}

void stream_print_tail(struct stream *stream)
{
    char left_out[LEFT_OUT_BYTES];

    stream_left_out(stream, left_out, sizeof left_out);
    if (stream->options->json)
        json_results(stream, left_out);
    else
        text_results(stream, left_out);
}
