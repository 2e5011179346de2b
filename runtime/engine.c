/* Frames: from the request to the callback, and the step that moves everything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

/* How soon a device is asked first that says nothing of itself, and how long frames may stay away until their stream has ended. */
#define POLL_FIRST_NS 50000000ull
/* While frames come one after the other a timer is set at least this far ahead: sooner than any new band can be late, so that
 * nobody has to be woken to set one for it. */
#define STREAM_STEP_NS 10000000ull
/* After asking a device whose answer cannot be far, the least pause, and its least share of the time since submission. An
 * answer costs a few microseconds. */
#define ASK_STEP_NS 20000ull
#define ASK_STEP_SHARE 64

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* ---- frames ---- */

/* Merge the partial results in row order. */
static void merge_partials(struct cox_session *session, struct cox__slot *slot)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    struct cox__backend *backend = session->runtime->backend;
    size_t offset = 0;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        void *into = backend->ops->mem_data(slot->mems[i]);
        memset(into, 0, binding->bytes);
        for (uint32_t next = 0; next < pipeline->rows;) {
            uint32_t band = 0;
            while (slot->bands[band].state != COX__BAND_DONE || slot->bands[band].check ||
                   slot->reports[band].first_row != next)
                band++;
            binding->merge(into, (char *)slot->bands[band].partials + offset, binding->bytes, binding->merge_user);
            next += slot->reports[band].rows;
        }
        offset += binding->bytes;
    }
}

/* The frame at the head of the order, if it is finished. */
static struct cox__slot *finished_frame(struct cox_session *session)
{
    struct cox__slot *slot = session->order_count ? cox__engine_frame(session, 0) : NULL;
    const bool finished = slot && slot->started && !slot->unfinished && !slot->pool_left;
    return finished && !cox__frame_must_settle(session, slot) ? slot : NULL;
}

/* Report a shadow that is over, and give the finished frames at the head of the order to the application; with
 * `awaited_only` up to the first one that has a callback of the application's. */
static bool deliver(struct cox_session *session, bool awaited_only)
{
    bool progress = cox__shadow_end(session);
    for (struct cox__slot *slot; (slot = finished_frame(session)) && (slot->awaited || !awaited_only);) {
        if (cox__frame_ask(session, slot)) {
            progress = true;
            continue;
        }
        if (session->verify > 0 && cox__verify_frame(session, slot))
            return progress || slot->unfinished;
        if (session->trouble && slot->status == COX_OK)
            cox__shadow_prove(session, slot);
        if (slot->status == COX_OK && session->partial_bytes)
            merge_partials(session, slot);
        cox__policy_observe_frame(session, slot);
        cox__slot_report(session, slot);
        cox_done_fn *done = slot->done;
        void *user = slot->user;
        uint64_t index = slot->index;
        cox_status status = slot->status;
        session->order_first = (session->order_first + 1) % COX_IN_FLIGHT_MAX;
        session->order_count--;
        pthread_mutex_lock(&session->lock);
        slot->started = false;
        slot->next_free = session->free_slots;
        session->free_slots = slot;
        session->frames_done++;
        pthread_cond_signal(&session->slot_free);
        pthread_mutex_unlock(&session->lock);
        if (done)
            done(user, index, status);
        pthread_mutex_lock(&session->lock);
        session->under_way--;
        pthread_cond_broadcast(&session->delivered);
        pthread_mutex_unlock(&session->lock);
        progress = true;
    }
    return progress;
}

/* ---- the step ---- */

/* While a frame's pool is not empty, a device that may take of it gets no band of a later frame: the pool would wait behind
 * that. A bit for each such unit. */
static uint32_t holds(const struct cox_session *session, const struct cox__slot *slot)
{
    return slot->pool_left ? cox__policy_waits_for(session, slot) : 0;
}

/* A frame begins when there is a device for it, or none is waited for any more, and nothing writes to its buffers that does not
 * count any more. */
static bool must_wait(const struct cox_session *session, const struct cox__slot *slot)
{
    if (!session->dead && !cox__engine_any_usable(session))
        return true;
    return atomic_load(&session->runtime->wild) && cox__frame_unsettled(session, slot);
}

static void start_frame(struct cox_session *session, struct cox__slot *slot, bool alone)
{
    cox__slot_start(session, slot, COX__SLOT_FRAME);
    if (alone)
        cox__policy_begin_period(session);
    if (session->dead)
        slot->status = COX_E_DEVICE_LOST;
    else
        cox__policy_split(session, slot);
}

/* Hand a band to one device that computes inside the enqueue call. */
static bool dispatch_blocking(struct cox_session *session)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = cox__engine_frame(session, i);
        if (!slot->started)
            break;
        bool offered = slot->pool_left && cox__policy_offer(session, slot, held, true);
        if (cox__slot_submit_blocking(session, slot, held) || offered)
            return true;
        held |= holds(session, slot);
    }
    return false;
}

/* Settle every wish for a shadow; at most one is begun. */
static void begin_shadows(struct cox_session *session)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = cox__engine_frame(session, i);
        if (!slot->started)
            break;
        if (slot->shadow.rows)
            cox__shadow_begin(session, slot, held);
        held |= holds(session, slot);
    }
}

/* Start frames and hand bands to devices. Those whose enqueue returns at once are given all that they may have, of every
 * frame, before one that computes inside the enqueue call gets a single band: until that is done nobody is served. */
static bool dispatch(struct cox_session *session)
{
    bool progress = false;
    bool wished = false;
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = cox__engine_frame(session, i);
        if (!slot->started && !session->warmup.finished) {
            progress |= cox__warmup_step(session, slot);
            break;
        }
        if (!slot->started && must_wait(session, slot))
            break;
        if (!slot->started) {
            start_frame(session, slot, i == 0);
            progress = true;
        }
        if (session->trouble)
            progress |= cox__late_serve(session, slot);
        if (slot->pool_left)
            progress |= cox__policy_offer(session, slot, held, false);
        if (slot->unfinished)
            progress |= cox__slot_submit(session, slot, held);
        wished |= slot->shadow.rows > 0;
        held |= holds(session, slot);
    }
    if (wished) /* comes last: it may take a moment, and every device has its bands by now */
        begin_shadows(session);
    return progress || (session->any_blocks && dispatch_blocking(session));
}

/* What is taken off a queue stays in the runtime until it is seen to: from asking a device a thread may not come back. */
static bool see_to_posts(struct cox_runtime *runtime)
{
    const bool any = runtime->posts != NULL;
    for (struct cox__mpsc_node *node; (node = runtime->posts);) {
        struct cox__lane *lane = CONTAINER_OF(CONTAINER_OF(node, struct cox__job, node), struct cox__lane, job);
        struct cox_session *session = lane->job.session;
        runtime->posts = node->next;
        cox__mpsc_open(node);
        if (!cox__lane_asked(lane) || cox__lane_poll(session, lane, true))
            continue;
        lane->near = true; /* the post came before the event's status */
        lane->poll_ns = cox__engine_now(session) + ASK_STEP_NS;
    }
    return any;
}

bool cox__engine_take_jobs(struct cox_runtime *runtime)
{
    const bool left = see_to_posts(runtime);
    runtime->posts = cox__mpsc_take(&runtime->jobs);
    return see_to_posts(runtime) || left;
}

static void take_request(struct cox_runtime *runtime, struct cox__request *request)
{
    struct cox_session *session = request->session;
    if (request->slot) {
        session->order[(session->order_first + session->order_count) % COX_IN_FLIGHT_MAX] = request->slot;
        session->order_count++;
        if (!session->attached) {
            session->attached = true;
            session->next_active = runtime->active;
            runtime->active = session;
        }
        return;
    }
    struct cox_session **link = &runtime->active;
    while (*link && *link != session)
        link = &(*link)->next_active;
    if (*link)
        *link = session->next_active;
    pthread_mutex_lock(&session->lock);
    session->detached = true;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock); /* the session may be gone from here on */
}

static bool see_to_arrivals(struct cox_runtime *runtime)
{
    const bool any = runtime->arrivals != NULL;
    for (struct cox__mpsc_node *node; (node = runtime->arrivals);) {
        struct cox__request *request = CONTAINER_OF(node, struct cox__request, node);
        /* A late callback may have posted a band of a session since jobs were taken last: afterwards it is freed memory. */
        if (!request->slot)
            cox__engine_take_jobs(runtime);
        runtime->arrivals = node->next;
        cox__mpsc_open(node);
        take_request(runtime, request);
    }
    return any;
}

static bool take_requests(struct cox_runtime *runtime)
{
    const bool left = see_to_arrivals(runtime);
    runtime->arrivals = cox__mpsc_take(&runtime->requests);
    return see_to_arrivals(runtime) || left;
}

/* When something is to be done about a busy lane. */
static uint64_t lane_next(const struct cox__lane *lane)
{
    uint64_t next = lane->poll_ns < lane->due_ns ? lane->poll_ns : lane->due_ns;
    return next < lane->give_up_ns ? next : lane->give_up_ns;
}

static void earliest(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    uint64_t *next = ctx;
    (void)session;
    if (cox__lane_asked(lane) && lane_next(lane) < *next)
        *next = lane_next(lane);
}

/* How long to wait after asking in vain. */
static uint64_t poll_pause(const struct cox__lane *lane, uint64_t now)
{
    uint64_t elapsed = now - lane->submit_ns;
    uint64_t least = lane->near ? ASK_STEP_NS : POLL_FIRST_NS;
    uint64_t share = lane->near ? elapsed / ASK_STEP_SHARE : elapsed / 2;
    return share > least ? share : least;
}

struct asking {
    uint64_t next;
    bool progress;
};

static void ask_lane(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct asking *asking = ctx;
    uint64_t now = cox__engine_now(session);
    if (!cox__lane_asked(lane))
        return;
    if (lane_next(lane) <= now) { /* asked before it is called late: this thread may have been late itself */
        if (cox__lane_poll(session, lane, false)) {
            asking->progress = true;
            return;
        }
        if (lane->poll_ns <= now)
            lane->poll_ns = now + poll_pause(lane, now);
        if (cox__lane_check(session, lane, now)) {
            asking->progress = true;
            return;
        }
    }
    if (lane_next(lane) < asking->next)
        asking->next = lane_next(lane);
}

/* Ask about the bands whose time has come; returns when the next one is due. */
static uint64_t poll_due(struct cox_runtime *runtime, bool *progress)
{
    struct asking asking = {.next = UINT64_MAX};
    for (struct cox_session *session = runtime->active; session; session = session->next_active)
        cox__lanes_each(session, ask_lane, &asking);
    *progress |= asking.progress;
    return asking.next;
}

/* Whether nobody waits for anything. */
static bool is_idle(const struct cox_runtime *runtime)
{
    bool idle = !runtime->draining;
    for (const struct cox_session *session = runtime->active; session; session = session->next_active)
        idle = idle && !session->order_count && !session->shadow.busy && !session->closing;
    return idle;
}

/* Somebody was kept inside a call, perhaps with devices still to be flushed: nobody is asked anything before they are. */
static void resume(struct cox_runtime *runtime)
{
    for (struct cox_session *session = runtime->active; session; session = session->next_active)
        cox__units_flush(session);
    runtime->interrupted = false;
}

/* Everything that can be done now. Returns when something else is due, UINT64_MAX if nothing is. */
static uint64_t move_on(struct cox_runtime *runtime)
{
    struct cox__backend *backend = runtime->backend;
    if (runtime->interrupted)
        resume(runtime);
    for (;;) {
        uint64_t health_due = UINT64_MAX;
        bool progress = cox__engine_take_jobs(runtime);
        progress |= take_requests(runtime);
        for (struct cox_session *session = runtime->active; session; session = session->next_active) {
            if (session->trouble)
                progress |= cox__health_step(session, &health_due);
            progress |= dispatch(session);
            progress |= deliver(session, false);
        }
        if (progress) {
            runtime->active_ns = backend->ops->now_ns(backend);
            continue;
        }
        uint64_t due = poll_due(runtime, &progress);
        if (progress)
            continue;
        due = health_due < due ? health_due : due;
        if (backend->ops->advance && is_idle(runtime)) /* a virtual clock would run on for ever */
            due = UINT64_MAX;
        if (!backend->ops->advance)
            return due;
        if (!backend->ops->advance(backend, due))
            return UINT64_MAX;
    }
}

struct step {
    struct cox_runtime *runtime;
    uint64_t due;
    uint64_t now;
};

static void take_step(void *ctx)
{
    struct step *step = ctx;
    struct cox_runtime *runtime = step->runtime;
    struct cox__backend *backend = runtime->backend;
    uint64_t due = move_on(runtime);
    uint64_t now = backend->ops->now_ns(backend);
    /* While frames come one after the other, a timer is always set: cox__engine_help need not wake anybody to set one. */
    if (due > now + STREAM_STEP_NS && !backend->ops->advance && runtime->active &&
        now - runtime->active_ns < POLL_FIRST_NS)
        due = now + STREAM_STEP_NS;
    atomic_store(&runtime->next_step_ns, due);
    step->due = due;
    step->now = now;
}

uint64_t cox__engine_step(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    struct step step = {.runtime = runtime, .due = UINT64_MAX};
    cox__guard_hold(runtime->guard, true, COX__ROLE_LOOP, take_step, &step);
    return step.due == UINT64_MAX ? UINT64_MAX : step.due > step.now ? step.due - step.now : 0;
}

struct helping {
    struct cox_runtime *runtime;
    bool wake; /* the scheduler thread, for the rest or for its timer */
};

/* What a thread inside cox_session_run does for the scheduler thread: all but the warm-up and the application's callbacks. */
static void take_part(void *ctx)
{
    struct helping *helping = ctx;
    struct cox_runtime *runtime = helping->runtime;
    uint64_t due = UINT64_MAX;
    bool wake = false;
    if (runtime->interrupted)
        resume(runtime);
    cox__engine_take_jobs(runtime);
    take_requests(runtime);
    for (struct cox_session *session = runtime->active; session; session = session->next_active) {
        if (!session->warmup.finished) {
            wake = true;
            continue;
        }
        bool again; /* a device that refuses leaves its rows to another */
        do {
            again = dispatch(session);
            again |= deliver(session, true);
            if (session->any_blocks) /* others were done while one computed inside the enqueue call */
                again |= cox__engine_take_jobs(runtime);
        } while (again);
        wake |= session->trouble || finished_frame(session) != NULL;
        cox__lanes_each(session, earliest, &due);
    }
    runtime->active_ns = runtime->backend->ops->now_ns(runtime->backend);
    helping->wake = wake || due < atomic_load(&runtime->next_step_ns);
}

void cox__engine_help(struct cox_runtime *runtime)
{
    struct helping helping = {.runtime = runtime, .wake = true};
    if (cox__guard_hold(runtime->guard, false, COX__ROLE_HELPER, take_part, &helping) != COX__GUARD_DONE ||
        helping.wake)
        cox__loop_wake(runtime->loop);
}

/* Posting is: push, then read `runner`. Leaving is: clear `runner`, then look at the queue. Whichever comes second in the one
 * order of these four sees what the other did, so no post is left without somebody to take it. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done)
{
    struct helping helping = {.runtime = runtime};
    if (atomic_exchange(&runtime->runner, true))
        return false;
    while (!atomic_load(done)) {
        if (sem_wait(&runtime->runner_wake)) /* a signal */
            continue;
        if (atomic_load(done))
            break;
        if (cox__guard_hold(runtime->guard, true, COX__ROLE_RUNNER, take_part, &helping) == COX__GUARD_SEIZED)
            return false; /* another thread may be the runner by now */
        if (helping.wake)
            cox__loop_wake(runtime->loop);
    }
    atomic_store(&runtime->runner, false);
    if (atomic_load(&runtime->jobs.head))
        cox__loop_wake(runtime->loop);
    return true;
}

void cox__engine_awaited(struct cox_runtime *runtime)
{
    if (atomic_load(&runtime->runner))
        sem_post(&runtime->runner_wake);
}

void cox__engine_post(void *ctx, struct cox__job *job)
{
    struct cox_runtime *runtime = ctx;
    if (!cox__mpsc_push(&runtime->jobs, &job->node))
        return;
    if (atomic_load(&runtime->runner))
        sem_post(&runtime->runner_wake);
    else
        cox__loop_wake(runtime->loop);
}

bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request)
{
    return cox__mpsc_push(&runtime->requests, &request->node);
}
