/* Callbacks that run on the application's threads, for session.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_DISPATCH_H
#define COX_API_DISPATCH_H

#include "engine/state.h"

/* Whether the calling thread is inside a callback that it runs for the session itself. With the session's lock held. */
bool cox__dispatch_is_inside(const struct cox_session *session);

/* Run the callbacks that are left. False: there were none. */
bool cox__dispatch_rest(struct cox_session *session);

#endif
