/* A device that fails loses its queue: a device instance with queue slots, some of which may still hold bands. The
 * queue drains: bands that end before their deadline count. What has not ended by then is abandoned, and the memory
 * that the device may still write to is tainted. Then the worker thread destroys the instance, since a driver may not
 * return from that.
 *
 * The device is tried again after a pause: the worker thread creates a new instance on a context of its own. It is on
 * probation (probation.c) until it has done some rows.
 *
 * Owns the session's lost queues and the devices' `rebuild`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reaper.h"
#include "buffer_use.h"
#include "device_state.h"
#include "event.h"
#include "frame.h"
#include "timing.h"
#include "transitions.h"

#include <stdlib.h>

/* For so long a device gets no second instance beside a lost one: drivers keep megabytes for each context. */
#define BESIDE_NS 500000000ull

/* ---- losing an instance ---- */

static void orphan_slots(struct cox_session *session, struct cox__queue *queue)
{
    const uint64_t drain_ns = cox__later(cox__engine_now(session), cox__session_timeout_ns(session));
    for (uint32_t i = 0; i < session->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state == COX__SLOT_FREE)
            continue;
        cox__slot_set_state(slot, COX__SLOT_ORPHANED);
        if (drain_ns < slot->deadline_ns)
            slot->deadline_ns = drain_ns;
    }
}

void cox__reaper_take(struct cox_session *session, uint32_t device, cox_status status)
{
    struct cox__device *of = &session->devices[device];
    struct cox__queue *queue = of->queue;
    if (!queue)
        return;
    COX_INVARIANT(of->state == COX_DEVICE_DRAINING);
    of->queue = NULL;
    of->timing = (struct cox__timing){0};
    of->ended = 0;
    cox__queue_set_state(queue, COX__QUEUE_DRAINING);
    orphan_slots(session, queue);
    queue->convicted = status == COX_E_MISMATCH;
    queue->unflushed = !queue->stuck; /* flushed once more: the driver may have refused the last flush */
    queue->rebuild_after_ns = cox__later(cox__engine_now(session), BESIDE_NS);
    queue->next = session->lost_queues;
    session->lost_queues = queue;
    cox__device_plan_retry(session, device, true);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s leaves the session: %s; it is tried again in %llu ms",
             of->info.name, cox_status_text(status), (unsigned long long)(of->pause_ns / 1000000));
}

/* Nothing of the queue is waited for any more. */
static void abandon(struct cox_session *session, struct cox__queue *queue)
{
    struct cox__backend *backend = session->runtime->backend;
    cox__queue_set_state(queue, COX__QUEUE_ABANDONED);
    backend->ops->instance_abandon(backend, queue->instance);
    for (uint32_t i = 0; i < session->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        const struct cox__job *job = &slot->job;
        if (slot->state == COX__SLOT_FREE)
            continue;
        cox__slot_set_state(slot, COX__SLOT_FREE);
        if (slot->on_scratch) /* in use, so the worker thread is not at it */
            cox__scratch_set_state(&session->scratch, COX__SCRATCH_TAINTED);
        for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
            cox__buffer_taint(session->runtime, slot->mems[b]);
        cox__log(&session->runtime->log, COX_LOG_WARN, "%s: rows %u..%u of frame %llu are abandoned",
                 session->devices[queue->device].info.name, job->first_row, job->first_row + job->rows - 1,
                 (unsigned long long)slot->frame_index);
        cox__frame_end_band(job->frame, job->band, COX_E_TIMEOUT);
        cox__event_emit(session, (struct cox__event){.kind = COX__EVENT_BAND_FAILED,
                                                     .frame = job->frame,
                                                     .band = job->band,
                                                     .status = COX_E_TIMEOUT});
    }
}

static void destroy_task(void *ctx)
{
    struct cox__queue *queue = ctx;
    struct cox_runtime *runtime = queue->session->runtime;
    struct cox__loop *loop = runtime->loop;
    runtime->backend->ops->instance_destroy(runtime->backend, queue->instance);
    cox__queue_set_state(queue, COX__QUEUE_GONE); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

/* The thread that was kept in the driver is back: the instance may be polled again, and destroyed. */
static void release_stuck(struct cox_session *session, struct cox__queue *queue, uint64_t now_ns)
{
    cox__watchdog_release(session->runtime->watchdog, queue->stuck);
    queue->stuck = NULL;
    queue->unflushed = true;
    for (uint32_t i = 0; i < session->slot_count; i++)
        queue->slots[i].poll_ns = now_ns;
}

/* Whether the queue holds bands; *expired: one has missed its deadline. */
static bool holds_bands(const struct cox_session *session, const struct cox__queue *queue, uint64_t now_ns,
                        bool *expired, uint64_t *next_ns)
{
    bool any = false;
    for (uint32_t i = 0; i < session->slot_count; i++) {
        const struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state == COX__SLOT_FREE)
            continue;
        any = true;
        *expired |= now_ns >= slot->deadline_ns;
        *next_ns = slot->deadline_ns < *next_ns ? slot->deadline_ns : *next_ns;
    }
    return any;
}

static bool reap(struct cox_session *session, struct cox__queue *queue, uint64_t now_ns, uint64_t *next_ns)
{
    bool expired = false, progress = false;
    if (queue->stuck && atomic_load(&queue->stuck->returned)) {
        release_stuck(session, queue, now_ns);
        progress = true;
    }
    const bool holds = holds_bands(session, queue, now_ns, &expired, next_ns);
    if (expired) {
        abandon(session, queue);
        progress = true;
    }
    if ((holds && !expired) || queue->stuck)
        return progress;
    cox__queue_set_state(queue, COX__QUEUE_DESTROYING);
    if (!cox__worker_run(session->runtime->worker, destroy_task, queue))
        cox__queue_set_state(queue, COX__QUEUE_ABANDONED); /* no thread for it: tried again in the next step */
    return progress;
}

bool cox__reaper_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns)
{
    bool progress = false;
    for (struct cox__queue *queue = session->lost_queues; queue; queue = queue->next) {
        const enum cox__queue_state state = atomic_load(&queue->state);
        if (state == COX__QUEUE_DRAINING || state == COX__QUEUE_ABANDONED)
            progress |= reap(session, queue, now_ns, next_ns);
    }
    return progress;
}

bool cox__reaper_has_gone(const struct cox_session *session)
{
    for (const struct cox__queue *queue = session->lost_queues; queue; queue = queue->next)
        if (atomic_load(&queue->state) == COX__QUEUE_GONE)
            return true;
    return false;
}

void cox__reaper_free(struct cox_session *session)
{
    for (struct cox__queue **link = &session->lost_queues; *link;) {
        struct cox__queue *queue = *link;
        if (atomic_load(&queue->state) != COX__QUEUE_GONE) {
            link = &queue->next;
            continue;
        }
        *link = queue->next;
        cox__queue_free(queue);
    }
}

/* ---- rebuilding ---- */

static void rebuild_task(void *ctx)
{
    struct cox__rebuild *rebuild = ctx;
    struct cox_session *session = rebuild->session;
    struct cox__backend *backend = session->runtime->backend;
    struct cox__loop *loop = session->runtime->loop;
    rebuild->status = backend->ops->instance_create(backend, rebuild->device, &session->pipeline, session->slot_count,
                                                    true, &rebuild->instance, &rebuild->max_rows);
    atomic_store(&rebuild->done, true); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

/* Until when the device's lost queues keep it from being rebuilt: drivers keep much memory for each context, so that a
 * device gets no second one beside the first for a while. 0 = not at all. */
static uint64_t rebuild_held_ns(const struct cox_session *session, uint32_t device)
{
    uint64_t at_ns = 0;
    if (!cox__device_any_active(session))
        return 0;
    for (const struct cox__queue *queue = session->lost_queues; queue; queue = queue->next)
        if (queue->device == device && queue->rebuild_after_ns > at_ns)
            at_ns = queue->rebuild_after_ns;
    return at_ns;
}

static void begin_rebuild(struct cox_session *session, uint32_t device)
{
    struct cox__device *of = &session->devices[device];
    cox__device_set_state(session, device, COX_DEVICE_REBUILDING);
    of->rebuild = calloc(1, sizeof *of->rebuild);
    if (of->rebuild) {
        of->rebuild->session = session;
        of->rebuild->device = of->device;
        if (cox__worker_run(session->runtime->worker, rebuild_task, of->rebuild))
            return;
        free(of->rebuild);
        of->rebuild = NULL;
    }
    cox__device_set_state(session, device, COX_DEVICE_QUARANTINED);
    cox__device_plan_retry(session, device, false);
}

/* A new instance was made, or could not be had. */
static void end_rebuild(struct cox_session *session, uint32_t device)
{
    struct cox__device *of = &session->devices[device];
    struct cox__rebuild *rebuild = of->rebuild;
    struct cox__backend *backend = session->runtime->backend;
    cox_status status = rebuild->status;
    of->rebuild = NULL;
    if (status == COX_OK && (status = cox__device_attach(session, device, rebuild->instance, rebuild->max_rows)))
        backend->ops->instance_destroy(backend, rebuild->instance);
    free(rebuild);
    if (status) {
        cox__device_set_state(session, device, COX_DEVICE_QUARANTINED);
        cox__device_plan_retry(session, device, false);
        cox__log(&session->runtime->log, COX_LOG_INFO, "%s does not come back: %s; it is tried again in %llu ms",
                 of->info.name, cox_status_text(status), (unsigned long long)(of->pause_ns / 1000000));
        return;
    }
    if (of->info.mode == COX_MODE_SHARED) { /* its context is its own now */
        pthread_mutex_lock(&session->lock);
        of->info.mode = COX_MODE_MAPPED;
        pthread_mutex_unlock(&session->lock);
    }
    cox__device_set_state(session, device, COX_DEVICE_PROBATION);
}

/* On a virtual clock an idle session would go on for ever. */
static void look_again(const struct cox_session *session, uint64_t at_ns, uint64_t *next_ns)
{
    if ((session->order_count || !session->runtime->backend->ops->advance) && at_ns < *next_ns)
        *next_ns = at_ns;
}

static bool rebuild_device(struct cox_session *session, uint32_t device, uint64_t now_ns, uint64_t *next_ns)
{
    const struct cox__device *of = &session->devices[device];
    switch (of->state) {
    case COX_DEVICE_DRAINING:
        if (now_ns < rebuild_held_ns(session, device)) {
            if (!session->closing)
                look_again(session, rebuild_held_ns(session, device), next_ns);
            return false;
        }
        cox__device_set_state(session, device, COX_DEVICE_QUARANTINED);
        return true;
    case COX_DEVICE_QUARANTINED:
        if (session->closing)
            return false;
        if (now_ns < of->retry_ns) {
            look_again(session, of->retry_ns, next_ns);
            return false;
        }
        begin_rebuild(session, device);
        return of->state == COX_DEVICE_REBUILDING;
    case COX_DEVICE_REBUILDING:
        if (!atomic_load(&of->rebuild->done))
            return false;
        end_rebuild(session, device);
        return true;
    case COX_DEVICE_ACTIVE:
    case COX_DEVICE_PROBATION:
        break;
    }
    return false;
}

bool cox__reaper_rebuild_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns)
{
    bool progress = false;
    for (uint32_t d = 0; d < session->device_count; d++)
        progress |= rebuild_device(session, d, now_ns, next_ns);
    return progress;
}
