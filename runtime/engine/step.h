/* One turn of the engine. Level 6; with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_STEP_H
#define COX_ENGINE_STEP_H

#include "state.h"

/* Take turns until there is nothing to do now. Returns the time when something else is due;
 * UINT64_MAX = never. */
uint64_t cox__step_all(struct cox_runtime *runtime);

/* Take a turn without the warm-up, lost devices and the application's callbacks. True: the
 * scheduler thread has more to do. Lowers *next_ns to the time of the next poll. */
bool cox__step_inline(struct cox_runtime *runtime, uint64_t *next_ns);

/* Handle the session's events, with those that arise in the process. True: there was one. */
bool cox__step_drain(struct cox_session *session);

#endif
