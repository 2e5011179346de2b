/* The engine lock, and the driver-call watchdog: it revokes the lock of a thread whose driver call
 * does not return.
 *
 * A thread that moves the engine holds the engine lock, and brackets each driver call that may
 * block with cox__watchdog_call_begin and cox__watchdog_call_end. When such a call takes too long,
 * the watchdog thread revokes the lock. The handler takes the device out, the lock is free, and
 * other threads move the engine. When the driver call returns at last, cox__watchdog_call_end
 * returns false on the stuck thread. That thread touches nothing of the engine any more and jumps
 * back to where it took the lock (cox__watchdog_call_abandon).
 *
 * So at each bracketed call the engine must be in a state from which another thread can go on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_WATCHDOG_H
#define COX_HOST_WATCHDOG_H

#include <coxswain/status.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__watchdog;

/* A thread inside a driver call, after the watchdog revoked its engine lock. */
struct cox__stuck_thread {
    /* the driver call has returned; the thread touches nothing any more of the call's instance */
    atomic_bool returned;
};

/* Both functions run on the watchdog's thread. */
struct cox__watchdog_handler {
    /* Runs with the engine lock held, just revoked from a thread inside a driver call. `session`
     * and `instance` are those of cox__watchdog_expect, `role` is that of cox__watchdog_run_locked.
     * The callee owns `stuck` and releases it with cox__watchdog_release. */
    void (*revoked)(void *ctx, void *session, void *instance, int role,
                    struct cox__stuck_thread *stuck);
    /* Runs without the lock, every 50 ms during the next second: a wake-up may have gone to the
     * stuck thread. */
    void (*after)(void *ctx);
    void *ctx;
};

/* Errors: COX_E_NOMEM. */
cox_status cox__watchdog_create(struct cox__watchdog **out,
                                const struct cox__watchdog_handler *handler);

/* Start the watchdog's thread: until then no lock is revoked. Errors: COX_E_SYSTEM. */
cox_status cox__watchdog_start(struct cox__watchdog *watchdog);

/* End the watchdog's thread; no lock is revoked any more. NULL is accepted. Returns false if a
 * stuck thread was not released: the watchdog and everything that the thread may use after its
 * return must stay. */
bool cox__watchdog_stop(struct cox__watchdog *watchdog);

/* After cox__watchdog_stop. Sets to NULL; NULL is accepted. */
void cox__watchdog_destroy(struct cox__watchdog **watchdog);

/* If something takes longer than its limit, the time during which the process could not run is
 * excused. It is excused up to this many limits, since a process may have a thread that never
 * runs. */
enum { COX__EXCUSE_TIMES = 9 };

/* Something takes longer than it should: until `until_ns` (cox__clock_ns) the watchdog's thread
 * counts how long this process cannot run. Thread-safety: safe from any thread. */
void cox__watchdog_count_starvation(struct cox__watchdog *watchdog, uint64_t until_ns);

/* How long the process could not run while that was counted (starvation.h) and while the watchdog's
 * thread was late for a look. Only differences between two results mean something. Thread-safety:
 * safe from any thread. */
uint64_t cox__watchdog_starved_ns(struct cox__watchdog *watchdog);

/* Free the record of a stuck thread that has returned. */
void cox__watchdog_release(struct cox__watchdog *watchdog, struct cox__stuck_thread *stuck);

/* Take and release the engine lock, for a thread that makes no bracketed driver call in between. */
void cox__watchdog_lock(struct cox__watchdog *watchdog);
void cox__watchdog_unlock(struct cox__watchdog *watchdog);

/* Whether the calling thread holds it. */
bool cox__watchdog_is_held_here(struct cox__watchdog *watchdog);

enum cox__lock_result {
    COX__LOCK_DONE,
    COX__LOCK_BUSY, /* another thread holds the lock; `work` was not called. Only without `wait` */
    COX__LOCK_REVOKED /* the lock was revoked while `work` ran, and `work` did not get to its end */
};

/* Run `work` with the engine lock held. `role`: what the calling thread is, for the handler. */
enum cox__lock_result cox__watchdog_run_locked(struct cox__watchdog *watchdog, bool wait, int role,
                                               void (*work)(void *ctx), void *ctx);

/* Announce driver calls for this session and device instance. If one of them takes longer than
 * `limit_ns`, the calling thread's lock is revoked. It applies until the next call of this
 * function. Call it with the engine lock held. */
void cox__watchdog_expect(struct cox__watchdog *watchdog, void *session, void *instance,
                          uint64_t limit_ns);

/* A bracketed driver call. */
struct cox__driver_call {
    struct cox__watchdog *watchdog; /* NULL: the call is not watched */
    uint64_t number;
    jmp_buf *home;
    struct cox__stuck_thread *stuck;
};

/* Call this with the engine lock held, before a driver call that may block. `watchdog` may be NULL:
 * the call is not watched. */
struct cox__driver_call cox__watchdog_call_begin(struct cox__watchdog *watchdog);

/* Call this after the driver call. False: the engine lock was revoked. The caller then cleans up
 * what belongs to the call's device instance alone, and calls cox__watchdog_call_abandon. */
bool cox__watchdog_call_end(const struct cox__driver_call *call);

/* Jump back to where this thread took the engine lock. Only after cox__watchdog_call_end has
 * returned false. */
_Noreturn void cox__watchdog_call_abandon(const struct cox__driver_call *call);

#endif
