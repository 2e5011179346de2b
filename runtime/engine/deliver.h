/* Frames go back to the application. Level 5 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_DELIVER_H
#define COX_ENGINE_DELIVER_H

#include "state.h"

/* Report a shadow run that is over, and give the complete frames at the head of the order back
 * to the application; with `awaited_only` up to the first one that has a callback of the
 * application's. Returns whether anything was done. */
bool cox__deliver(struct cox_session *session, bool awaited_only);

/* Whether the frame at the head of the order is complete. */
bool cox__deliver_is_due(struct cox_session *session);

/* Call the session's `ready`, once the first device has joined or none can. Returns whether it
 * was called. */
bool cox__deliver_ready(struct cox_session *session);

#endif
