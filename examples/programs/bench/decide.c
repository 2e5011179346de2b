/* cox-bench decide: the processor time that a policy costs per frame.
 *
 * No device takes part. First the calls of the policy are recorded for a stream of frames on
 * simulated devices. Then the same calls are repeated on new states. Policies are deterministic, so
 * their answers are the same and need no check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "common/host_machine.h"
#include "common/policies/registry.h"
#include "json_members.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAMES = 300,
    ROWS = 2160,
    GRANULE = 8,
    ROUNDS = 9,
    CALLS_MAX = FRAMES * (3 * COX_BANDS_MAX + 2)
};

static const double bar_frame_ns = 1500;     /* all calls of a frame, with 4 devices */
static const double bar_decision_ns = 10000; /* split, with 32 devices */
static const uint32_t counts[] = {2, 4, 8, 32};
enum { COUNTS = sizeof counts / sizeof counts[0] };

enum call_kind { CALL_SPLIT, CALL_NEXT, CALL_OBSERVE, CALL_FRAME };

struct call {
    enum call_kind kind;
    uint64_t frame;
    union {
        struct {
            struct cox_chunk_request offer;
            uint32_t progress; /* index of the first of its device_count entries */
        } next;
        struct cox_measurement measurement;
        struct cox_frame_measurement frame;
    } of;
};

struct tape {
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct call *calls;
    uint32_t count;
    struct cox_progress *progress;
    uint32_t progress_count;
};

/* A simulated device. */
struct worker {
    bool busy, asked, launched;
    struct cox_band band;
    double since_ns, end_ns;
};

struct result {
    char policy[32];
    uint32_t devices;
    double frame_ns;    /* all calls of a frame */
    double decision_ns; /* split alone */
    double calls;       /* per frame */
};

static double launch_ns(uint32_t device, uint32_t rows, bool further, uint32_t draw)
{
    const double fixed_ns = further ? 20e3 : 100e3, row_ns = 18e3 / (1 + device % 3);
    const double chance = (double)(draw * 2654435761u >> 8) / (1u << 24); /* 0 .. 1 */

    return (fixed_ns + row_ns * rows) * (0.92 + 0.16 * chance);
}

static struct call *add(struct tape *tape, enum call_kind kind, uint64_t frame)
{
    struct call *call = &tape->calls[tape->count++];
    call->kind = kind;
    call->frame = frame;
    return call;
}

static void start(struct worker *workers, struct cox_band band, double now, uint32_t draw)
{
    struct worker *worker = &workers[band.device];

    *worker = (struct worker){.busy = true,
                              .launched = true,
                              .band = band,
                              .since_ns = now,
                              .end_ns = now +
                                        launch_ns(band.device, band.rows, worker->launched, draw)};
}

/* Rows that no device has yet. */
struct pool {
    uint32_t first, rows;
};

/* Offer the rest of the pool to a free device. */
static void offer(struct tape *tape, const struct cox_policy *policy, void *state,
                  struct worker *workers, uint32_t device, struct pool *pool, double now)
{
    const struct cox_sched_view *view = &tape->view;
    struct call *call = add(tape, CALL_NEXT, view->frame);

    call->of.next.progress = tape->progress_count;
    bool last = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox_progress progress = {0};
        if (workers[d].busy)
            progress = (struct cox_progress){workers[d].band.rows, workers[d].band.first_row,
                                             (uint64_t)(now - workers[d].since_ns)};
        last &= d == device || (!workers[d].busy && workers[d].asked);
        tape->progress[tape->progress_count++] = progress;
    }

    struct cox_chunk_request *what = &call->of.next.offer;
    *what = (struct cox_chunk_request){.device = device,
                                       .first_row = pool->first,
                                       .rows = pool->rows,
                                       .elapsed_ns = (uint64_t)now,
                                       .last = last,
                                       .progress = &tape->progress[call->of.next.progress]};
    struct cox_chunk grant = {0};
    policy->assign(state, view, what, &grant);
    workers[device].asked = true;
    if (grant.rows == 0 || grant.rows > pool->rows)
        grant.rows = last ? pool->rows : 0;
    if (grant.rows == 0)
        return;

    start(workers, (struct cox_band){device, pool->first, grant.rows}, now, tape->count);
    pool->first += grant.rows;
    pool->rows -= grant.rows;
}

/* The busy device that ends first; `count` = no device is busy. */
static uint32_t find_next(const struct worker *workers, uint32_t count)
{
    uint32_t next = count;

    for (uint32_t d = 0; d < count; d++)
        if (workers[d].busy && (next == count || workers[d].end_ns < workers[next].end_ns))
            next = d;

    return next;
}

static void record_end(struct tape *tape, const struct cox_policy *policy, void *state,
                       struct worker *done, double now)
{
    struct call *call = add(tape, CALL_OBSERVE, tape->view.frame);

    call->of.measurement = (struct cox_measurement){.frame = tape->view.frame,
                                                    .device = done->band.device,
                                                    .first_row = done->band.first_row,
                                                    .rows = done->band.rows,
                                                    .wall_ns = (uint64_t)(now - done->since_ns)};
    if (done->since_ns > 0)
        call->of.measurement.flags = COX_MEASURED_CHUNK;
    if (policy->observe)
        policy->observe(state, &call->of.measurement);
    done->busy = done->asked = false;
}

static bool record_frame(struct tape *tape, const struct cox_policy *policy, void *state,
                         uint64_t frame)
{
    struct cox_sched_view *view = &tape->view;
    struct cox_split split = {0};

    view->frame = frame;
    add(tape, CALL_SPLIT, frame);
    if (policy->split(state, view, &split) != COX_OK ||
        cox_split_check(&split, view, NULL, 0) != COX_OK)
        return bench_fail("policy %s returned no valid split", policy->name);

    /* A second band for a device is ignored: no policy measured here gives one. */
    struct worker workers[COX_DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < split.band_count; i++)
        if (!workers[split.bands[i].device].busy)
            start(workers, split.bands[i], 0, tape->count + i);

    struct pool pool = {split.pool_first_row, split.pool_rows};
    double now = 0;
    for (;;) {
        for (uint32_t d = 0; d < view->device_count && pool.rows > 0 && policy->assign; d++)
            if (!workers[d].busy && !workers[d].asked)
                offer(tape, policy, state, workers, d, &pool, now);

        const uint32_t next = find_next(workers, view->device_count);
        if (next == view->device_count)
            break;
        now = workers[next].end_ns;
        record_end(tape, policy, state, &workers[next], now);
    }

    struct call *call = add(tape, CALL_FRAME, frame);
    call->of.frame = (struct cox_frame_measurement){
        .frame = frame, .wall_ns = (uint64_t)now, .period_ns = (uint64_t)now, .joules = -1};
    if (policy->observe_frame)
        policy->observe_frame(state, &call->of.frame);

    return true;
}

/* Make the recorded calls. Returns their processor time in ns, in which other programs do not
 * count. If `split_ns` is not NULL, it gets the wall time of each split. */
static double play(const struct tape *tape, const struct cox_policy *policy, void *state,
                   double *split_ns)
{
    struct cox_sched_view view = tape->view;
    struct cox_split split;
    struct cox_chunk grant;
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    for (uint32_t i = 0; i < tape->count; i++) {
        const struct call *call = &tape->calls[i];
        uint64_t before;

        view.frame = call->frame;
        switch (call->kind) {
        case CALL_SPLIT:
            memset(&split, 0, sizeof split);
            if (!split_ns) {
                (void)policy->split(state, &view, &split);
                break;
            }
            before = now_ns();
            (void)policy->split(state, &view, &split);
            *split_ns++ = (double)(now_ns() - before);
            break;
        case CALL_NEXT:
            policy->assign(state, &view, &call->of.next.offer, &grant);
            break;
        case CALL_OBSERVE:
            if (policy->observe)
                policy->observe(state, &call->of.measurement);
            break;
        case CALL_FRAME:
            if (policy->observe_frame)
                policy->observe_frame(state, &call->of.frame);
            break;
        }
    }

    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

static bool measure(const struct cox_policy *policy, uint32_t device_count, struct tape *tape,
                    struct result *result)
{
    tape->count = tape->progress_count = 0;
    tape->view = (struct cox_sched_view){.rows = ROWS,
                                         .row_alignment = GRANULE,
                                         .device_count = device_count,
                                         .devices = tape->devices,
                                         .in_flight = 1,
                                         .pool = policy->assign != NULL,
                                         .shadow = true};
    for (uint32_t d = 0; d < device_count; d++)
        tape->devices[d] = (struct cox_sched_device){true, 1,
                                                     (uint64_t)launch_ns(d, ROWS, false, d)};

    size_t bytes = policy->state_bytes(device_count);
    void *state = calloc(1, bytes);
    if (!state)
        return bench_fail("out of memory");

    bool good = policy->init(state, &tape->view, NULL) == COX_OK;
    for (uint64_t frame = 0; frame < FRAMES && good; frame++)
        good = record_frame(tape, policy, state, frame);

    double frame_ns[ROUNDS], split_ns[ROUNDS * FRAMES];
    for (uint32_t round = 0; round < 2 * ROUNDS && good; round++) {
        memset(state, 0, bytes);
        good = policy->init(state, &tape->view, NULL) == COX_OK;
        if (round % 2 == 0)
            frame_ns[round / 2] = play(tape, policy, state, NULL) / FRAMES;
        else
            (void)play(tape, policy, state, &split_ns[round / 2 * FRAMES]);
    }

    free(state);
    if (!good)
        return false;
    *result = (struct result){.devices = device_count,
                              .frame_ns = quantile_of(frame_ns, ROUNDS, 0.5),
                              .decision_ns = quantile_of(split_ns, ROUNDS * FRAMES, 0.5),
                              .calls = (double)tape->count / FRAMES};
    snprintf(result->policy, sizeof result->policy, "%s", policy->name);

    return true;
}

static void print_json(const struct result *results, uint32_t count)
{
    struct machine machine;
    struct json json;

    machine_read(&machine);
    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_string(&json, "command", "decide");
    machine_json(&machine, &json);
    json_member_array(&json, "policies", false);

    for (uint32_t i = 0; i < count; i++) {
        json_open_object(&json, true);
        json_member_string(&json, "policy", results[i].policy);
        json_member_unsigned(&json, "devices", results[i].devices);
        json_member_number(&json, "frame_ns", results[i].frame_ns);
        json_member_number(&json, "split_ns", results[i].decision_ns);
        json_member_number(&json, "calls", results[i].calls);
        json_close_object(&json);
    }

    json_close_array(&json);
    json_report_end(&json);
}

static void print_text(const struct result *results, uint32_t count, bool met)
{
    printf("nanoseconds of processor time: median of %d rounds of %d frames\n\n", ROUNDS, FRAMES);
    printf("  %-12s %8s %12s %12s %8s\n", "policy", "devices", "all calls", "split", "calls");
    for (uint32_t i = 0; i < count; i++)
        printf("  %-12s %8u %12.0f %12.0f %8.1f\n", results[i].policy, results[i].devices,
               results[i].frame_ns, results[i].decision_ns, results[i].calls);
    printf("\nbars for %s: all calls with 4 devices at most %.0f, split with 32 devices at "
           "most %.0f: %s\n",
           cox_policy_at(0)->name, bar_frame_ns, bar_decision_ns, met ? "met" : "missed");
}

static bool is_asked(const struct cox_policy *const *policies, const struct cox_policy *policy)
{
    for (int i = 0; i < BENCH_POLICIES_MAX && policies[i]; i++)
        if (policies[i] == policy)
            return true;
    return !policies[0];
}

bool bench_decide(const struct bench_options *options, bool *met)
{
    struct tape tape = {
        .calls = malloc(CALLS_MAX * sizeof *tape.calls),
        .progress = malloc((size_t)CALLS_MAX * COX_DEVICES_MAX * sizeof *tape.progress)};
    bool good = (tape.calls && tape.progress) || bench_fail("out of memory");
    struct result results[64];
    const struct cox_policy *policy;
    uint32_t count = 0;

    *met = true;
    for (uint32_t p = 0; good && (policy = program_policy_at(p)) != NULL; p++) {
        if (!is_asked(options->policies, policy))
            continue;
        for (uint32_t c = 0; c < COUNTS && count < sizeof results / sizeof results[0] && good;
             c++) {
            struct result *result = &results[count++];
            good = measure(policy, counts[c], &tape, result);
            /* The first policy, which is the default, has the bars. */
            if (good && p == 0 && counts[c] == 4)
                *met &= result->frame_ns <= bar_frame_ns;
            if (good && p == 0 && counts[c] == 32)
                *met &= result->decision_ns <= bar_decision_ns;
        }
    }

    free(tape.calls);
    free(tape.progress);
    if (!good)
        return false;
    if (options->json)
        print_json(results, count);
    else
        print_text(results, count, *met);

    return true;
}
