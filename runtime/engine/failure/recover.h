/* Rows that will not come from the device they were given to. Level 4 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RECOVER_H
#define COX_ENGINE_RECOVER_H

#include "engine/state.h"

/* A band has failed, as its state says. Give its rows to another device, wait for one, or give the
 * frame up. `ran`: the device may have written anywhere in the rows. */
void cox__recover_band(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                       bool ran);

/* Give the PLANNED bands of devices that are out to others. */
void cox__recover_planned(struct cox_session *session);

/* The frame ends with an error: what has not begun of it is not done any more. */
void cox__recover_drop(struct cox_session *session, struct cox__frame *frame);

/* A device computes wrongly: what it has done of frames that are not delivered is done again. */
void cox__recover_convicted(struct cox_session *session, uint32_t device);

/* No device is active: after a while the frames end with an error. True: they do now. Sets *next_ns to when they
 * will. */
bool cox__recover_no_device(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

#endif
