/* SPDX-License-Identifier: Apache-2.0 */
#include "checking.h"
#include "check/check.h"

cox_status cox__checking_begin(cox_session *session, const struct cox__session_spec *params,
                               const uint32_t *devices, uint32_t count)
{
    if (!params->check)
        return COX_OK;
    return cox__check_create(session->runtime->backend, &session->runtime->log, params,
                             &session->pipeline, devices, count, &session->check);
}

static void wait_for_earlier(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->counts.under_way)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

cox_status cox__checking_frame(cox_session *session, const struct cox__frame_spec *frame)
{
    void *buffers[COX_BUFFERS_MAX] = {NULL};
    if (!session->check)
        return COX_OK;

    for (uint32_t i = 0; i < frame->buffer_count; i++)
        if (frame->buffers[i])
            buffers[i] = cox_buffer_data(frame->buffers[i]);

    if (!cox__watchdog_is_held_here(session->runtime->watchdog))
        wait_for_earlier(session);
    return cox__check_frame(session->check, buffers, frame->params);
}
