/* Moves frames out of memory that a lost device may still write to. Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RELOCATE_H
#define COX_ENGINE_RELOCATE_H

#include "engine/state.h"

/* Whether a started frame has to wait because its memory is being replaced. Starts the relocation
 * if one is needed. If that fails, the frame gets an error. */
bool cox__relocate_holds(struct cox_session *session, struct cox__frame *frame);

/* Lower *next_ns to when a running relocation is given up. */
void cox__relocate_due(const struct cox__order *order, uint64_t *next_ns);

#endif
