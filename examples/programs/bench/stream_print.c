/* The output of cox-bench stream, as text or JSON, as it becomes known.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <stdio.h>

enum { LEFT_OUT_BYTES = 512 };

/* Calls for each frame of a run, the lead among them. */
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
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus,
           machine->system, machine->load);
    printf("stream: %u x %u, %s; %d rounds of %u frames of each after %d, in turn\n",
           stream->frames.width, stream->frames.height,
           stream->options->pictures ? "RGBA half to RGBA8, hable"
                                     : "PQ, 4:2:0, 10 bits to 8, bt2390",
           STREAM_ROUNDS, stream->frame_count, STREAM_LEAD);
    for (uint32_t d = 0; d < stream->device_count; d++)
        printf("device %u: %s (%s, %s), %s memory\n", d, stream->devices[d].name,
               stream->devices[d].platform, cox_device_type_name(stream->devices[d].type),
               cox_memory_mode_name(stream->devices[d].mode));
    printf(
        "frames/s: median of the rounds (least .. most); ms: interval between two deliveries, all rounds together;\n"
        "for each frame: commands enqueued, other calls of the OpenCL driver, polls whether a command has ended\n");
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
               result->met ? "met" : "MISSED");
    }
    if (left_out[0])
        printf("left out: %s\n", left_out);
    if (quiet_others(&stream->quiet) >= 0)
        printf(
            "other programs used %.2f processors meanwhile; %u disturbed rounds were done again\n",
            quiet_others(&stream->quiet), stream->quiet.again);
    if (quiet_busy(&stream->quiet))
        printf("The machine was BUSY: the figures say little.\n");
    printf("output bits: %s\n", stream->same_output ? "equal" : "DIFFERENT");
    printf("bars: %s\n", stream_met(stream) ? "met" : "MISSED");
}

/* --- JSON --- */

static void json_head(struct stream *stream, const struct machine *machine)
{
    struct json *json = &stream->json;
    json_begin(json, stdout);
    json_open_object(json, false);
    json_key(json, "benchmark");
    json_string(json, "stream");
    machine_json(machine, json);
    json_key(json, "kernel");
    json_string(json, stream->options->pictures ? "pictures" : "video");
    json_key(json, "width");
    json_unsigned(json, stream->frames.width);
    json_key(json, "height");
    json_unsigned(json, stream->frames.height);
    json_key(json, "rounds");
    json_unsigned(json, STREAM_ROUNDS);
    json_key(json, "frames_per_round");
    json_unsigned(json, stream->frame_count);
    json_key(json, "devices");
    json_open_array(json, false);
    for (uint32_t d = 0; d < stream->device_count; d++) {
        json_open_object(json, true);
        json_key(json, "name");
        json_string(json, stream->devices[d].name);
        json_key(json, "platform");
        json_string(json, stream->devices[d].platform);
        json_key(json, "driver");
        json_string(json, stream->devices[d].driver);
        json_key(json, "mode");
        json_string(json, cox_memory_mode_name(stream->devices[d].mode));
        json_close_object(json);
    }
    json_close_array(json);
    json_key(json, "entrants");
    json_open_array(json, false);
}

static void json_calls(struct json *json, const struct stream *stream,
                       const struct stream_entrant *entrant)
{
    json_key(json, "commands_per_frame");
    json_number(json, calls_per_frame(stream, entrant, BENCH_CALL_COMMAND));
    json_key(json, "others_per_frame");
    json_number(json, calls_per_frame(stream, entrant, BENCH_CALL_OTHER));
    json_key(json, "polls_per_frame");
    json_number(json, calls_per_frame(stream, entrant, BENCH_CALL_POLL));
    json_key(json, "bands_per_frame"); /* null: the hand-written stream reports none */
    if (entrant->session)
        json_number(json, per_frame(stream, entrant->bands));
    else
        json_null(json);
    json_key(json, "calls_per_frame");
    json_open_object(json, true);
    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        if (!entrant->calls.of[call])
            continue;
        json_key(json, bench_call_name((enum bench_call)call));
        json_number(json, per_frame(stream, entrant->calls.of[call]));
    }
    json_close_object(json);
}

static void json_entrant(struct json *json, const struct stream *stream,
                         const struct stream_entrant *entrant)
{
    json_open_object(json, false);
    json_key(json, "in_flight");
    json_unsigned(json, stream->in_flight);
    json_key(json, "name");
    json_string(json, entrant->name);
    json_key(json, "fps");
    json_number(json, entrant->fps);
    json_key(json, "fps_range");
    json_open_array(json, true);
    json_number(json, entrant->fps_low);
    json_number(json, entrant->fps_high);
    json_close_array(json);
    json_key(json, "interval_mean_ms");
    json_number(json, entrant->mean_ms);
    json_key(json, "interval_p99_ms");
    json_number(json, entrant->p99_ms);
    json_calls(json, stream, entrant);
    json_close_object(json);
}

static void json_result(struct json *json, const struct stream_result *result)
{
    json_open_object(json, true);
    json_key(json, "name");
    json_string(json, result->name);
    json_key(json, "value");
    json_number(json, result->value);
    json_key(json, "low");
    json_number(json, result->low);
    json_key(json, "high");
    json_number(json, result->high);
    json_key(json, result->at_most ? "at_most" : "at_least");
    json_number(json, result->bar);
    json_key(json, "met");
    json_bool(json, result->met);
    json_close_object(json);
}

static void json_results(struct stream *stream, const char *left_out)
{
    struct json *json = &stream->json;
    json_close_array(json);
    json_key(json, "results");
    json_open_array(json, false);
    for (uint32_t r = 0; r < stream->result_count; r++)
        json_result(json, &stream->results[r]);
    json_close_array(json);
    json_key(json, "left_out");
    json_string(json, left_out);
    json_key(json, "others_cpus");
    json_number(json, quiet_others(&stream->quiet));
    json_key(json, "rounds_again");
    json_unsigned(json, stream->quiet.again);
    json_key(json, "same_output");
    json_bool(json, stream->same_output);
    json_key(json, "met");
    json_bool(json, stream_met(stream));
    json_close_object(json);
    json_end(json);
}

/* --- either --- */

void stream_print_head(struct stream *stream)
{
    struct machine machine;
    machine_read(&machine);
    (stream->options->json ? json_head : text_head)(stream, &machine);
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
    (stream->options->json ? json_results : text_results)(stream, left_out);
}
