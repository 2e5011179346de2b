/* Delivers frames in submission order. A frame is delivered when all its bands have ended and no
 * lost device can write to its memory any more.
 *
 * Takes the oldest frame off struct cox__order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "deliver.h"
#include "admission.h"
#include "base/bounds.h"
#include "buffers.h"
#include "device.h"
#include "frame.h"
#include "home.h"
#include "invariant.h"
#include "order.h"
#include "passes.h"
#include "sync.h"
#include "engine/failure/probation.h"
#include "engine/failure/directory.h"
#include "engine/failure/relocate.h"
#include "engine/failure/verify.h"

#include <string.h>

/* A callback has returned. */
static void has_called_back(struct cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->counts.under_way--;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
}

/* The oldest frame under way if it can be delivered, or NULL. */
static struct cox__frame *complete_head(struct cox_session *session)
{
    if (!session->order.count)
        return NULL;

    struct cox__frame *frame = cox__order_at(&session->order, 0);
    if (!cox__frame_is_complete(frame) || cox__relocate_holds(session, frame))
        return NULL;
    if (frame->fetch && !frame->status && !cox__directory_is_fetched(session, frame))
        return NULL; /* another frame's bands bring the rows */

    return frame;
}

bool cox__deliver_is_due(struct cox_session *session)
{
    return complete_head(session) != NULL;
}

/* No device uses the frame's buffers any more, except one that hangs. */
static void end_use(const struct cox_session *session, struct cox__frame *frame)
{
    const cox_status status = cox__sync_end_frame(session, frame->buffers);
    if (frame->status == COX_OK)
        frame->status = status;
}

/* The last steps for a complete frame before its callback. */
static void conclude(struct cox_session *session, struct cox__frame *frame)
{
    if (frame->fetch) {
        end_use(session, frame);
        return;
    }

    if (session->recovery.attention && (!frame->held.homed || frame->held.read_through))
        cox__probation_begin(session, frame);
    frame->delivered_ns = cox__engine_now(session->runtime);
    cox__passes_conclude(session, frame);
    end_use(session, frame);
    cox__frame_report(session, frame);
}

/* Count a delivered frame. Called under the session's lock. */
static void count(struct cox__counts *counts, cox_status status, cox_done_fn *done)
{
    counts->done++;
    if (status == COX_OK)
        return;

    counts->failed++;
    if (!done && counts->unseen_failure == COX_OK)
        counts->unseen_failure = status;
}

/* Take the frame off the order, free its slot and call the application back. The slot comes before
 * the callback, which may submit the next frame and always finds a slot for it. */
static void hand_back(struct cox_session *session, struct cox__frame *frame)
{
    cox__order_pop(&session->order);

    cox_done_fn *done = frame->done;
    void *user = frame->user;
    cox_buffer *buffers[COX_BUFFERS_MAX];
    const uint64_t index = frame->index;
    const cox_status status = frame->status;
    const uint32_t written = cox__buffers_written(frame);
    memcpy(buffers, frame->buffers, sizeof buffers);
    cox__buffers_leave(session->runtime, frame);
    cox__directory_close(session, frame);

    pthread_mutex_lock(&session->lock);
    frame->started = false;
    if (!frame->fetch)
        count(&session->counts, status, done);
    cox__admission_put_back(session, frame);
    pthread_mutex_unlock(&session->lock);

    if (done)
        done(user, index, status);
    cox__buffers_give_back(session, buffers, written);
    has_called_back(session);
}

/* Why no device could join: the status that cox_session_create returns if it waits. */
static cox_status join_status(const struct cox__devices *devices)
{
    for (uint32_t d = 0; d < devices->count; d++)
        if (devices->list[d].join_status)
            return devices->list[d].join_status;

    return COX_OK;
}

bool cox__deliver_ready(struct cox_session *session)
{
    cox__ready_fn *ready = session->joining.ready;
    const bool joined = cox__device_any_joined(&session->devices);
    if (!ready || (!joined && cox__device_any_joining(&session->devices)))
        return false;

    session->joining.ready = NULL;
    ready(session->joining.user, joined ? COX_OK : join_status(&session->devices));
    has_called_back(session);

    return true;
}

bool cox__deliver(struct cox_session *session, bool awaited_only)
{
    bool progress = cox__probation_shadow_end(session);

    for (struct cox__frame *frame;
         (frame = complete_head(session)) && (frame->awaited || !awaited_only);) {
        if (session->events.count) /* a failed band must be done again first */
            return true;

        cox__frame_note_cancel(&session->counts,
                               frame); /* an earlier callback may have cancelled it */
        if (session->settings.verify > 0 && cox__verify_frame(session, frame))
            return progress || frame->unfinished;
        if (cox__home_hand_back(session, frame))
            return true;

        conclude(session, frame);
        hand_back(session, frame);
        progress = true;
    }

    return progress;
}
