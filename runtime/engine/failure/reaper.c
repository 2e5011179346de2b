/* A device that fails loses its queue: a device instance with queue slots, some of which may still
 * hold bands.
 *
 * The queue drains: bands that end before their deadline count. Bands that have not ended by then
 * are abandoned. The memory that the device may still touch is tainted until the instance is gone.
 * The worker thread destroys the instance, since a driver may not return from that. The instance
 * may outlive its session: the runtime then owns the queue.
 *
 * The device is tried again after a pause (making.c).
 *
 * Owns the session's lost queues.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reaper.h"
#include "engine/device.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "engine/frame.h"
#include "engine/memory.h"
#include "engine/timing.h"
#include "engine/transitions.h"

#include <stdlib.h>

/* For this long a device gets no second instance while a lost one exists: drivers keep megabytes
 * for each context. */
#define BESIDE_NS 500000000ull

/* How often the loop checks a queue without a session if a driver keeps one of its threads. */
#define LOOK_AGAIN_NS 200000000ull

/* ---- losing an instance ---- */

/* Bands of a lost queue get at most one more session timeout. */
static void orphan_slots(const struct cox__settings *settings, struct cox__queue *queue)
{
    const uint64_t drain_ns = cox__later(cox__engine_now(queue->runtime),
                                         cox__timing_session_timeout_ns(settings));

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state == COX__SLOT_FREE)
            continue;

        cox__transition_slot(slot, COX__SLOT_ORPHANED);
        if (drain_ns < slot->deadline_ns)
            slot->deadline_ns = drain_ns;
    }
}

void cox__reaper_take(struct cox_session *session, uint32_t device, cox_status status)
{
    struct cox__device *of = &session->devices.list[device];
    struct cox__queue *queue = of->queue;
    if (!queue)
        return;

    COX_INVARIANT(of->state == COX_DEVICE_DRAINING);
    of->queue = NULL;
    of->overran |= status == COX_E_TIMEOUT;

    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        of->passes[p].timing = (struct cox__timing){0};
        of->passes[p].ended = 0;
    }

    cox__transition_queue(queue, COX__QUEUE_DRAINING);
    orphan_slots(&session->settings, queue);

    queue->convicted = status == COX_E_MISMATCH;
    queue->unflushed = !queue->stuck; /* flush again: the driver may have refused the last flush */
    queue->rebuild_after_ns = cox__later(cox__engine_now(session->runtime), BESIDE_NS);

    queue->next = session->recovery.lost_queues;
    session->recovery.lost_queues = queue;

    cox__device_plan_retry(of, cox__engine_now(session->runtime), true);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s leaves the session: %s; retry in %llu ms",
             of->info.name, cox_status_text(status), (unsigned long long)(of->pause_ns / 1000000));
}

/* The engine stops waiting for everything on the queue. */
static void abandon(struct cox_session *session, struct cox__queue *queue)
{
    struct cox__backend *backend = session->runtime->backend;
    cox__transition_queue(queue, COX__QUEUE_ABANDONED);
    atomic_fetch_add(&session->runtime->lost.abandoned, 1);
    backend->ops->instance_abandon(backend, queue->instance);

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        const struct cox__job *job = &slot->job;
        if (slot->state == COX__SLOT_FREE)
            continue;

        cox__transition_slot(slot, COX__SLOT_ABANDONED); /* `mems` is tainted */
        if (slot->on_spare) /* in use, so the worker thread does not use it */
            cox__transition_spare(&session->spare, COX__SPARE_TAINTED);

        cox__log(&session->runtime->log, COX_LOG_WARN,
                 "%s: rows %u..%u of frame %llu are abandoned",
                 session->devices.list[queue->device].info.name, job->first_row,
                 job->first_row + job->rows - 1, (unsigned long long)slot->frame_index);

        cox__frame_end_band(job->frame, job->band, COX_E_TIMEOUT);
        cox__event_emit(&session->events, (struct cox__event){.kind = COX__EVENT_BAND_FAILED,
                                                              .frame = job->frame,
                                                              .band = job->band,
                                                              .status = COX_E_TIMEOUT});
    }
}

static void has_ended(void *ctx)
{
    struct cox__queue *queue = ctx;
    struct cox__loop *loop = queue->runtime->loop;
    cox__transition_queue(queue, COX__QUEUE_GONE); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

static void destroy_task(void *ctx)
{
    struct cox__queue *queue = ctx;
    struct cox__backend *backend = queue->runtime->backend;
    backend->ops->instance_destroy(backend, queue->instance, has_ended, queue);
}

/* If the thread that was stuck in the driver has returned, let the instance be polled and destroyed
 * again. Returns whether it has. */
static bool release_stuck(struct cox__queue *queue, uint64_t now_ns)
{
    if (!queue->stuck || !atomic_load(&queue->stuck->returned))
        return false;

    cox__watchdog_release(queue->runtime->watchdog, queue->stuck);
    queue->stuck = NULL;
    queue->unflushed = true;

    for (uint32_t i = 0; i < queue->slot_count; i++)
        queue->slots[i].poll_ns = now_ns;
    return true;
}

/* Let the worker thread destroy a queue that holds no band. If the worker thread cannot take the
 * task, the next turn of the engine tries again. */
static void begin_destruction(struct cox__queue *queue)
{
    cox__transition_queue(queue, COX__QUEUE_DESTROYING);
    if (!cox__worker_run(queue->runtime->worker, destroy_task, queue))
        cox__transition_queue(queue, COX__QUEUE_ABANDONED);
}

/* Whether the queue holds bands. Sets *expired if one has missed its deadline. */
static bool holds_bands(const struct cox__queue *queue, uint64_t now_ns, bool *expired,
                        uint64_t *next_ns)
{
    bool any = false;
    for (uint32_t i = 0; i < queue->slot_count; i++) {
        const struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state != COX__SLOT_ORPHANED)
            continue;

        any = true;
        *expired |= now_ns >= slot->deadline_ns;
        if (slot->deadline_ns < *next_ns)
            *next_ns = slot->deadline_ns;
    }
    return any;
}

static bool reap(struct cox_session *session, struct cox__queue *queue, uint64_t now_ns,
                 uint64_t *next_ns, bool *abandoned)
{
    bool expired = false, progress = release_stuck(queue, now_ns);
    const bool holds = holds_bands(queue, now_ns, &expired, next_ns);
    if (expired) {
        abandon(session, queue);
        *abandoned = true;
        progress = true;
    }

    if ((holds && !expired) || queue->stuck)
        return progress;

    begin_destruction(queue);
    return progress;
}

/* After one queue is abandoned, the others wait for the next turn: there is room for the events of
 * one (COX__EVENTS_MAX). */
bool cox__reaper_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns)
{
    bool progress = false, abandoned = false;
    for (struct cox__queue *queue = session->recovery.lost_queues; queue && !abandoned;
         queue = queue->next) {
        const enum cox__queue_state state = atomic_load(&queue->state);
        if (state == COX__QUEUE_DRAINING || state == COX__QUEUE_ABANDONED)
            progress |= reap(session, queue, now_ns, next_ns, &abandoned);
    }
    return progress;
}

bool cox__reaper_collect(struct cox_runtime *runtime, struct cox__queue **list)
{
    for (struct cox__queue **link = list; *link;) {
        struct cox__queue *queue = *link;
        if (atomic_load(&queue->state) != COX__QUEUE_GONE) {
            link = &queue->next;
            continue;
        }

        *link = queue->next;
        queue->next = runtime->lost.gone;
        runtime->lost.gone = queue;
    }
    return runtime->lost.gone != NULL;
}

/* Whether the device may still work on a band that the engine does not wait for. */
static bool was_abandoned(const struct cox__queue *queue)
{
    bool any = false;
    for (uint32_t i = 0; i < queue->slot_count; i++)
        any |= queue->slots[i].state == COX__SLOT_ABANDONED;
    return any;
}

void cox__reaper_free(struct cox_runtime *runtime)
{
    bool released = false;
    for (struct cox__queue *queue; (queue = runtime->lost.gone);) {
        runtime->lost.gone = queue->next;
        released |= was_abandoned(queue);
        atomic_fetch_sub(&runtime->lost.abandoned, was_abandoned(queue));
        cox__device_queue_free(queue);
    }

    if (released)
        cox__memory_release_kept(runtime);
}

/* ---- beyond the session's end ---- */

bool cox__reaper_may_be_left(const struct cox__queue *queue)
{
    return queue->stuck || was_abandoned(queue);
}

/* Destruction has not begun, or could not begin. */
static bool is_waiting(const struct cox__queue *queue)
{
    const enum cox__queue_state state = atomic_load(&queue->state);
    return state == COX__QUEUE_DRAINING || state == COX__QUEUE_ABANDONED;
}

void cox__reaper_leave(struct cox_runtime *runtime, struct cox__recovery *recovery)
{
    for (struct cox__queue *queue; (queue = recovery->lost_queues);) {
        recovery->lost_queues = queue->next;
        queue->session = NULL;
        queue->next = runtime->lost.stray;
        runtime->lost.stray = queue;
    }
}

void cox__reaper_step_stray(struct cox_runtime *runtime, uint64_t *next_ns)
{
    for (struct cox__queue *queue = runtime->lost.stray; queue; queue = queue->next) {
        const uint64_t now_ns = runtime->backend->ops->now_ns(runtime->backend);
        release_stuck(queue, now_ns);
        if (is_waiting(queue) && !queue->stuck)
            begin_destruction(queue);

        if (is_waiting(queue) && now_ns + LOOK_AGAIN_NS < *next_ns)
            *next_ns = now_ns + LOOK_AGAIN_NS;
    }
}

void cox__reaper_reap_gone(struct cox_runtime *runtime)
{
    cox__reaper_collect(runtime, &runtime->lost.stray);
    cox__reaper_free(runtime);
}

void cox__reaper_forget_stray(struct cox_runtime *runtime)
{
    for (struct cox__queue *queue; (queue = runtime->lost.stray);) {
        runtime->lost.stray = queue->next;
        cox__device_queue_free(queue);
    }
}

bool cox__reaper_any_stuck(struct cox_runtime *runtime)
{
    bool any = false;
    uint64_t next_ns = UINT64_MAX;

    cox__watchdog_lock(runtime->watchdog);
    cox__reaper_step_stray(runtime, &next_ns);
    for (const struct cox__queue *queue = runtime->lost.stray; queue; queue = queue->next)
        any |= queue->stuck != NULL;

    cox__watchdog_unlock(runtime->watchdog);
    return any;
}
