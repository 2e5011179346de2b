/* The engine's calls of a session's policy. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_POLICY_H
#define COX_ENGINE_POLICY_H

#include "state.h"

/* Ask for the split of a pass that has just begun, and add its bands. */
void cox__policy_split(struct cox_session *session, struct cox__frame *frame);

/* Offer the pass's pool to the devices without a band of the frame that are not in `reserved` (a
 * bit each). With `blocking`, only blocking devices get the offer; else only those whose enqueue
 * call returns at once. Returns whether something changed. */
bool cox__policy_offer(struct cox_session *session, struct cox__frame *frame, uint32_t reserved,
                       bool blocking);

/* Devices that may still take rows of the frame's pool, a bit each. They get no bands of later
 * frames in the meantime, because the pool would have to wait for those. */
uint32_t cox__policy_reserves(const struct cox_session *session, const struct cox__frame *frame);

/* Report a band that has ended: it is DONE, or FAILED after it ran. `of_passes`: the session's. */
void cox__policy_observe(const struct cox_session *session, const struct cox__frame *frame,
                         uint32_t band);

/* Report a finished pass. After the last pass the frame is about to be delivered. */
void cox__policy_observe_pass(struct cox_session *session, struct cox__frame *frame);

/* Read the energy meter: the period of the next frame begins. Call it when a frame begins and no
 * other frame is under way. */
void cox__policy_begin_period(struct cox__energy *energy);

#endif
