/* The runs before a session's first frame. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_WARMUP_H
#define COX_ENGINE_WARMUP_H

#include "state.h"

/* Advance the warm-up, which comes before the session's first frame. True: something has
 * happened. */
bool cox__warmup_step(struct cox_session *session, const struct cox__frame *first);

/* Whether there are runs to be done though no frame waits for them. */
bool cox__warmup_is_asked(const struct cox_session *session);

/* cox_session_warm asks for the runs, with memory for them. If a frame was quicker the runs are
 * that one's, or there are none. */
void cox__warmup_request(struct cox_session *session);

/* The first frame is not to be done after all: runs on its buffers, if any, end. False: one is
 * still under way. */
bool cox__warmup_pause(struct cox_session *session);

#endif
