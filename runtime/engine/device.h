/* Which devices take part, and which one takes over rows of another. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_DEVICE_STATE_H
#define COX_ENGINE_DEVICE_STATE_H

#include "state.h"

/* Now plus ns, UINT64_MAX at most. */
static inline uint64_t cox__later(uint64_t now_ns, uint64_t ns)
{
    return now_ns > UINT64_MAX - ns ? UINT64_MAX : now_ns + ns;
}

/* Whether any device is active. */
bool cox__device_any_active(const struct cox_session *session);

/* Whether any device has yet to join; whether any has ever taken part. */
bool cox__device_any_joining(const struct cox_session *session);
bool cox__device_any_joined(const struct cox_session *session);

/* The active devices that do a pass, a bit each: those that it is for, or, if none of them is
 * active, all. */
uint32_t cox__device_doing(const struct cox_session *session, uint32_t pass);

/* Of these the one that should do the whole pass soonest, not one of `except` (a bit each);
 * device_count if there is none. */
uint32_t cox__device_best(const struct cox_session *session, uint32_t pass, uint32_t except);

/* The device that takes over rows of a pass from a device that is out: the best active one; the
 * same device while one is waited for; or device_count: no device will. */
uint32_t cox__device_fallback(const struct cox_session *session, uint32_t pass, uint32_t device);

/* Whether the device can take one more band. */
bool cox__device_has_free_slot(const struct cox_session *session, uint32_t device);

/* The device failed (a call was refused, a band failed or missed its deadline, the device
 * computes wrongly): it gets no bands from now on, and a DEVICE_FAILED event says so. Does
 * nothing for a device that is out already, except that COX_E_MISMATCH is always told: what the
 * device has done is not to be believed. */
void cox__device_fail(struct cox_session *session, uint32_t device, cox_status status);

/* Set when to try a device again that has just been lost, or could not be rebuilt. The pause
 * doubles up to half a minute; a device that has worked well for twenty times its pause is as
 * good as new (`forget`). */
void cox__device_plan_retry(struct cox_session *session, uint32_t device, bool forget);

/* A band of a device that takes part has ended well: no frame ends for want of a device. */
void cox__device_worked(struct cox_session *session);

/* The device takes part, again or for the first time. */
void cox__device_return(struct cox_session *session, uint32_t device);

/* Give a device an instance and a queue for it. max_rows: of each pass. Errors:
 * COX_E_DEVICE_MEMORY (its bands would be too many), COX_E_NOMEM; then the device has no queue,
 * and `instance` stays the caller's. While no other thread knows the session, or by the engine. */
cox_status cox__device_attach(struct cox_session *session, uint32_t device,
                              struct cox__instance *instance, const uint32_t *max_rows);

/* Free a queue. Its instance is gone. NULL is accepted. */
void cox__device_queue_free(struct cox__queue *queue);

#endif
