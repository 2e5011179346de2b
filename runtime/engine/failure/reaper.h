/* Lost device instances: from the failure until they are destroyed. Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_REAPER_H
#define COX_ENGINE_REAPER_H

#include "engine/state.h"

/* A device has failed: the session loses its queue, which drains. */
void cox__reaper_take(struct cox_session *session, uint32_t device, cox_status status);

/* Do the due work for lost queues: abandon those that have missed their deadlines, and start to
 * destroy those that are empty. Returns whether something has changed. Lowers *next_ns to when more
 * work is due. */
bool cox__reaper_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

/* Take lost queues whose instances are gone off a list; nothing is posted for them any more.
 * Returns whether there is one. Then take the posts of their jobs off the runtime's queue, and call
 * cox__reaper_free. */
bool cox__reaper_collect(struct cox_runtime *runtime, struct cox__queue **list);

/* Free the queues that were collected, and release the memory that was kept for them. */
void cox__reaper_free(struct cox_runtime *runtime);

/* Whether a session may be destroyed before the lost queue is gone: its device hangs, and nothing
 * waits for it. */
bool cox__reaper_may_be_left(const struct cox__queue *queue);

/* The session ends; the runtime takes over its lost queues. */
void cox__reaper_leave(struct cox_runtime *runtime, struct cox__recovery *recovery);

/* Do the due work for those, as cox__reaper_step does. */
void cox__reaper_step_stray(struct cox_runtime *runtime, uint64_t *next_ns);

#endif
