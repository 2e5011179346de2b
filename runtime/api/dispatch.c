/* Callbacks that run on the application's threads: of sessions with `dispatch`.
 *
 * The engine delivers a frame and puts it into the session's outbox (engine/outbox.h), where it keeps its frame slot.
 * Nothing in the library waits for its callback.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "engine/outbox.h"
#include "base/clock.h"
#include "misuse.h"

#include <errno.h>

bool cox__dispatch_is_inside(const struct cox_session *session)
{
    return session->outbox.runs && pthread_equal(session->outbox.thread, pthread_self());
}

/* Run one callback. Its frame's slot is free before that, for a frame that the callback submits. Called with the lock
 * held, which is not held while the callback runs. */
static void run_first(struct cox_session *session)
{
    struct cox__frame *frame = cox__outbox_take(session);
    cox_done_fn *done = frame->done;
    void *user = frame->user;
    const uint64_t index = frame->index;
    const cox_status status = frame->status;
    cox__frame_put_back(session, frame);
    pthread_mutex_unlock(&session->lock);
    done(user, index, status);
    pthread_mutex_lock(&session->lock);
}

/* Run the callbacks that wait by now. Returns how many. Called with the lock held; no other thread runs any. */
static uint32_t run_callbacks(struct cox_session *session)
{
    struct cox__outbox *outbox = &session->outbox;
    const uint32_t count = outbox->count;
    outbox->runs = true;
    outbox->thread = pthread_self();
    for (uint32_t i = 0; i < count; i++)
        run_first(session);
    outbox->runs = false;
    pthread_cond_broadcast(&session->delivered);
    return count;
}

/* Wait until this thread may run a callback. False: the time is over, or none will come. Called with the lock held. */
static bool wait_for_callback(struct cox_session *session, uint64_t timeout_ns)
{
    const struct cox__outbox *outbox = &session->outbox;
    const uint64_t end_ns = cox__later(cox__clock_ns(), timeout_ns);
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                                 .tv_nsec = (long)(end_ns % 1000000000u)};
    bool in_time = timeout_ns > 0;
    while (in_time && (outbox->runs || (!outbox->count && session->under_way)))
        in_time = pthread_cond_clockwait(&session->delivered, &session->lock, CLOCK_MONOTONIC,
                                         &end) != ETIMEDOUT;
    return outbox->count && !outbox->runs;
}

bool cox__dispatch_rest(struct cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->outbox.visitors++;
    const bool any = run_callbacks(session) > 0;
    session->outbox.visitors--;
    pthread_mutex_unlock(&session->lock);
    return any;
}

/* Whether `function` can do nothing here. */
static bool is_misused(const struct cox_session *session, const char *function)
{
    const struct cox_runtime *runtime = session->runtime;
    if (cox__misuse_forked(runtime, function))
        return true;
    if (!session->outbox.is_open)
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "%s: the session was made without cox_session_params.dispatch", function);
    return !session->outbox.is_open;
}

int cox_session_descriptor(cox_session *session)
{
    if (!session || is_misused(session, "cox_session_descriptor"))
        return COX_E_INVALID;
    return session->outbox.descriptor;
}

int cox_session_dispatch(cox_session *session, uint64_t timeout_ns)
{
    static const char function[] = "cox_session_dispatch";
    if (!session || is_misused(session, function) ||
        cox__misuse_in_callback(session->runtime, function))
        return COX_E_INVALID;
    pthread_mutex_lock(&session->lock);
    const bool inside = cox__dispatch_is_inside(session);
    session->outbox.visitors++;
    const int count = !inside && wait_for_callback(session, timeout_ns)
                          ? (int)run_callbacks(session)
                          : 0;
    session->outbox.visitors--;
    pthread_mutex_unlock(&session->lock);
    if (!inside)
        return count;
    cox__log(&session->runtime->log, COX_LOG_ERROR, "%s: not from a callback of the same session",
             function);
    return COX_E_INVALID;
}
