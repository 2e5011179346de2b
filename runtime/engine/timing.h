/* Expected times of bands, their polls and their deadlines. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_TIMING_H
#define COX_ENGINE_TIMING_H

#include "state.h"

/* Time until the first poll of a band without a post: some drivers do not call back when a command
 * fails. Also the latest first poll on a polled device. */
#define COX__POLL_FIRST_NS 50000000ull

/* Time limit for a call of the device's driver. */
uint64_t cox__timing_call_limit_ns(const struct cox_session *session, uint32_t device);

/* How long a session waits for devices if no band's deadline applies: when no device is active, or
 * when the session is destroyed. */
uint64_t cox__timing_session_timeout_ns(const struct cox__settings *settings);

/* How many pieces a job should have if one thread feeds `sharing` devices. */
uint32_t cox__timing_pieces(const struct cox_session *session, uint32_t device,
                            const struct cox__job *job, uint32_t sharing);

/* Plan the first poll of a band that has just been enqueued. */
void cox__timing_plan_poll(const struct cox__device *device, struct cox__queue_slot *slot);

/* A band of the queue ended at `end_ns`, by the device's clock if it has one. Plan the first
 * poll of the next band. */
void cox__timing_plan_polls(const struct cox__device *device, struct cox__queue *queue,
                            uint64_t end_ns);

/* Plan the next poll after one that found the band still running. */
void cox__timing_plan_next_poll(const struct cox_session *session, struct cox__queue_slot *slot,
                                uint64_t now_ns);

/* When the slot needs attention: its next poll or its deadline. */
uint64_t cox__timing_due_ns(const struct cox__queue_slot *slot);

/* The queue was flushed: its QUEUED bands become RUNNING and get deadlines. */
void cox__timing_plan_deadlines(struct cox_session *session, struct cox__queue *queue);

/* Whether a band has missed its deadline. The deadline moves by as long as the process could not
 * run meanwhile. It also moves once if no other device is active, because giving up the only one
 * gains nothing. */
bool cox__timing_is_overdue(struct cox_session *session, struct cox__queue_slot *slot,
                            uint64_t now_ns);

/* A band of the queue ended: move the deadlines of the bands behind it, which begin now. */
void cox__timing_advance_deadlines(struct cox__queue *queue, uint64_t end_ns);

/* Note when a band ended: fills the report's end_ns, wall_ns and queue_ns. */
void cox__timing_note_end(struct cox__device *device, const struct cox__queue_slot *slot,
                          struct cox_band_report *report, uint64_t end_ns);

/* A whole pass takes about `ns` on the device, as far as the warm-up knows. */
void cox__timing_expect(struct cox__device *device, uint32_t pass, uint32_t rows, double ns);

/* A band of the warm-up ended well. */
void cox__timing_note_launch(struct cox__device *device, uint32_t pass);

/* Learn from a band of a frame that ended well. */
void cox__timing_learn(struct cox__device *device, uint32_t pass,
                       const struct cox_band_report *report);

#endif
