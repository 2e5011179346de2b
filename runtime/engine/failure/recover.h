/* Repeats rows of devices that fail. Level 4 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RECOVER_H
#define COX_ENGINE_RECOVER_H

#include "engine/state.h"

/* A band has failed; its state says how. Give its rows to another device, wait for a device, or
 * give the frame up. `ran`: the device may have written anywhere in the rows. */
void cox__recover_band(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                       bool ran);

/* Give the PLANNED bands of unavailable devices to others. */
void cox__recover_planned(struct cox_session *session);

/* The frame ends with an error: drop its bands that have not begun. Returns whether it had any;
 * another frame may have waited for the memory of its checks. */
bool cox__recover_drop(struct cox__spare *spare, struct cox__frame *frame);

/* A device was convicted of wrong results. In frames that are not delivered yet:
 *   The fallback device repeats its bands of the pass under way.
 *   A frame with its bands in an earlier pass starts again.
 *   A frame with its bands in place ends with an error, because they cannot be repeated. */
void cox__recover_convicted(struct cox_session *session, uint32_t device);

/* No device is active: after a while the frames end with an error. Returns whether they end now.
 * Lowers *next_ns to when they will. */
bool cox__recover_no_device(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

#endif
