/* Submits bands and notices their completion. It makes no decisions and reports by events. Level
 * 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_QUEUE_H
#define COX_ENGINE_QUEUE_H

#include "state.h"

/* Submit a frame's PLANNED bands to the devices whose enqueue call returns at once, not to those
 * in `reserved` (a bit each), and flush them. Returns whether a band was submitted or refused. */
bool cox__queue_submit(struct cox_session *session, struct cox__frame *frame, uint32_t reserved);

/* Submit one PLANNED band to a device that computes inside the enqueue call. Returns as above. */
bool cox__queue_submit_blocking(struct cox_session *session, struct cox__frame *frame,
                                uint32_t reserved);

/* Flush the queues with bands that were submitted after their last flush. Then enqueue and flush
 * the other parts of bands that were submitted in part. */
void cox__queue_flush(struct cox_session *session);

/* Poll the device for a slot's band, after a post or at the planned time. True: something has
 * changed, and events say what. */
bool cox__queue_poll(struct cox_session *session, struct cox__queue_slot *slot, bool posted);

/* Mark the device as failed if the slot's band has missed its deadline. Returns whether it has. */
bool cox__queue_check_deadline(struct cox_session *session, struct cox__queue_slot *slot,
                               uint64_t now_ns);

#endif
