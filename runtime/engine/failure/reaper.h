/* Lost device instances: from the failure until they are destroyed. Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_REAPER_H
#define COX_ENGINE_REAPER_H

#include "engine/state.h"

/* A device has failed: its queue becomes a lost one, which drains. */
void cox__reaper_take(struct cox_session *session, uint32_t device, cox_status status);

/* Do what is due for lost queues: abandon those that have missed their deadlines, have those destroyed that hold
 * nothing any more. True: something has changed. Sets *next_ns to when something else is due. */
bool cox__reaper_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

/* Take the lost queues off a list whose instances are gone: nothing is posted for them any more. True: there is one.
 * Then take the posts of their jobs off the runtime's queue, and call cox__reaper_free. */
bool cox__reaper_collect(struct cox_runtime *runtime, struct cox__queue **list);

/* Free the queues that were collected, and let go of what was kept for them. */
void cox__reaper_free(struct cox_runtime *runtime);

/* Whether a session may be destroyed before the lost queue is gone: its device hangs, and nothing waits for it. */
bool cox__reaper_may_be_left(const struct cox__queue *queue);

/* The session goes; its lost queues stay with the runtime. */
void cox__reaper_leave(struct cox_session *session);

/* Do what is due for those, as cox__reaper_step does. */
void cox__reaper_step_stray(struct cox_runtime *runtime, uint64_t *next_ns);

#endif
