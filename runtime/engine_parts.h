/* What the files of the session engine share with each other and with nobody else. Everything here runs under the runtime's
 * `engine_lock`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_ENGINE_PARTS_H
#define COX_RUNTIME_ENGINE_PARTS_H

#include "engine.h"

/* ---- engine.c: bands ---- */

uint64_t cox__engine_now(const struct cox_session *session);

/* Begin to use a slot. */
void cox__slot_start(const struct cox_session *session, struct cox__slot *slot, enum cox__slot_kind kind);

/* Add PENDING bands on one unit, cut to what it can hold at once. False: there are too many bands. */
bool cox__slot_add(const struct cox_session *session, struct cox__slot *slot, uint32_t unit, uint32_t first_row,
                   uint32_t rows, uint32_t attempt);

/* The usable unit that should do the whole frame soonest; unit_count if there is none. */
uint32_t cox__engine_best_unit(const struct cox_session *session);

/* Whether the unit can take one more band. */
bool cox__engine_has_lane(const struct cox_session *session, uint32_t unit);

/* Hand a slot's PENDING bands to the devices whose enqueue returns at once, and flush them. */
bool cox__slot_submit(struct cox_session *session, struct cox__slot *slot, uint32_t held);

void cox__slot_report(struct cox_session *session, const struct cox__slot *slot);

/* ---- engine_policy.c: what the policy is asked and told ---- */

/* Ask for the split of a frame that has just been started, and add its bands. */
void cox__policy_split(struct cox_session *session, struct cox__slot *slot);

/* Offer the frame's pool to the units that have nothing of the frame to do and are not in `held` (a bit each), either those
 * whose enqueue returns at once or the others. Returns whether anything came of it. */
bool cox__policy_offer(struct cox_session *session, struct cox__slot *slot, uint32_t held, bool blocking);

/* Units that may still take rows of the frame's pool. */
uint32_t cox__policy_waits_for(const struct cox_session *session, const struct cox__slot *slot);

/* A band is done, or has failed after it ran. */
void cox__policy_observe(struct cox_session *session, const struct cox__slot *slot, uint32_t band);

/* A frame is done, all before it are delivered. */
void cox__policy_observe_frame(struct cox_session *session, struct cox__slot *slot);

/* A frame begins while none before it is under way. */
void cox__policy_begin_period(struct cox_session *session);

/* ---- engine_shadow.c ---- */

/* Begin the shadow that the frame's split wishes for, if it can be begun now; else the wish is forgotten. `held` as above. */
void cox__shadow_begin(struct cox_session *session, struct cox__slot *frame, uint32_t held);

/* Report a shadow that is over. Returns whether there was one. */
bool cox__shadow_end(struct cox_session *session);

#endif
