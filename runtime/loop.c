/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

/* One thread and what wakes it. */
struct round {
    struct cox__loop *loop;
    struct round *before; /* that it has taken over from */
    uv_loop_t uv;
    uv_async_t wake;
    uv_poll_t timer; /* on `timer_fd`: libuv's own timers count milliseconds, bands are over in less */
    int timer_fd;
    uv_thread_t thread;
    bool armed;
    atomic_bool ended; /* may be joined at once */
};

struct cox__loop {
    pthread_mutex_t lock; /* held to wake a round: it may be gone once another has taken over */
    struct round *round;  /* the last one works, those before have a step that does not return; changes under `lock` */
    atomic_bool stop;
    struct cox__loop_handler handler;
};

static struct round *current(struct cox__loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct round *round = loop->round;
    pthread_mutex_unlock(&loop->lock);
    return round;
}

static void close_handles(struct round *round)
{
    uv_close((uv_handle_t *)&round->wake, NULL);
    uv_close((uv_handle_t *)&round->timer, NULL);
}

static void run_step(struct round *round)
{
    struct cox__loop *loop = round->loop;
    uint64_t sleep_ns = loop->handler.step(loop->handler.ctx);
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (current(loop) != round) { /* it took too long */
        close_handles(round);
        return;
    }
    if (sleep_ns != UINT64_MAX) {
        sleep_ns = sleep_ns ? sleep_ns : 1; /* all zeros would disarm it */
        when.it_value.tv_sec = (time_t)(sleep_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(sleep_ns % 1000000000u);
    }
    if (round->armed || sleep_ns != UINT64_MAX)
        timerfd_settime(round->timer_fd, 0, &when, NULL);
    round->armed = sleep_ns != UINT64_MAX;
}

static void on_timer(uv_poll_t *timer, int status, int events)
{
    struct round *round = timer->data;
    uint64_t expirations;
    (void)status;
    (void)events;
    if (read(round->timer_fd, &expirations, sizeof expirations) == sizeof expirations)
        run_step(round);
}

static void on_wake(uv_async_t *wake)
{
    struct round *round = wake->data;
    if (atomic_load(&round->loop->stop))
        close_handles(round);
    else
        run_step(round);
}

static void thread_main(void *arg)
{
    struct round *round = arg;
    round->loop->handler.start(round->loop->handler.ctx);
    uv_run(&round->uv, UV_RUN_DEFAULT);
    atomic_store(&round->ended, true);
}

static cox_status begin_round(struct cox__loop *loop)
{
    struct round *round = calloc(1, sizeof *round);
    if (!round)
        return COX_E_NOMEM;
    round->loop = loop;
    round->before = loop->round;
    round->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (round->timer_fd < 0)
        goto no_timer;
    if (uv_loop_init(&round->uv))
        goto no_loop;
    if (uv_poll_init(&round->uv, &round->timer, round->timer_fd))
        goto no_handles;
    round->timer.data = round;
    uv_poll_start(&round->timer, UV_READABLE, on_timer);
    if (uv_async_init(&round->uv, &round->wake, on_wake))
        goto no_wake;
    round->wake.data = round;
    if (uv_thread_create(&round->thread, thread_main, round) == 0) {
        pthread_mutex_lock(&loop->lock);
        loop->round = round; /* nothing wakes the thread before */
        pthread_mutex_unlock(&loop->lock);
        return COX_OK;
    }

    uv_close((uv_handle_t *)&round->wake, NULL);
no_wake:
    uv_close((uv_handle_t *)&round->timer, NULL);
    uv_run(&round->uv, UV_RUN_DEFAULT);
no_handles:
    uv_loop_close(&round->uv);
no_loop:
    close(round->timer_fd);
no_timer:
    free(round);
    return COX_E_SYSTEM;
}

/* Its thread has ended, or does. */
static void end_round(struct round *round)
{
    uv_thread_join(&round->thread);
    uv_loop_close(&round->uv);
    close(round->timer_fd);
    free(round);
}

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler)
{
    struct cox__loop *loop = calloc(1, sizeof *loop);
    *out = NULL;
    if (!loop)
        return COX_E_NOMEM;
    loop->handler = *handler;
    pthread_mutex_init(&loop->lock, NULL);
    const cox_status status = begin_round(loop);
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
    for (struct round **link = &loop->round->before; *link;) { /* nobody else looks at these */
        struct round *round = *link;
        if (!atomic_load(&round->ended)) {
            link = &round->before;
            continue;
        }
        *link = round->before;
        end_round(round);
    }
    return begin_round(loop);
}

void cox__loop_destroy(struct cox__loop **address)
{
    struct cox__loop *loop = *address;
    *address = NULL;
    if (!loop)
        return;
    atomic_store(&loop->stop, true);
    cox__loop_wake(loop);
    for (struct round *round = loop->round, *before; round; round = before) {
        before = round->before;
        end_round(round);
    }
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void cox__loop_wake(struct cox__loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    uv_async_send(&loop->round->wake);
    pthread_mutex_unlock(&loop->lock);
}

bool cox__loop_inside(struct cox__loop *loop)
{
    uv_thread_t self = uv_thread_self();
    pthread_mutex_lock(&loop->lock);
    const bool inside = uv_thread_equal(&self, &loop->round->thread);
    pthread_mutex_unlock(&loop->lock);
    return inside;
}
