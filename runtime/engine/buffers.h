/* The order in which frames use their buffers. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_BUFFERS_H
#define COX_ENGINE_BUFFERS_H

#include "state.h"

/* Queue an arriving frame for its buffers, after the frames that arrived before it. */
void cox__buffers_queue(struct cox__frame *frame);

/* Take the frame's buffers and note their memory. False: an earlier frame still uses one of
 * them. */
bool cox__buffers_take(struct cox__frame *frame);

/* Whether the frame can run on its buffers: COX_OK, COX_E_MEMORY_UNSAFE, or the status of a failed
 * frame that should have written one of the inputs. */
cox_status cox__buffers_status(const struct cox__frame *frame);

/* The frame's callback is about to run. If the frame failed, frames submitted before now that read
 * a buffer which it writes fail with its status. */
void cox__buffers_leave(const struct cox_runtime *runtime, const struct cox__frame *frame);

/* The bindings whose buffers the frame writes, a bit for each. */
uint32_t cox__buffers_written(const struct cox__frame *frame);

/* A frame's callback has run: pass its buffers on, and free those that the application has
 * destroyed. `written`: by cox__buffers_written. */
void cox__buffers_give_back(const struct cox_session *session, cox_buffer *const *buffers,
                            uint32_t written);

/* Give up a reference to what outlives a buffer. Accepts NULL. Any thread. */
void cox__buffers_put_life(struct cox__buffer_life *life);

#endif
