/* Frames go back in submission order, each once all its bands have ended: no device reads its inputs or writes its
 * outputs any more, except one that was given up.
 *
 * Owns the head of `order`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "deliver.h"
#include "ask_policy.h"
#include "frame.h"
#include "invariant.h"
#include "probation.h"
#include "verify.h"

static struct cox__frame *complete_head(const struct cox_session *session)
{
    struct cox__frame *frame = session->order_count ? cox__session_frame(session, 0) : NULL;
    return frame && cox__frame_is_complete(frame) ? frame : NULL;
}

bool cox__deliver_is_due(const struct cox_session *session)
{
    return complete_head(session) != NULL;
}

/* What is left to be done with a complete frame before its callback. */
static void conclude(struct cox_session *session, struct cox__frame *frame)
{
    if (session->attention && frame->status == COX_OK)
        cox__probation_begin(session, frame);
    if (frame->status == COX_OK && session->partial_bytes)
        cox__frame_merge_partials(session, frame);
    cox__policy_observe_frame(session, frame);
    cox__frame_report(session, frame);
}

/* Free the frame's slot and call the application back, in this order: the callback may submit the next frame. */
static void hand_back(struct cox_session *session, struct cox__frame *frame)
{
    cox_done_fn *done = frame->done;
    void *user = frame->user;
    const uint64_t index = frame->index;
    const cox_status status = frame->status;
    session->order_first = (session->order_first + 1) % COX_IN_FLIGHT_MAX;
    session->order_count--;
    pthread_mutex_lock(&session->lock);
    frame->started = false;
    frame->next_free = session->free_frames;
    session->free_frames = frame;
    session->frames_done++;
    pthread_cond_signal(&session->slot_free);
    pthread_mutex_unlock(&session->lock);
    if (done)
        done(user, index, status);
    pthread_mutex_lock(&session->lock);
    session->under_way--;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
}

bool cox__deliver(struct cox_session *session, bool awaited_only)
{
    bool progress = cox__shadow_end(session);
    for (struct cox__frame *frame; (frame = complete_head(session)) && (frame->awaited || !awaited_only);) {
        if (session->event_count) /* a band that has failed is to be done again */
            return true;
        if (session->verify > 0 && cox__verify_frame(session, frame))
            return progress || frame->unfinished;
        conclude(session, frame);
        hand_back(session, frame);
        progress = true;
    }
    return progress;
}
