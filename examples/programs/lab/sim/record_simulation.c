/* Records a simulation as a runtime would report it. The frames and bands are put together from the
 * calls of the simulated policy, which a tape (lab/store/tape.h) passes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record_simulation.h"

#include "common/quantiles.h"
#include "lab/store/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING = 32, BANDS_MAX = 2 * COX_BANDS_MAX };

struct grant {
    uint32_t device, first_row;
    uint64_t at_ns, predicted_ns;
};

/* A frame under way. Times count from its start. */
struct pending {
    bool open;
    uint64_t frame;
    uint64_t waited_ns; /* from its submission to its start */
    uint32_t pass;      /* the current one, of which split and grants are */
    struct cox_pass_report passes[COX_PASSES_MAX];
    struct cox_split split;
    uint32_t grant_count;
    struct grant grants[COX_BANDS_MAX];
    uint32_t first_band;           /* of the pass */
    uint32_t band_count;           /* of all passes so far */
    struct cox_band_report *bands; /* BANDS_MAX for each pass */
};

struct recorder {
    struct lab_session *session;
    struct lab_store *store;
    bool no_tape;
    uint32_t pass_count;
    const struct lab_sim_frame *frames; /* all, filled during the simulation */
    uint64_t end_ns;                    /* of the frame before */
    struct pending pending[PENDING];
};

/* NULL if the frame has ended: the band was given up. */
static struct pending *pending_of(struct recorder *recorder, uint64_t frame)
{
    struct pending *pending = &recorder->pending[frame % PENDING];

    if (!pending->open || pending->frame != frame)
        return NULL;
    return pending;
}

static void on_next(struct pending *pending, const struct lab_call *call)
{
    const struct cox_chunk_request *offer = call->offer;
    uint32_t rows = call->grant->rows;

    if (offer->last && rows == 0)
        rows = offer->rows;
    if (!pending || rows == 0 || pending->grant_count == COX_BANDS_MAX)
        return;

    pending->grants[pending->grant_count++] = (struct grant){
        .device = offer->device,
        .first_row = offer->first_row,
        .at_ns = offer->elapsed_ns,
        .predicted_ns = call->grant->predicted_ns};
}

static void on_shadow(struct recorder *recorder, uint32_t pass,
                      const struct cox_measurement *measurement)
{
    struct cox_band_report band = {.device = measurement->device,
                                   .pass = pass,
                                   .first_row = measurement->first_row,
                                   .rows = measurement->rows,
                                   .end_ns = measurement->wall_ns,
                                   .wall_ns = measurement->wall_ns,
                                   .kernel_ns = measurement->kernel_ns};

    lab_session_frame(recorder->session,
                      &(struct cox_frame_report){.index = measurement->frame,
                                                 .shadow = true,
                                                 .total.end_ns = measurement->wall_ns,
                                                 .joules = -1,
                                                 .band_count = 1,
                                                 .bands = &band});
}

static void on_observe(struct recorder *recorder, uint32_t pass,
                       const struct cox_measurement *measurement)
{
    if (measurement->flags & COX_MEASURED_SHADOW) {
        on_shadow(recorder, pass, measurement);
        return;
    }
    struct pending *pending = pending_of(recorder, measurement->frame);
    if (!pending || pending->pass != pass || pending->band_count - pending->first_band == BANDS_MAX)
        return;

    const uint64_t start_ns = pending->passes[pass].start_ns;
    struct cox_band_report *band = &pending->bands[pending->band_count++];
    *band = (struct cox_band_report){
        .device = measurement->device,
        .pass = pass,
        .first_row = measurement->first_row,
        .rows = measurement->rows,
        .status = measurement->flags & COX_MEASURED_UNFINISHED ? COX_E_DEVICE_LOST : COX_OK,
        .submit_ns = start_ns,
        .wall_ns = measurement->wall_ns,
        .queue_ns = measurement->queue_ns,
        .kernel_ns = measurement->kernel_ns,
        .predicted_ns = pending->split.device_ns[measurement->device]};

    for (uint32_t g = 0; g < pending->grant_count; g++) {
        const struct grant *grant = &pending->grants[g];
        if (grant->device != band->device || grant->first_row != band->first_row)
            continue;
        band->on_demand = true;
        band->submit_ns = start_ns + grant->at_ns;
        band->predicted_ns = grant->predicted_ns;
    }
    band->end_ns = band->submit_ns + band->queue_ns + band->wall_ns;

    /* Rows that were already in a band of this pass are a further attempt. */
    for (uint32_t b = pending->first_band; b + 1 < pending->band_count; b++) {
        const struct cox_band_report *other = &pending->bands[b];
        const bool apart = other->first_row + other->rows <= band->first_row ||
                           band->first_row + band->rows <= other->first_row;
        if (!apart)
            band->attempt = other->attempt + 1;
    }
}

static int by_row(const void *left, const void *right)
{
    const struct cox_band_report *a = left, *b = right;
    if (a->first_row != b->first_row)
        return (a->first_row > b->first_row) - (a->first_row < b->first_row);
    return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

/* When the frame ends in the stream, and how long it took. With one pass: what the policy
 * observes. */
static void find_times(const struct recorder *recorder, const struct cox_frame_measurement *whole,
                       uint64_t *end_ns, uint64_t *wall_ns)
{
    const struct lab_sim_frame *frame = &recorder->frames[whole->frame];

    if (recorder->pass_count == 1) {
        *end_ns = recorder->end_ns + whole->period_ns;
        *wall_ns = whole->wall_ns;
    } else {
        *end_ns = recorder->end_ns + (uint64_t)frame->period_ns;
        *wall_ns = (uint64_t)frame->wall_ns;
    }
}

static void report_frame(struct recorder *recorder, struct pending *pending,
                         const struct cox_frame_measurement *whole)
{
    uint64_t end_ns, wall_ns, predicted_ns = 0, rejected_ns = 0;
    uint64_t start_ns = 0, submit_ns = 0;
    uint32_t pool_rows = 0;

    find_times(recorder, whole, &end_ns, &wall_ns);
    if (end_ns > wall_ns)
        start_ns = end_ns - wall_ns;
    if (start_ns > pending->waited_ns)
        submit_ns = start_ns - pending->waited_ns;

    for (uint32_t b = 0; b < pending->band_count; b++) {
        pending->bands[b].submit_ns += start_ns;
        pending->bands[b].end_ns += start_ns;
    }

    for (uint32_t p = 0; p < recorder->pass_count; p++) {
        predicted_ns += pending->passes[p].predicted_ns;
        rejected_ns += pending->passes[p].rejected_ns;
        pool_rows += pending->passes[p].pool_rows;
        pending->passes[p].start_ns += start_ns;
        pending->passes[p].end_ns += start_ns;
    }

    lab_session_frame(recorder->session,
                      &(struct cox_frame_report){.index = whole->frame,
                                                 .submit_ns = submit_ns,
                                                 .total.start_ns = start_ns,
                                                 .total.end_ns = end_ns,
                                                 .delivered_ns = submit_ns + whole->latency_ns,
                                                 .deadline_ns = whole->deadline_ns,
                                                 .total.reason = pending->passes[0].reason,
                                                 .total.predicted_ns = predicted_ns,
                                                 .total.rejected_ns = rejected_ns,
                                                 .total.pool_rows = pool_rows,
                                                 .joules = whole->joules,
                                                 .band_count = pending->band_count,
                                                 .bands = pending->bands,
                                                 .pass_count = recorder->pass_count,
                                                 .passes = pending->passes});

    recorder->end_ns = end_ns;
    pending->open = false;
    lab_store_write(recorder->store);
}

/* A pass ended, and with the last pass the frame. */
static void on_frame(struct recorder *recorder, uint32_t pass,
                     const struct cox_frame_measurement *whole)
{
    struct pending *pending = pending_of(recorder, whole->frame);

    if (!pending || pending->pass != pass)
        return;

    pending->passes[pass].end_ns = pending->passes[pass].start_ns + whole->wall_ns;
    qsort(&pending->bands[pending->first_band], pending->band_count - pending->first_band,
          sizeof *pending->bands, by_row);
    if (pass + 1 == recorder->pass_count)
        report_frame(recorder, pending, whole);
}

static void on_split(struct recorder *recorder, uint32_t pass, const struct cox_sched_view *view,
                     const struct cox_split *split)
{
    struct pending *pending = &recorder->pending[view->frame % PENDING];

    if (pass == 0) {
        pending->open = true;
        pending->frame = view->frame;
        pending->band_count = 0;
        pending->waited_ns = view->waited_ns;
    }

    pending->pass = pass;
    pending->grant_count = 0;
    pending->first_band = pending->band_count;
    pending->split = *split;
    pending->passes[pass] = (struct cox_pass_report){.start_ns = view->waited_ns -
                                                                 pending->waited_ns,
                                                     .reason = split->reason,
                                                     .predicted_ns = split->predicted_ns,
                                                     .rejected_ns = split->rejected_ns,
                                                     .pool_rows = split->pool_rows};
}

static void on_call(void *user, const struct lab_call *call)
{
    struct recorder *recorder = user;

    if (!recorder->no_tape)
        lab_session_call(recorder->session, call);

    if (call->kind == LAB_CALL_SPLIT && call->status == COX_OK) {
        on_split(recorder, call->pass, call->view, call->split);
    } else if (call->kind == LAB_CALL_NEXT) {
        on_next(pending_of(recorder, call->view->frame), call);
    } else if (call->kind == LAB_CALL_OBSERVE) {
        on_observe(recorder, call->pass, call->measurement);
    } else if (call->kind == LAB_CALL_FRAME) {
        on_frame(recorder, call->pass, call->whole);
    }
}

/* --- the run --- */

struct job {
    struct lab_store *store;
    const struct lab_world *world;
    const struct lab_record *record;
    struct recorder *recorder;
    uint32_t pass_count;
    struct cox_band_report *bands; /* of the recorder's frames under way */
    struct lab_sim_frame *frames;  /* all frames of the world */
    double *values;                /* one for each frame */
    char *why;
    size_t why_bytes;
};

static bool simulate(const struct job *job, const struct cox_policy *policy,
                     const struct lab_sim_options *options)
{
    job->why[0] = '\0';
    const cox_status status = lab_simulate(job->world, policy, options, job->record->seed,
                                           job->frames, job->why, job->why_bytes);
    if (status != COX_OK && !job->why[0])
        snprintf(job->why, job->why_bytes, "policy %s: %s", policy ? policy->name : "oracle",
                 cox_status_text(status));
    return status == COX_OK;
}

/* Record one policy over the whole world as a session. */
static bool record_policy(const struct job *job, const struct cox_policy *policy,
                          const struct lab_store_session *about,
                          const struct lab_sim_options *options)
{
    struct recorder *recorder = job->recorder;
    const size_t bands = (size_t)job->pass_count * BANDS_MAX;
    struct lab_tape tape;

    memset(recorder, 0, sizeof *recorder);
    for (size_t p = 0; p < PENDING; p++)
        recorder->pending[p].bands = &job->bands[p * bands];

    recorder->pass_count = job->pass_count;
    recorder->frames = job->frames;
    recorder->store = job->store;
    recorder->no_tape = about->kind != LAB_SESSION_POLICY;
    recorder->session = lab_store_begin_session(job->store, about);

    lab_tape_begin(&tape, policy, on_call, recorder);
    return simulate(job, &tape.policy, options);
}

/* Record medians of the latest simulation's frames as references. `device` < 0: the oracle's; else
 * of the frames that this device did alone. */
static void record_references(const struct job *job, int32_t device)
{
    const uint32_t device_count = job->world->device_count;

    for (uint32_t p = 0; p < job->record->phase_count; p++) {
        const struct lab_record_phase *phase = &job->record->phases[p];
        size_t count = 0;
        double total_ns = 0;
        double shares[COX_DEVICES_MAX] = {0}, sum = 0;

        for (uint64_t f = phase->first_frame; f < phase->end_frame; f++) {
            const struct lab_sim_frame *frame = &job->frames[f];
            uint64_t rows = 0;

            for (uint32_t d = 0; d < device_count; d++) {
                rows += frame->rows[d];
                shares[d] += frame->rows[d];
            }
            sum += (double)rows;
            if (device >= 0 && frame->rows[device] != rows)
                continue;
            total_ns += frame->wall_ns;
            job->values[count++] = frame->wall_ns;
        }
        if (!count)
            continue;

        for (uint32_t d = 0; d < device_count && sum > 0; d++)
            shares[d] /= sum;
        const double median_ns = quantile_of(job->values, count, 0.5);
        if (device < 0)
            lab_store_reference(job->store, p, device, median_ns, count, shares, device_count);
        else
            lab_store_reference(job->store, p, device, median_ns, count, NULL, 0);
        lab_store_reference_mean(job->store, p, device, total_ns / (double)count);
    }
}

static bool record_solo(const struct job *job, uint32_t device)
{
    const struct cox_policy *single = cox_policy_find("single");
    const struct lab_store_session about = {
        .kind = LAB_SESSION_SOLO, .policy = single->name, .device = device};
    struct lab_sim_options options = *job->record->options;

    options.in_flight = 1;
    options.policy = (struct cox_policy_options){.device = device + 1};
    if (!record_policy(job, single, &about, &options))
        return false;
    record_references(job, (int32_t)device);
    return true;
}

static bool record_oracle(const struct job *job)
{
    if (!simulate(job, NULL, job->record->options))
        return false;

    struct lab_session *session =
        lab_store_begin_session(job->store, &(struct lab_store_session){.kind = LAB_SESSION_POLICY,
                                                                        .policy = "oracle"});
    double start_ns = 0;

    for (uint64_t f = 0; f < job->world->frames; f++) {
        const struct lab_sim_frame *frame = &job->frames[f];
        struct cox_band_report *bands = job->bands;
        uint32_t count = 0, first_row = 0;

        /* With several passes only the sums of the bands are known. */
        for (uint32_t d = 0; d < job->world->device_count && job->pass_count == 1; d++) {
            if (!frame->rows[d])
                continue;
            bands[count++] = (struct cox_band_report){.device = d,
                                                      .first_row = first_row,
                                                      .rows = frame->rows[d],
                                                      .submit_ns = (uint64_t)start_ns,
                                                      .end_ns = (uint64_t)start_ns};
            first_row += frame->rows[d];
        }

        lab_session_frame(session, &(struct cox_frame_report){
                                       .index = f,
                                       .submit_ns = (uint64_t)start_ns,
                                       .total.start_ns = (uint64_t)start_ns,
                                       .total.end_ns = (uint64_t)(start_ns + frame->wall_ns),
                                       .delivered_ns = (uint64_t)(start_ns + frame->latency_ns),
                                       .deadline_ns = job->record->options->policy.deadline_ns,
                                       .joules = frame->joules,
                                       .band_count = count,
                                       .bands = bands,
                                       .pass_count = job->pass_count});
        lab_store_write(job->store);
        start_ns += frame->wall_ns;
    }

    record_references(job, LAB_REFERENCE_ORACLE);
    return true;
}

/* Record the run, its passes, devices and phases, before the first session. */
static void record_head(const struct job *job)
{
    const struct lab_record *record = job->record;
    const struct lab_world *world = job->world;
    const struct lab_sim_options *options = record->options;
    bool alive[COX_DEVICES_MAX];
    uint32_t rows = 0, row_alignment = 0, pass = 0;

    world->begin_run(world->ctx, record->seed);
    world->begin_frame(world->ctx, 0, &rows, &row_alignment, alive);
    lab_store_begin_run(job->store, &(struct lab_store_run){
                                        .source = "simulation",
                                        .host = "simulation",
                                        .system = "simulation",
                                        .command = "cox-lab sim",
                                        .kernel = record->scenario,
                                        .columns = 1,
                                        .rows = rows,
                                        .row_alignment = row_alignment,
                                        .in_flight = options->in_flight ? options->in_flight : 1,
                                        .frames = world->frames,
                                        .objective = options->policy.objective,
                                        .deadline_ns = options->policy.deadline_ns});

    for (const struct lab_world *of = world; of && job->pass_count > 1; of = of->next_pass) {
        of->begin_run(of->ctx, record->seed);
        of->begin_frame(of->ctx, 0, &rows, &row_alignment, alive);
        lab_store_pass(job->store, pass++, of->name, rows, 0);
    }

    for (uint32_t d = 0; d < world->device_count; d++) {
        struct cox_device_info info = {
            .platform = "simulation", .type = COX_DEVICE_OTHER, .mode = COX_MODE_SHARED};
        snprintf(info.name, sizeof info.name, "%s", record->device_names[d]);
        lab_store_device(job->store, d, &info);
    }

    for (uint32_t p = 0; p < record->phase_count; p++)
        lab_store_phase(job->store, p, record->phases[p].first_frame, record->phases[p].end_frame,
                        record->phases[p].text);
}

static bool record_all(const struct job *job)
{
    const struct lab_record *record = job->record;

    record_head(job);
    for (uint32_t d = 0; d < job->world->device_count; d++)
        if (!record_solo(job, d))
            return false;

    for (uint32_t p = 0; p < record->policy_count; p++) {
        const struct lab_store_session about = {.kind = LAB_SESSION_POLICY,
                                                .policy = record->policies[p]->name};
        if (!record_policy(job, record->policies[p], &about, record->options))
            return false;
    }
    if (!record_oracle(job))
        return false;

    lab_store_finish_run(job->store);
    return true;
}

bool lab_record_simulation(struct lab_store *store, const struct lab_world *world,
                           const struct lab_record *record, char *why, size_t why_bytes)
{
    uint32_t passes = 0;

    for (const struct lab_world *of = world; of; of = of->next_pass)
        passes++;

    struct job job = {
        .store = store,
        .world = world,
        .record = record,
        .recorder = calloc(1, sizeof *job.recorder),
        .pass_count = passes,
        .bands = calloc((size_t)PENDING * BANDS_MAX * passes, sizeof *job.bands),
        .frames = calloc(world->frames + 1, sizeof *job.frames),
        .values = calloc(world->frames + 1, sizeof *job.values),
        .why = why,
        .why_bytes = why_bytes,
    };
    bool good = false;

    if (job.recorder && job.bands && job.frames && job.values)
        good = record_all(&job);
    else
        snprintf(why, why_bytes, "out of memory");

    free(job.recorder);
    free(job.bands);
    free(job.frames);
    free(job.values);
    return good;
}
