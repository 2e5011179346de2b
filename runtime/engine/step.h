/* One turn of the engine. Level 6; with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_STEP_H
#define COX_ENGINE_STEP_H

#include "state.h"

/* Take turns until nothing can be done now. Returns when something else is due, UINT64_MAX if
 * nothing is. */
uint64_t cox__step_all(struct cox_runtime *runtime);

/* All of a turn but the warm-up, devices that are out, and the application's callbacks. True:
 * there is more to do than to wait, for the scheduler thread. Sets *next_ns to when a poll is
 * due. */
bool cox__step_inline(struct cox_runtime *runtime, uint64_t *next_ns);

/* Handle the session's events, those that come on the way too. True: there was one. */
bool cox__step_drain(struct cox_session *session);

#endif
