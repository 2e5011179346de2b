/* Completion callbacks of the driver: each posts one job. Used by jobs and queue slots.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_CALLBACK_H
#define COX_OPENCL_CALLBACK_H

#include "internal.h"

struct cox__cl_callback;

/* NULL = out of memory. */
struct cox__cl_callbacks *cox__cl_callbacks_create(struct cox__post post);
void cox__cl_callbacks_destroy(struct cox__cl_callbacks *callbacks, const struct cox__log *log);

/* Post the job when the event completes, until the callback is disarmed. NULL: the driver refuses
 * the callback, or too many callbacks have not come. The band then runs without one, since the
 * engine polls in any case. With the engine lock held. */
struct cox__cl_callback *cox__cl_callback_arm(struct cox__cl_backend *backend, cl_event event,
                                              struct cox__job *job, const char *device);

/* When the callback came; 0 = not yet. NULL is accepted, as below. */
uint64_t cox__cl_callback_end_ns(const struct cox__cl_callback *callback);

/* The callback that came at `end_ns` was too early: the band had not ended. `proven`: not even the
 * callback's own event had. */
void cox__cl_callback_was_early(struct cox__cl_callback *callback, uint64_t end_ns, bool proven);

/* When this returns, the callback posts nothing and touches no job. */
void cox__cl_callback_disarm(struct cox__cl_callback *callback);

#endif
