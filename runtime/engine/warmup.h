/* The runs before a session's first frame. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_WARMUP_H
#define COX_ENGINE_WARMUP_H

#include "state.h"

/* Advance the warm-up, which comes before the session's first frame. True: something has happened. */
bool cox__warmup_step(struct cox_session *session, const struct cox__frame *first);

#endif
