/* Delivered frames whose callbacks wait for the application's thread, in a session with `dispatch`. Level 1 of the
 * engine. All but opening and closing with the session's lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_OUTBOX_H
#define COX_ENGINE_OUTBOX_H

#include "state.h"

/* Errors: COX_E_SYSTEM (no descriptor). */
cox_status cox__outbox_open(struct cox__outbox *outbox);

/* An outbox that was never opened is accepted. */
void cox__outbox_close(struct cox__outbox *outbox);

/* Add a frame that is delivered, and tell the application. */
void cox__outbox_put(struct cox_session *session, struct cox__frame *frame);

/* The oldest frame, which leaves; there is one. */
struct cox__frame *cox__outbox_take(struct cox_session *session);

#endif
