/* Shadow runs: bands on the spare buffers that no frame waits for. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_PROBATION_H
#define COX_ENGINE_PROBATION_H

#include "engine/state.h"

/* Begin the shadow run that the frame's split asks for, if it can begin now; otherwise drop the
 * request. Devices in `reserved` (a bit each) do not run it. */
void cox__probation_shadow_begin(struct cox_session *session, struct cox__frame *frame,
                                 uint32_t reserved);

/* A frame is finished: have a device on probation repeat some of its rows. A device that cannot
 * repeat rows on the spare buffers gets rows of the next frame instead. */
void cox__probation_begin(struct cox_session *session, struct cox__frame *frame);

/* If no device is active, end the probation of all devices: the waiting frames try them. With
 * `warms`, also end it for devices that have just joined, since cox_session_warm tries them.
 * Returns whether there was one. */
bool cox__probation_skip(struct cox_session *session, bool warms);

/* Report a shadow run that has ended. For a device on probation a PROBATION_RESULT event carries
 * the result. Returns whether there was one. */
bool cox__probation_shadow_end(struct cox_session *session);

#endif
