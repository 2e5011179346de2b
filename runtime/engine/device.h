/* Which devices take part, and which one takes over the rows of another. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_DEVICE_H
#define COX_ENGINE_DEVICE_H

#include "state.h"

/* Now plus ns, UINT64_MAX at most. */
static inline uint64_t cox__later(uint64_t now_ns, uint64_t ns)
{
    if (now_ns > UINT64_MAX - ns)
        return UINT64_MAX;

    return now_ns + ns;
}

/* Whether any device is active. */
bool cox__device_any_active(const struct cox__devices *devices);

/* Whether any device has yet to join; whether any has ever taken part. */
bool cox__device_any_joining(const struct cox__devices *devices);
bool cox__device_any_joined(const struct cox__devices *devices);

/* The active devices that do a pass, a bit each: those that the pass lists, or all if none of the
 * listed ones is active. */
uint32_t cox__device_doing(const struct cox_session *session, uint32_t pass);

/* The fastest of these devices for the whole pass, without those in `except` (a bit each);
 * devices.count = none. */
uint32_t cox__device_best(const struct cox_session *session, uint32_t pass, uint32_t except);

/* The device that takes over rows of a pass from a lost device. It is the best active one. If none
 * is active, it is the same device while the session waits for one to come back, then devices.count
 * for "no device". */
uint32_t cox__device_fallback(const struct cox_session *session, uint32_t pass, uint32_t device);

/* Whether the device can take one more band. */
bool cox__device_has_free_slot(const struct cox__device *device);

/* Mark a device as failed: a call was refused, a band failed or missed its deadline, or the device
 * computes wrongly. It gets no more bands, and a DEVICE_FAILED event is emitted.
 *
 * Does nothing for a device that is lost already, unless the status is COX_E_MISMATCH: then the
 * event is still emitted, because the device's earlier results do not count. */
void cox__device_fail(struct cox_session *session, uint32_t device, cox_status status);

/* Plan the next retry of a device that was lost or could not be rebuilt. The pause doubles up to 30
 * seconds. With `forget`, a device that worked well for 20 times its pause starts again with the
 * first pause. */
void cox__device_plan_retry(struct cox__device *device, uint64_t now_ns, bool forget);

/* A band of a device that takes part ended well: stop the timeout for "no device is active". */
void cox__device_worked(struct cox__recovery *recovery);

/* The device takes part, again or for the first time. */
void cox__device_return(struct cox_session *session, uint32_t device);

/* Give a device an instance and a queue for it. `max_rows`: most rows of a band, for each pass.
 *
 * Errors: COX_E_DEVICE_MEMORY (a frame would need too many bands), COX_E_NOMEM. On an error the
 * device has no queue, and the caller keeps `instance`. Call it under the engine lock or while no
 * other thread knows the session. */
cox_status cox__device_attach(struct cox_session *session, uint32_t device,
                              struct cox__instance *instance, const uint32_t *max_rows);

/* Free a queue. Its instance is gone. NULL is accepted. */
void cox__device_queue_free(struct cox__queue *queue);

#endif
