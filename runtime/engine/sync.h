/* Memory that hardware outside of the runtime uses too, as a DMA-BUF: the calls that surround its
 * use. Level 0 of the engine.
 *
 * The host, and with it the devices, may use such memory only between a call of `begin` and one of
 * `end`. Uses may overlap: the first one begins and the last one ends.
 *
 * A frame's use lasts from its submission until just before its callback. It begins on the thread
 * that submits, because `begin` may wait for other hardware, and the scheduler thread must not.
 *
 * Every use reads. Some of its bytes may not be written, for example between rows. And to begin
 * reading while an earlier use writes could discard what that has written: on some machines the
 * CPU's caches are then emptied.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_SYNC_H
#define COX_ENGINE_SYNC_H

#include "state.h"

struct cox__sync {
    /* Constant. `reads` and `writes`: what begins or ends; one is true, or both. */
    cox_status (*begin)(const struct cox__sync *sync, bool reads, bool writes); /* may block */
    cox_status (*end)(const struct cox__sync *sync, bool reads, bool writes);

    pthread_mutex_t turn; /* held during `begin`, so that a second use waits for it */
    pthread_mutex_t lock; /* guards the rest; taken inside `turn` */
    uint32_t users;
    bool reads; /* what has begun */
    bool writes;
};

void cox__sync_init(struct cox__sync *sync);
void cox__sync_destroy(struct cox__sync *sync);

/* Begin a use. On an error it has not begun. */
cox_status cox__sync_begin(struct cox__sync *sync, bool writes);

/* End a use. It has ended even if there was an error. */
cox_status cox__sync_end(struct cox__sync *sync);

/* Begin or end the use of a frame's buffers. `buffers` is in the order of the bindings; an element
 * may be NULL.
 *
 * Begin returns COX_E_INVALID (logged) if the frame writes memory that can only be read. On an
 * error no use has begun. */
cox_status cox__sync_begin_frame(const struct cox_session *session, cox_buffer *const *buffers,
                                 bool fetch);
cox_status cox__sync_end_frame(const struct cox_session *session, cox_buffer *const *buffers);

#endif
