/* Takes frames from the application: gives each a slot and an index, and tells the engine. Level 1
 * of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_ADMISSION_H
#define COX_ENGINE_ADMISSION_H

#include "state.h"

/* A frame that an application's thread submits. It lives as long as the call. */
struct cox__submission {
    const struct cox__frame_spec *frame;
    cox_done_fn *done;
    void *user;
    bool awaited;     /* the caller waits for the frame */
    bool in_callback; /* the caller is a callback of this session, which never waits */
    bool wake;        /* result: the scheduler thread has to be woken for the frame */

    /* Of one that waits for a slot; guarded by the session's lock. */
    struct cox__submission *next;
    pthread_cond_t decided;
    bool waits;
    cox_status status;
};

/* Submit a frame. Blocks while no slot is free, unless the frame or the caller does not want that.
 * Errors: E_BUSY, E_NO_DEVICE. */
cox_status cox__admission_submit(struct cox_session *session, struct cox__submission *submission);

/* Put back the slot of a finished frame. Call it under the session's lock.
 *
 * The slot becomes `reserved`, for a frame that the callback will submit, if no slot is reserved.
 * Otherwise it goes to the submission that has waited longest. */
void cox__admission_put_back(struct cox_session *session, struct cox__frame *frame);

/* No device is left: threads that wait for a slot return E_NO_DEVICE. Call it under the session's
 * lock. */
void cox__admission_refuse(struct cox_session *session);

#endif
