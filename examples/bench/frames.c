/* cox-bench frames: pictures through the tone-mapping pipeline as a stream, each device alone and all together in turn.
 * Says whether the devices together are ever slower than the best of them, whether they all give the same bits, and,
 * for devices with memory of their own, how the copies of the stream compare with plain copies of pinned memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"
#include "common/json.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, LEAD_FRAMES = 8, FRAMES_DEFAULT = 60, IN_FLIGHT = 3, LINK_TIMES = 20 };

static const double bar_together = 0.97, bar_copy = 0.80;

/* One session and what its rounds gave. */
struct entrant {
    cox_session *session;
    double fps[ROUNDS];
    double relative[ROUNDS]; /* to the fastest single device of the same round */
    uint64_t hash;
    uint64_t rows, copy_in_ns, copy_out_ns; /* of its timed frames */
    double fps_median;
};

struct stand {
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct cox_tonemap_shape shape;
    struct cox_tonemap_params params;
    cox_buffer *in[IN_FLIGHT], *out[IN_FLIGHT];
    struct entrant entrants[COX_DEVICES_MAX + 1]; /* the last one: all devices */
    struct bench_cl_link link[COX_DEVICES_MAX];
    /* the run under way */
    struct entrant *current;
    uint32_t done;
    uint64_t lead_ns, end_ns;
    atomic_int status;
};

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct stand *stand = user;
    struct entrant *entrant = stand->current;
    if (report->warmup || report->shadow)
        return;
    for (uint32_t b = 0; b < report->band_count; b++) {
        entrant->rows += report->bands[b].rows;
        entrant->copy_in_ns += report->bands[b].copy_in_ns;
        entrant->copy_out_ns += report->bands[b].copy_out_ns;
    }
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stand *stand = user;
    (void)frame;
    if (status)
        atomic_store(&stand->status, status);
    stand->end_ns = now_ns();
    if (++stand->done == LEAD_FRAMES)
        stand->lead_ns = stand->end_ns;
}

/* Scene-linear half floats from deep black to far above white, the same on every machine. */
static void fill_picture(const struct stand *stand, uint16_t *data, uint32_t seed)
{
    for (uint32_t y = 0; y < stand->shape.height; y++) {
        uint16_t *row = data + y * (stand->shape.in_pitch_bytes / sizeof *row);
        for (uint32_t x = 0; x < 4 * stand->shape.width; x++) {
            seed = seed * 1664525u + 1013904223u;
            row[x] = x % 4 == 3 ? 0x3c00 : (uint16_t)(0x1000 + (seed >> 18)); /* 2^-11 .. 2^5 */
        }
    }
}

static uint64_t hash_output(const struct stand *stand)
{
    uint64_t hash = 14695981039346656037u;
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        for (uint32_t y = 0; y < stand->shape.height; y++) {
            const uint32_t *row = (const void *)((const char *)cox_buffer_data(stand->out[i]) +
                                                 y * stand->shape.out_pitch_bytes);
            for (uint32_t x = 0; x < stand->shape.width; x++)
                hash = (hash ^ row[x]) * 1099511628211u;
        }
    return hash;
}

static bool run_entrant(struct stand *stand, struct entrant *entrant, uint32_t frames, uint32_t round)
{
    stand->current = entrant;
    stand->done = 0;
    atomic_store(&stand->status, COX_OK);
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        memset(cox_buffer_data(stand->out[i]), 0, stand->shape.height * stand->shape.out_pitch_bytes);
    for (uint32_t f = 0; f < LEAD_FRAMES + frames; f++) {
        cox_buffer *buffers[] = {stand->in[f % IN_FLIGHT], stand->out[f % IN_FLIGHT]};
        const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &stand->params};
        cox_status status = cox_session_submit(entrant->session, &frame, on_done, stand);
        if (status)
            return bench_fail("submit: %s", cox_status_text(status));
    }
    cox_session_wait(entrant->session);
    if (atomic_load(&stand->status))
        return bench_fail("a frame failed: %s", cox_status_text((cox_status)atomic_load(&stand->status)));
    entrant->fps[round] = frames * 1e9 / (double)(stand->end_ns - stand->lead_ns);
    entrant->hash = hash_output(stand);
    return true;
}

static bool make_session(struct stand *stand, const struct bench_options *options, struct entrant *entrant,
                         const uint32_t *device)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.in_flight = IN_FLIGHT,
                                        .policy = device ? "single" : options->policy,
                                        .device_count = device ? 1 : 0,
                                        .devices = device,
                                        .report = on_report,
                                        .report_user = stand};
    cox_status status = cox_tonemap_mapping(&stand->shape, &storage, &params);
    if (status == COX_OK)
        status = cox_session_create(stand->runtime, &params, &entrant->session);
    return status == COX_OK || bench_fail("session: %s", cox_status_text(status));
}

static bool make_stand(struct stand *stand, const struct bench_options *options)
{
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    stand->shape = (struct cox_tonemap_shape){.width = 3840, .height = 2160};
    stand->shape.in_pitch_bytes = cox_runtime_pitch_bytes(stand->runtime, (size_t)stand->shape.width * 8);
    stand->shape.out_pitch_bytes = cox_runtime_pitch_bytes(stand->runtime, (size_t)stand->shape.width * 4);
    cox_status status = cox_tonemap_prepare(&stand->shape, &settings, &stand->params);
    for (uint32_t i = 0; status == COX_OK && i < IN_FLIGHT; i++) {
        status = cox_buffer_create(stand->runtime, stand->shape.height * stand->shape.in_pitch_bytes, &stand->in[i]);
        if (status == COX_OK)
            status = cox_buffer_create(stand->runtime, stand->shape.height * stand->shape.out_pitch_bytes,
                                       &stand->out[i]);
        if (status == COX_OK)
            fill_picture(stand, cox_buffer_data(stand->in[i]), i);
    }
    if (status)
        return bench_fail("buffers: %s", cox_status_text(status));
    for (uint32_t d = 0; d < stand->device_count; d++) {
        cox_runtime_device_info(stand->runtime, d, &stand->devices[d], sizeof stand->devices[d]);
        if (!make_session(stand, options, &stand->entrants[d], &d))
            return false;
        if (stand->devices[d].mode == COX_MODE_STAGED &&
            !bench_cl_link(&stand->devices[d], stand->shape.height * stand->shape.in_pitch_bytes, LINK_TIMES,
                           &stand->link[d]))
            return false;
    }
    return make_session(stand, options, &stand->entrants[stand->device_count], NULL);
}

static void clear_stand(struct stand *stand)
{
    for (uint32_t e = 0; e <= stand->device_count; e++)
        cox_session_destroy(&stand->entrants[e].session);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        cox_buffer_destroy(&stand->in[i]);
        cox_buffer_destroy(&stand->out[i]);
    }
    cox_runtime_destroy(&stand->runtime);
}

static bool measure(struct stand *stand, uint32_t frames)
{
    uint32_t count = stand->device_count + 1;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double best = 0;
        for (uint32_t e = 0; e < count; e++)
            if (!run_entrant(stand, &stand->entrants[e], frames, round))
                return false;
        for (uint32_t e = 0; e < stand->device_count; e++)
            if (stand->entrants[e].fps[round] > best)
                best = stand->entrants[e].fps[round];
        for (uint32_t e = 0; e < count; e++)
            stand->entrants[e].relative[round] = stand->entrants[e].fps[round] / best;
    }
    double scratch[ROUNDS];
    for (uint32_t e = 0; e < count; e++)
        stand->entrants[e].fps_median = figures_median_of(stand->entrants[e].fps, ROUNDS, scratch);
    return true;
}

/* Gigabytes a second of the stream's copies, by the device's own profile. */
static double copy_rate(const struct entrant *entrant, size_t pitch_bytes, uint64_t ns)
{
    return ns ? (double)entrant->rows * (double)pitch_bytes / (double)ns : 0;
}

static bool copies_meet(const struct stand *stand, uint32_t d)
{
    const struct entrant *entrant = &stand->entrants[d];
    return stand->devices[d].mode != COX_MODE_STAGED ||
           (copy_rate(entrant, stand->shape.in_pitch_bytes, entrant->copy_in_ns) >=
                bar_copy * stand->link[d].write_gbs &&
            copy_rate(entrant, stand->shape.out_pitch_bytes, entrant->copy_out_ns) >=
                bar_copy * stand->link[d].read_gbs);
}

static void print_text(const struct stand *stand, const struct machine *machine, uint32_t frames, bool same,
                       double together, bool met)
{
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus, machine->system,
           machine->load);
    printf("stream: %u x %u RGBA half to RGBA8, hable, %d frames in flight; %d rounds of %u frames, in turn; medians\n",
           stand->shape.width, stand->shape.height, IN_FLIGHT, ROUNDS, frames);
    for (uint32_t e = 0; e <= stand->device_count; e++) {
        const struct entrant *entrant = &stand->entrants[e];
        double scratch[ROUNDS], low, high;
        memcpy(scratch, entrant->fps, sizeof scratch);
        low = figures_quantile(scratch, ROUNDS, 0);
        high = scratch[ROUNDS - 1];
        printf("%-48.48s %8.1f frames/s (%.1f .. %.1f)\n",
               e < stand->device_count ? stand->devices[e].name : "all together", entrant->fps_median, low, high);
        if (e == stand->device_count || stand->devices[e].mode != COX_MODE_STAGED)
            continue;
        printf("  copies in  %6.2f GB/s of %6.2f GB/s pinned; out %6.2f of %6.2f: at least %.0f %%: %s\n",
               copy_rate(entrant, stand->shape.in_pitch_bytes, entrant->copy_in_ns), stand->link[e].write_gbs,
               copy_rate(entrant, stand->shape.out_pitch_bytes, entrant->copy_out_ns), stand->link[e].read_gbs,
               100 * bar_copy, copies_meet(stand, e) ? "met" : "MISSED");
    }
    printf("all together over the best device alone, median of the rounds: %.3f, at least %.2f\n", together,
           bar_together);
    printf("output bits: %s\n", same ? "equal" : "DIFFERENT");
    printf("bars: %s\n", met ? "met" : "MISSED");
}

static void print_json(const struct stand *stand, const struct machine *machine, uint32_t frames, bool same,
                       double together, bool met)
{
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_key(&json, "benchmark");
    json_string(&json, "frames");
    json_key(&json, "cpu");
    json_string(&json, machine->cpu);
    json_key(&json, "frames_per_round");
    json_unsigned(&json, frames);
    json_key(&json, "entrants");
    json_open_array(&json, false);
    for (uint32_t e = 0; e <= stand->device_count; e++) {
        const struct entrant *entrant = &stand->entrants[e];
        json_open_object(&json, true);
        json_key(&json, "name");
        json_string(&json, e < stand->device_count ? stand->devices[e].name : "all together");
        json_key(&json, "fps");
        json_number(&json, entrant->fps_median);
        if (e < stand->device_count && stand->devices[e].mode == COX_MODE_STAGED) {
            json_key(&json, "copy_in_gbs");
            json_number(&json, copy_rate(entrant, stand->shape.in_pitch_bytes, entrant->copy_in_ns));
            json_key(&json, "link_in_gbs");
            json_number(&json, stand->link[e].write_gbs);
            json_key(&json, "copy_out_gbs");
            json_number(&json, copy_rate(entrant, stand->shape.out_pitch_bytes, entrant->copy_out_ns));
            json_key(&json, "link_out_gbs");
            json_number(&json, stand->link[e].read_gbs);
        }
        json_close_object(&json);
    }
    json_close_array(&json);
    json_key(&json, "together_over_best");
    json_number(&json, together);
    json_key(&json, "same_output");
    json_bool(&json, same);
    json_key(&json, "met");
    json_bool(&json, met);
    json_close_object(&json);
    json_end(&json);
}

bool bench_frames(const struct bench_options *options, bool *met)
{
    struct machine machine;
    machine_read(&machine);
    struct stand *stand = calloc(1, sizeof *stand);
    if (!stand)
        return bench_fail("out of memory");
    uint32_t frames = options->frames ? options->frames : FRAMES_DEFAULT;
    cox_status status = cox_runtime_create(&stand->runtime,
                                           COX_RUNTIME_PARAMS(.devices = options->devices, .log = bench_log));
    if (status) {
        free(stand);
        return bench_fail("%s", cox_status_text(status));
    }
    stand->device_count = cox_runtime_device_count(stand->runtime);
    bool good = make_stand(stand, options) && measure(stand, frames);
    if (good) {
        double scratch[ROUNDS];
        double together = figures_median_of(stand->entrants[stand->device_count].relative, ROUNDS, scratch);
        bool same = true;
        *met = together >= bar_together;
        for (uint32_t e = 0; e < stand->device_count; e++) {
            same &= stand->entrants[e].hash == stand->entrants[stand->device_count].hash;
            *met &= copies_meet(stand, e);
        }
        *met &= same;
        (options->json ? print_json : print_text)(stand, &machine, frames, same, together, *met);
    }
    clear_stand(stand);
    free(stand);
    return good;
}
