/* The engine's interface for api/ and store/. The engine moves a frame from cox_session_submit to
 * its callback.
 *
 * Its files form levels. A file calls only files of lower levels, and reports upwards by an event.
 *
 *   7  engine        the threads that take the turns
 *   6  step          one turn: takes posts and requests, drains events, starts frames, submits
 *                    bands, polls, delivers
 *   5  deliver       callbacks in order
 *   4  passes        from one pass of a frame to the next
 *      recover       rows of a lost device: another device does them
 *   3  policy, verify, probation, warmup
 *   2  queue, spare, reaper, making, relocate
 *   1  frame, timing, device, buffers, directory, residency (over frame)
 *   0  state.h and session_parts.h (the data), transitions, memory, event.h, order.h,
 *      pipeline (over contracts), measure, sync, backend.h (what a backend must implement)
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

/* The engine lock was revoked from a thread that is stuck in a driver call of an instance. These
 * are the watchdog's `revoked` and `after`. */
void cox__engine_revoked(void *runtime, void *session, void *instance, int role,
                         struct cox__stuck_thread *stuck);
void cox__engine_after_revoked(void *runtime);

/* ---- any thread: engine.c ---- */

/* Post a finished job; the backend's `post`. */
void cox__engine_post(void *runtime, struct cox__job *job);

/* Hand a request to the scheduler thread. Returns whether that thread must be woken for it. */
bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request);

/* Wake the scheduler thread for a request, unless it is awake and polls for requests. */
void cox__engine_wake(struct cox_runtime *runtime);

/* Handle the queued requests in the scheduler thread's place, up to submitting bands. Wake that
 * thread if there is more to do. Saves a change of threads if the caller waits anyway. Not from the
 * scheduler thread. */
void cox__engine_help(struct cox_runtime *runtime);

/* The same, then wait until `*done` is set. While it waits, the caller takes the devices' posts and
 * polls them in the scheduler thread's place. Returns false earlier if another thread does so, or
 * if a driver call took too long. Not from the scheduler thread. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done);

/* Wake the inline poller: some thread's `*done` was set. */
void cox__engine_awaited(struct cox_runtime *runtime);

/* Start no new work of the session, and wait until its work on the worker thread and on devices
 * that are not lost has ended. False: a driver call hangs, so the session's memory must not be
 * freed. Not from the scheduler thread. */
bool cox__engine_close(struct cox_session *session);

/* Whether a thread is still inside a driver call of a session that was destroyed. */
bool cox__reaper_any_stuck(struct cox_runtime *runtime);

/* The runtime is being destroyed, and its backend is gone: free the remaining queues of destroyed
 * sessions. */
void cox__reaper_forget_stray(struct cox_runtime *runtime);

/* ---- while no other thread knows the session, or nothing is under way ---- */

/* Fill the view that the policy of a pass gets. `devices` has room for COX_DEVICES_MAX, and `view`
 * points to it. policy.c */
void cox__policy_view(const struct cox_session *session, uint32_t pass, uint64_t frame,
                      struct cox_sched_device *devices, struct cox_sched_view *view);

/* Give the policy of a pass the saved profiles of an earlier session, one for each device. Call
 * it after the policy's init and before the first frame. False: the policy takes no profiles.
 * policy.c */
bool cox__policy_load_profile(struct cox_session *session, uint32_t pass,
                              const struct cox_device_profile *profiles);

/* Ask the policy of a pass for a profile of each device. False: the policy saves no profiles.
 * policy.c */
bool cox__policy_save_profile(struct cox_session *session, uint32_t pass,
                              struct cox_device_profile *profiles);

/* Free the spare buffers. The instances are gone, and the engine no longer knows the session.
 * spare.c */
void cox__spare_drop(struct cox_runtime *runtime, const struct cox__spare *spare);

/* The same for memory that the warm-up allocated and could not free. warmup.c */
void cox__warmup_drop(struct cox_runtime *runtime, const struct cox__warmup *warmup);

/* ---- memory: memory.c, buffers.c, spare.c; no lock held ---- */

/* Allocate memory for some of the session's bindings, a bit for each; the others get NULL. On an
 * error nothing stays allocated, and *failed is the binding without memory. The driver may block.
 * Not from the scheduler thread. */
cox_status cox__spare_make_mems(struct cox__backend *backend, const struct cox__pipeline *pipeline,
                                uint32_t bindings, struct cox__mem **mems, uint32_t *failed);

/* Destroy memory that no frame uses. False: a lost device may still touch it, so it is destroyed
 * when that device has ended. Not from the scheduler thread. */
bool cox__memory_drop(struct cox_runtime *runtime, struct cox__mem *mem);

/* The same in the background. Does not block; callbacks may call it. */
void cox__memory_let_go_locking(struct cox_runtime *runtime, struct cox__mem *mem);

/* The runtime is being destroyed, and its threads have ended. Free the lost queues whose instances
 * are gone. */
void cox__reaper_reap_gone(struct cox_runtime *runtime);

/* Call it after cox__reaper_reap_gone. Leaks the memory that is still kept. */
void cox__memory_forget(struct cox_runtime *runtime);

/* Whether the caller is inside a buffer's `released` function. */
bool cox__memory_is_in_released(struct cox_runtime *runtime);

/* Drop the application's reference to a buffer. Callbacks may call it. */
void cox__buffers_unref(cox_buffer *buffer);

#endif
