/* The engine lock and the driver-call watchdog: one mutex, one flag, and one thread that looks
 * every 50 ms. Every thread that moves the engine uses it.
 *
 * `call` is odd while the thread that holds the engine lock is inside a bracketed driver call.
 * Ending the call and revoking the lock are the same compare-exchange on `call`, so exactly one of
 * the two succeeds.
 *
 * Lock order: `lock` is a leaf, held for a few instructions only. The engine lock itself is the
 * flag `held`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "watchdog.h"
#include "base/clock.h"
#include "host/starvation.h"
#include "host/thread.h"

#include <pthread.h>
#include <stdlib.h>

/* How often the watchdog's thread looks. Limits are counted in looks, so that the time during which
 * the process was stopped or the machine slept does not count. */
#define LOOK_NS 50000000ull
/* After this many looks without a driver call in between, the thread sleeps until the next call. */
#define IDLE_LOOKS 40
/* A look that is late by more than this counts as starvation. */
#define LATE_NS 20000000ull
/* The handler's `after` runs at each of this many looks after a revocation. */
#define AFTER_LOOKS 20

struct cox__watchdog {
    struct cox__watchdog_handler handler;
    pthread_t thread;
    bool started; /* `thread` exists */

    _Atomic uint64_t call; /* number of the driver call: odd inside it */
    _Atomic uint64_t limit_looks;
    atomic_bool asleep;      /* the watchdog's thread sleeps until the next driver call */
    atomic_uint stuck_count; /* stuck threads that were not released */

    _Atomic uint64_t count_until_ns; /* until then the time that threads wait is counted */

    /* Only the watchdog's thread uses these. */
    struct cox__starvation *starvation; /* NULL: nothing is counted, or there is no memory */
    uint64_t base_ns, waited_ns;        /* when counting began, and the sum counted since */

    /* For the next call that exceeds its limit, allocated in advance. NULL: there is no memory, and
     * no lock is revoked. */
    _Atomic(struct cox__stuck_thread *) stuck;

    /* Only the thread that holds the engine lock uses these. */
    jmp_buf *home;
    int role;
    void *session;
    void *instance;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t freed; /* `held` is false */
    pthread_cond_t wake;  /* for the watchdog's thread */
    bool held;            /* a thread holds the engine lock */
    pthread_t holder;     /* that thread */
    uint64_t run_queue_delay_ns;
    uint64_t reported_ns; /* the largest value that cox__watchdog_starved_ns has returned */
    uint64_t look_ns;     /* when the watchdog's thread looked last; 0 = it sleeps */
    uint32_t waiting;
    bool stop;
};

/* ---- the engine lock ---- */

static bool take(struct cox__watchdog *watchdog, bool wait)
{
    pthread_mutex_lock(&watchdog->lock);

    watchdog->waiting++;
    while (watchdog->held && wait)
        pthread_cond_wait(&watchdog->freed, &watchdog->lock);
    watchdog->waiting--;

    const bool taken = !watchdog->held;
    watchdog->held = true;
    if (taken)
        watchdog->holder = pthread_self();

    pthread_mutex_unlock(&watchdog->lock);
    return taken;
}

void cox__watchdog_lock(struct cox__watchdog *watchdog)
{
    take(watchdog, true);
}

void cox__watchdog_unlock(struct cox__watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    watchdog->held = false;
    if (watchdog->waiting)
        pthread_cond_signal(&watchdog->freed);
    pthread_mutex_unlock(&watchdog->lock);
}

bool cox__watchdog_is_held_here(struct cox__watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    const bool here = watchdog->held && pthread_equal(watchdog->holder, pthread_self());
    pthread_mutex_unlock(&watchdog->lock);
    return here;
}

enum cox__lock_result cox__watchdog_run_locked(struct cox__watchdog *watchdog, bool wait, int role,
                                               void (*work)(void *ctx), void *ctx)
{
    jmp_buf home;
    if (!take(watchdog, wait))
        return COX__LOCK_BUSY;

    watchdog->home = &home;
    watchdog->role = role;
    if (setjmp(home))
        return COX__LOCK_REVOKED;

    work(ctx);
    cox__watchdog_unlock(watchdog);
    return COX__LOCK_DONE;
}

/* ---- driver calls ---- */

static void wake_thread(struct cox__watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    pthread_cond_signal(&watchdog->wake);
    pthread_mutex_unlock(&watchdog->lock);
}

void cox__watchdog_expect(struct cox__watchdog *watchdog, void *session, void *instance,
                          uint64_t limit_ns)
{
    watchdog->session = session;
    watchdog->instance = instance;
    if (!atomic_load_explicit(&watchdog->stuck, memory_order_relaxed))
        atomic_store(&watchdog->stuck, calloc(1, sizeof(struct cox__stuck_thread)));

    atomic_store_explicit(&watchdog->limit_looks, limit_ns / LOOK_NS + 2, memory_order_relaxed);
}

struct cox__driver_call cox__watchdog_call_begin(struct cox__watchdog *watchdog)
{
    if (!watchdog)
        return (struct cox__driver_call){0};

    const struct cox__driver_call call = {
        .watchdog = watchdog,
        .number = atomic_load_explicit(&watchdog->call, memory_order_relaxed) + 1,
        .home = watchdog->home,
        .stuck = atomic_load_explicit(&watchdog->stuck, memory_order_relaxed)};

    /* The store to `call` comes before the load of `asleep`; the watchdog's thread stores `asleep`
     * before it loads `call`. So either this thread sees that the other one sleeps, or the other
     * one sees the call. */
    atomic_store(&watchdog->call, call.number);
    if (atomic_load(&watchdog->asleep))
        wake_thread(watchdog);
    return call;
}

bool cox__watchdog_call_end(const struct cox__driver_call *call)
{
    uint64_t number = call->number;
    return !call->watchdog ||
           atomic_compare_exchange_strong(&call->watchdog->call, &number, number + 1);
}

void cox__watchdog_call_abandon(const struct cox__driver_call *call)
{
    /* From here on the call's instance may be destroyed. */
    atomic_store(&call->stuck->returned, true);
    longjmp(*call->home, 1);
}

/* ---- starvation ---- */

/* As in cox__watchdog_call_begin, the store comes before the load of `asleep`. */
void cox__watchdog_count_starvation(struct cox__watchdog *watchdog, uint64_t until_ns)
{
    uint64_t before_ns = atomic_load(&watchdog->count_until_ns);
    while (before_ns < until_ns &&
           !atomic_compare_exchange_weak(&watchdog->count_until_ns, &before_ns, until_ns))
        continue;

    if (atomic_load(&watchdog->asleep))
        wake_thread(watchdog);
}

/* A look is late if this time since the look before is too long; returns by how much. */
static uint64_t late_ns(uint64_t passed_ns)
{
    if (passed_ns <= LOOK_NS + LATE_NS)
        return 0;
    return passed_ns - LOOK_NS;
}

/* Includes what the next look will count: after a stop the caller may run before the watchdog's
 * thread does. */
uint64_t cox__watchdog_starved_ns(struct cox__watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    uint64_t ns = watchdog->run_queue_delay_ns;
    if (watchdog->look_ns)
        ns += late_ns(cox__clock_ns() - watchdog->look_ns);

    if (ns > watchdog->reported_ns)
        watchdog->reported_ns = ns; /* the returned value never decreases */
    const uint64_t reported_ns = watchdog->reported_ns;
    pthread_mutex_unlock(&watchdog->lock);
    return reported_ns;
}

/* How long this process's threads have waited for a processor since the previous look. 0 unless
 * such waits are counted now. The system reports a wait only when it ends, so one wait may be
 * longer than the time since that look. The results are limited so that their sum never exceeds
 * the time since counting began. */
static uint64_t waited_ns(struct cox__watchdog *watchdog, bool in_call, uint64_t now_ns)
{
    if (now_ns >= atomic_load(&watchdog->count_until_ns) && !in_call) {
        cox__starvation_destroy(watchdog->starvation);
        watchdog->starvation = NULL;
        return 0;
    }

    if (!watchdog->starvation) { /* counting begins now */
        watchdog->starvation = cox__starvation_create();
        watchdog->base_ns = now_ns;
        watchdog->waited_ns = 0;
    }

    uint64_t ns = 0;
    if (watchdog->starvation)
        ns = cox__starvation_look(watchdog->starvation);
    const uint64_t most_ns = now_ns - watchdog->base_ns - watchdog->waited_ns;
    if (ns > most_ns)
        ns = most_ns;
    watchdog->waited_ns += ns;
    return ns;
}

/* How long the process could not run since the look before. `in_call`: a driver call has been
 * running since then. */
static uint64_t count_starved(struct cox__watchdog *watchdog, bool in_call)
{
    const uint64_t waited = waited_ns(watchdog, in_call, cox__clock_ns());

    pthread_mutex_lock(&watchdog->lock);
    const uint64_t now_ns = cox__clock_ns(), late = late_ns(now_ns - watchdog->look_ns);
    uint64_t ns = waited;
    if (late > ns)
        ns = late;
    watchdog->run_queue_delay_ns += ns;
    watchdog->look_ns = now_ns;
    pthread_mutex_unlock(&watchdog->lock);
    return ns;
}

/* ---- the watchdog's thread ---- */

/* Revoke the engine lock of the thread that has been inside this driver call for too long. False:
 * the call has ended. */
static bool revoke_lock(struct cox__watchdog *watchdog, uint64_t call)
{
    struct cox__stuck_thread *stuck = atomic_load(&watchdog->stuck);
    if (!stuck || !atomic_compare_exchange_strong(&watchdog->call, &call, call + 1))
        return false;

    atomic_store(&watchdog->stuck, NULL);
    atomic_fetch_add(&watchdog->stuck_count, 1);

    pthread_mutex_lock(&watchdog->lock);
    watchdog->holder = pthread_self();
    pthread_mutex_unlock(&watchdog->lock);

    watchdog->handler.revoked(watchdog->handler.ctx, watchdog->session, watchdog->instance,
                              watchdog->role, stuck);
    cox__watchdog_unlock(watchdog);
    return true;
}

/* Whether the thread may sleep: `call` is the last driver call, and has ended. */
static bool is_idle(const struct cox__watchdog *watchdog, uint64_t call)
{
    return atomic_load(&watchdog->call) == call &&
           cox__clock_ns() >= atomic_load(&watchdog->count_until_ns);
}

/* Wait for the next look. With `idle`, first wait for a driver call after number `seen`, or for
 * something to count. False: the thread must end. */
static bool next_look(struct cox__watchdog *watchdog, bool idle, uint64_t seen)
{
    pthread_mutex_lock(&watchdog->lock);
    if (idle) {
        atomic_store(&watchdog->asleep, true);
        watchdog->look_ns = 0;
        while (!watchdog->stop && is_idle(watchdog, seen))
            pthread_cond_wait(&watchdog->wake, &watchdog->lock);
        atomic_store(&watchdog->asleep, false);
    }

    const uint64_t now_ns = cox__clock_ns(), ns = now_ns + LOOK_NS;
    const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};
    if (!watchdog->look_ns)
        watchdog->look_ns = now_ns;
    while (!watchdog->stop && cox__clock_ns() < ns)
        pthread_cond_timedwait(&watchdog->wake, &watchdog->lock, &when);

    const bool go_on = !watchdog->stop;
    pthread_mutex_unlock(&watchdog->lock);
    return go_on;
}

/* Whether a call has exceeded its limit after this many looks. During `run_queue_delay_ns` of them
 * the process could not run. */
static bool is_over(const struct cox__watchdog *watchdog, uint64_t looks,
                    uint64_t run_queue_delay_ns)
{
    const uint64_t limit = atomic_load(&watchdog->limit_looks), most = COX__EXCUSE_TIMES * limit;
    uint64_t excused = run_queue_delay_ns / LOOK_NS;
    if (excused > most)
        excused = most;
    return looks >= limit + excused;
}

static void *watch(void *arg)
{
    struct cox__watchdog *watchdog = arg;
    uint64_t seen = atomic_load(&watchdog->call), same = 0, after = 0, starved = 0;

    for (;;) {
        const bool idle = !(seen % 2) && same > IDLE_LOOKS && !after && is_idle(watchdog, seen);
        if (!next_look(watchdog, idle, seen))
            return NULL;

        const uint64_t ns = count_starved(watchdog, seen % 2 && same > 0);
        if (after) {
            after--;
            watchdog->handler.after(watchdog->handler.ctx);
        }

        const uint64_t call = atomic_load(&watchdog->call);
        if (call == seen) {
            same++;
            starved += ns < LOOK_NS ? ns : LOOK_NS; /* a late look still counts as one look */
        } else {
            same = 0;
            starved = 0;
        }

        seen = call;
        if (seen % 2 && is_over(watchdog, same, starved) && revoke_lock(watchdog, seen))
            after = AFTER_LOOKS;
    }
}

/* ---- from creation to destruction ---- */

cox_status cox__watchdog_create(struct cox__watchdog **out,
                                const struct cox__watchdog_handler *handler)
{
    struct cox__watchdog *watchdog = calloc(1, sizeof *watchdog);
    *out = NULL;
    if (!watchdog)
        return COX_E_NOMEM;

    watchdog->handler = *handler;

    if (!cox__cond_init_monotonic(&watchdog->wake))
        goto no_wake;
    if (pthread_cond_init(&watchdog->freed, NULL))
        goto no_freed;
    if (pthread_mutex_init(&watchdog->lock, NULL))
        goto no_lock;
    *out = watchdog;
    return COX_OK;

no_lock:
    pthread_cond_destroy(&watchdog->freed);
no_freed:
    pthread_cond_destroy(&watchdog->wake);
no_wake:
    free(watchdog);
    return COX_E_NOMEM;
}

cox_status cox__watchdog_start(struct cox__watchdog *watchdog)
{
    watchdog->started = cox__thread_start(&watchdog->thread, "cox-watchdog", watch, watchdog);
    return watchdog->started ? COX_OK : COX_E_SYSTEM;
}

bool cox__watchdog_stop(struct cox__watchdog *watchdog)
{
    if (!watchdog || !watchdog->started)
        return true;

    pthread_mutex_lock(&watchdog->lock);
    watchdog->stop = true;
    pthread_cond_signal(&watchdog->wake);
    pthread_mutex_unlock(&watchdog->lock);

    pthread_join(watchdog->thread, NULL);
    return atomic_load(&watchdog->stuck_count) == 0;
}

void cox__watchdog_destroy(struct cox__watchdog **address)
{
    struct cox__watchdog *watchdog = *address;
    *address = NULL;
    if (!watchdog)
        return;

    free(atomic_load(&watchdog->stuck));
    cox__starvation_destroy(watchdog->starvation);
    pthread_mutex_destroy(&watchdog->lock);
    pthread_cond_destroy(&watchdog->freed);
    pthread_cond_destroy(&watchdog->wake);
    free(watchdog);
}

void cox__watchdog_release(struct cox__watchdog *watchdog, struct cox__stuck_thread *stuck)
{
    free(stuck);
    atomic_fetch_sub(&watchdog->stuck_count, 1);
}
