/* The threads that take the engine's turns.
 *
 * The scheduler thread takes most turns. A thread inside cox_session_run helps, which saves a
 * change of threads: before it waits, it takes part of a turn for its own frame. One of these
 * threads, the inline poller, also takes the devices' posts and polls the devices while it waits.
 *
 * With a core to spare, a device whose band may end at any moment is polled without a pause. The
 * scheduler thread polls on the reserved core. If no CPU is among the devices, either thread polls.
 * The engine lock is free between two polls.
 *
 * A driver call may hang. The watchdog then revokes the engine lock, cox__engine_revoked puts the
 * engine in order on the watchdog's thread, and another thread takes the next turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "engine.h"
#include "base/bounds.h"
#include "base/clock.h"
#include "engine/failure/reaper.h"
#include "step.h"
#include "timing.h"

#include <time.h>

/* If something is due sooner than this, the thread does not sleep. Shorter than any pause between
 * polls. */
#define CLOSE_NS 5000u
/* The scheduler thread's pause while the inline poller polls what is due first. */
#define RELIEF_NS 1000000u
/* How long the scheduler thread stays awake after its last poll without a pause, so that the next
 * frame finds it awake. About the cost of two changes of threads. */
#define LINGER_NS 200000u
/* The engine lock is free for at least this long between two polls. */
#define PAUSE_NS 1000u

/* ---- the scheduler thread ---- */

struct step {
    struct cox_runtime *runtime;
    uint64_t due; /* when the next step is due */
    uint64_t now; /* when this step ended */
};

static void pause_briefly(void)
{
    const uint64_t until_ns = cox__clock_ns() + PAUSE_NS;
    while (cox__clock_ns() < until_ns)
        continue;
}

/* Whether to poll on without sleeping. */
static bool is_close(const struct cox_runtime *runtime, uint64_t due_ns, uint64_t now_ns)
{
    return runtime->polls_closely && due_ns != UINT64_MAX && due_ns < now_ns + CLOSE_NS;
}

static void take_step(void *ctx)
{
    struct step *step = ctx;
    struct cox_runtime *runtime = step->runtime;

    step->due = cox__step_all(runtime);
    step->now = runtime->backend->ops->now_ns(runtime->backend);
    if (is_close(runtime, step->due, step->now) &&
        atomic_load(&runtime->inline_poller.due_ns) <= step->due)
        step->due = step->now + RELIEF_NS;
    atomic_store(&runtime->next_step_ns, step->due);
}

/* A thread that adds a request pushes it, then reads `spins`. The scheduler thread clears `spins`
 * before it sleeps, then looks at the requests. So at least one of them sees the other. */
uint64_t cox__engine_step(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    struct step step = {.runtime = runtime, .due = UINT64_MAX};

    for (uint64_t awake_ns = 0;;) {
        if (cox__watchdog_run_locked(runtime->watchdog, true, COX__ROLE_SCHEDULER, take_step,
                                     &step) != COX__LOCK_DONE)
            return UINT64_MAX;

        const bool close = is_close(runtime, step.due, step.now);
        if (close && step.due <= step.now) /* polled without a pause */
            awake_ns = step.now + LINGER_NS;

        const bool relieved = runtime->polls_inline && atomic_load(&runtime->inline_poller.present);
        if (close || (step.now < awake_ns && !relieved)) {
            atomic_store(&runtime->spins, true);
            pause_briefly();
        } else if (!atomic_exchange(&runtime->spins, false) ||
                   !atomic_load(&runtime->requests.head)) {
            if (step.due == UINT64_MAX)
                return UINT64_MAX;
            return cox__elapsed_ns(step.now, step.due);
        }
    }
}

/* ---- threads inside cox_session_run ---- */

struct part {
    struct cox_runtime *runtime;
    bool inline_poller; /* the inline poller takes it */
    uint64_t due;       /* when something is due next */
    bool more;          /* the scheduler thread has more to do */
};

static void take_part(void *ctx)
{
    struct part *part = ctx;
    struct cox_runtime *runtime = part->runtime;

    part->due = UINT64_MAX;
    part->more = cox__step_inline(runtime, &part->due);
    if (!runtime->polls_inline) {
        part->more |= part->due < atomic_load(&runtime->next_step_ns);
        part->due = UINT64_MAX;
    }

    if (part->inline_poller)
        atomic_store(&runtime->inline_poller.due_ns, part->due);
}

/* Wake the scheduler thread for the rest, or for its timer. */
static void hand_over(const struct part *part)
{
    if (part->more || part->due < atomic_load(&part->runtime->next_step_ns))
        cox__loop_wake(part->runtime->loop);
}

void cox__engine_help(struct cox_runtime *runtime)
{
    struct part part = {.runtime = runtime};

    if (cox__watchdog_run_locked(runtime->watchdog, false, COX__ROLE_HELPER, take_part, &part) !=
        COX__LOCK_DONE)
        part.more = true;
    hand_over(&part);
}

/* Wait until `due_ns`, a post, or a wake-up. */
static void wait_for_work(struct cox_runtime *runtime, uint64_t due_ns)
{
    const uint64_t now_ns = runtime->backend->ops->now_ns(runtime->backend);
    const uint64_t at_ns = cox__clock_ns() + cox__elapsed_ns(now_ns, due_ns);
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                .tv_nsec = (long)(at_ns % 1000000000u)};

    if (due_ns == UINT64_MAX)
        sem_wait(&runtime->inline_poller.wake);
    else if (!is_close(runtime, due_ns, now_ns))
        sem_clockwait(&runtime->inline_poller.wake, CLOCK_MONOTONIC, &at);
    else if (sem_trywait(&runtime->inline_poller.wake))
        pause_briefly();
}

/* A thread that posts pushes the job, then reads `present`. The inline poller leaves by clearing
 * `present`, then looks at the queue. In the single order of these four steps, the
 * later thread sees what the other did, so no post is left without a thread to take it. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done)
{
    struct part part = {.runtime = runtime, .inline_poller = true, .due = UINT64_MAX};

    if (atomic_exchange(&runtime->inline_poller.present, true)) {
        cox__engine_help(runtime);
        return false;
    }

    while (!atomic_load(done)) {
        if (cox__watchdog_run_locked(runtime->watchdog, true, COX__ROLE_INLINE_POLLER, take_part,
                                     &part) == COX__LOCK_REVOKED)
            return false; /* another thread may be the inline poller by now */

        if (part.more)
            cox__loop_wake(runtime->loop);
        if (!atomic_load(done))
            wait_for_work(runtime, part.due);
    }

    atomic_store(&runtime->inline_poller.due_ns, UINT64_MAX);
    atomic_store(&runtime->inline_poller.present, false);
    part.more = atomic_load(&runtime->jobs.head) != NULL;
    hand_over(&part);

    return true;
}

void cox__engine_awaited(struct cox_runtime *runtime)
{
    if (atomic_load(&runtime->inline_poller.present))
        sem_post(&runtime->inline_poller.wake);
}

void cox__engine_post(void *ctx, struct cox__job *job)
{
    struct cox_runtime *runtime = ctx;
    if (!cox__mpsc_push(&runtime->jobs, &job->node))
        return;

    if (atomic_load(&runtime->inline_poller.present))
        sem_post(&runtime->inline_poller.wake);
    else
        cox__loop_wake(runtime->loop);
}

void cox__engine_wake(struct cox_runtime *runtime)
{
    if (!atomic_load(&runtime->spins))
        cox__loop_wake(runtime->loop);
}

bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request)
{
    return cox__mpsc_push(&runtime->requests, &request->node);
}

/* ---- driver calls that do not return ---- */

static struct cox__queue *queue_of(const struct cox_session *session, const void *instance)
{
    struct cox__queue_walk walk = {0};
    while (cox__queue_next(session, &walk) && walk.queue->instance != instance)
        continue;

    return walk.queue;
}

void cox__engine_revoked(void *ctx, void *of, void *instance, int role,
                         struct cox__stuck_thread *stuck)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    struct cox_runtime *runtime = ctx;
    struct cox_session *session = of;
    struct cox__queue *queue = queue_of(session, instance);

    runtime->backend->ops->instance_isolate(runtime->backend, instance);
    cox__log(&runtime->log, COX_LOG_WARN, "%s: a driver call does not return",
             session->devices.list[queue->device].info.name);

    /* Give the device up. The next turn flushes the queues that the stuck thread did not reach. */
    queue->stuck = stuck;
    queue->unflushed = false;
    session->recovery.attention = true;
    if (atomic_load(&queue->state) == COX__QUEUE_LIVE)
        cox__device_fail(session, queue->device, COX_E_TIMEOUT);
    cox__step_drain(session);
    runtime->interrupted = true;

    /* Clear the role of the stuck thread. A stuck scheduler thread gets a replacement. */
    if (role == COX__ROLE_INLINE_POLLER) {
        atomic_store(&runtime->inline_poller.due_ns, UINT64_MAX);
        atomic_store(&runtime->inline_poller.present, false);
    }
    if (role == COX__ROLE_SCHEDULER)
        atomic_store(&runtime->spins, false);
    while (role == COX__ROLE_SCHEDULER && cox__loop_replace(runtime->loop))
        nanosleep(&pause, NULL);

    cox__loop_wake(runtime->loop);
}

void cox__engine_after_revoked(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    cox__loop_wake(runtime->loop);
}

/* ---- the end of a session ---- */

/* Whether no worker thread, spare buffer or lost queue still needs the session. */
static bool is_quiet(const struct cox_session *session)
{
    bool quiet = atomic_load(&session->spare.state) != COX__SPARE_ALLOCATING;
    for (const struct cox__queue *queue = session->recovery.lost_queues; queue; queue = queue->next)
        quiet = quiet && cox__reaper_may_be_left(queue);

    for (uint32_t d = 0; d < session->devices.count; d++)
        quiet = quiet && !session->devices.list[d].making &&
                session->devices.list[d].state != COX_DEVICE_JOINING;

    return quiet;
}

bool cox__engine_close(struct cox_session *session)
{
    struct cox_runtime *runtime = session->runtime;
    const struct timespec pause = {.tv_nsec = 1000000};
    /* Lost queues are abandoned within one timeout. The worker thread gets the same time again. */
    const uint64_t timeout_ns = 2 * cox__timing_session_timeout_ns(&session->settings);
    uint64_t end_ns = 0;

    for (bool joining = true;;) {
        if (joining) /* compilation has no time limit, as in cox_session_create */
            end_ns = cox__later(cox__later(cox__clock_ns(), timeout_ns), 1000000000u);

        cox__watchdog_lock(runtime->watchdog);
        session->closing = true;
        const bool quiet = is_quiet(session);
        joining = cox__device_any_joining(&session->devices);
        cox__watchdog_unlock(runtime->watchdog);

        if (quiet)
            return true;
        if (cox__clock_ns() > end_ns)
            return false;

        cox__loop_wake(runtime->loop);
        nanosleep(&pause, NULL);
    }
}
