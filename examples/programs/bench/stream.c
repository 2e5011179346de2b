/* cox-bench stream: a stream of 4K frames through each device and through all of them, with the
 * library and, on devices with their own memory, in hand-written OpenCL.
 *
 * For each number of frames in flight, every entrant has one run per round, in turn. So a
 * disturbance affects all of them, and ratios are taken within a round. A run is STREAM_LEAD frames
 * followed by the timed ones. Driver calls are counted over the whole run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream_state.h"
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "common/policies/registry.h"
#include "device_list.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"
#include "stream_bars.h"
#include "stream_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_DEFAULT = 120, LINK_TIMES = 20 };

static const uint32_t in_flight_default[] = {1, 2, 3, 6};

/* --- entrants --- */

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct stream *stream = user;
    if (!stream->round)
        return;
    stream->round->bands += report->band_count;
    if (report->warmup || report->shadow)
        return;

    for (uint32_t b = 0; b < report->band_count; b++) {
        stream->round->rows += report->bands[b].rows;
        stream->round->copy_in_ns += report->bands[b].copy_in_ns;
        stream->round->copy_out_ns += report->bands[b].copy_out_ns;
    }
}

static struct stream_entrant *add_entrant(struct stream *stream, enum stream_kind kind,
                                          uint32_t device)
{
    struct stream_entrant *entrant = &stream->entrants[stream->entrant_count];

    *entrant = (struct stream_entrant){.kind = kind, .device = device};
    entrant->interval_ns = stream->intervals +
                           (size_t)stream->entrant_count * STREAM_ROUNDS * stream->frame_count;
    stream->entrant_count++;

    return entrant;
}

static void add_hand(struct stream *stream, enum stream_kind kind, uint32_t device)
{
    struct stream_entrant *entrant = add_entrant(stream, kind, device);

    if (kind == STREAM_HAND_ONE)
        snprintf(entrant->name, sizeof entrant->name, "hand-written, device %u", device);
    else
        snprintf(entrant->name, sizeof entrant->name, "hand-written, %u staged devices",
                 stream->staged_count);
}

/* Add a session on the `count` devices of the list. Policy NULL: the library's default. */
static bool add_library(struct stream *stream, enum stream_kind kind,
                        const struct cox_policy *policy, const uint32_t *devices, uint32_t count)
{
    struct stream_entrant *entrant = add_entrant(stream, kind, devices[0]);
    const struct bench_device_list list = bench_device_list(devices, count);
    struct cox_session_params params = stream->kernel.session;
    struct cox_session_info info;

    params.in_flight = stream->in_flight;
    params.custom_policy = policy;
    params.devices = list.text;
    params.report = on_report;
    params.report_user = stream;
    params.profile = kind == STREAM_PROFILED;
    cox_status status = bench_session_create(stream->runtime, &params, &entrant->session);
    if (!bench_good(status, "session"))
        return false;
    cox_session_info(entrant->session, &info);
    switch (kind) {
    case STREAM_SINGLE:
        snprintf(entrant->name, sizeof entrant->name, "library, %s, device %u", info.policy,
                 devices[0]);
        break;
    case STREAM_PROFILED:
        snprintf(entrant->name, sizeof entrant->name, "library, %s, device %u, timed", info.policy,
                 devices[0]);
        break;
    case STREAM_STAGED: /* there are at least two */
        snprintf(entrant->name, sizeof entrant->name, "library, %s, %u staged devices", info.policy,
                 count);
        break;
    default:
        snprintf(entrant->name, sizeof entrant->name, "library, %s, %u device%s", info.policy,
                 count, count == 1 ? "" : "s");
    }

    return true;
}

static bool is_staged(const struct stream *stream, uint32_t device)
{
    return stream->devices[device].mode == COX_MODE_STAGED;
}

static bool add_entrants(struct stream *stream)
{
    uint32_t all[COX_DEVICES_MAX] = {0}, staged[COX_DEVICES_MAX] = {0}, count = 0;
    const struct cox_policy *const *asked = stream->options->policies;
    const struct cox_policy *const defaults[] = {NULL, &policy_ewma};
    const struct cox_policy *single = cox_policy_find("single");
    bool good = true;

    for (uint32_t d = 0; d < stream->device_count; d++) {
        all[d] = d;
        if (!is_staged(stream, d))
            continue;
        staged[count++] = d;
        add_hand(stream, STREAM_HAND_ONE, d);
    }

    if (count > 1)
        add_hand(stream, STREAM_HAND_ALL, staged[0]);
    for (uint32_t d = 0; good && d < stream->device_count; d++)
        good = add_library(stream, STREAM_SINGLE, single, &all[d], 1);
    for (uint32_t d = 0; good && d < count && stream->in_flight == STREAM_JUDGED; d++)
        good = add_library(stream, STREAM_PROFILED, single, &staged[d], 1);

    if (count > 1)
        good = good && add_library(stream, STREAM_STAGED, NULL, staged, count);
    for (int p = 0; good && !asked[0] && p < 2; p++)
        if (p || count < 2 || count < stream->device_count) /* else STREAM_STAGED is the same */
            good = add_library(stream, STREAM_TOGETHER, defaults[p], all, stream->device_count);

    for (int p = 0; good && p < BENCH_POLICIES_MAX && asked[p]; p++)
        good = add_library(stream, STREAM_TOGETHER, asked[p], all, stream->device_count);

    return good;
}

static void remove_entrants(struct stream *stream)
{
    for (uint32_t e = 0; e < stream->entrant_count; e++)
        bench_session_destroy(&stream->entrants[e].session);
    stream->entrant_count = 0;
}

/* --- rounds --- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stream *stream = user;
    (void)frame;
    stream->done_ns[stream->done++] = now_ns();
    if (status)
        atomic_store(&stream->status, status);
}

static bool run_library(struct stream *stream, struct stream_entrant *entrant, uint32_t count)
{
    stream->done = 0;
    atomic_store(&stream->status, COX_OK);

    for (uint32_t f = 0; f < count; f++) {
        const struct cox_frame frame = {.buffers = stream->frames.buffers[f % stream->in_flight]};
        cox_status status = cox_session_submit(entrant->session, &frame, on_done, stream);
        if (status) {
            cox_session_wait(entrant->session);
            return bench_good(status, "submit");
        }
    }

    cox_session_wait(entrant->session);
    const cox_status status = (cox_status)atomic_load(&stream->status);

    return bench_good(status, "a frame failed");
}

/* The streams of a hand-written entrant. */
static struct stream_hand *const *hands_of(const struct stream *stream,
                                           const struct stream_entrant *entrant, uint32_t *count)
{
    uint32_t before = 0;

    *count = 1;
    if (entrant->kind == STREAM_HAND_ALL)
        *count = stream->staged_count;

    for (uint32_t d = 0; d < entrant->device; d++)
        before += is_staged(stream, d);

    return &stream->hands[before];
}

static bool run_one(struct stream *stream, struct stream_entrant *entrant, uint32_t round)
{
    const uint32_t count = STREAM_LEAD + stream->frame_count;
    struct stream_round *gave = &entrant->rounds[round];
    struct stream_hand *const *hands = NULL;
    uint32_t hand_count = 0;
    bool good = true;

    *gave = (struct stream_round){0};
    stream->round = gave;
    if (!entrant->session) {
        hands = hands_of(stream, entrant, &hand_count);
        good = stream_hand_split(hands, hand_count, stream->in_flight);
    }

    stream_frames_clear(&stream->frames, stream->in_flight);
    bench_calls_start(stream->options->calls);
    if (good && hands)
        good = stream_hand_run(hands, hand_count, count, stream->done_ns);
    else if (good)
        good = run_library(stream, entrant, count);

    gave->calls = bench_calls_stop();
    stream->round = NULL;
    if (!good)
        return false;
    if (hands)
        stream_hand_collect(hands, hand_count, &stream->frames);
    const uint64_t hash = stream_frames_hash(&stream->frames, stream->in_flight);
    stream->same_output &= !stream->hash || hash == stream->hash;
    stream->hash = hash;
    const uint64_t *lead = &stream->done_ns[STREAM_LEAD - 1];
    for (uint32_t f = 0; f < stream->frame_count; f++)
        entrant->interval_ns[(size_t)round * stream->frame_count + f] = (double)(lead[f + 1] -
                                                                                 lead[f]);

    gave->interval_ns = (double)(lead[stream->frame_count] - lead[0]) / stream->frame_count;

    return true;
}

/* The first run of each entrant is not counted: the library's sessions warm up and learn. */
static bool run_rounds(struct stream *stream)
{
    const uint32_t count = stream->entrant_count;

    for (uint32_t e = 0; e < count; e++)
        if (!run_one(stream, &stream->entrants[e], 0))
            return false;

    for (uint32_t round = 0; round < STREAM_ROUNDS;) {
        quiet_begin(&stream->quiet);
        for (uint32_t e = 0; e < count; e++)
            if (!run_one(stream, &stream->entrants[(e + round) % count], round))
                return false;
        round += quiet_keep(&stream->quiet);
    }

    return true;
}

static void find_figures(struct stream *stream, struct stream_entrant *entrant)
{
    const size_t intervals = (size_t)STREAM_ROUNDS * stream->frame_count;
    double fps[STREAM_ROUNDS];

    entrant->calls = (struct bench_calls){0};
    entrant->bands = 0;

    for (int round = 0; round < STREAM_ROUNDS; round++) {
        const struct stream_round *gave = &entrant->rounds[round];
        fps[round] = 1e9 / gave->interval_ns;
        entrant->mean_ms += gave->interval_ns / STREAM_ROUNDS * 1e-6;
        entrant->bands += gave->bands;
        bench_calls_add(&entrant->calls, &gave->calls);
    }

    entrant->fps = quantile_of(fps, STREAM_ROUNDS, 0.5);
    entrant->fps_low = fps[0];
    entrant->fps_high = fps[STREAM_ROUNDS - 1];
    entrant->p99_ms = percentile_of(entrant->interval_ns, intervals, 99) * 1e-6;
}

static bool measure(struct stream *stream, uint32_t in_flight)
{
    stream->in_flight = in_flight;
    stream->hash = 0;
    bool good = add_entrants(stream) && run_rounds(stream);
    for (uint32_t e = 0; good && e < stream->entrant_count; e++)
        find_figures(stream, &stream->entrants[e]);
    if (good) {
        stream_judge(stream);
        stream_print_entrants(stream);
    }

    remove_entrants(stream);

    return good;
}

/* --- the command --- */

static bool make_devices(struct stream *stream, uint32_t sets)
{
    const size_t entrants = 3 * (size_t)stream->device_count + 2 + BENCH_POLICIES_MAX;
    const uint32_t most = STREAM_LEAD + stream->frame_count;

    stream->intervals = calloc(entrants * STREAM_ROUNDS * stream->frame_count,
                               sizeof *stream->intervals);
    stream->done_ns = calloc(most, sizeof *stream->done_ns);
    if (!stream->intervals || !stream->done_ns)
        return bench_fail("out of memory");
    if (!stream_frames_make(&stream->frames, stream->runtime, stream->options, sets))
        return false;
    stream_kernel_make(&stream->kernel, &stream->frames);

    const size_t bytes = (size_t)(stream_frames_row_bytes(&stream->frames, true) *
                                  stream->frames.height);
    for (uint32_t d = 0; d < stream->device_count; d++) {
        cox_runtime_device_info(stream->runtime, d, &stream->devices[d]);
        if (!is_staged(stream, d))
            continue;
        struct stream_hand *hand = stream_hand_create(&stream->devices[d], &stream->frames,
                                                      &stream->kernel,
                                                      cox_runtime_arithmetic(stream->runtime),
                                                      most);
        if (!hand ||
            !bench_link_measure(&stream->devices[d], bytes, LINK_TIMES, &stream->links[d])) {
            stream_hand_destroy(&hand);
            return false;
        }
        stream->hands[stream->staged_count++] = hand;
    }

    return true;
}

static void clear(struct stream *stream)
{
    for (uint32_t h = 0; h < stream->staged_count; h++)
        stream_hand_destroy(&stream->hands[h]);
    stream_frames_free(&stream->frames);
    cox_runtime_destroy(&stream->runtime);
    free(stream->intervals);
    free(stream->done_ns);
    free(stream);
}

bool bench_stream(const struct bench_options *options, bool *met)
{
    const uint32_t *in_flight = in_flight_default;
    size_t count = sizeof in_flight_default / sizeof in_flight_default[0];

    if (options->in_flight) {
        in_flight = &options->in_flight;
        count = 1;
    }

    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return bench_fail("out of memory");
    stream->options = options;
    stream->frame_count = bench_value(options->frames, FRAMES_DEFAULT);
    stream->same_output = true;
    bool good = bench_open_runtime(options, options->arithmetic, &stream->runtime);
    if (good) {
        stream->device_count = cox_runtime_device_count(stream->runtime);
        good = make_devices(stream, in_flight[count - 1]); /* the most */
    }

    if (good) {
        quiet_start(&stream->quiet, options->quiet_s);
        stream_print_head(stream);
    }

    for (size_t i = 0; good && i < count; i++)
        good = measure(stream, in_flight[i]);
    if (good) {
        stream_print_tail(stream);
        *met = stream_met(stream);
    }

    clear(stream);

    return good;
}
