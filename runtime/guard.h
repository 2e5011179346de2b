/* The engine's lock, and what frees it from a thread that a driver does not let go of.
 *
 * Whoever moves the engine holds the guard, and says around each driver call that may block: I am inside. If such a call takes
 * too long a thread of the guard's own takes the guard away from that thread. It is told what was going on, puts the engine
 * right, and the engine goes on without the one who is inside. When that one comes back, if ever, it leaves everything as it is and returns
 * from cox__guard_hold.
 *
 * So at every such call the engine must be in a state in which somebody else can go on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_GUARD_H
#define COX_RUNTIME_GUARD_H

#include <coxswain/status.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__guard;

/* A thread that a driver keeps. */
struct cox__captive {
    atomic_bool returned; /* it has come back, and touches nothing any more of what the call was about */
};

/* Both run on the guard's thread. */
struct cox__guard_handler {
    /* With the guard held, which was taken from somebody inside a call: `session` and `unit` are those of cox__guard_about,
     * `role` that of cox__guard_hold. The captive is the callee's to release. */
    void (*seized)(void *ctx, void *session, void *unit, int role, struct cox__captive *captive);
    /* Some times in the second after that: wake-ups may have gone to the thread that is kept. */
    void (*after)(void *ctx);
    void *ctx;
};

/* Errors: COX_E_NOMEM. */
cox_status cox__guard_create(struct cox__guard **out, const struct cox__guard_handler *handler);

/* Start the guard's thread: until then nothing is seized. Errors: COX_E_SYSTEM. */
cox_status cox__guard_start(struct cox__guard *guard);

/* End the guard's thread; nothing is seized any more. False: there are captives that were not released, and what these threads may
 * come back to must stay, the guard too. NULL is accepted. */
bool cox__guard_stop(struct cox__guard *guard);

/* After cox__guard_stop. Sets to NULL; NULL is accepted. */
void cox__guard_destroy(struct cox__guard **guard);

/* Free a captive that has returned. */
void cox__guard_release(struct cox__guard *guard, struct cox__captive *captive);

/* For who makes no driver call in between. */
void cox__guard_lock(struct cox__guard *guard);
void cox__guard_unlock(struct cox__guard *guard);

enum cox__guard_end {
    COX__GUARD_DONE,
    COX__GUARD_BUSY,  /* somebody else holds it: `work` was not called. Only without `wait` */
    COX__GUARD_SEIZED /* it was taken away on the way */
};

/* Hold the guard while `work` runs. `role`: who does, for the handler. */
enum cox__guard_end cox__guard_hold(struct cox__guard *guard, bool wait, int role, void (*work)(void *ctx), void *ctx);

/* By the holder: whose driver calls come next, and for how long one of them may keep it. */
void cox__guard_about(struct cox__guard *guard, void *session, void *unit, uint64_t limit_ns);

struct cox__guard_call {
    struct cox__guard *guard; /* NULL: nobody looks */
    uint64_t number;
    jmp_buf *home;
    struct cox__captive *captive;
};

/* By the holder, before a driver call that may block; `guard` may be NULL. */
struct cox__guard_call cox__guard_enter(struct cox__guard *guard);

/* After it. False: the guard was taken away; then the caller puts in order what is its unit's alone, and deserts. */
bool cox__guard_leave(const struct cox__guard_call *call);

/* To the thread's cox__guard_hold. */
_Noreturn void cox__guard_desert(const struct cox__guard_call *call);

#endif
