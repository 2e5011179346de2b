/* The passes of a frame run one after the other.
 *
 * Between two passes every row is computed. It is in host memory, which all devices share or copy
 * from, or on a device that keeps it (residency.h). So each pass has its own bands, split and
 * policy, and a band can be done again while its pass is under way.
 *
 * Rows of an earlier pass may turn out to be wrong, because their device is convicted, or be lost
 * with the device that kept them. Then the frame starts over from its inputs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "passes.h"
#include "policy.h"
#include "device.h"
#include "frame.h"
#include "engine/failure/verify.h"

#include <string.h>

static void call_done(struct cox__backend *backend, struct cox__frame *frame)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    void *buffers[COX_BUFFERS_MAX] = {NULL};

    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (frame->mems[i] && !(frame->held.homed >> i & 1))
            buffers[i] = backend->ops->mem_data(frame->mems[i]);

    pass->done(pass->done_user, buffers, frame->params);
}

void cox__passes_conclude(struct cox_session *session, struct cox__frame *frame)
{
    const struct cox__pass *pass = cox__frame_pass(frame);

    if (frame->status == COX_OK && pass->partial_bytes)
        cox__frame_merge_partials(session->runtime->backend, frame);
    cox__policy_observe_pass(session, frame);
    if (frame->status == COX_OK && pass->done)
        call_done(session->runtime->backend, frame);
}

bool cox__passes_advance(struct cox_session *session, struct cox__frame *frame)
{
    if (!cox__frame_pass_is_done(frame) || cox__frame_is_complete(frame) || session->events.count)
        return false;

    /* Without an active device there is nothing to split: wait until one comes back. */
    if (!cox__device_any_active(&session->devices)) {
        frame->status = session->no_device ? COX_E_DEVICE_LOST : COX_OK;
        return session->no_device;
    }
    if (frame->again) {
        const cox_status why = session->settings.verify > 0 ? COX_E_MISMATCH : COX_E_DEVICE_LOST;

        memcpy(frame->params, frame->given_params, session->pipeline.params_bytes);
        cox__frame_begin_anew(session->runtime, frame, why);
        cox__policy_split(session, frame);
        frame->passes[0].reason = COX_REASON_RERUN;
        return true;
    }

    if (session->settings.verify > 0 && cox__verify_frame(session, frame))
        return frame->unfinished > 0;
    if (frame->status) /* the devices disagree, and no vote can decide */
        return true;

    cox__passes_conclude(session, frame);
    cox__frame_begin_pass(session->runtime, frame, frame->pass + 1);
    cox__policy_split(session, frame);

    return true;
}
