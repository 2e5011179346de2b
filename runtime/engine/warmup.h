/* The warm-up before a session's first frame. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_WARMUP_H
#define COX_ENGINE_WARMUP_H

#include "state.h"

/* Advance the warm-up. `first`: the session's first frame, which waits for it; NULL = none. True:
 * something has changed. */
bool cox__warmup_step(struct cox_session *session, const struct cox__frame *first);

/* Whether cox_session_warm has asked for runs that are not finished. */
bool cox__warmup_is_asked(const struct cox__warmup *warmup);

/* Take a request of cox_session_warm, which has put memory for the runs into warmup.given. If the
 * first frame has begun the runs, they count instead. If no runs are left, that memory is freed. */
void cox__warmup_request(struct cox_session *session);

/* The first frame was cancelled: stop runs on its buffers. False: a run is still under way. */
bool cox__warmup_pause(struct cox_session *session);

#endif
