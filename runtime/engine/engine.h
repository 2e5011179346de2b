/* What the engine offers to api/ and store/. The engine moves a frame from cox_session_submit to
 * its callback.
 *
 * Its files form levels. A file calls files of lower levels only, and reports upwards by an
 * event.
 *
 *   7  threads       the threads that take the turns
 *   6  step          one turn: takes what has arrived, drains events, starts frames, submits bands, polls, delivers
 *   5  deliver       callbacks in order
 *   4  passes        from a pass of a frame to the next one
 *      recover       rows that will not come: another device does them
 *   3  policy, verify, probation, warmup
 *   2  queue, spare, reaper, making, relocate
 *   1  frame, timing, device, buffers, residency (over frame)
 *   0  state.h (the data), transitions, memory, event.h, pipeline (over contracts), backend.h (what devices must do)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_ENGINE_H
#define COX_ENGINE_ENGINE_H

#include "state.h"

/* ---- the scheduler thread and the watchdog's: engine.c ---- */

/* The thread that holds the engine lock. */
enum cox__role {
    COX__ROLE_SCHEDULER,    /* the scheduler thread */
    COX__ROLE_HELPER,       /* a thread inside cox_session_run, before it waits */
    COX__ROLE_INLINE_POLLER /* the one that takes the devices' posts while it waits */
};

/* One step of the scheduler thread over every session; the loop's `step`. */
uint64_t cox__engine_step(void *runtime);

/* The engine lock was revoked from a thread that is kept in a driver call about an instance; the
 * watchdog's `revoked`, and its `after`. */
void cox__engine_revoked(void *runtime, void *session, void *instance, int role,
                         struct cox__stuck_thread *stuck);
void cox__engine_after_revoked(void *runtime);

/* ---- any thread: engine.c ---- */

/* Post a finished job; the backend's `post`. */
void cox__engine_post(void *runtime, struct cox__job *job);

/* Hand a request to the scheduler thread. Returns whether that thread must be woken for it. */
bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request);

/* Wake the scheduler thread for a request, unless it is awake and looks for requests without a
 * pause. */
void cox__engine_wake(struct cox_runtime *runtime);

/* Do what the scheduler thread would do with the requests that are queued, up to submitting
 * bands, and wake it if there is more to do than to wait for them. Spares a caller that waits
 * anyway a change of threads. Not from the scheduler thread. */
void cox__engine_help(struct cox_runtime *runtime);

/* The same, and then wait until `*done`, taking the devices' posts and polling them in the
 * scheduler thread's place. False, before that, if another thread does so, or a driver kept this
 * one for too long. Not from the scheduler thread. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done);

/* Some thread's `*done` has been set. */
void cox__engine_awaited(struct cox_runtime *runtime);

/* Have nothing begun any more, and wait until nothing of the session is under way on the worker
 * thread, or on a device that has not been given up. False: some driver call does not return;
 * what the session owns must stay. Not from the scheduler thread. */
bool cox__engine_close(struct cox_session *session);

/* Whether a thread is still inside a driver call of a session that was destroyed. */
bool cox__reaper_any_stuck(struct cox_runtime *runtime);

/* The runtime is going, and its backend is gone: free what is left of sessions that were
 * destroyed. */
void cox__reaper_forget_stray(struct cox_runtime *runtime);

/* ---- while no other thread knows the session, or nothing is under way ---- */

/* What the policy of a pass sees. Fills `devices` (COX_DEVICES_MAX) and points `view` to it.
 * policy.c */
void cox__policy_view(const struct cox_session *session, uint32_t pass, uint64_t frame,
                      struct cox_sched_device *devices, struct cox_sched_view *view);

/* Give the policy of a pass the profiles that an earlier session saved, one for each device:
 * after its init, before the first frame. False: it takes none. policy.c */
bool cox__policy_load_profile(struct cox_session *session, uint32_t pass,
                              const struct cox_device_profile *profiles);

/* Ask the policy of a pass what it knows, a profile for each device. False: it tells nothing.
 * policy.c */
bool cox__policy_save_profile(const struct cox_session *session, uint32_t pass,
                              struct cox_device_profile *profiles);

/* Free the spare buffers: the instances are gone and the engine does not know the session any
 * more. spare.c */
void cox__spare_drop(struct cox_session *session);

/* The same for what the warm-up allocated and could not free. warmup.c */
void cox__warmup_drop(struct cox_session *session);

/* ---- memory: memory.c, buffers.c, spare.c; no lock held ---- */

/* Allocate memory for some of the session's bindings, a bit for each; the others get NULL. On an
 * error no memory is left, and *failed is the binding that got none. It takes as long as the driver
 * needs. Not from the scheduler thread. */
cox_status cox__spare_make_mems(const struct cox_session *session, uint32_t bindings,
                                struct cox__mem **mems, uint32_t *failed);

/* Destroy memory that no frame uses. False: a device that was given up may still touch it, so the
 * memory is destroyed once that device has ended. Not from the scheduler thread. */
bool cox__memory_drop(struct cox_runtime *runtime, struct cox__mem *mem);

/* The same in the background. Does not block; callbacks may call it. */
void cox__memory_let_go_locking(struct cox_runtime *runtime, struct cox__mem *mem);

/* The runtime is going: there are no threads any more. Free the lost queues whose instances are
 * gone by now. */
void cox__reaper_reap_gone(struct cox_runtime *runtime);

/* After that. Memory that is still kept is leaked. */
void cox__memory_forget(struct cox_runtime *runtime);

/* Whether the caller is inside a buffer's `released` function. */
bool cox__memory_is_in_released(struct cox_runtime *runtime);

/* A reference of the application's to a buffer is given back. Callbacks may call it. */
void cox__buffers_unref(cox_buffer *buffer);

#endif
