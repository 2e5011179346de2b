/* The threads that take the engine's turns.
 *
 * The scheduler thread takes all of them, except that a thread inside cox_session_run does what
 * it can for its own frame before it waits, and one such thread, the inline poller, takes the
 * devices' posts and polls them while it waits. That spares a change of threads.
 *
 * A device whose band may be over at any moment is polled without a pause where there is a core
 * for it: by the scheduler thread on the reserved core; or, if no processor is among the
 * devices, by either thread. The engine lock is free in between.
 *
 * From a driver call a thread may not come back. The watchdog then revokes the engine lock,
 * cox__engine_revoked puts the engine in order on the watchdog's thread, and another thread
 * takes the next turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "engine.h"
#include "base/clock.h"
#include "engine/failure/reaper.h"
#include "step.h"
#include "timing.h"

#include <time.h>

/* What is due sooner than this is not slept for. Less than any pause between two polls. */
#define CLOSE_NS 5000u
/* While the inline poller polls what is due first, the scheduler thread looks again after this. */
#define RELIEF_NS 1000000u
/* So long after its last poll without a pause the scheduler thread does not sleep either: a
 * frame that follows finds it awake. About what two changes of threads cost. */
#define LINGER_NS 200000u
/* Between two polls the engine lock is free for at least this long. */
#define PAUSE_NS 1000u

/* ---- the scheduler thread ---- */

struct step {
    struct cox_runtime *runtime;
    uint64_t due;
    uint64_t now;
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
        atomic_load(&runtime->inline_due_ns) <= step->due)
        step->due = step->now + RELIEF_NS;
    atomic_store(&runtime->next_step_ns, step->due);
}

/* Adding a request is: push, then read `spins`. Going to sleep is: clear `spins`, then look at
 * the requests. */
uint64_t cox__engine_step(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    struct step step = {.runtime = runtime, .due = UINT64_MAX};

    for (uint64_t awake_ns = 0;;) {
        if (cox__watchdog_run_locked(runtime->watchdog, true, COX__ROLE_SCHEDULER, take_step,
                                     &step) != COX__LOCK_DONE)
            return UINT64_MAX;

        const bool close = is_close(runtime, step.due, step.now);
        awake_ns = close && step.due <= step.now ? step.now + LINGER_NS
                                                 : awake_ns; /* polled without a pause */

        const bool relieved = runtime->polls_inline && atomic_load(&runtime->inline_poller);

        if (close || (step.now < awake_ns && !relieved)) {
            atomic_store(&runtime->spins, true);
            pause_briefly();
        } else if (!atomic_exchange(&runtime->spins, false) ||
                   !atomic_load(&runtime->requests.head)) {
            return step.due == UINT64_MAX ? UINT64_MAX
                   : step.due > step.now  ? step.due - step.now
                                          : 0;
        }
    }
}

/* ---- threads inside cox_session_run ---- */

struct part {
    struct cox_runtime *runtime;
    bool inline_poller; /* taken by it */
    uint64_t due;       /* when something is to be done next */
    bool more;          /* for the scheduler thread */
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
        atomic_store(&runtime->inline_due_ns, part->due);
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

/* Until `due_ns`, a post, or a wake-up. */
static void wait_for_work(struct cox_runtime *runtime, uint64_t due_ns)
{
    const uint64_t now_ns = runtime->backend->ops->now_ns(runtime->backend);
    const uint64_t at_ns = cox__clock_ns() + (due_ns > now_ns ? due_ns - now_ns : 0);
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                .tv_nsec = (long)(at_ns % 1000000000u)};

    if (due_ns == UINT64_MAX)
        sem_wait(&runtime->inline_poller_wake);
    else if (!is_close(runtime, due_ns, now_ns))
        sem_clockwait(&runtime->inline_poller_wake, CLOCK_MONOTONIC, &at);
    else if (sem_trywait(&runtime->inline_poller_wake))
        pause_briefly();
}

/* Posting is: push, then read `inline_poller`. Leaving is: clear `inline_poller`, then look at
 * the queue. Whichever comes second in the one order of these four sees what the other did, so
 * no post is left without a thread to take it. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done)
{
    struct part part = {.runtime = runtime, .inline_poller = true, .due = UINT64_MAX};

    if (atomic_exchange(&runtime->inline_poller, true)) {
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

    atomic_store(&runtime->inline_due_ns, UINT64_MAX);
    atomic_store(&runtime->inline_poller, false);
    part.more = atomic_load(&runtime->jobs.head) != NULL;
    hand_over(&part);

    return true;
}

void cox__engine_awaited(struct cox_runtime *runtime)
{
    if (atomic_load(&runtime->inline_poller))
        sem_post(&runtime->inline_poller_wake);
}

void cox__engine_post(void *ctx, struct cox__job *job)
{
    struct cox_runtime *runtime = ctx;
    if (!cox__mpsc_push(&runtime->jobs, &job->node))
        return;

    if (atomic_load(&runtime->inline_poller))
        sem_post(&runtime->inline_poller_wake);
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
    cox__log(&runtime->log, COX_LOG_WARN, "%s: a call of its driver does not return",
             session->devices[queue->device].info.name);
    queue->stuck = stuck;
    queue->unflushed = false;
    session->attention = true;
    if (atomic_load(&queue->state) == COX__QUEUE_LIVE)
        cox__device_fail(session, queue->device, COX_E_TIMEOUT);
    cox__step_drain(session);
    runtime->interrupted = true;
    if (role == COX__ROLE_INLINE_POLLER) {
        atomic_store(&runtime->inline_due_ns, UINT64_MAX);
        atomic_store(&runtime->inline_poller, false);
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

static bool is_quiet(const struct cox_session *session)
{
    bool quiet = atomic_load(&session->spare.state) != COX__SPARE_ALLOCATING;
    for (const struct cox__queue *queue = session->lost_queues; queue; queue = queue->next)
        quiet = quiet && cox__reaper_may_be_left(queue);

    for (uint32_t d = 0; d < session->device_count; d++)
        quiet = quiet && !session->devices[d].making &&
                session->devices[d].state != COX_DEVICE_JOINING;

    return quiet;
}

bool cox__engine_close(struct cox_session *session)
{
    struct cox_runtime *runtime = session->runtime;
    const struct timespec pause = {.tv_nsec = 1000000};
    /* Lost queues are abandoned in time; what is waited for beyond that is the worker thread. */
    const uint64_t timeout_ns = 2 * cox__timing_session_timeout_ns(session);
    uint64_t end_ns = 0;

    for (bool joining = true;;) {
        if (joining) /* for compilation there is no limit, as in cox_session_create */
            end_ns = cox__later(cox__later(cox__clock_ns(), timeout_ns), 1000000000u);
        cox__watchdog_lock(runtime->watchdog);
        session->closing = true;

        const bool quiet = is_quiet(session);
        joining = cox__device_any_joining(session);
        cox__watchdog_unlock(runtime->watchdog);
        if (quiet)
            return true;
        if (cox__clock_ns() > end_ns)
            return false;

        cox__loop_wake(runtime->loop);
        nanosleep(&pause, NULL);
    }
}
