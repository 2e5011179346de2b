/* Shadow runs: bands on the spare buffers that no frame waits for. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_PROBATION_H
#define COX_ENGINE_PROBATION_H

#include "engine/state.h"

/* Begin the shadow run that the frame's split wishes for, if it can begin now; else the wish is forgotten. Not on the
 * devices in `reserved` (a bit each). */
void cox__probation_shadow_begin(struct cox_session *session, struct cox__frame *frame,
                                 uint32_t reserved);

/* A frame is finished: have a device on probation do some rows of it. One that cannot do rows beside a frame is tried
 * with the next. */
void cox__probation_begin(struct cox_session *session, struct cox__frame *frame);

/* End the probation of all devices if none is active: they are tried with the frames that wait; and, with `warms`, of
 * those that have just joined: cox_session_warm tries them. True: there was one. */
bool cox__probation_skip(struct cox_session *session, bool warms);

/* Report a shadow run that is over; a PROBATION_RESULT event says how a device on probation did. Returns whether
 * there was one. */
bool cox__probation_shadow_end(struct cox_session *session);

#endif
