/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "guard.h"
#include "clock.h"
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>

/* How often the thread looks. Time is counted in looks: a process that was stopped, or a machine that slept, was not looked at. */
#define LOOK_NS 50000000ull
/* It sleeps after so many looks without a call in between. */
#define IDLE_LOOKS 40
/* And sees after the engine for so many after it has seized the guard. */
#define AFTER_LOOKS 20

struct cox__guard {
    struct cox__guard_handler handler;
    pthread_t watcher;
    bool watched; /* there is one */

    /* Odd while the holder is inside a driver call. Leaving it, and taking the guard away, are the same exchange: one of both succeeds. */
    _Atomic uint64_t call;
    _Atomic uint64_t limit_looks;
    atomic_bool asleep;
    atomic_uint away; /* captives that were not released */

    /* The holder's. */
    jmp_buf *home;
    int role;
    void *session;
    void *unit;
    _Atomic(struct cox__captive *)
        captive; /* for the next call that does not return; NULL: there is no memory, none is seized */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t freed; /* `held` is false */
    pthread_cond_t wake;  /* for the watcher */
    bool held;
    uint32_t waiting;
    bool stop;
};

/* ---- the lock ---- */

static bool take(struct cox__guard *guard, bool wait)
{
    pthread_mutex_lock(&guard->lock);
    guard->waiting++;
    while (guard->held && wait)
        pthread_cond_wait(&guard->freed, &guard->lock);
    guard->waiting--;
    const bool taken = !guard->held;
    guard->held = true;
    pthread_mutex_unlock(&guard->lock);
    return taken;
}

void cox__guard_lock(struct cox__guard *guard)
{
    take(guard, true);
}

void cox__guard_unlock(struct cox__guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->held = false;
    if (guard->waiting)
        pthread_cond_signal(&guard->freed);
    pthread_mutex_unlock(&guard->lock);
}

enum cox__guard_end cox__guard_hold(struct cox__guard *guard, bool wait, int role, void (*work)(void *ctx), void *ctx)
{
    jmp_buf home;
    if (!take(guard, wait))
        return COX__GUARD_BUSY;
    guard->home = &home;
    guard->role = role;
    if (setjmp(home))
        return COX__GUARD_SEIZED;
    work(ctx);
    cox__guard_unlock(guard);
    return COX__GUARD_DONE;
}

/* ---- calls ---- */

void cox__guard_about(struct cox__guard *guard, void *session, void *unit, uint64_t limit_ns)
{
    guard->session = session;
    guard->unit = unit;
    if (!atomic_load_explicit(&guard->captive, memory_order_relaxed))
        atomic_store(&guard->captive, calloc(1, sizeof(struct cox__captive)));
    atomic_store_explicit(&guard->limit_looks, limit_ns / LOOK_NS + 2, memory_order_relaxed);
}

struct cox__guard_call cox__guard_enter(struct cox__guard *guard)
{
    if (!guard)
        return (struct cox__guard_call){0};
    const struct cox__guard_call call = {.guard = guard,
                                         .number = atomic_load_explicit(&guard->call, memory_order_relaxed) + 1,
                                         .home = guard->home,
                                         .captive = atomic_load_explicit(&guard->captive, memory_order_relaxed)};
    atomic_store(&guard->call, call.number);
    if (atomic_load(&guard->asleep)) { /* after the store, as the watcher looks at the number after it has said so */
        pthread_mutex_lock(&guard->lock);
        pthread_cond_signal(&guard->wake);
        pthread_mutex_unlock(&guard->lock);
    }
    return call;
}

bool cox__guard_leave(const struct cox__guard_call *call)
{
    uint64_t number = call->number;
    return !call->guard || atomic_compare_exchange_strong(&call->guard->call, &number, number + 1);
}

void cox__guard_desert(const struct cox__guard_call *call)
{
    atomic_store(&call->captive->returned, true); /* what the call was about may go from here on */
    longjmp(*call->home, 1);
}

/* ---- the watcher ---- */

/* Take the guard from a holder that has been inside this call for too long. False: it has left. */
static bool seize(struct cox__guard *guard, uint64_t call)
{
    struct cox__captive *captive = atomic_load(&guard->captive);
    if (!captive || !atomic_compare_exchange_strong(&guard->call, &call, call + 1))
        return false;
    atomic_store(&guard->captive, NULL);
    atomic_fetch_add(&guard->away, 1);
    guard->handler.seized(guard->handler.ctx, guard->session, guard->unit, guard->role, captive);
    cox__guard_unlock(guard);
    return true;
}

/* Wait for the next look, or while nothing goes on. False: it is over. */
static bool next_look(struct cox__guard *guard, bool idle, uint64_t seen)
{
    pthread_mutex_lock(&guard->lock);
    if (idle) {
        atomic_store(&guard->asleep, true);
        while (!guard->stop && atomic_load(&guard->call) == seen)
            pthread_cond_wait(&guard->wake, &guard->lock);
        atomic_store(&guard->asleep, false);
    }
    const uint64_t ns = cox__clock_ns() + LOOK_NS;
    const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (!guard->stop && cox__clock_ns() < ns)
        pthread_cond_timedwait(&guard->wake, &guard->lock, &when);
    const bool go_on = !guard->stop;
    pthread_mutex_unlock(&guard->lock);
    return go_on;
}

static void *watch(void *arg)
{
    struct cox__guard *guard = arg;
    uint64_t seen = atomic_load(&guard->call), same = 0, after = 0;
    while (next_look(guard, !(seen % 2) && same > IDLE_LOOKS && !after, seen)) {
        if (after) {
            after--;
            guard->handler.after(guard->handler.ctx);
        }
        const uint64_t call = atomic_load(&guard->call);
        same = call == seen ? same + 1 : 0;
        seen = call;
        if (seen % 2 && same >= atomic_load(&guard->limit_looks) && seize(guard, seen))
            after = AFTER_LOOKS;
    }
    return NULL;
}

/* ---- from start to end ---- */

cox_status cox__guard_create(struct cox__guard **out, const struct cox__guard_handler *handler)
{
    struct cox__guard *guard = calloc(1, sizeof *guard);
    pthread_condattr_t monotonic;
    *out = NULL;
    if (!guard)
        return COX_E_NOMEM;
    guard->handler = *handler;
    if (pthread_condattr_init(&monotonic))
        goto no_attr;
    if (pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) || pthread_cond_init(&guard->wake, &monotonic))
        goto no_wake;
    if (pthread_cond_init(&guard->freed, NULL))
        goto no_freed;
    if (pthread_mutex_init(&guard->lock, NULL))
        goto no_lock;
    pthread_condattr_destroy(&monotonic);
    *out = guard;
    return COX_OK;

no_lock:
    pthread_cond_destroy(&guard->freed);
no_freed:
    pthread_cond_destroy(&guard->wake);
no_wake:
    pthread_condattr_destroy(&monotonic);
no_attr:
    free(guard);
    return COX_E_NOMEM;
}

cox_status cox__guard_start(struct cox__guard *guard)
{
    guard->watched = cox__thread_start(&guard->watcher, "cox-guard", watch, guard);
    return guard->watched ? COX_OK : COX_E_SYSTEM;
}

bool cox__guard_stop(struct cox__guard *guard)
{
    if (!guard || !guard->watched)
        return true;
    pthread_mutex_lock(&guard->lock);
    guard->stop = true;
    pthread_cond_signal(&guard->wake);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->watcher, NULL);
    return atomic_load(&guard->away) == 0;
}

void cox__guard_destroy(struct cox__guard **address)
{
    struct cox__guard *guard = *address;
    *address = NULL;
    if (!guard)
        return;
    free(atomic_load(&guard->captive));
    pthread_mutex_destroy(&guard->lock);
    pthread_cond_destroy(&guard->freed);
    pthread_cond_destroy(&guard->wake);
    free(guard);
}

void cox__guard_release(struct cox__guard *guard, struct cox__captive *captive)
{
    free(captive);
    atomic_fetch_sub(&guard->away, 1);
}
