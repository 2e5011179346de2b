/* cox-bench decide: what a policy costs a frame, on this machine's processor.
 *
 * No device takes part: what the policy is asked and told for a stream of frames on devices that are a few numbers is
 * recorded first, then the same calls are made again and again on a new state. Policies are deterministic, so the
 * answers are the same and need no looking at.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"
#include "common/json.h"

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

static const double FRAME_BAR_NS = 1500; /* split, next and observe of a frame with four devices */
static const double DECISION_BAR_NS = 10000; /* split with 32 */
static const uint32_t counts[] = {2, 4, 8, 32};
enum { COUNTS = sizeof counts / sizeof counts[0] };

enum call_kind { CALL_SPLIT, CALL_NEXT, CALL_OBSERVE, CALL_FRAME };

struct call {
    enum call_kind kind;
    uint64_t frame;
    union {
        struct {
            struct cox_offer offer;
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

/* A device at work. */
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
    double calls;       /* a frame */
};

static double launch_ns(uint32_t device, uint32_t rows, bool further, uint32_t draw)
{
    double row_ns = 18e3 / (1 + device % 3);
    double chance = (double)(draw * 2654435761u >> 8) / (1u << 24); /* 0 .. 1 */
    return ((further ? 20e3 : 100e3) + row_ns * rows) * (0.92 + 0.16 * chance);
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

/* Offer what is left of the pool to a free device. */
static void offer(struct tape *tape, const struct cox_policy *policy, void *state,
                  struct worker *workers, uint32_t device, uint32_t *pool_first,
                  uint32_t *pool_rows, double now)
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
    struct cox_offer *what = &call->of.next.offer;
    *what = (struct cox_offer){.device = device,
                               .first_row = *pool_first,
                               .rows = *pool_rows,
                               .elapsed_ns = (uint64_t)now,
                               .last = last,
                               .progress = &tape->progress[call->of.next.progress]};
    struct cox_grant grant = {0};
    policy->next(state, view, what, &grant);
    workers[device].asked = true;
    if (grant.rows == 0 || grant.rows > *pool_rows)
        grant.rows = last ? *pool_rows : 0;
    if (grant.rows == 0)
        return;
    start(workers, (struct cox_band){device, *pool_first, grant.rows}, now, tape->count);
    *pool_first += grant.rows;
    *pool_rows -= grant.rows;
}

static bool record_frame(struct tape *tape, const struct cox_policy *policy, void *state,
                         uint64_t frame)
{
    struct cox_sched_view *view = &tape->view;
    view->frame = frame;
    struct cox_split split = {0};
    add(tape, CALL_SPLIT, frame);
    if (policy->split(state, view, &split) != COX_OK ||
        cox_split_check(&split, view, NULL, 0) != COX_OK)
        return bench_fail("%s gives no split", policy->name);
    struct worker workers[COX_DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < split.band_count; i++)
        if (!workers[split.bands[i].device]
                 .busy) /* policies of several bands a device are not measured here */
            start(workers, split.bands[i], 0, tape->count + i);
    uint32_t first = split.pool_first_row, rows = split.pool_rows;
    double now = 0;
    for (;;) {
        for (uint32_t d = 0; d < view->device_count && rows > 0 && policy->next; d++)
            if (!workers[d].busy && !workers[d].asked)
                offer(tape, policy, state, workers, d, &first, &rows, now);
        uint32_t next = view->device_count;
        for (uint32_t d = 0; d < view->device_count; d++)
            if (workers[d].busy &&
                (next == view->device_count || workers[d].end_ns < workers[next].end_ns))
                next = d;
        if (next == view->device_count)
            break;
        now = workers[next].end_ns;
        struct worker *done = &workers[next];
        struct call *call = add(tape, CALL_OBSERVE, frame);
        bool chunk = done->since_ns > 0;
        call->of.measurement = (struct cox_measurement){.frame = frame,
                                                        .device = next,
                                                        .first_row = done->band.first_row,
                                                        .rows = done->band.rows,
                                                        .wall_ns = (uint64_t)(now - done->since_ns),
                                                        .flags = chunk ? COX_MEASURED_CHUNK : 0};
        if (policy->observe)
            policy->observe(state, &call->of.measurement);
        done->busy = done->asked = false;
    }
    struct call *call = add(tape, CALL_FRAME, frame);
    call->of.frame = (struct cox_frame_measurement){
        .frame = frame, .wall_ns = (uint64_t)now, .period_ns = (uint64_t)now, .joules = -1};
    if (policy->observe_frame)
        policy->observe_frame(state, &call->of.frame);
    return true;
}

/* Make the tape's calls. Returns their nanoseconds; with `split_ns`, what each split took, by the clock, comes
 * there. */
static double play(const struct tape *tape, const struct cox_policy *policy, void *state,
                   double *split_ns)
{
    struct cox_sched_view view = tape->view;
    struct cox_split split;
    struct cox_grant grant;
    uint64_t begin =
        clock_ns(CLOCK_THREAD_CPUTIME_ID); /* what else runs on the machine does not count */
    for (uint32_t i = 0; i < tape->count; i++) {
        const struct call *call = &tape->calls[i];
        view.frame = call->frame;
        uint64_t before;
        switch (call->kind) {
        case CALL_SPLIT:
            before = split_ns ? now_ns() : 0;
            memset(&split, 0, sizeof split);
            (void)policy->split(state, &view, &split);
            if (split_ns)
                *split_ns++ = (double)(now_ns() - before);
            break;
        case CALL_NEXT:
            policy->next(state, &view, &call->of.next.offer, &grant);
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
                                         .granule = GRANULE,
                                         .device_count = device_count,
                                         .devices = tape->devices,
                                         .in_flight = 1,
                                         .pool = policy->next != NULL,
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
                              .frame_ns = figures_quantile(frame_ns, ROUNDS, 0.5),
                              .decision_ns = figures_quantile(split_ns, ROUNDS * FRAMES, 0.5),
                              .calls = (double)tape->count / FRAMES};
    snprintf(result->policy, sizeof result->policy, "%s", policy->name);
    return true;
}

static void print_json(const struct result *results, uint32_t count)
{
    struct machine machine;
    machine_read(&machine);
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_key(&json, "command");
    json_string(&json, "decide");
    machine_json(&machine, &json);
    json_key(&json, "policies");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < count; i++) {
        json_open_object(&json, true);
        json_key(&json, "policy");
        json_string(&json, results[i].policy);
        json_key(&json, "devices");
        json_unsigned(&json, results[i].devices);
        json_key(&json, "frame_ns");
        json_number(&json, results[i].frame_ns);
        json_key(&json, "split_ns");
        json_number(&json, results[i].decision_ns);
        json_key(&json, "calls");
        json_number(&json, results[i].calls);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}

static bool is_asked(const char *const *names, const char *name)
{
    for (int i = 0; i < BENCH_POLICIES_MAX && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return !names[0];
}

bool bench_decide(const struct bench_options *options, bool *met)
{
    struct tape tape = {
        .calls = malloc(CALLS_MAX * sizeof *tape.calls),
        .progress = malloc((size_t)CALLS_MAX * COX_DEVICES_MAX * sizeof *tape.progress)};
    bool good = tape.calls && tape.progress;
    if (!good)
        bench_fail("out of memory");
    struct result results[64];
    uint32_t count = 0;
    *met = true;
    const struct cox_policy *policy;
    for (uint32_t p = 0; good && (policy = cox_policy_at(p)) != NULL; p++) {
        if (!is_asked(options->policies, policy->name))
            continue;
        for (uint32_t c = 0; c < COUNTS && count < sizeof results / sizeof results[0] && good;
             c++) {
            struct result *result = &results[count++];
            good = measure(policy, counts[c], &tape, result);
            *met &= !good || counts[c] != 4 || p > 0 || result->frame_ns <= FRAME_BAR_NS;
            *met &= !good || counts[c] != 32 || p > 0 || result->decision_ns <= DECISION_BAR_NS;
        }
    }
    free(tape.calls);
    free(tape.progress);
    if (!good)
        return false;
    if (options->json) {
        print_json(results, count);
        return true;
    }
    printf("nanoseconds of processor time, the median of %d rounds of %d frames\n\n", ROUNDS,
           FRAMES);
    printf("  %-12s %8s %12s %12s %8s\n", "policy", "devices", "all calls", "split", "calls");
    for (uint32_t i = 0; i < count; i++)
        printf("  %-12s %8u %12.0f %12.0f %8.1f\n", results[i].policy, results[i].devices,
               results[i].frame_ns, results[i].decision_ns, results[i].calls);
    printf("\nbars for %s: all calls with 4 devices within %.0f, split with 32 within %.0f: %s\n",
           cox_policy_at(0)->name, FRAME_BAR_NS, DECISION_BAR_NS, *met ? "met" : "missed");
    return true;
}
