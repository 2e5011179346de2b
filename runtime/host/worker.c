/* One thread per background task, and the order in which tasks run.
 *
 * Tasks with a turn run one after the other, in the order given. Two at once could need the memory
 * of two instances of one device, and drivers keep the memory of two contexts
 * (docs/results/README.md). A stuck task loses its turn after a second, since it must not keep
 * other devices out.
 *
 * A thread that ends joins the one that ended before it; cox__worker_destroy joins the last.
 *
 * Lock order: `lock` is a leaf, and no task runs with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "worker.h"
#include "cpu_mask.h"
#include "base/clock.h"
#include "leak.h"
#include "thread.h"

#include <stdlib.h>

#define TURN_NS 1000000000ull

struct task {
    struct cox__worker *worker;
    bool in_turn;
    uint64_t number; /* in the order given, of the tasks with a turn */
    void (*run)(void *ctx);
    void *ctx;
};

struct cox__worker {
    /* the mask of the thread that created the worker, without the reserved core; for its threads */
    struct cox__cpu_mask mask;
    bool has_mask;
    struct cox__topology *topology;
    bool inline_tasks;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a task has begun or ended, or the worker is abandoned */
    uint64_t given;         /* tasks so far */
    uint64_t ended;
    uint64_t queued; /* tasks with a turn so far */
    uint64_t begun;  /* how many of those have begun: the number of the one that begins next */
    uint64_t turn_ends_ns; /* when the task that began last loses its turn; 0 = it has ended */
    pthread_t last;        /* the thread that ended last; only valid with `ended` above 0 */
    bool abandoned; /* a task is stuck at the end: no other begins, and threads are not joined */
};

static void wait_until(struct cox__worker *worker, uint64_t ns)
{
    const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};
    pthread_cond_timedwait(&worker->changed, &worker->lock, &when);
}

static void run_bracketed(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    cox__topology_enter(worker->topology);
    run(ctx);
    cox__topology_leave(worker->topology);
}

/* Wait until the task may begin, and begin its turn. Needs the lock. */
static void await_turn(const struct task *task)
{
    struct cox__worker *worker = task->worker;

    while (!worker->abandoned && worker->begun < task->number)
        pthread_cond_wait(&worker->changed, &worker->lock);
    while (!worker->abandoned && cox__clock_ns() < worker->turn_ends_ns)
        wait_until(worker, worker->turn_ends_ns);

    if (worker->abandoned)
        return;

    worker->begun++;
    worker->turn_ends_ns = cox__clock_ns() + TURN_NS;
    pthread_cond_broadcast(&worker->changed);
}

static void *work(void *arg)
{
    struct task *task = arg;
    struct cox__worker *worker = task->worker;

    /* Not the mask of the scheduler thread, which is bound to the reserved core. */
    if (worker->has_mask)
        cox__cpu_mask_set(0, &worker->mask);

    pthread_mutex_lock(&worker->lock);
    if (task->in_turn)
        await_turn(task);

    if (!worker->abandoned) {
        pthread_mutex_unlock(&worker->lock);
        run_bracketed(worker, task->run, task->ctx);
        pthread_mutex_lock(&worker->lock);
        if (task->in_turn && worker->begun == task->number + 1)
            worker->turn_ends_ns = 0;
    }

    if (worker->abandoned)
        pthread_detach(pthread_self());
    else if (worker->ended++ > 0)
        pthread_join(worker->last, NULL); /* that thread does not take the lock any more */

    worker->last = pthread_self();
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);

    free(task);
    return NULL;
}

cox_status cox__worker_create(struct cox__worker **out, struct cox__topology *topology,
                              bool inline_tasks)
{
    struct cox__worker *worker = calloc(1, sizeof *worker);
    *out = NULL;
    if (!worker)
        return COX_E_NOMEM;

    worker->topology = topology;
    worker->inline_tasks = inline_tasks;

    /* Its threads stay off the reserved core before and after their tasks, too. */
    cox__topology_enter(topology);
    worker->has_mask = cox__cpu_mask_get(0, &worker->mask);
    cox__topology_leave(topology);

    if (!cox__cond_init_monotonic(&worker->changed)) {
        free(worker);
        return COX_E_NOMEM;
    }

    pthread_mutex_init(&worker->lock, NULL);
    *out = worker;
    return COX_OK;
}

static bool begin(struct cox__worker *worker, bool in_turn, void (*run)(void *ctx), void *ctx)
{
    if (worker->inline_tasks) {
        run_bracketed(worker, run, ctx);
        return true;
    }

    pthread_t thread;
    struct task *task = malloc(sizeof *task);
    if (!task)
        return false;

    pthread_mutex_lock(&worker->lock);
    *task = (struct task){
        .worker = worker, .in_turn = in_turn, .number = worker->queued, .run = run, .ctx = ctx};
    const bool started = cox__thread_start(&thread, "cox-worker", work, task);
    worker->given += started;
    worker->queued += started && in_turn;
    pthread_mutex_unlock(&worker->lock);

    if (!started)
        free(task);
    return started;
}

bool cox__worker_run(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    return begin(worker, true, run, ctx);
}

bool cox__worker_run_now(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    return begin(worker, false, run, ctx);
}

bool cox__worker_destroy(struct cox__worker **address, uint64_t timeout_ns)
{
    struct cox__worker *worker = *address;
    *address = NULL;
    if (!worker)
        return true;

    const uint64_t now = cox__clock_ns();
    uint64_t until = UINT64_MAX;
    if (timeout_ns < UINT64_MAX - now)
        until = now + timeout_ns;

    pthread_mutex_lock(&worker->lock);
    while (worker->ended < worker->given && cox__clock_ns() < until)
        wait_until(worker, until);

    const bool stuck = worker->ended < worker->given;
    worker->abandoned = stuck;
    pthread_cond_broadcast(&worker->changed);

    if (worker->ended)
        pthread_join(worker->last, NULL);
    pthread_mutex_unlock(&worker->lock);

    if (stuck) {
        cox__leak(worker);
        return false;
    }

    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return true;
}
