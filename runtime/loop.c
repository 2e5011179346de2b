/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

struct cox__loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_timer_t timer;
    uv_thread_t thread;
    atomic_bool stop;
    struct cox__loop_handler handler;
};

static void on_timer(uv_timer_t *timer);

static void run_step(struct cox__loop *loop)
{
    uint64_t sleep_ns = loop->handler.step(loop->handler.ctx);
    if (sleep_ns == UINT64_MAX) {
        uv_timer_stop(&loop->timer);
    } else {
        /* Rounded up: a timer that fires early would find nothing to do and be set again. */
        uv_update_time(&loop->uv);
        uv_timer_start(&loop->timer, on_timer, sleep_ns / 1000000 + 1, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    run_step(timer->loop->data);
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
    if (uv_loop_init(&loop->uv)) {
        free(loop);
        return COX_E_SYSTEM;
    }
    loop->uv.data = loop;
    uv_timer_init(&loop->uv, &loop->timer);
    if (uv_async_init(&loop->uv, &loop->wake, on_wake))
        goto fail;
    loop->wake.data = loop;
    if (uv_thread_create(&loop->thread, thread_main, loop)) {
        uv_close((uv_handle_t *)&loop->wake, NULL);
        goto fail;
    }
    *out = loop;
    return COX_OK;

fail:
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_loop_close(&loop->uv);
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
