/* The scheduler thread: a libuv loop that sleeps until it is woken or a deadline passes. The only user of libuv.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_LOOP_H
#define COX_HOST_LOOP_H

#include <coxswain/status.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__loop;

/* What the thread does. `start` runs first, once. `step` handles all events that are there, and returns after how
 * many nanoseconds it is to be called without a wake-up; UINT64_MAX = never. */
struct cox__loop_handler {
    void (*start)(void *ctx);
    uint64_t (*step)(void *ctx);
    void *ctx;
};

cox_status cox__loop_create(struct cox__loop **out, const struct cox__loop_handler *handler);

/* Ends the thread after the step under way and joins it, and the threads that were replaced, whose steps must return.
 * Sets to NULL; NULL is accepted. Not from the loop's thread. */
void cox__loop_destroy(struct cox__loop **loop);

/* Give the loop a new thread, since `step` does not return on the one it has; if it returns later, that thread ends.
 * Wake-ups until this function returns may be lost. Errors: COX_E_NOMEM, COX_E_SYSTEM; the loop is as it was. Not from
 * the loop's thread, and on one thread at a time. */
cox_status cox__loop_replace(struct cox__loop *loop);

/* Have `step` called soon. Several wake-ups may become one call. Thread-safety: safe from any thread. */
void cox__loop_wake(struct cox__loop *loop);

/* Whether the caller is the loop's thread. */
bool cox__loop_inside(struct cox__loop *loop);

#endif
