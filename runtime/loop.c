/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

struct cox__loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_poll_t timer; /* on `timer_fd`: libuv's own timers count milliseconds, bands are over in less */
    int timer_fd;
    uv_thread_t thread;
    bool armed;
    atomic_bool stop;
    struct cox__loop_handler handler;
};

static void run_step(struct cox__loop *loop)
{
    uint64_t sleep_ns = loop->handler.step(loop->handler.ctx);
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (sleep_ns != UINT64_MAX) {
        sleep_ns = sleep_ns ? sleep_ns : 1; /* all zeros would disarm it */
        when.it_value.tv_sec = (time_t)(sleep_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(sleep_ns % 1000000000u);
    }
    if (loop->armed || sleep_ns != UINT64_MAX)
        timerfd_settime(loop->timer_fd, 0, &when, NULL);
    loop->armed = sleep_ns != UINT64_MAX;
}

static void on_timer(uv_poll_t *timer, int status, int events)
{
    struct cox__loop *loop = timer->data;
    uint64_t expirations;
    (void)status;
    (void)events;
    if (read(loop->timer_fd, &expirations, sizeof expirations) == sizeof expirations)
        run_step(loop);
}

static void on_wake(uv_async_t *wake)
{
    struct cox__loop *loop = wake->data;
    if (atomic_load(&loop->stop)) {
        uv_close((uv_handle_t *)&loop->wake, NULL);
        uv_close((uv_handle_t *)&loop->timer, NULL);
        return;
    }
    run_step(loop);
}

static void thread_main(void *arg)
{
    struct cox__loop *loop = arg;
    loop->handler.start(loop->handler.ctx);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler)
{
    *out = NULL;
    struct cox__loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return COX_E_NOMEM;
    loop->handler = *handler;
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->timer_fd < 0)
        goto no_timer;
    if (uv_loop_init(&loop->uv))
        goto no_loop;
    if (uv_poll_init(&loop->uv, &loop->timer, loop->timer_fd))
        goto no_handles;
    loop->timer.data = loop;
    uv_poll_start(&loop->timer, UV_READABLE, on_timer);
    if (uv_async_init(&loop->uv, &loop->wake, on_wake))
        goto no_wake;
    loop->wake.data = loop;
    if (uv_thread_create(&loop->thread, thread_main, loop) == 0) {
        *out = loop;
        return COX_OK;
    }

    uv_close((uv_handle_t *)&loop->wake, NULL);
no_wake:
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
no_handles:
    uv_loop_close(&loop->uv);
no_loop:
    close(loop->timer_fd);
no_timer:
    free(loop);
    return COX_E_SYSTEM;
}

void cox__loop_destroy(struct cox__loop **loop)
{
    if (!*loop)
        return;
    atomic_store(&(*loop)->stop, true);
    uv_async_send(&(*loop)->wake);
    uv_thread_join(&(*loop)->thread);
    uv_loop_close(&(*loop)->uv);
    close((*loop)->timer_fd);
    free(*loop);
    *loop = NULL;
}

void cox__loop_wake(struct cox__loop *loop)
{
    uv_async_send(&loop->wake);
}

bool cox__loop_inside(const struct cox__loop *loop)
{
    uv_thread_t self = uv_thread_self();
    return uv_thread_equal(&self, &loop->thread);
}
