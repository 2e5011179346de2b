/* From one pass of a frame to the next. Level 4 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_PASSES_H
#define COX_ENGINE_PASSES_H

#include "state.h"

/* If the pass under way is done and another one follows: check a sample of its bands, then begin
 * the next pass and add its bands. If rows of an earlier pass were wrong or lost, start the
 * frame again. The frame may also end with an error. Returns whether anything changed. */
bool cox__passes_advance(struct cox_session *session, struct cox__frame *frame);

/* Finish a pass whose bands are done and verified: merge its partial results, report to the policy,
 * and call cox_pass.done. For the last pass this happens at delivery. */
void cox__passes_conclude(struct cox_session *session, struct cox__frame *frame);

#endif
