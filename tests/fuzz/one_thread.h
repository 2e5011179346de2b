/* The session engine on one thread, for its fuzz target: the same input gives the same run to the last step.
 *
 * - The devices are those of fake_backend.h. They run on a virtual clock, which the engine takes for a real one.
 * - The definitions below replace the parts of the library that have threads: host/loop.h, host/worker.h and
 *   engine/failure/watchdog.h. Each step of the engine, background task and revocation of the lock has a time on the
 *   virtual clock, like the end of a band.
 * - They also replace the functions of the C library in which a thread waits for others. What happens next happens
 *   inside these functions.
 *
 * Races between threads are not seen here: tests/race.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_ONE_THREAD_H
#define COX_TESTS_FUZZ_ONE_THREAD_H

#include "specs.h"
#include "engine/engine.h"
#include "support/fake_rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    INPUT_MAX = 400,
    DEVICES_MAX = 4,
    FAULTS_FIRST = 16,
    FAULTS_MOST = 50,
    TASKS_MAX = 64,
    LEAKED_MAX = 2000,
    TURN_CALLS_MAX = 2000, /* of the backend, in one turn of the scheduler thread */
    TURNS_MAX = 1000,      /* while no frame ends, and the clock stands still */
    CLOSE_SECONDS = 6      /* limit for the end of a session, without its frames: twice the default of 2 s, one more
                       * second, and a margin */
};
static const uint64_t us = 1000, ms = 1000000, second = 1000000000, never = UINT64_MAX;

struct task {
    void (*run)(void *ctx);
    void *ctx;
    bool in_turn;
    uint64_t at_ns; /* when it ends */
};

/* The current run. */
static struct {
    const uint8_t *data;
    size_t size;
    char *story;
    size_t story_bytes;

    struct rig *rig;
    struct fake *fake;
    bool inside_submit; /* a device runs its bands inside the call that submits them */

    /* the scheduler thread */
    struct cox__loop_handler handler;
    uint64_t wake_ns; /* when it runs after a wake-up; never = no wake-up */
    uint64_t due_ns;  /* when it runs without a wake-up */
    uint64_t lag_ns;  /* time to wake up */

    /* the worker's threads */
    struct task tasks[TASKS_MAX];
    uint64_t task_ns[4]; /* durations of tasks, used one after the other */
    uint64_t stuck_ns;   /* end of the last task or driver call so long that a session may be given up */
    uint32_t task_count;
    uint32_t tasks_begun;

    /* the application */
    uint64_t act_ns;     /* start of the current action */
    uint64_t slowest_ns; /* for a whole frame on the slowest device, of the session for which that is longest */
    uint64_t longest_ns; /* longest finite delay of all faults */
    double slower;       /* largest slowdown by a fault so far; 0 = none */
    uint64_t jump_ns;    /* longest jump of the clock */
    uint32_t faults;
    uint32_t client_count; /* sessions that share the devices, at most */

    uint64_t turn_ns;    /* time of the last turns of the scheduler thread, */
    uint32_t turns;      /* and their number */
    uint64_t turn_calls; /* calls of the backend by turns inside the current one, after its lock was revoked */
    bool inside;         /* in a step of the scheduler thread */
    bool revoked;        /* the engine lock was revoked during the current step */
    bool on;
} w;

/* ---- messages ---- */

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
    char line[400];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    w.story = must(realloc(w.story, w.story_bytes + (size_t)length + 1));
    memcpy(w.story + w.story_bytes, line, (size_t)length + 1);
    w.story_bytes += (size_t)length;
}

static double told_ms(uint64_t ns)
{
    return ns == never ? -1 : (double)ns * 1e-6;
}

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...)
{
    va_list list;
    w.on = false;
    fprintf(stderr, "\n%s--- the log\n%s--- at %.6f s: ", w.story ? w.story : "", w.rig ? rig_log(w.rig) : "",
            w.fake ? (double)fake_now(w.fake) * 1e-9 : 0);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    abort();
}

#define CHECK(x, ...)          \
    do {                       \
        if (!(x))              \
            fail(__VA_ARGS__); \
    } while (0)

/* ---- the input ---- */

static uint32_t take(void)
{
    if (w.size == 0)
        return 0;
    w.size--;
    return *w.data++;
}

#define PICK(table) ((table)[take() % (sizeof(table) / sizeof((table)[0]))])

/* ---- time ---- */

static uint64_t now(void)
{
    return fake_now(w.fake);
}

static uint64_t later(uint64_t at, uint64_t by)
{
    return at > never - by ? never : at + by;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void run_task(void)
{
    const struct task task = w.tasks[0];
    memmove(&w.tasks[0], &w.tasks[1], --w.task_count * sizeof w.tasks[0]);
    task.run(task.ctx);
}

/* A turn has to end. The thread may not take turns without end while no time passes. */
static void check_turn(uint64_t calls_before, uint64_t calls_outside)
{
    const uint64_t calls = fake_calls(w.fake) - calls_before;
    CHECK(calls - w.turn_calls <= TURN_CALLS_MAX, "a turn of the scheduler calls the backend %llu times",
          (unsigned long long)(calls - w.turn_calls));
    w.turn_calls = calls_outside + calls;

    w.turns = now() == w.turn_ns ? w.turns + 1 : 0;
    w.turn_ns = now();
    CHECK(w.turns < TURNS_MAX, "%u turns of the scheduler, no frame ends, and no time passes", w.turns);
}

static void step(void)
{
    const uint64_t calls_before = fake_calls(w.fake), calls_outside = w.turn_calls;
    w.wake_ns = w.due_ns = never;
    w.turn_calls = 0;
    w.inside = true;
    const uint64_t sleep_ns = w.handler.step(w.handler.ctx);
    w.inside = false;
    check_turn(calls_before, calls_outside);
    if (!w.revoked) /* else another thread has replaced this one */
        w.due_ns = sleep_ns == never ? never : later(now(), sleep_ns ? sleep_ns : 1);
    w.revoked = false;
}

/* ---- the scheduler thread ---- */

struct cox__loop {
    int unused;
};

static struct cox__loop the_loop;

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler)
{
    w.handler = *handler;
    w.handler.start(w.handler.ctx);
    *out = &the_loop;
    return COX_OK;
}

void cox__loop_destroy(struct cox__loop **loop)
{
    *loop = NULL;
    w.wake_ns = w.due_ns = never;
}

void cox__loop_wake(struct cox__loop *loop)
{
    (void)loop;
    if (w.wake_ns == never && w.fake)
        w.wake_ns = now() + w.lag_ns;
}

bool cox__loop_inside(struct cox__loop *loop)
{
    (void)loop;
    return w.inside;
}

cox_status cox__loop_replace(struct cox__loop *loop)
{
    (void)loop;
    return COX_OK;
}

/* ---- the watchdog ---- */

/* A stuck thread waits inside its driver call. Everything that happens meanwhile happens inside that call. */
struct cox__watchdog {
    struct cox__watchdog_handler handler;
    bool held;
    uint32_t stuck_count;
    jmp_buf *home;
    int role;
    void *session;
    void *instance;
    uint64_t limit_ns;
    uint64_t calls;
    uint64_t revoke_ns;              /* time at which the current driver call exceeds its limit; never = no call */
    struct cox__stuck_thread *stuck; /* of that call */
};

static struct cox__watchdog the_watchdog;

cox_status cox__watchdog_create(struct cox__watchdog **out, const struct cox__watchdog_handler *handler)
{
    the_watchdog = (struct cox__watchdog){.handler = *handler, .revoke_ns = UINT64_MAX};
    *out = &the_watchdog;
    return COX_OK;
}

cox_status cox__watchdog_start(struct cox__watchdog *watchdog)
{
    (void)watchdog;
    return COX_OK;
}

bool cox__watchdog_stop(struct cox__watchdog *watchdog)
{
    return watchdog->stuck_count == 0;
}

void cox__watchdog_destroy(struct cox__watchdog **watchdog)
{
    *watchdog = NULL;
}

/* The engine's clock is virtual, so it stops while the process does not run. */
void cox__watchdog_count_starvation(struct cox__watchdog *watchdog, uint64_t until_ns)
{
    (void)watchdog;
    (void)until_ns;
}

uint64_t cox__watchdog_starved_ns(struct cox__watchdog *watchdog)
{
    (void)watchdog;
    return 0;
}

void cox__watchdog_release(struct cox__watchdog *watchdog, struct cox__stuck_thread *stuck)
{
    watchdog->stuck_count--;
    free(stuck);
}

void cox__watchdog_lock(struct cox__watchdog *watchdog)
{
    CHECK(!watchdog->held, "a deadlock");
    watchdog->held = true;
}

void cox__watchdog_unlock(struct cox__watchdog *watchdog)
{
    watchdog->held = false;
}

bool cox__watchdog_is_held_here(struct cox__watchdog *watchdog)
{
    return watchdog->held; /* there is no other thread */
}

enum cox__lock_result cox__watchdog_run_locked(struct cox__watchdog *watchdog, bool wait, int role,
                                               void (*work)(void *ctx), void *ctx)
{
    jmp_buf home;
    CHECK(!watchdog->held || !wait, "a deadlock");
    if (watchdog->held)
        return COX__LOCK_BUSY;
    watchdog->held = true;
    watchdog->home = &home;
    watchdog->role = role;
    if (setjmp(home)) {
        w.revoked = role == COX__ROLE_SCHEDULER;
        return COX__LOCK_REVOKED;
    }
    work(ctx);
    watchdog->held = false;
    return COX__LOCK_DONE;
}

/* Tasks that are due run between two driver calls that took time. */
void cox__watchdog_expect(struct cox__watchdog *watchdog, void *session, void *instance, uint64_t limit_ns)
{
    while (w.task_count && w.tasks[0].at_ns <= now())
        run_task();
    watchdog->session = session;
    watchdog->instance = instance;
    watchdog->limit_ns = limit_ns;
}

struct cox__driver_call cox__watchdog_call_begin(struct cox__watchdog *watchdog)
{
    CHECK(watchdog->held && watchdog->revoke_ns == never, "a driver call without the lock");
    watchdog->stuck = must(calloc(1, sizeof *watchdog->stuck));
    watchdog->revoke_ns = later(now(), watchdog->limit_ns);
    return (struct cox__driver_call){
        .watchdog = watchdog, .number = ++watchdog->calls, .home = watchdog->home, .stuck = watchdog->stuck};
}

bool cox__watchdog_call_end(const struct cox__driver_call *call)
{
    w.stuck_ns = now() > w.stuck_ns ? now() : w.stuck_ns;
    if (call->watchdog->calls != call->number)
        return false;
    call->watchdog->revoke_ns = never;
    free(call->stuck);
    return true;
}

void cox__watchdog_call_abandon(const struct cox__driver_call *call)
{
    atomic_store(&call->stuck->returned, true);
    longjmp(*call->home, 1);
}

static void revoke_lock(void)
{
    tell("  %.6f a call of a driver takes too long\n", (double)now() * 1e-9);
    the_watchdog.revoke_ns = never;
    the_watchdog.calls++;
    the_watchdog.stuck_count++;
    the_watchdog.handler.revoked(the_watchdog.handler.ctx, the_watchdog.session, the_watchdog.instance,
                                 the_watchdog.role, the_watchdog.stuck);
    the_watchdog.held = false;
}

/* ---- the worker ---- */

struct cox__worker {
    int unused;
};

static struct cox__worker the_worker;

cox_status cox__worker_create(struct cox__worker **out, struct cox__topology *topology, bool inline_tasks)
{
    (void)topology, (void)inline_tasks;
    *out = &the_worker;
    return COX_OK;
}

/* A task runs completely at the end of its duration. */
static bool begin_task(uint64_t begin_ns, bool in_turn, void (*run)(void *ctx), void *ctx)
{
    CHECK(w.task_count < TASKS_MAX, "too many tasks");
    const struct task task = {run, ctx, in_turn, later(begin_ns, w.task_ns[w.tasks_begun++ % 4])};
    uint32_t at = w.task_count++;
    for (; at > 0 && w.tasks[at - 1].at_ns > task.at_ns; at--)
        w.tasks[at] = w.tasks[at - 1];
    w.tasks[at] = task;
    if (task.at_ns - now() > second && task.at_ns > w.stuck_ns)
        w.stuck_ns = task.at_ns;
    return true;
}

/* A task that takes longer than a second does not delay later ones. */
bool cox__worker_run(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    (void)worker;
    uint64_t begin_ns = now();
    for (uint32_t i = 0; i < w.task_count; i++)
        if (w.tasks[i].in_turn && w.tasks[i].at_ns != never && w.tasks[i].at_ns > begin_ns)
            begin_ns = least(w.tasks[i].at_ns, begin_ns + second);
    return begin_task(begin_ns, true, run, ctx);
}

bool cox__worker_run_now(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    (void)worker;
    return begin_task(now(), false, run, ctx);
}

/* Stuck tasks end now. */
bool cox__worker_destroy(struct cox__worker **worker, uint64_t timeout_ns)
{
    (void)timeout_ns;
    *worker = NULL;
    while (w.task_count)
        run_task();
    return true;
}

/* ---- the order of events ---- */

/* Let the next event happen, if it is due by `until_ns`. Otherwise set the clock to `until_ns` and return false. */
static bool pump(uint64_t until_ns)
{
    const uint64_t event_ns = fake_next(w.fake);
    const uint64_t step_ns = the_watchdog.held ? never : least(w.wake_ns, w.due_ns);
    const uint64_t task_ns = w.task_count ? w.tasks[0].at_ns : never;
    const uint64_t next_ns = least(least(event_ns, task_ns), least(step_ns, the_watchdog.revoke_ns));
    if (next_ns == never || next_ns > until_ns) {
        if (until_ns != never)
            fake_pass(w.fake, until_ns);
        return false;
    }
    fake_pass(w.fake, next_ns);
    if (event_ns == next_ns)
        return true;
    if (task_ns == next_ns)
        run_task();
    else if (step_ns == next_ns)
        step();
    else
        revoke_lock();
    return true;
}

/* ---- waiting in calls of the application ---- */

/* No correct engine blocks a call longer than this. If only one device is active, its limit is ten times its
 * timeout, which is ten times its expected time. The expected time may come from bands that a fault made slow, or
 * during which the clock jumped. */
static uint64_t call_limit_ns(void)
{
    return w.client_count * (4000 * second + 110 * w.jump_ns + (uint64_t)(110 * w.slower * (double)w.slowest_ns));
}

static void wait_on(const char *where)
{
    (void)where;
    CHECK(pump(never), "%s waits, but nothing is pending", where);
    CHECK(now() - w.act_ns < call_limit_ns(), "%s does not end", where);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (!w.on)
        return ((int (*)(pthread_cond_t *, pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_cond_wait"))(cond, mutex);
    pthread_mutex_unlock(mutex);
    wait_on("a call of the session");
    pthread_mutex_lock(mutex);
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time)
{
    if (!w.on)
        return ((int (*)(pthread_cond_t *, pthread_mutex_t *,
                         const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait"))(cond, mutex, time);
    pthread_mutex_unlock(mutex);
    pump((uint64_t)time->tv_sec * second + (uint64_t)time->tv_nsec);
    pthread_mutex_lock(mutex);
    return 0;
}

int sem_wait(sem_t *sem)
{
    if (!w.on)
        return ((int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_wait"))(sem);
    while (sem_trywait(sem))
        wait_on("cox_session_run");
    return 0;
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *time)
{
    if (!w.on)
        return ((int (*)(sem_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "sem_clockwait"))(sem, clock,
                                                                                                         time);
    const uint64_t until_ns = (uint64_t)time->tv_sec * second + (uint64_t)time->tv_nsec;
    while (sem_trywait(sem)) {
        CHECK(now() - w.act_ns < call_limit_ns(), "cox_session_run does not end");
        if (!pump(until_ns)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!w.on)
        return (int)syscall(SYS_nanosleep, time, left);
    const uint64_t until_ns = now() + (uint64_t)time->tv_sec * second + (uint64_t)time->tv_nsec;
    while (pump(until_ns))
        CHECK(now() - w.act_ns < call_limit_ns(), "a call of the session does not end");
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!w.on || clock != CLOCK_MONOTONIC || !w.fake)
        return (int)syscall(SYS_clock_gettime, clock, time);
    *time = (struct timespec){.tv_sec = (time_t)(now() / second), .tv_nsec = (long)(now() % second)};
    return 0;
}

#endif
