/* Lost device instances: from the failure until they are destroyed, and how a device gets a new one. Level 2 of the
 * engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_REAPER_H
#define COX_ENGINE_REAPER_H

#include "state.h"

/* A device has failed: its queue becomes a lost one, which drains. */
void cox__reaper_take(struct cox_session *session, uint32_t device, cox_status status);

/* Do what is due for lost queues: abandon those that have missed their deadlines, have those destroyed that hold
 * nothing any more. True: something has changed. Sets *next_ns to when something else is due. */
bool cox__reaper_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

/* Whether the instance of a lost queue is gone. Then take the posts of its jobs off the runtime's queue, and call
 * cox__reaper_free. */
bool cox__reaper_has_gone(const struct cox_session *session);

/* Free the lost queues whose instances are gone. */
void cox__reaper_free(struct cox_session *session);

/* Do what is due for devices that are out: let them be rebuilt, and put them on probation with their new instance.
 * Results as of cox__reaper_step. */
bool cox__reaper_rebuild_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

#endif
