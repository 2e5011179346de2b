/* Compares the results of devices bit for bit. Level 3 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_VERIFY_H
#define COX_ENGINE_VERIFY_H

#include "engine/state.h"

/* All bands of a frame are done: have a sample of them checked. True: the frame has to wait. */
bool cox__verify_frame(struct cox_session *session, struct cox__frame *frame);

/* A check is done: compare the results. */
void cox__verify_done(struct cox_session *session, struct cox__frame *frame, uint32_t check);

/* A check has failed: its rows will be checked again. */
void cox__verify_failed(struct cox_session *session, struct cox__frame *frame, uint32_t check);

#endif
