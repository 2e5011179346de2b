/* Delivery of frames to the application. Level 5 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_DELIVER_H
#define COX_ENGINE_DELIVER_H

#include "state.h"

/* Report a finished shadow run, and deliver the complete frames at the head of the order. With
 * `awaited_only`, stop at the first frame with a callback of the application. Returns whether
 * anything was done. */
bool cox__deliver(struct cox_session *session, bool awaited_only);

/* Whether the frame at the head of the order is complete. */
bool cox__deliver_is_due(struct cox_session *session);

/* Call the session's `ready` when the first device has joined or none can. Returns whether it was
 * called. */
bool cox__deliver_ready(struct cox_session *session);

#endif
