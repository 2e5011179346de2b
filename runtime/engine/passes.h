/* From a pass of a frame to the next one. Level 4 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_PASSES_H
#define COX_ENGINE_PASSES_H

#include "state.h"

/* If the pass under way is done, and another one follows, go on with that: its bands are added.
 * Returns whether there is something new to do. */
bool cox__passes_advance(struct cox_session *session, struct cox__frame *frame);

/* All bands of a pass are in and verified: merge what it has reduced, tell the policy, call the
 * application's function. For the last pass when the frame is delivered. */
void cox__passes_conclude(struct cox_session *session, struct cox__frame *frame);

#endif
