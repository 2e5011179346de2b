/* The worker thread's tasks: each runs once, in order and one at a time, except while one is stuck. A task that
 * hangs is a failure; no time is measured. Plain program, also for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host/worker.h"

#include "race.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { TASKS = 200, THREADS = 4 };

/* No time limit. */
#define ALWAYS UINT64_MAX

/* ---- tasks ---- */

static _Atomic uint32_t begun;
static _Atomic uint32_t inside;
static _Atomic uint32_t next_number;
static pthread_t ran_on;
static sigset_t blocked;
static sem_t go, going;

/* Checks that tasks run one at a time, in the order of submission. */
static void numbered(void *ctx)
{
    const uint32_t number = (uint32_t)(uintptr_t)ctx;
    CHECK(atomic_fetch_add(&inside, 1) == 0);
    CHECK(atomic_fetch_add(&next_number, 1) == number);
    CHECK(atomic_fetch_sub(&inside, 1) == 1);
}

static void counted(void *ctx)
{
    (void)ctx;
    CHECK(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_add(&begun, 1);
    CHECK(atomic_fetch_sub(&inside, 1) == 1);
}

static void note_thread(void *ctx)
{
    (void)ctx;
    ran_on = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    sem_post(&going);
}

/* Blocks until `go` is set. */
static void stuck(void *ctx)
{
    sem_post(&going);
    while (sem_wait(&go))
        ;
    atomic_fetch_add(&begun, 1);
    if (ctx)
        sem_post(ctx);
}

static void free_the_stuck(void *ctx)
{
    (void)ctx;
    sem_post(&go);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem))
        ;
}

static struct cox__worker *worker_new(bool inline_tasks)
{
    struct cox__worker *worker;
    CHECK(cox__worker_create(&worker, NULL, inline_tasks) == COX_OK);
    atomic_store(&begun, 0);
    atomic_store(&next_number, 0);
    return worker;
}

/* ---- tests ---- */

static void runs_a_task_on_a_thread_of_its_own_that_takes_no_signals(void)
{
    struct cox__worker *worker = worker_new(false);
    CHECK(cox__worker_run(worker, note_thread, NULL));
    wait_for(&going);
    CHECK(!pthread_equal(ran_on, pthread_self()));
    CHECK(sigismember(&blocked, SIGINT) == 1);
    CHECK(cox__worker_destroy(&worker, ALWAYS));
}

static void runs_a_task_inside_the_call_where_that_is_asked_for(void)
{
    struct cox__worker *worker = worker_new(true);
    CHECK(cox__worker_run(worker, note_thread, NULL));
    CHECK(sem_trywait(&going) == 0);
    CHECK(pthread_equal(ran_on, pthread_self()));
    CHECK(cox__worker_destroy(&worker, 0));
}

static void run_numbered(struct cox__worker *worker)
{
    for (uintptr_t i = 0; i < TASKS; i++)
        CHECK(cox__worker_run(worker, numbered, (void *)i));
}

static void runs_tasks_in_order_and_waits_for_them_at_the_end(void)
{
    struct cox__worker *worker = worker_new(false);
    run_numbered(worker);
    CHECK(cox__worker_destroy(&worker, ALWAYS));
    CHECK(!worker);
    CHECK(atomic_load(&next_number) == TASKS);
}

/* The tasks that release the stuck ones are queued behind them. Each stuck one costs a second. */
static void stuck_tasks_hold_up_no_other_and_the_end_waits_for_them(void)
{
    struct cox__worker *worker = worker_new(false);
    for (int i = 0; i < 2; i++)
        CHECK(cox__worker_run(worker, stuck, NULL));
    for (int i = 0; i < 2; i++)
        CHECK(cox__worker_run(worker, free_the_stuck, NULL));
    CHECK(cox__worker_destroy(&worker, ALWAYS));
    CHECK(atomic_load(&begun) == 2);
    for (int i = 0; i < 2; i++)
        wait_for(&going);
}

static void goes_on_as_before_after_a_stuck_task_has_ended(void)
{
    struct cox__worker *worker = worker_new(false);
    sem_t over;
    sem_init(&over, 0, 0);
    CHECK(cox__worker_run(worker, stuck, &over));
    CHECK(cox__worker_run(worker, free_the_stuck, NULL));
    wait_for(&going);
    wait_for(&over);
    run_numbered(worker);
    CHECK(cox__worker_destroy(&worker, ALWAYS));
    CHECK(atomic_load(&next_number) == TASKS);
    sem_destroy(&over);
}

static void abandons_a_task_that_is_stuck_at_the_end_and_lets_it_end(void)
{
    struct cox__worker *worker = worker_new(false);
    static sem_t over;
    sem_init(&over, 0, 0);
    CHECK(cox__worker_run(worker, stuck, &over));
    wait_for(&going);
    CHECK(cox__worker_run(worker, counted, NULL)); /* may or may not start */
    CHECK(!cox__worker_destroy(&worker, 1000000));
    CHECK(!worker);
    sem_post(&go);
    wait_for(&over);
}

static void *give_many(void *arg)
{
    for (int i = 0; i < TASKS; i++)
        CHECK(cox__worker_run(arg, counted, NULL));
    return NULL;
}

static void takes_tasks_from_many_threads(void)
{
    struct cox__worker *worker = worker_new(false);
    race_run(THREADS, give_many, worker, 0);
    CHECK(cox__worker_destroy(&worker, ALWAYS));
    CHECK(atomic_load(&begun) == THREADS * TASKS);
}

static void destroying_none_or_an_idle_one_is_nothing(void)
{
    struct cox__worker *worker = NULL;
    CHECK(cox__worker_destroy(&worker, 0));
    worker = worker_new(false);
    CHECK(cox__worker_destroy(&worker, 0));
    CHECK(!worker);
}

/* A thread inherits the CPU mask of its creator. A worker must not inherit the scheduler thread's, which is one
 * reserved core. */
static void note_mask(void *ctx)
{
    cpu_set_t *mask = ctx;
    CHECK(sched_getaffinity(0, sizeof *mask, mask) == 0);
}

static void runs_tasks_where_the_creator_of_the_worker_may_run(void)
{
    struct cox__worker *worker;
    cpu_set_t all, one, seen;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(cox__worker_create(&worker, NULL, false) == COX_OK);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0); /* as the scheduler thread does */
    CHECK(cox__worker_run(worker, note_mask, &seen));
    CHECK(cox__worker_destroy(&worker, ALWAYS));
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK(CPU_EQUAL(&seen, &all));
}

int main(void)
{
    check_limit("background tasks, some of them stuck");
    sem_init(&go, 0, 0);
    sem_init(&going, 0, 0);
    destroying_none_or_an_idle_one_is_nothing();
    runs_a_task_inside_the_call_where_that_is_asked_for();
    runs_a_task_on_a_thread_of_its_own_that_takes_no_signals();
    runs_tasks_in_order_and_waits_for_them_at_the_end();
    takes_tasks_from_many_threads();
    runs_tasks_where_the_creator_of_the_worker_may_run();
    stuck_tasks_hold_up_no_other_and_the_end_waits_for_them();
    goes_on_as_before_after_a_stuck_task_has_ended();
    abandons_a_task_that_is_stuck_at_the_end_and_lets_it_end();
    puts("tasks ran once each, in order, and none behind a stuck one");
    return 0;
}
