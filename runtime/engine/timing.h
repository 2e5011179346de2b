/* How long bands should take, when to poll for their end, and their deadlines. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_TIMING_H
#define COX_ENGINE_TIMING_H

#include "state.h"

/* The first poll of a device that posts nothing, after so long: drivers exist that call nothing back when a command
 * fails. */
#define COX__POLL_FIRST_NS 50000000ull
/* The least pause between two polls of a device whose band should be over. A poll costs a few microseconds. */
#define COX__POLL_SOON_NS 20000ull

/* Time limit for a call of the device's driver. */
uint64_t cox__device_call_limit_ns(const struct cox_session *session, uint32_t device);

/* How long a session waits for devices where no band's deadline says it: when no device is active, when a session is
 * destroyed. */
uint64_t cox__session_timeout_ns(const struct cox_session *session);

/* Plan the first poll of a band that has just been enqueued. */
void cox__slot_plan_poll(struct cox_session *session, struct cox__queue_slot *slot);

/* Plan the next poll after one that found the band still running. */
void cox__slot_plan_next_poll(struct cox__queue_slot *slot, uint64_t now_ns);

/* When the slot is to be looked at: its next poll or its deadline. */
uint64_t cox__slot_due_ns(const struct cox__queue_slot *slot);

/* The queue was flushed: its QUEUED bands become RUNNING and get deadlines. */
void cox__queue_plan_deadlines(struct cox_session *session, struct cox__queue *queue);

/* A band of the queue ended: those behind it begin now. */
void cox__queue_advance_deadlines(struct cox__queue *queue, uint64_t end_ns);

/* Note when a band ended: fills the report's end_ns, wall_ns and queue_ns. */
void cox__slot_note_end(struct cox_session *session, const struct cox__queue_slot *slot, struct cox_band_report *report,
                        uint64_t end_ns);

/* Learn from a band that ended well. `posted`: the device's post told; else a poll did. */
void cox__device_learn(struct cox__device *device, const struct cox__queue_slot *slot,
                       const struct cox_band_report *report, bool posted);

#endif
