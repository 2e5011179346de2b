/* The turns that frames have with their buffers. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_BUFFER_USE_H
#define COX_ENGINE_BUFFER_USE_H

#include "state.h"

/* A frame has arrived: it has its buffers after those that arrived before it. */
void cox__buffers_queue(const struct cox_session *session, struct cox__frame *frame);

/* Whether the frame may have its buffers now. It then has the memory that they are in. */
bool cox__buffers_take(const struct cox_session *session, struct cox__frame *frame);

/* What the frame's buffers allow: COX_OK, COX_E_MEMORY_UNSAFE, or the status of a frame that
 * failed, and was to write one of the inputs. */
cox_status cox__buffers_status(const struct cox_session *session, const struct cox__frame *frame);

/* The frame's callback is to run: frames that are submitted from then on know what became of it. */
void cox__buffers_leave(const struct cox_session *session, const struct cox__frame *frame);

/* A frame's callback has run: others may have its buffers, and those go that the application has
 * destroyed. */
void cox__buffers_give_back(const struct cox_session *session, cox_buffer *const *buffers);

#endif
