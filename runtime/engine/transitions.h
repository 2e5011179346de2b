/* Changes of state, one function for each kind of object. The diagrams are above the enums in
 * state.h and session.h. Call them under the engine lock, except when the worker thread finishes
 * its task.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_TRANSITIONS_H
#define COX_ENGINE_TRANSITIONS_H

#include "state.h"

void cox__transition_band(struct cox__band *band, enum cox__band_state to);
void cox__transition_slot(struct cox__queue_slot *slot, enum cox__slot_state to);
void cox__transition_queue(struct cox__queue *queue, enum cox__queue_state to);
void cox__transition_spare(struct cox__spare *spare, enum cox__spare_state to);
void cox__transition_warmup(struct cox__warmup *warmup, enum cox__warmup_state to);

/* With the session's lock held. */
void cox__transition_warmth(struct cox__warmth *warmth, enum cox__session_warmth to);

/* Also updates `lost`, `returned` and `no_device`, under the session's lock. */
void cox__transition_device(struct cox_session *session, uint32_t device, enum cox_device_state to);

#endif
