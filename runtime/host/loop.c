/* The scheduler thread: a libuv loop with one wake-up handle and one timer.
 *
 * If a loop's thread is stuck in a step, the loop gets a new thread with a new libuv loop
 * (cox__loop_replace). The loop owns its threads: the current one, and those that it replaced. It
 * joins a replaced thread after it has ended.
 * SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

/* A thread of the loop, and what wakes it. */
struct loop_thread {
    struct cox__loop *loop;
    struct loop_thread *before; /* the thread that this one has replaced */
    uv_loop_t uv;
    uv_async_t wake;
    uv_poll_t timer; /* on `timer_fd`: libuv's own timers count milliseconds, bands take less */
    int timer_fd;
    uv_thread_t thread;
    bool armed;
    atomic_bool ended; /* may be joined without a wait */
};

struct cox__loop {
    pthread_mutex_t lock; /* held to wake a thread, whose record may be freed once it is replaced */
    /* changes under `lock`; the threads before it may still be in a step */
    struct loop_thread *current;
    atomic_bool stop;
    struct cox__loop_handler handler;
};

static struct loop_thread *current_of(struct cox__loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct loop_thread *self = loop->current;
    pthread_mutex_unlock(&loop->lock);
    return self;
}

static void close_handles(struct loop_thread *self)
{
    uv_close((uv_handle_t *)&self->wake, NULL);
    uv_close((uv_handle_t *)&self->timer, NULL);
}

static void run_step(struct loop_thread *self)
{
    struct cox__loop *loop = self->loop;
    uint64_t sleep_ns = loop->handler.step(loop->handler.ctx);
    struct itimerspec when = {{0, 0}, {0, 0}};

    if (current_of(loop) != self) { /* replaced while the step ran */
        close_handles(self);
        return;
    }

    if (sleep_ns != UINT64_MAX) {
        if (!sleep_ns)
            sleep_ns = 1; /* all zeros would disarm the timer */
        when.it_value.tv_sec = (time_t)(sleep_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(sleep_ns % 1000000000u);
    }

    if (self->armed || sleep_ns != UINT64_MAX)
        timerfd_settime(self->timer_fd, 0, &when, NULL);
    self->armed = sleep_ns != UINT64_MAX;
}

static void on_timer(uv_poll_t *timer, int status, int events)
{
    struct loop_thread *self = timer->data;
    uint64_t expirations;
    (void)status;
    (void)events;

    if (read(self->timer_fd, &expirations, sizeof expirations) == sizeof expirations)
        run_step(self);
}

static void on_wake(uv_async_t *wake)
{
    struct loop_thread *self = wake->data;
    if (atomic_load(&self->loop->stop))
        close_handles(self);
    else
        run_step(self);
}

static void thread_main(void *arg)
{
    struct loop_thread *self = arg;
    self->loop->handler.start(self->loop->handler.ctx);
    uv_run(&self->uv, UV_RUN_DEFAULT);
    atomic_store(&self->ended, true);
}

/* libuv ends the process if a loop cannot get its pipes. So see before whether there are enough
 * descriptors: four of two pipes, one of epoll, two of io_uring, one to wake the loop. */
enum { LOOP_DESCRIPTORS = 8 };

static bool has_descriptors(int fd)
{
    int spare[LOOP_DESCRIPTORS], count = 0;

    while (count < LOOP_DESCRIPTORS && (spare[count] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        close(spare[i]);
    return count == LOOP_DESCRIPTORS;
}

static cox_status begin_thread(struct cox__loop *loop)
{
    struct loop_thread *self = calloc(1, sizeof *self);
    if (!self)
        return COX_E_NOMEM;

    self->loop = loop;
    self->before = loop->current;

    self->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (self->timer_fd < 0)
        goto no_timer;
    if (!has_descriptors(self->timer_fd) || uv_loop_init(&self->uv))
        goto no_loop;
    if (uv_poll_init(&self->uv, &self->timer, self->timer_fd))
        goto no_handles;

    self->timer.data = self;
    uv_poll_start(&self->timer, UV_READABLE, on_timer);

    if (uv_async_init(&self->uv, &self->wake, on_wake))
        goto no_wake;
    self->wake.data = self;

    if (uv_thread_create(&self->thread, thread_main, self) == 0) {
        pthread_mutex_lock(&loop->lock);
        loop->current = self; /* before this the thread gets no wake-up */
        pthread_mutex_unlock(&loop->lock);
        return COX_OK;
    }

    uv_close((uv_handle_t *)&self->wake, NULL);
no_wake:
    uv_close((uv_handle_t *)&self->timer, NULL);
    uv_run(&self->uv, UV_RUN_DEFAULT);
no_handles:
    uv_loop_close(&self->uv);
no_loop:
    close(self->timer_fd);
no_timer:
    free(self);
    return COX_E_SYSTEM;
}

/* Join a thread that has ended or is about to, and free its record. */
static void end_thread(struct loop_thread *self)
{
    uv_thread_join(&self->thread);
    uv_loop_close(&self->uv);
    close(self->timer_fd);
    free(self);
}

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler)
{
    struct cox__loop *loop = calloc(1, sizeof *loop);
    *out = NULL;
    if (!loop)
        return COX_E_NOMEM;

    loop->handler = *handler;
    pthread_mutex_init(&loop->lock, NULL);
    const cox_status status = begin_thread(loop);
    if (status == COX_OK) {
        *out = loop;
        return COX_OK;
    }

    pthread_mutex_destroy(&loop->lock);
    free(loop);
    return status;
}

cox_status cox__loop_replace(struct cox__loop *loop)
{
    /* Only the calling thread reads the list of replaced threads. */
    for (struct loop_thread **link = &loop->current->before; *link;) {
        struct loop_thread *self = *link;
        if (!atomic_load(&self->ended)) {
            link = &self->before;
            continue;
        }

        *link = self->before;
        end_thread(self);
    }
    return begin_thread(loop);
}

void cox__loop_destroy(struct cox__loop **address)
{
    struct cox__loop *loop = *address;
    *address = NULL;
    if (!loop)
        return;

    atomic_store(&loop->stop, true);
    cox__loop_wake(loop);

    for (struct loop_thread *self = loop->current, *before; self; self = before) {
        before = self->before;
        end_thread(self);
    }

    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void cox__loop_wake(struct cox__loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    uv_async_send(&loop->current->wake);
    pthread_mutex_unlock(&loop->lock);
}

bool cox__loop_inside(struct cox__loop *loop)
{
    uv_thread_t self = uv_thread_self();

    pthread_mutex_lock(&loop->lock);
    const bool inside = uv_thread_equal(&self, &loop->current->thread);
    pthread_mutex_unlock(&loop->lock);
    return inside;
}
