/* The background thread, and those that take over from it.
 *
 * All threads run the same loop over one queue. A task may begin when every task under way has run for longer than a
 * second, so tasks run one after the other unless one is stuck. Whoever gives a task makes sure that a thread waits for
 * it; a thread that finds nothing to do beside one that waits already ends. So there is one thread most of the time,
 * and each stuck task costs one more for as long as it is stuck.
 *
 * A warden that is given up with a task stuck is freed by the last of its threads, if ever.
 *
 * Lock order: `lock` is the only lock, and no task runs with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "warden.h"
#include "clock.h"
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* A task that runs for longer does not hold up the next. */
#define STUCK_NS 1000000000ull

struct task {
    struct task *next;
    void (*run)(void *ctx);
    void *ctx;
};

/* One thread. In the warden's list until somebody has joined it. */
struct worker {
    struct worker *next;
    struct cox__warden *warden;
    pthread_t thread;
    bool ended;        /* takes no lock any more: may be joined at once */
    bool busy;         /* runs a task */
    uint64_t since_ns; /* since when */
};

struct cox__warden {
    struct cox__topology *topology;
    bool inline_tasks;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved; /* a task came, began or ended, or the end has come */
    struct task *first;
    struct task **last;
    struct worker *workers;
    uint32_t waiting; /* workers without a task */
    uint32_t alive;   /* workers that have not ended */
    bool stop;        /* workers without a task end */
    bool given_up;    /* nobody is left to join them */
};

static void wait_until(struct cox__warden *warden, uint64_t ns)
{
    const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    pthread_cond_timedwait(&warden->moved, &warden->lock, &when);
}

static void run_bracketed(struct cox__warden *warden, void (*run)(void *ctx), void *ctx)
{
    cox__topology_enter(warden->topology);
    run(ctx);
    cox__topology_leave(warden->topology);
}

static void free_warden(struct cox__warden *warden)
{
    pthread_cond_destroy(&warden->moved);
    pthread_mutex_destroy(&warden->lock);
    free(warden);
}

/* ---- workers ---- */

/* When the next task may begin: 0 = now. Lock held. */
static uint64_t begins_ns(const struct cox__warden *warden)
{
    uint64_t when = 0;
    for (const struct worker *worker = warden->workers; worker; worker = worker->next)
        if (worker->busy && worker->since_ns + STUCK_NS > when)
            when = worker->since_ns + STUCK_NS;
    return when > cox__clock_ns() ? when : 0;
}

/* The next task, taken off the queue, once it may begin; NULL if the calling worker is of no more use. Lock held. */
static struct task *next_task(struct cox__warden *warden)
{
    for (;;) {
        if (!warden->first) {
            if (warden->stop || warden->waiting > 1)
                return NULL;
            pthread_cond_wait(&warden->moved, &warden->lock);
            continue;
        }
        const uint64_t when = begins_ns(warden);
        if (!when)
            break;
        wait_until(warden, when);
    }
    struct task *task = warden->first;
    warden->first = task->next;
    if (!warden->first)
        warden->last = &warden->first;
    return task;
}

/* Take a worker out of the list and free it. Lock held. */
static void drop_worker(struct cox__warden *warden, struct worker *worker)
{
    struct worker **link = &warden->workers;
    while (*link != worker)
        link = &(*link)->next;
    *link = worker->next;
    free(worker);
}

static bool add_worker(struct cox__warden *warden);

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct cox__warden *warden = worker->warden;
    struct task *task;
    pthread_mutex_lock(&warden->lock);
    while ((task = next_task(warden))) {
        warden->waiting--;
        worker->busy = true;
        worker->since_ns = cox__clock_ns();
        if (warden->first && !warden->waiting)
            (void)add_worker(warden); /* else the next waits for whoever comes back first */
        pthread_cond_broadcast(&warden->moved);
        pthread_mutex_unlock(&warden->lock);
        run_bracketed(warden, task->run, task->ctx);
        free(task);
        pthread_mutex_lock(&warden->lock);
        worker->busy = false;
        warden->waiting++;
        pthread_cond_broadcast(&warden->moved);
    }
    warden->waiting--;
    warden->alive--;
    worker->ended = true;
    const bool given_up = warden->given_up, last = warden->alive == 0;
    if (given_up)
        drop_worker(warden, worker);
    pthread_cond_broadcast(&warden->moved);
    pthread_mutex_unlock(&warden->lock);
    if (given_up && last)
        free_warden(warden);
    return NULL;
}

/* Join the workers that have ended. Lock held: they do not take it any more. */
static void join_ended(struct cox__warden *warden)
{
    for (struct worker *worker = warden->workers, *next; worker; worker = next) {
        next = worker->next;
        if (worker->ended) {
            pthread_join(worker->thread, NULL);
            drop_worker(warden, worker);
        }
    }
}

/* Lock held. */
static bool add_worker(struct cox__warden *warden)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return false;
    worker->warden = warden;
    if (!cox__thread_start(&worker->thread, "cox-warden", work, worker)) {
        free(worker);
        return false;
    }
    worker->next = warden->workers;
    warden->workers = worker;
    warden->waiting++;
    warden->alive++;
    return true;
}

/* ---- for the caller ---- */

cox_status cox__warden_create(struct cox__warden **out, struct cox__topology *topology, bool inline_tasks)
{
    pthread_condattr_t monotonic;
    struct cox__warden *warden = calloc(1, sizeof *warden);
    *out = NULL;
    if (!warden)
        return COX_E_NOMEM;
    warden->topology = topology;
    warden->inline_tasks = inline_tasks;
    warden->last = &warden->first;
    if (pthread_condattr_init(&monotonic))
        goto no_attr;
    if (pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) || pthread_cond_init(&warden->moved, &monotonic))
        goto no_cond;
    if (pthread_mutex_init(&warden->lock, NULL))
        goto no_lock;
    pthread_condattr_destroy(&monotonic);
    *out = warden;
    return COX_OK;

no_lock:
    pthread_cond_destroy(&warden->moved);
no_cond:
    pthread_condattr_destroy(&monotonic);
no_attr:
    free(warden);
    return COX_E_NOMEM;
}

bool cox__warden_run(struct cox__warden *warden, void (*run)(void *ctx), void *ctx)
{
    if (warden->inline_tasks) {
        run_bracketed(warden, run, ctx);
        return true;
    }
    struct task *task = malloc(sizeof *task);
    if (!task)
        return false;
    *task = (struct task){.run = run, .ctx = ctx};
    pthread_mutex_lock(&warden->lock);
    join_ended(warden);
    const bool taken = warden->waiting || add_worker(warden);
    if (taken) {
        *warden->last = task;
        warden->last = &task->next;
        pthread_cond_broadcast(&warden->moved);
    }
    pthread_mutex_unlock(&warden->lock);
    if (!taken)
        free(task);
    return taken;
}

static bool any_busy(const struct cox__warden *warden)
{
    bool busy = false;
    for (const struct worker *worker = warden->workers; worker; worker = worker->next)
        busy |= worker->busy;
    return busy;
}

/* Nobody joins what is left: it ends by itself. Lock held. */
static void give_up(struct cox__warden *warden)
{
    while (warden->first) {
        struct task *task = warden->first;
        warden->first = task->next;
        free(task);
    }
    warden->last = &warden->first;
    warden->given_up = true;
    for (struct worker *worker = warden->workers; worker; worker = worker->next)
        pthread_detach(worker->thread);
}

bool cox__warden_destroy(struct cox__warden **address, uint64_t patience_ns)
{
    struct cox__warden *warden = *address;
    *address = NULL;
    if (!warden)
        return true;
    const uint64_t now = cox__clock_ns(), until = patience_ns < UINT64_MAX - now ? now + patience_ns : UINT64_MAX;
    pthread_mutex_lock(&warden->lock);
    warden->stop = true;
    pthread_cond_broadcast(&warden->moved);
    while ((warden->first || any_busy(warden)) && cox__clock_ns() < until)
        wait_until(warden, until);
    const bool stuck = warden->first || any_busy(warden);
    if (!stuck)
        while (warden->alive)
            pthread_cond_wait(&warden->moved, &warden->lock);
    join_ended(warden);
    if (stuck)
        give_up(warden);
    pthread_mutex_unlock(&warden->lock);
    if (!stuck)
        free_warden(warden);
    return !stuck;
}
