/* The warm-up: every device compiles each pass and is timed. It runs before a session's first
 * frame, on that frame's buffers, or on its own buffers when cox_session_warm asks for it.
 *
 * Slices of a pass run on all devices at once, each in its own rows. Whole passes run on one device
 * after the other. measure.c decides which of them a device needs.
 *
 * A later pass reads what an earlier one wrote. If slices alone were run of the earlier one, all
 * devices together first run the rest of it.
 *
 * Owns struct cox__warmup, and the devices' `single_device_ns` and `blocks_in_submit`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "warmup.h"
#include "device.h"
#include "engine.h"
#include "frame.h"
#include "base/bounds.h"
#include "measure.h"
#include "memory.h"
#include "queue.h"
#include "engine/failure/residency.h"
#include "timing.h"
#include "transitions.h"

#include <string.h>

/* A device that takes this long to submit to, and most of the band's time, computes inside the
 * enqueue call. */
#define BLOCKING_NS 100000ull

/* Give back the memory of the runs, and with it the results of the passes that were run on it. */
static void give_back_buffers(struct cox_runtime *runtime, struct cox__warmup *warmup)
{
    warmup->filled = warmup->ran_whole = 0;
    if (warmup->pass > 0)
        warmup->holders = 0;

    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++)
        if (warmup->owns_mem[i]) {
            cox__memory_let_go(runtime, warmup->frame->mems[i]);
            warmup->owns_mem[i] = false;
        }
}

static void publish(struct cox_session *session, bool over)
{
    pthread_mutex_lock(&session->lock);
    if (over && cox__device_any_active(&session->devices))
        cox__transition_warmth(&session->warmth, COX__SESSION_WARM);
    else if (over)
        cox__transition_warmth(&session->warmth, COX__SESSION_WARM_IN_VAIN);

    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
}

static void drop_given(struct cox_runtime *runtime, const struct cox__warmup *warmup)
{
    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++)
        if (warmup->given[i])
            cox__memory_let_go(runtime, warmup->given[i]);
}

static void finish(struct cox_session *session)
{
    give_back_buffers(session->runtime, &session->warmup);
    if (session->warmup.state == COX__WARMUP_BORROWED_ASKED)
        drop_given(session->runtime, &session->warmup);
    cox__transition_warmup(&session->warmup, COX__WARMUP_FINISHED);
    publish(session, true);
}

void cox__warmup_drop(struct cox_runtime *runtime, const struct cox__warmup *warmup)
{
    const bool has_given = warmup->state == COX__WARMUP_ASKED ||
                           warmup->state == COX__WARMUP_BORROWED_ASKED;

    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++) {
        if (warmup->owns_mem[i])
            cox__memory_drop(runtime, warmup->frame->mems[i]);
        if (has_given && warmup->given[i])
            cox__memory_drop(runtime, warmup->given[i]);
    }
}

/* Use the first frame's buffers: its bands will write the same rows again. A binding that is read
 * and written gets a copy. */
static cox_status borrow_buffers(struct cox__backend *backend, struct cox__warmup *warmup,
                                 const struct cox__frame *first)
{
    const struct cox__pipeline *pipeline = first->pipeline;

    memcpy(warmup->frame->mems, first->mems, sizeof first->mems);
    memcpy(warmup->frame->params, first->params, sizeof first->params);
    warmup->frame->index = first->index;
    warmup->frame->submit_ns = first->submit_ns;
    cox__transition_warmup(warmup, COX__WARMUP_BORROWED);

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (pipeline->bindings[i].access != COX__READ_WRITE)
            continue;

        size_t bytes = pipeline->bytes[i];
        cox_status status = backend->ops->mem_create(backend, NULL, bytes, &warmup->frame->mems[i]);
        if (status)
            return status;

        warmup->owns_mem[i] = true;
        memcpy(backend->ops->mem_data(warmup->frame->mems[i]),
               backend->ops->mem_data(first->mems[i]), bytes);
    }

    return COX_OK;
}

/* Begin the runs, or continue them, on the memory that cox_session_warm gave. */
static void take_given(struct cox__warmup *warmup)
{
    const struct cox__pipeline *pipeline = warmup->frame->pipeline;

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        warmup->frame->mems[i] = warmup->given[i];
        warmup->owns_mem[i] = warmup->given[i] != NULL;
    }

    memcpy(warmup->frame->params, warmup->params, pipeline->params_bytes);
    cox__transition_warmup(warmup, COX__WARMUP_OWN);
}

bool cox__warmup_is_asked(const struct cox__warmup *warmup)
{
    const enum cox__warmup_state state = warmup->state;
    return state == COX__WARMUP_ASKED || state == COX__WARMUP_BORROWED_ASKED ||
           state == COX__WARMUP_OWN;
}

void cox__warmup_request(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;

    if (warmup->state == COX__WARMUP_FINISHED && session->warmup.used) { /* a frame came first */
        drop_given(session->runtime, &session->warmup);
        publish(session, true);
        return;
    }

    if (warmup->state == COX__WARMUP_BORROWED)
        cox__transition_warmup(warmup, COX__WARMUP_BORROWED_ASKED);
    else
        cox__transition_warmup(warmup, COX__WARMUP_ASKED);
}

/* ---- the devices ---- */

static bool takes_part(const struct cox_session *session, uint32_t device)
{
    return cox__device_is_active(&session->devices.list[device]) &&
           !(session->warmup.failed >> device & 1);
}

static uint32_t device_count(const struct cox_session *session)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < session->devices.count; d++)
        count += takes_part(session, d);
    return count;
}

/* How many devices can run a slice at once: each has its own part of the rows. */
static uint32_t part_count(const struct cox_session *session, const struct cox__pass *pass)
{
    const uint32_t units = (pass->rows + pass->row_alignment - 1) / pass->row_alignment;
    return cox__min_u32(device_count(session), units);
}

/* The unit of rows at which a part begins. */
static uint32_t part_begin(const struct cox__pass *pass, uint32_t part, uint32_t parts)
{
    const uint32_t units = (pass->rows + pass->row_alignment - 1) / pass->row_alignment;
    return (uint32_t)((uint64_t)units * part / parts);
}

/* Begin to time the devices in the next pass. */
static void begin_pass(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    const struct cox__pass *pass = &session->pipeline.passes[warmup->pass];
    const uint32_t parts = cox__max_u32(part_count(session, pass), 1);
    const uint32_t part_rows = part_begin(pass, 1, parts) * pass->row_alignment;

    for (uint32_t d = 0; d < session->devices.count; d++) {
        const struct cox__device_pass *of = &session->devices.list[d].passes[warmup->pass];
        const uint64_t known_ns = session->profile.is_loaded ? of->single_device_ns : 0;
        const uint32_t most = cox__min_u32(cox__min_u32(part_rows, pass->rows), of->max_rows);

        cox__measure_begin(&warmup->measures[d], pass->rows, pass->row_alignment, most, known_ns,
                           session->devices.count == 1);
        if (!warmup->pass && session->devices.list[d].resident)
            warmup->holders |= UINT32_C(1) << d;
    }

    warmup->ran_whole = 0;
    warmup->begun = true;
}

/* ---- what a run shows ---- */

/* The bands of a device in the finished run, as one. `rows` is 0 if the device had no band. */
static struct cox_band_report sum_of_bands(const struct cox__frame *frame, uint32_t device)
{
    struct cox_band_report sum = {.submit_ns = UINT64_MAX};

    for (uint32_t b = 0; b < frame->band_count; b++) {
        const struct cox_band_report *report = &frame->reports[b];
        if (report->device != device)
            continue;

        if (report->status)
            sum.status = report->status;
        sum.rows += report->rows;
        sum.submit_ns = cox__min_u64(sum.submit_ns, report->submit_ns);
        sum.end_ns = cox__max_u64(sum.end_ns, report->end_ns);
    }

    return sum;
}

/* Whether the device computes inside the enqueue call. The last timed run of the first pass
 * decides; later passes can only add devices. */
static void note_blocking(struct cox_session *session, uint32_t device, bool blocks)
{
    struct cox__device *of = &session->devices.list[device];

    of->blocks_in_submit = blocks || (of->blocks_in_submit && session->warmup.pass > 0);
    session->devices.any_blocks |= of->blocks_in_submit;
}

/* The device has run `rows` rows of the pass in `ns`. */
static void learn_time(struct cox_session *session, uint32_t device, uint32_t rows, uint64_t ns)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__measure *measure = &warmup->measures[device];
    struct cox__device *of = &session->devices.list[device];
    const uint64_t submit_ns = warmup->submit_ns[device];
    const bool blocks = submit_ns > BLOCKING_NS && submit_ns > ns / 2;
    const bool compiled = measure->state == COX__MEASURE_COMPILE;

    if (!compiled && !measure->only)
        note_blocking(session, device, blocks);
    if (!compiled || !measure->known_ns)
        cox__timing_expect(of, warmup->pass, measure->rows, (double)ns * measure->rows / rows);

    const uint64_t whole_ns = cox__measure_learn(measure, rows, ns, blocks);
    if (!whole_ns)
        return;

    pthread_mutex_lock(&session->lock);
    of->passes[warmup->pass].single_device_ns = whole_ns;
    pthread_mutex_unlock(&session->lock);
}

/* The device has run the pass whole, and its results are in the host's memory, or in its own. */
static void note_whole(struct cox__warmup *warmup, const struct cox__device *device, uint32_t index)
{
    warmup->ran_whole |= UINT32_C(1) << index;
    if (!device->resident && warmup->filled <= warmup->pass)
        warmup->filled = warmup->pass + 1;
}

/* Note what the finished run showed. */
static void learn_from_run(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    const struct cox__frame *frame = warmup->frame;
    const uint32_t failed_before = warmup->failed;

    cox__frame_report(session, warmup->frame);
    warmup->frame->started = false;

    for (uint32_t d = 0; d < session->devices.count; d++) {
        const struct cox_band_report sum = sum_of_bands(frame, d);
        if (sum.status)
            warmup->failed |= UINT32_C(1) << d;
        if (sum.status || !sum.rows || warmup->run == COX__WARMUP_FILL)
            continue;

        learn_time(session, d, sum.rows, sum.end_ns - sum.submit_ns);
        if (sum.rows == cox__frame_pass(frame)->rows)
            note_whole(warmup, &session->devices.list[d], d);
    }

    if (warmup->run == COX__WARMUP_FILL && warmup->failed == failed_before)
        warmup->filled++;
    publish(session, false);
}

static bool submit_run(struct cox_session *session, struct cox__frame *frame)
{
    bool progress = cox__queue_submit(session, frame, 0);
    return cox__queue_submit_blocking(session, frame, 0) || progress;
}

/* ---- the next run ---- */

static void start_frame(struct cox_session *session, enum cox__warmup_run run, uint32_t pass)
{
    struct cox__frame *frame = session->warmup.frame;

    session->warmup.run = run;
    cox__frame_start(session->runtime, frame, COX__FRAME_WARMUP);
    cox__frame_begin_pass(session->runtime, frame, pass);
    frame->passes[pass].reason = COX_REASON_WARMUP;

    /* In a fill, and without memory for lists of rows, all rows go through the host's memory. */
    if (run != COX__WARMUP_FILL &&
        !cox__residency_start_warmup(&session->devices, frame, session->warmup.holders))
        session->warmup.holders = 0;
}

/* Add a band and submit it. The driver may compile or compute in that call. */
static void run_band(struct cox_session *session, uint32_t device, uint32_t first_row,
                     uint32_t rows)
{
    struct cox__warmup *warmup = &session->warmup;
    const uint64_t before_ns = cox__engine_now(session->runtime);

    if (!cox__frame_add(&session->devices, warmup->frame, device, first_row, rows, 0))
        warmup->failed |= UINT32_C(1) << device;

    submit_run(session, warmup->frame);
    warmup->submit_ns[device] = cox__engine_now(session->runtime) - before_ns;
}

static bool needs_slice(const struct cox_session *session, uint32_t device)
{
    return takes_part(session, device) &&
           session->warmup.measures[device].state <= COX__MEASURE_SLICE;
}

/* Run a slice in the middle of a part of the rows. */
static void run_slice(struct cox_session *session, uint32_t device, uint32_t part, uint32_t parts)
{
    const struct cox__warmup *warmup = &session->warmup;
    const struct cox__pass *pass = &session->pipeline.passes[warmup->pass];
    const uint32_t unit = pass->row_alignment, slice = warmup->measures[device].slice;
    const uint32_t begin = part_begin(pass, part, parts);
    const uint32_t most = part_begin(pass, part + 1, parts) - begin;
    const uint32_t units = (slice + unit - 1) / unit;

    const uint32_t first_row = (begin + (most - cox__min_u32(units, most)) / 2) * unit;
    run_band(session, device, first_row, cox__min_u32(slice, pass->rows - first_row));
}

/* Run a slice on each device that needs one. Devices that may compute inside the enqueue call come
 * last, so that the others are at work by then. */
static bool begin_slices(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    const struct cox__pass *pass = &session->pipeline.passes[warmup->pass];
    const uint32_t parts = part_count(session, pass);
    uint32_t devices = 0, part_of[COX_DEVICES_MAX], used = 0, place = 0;

    for (uint32_t d = 0; d < session->devices.count; d++) {
        if (!takes_part(session, d))
            continue;

        const uint32_t part = place++ % parts;
        if (!needs_slice(session, d) || used >> part & 1)
            continue;

        part_of[d] = part;
        used |= UINT32_C(1) << part;
        devices |= UINT32_C(1) << d;
    }

    if (!devices)
        return false;

    start_frame(session, COX__WARMUP_SLICES, warmup->pass);
    for (uint32_t i = 0; i < 2 * session->devices.count; i++) {
        const uint32_t d = i % session->devices.count;
        const bool last = i >= session->devices.count;
        if (devices >> d & 1 && session->devices.list[d].blocks_in_submit == last)
            run_slice(session, d, part_of[d], parts);
    }

    return true;
}

static bool begin_whole(struct cox_session *session)
{
    const struct cox__warmup *warmup = &session->warmup;
    uint32_t device = 0;

    while (device < session->devices.count &&
           (!takes_part(session, device) || warmup->measures[device].state != COX__MEASURE_WHOLE))
        device++;
    if (device == session->devices.count)
        return false;

    start_frame(session, COX__WARMUP_WHOLE, warmup->pass);
    run_band(session, device, 0, session->pipeline.passes[warmup->pass].rows);

    return true;
}

/* Rows per nanosecond of a device, for a fill. */
static double rate(const struct cox_session *session, uint32_t device, uint32_t pass)
{
    const uint64_t ns = session->devices.list[device].passes[pass].single_device_ns;
    if (!takes_part(session, device))
        return 0;

    return 1 / (double)cox__max_u64(ns, 1);
}

/* Whether a device needs results of earlier passes that are not there. */
static bool needs_fill(const struct cox_session *session)
{
    const struct cox__warmup *warmup = &session->warmup;
    bool any = false;

    for (uint32_t d = 0; d < session->devices.count; d++)
        any = any || (takes_part(session, d) && !(warmup->holders >> d & 1) &&
                      warmup->measures[d].state != COX__MEASURE_DONE);

    return any && warmup->filled < warmup->pass;
}

/* Run an earlier pass on all devices. Each gets rows by its speed. */
static bool begin_fill(struct cox_session *session)
{
    if (!needs_fill(session))
        return false;

    const uint32_t number = session->warmup.filled;
    const struct cox__pass *pass = &session->pipeline.passes[number];
    const uint32_t unit = pass->row_alignment, units = (pass->rows + unit - 1) / unit;
    double sum = 0, before = 0;
    uint32_t first = 0;

    start_frame(session, COX__WARMUP_FILL, number);
    for (uint32_t d = 0; d < session->devices.count; d++)
        sum += rate(session, d, number);

    for (uint32_t d = 0; d < session->devices.count; d++) {
        before += rate(session, d, number);
        const uint32_t end = cox__min_u32((uint32_t)(before / sum * units + 0.5) * unit,
                                          pass->rows);
        if (end > first)
            run_band(session, d, first, end - first);
        first = cox__max_u32(first, end);
    }

    return true;
}

/* Begin the next run. False: all runs are over. */
static bool begin_run(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;

    while (device_count(session) && warmup->pass < session->pipeline.pass_count) {
        if (!warmup->begun)
            begin_pass(session);
        if (begin_fill(session) || begin_slices(session) || begin_whole(session))
            return true;

        warmup->holders &= warmup->ran_whole;
        warmup->pass++;
        warmup->begun = false;
    }

    return false;
}

bool cox__warmup_pause(struct cox_session *session)
{
    const bool asked = session->warmup.state == COX__WARMUP_BORROWED_ASKED;
    if (session->warmup.state != COX__WARMUP_BORROWED && !asked)
        return true;
    if (session->warmup.frame->started) {
        submit_run(session, session->warmup.frame);
        if (session->warmup.frame->unfinished)
            return false;
        learn_from_run(session);
    }

    give_back_buffers(session->runtime, &session->warmup);
    cox__transition_warmup(&session->warmup, asked ? COX__WARMUP_ASKED : COX__WARMUP_WAITING);

    return true;
}

bool cox__warmup_step(struct cox_session *session, const struct cox__frame *first)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__frame *frame = warmup->frame;

    if (frame->started) {
        bool progress = submit_run(session, frame);
        if (frame->unfinished)
            return progress;

        learn_from_run(session);
    } else if (warmup->state == COX__WARMUP_ASKED) {
        take_given(warmup);
    } else if (warmup->state == COX__WARMUP_WAITING) {
        cox_status status = borrow_buffers(session->runtime->backend, warmup, first);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "no warm-up: %s",
                     cox_status_text(status));
            finish(session);
            return true;
        }
    }

    if (!begin_run(session))
        finish(session);

    return true;
}
