/* The scheduler thread: a libuv loop that sleeps until it is woken or a deadline passes. Nothing
 * else uses libuv.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_LOOP_H
#define COX_HOST_LOOP_H

#include <coxswain/status.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__loop;

/* What the thread does. `start` runs first, once. `step` handles all events that are there. It
 * returns after how many nanoseconds it must run again without a wake-up; UINT64_MAX = never. */
struct cox__loop_handler {
    void (*start)(void *ctx);
    uint64_t (*step)(void *ctx);
    void *ctx;
};

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler);

/* End the thread after its current step and join it, and the replaced threads too; their steps must
 * return. Sets to NULL; NULL is accepted. Do not call it on the loop's thread. */
void cox__loop_destroy(struct cox__loop **loop);

/* Give the loop a new thread, because `step` does not return on the current one. If it returns
 * later, that thread ends. Wake-ups until this function returns may be lost. Call it from one
 * thread at a time, and not on the loop's thread.
 * Errors: COX_E_NOMEM, COX_E_SYSTEM; the loop is unchanged. */
cox_status cox__loop_replace(struct cox__loop *loop);

/* Have `step` called soon. Several wake-ups may become one call. Thread-safety: safe from any
 * thread. */
void cox__loop_wake(struct cox__loop *loop);

/* Whether the caller is the loop's thread. */
bool cox__loop_inside(struct cox__loop *loop);

#endif
