/* Submits bands part by part, flushes queues and notices completion.
 *
 * Any backend call here may hang. The watchdog then revokes the engine lock, and another thread
 * goes on (engine/failure/watchdog.h). So the engine's data must be consistent before each call.
 *
 * Owns the slots' states and jobs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"
#include "base/bounds.h"
#include "device.h"
#include "event.h"
#include "frame.h"
#include "engine/failure/residency.h"
#include "timing.h"
#include "transitions.h"

#include <string.h>

/* Tell the watchdog which instance the next driver calls are about, and how long one may take. */
static void expect_calls(struct cox_session *session, const struct cox__queue *queue)
{
    cox__watchdog_expect(session->runtime->watchdog, session, queue->instance,
                         cox__timing_call_limit_ns(session, queue->device));
}

/* ---- submit ---- */

/* A longer enqueue time moves the usual one by this part, and counts as at most twice as long: the
 * first calls of a driver take milliseconds. */
#define ENQUEUE_PART 8

static struct cox__queue_slot *free_slot(const struct cox__queue *queue)
{
    for (uint32_t i = 0; i < queue->slot_count; i++)
        if (queue->slots[i].state == COX__SLOT_FREE)
            return &queue->slots[i];
    return NULL;
}

/* Whether no band is under way, apart from transfers. */
static bool is_empty(const struct cox__queue *queue)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < queue->slot_count; i++)
        busy += queue->slots[i].state != COX__SLOT_FREE &&
                queue->slots[i].job.kind == COX__JOB_BAND;
    return busy == 0;
}

/* The slots of bands under way that copy rows to the device which bands of the frame may read, a
 * bit for each. Frames share only buffers that stay. */
static uint32_t find_copiers(const struct cox__queue *queue, const struct cox__frame *frame)
{
    uint32_t copiers = 0;
    for (uint32_t i = 0; i < queue->slot_count; i++) {
        const struct cox__queue_slot *slot = &queue->slots[i];
        const bool shares = slot->job.frame == frame || frame->pipeline->stays;
        const bool copies = slot->job.kind == COX__JOB_BAND && slot->job.range_count;
        if (slot->state != COX__SLOT_FREE && copies && shares)
            copiers |= UINT32_C(1) << i;
    }
    return copiers;
}

/* Whether a transfer leaves a slot for the device's own band. */
static bool has_room_for_transfer(const struct cox__queue *queue)
{
    uint32_t free = 0;
    for (uint32_t i = 0; i < queue->slot_count; i++)
        free += queue->slots[i].state == COX__SLOT_FREE;
    return free > 1 || queue->slot_count == 1;
}

/* The host memory that the slot's job uses for a binding; NULL = none. */
static struct cox__mem *mem_of(const struct cox__spare *spare, const struct cox__queue_slot *slot,
                               const struct cox__frame *frame, uint32_t binding)
{
    const struct cox__job *job = &slot->job;

    if (job->kind != COX__JOB_BAND)
        return binding == job->ranges[0].binding ? frame->mems[binding] : NULL;
    if (!cox__is_shared(&cox__frame_pass(frame)->bindings[binding]))
        return NULL;
    if (slot->on_spare)
        return spare->mems[binding];

    return frame->mems[binding];
}

/* Note which host memory the slot's job uses, and which bindings it writes there. */
static void fill_memory(const struct cox__spare *spare, struct cox__queue_slot *slot,
                        const struct cox__frame *frame)
{
    const struct cox__job *job = &slot->job;
    const struct cox__pass *pass = cox__frame_pass(frame);

    for (uint32_t i = 0; i < pass->binding_count; i++)
        slot->mems[i] = mem_of(spare, slot, frame, i);

    /* A device that hangs may still write to memory of the application's that lies on it, too. */
    if (job->kind != COX__JOB_BAND)
        slot->written = UINT32_C(1) << job->ranges[0].binding;
    else
        slot->written = pass->written & ~(job->resident & ~job->out & ~job->homed);

    for (uint32_t b = 0; b < job->back_count; b++)
        slot->written |= UINT32_C(1) << job->back[b].binding;
}

/* Prepare the slot for a band. False: rows that it needs are lost, and the frame starts over. */
static bool fill_slot(struct cox_session *session, struct cox__queue_slot *slot,
                      struct cox__frame *frame, uint32_t band)
{
    const bool check = frame->bands[band].kind == COX__BAND_CHECK;
    struct cox__job *job = &slot->job;

    slot->on_spare = check || frame->kind == COX__FRAME_SHADOW;
    memcpy(slot->params, frame->params, session->pipeline.params_bytes);
    slot->deadline_ns = UINT64_MAX;
    slot->frame_index = frame->index;
    slot->posted_early = false;
    slot->copiers = 0;
    if (!cox__band_is_transfer(&frame->bands[band])) /* it moves rows of bands that have ended */
        slot->copiers = find_copiers(slot->queue, frame);

    job->frame = frame;
    job->pass = frame->pass;
    job->band = band;
    job->first_row = frame->reports[band].first_row;
    job->rows = frame->reports[band].rows;
    job->alone = is_empty(slot->queue);
    job->polled = session->settings.polls_closely &&
                  session->devices.list[slot->queue->device].polled;
    job->failing = false;
    job->kernel_ns = job->copy_in_ns = job->copy_out_ns = 0;
    job->clock_error_ns = UINT64_MAX;
    atomic_store(&job->end_ns, 0);

    if (!cox__residency_fill(session, frame, job))
        return false;

    fill_memory(&session->spare, slot, frame);

    return true;
}

/* Note how long enqueueing a part of a band took, since `begin_ns`. */
static void note_enqueued(struct cox_session *session, const struct cox__queue *queue,
                          uint64_t begin_ns)
{
    struct cox__device *device = &session->devices.list[queue->device];
    const uint64_t ns = cox__elapsed_ns(begin_ns, cox__engine_now(session->runtime));
    const uint64_t usual_ns = device->enqueue_ns;

    if (!usual_ns)
        device->enqueue_ns = ns;
    else if (ns < usual_ns)
        device->enqueue_ns = (usual_ns + ns) / 2;
    else
        device->enqueue_ns += cox__min_u64(ns - usual_ns, usual_ns) / ENQUEUE_PART;
}

/* Submit a band, or its first part. False: the device's queue is full. */
static bool submit_band(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                        uint32_t sharing)
{
    struct cox_band_report *report = &frame->reports[band];
    struct cox__device *device = &session->devices.list[report->device];
    struct cox__backend *backend = session->runtime->backend;
    struct cox__queue *queue = device->queue;
    struct cox__queue_slot *slot = free_slot(queue);

    if (!slot)
        return false;
    if (!fill_slot(session, slot, frame, band))
        return true;

    slot->job.pieces = cox__timing_pieces(session, queue->device, &slot->job, sharing);
    slot->submit_ns = report->submit_ns = cox__engine_now(session->runtime);
    cox__transition_slot(slot, COX__SLOT_BUSY);
    cox__transition_band(&frame->bands[band], COX__BAND_QUEUED);
    expect_calls(session, queue);

    const cox_status status = backend->ops->job_submit(backend, &slot->job);
    if (status) {
        cox__transition_slot(slot, COX__SLOT_FREE);
        cox__transition_band(&frame->bands[band], COX__BAND_PLANNED); /* nothing of it ran */
        cox__device_fail(session, queue->device, status);
        return true;
    }

    note_enqueued(session, queue, slot->submit_ns);
    cox__timing_plan_poll(device, slot);
    queue->unflushed = true;
    queue->unfinished |= slot->job.unfinished;

    return true;
}

/* Whether a band may be submitted now. A device on probation gets only the band of its shadow
 * run. */
static bool may_submit(const struct cox__devices *devices, const struct cox__frame *frame,
                       uint32_t band, uint32_t reserved, bool blocking)
{
    const uint32_t d = frame->reports[band].device;
    const struct cox__device *device = &devices->list[d];
    const bool probation = device->state == COX_DEVICE_PROBATION &&
                           frame->kind == COX__FRAME_SHADOW;

    return frame->bands[band].state == COX__BAND_PLANNED && device->blocks_in_submit == blocking &&
           !(reserved >> d & 1) && (cox__device_is_active(device) || probation) &&
           cox__residency_is_ready(frame, band);
}

/* The devices that can get bands of the frame now, a bit each. */
static uint32_t ready_devices(const struct cox__devices *devices, const struct cox__frame *frame,
                              uint32_t reserved)
{
    uint32_t ready = 0;

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (may_submit(devices, frame, b, reserved, false))
            ready |= UINT32_C(1) << frame->reports[b].device;

    return ready;
}

static uint32_t count_bits(uint32_t set)
{
    uint32_t count = 0;
    for (; set; set &= set - 1)
        count++;
    return count;
}

/* The device of a set, which is not empty, that enqueues fastest. */
static uint32_t fastest_enqueuer(const struct cox__devices *devices, uint32_t set)
{
    uint32_t fastest = UINT32_MAX;

    for (uint32_t d = 0; d < devices->count; d++)
        if (set >> d & 1 && (fastest == UINT32_MAX ||
                             devices->list[d].enqueue_ns < devices->list[fastest].enqueue_ns))
            fastest = d;

    return fastest;
}

/* Submit the transfers of a device, or its other bands. `sharing`: devices that get bands in this
 * turn. */
static bool submit_bands(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                         uint32_t reserved, uint32_t sharing, bool transfers)
{
    bool progress = false;

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (frame->reports[b].device == device &&
            cox__band_is_transfer(&frame->bands[b]) == transfers &&
            (!transfers || has_room_for_transfer(session->devices.list[device].queue)) &&
            may_submit(&session->devices, frame, b, reserved, false))
            progress |= submit_band(session, frame, b, sharing);

    return progress;
}

static bool takes_calls(const struct cox__queue *queue)
{
    const enum cox__queue_state state = atomic_load(&queue->state);
    return !queue->stuck && (state == COX__QUEUE_LIVE || state == COX__QUEUE_DRAINING);
}

static void flush_queue(struct cox_session *session, struct cox__queue *queue)
{
    struct cox__backend *backend = session->runtime->backend;
    if (!queue->unflushed || !takes_calls(queue))
        return;

    queue->unflushed = false;
    expect_calls(session, queue);
    backend->ops->instance_flush(backend, queue->instance);
    if (atomic_load(&queue->state) == COX__QUEUE_LIVE)
        cox__timing_plan_deadlines(session, queue);
}

/* About how long it takes to enqueue what is left of all bands. */
static uint64_t unfinished_ns(struct cox_session *session)
{
    uint64_t ns = 0;

    for (struct cox__queue_walk walk = {0}; cox__queue_next(session, &walk);)
        for (uint32_t i = 0; i < walk.queue->slot_count; i++) {
            const struct cox__queue_slot *slot = &walk.queue->slots[i];
            if (walk.queue->unfinished && slot->state == COX__SLOT_BUSY && slot->job.unfinished)
                ns += slot->job.pieces * session->devices.list[walk.queue->device].enqueue_ns;
        }

    return ns;
}

/* Each device gets the first part of its bands before any device gets the next one, so all devices
 * begin early. A device that enqueues fast does not wait for slower ones. A device that enqueues
 * more slowly than all that is left of the others comes after that. Transfers come first, because
 * bands of other devices wait for them. */
bool cox__queue_submit(struct cox_session *session, struct cox__frame *frame, uint32_t reserved)
{
    bool progress = false;
    uint32_t ready = ready_devices(&session->devices, frame, reserved);
    const uint32_t sharing = count_bits(ready);

    while (ready) {
        const uint32_t d = fastest_enqueuer(&session->devices, ready);
        struct cox__queue *queue = session->devices.list[d].queue;
        ready &= ~(UINT32_C(1) << d);

        if (session->devices.list[d].enqueue_ns > unfinished_ns(session))
            cox__queue_flush(session);
        progress |= submit_bands(session, frame, d, reserved, sharing, true);
        progress |= submit_bands(session, frame, d, reserved, sharing, false);
        flush_queue(session, queue);
    }

    cox__queue_flush(session);

    return progress;
}

bool cox__queue_submit_blocking(struct cox_session *session, struct cox__frame *frame,
                                uint32_t reserved)
{
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (may_submit(&session->devices, frame, b, reserved, true) &&
            submit_band(session, frame, b, 1)) {
            cox__queue_flush(session);
            return true;
        }

    return false;
}

/* Enqueue and flush the next part of each job of a queue. */
static void continue_jobs(struct cox_session *session, struct cox__queue *queue)
{
    struct cox__backend *backend = session->runtime->backend;
    bool unfinished = false;

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (!cox__slot_can_be_polled(slot) || !slot->job.unfinished)
            continue;

        const uint64_t begin_ns = cox__engine_now(session->runtime);
        queue->unflushed = true;
        expect_calls(session, queue);
        backend->ops->job_continue(backend, &slot->job);
        note_enqueued(session, queue, begin_ns);
        unfinished |= slot->job.unfinished;
    }

    queue->unfinished = unfinished;
    flush_queue(session, queue);
}

/* Returns whether a queue was continued. */
static bool continue_queues(struct cox_session *session)
{
    bool any = false;
    for (struct cox__queue_walk walk = {0}; cox__queue_next(session, &walk);) {
        if (!walk.queue->unfinished || !takes_calls(walk.queue))
            continue;

        continue_jobs(session, walk.queue);
        any = true;
    }

    return any;
}

/* Each device gets the next part of its bands before any device gets the one after. Enqueueing a
 * whole band of eight kernels took 120 us on an NVIDIA H200, and the next device had nothing to do
 * for as long. */
void cox__queue_flush(struct cox_session *session)
{
    for (struct cox__queue_walk walk = {0}; cox__queue_next(session, &walk);)
        flush_queue(session, walk.queue);
    while (continue_queues(session))
        continue;
}

/* ---- completion ---- */

static void band_ended_well(struct cox_session *session, struct cox__queue_slot *slot)
{
    struct cox__job *job = &slot->job;
    struct cox__frame *frame = job->frame;
    struct cox_band_report *report = &frame->reports[job->band];
    struct cox__device *device = &session->devices.list[slot->queue->device];
    const uint64_t now = cox__engine_now(session->runtime);
    const uint64_t end = atomic_load(&job->end_ns);
    const bool plausible = end >= slot->submit_ns && end <= now;

    cox__timing_note_end(device, slot, report, plausible ? end : now);
    if (frame->kind == COX__FRAME_WARMUP)
        cox__timing_note_launch(device, job->pass);
    else if (job->kind == COX__JOB_BAND)
        cox__timing_learn(device, job->pass, report);
    else if (job->kind == COX__JOB_FETCH)
        cox__residency_learn_fetch(&session->residency, &session->pipeline, job,
                                   cox__elapsed_ns(slot->submit_ns, report->end_ns));
    device->last_done_ns = now;

    report->kernel_ns = 0;
    if (job->kernel_ns <= report->end_ns - slot->submit_ns)
        report->kernel_ns = job->kernel_ns;
    report->copy_in_ns = job->copy_in_ns;
    report->copy_out_ns = job->copy_out_ns;
    report->noticed_ns = cox__max_u64(now, report->end_ns);
    report->clock_error_ns = report->end_ns == end ? job->clock_error_ns : UINT64_MAX;

    cox__timing_advance_deadlines(slot->queue, report->end_ns);
    cox__timing_plan_polls(device, slot->queue, report->end_ns);
    cox__residency_note_done(frame, job, slot->queue->device);

    if (job->kind == COX__JOB_BAND &&
        !cox__frame_save_partials(session->runtime->backend, frame, job->band, job)) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "frame %llu: no memory for a band's partial result",
                 (unsigned long long)frame->index);
        frame->status = COX_E_NOMEM;
    }

    if (frame->bands[job->band].kind != COX__BAND_CHECK && report->end_ns > frame->end_ns)
        frame->end_ns = report->end_ns;

    cox__frame_end_band(frame, job->band, COX_OK);
    cox__event_emit(&session->events, (struct cox__event){.kind = COX__EVENT_BAND_DONE,
                                                          .frame = frame,
                                                          .band = job->band});
}

static void band_failed(struct cox_session *session, struct cox__queue_slot *slot,
                        cox_status status)
{
    struct cox__frame *frame = slot->job.frame;
    struct cox__device *device = &session->devices.list[slot->queue->device];
    struct cox_band_report *report = &frame->reports[slot->job.band];

    cox__timing_note_end(device, slot, report, cox__engine_now(session->runtime));
    report->noticed_ns = report->end_ns;
    cox__timing_plan_polls(device, slot->queue, report->end_ns);

    cox__frame_end_band(frame, slot->job.band, status);
    cox__event_emit(&session->events, (struct cox__event){.kind = COX__EVENT_BAND_FAILED,
                                                          .frame = frame,
                                                          .band = slot->job.band,
                                                          .status = status});
}

/* Free the slot of a band that has ended. Bands that have waited for it are due. */
static void free_ended(struct cox__queue_slot *slot)
{
    const struct cox__queue *queue = slot->queue;
    const uint32_t bit = UINT32_C(1) << (slot - queue->slots);

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *other = &queue->slots[i];
        if (other->copiers == bit && other->posted_early)
            other->poll_ns = 0;
        other->copiers &= ~bit;
    }
    cox__transition_slot(slot, COX__SLOT_FREE);
}

/* Poll the slot's copiers until something changes. Returns whether it has. */
static bool poll_copiers(struct cox_session *session, const struct cox__queue_slot *slot)
{
    const struct cox__queue *queue = slot->queue;

    for (uint32_t i = 0; i < queue->slot_count; i++)
        if (slot->copiers >> i & 1 && cox__slot_can_be_polled(&queue->slots[i]) &&
            cox__queue_poll(session, &queue->slots[i], true))
            return true;

    return false;
}

static bool poll_band(struct cox_session *session, struct cox__queue_slot *slot, bool posted)
{
    struct cox__backend *backend = session->runtime->backend;
    struct cox__queue *queue = slot->queue;

    expect_calls(session, queue);

    const enum cox__job_state state = backend->ops->job_poll(backend, &slot->job);
    const bool live = slot->state == COX__SLOT_BUSY;
    if (state == COX__JOB_RUNNING && (!slot->job.failing || !live))
        return false;
    if (state == COX__JOB_RUNNING) {
        /* A command has failed. The band fails when its other commands have ended. */
        cox__device_fail(session, queue->device, COX_E_DEVICE_LOST);
        return true;
    }

    free_ended(slot);
    if (live) {
        if (!posted && !slot->posted_early) /* the driver's posts are late */
            session->devices.list[queue->device].polled = true;
        if (state == COX__JOB_DONE)
            cox__device_worked(&session->recovery);
    }

    /* A band on a lost device may have read rows that were never copied there, because the band
     * that should have copied them failed. Its result does not count. */
    const bool lost = !live && slot->job.resident;
    if (state == COX__JOB_DONE && !queue->convicted && !lost) {
        band_ended_well(session, slot);
        return true;
    }

    const cox_status status = queue->convicted ? COX_E_MISMATCH : COX_E_DEVICE_LOST;
    if (live)
        cox__device_fail(session, queue->device, status);
    band_failed(session, slot, status);

    return true;
}

/* A device may go on after a failed copy, and a later band then reads rows that never arrived. So a
 * band ends well only after the copiers of its rows have. They are polled first, and the step
 * handles their failure before it polls this band. */
bool cox__queue_poll(struct cox_session *session, struct cox__queue_slot *slot, bool posted)
{
    COX_INVARIANT(cox__slot_can_be_polled(slot));

    const bool depends = slot->job.resident && slot->state == COX__SLOT_BUSY;
    if (depends && poll_copiers(session, slot)) {
        slot->posted_early |= posted;
        slot->poll_ns = 0;
        return true;
    }
    if (depends && slot->copiers)
        return false;

    return poll_band(session, slot, posted);
}

bool cox__queue_check_deadline(struct cox_session *session, struct cox__queue_slot *slot,
                               uint64_t now_ns)
{
    if (now_ns < slot->deadline_ns)
        return false;
    if (slot->state == COX__SLOT_ORPHANED) { /* reaper.c abandons it */
        session->recovery.attention = true;
        return false;
    }
    if (!cox__timing_is_overdue(session, slot, now_ns))
        return false;

    session->recovery.attention = true;

    const struct cox__job *job = &slot->job;
    cox__log(&session->runtime->log, COX_LOG_WARN,
             "%s: rows %u..%u of frame %llu exceed the device's timeout",
             session->devices.list[slot->queue->device].info.name, job->first_row,
             job->first_row + job->rows - 1, (unsigned long long)slot->frame_index);
    cox__device_fail(session, slot->queue->device, COX_E_TIMEOUT);

    return true;
}
