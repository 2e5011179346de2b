/* Completion callbacks of the driver, of which each may post one job.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_CALLBACK_H
#define COX_OPENCL_CALLBACK_H

#include "internal.h"

struct cox__cl_callback;

/* NULL: there is no memory. */
struct cox__cl_callbacks *cox__cl_callbacks_create(struct cox__post post);
void cox__cl_callbacks_destroy(struct cox__cl_callbacks *callbacks, const struct cox__log *log);

/* Have the event's completion post the job, until the callback is disarmed. NULL: the driver takes
 * no callback, or too many callbacks have not come; the band goes without one, since the engine
 * polls in any case. With the engine lock held. */
struct cox__cl_callback *cox__cl_callback_arm(struct cox__cl_backend *backend, cl_event event,
                                              struct cox__job *job, const char *device);

/* When the callback came; 0 = not yet. NULL is accepted, as below. */
uint64_t cox__cl_callback_end_ns(const struct cox__cl_callback *callback);

/* The callback that came at `end_ns` came before the band's end; with `proven`, before its own
 * event's end. */
void cox__cl_callback_was_early(struct cox__cl_callback *callback, uint64_t end_ns, bool proven);

/* From here on the callback posts nothing, and touches no job. */
void cox__cl_callback_disarm(struct cox__cl_callback *callback);

#endif
