/* One turn of the engine. It takes the posts and requests that have arrived, drains the events, and
 * looks after lost devices. It starts frames, submits bands and delivers complete frames. It polls
 * the devices whose time has come.
 *
 * A driver call may hang; another thread then takes the next turn (engine.c). So jobs and requests
 * that were taken from a queue stay in the runtime until they are handled.
 * SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"
#include "buffers.h"
#include "deliver.h"
#include "device.h"
#include "engine.h"
#include "event.h"
#include "frame.h"
#include "home.h"
#include "making.h"
#include "order.h"
#include "passes.h"
#include "engine/failure/directory.h"
#include "engine/failure/probation.h"
#include "queue.h"
#include "engine/failure/reaper.h"
#include "engine/failure/recover.h"
#include "engine/failure/relocate.h"
#include "engine/failure/residency.h"
#include "step.h"
#include "timing.h"
#include "engine/failure/verify.h"
#include "warmup.h"

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* ---- events ---- */

static void on_probation_result(struct cox_session *session, uint32_t device, cox_status status)
{
    if (session->devices.list[device].state !=
        COX_DEVICE_PROBATION) /* it was lost in the meantime */
        return;
    if (status) {
        cox__device_fail(session, device, status);
        return;
    }

    cox__device_return(session, device);
    cox__recover_planned(session); /* bands that wait for a device go to this one */
}

static void on_band_done(struct cox_session *session, struct cox__frame *frame, uint32_t band)
{
    if (frame->bands[band].kind == COX__BAND_CHECK)
        cox__verify_done(session, frame, band);
    else if (!cox__band_is_transfer(&frame->bands[band]))
        cox__policy_observe(session, frame, band);
}

static void on_band_failed(struct cox_session *session, struct cox__frame *frame, uint32_t band)
{
    if (!cox__band_is_transfer(&frame->bands[band]))
        cox__policy_observe(session, frame, band);
    cox__recover_band(session, frame, band, true);
}

static void on_device_failed(struct cox_session *session, uint32_t device, cox_status status)
{
    cox__reaper_take(session, device, status);
    cox__residency_forget(&session->order, device);
    cox__directory_forget(session, device);
    cox__home_forget(session, device);
    cox__recover_planned(session);
    if (status == COX_E_MISMATCH)
        cox__recover_convicted(session, device);
}

static void handle(struct cox_session *session, const struct cox__event *event)
{
    switch (event->kind) {
    case COX__EVENT_DEVICE_FAILED:
        on_device_failed(session, event->device, event->status);
        break;
    case COX__EVENT_BAND_FAILED:
        on_band_failed(session, event->frame, event->band);
        break;
    case COX__EVENT_BAND_DONE:
        on_band_done(session, event->frame, event->band);
        break;
    case COX__EVENT_PROBATION_RESULT:
        on_probation_result(session, event->device, event->status);
        break;
    }
}

/* Calls no driver. */
bool cox__step_drain(struct cox_session *session)
{
    struct cox__event event;
    bool any = false;

    for (; cox__event_take(&session->events, &event); any = true)
        handle(session, &event);

    return any;
}

/* ---- starting frames, submitting bands ---- */

/* The devices that may still take rows of the frame's pool, a bit each. They get no band of a later
 * frame, because the pool would have to wait for it. */
static uint32_t reserved_by(const struct cox_session *session, const struct cox__frame *frame)
{
    if (!frame->pool.left)
        return 0;

    return cox__policy_reserves(session, frame);
}

static void start_frame(struct cox_session *session, struct cox__frame *frame, bool alone)
{
    cox__frame_start(session->runtime, frame, COX__FRAME_OF_APPLICATION);
    if (frame->fetch)
        cox__frame_begin_pass(session->runtime, frame, session->pipeline.pass_count - 1);
    if (alone)
        cox__policy_begin_period(&session->energy);

    frame->status = cox__buffers_status(frame);
    if (frame->status == COX_OK)
        frame->status = cox__directory_open(session, frame);
    if (frame->status == COX_OK)
        cox__home_open(session, frame);
    if (session->no_device)
        frame->status = cox__device_any_joined(&session->devices) ? COX_E_DEVICE_LOST
                                                                  : COX_E_NO_DEVICE;

    cox__residency_start(session, frame);
    if (frame->status == COX_OK && !frame->fetch)
        cox__policy_split(session, frame);
    if (frame->status == COX_OK)
        cox__home_acquire(frame);
}

/* Whether a frame with work that may still begin has expired. If not, the session remembers when it
 * will expire. */
static bool has_expired(struct cox_session *session, const struct cox__frame *frame)
{
    if (frame->expiry_ns == UINT64_MAX)
        return false;
    if (cox__engine_now(session->runtime) >= frame->expiry_ns)
        return true;

    if (frame->expiry_ns < session->order.expiry_ns)
        session->order.expiry_ns = frame->expiry_ns;

    return false;
}

/* Whether bands of the frame may be submitted now. Sets *progress if it drops bands of a frame that
 * has failed. */
static bool may_submit(struct cox_session *session, struct cox__frame *frame, bool *progress)
{
    cox__frame_note_cancel(&session->counts, frame);
    if (frame->status == COX_OK && cox__frame_has_more(frame) && has_expired(session, frame))
        frame->status = COX_E_LATE;

    const bool held = cox__relocate_holds(session, frame);
    if (frame->status && (frame->unfinished || frame->pool.left))
        *progress |= cox__recover_drop(&session->spare, frame);

    return !held;
}

/* Submit one band to a device that computes inside the enqueue call. */
static bool dispatch_blocking(struct cox_session *session)
{
    bool progress = false;
    uint32_t reserved = 0;

    for (uint32_t i = 0; i < session->order.count; i++) {
        struct cox__frame *frame = cox__order_at(&session->order, i);
        if (!frame->started)
            break;
        if (!may_submit(session, frame, &progress))
            continue;

        const bool offered = frame->pool.left && cox__policy_offer(session, frame, reserved, true);
        if (cox__queue_submit_blocking(session, frame, reserved) || offered)
            return true;

        reserved |= reserved_by(session, frame);
    }

    return progress;
}

/* Handle every request for a shadow run whose rows are in host memory. At most one run begins.
 * Returns whether a request was handled. */
static bool begin_shadows(struct cox_session *session)
{
    uint32_t reserved = 0;
    bool any = false;

    for (uint32_t i = 0; i < session->order.count; i++) {
        struct cox__frame *frame = cox__order_at(&session->order, i);
        if (!frame->started)
            break;

        if (frame->shadow.rows &&
            cox__residency_is_on_host(frame, frame->shadow.first_row, frame->shadow.rows)) {
            cox__probation_shadow_begin(session, frame, reserved);
            any = true;
        }

        reserved |= reserved_by(session, frame);
    }

    return any;
}

/* Start a frame. False: it must wait for its buffers, for device memory that earlier frames use,
 * for the warm-up or for a device. */
static bool try_start(struct cox_session *session, uint32_t index, bool *progress)
{
    struct cox__frame *frame = cox__order_at(&session->order, index);
    if (!cox__buffers_take(frame))
        return false;

    const bool cancelled = cox__frame_is_cancelled(&session->counts, frame);
    if (cancelled || has_expired(session, frame)) {
        if (!cox__warmup_pause(session))
            return false;

        cox__frame_start(session->runtime, frame, COX__FRAME_OF_APPLICATION);
        frame->status = cancelled ? COX_E_CANCELLED : COX_E_LATE;
        *progress = true;
        return true;
    }

    if (session->warmup.state != COX__WARMUP_FINISHED && !frame->fetch) {
        if (!cox__device_any_joining(&session->devices))
            *progress |= cox__warmup_step(session, frame);
        return false;
    }
    if (!session->no_device && !cox__device_any_active(&session->devices))
        return false;

    if (index > 0 && !cox__directory_has_room(session, frame))
        return false;
    if (!session->no_device && cox__home_is_joining(session, frame))
        return false;

    start_frame(session, frame, index == 0);
    *progress = true;

    return true;
}

/* Advance a warm-up that cox_session_warm asked for, if no frame waits for it. */
static bool warm_up(struct cox_session *session)
{
    if (!cox__warmup_is_asked(&session->warmup) || session->order.count ||
        cox__device_any_joining(&session->devices))
        return false;

    return cox__warmup_step(session, NULL);
}

/* Start frames and submit bands.
 *
 * First, devices whose enqueue call returns at once get all bands that they may have, of every
 * frame. Only then a device that computes inside the enqueue call gets one band, because no other
 * device is served until that call returns. */
static bool dispatch(struct cox_session *session)
{
    bool progress = false, shadows = false;
    uint32_t reserved = 0;

    session->order.expiry_ns = UINT64_MAX;

    for (uint32_t i = 0; i < session->order.count; i++) {
        struct cox__frame *frame = cox__order_at(&session->order, i);
        if (!frame->started && !try_start(session, i, &progress))
            break;
        if (!may_submit(session, frame, &progress))
            continue;

        progress |= cox__passes_advance(session, frame);
        if (frame->pool.left)
            progress |= cox__policy_offer(session, frame, reserved, false);
        progress |= cox__residency_plan(session, frame);
        /* Rows that are verified go home when the frame is delivered (deliver.c). */
        if (session->settings.verify == 0 && cox__frame_is_complete(frame))
            progress |= cox__home_hand_back(session, frame);
        if (frame->unfinished)
            progress |= cox__queue_submit(session, frame, reserved);
        progress |= cox__step_drain(session);

        shadows |= frame->shadow.rows > 0;
        reserved |= reserved_by(session, frame);
    }

    progress |= cox__step_drain(session);

    /* This comes last because it may take a moment; every device has its bands by now. */
    if (shadows)
        progress |= begin_shadows(session);
    progress |= cox__step_drain(session);

    if (session->devices.any_blocks && dispatch_blocking(session)) {
        cox__step_drain(session);
        return true;
    }

    return progress;
}

/* ---- posts and requests ---- */

/* Poll the jobs that were taken from the queue. Returns whether there was one. */
static bool handle_posts(struct cox_runtime *runtime)
{
    const bool any = runtime->posts != NULL;

    for (struct cox__mpsc_node *node; (node = runtime->posts);) {
        struct cox__queue_slot *slot = CONTAINER_OF(CONTAINER_OF(node, struct cox__job, node),
                                                    struct cox__queue_slot, job);
        struct cox_session *session = slot->job.session;

        runtime->posts = node->next;
        cox__mpsc_open(node);

        if (!cox__slot_can_be_polled(slot))
            continue;
        if (cox__queue_poll(session, slot, true)) {
            cox__step_drain(session);
            continue;
        }

        slot->posted_early = true;
        cox__timing_plan_next_poll(session, slot, cox__engine_now(session->runtime));
    }

    return any;
}

/* Poll every job that was posted. Returns whether there was one. */
static bool take_posts(struct cox_runtime *runtime)
{
    const bool left = handle_posts(runtime);
    runtime->posts = cox__mpsc_take(&runtime->jobs);
    return handle_posts(runtime) || left;
}

static void attach(struct cox_runtime *runtime, struct cox_session *session)
{
    if (session->attached)
        return;

    session->attached = true;
    session->next_active = runtime->active;
    runtime->active = session;
}

static void detach(struct cox_runtime *runtime, struct cox_session *session)
{
    struct cox_session **link = &runtime->active;

    while (*link && *link != session)
        link = &(*link)->next_active;

    if (*link)
        *link = session->next_active;
    cox__reaper_leave(runtime, &session->recovery);

    pthread_mutex_lock(&session->lock);
    session->detached = true;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock); /* the session may be gone from here on */
}

static void handle_request(struct cox_runtime *runtime, const struct cox__request *request)
{
    struct cox_session *session = request->session;

    switch (request->kind) {
    case COX__REQUEST_DETACH:
        detach(runtime, session);
        return;
    case COX__REQUEST_WARM:
        cox__warmup_request(session);
        session->warmup.used = true;
        break;
    case COX__REQUEST_JOIN:
        session->recovery.attention = true;
        break;
    case COX__REQUEST_FRAME:
        session->warmup.used |= !request->frame->fetch;
        cox__order_push(&session->order, request->frame);
        cox__buffers_queue(request->frame);
        break;
    }

    attach(runtime, session);
}

static bool handle_requests(struct cox_runtime *runtime)
{
    const bool any = runtime->arrivals != NULL;

    for (struct cox__mpsc_node *node; (node = runtime->arrivals);) {
        struct cox__request *request = CONTAINER_OF(node, struct cox__request, node);

        /* A late callback may have posted a band of the session since posts were last taken. Take
         * it now: after the detachment it is freed memory. */
        if (request->kind == COX__REQUEST_DETACH)
            take_posts(runtime);

        runtime->arrivals = node->next;
        cox__mpsc_open(node);
        handle_request(runtime, request);
    }

    return any;
}

static bool take_requests(struct cox_runtime *runtime)
{
    const bool left = handle_requests(runtime);
    runtime->arrivals = cox__mpsc_take(&runtime->requests);
    return handle_requests(runtime) || left;
}

/* ---- polls ---- */

static bool is_live(const struct cox__queue *queue)
{
    return atomic_load(&queue->state) == COX__QUEUE_LIVE;
}

/* Poll a slot whose time has come. This happens before the check of its deadline, because this
 * thread itself may have been late. */
static bool poll_slot(struct cox_session *session, struct cox__queue_slot *slot)
{
    const uint64_t now = cox__engine_now(session->runtime);
    if (!cox__slot_can_be_polled(slot) || cox__timing_due_ns(slot) > now)
        return false;
    if (cox__queue_poll(session, slot, false))
        return true;

    if (slot->poll_ns <= now)
        cox__timing_plan_next_poll(session, slot, now);

    return cox__queue_check_deadline(session, slot, now);
}

/* Poll for the session's bands whose time has come; with `lost` also on lost queues. */
static bool poll_session(struct cox_session *session, bool lost)
{
    bool progress = false;
    for (struct cox__queue_walk walk = {0}; cox__queue_next(session, &walk);)
        for (uint32_t i = 0; i < walk.queue->slot_count && (lost || is_live(walk.queue)); i++)
            if (poll_slot(session, &walk.queue->slots[i])) {
                cox__step_drain(session);
                progress = true;
            }

    return progress;
}

/* Lower *next_ns to the time when a slot of the session is due or a frame expires. */
static void plan_next(const struct cox_session *session, bool lost, uint64_t *next_ns)
{
    if (session->order.expiry_ns < *next_ns)
        *next_ns = session->order.expiry_ns;

    for (struct cox__queue_walk walk = {0}; cox__queue_next(session, &walk);)
        for (uint32_t i = 0; i < walk.queue->slot_count && (lost || is_live(walk.queue)); i++) {
            const struct cox__queue_slot *slot = &walk.queue->slots[i];
            if (cox__slot_can_be_polled(slot) && cox__timing_due_ns(slot) < *next_ns)
                *next_ns = cox__timing_due_ns(slot);
        }
}

/* ---- lost and joining devices ---- */

static bool needs_attention(const struct cox_session *session)
{
    bool out = session->recovery.lost_queues ||
               atomic_load(&session->spare.state) == COX__SPARE_ALLOCATING;
    for (uint32_t i = 0; i < session->order.count; i++)
        out = out || cox__order_at(&session->order, i)->relocation;

    for (uint32_t d = 0; d < session->devices.count; d++)
        out = out || (!cox__device_is_active(&session->devices.list[d]) &&
                      session->devices.list[d].state != COX_DEVICE_ABSENT);

    return out;
}

/* Poll lost queues once more before they are abandoned: a band may have ended without a post, and
 * it counts. */
static bool poll_expired(struct cox_session *session, uint64_t now_ns)
{
    bool progress = false;

    for (struct cox__queue *queue = session->recovery.lost_queues; queue; queue = queue->next)
        for (uint32_t i = 0; i < queue->slot_count; i++) {
            struct cox__queue_slot *slot = &queue->slots[i];
            if (cox__slot_can_be_polled(slot) && now_ns >= slot->deadline_ns &&
                cox__queue_poll(session, slot, false)) {
                cox__step_drain(session);
                progress = true;
            }
        }

    return progress;
}

/* Free the lost queues whose instances are gone. A late callback may have posted a band of such a
 * queue, so take the posts first. Queues that go in the meantime are freed the next time. */
static bool free_gone(struct cox_runtime *runtime, struct cox__queue **list)
{
    if (!cox__reaper_collect(runtime, list))
        return false;

    take_posts(runtime);
    cox__reaper_free(runtime);

    return true;
}

/* Look after lost and joining devices. True: something has changed. Lowers *next_ns to the time
 * when something is due. */
static bool look_after_devices(struct cox_session *session, uint64_t *next_ns)
{
    const uint64_t now = cox__engine_now(session->runtime);

    cox__queue_flush(session);

    bool progress = poll_expired(session, now);
    progress |= cox__reaper_step(session, now, next_ns);
    progress |= free_gone(session->runtime, &session->recovery.lost_queues);
    progress |= cox__making_step(session, now, next_ns);
    progress |= cox__probation_skip(session, cox__warmup_is_asked(&session->warmup));
    progress |= cox__recover_no_device(session, now, next_ns);
    progress |= cox__step_drain(session);
    progress |= cox__deliver_ready(session);
    cox__relocate_due(&session->order, next_ns);

    const struct cox__spare *spare = &session->spare;
    if (atomic_load(&spare->state) == COX__SPARE_ALLOCATING && now < spare->wait_ns &&
        spare->wait_ns < *next_ns)
        *next_ns = spare->wait_ns;

    session->recovery.attention = needs_attention(session);

    return progress;
}

/* ---- the turn ---- */

/* A turn ends when nothing can be done, and after this many rounds. On a device that computes
 * inside the enqueue call, there is more to do for as long as frames are submitted. Other threads
 * wait for the engine lock meanwhile. */
enum { ROUNDS_MAX = 32 };

/* Whether no session has anything under way. */
static bool is_idle(const struct cox_runtime *runtime)
{
    bool idle = true;
    for (const struct cox_session *session = runtime->active; session;
         session = session->next_active)
        idle = idle && !session->order.count && !session->shadow.busy && !session->closing &&
               !cox__warmup_is_asked(&session->warmup);

    return idle;
}

/* A thread got stuck in a call, perhaps before it flushed some queues. Flush them before any device
 * is polled. */
static void resume(struct cox_runtime *runtime)
{
    for (struct cox_session *session = runtime->active; session; session = session->next_active) {
        cox__step_drain(session);
        cox__queue_flush(session);
    }

    runtime->interrupted = false;
}

/* Do everything except polls that can be done now. Lowers *next_ns to the time when something is
 * due. */
static bool turn(struct cox_runtime *runtime, uint64_t *next_ns)
{
    bool progress = take_posts(runtime);

    progress |= take_requests(runtime);
    cox__reaper_step_stray(runtime, next_ns);
    progress |= free_gone(runtime, &runtime->lost.stray);

    for (struct cox_session *session = runtime->active; session; session = session->next_active) {
        if (session->recovery.attention)
            progress |= look_after_devices(session, next_ns);
        progress |= warm_up(session);
        progress |= dispatch(session);
        progress |= cox__deliver(session, false);
        progress |= cox__step_drain(session);
    }

    return progress;
}

uint64_t cox__step_all(struct cox_runtime *runtime)
{
    struct cox__backend *backend = runtime->backend;
    if (runtime->closing)
        return UINT64_MAX;

    if (runtime->interrupted)
        resume(runtime);

    for (uint32_t rounds = 0; rounds < ROUNDS_MAX; rounds++) {
        uint64_t due = UINT64_MAX;
        bool progress = false;
        if (turn(runtime, &due))
            continue;

        for (struct cox_session *session = runtime->active; session; session = session->next_active)
            progress |= poll_session(session, true);
        if (progress)
            continue;

        for (struct cox_session *session = runtime->active; session; session = session->next_active)
            plan_next(session, true, &due);

        if (backend->ops->advance && is_idle(runtime)) /* a virtual clock would run on endlessly */
            due = UINT64_MAX;
        if (!backend->ops->advance)
            return due;
        if (!backend->ops->advance(backend, due))
            return UINT64_MAX;
    }
    return cox__engine_now(runtime); /* go on at once */
}

/* ---- part of a turn ---- */

bool cox__step_inline(struct cox_runtime *runtime, uint64_t *next_ns)
{
    bool more = false, delivered = false;

    if (runtime->interrupted)
        resume(runtime);

    bool any = take_posts(runtime);
    any |= take_requests(runtime);

    for (struct cox_session *session = runtime->active; session; session = session->next_active) {
        if (session->warmup.state != COX__WARMUP_FINISHED) {
            more = true;
            continue;
        }

        const bool attention = session->recovery.attention;
        bool again; /* a device may refuse a band, and another one gets it */

        do {
            again = dispatch(session);

            const bool handed_back = cox__deliver(session, true);
            delivered |= handed_back;
            again |= handed_back;
            again |= cox__step_drain(session);

            /* While one device computed in the enqueue call, others may have ended, perhaps with
             * bands of other sessions. */
            if (session->devices.any_blocks && take_posts(runtime))
                again = more = true;

            /* Only the scheduler thread polls lost queues. */
            if (!again && runtime->polls_inline)
                again = poll_session(session, false);
            any |= again;
        } while (again);

        more |= (session->recovery.attention && (any || !attention)) ||
                cox__deliver_is_due(session);
        plan_next(session, false, next_ns);
    }

    /* A delivery may have submitted a frame that waited for a slot. */
    more |= atomic_load(&runtime->requests.head) != NULL;

    /* A frame of another session may have waited for the buffers. */
    return more || (delivered && runtime->active && runtime->active->next_active);
}
