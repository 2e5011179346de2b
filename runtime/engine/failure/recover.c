/* Repeats rows whose device has failed, exceeded its timeout or computes wrongly. The fallback
 * device repeats them, from inputs that are still intact because nothing writes them. Rows that are
 * read and written in place are not repeated. The engine's steps call it after a failure.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recover.h"
#include "engine/admission.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "engine/order.h"
#include "residency.h"
#include "spare.h"
#include "engine/timing.h"
#include "verify.h"

void cox__recover_band(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                       bool ran)
{
    const struct cox_band_report report = frame->reports[band];
    if (frame->kind != COX__FRAME_OF_APPLICATION) {
        frame->status = report.status;
        return;
    }

    if (frame->bands[band].kind == COX__BAND_CHECK) {
        cox__spare_release(&session->spare);
        cox__verify_failed(session, frame, band);
        return;
    }

    if (cox__band_is_transfer(&frame->bands[band])) {
        cox__residency_note_failed(frame, band);
        return;
    }

    if (frame->again) /* none of its bands counts */
        return;

    const uint32_t device = cox__device_fallback(session, frame->pass, report.device);
    if (device == session->devices.count || (ran && cox__frame_pass(frame)->in_place) ||
        !cox__frame_add(&session->devices, frame, device, report.first_row, report.rows,
                        report.attempt + 1)) {
        frame->status = COX_E_DEVICE_LOST;
        return;
    }

    frame->passes[frame->pass].reason = COX_REASON_RERUN;

    /* Without an active device the rows wait for the first device that comes back. */
    if (cox__device_is_active(&session->devices.list[device]))
        cox__log(&session->runtime->log, COX_LOG_WARN, "frame %llu: rows %u..%u move from %s to %s",
                 (unsigned long long)frame->index, report.first_row,
                 report.first_row + report.rows - 1, session->devices.list[report.device].info.name,
                 session->devices.list[device].info.name);
}

/* ---- bands that were not submitted yet ---- */

/* Whether the band's device may still run it. */
static bool has_device(const struct cox__devices *devices, const struct cox__frame *frame,
                       uint32_t band)
{
    const struct cox__device *device = &devices->list[frame->reports[band].device];
    return cox__device_is_active(device) ||
           (device->state == COX_DEVICE_PROBATION && frame->kind == COX__FRAME_SHADOW);
}

static void recover_frame(struct cox_session *session, struct cox__frame *frame)
{
    /* The loop skips bands that it adds: they have an active device, or no device is active. */
    const uint32_t count = frame->band_count;
    for (uint32_t b = 0; b < count; b++)
        if (frame->bands[b].state == COX__BAND_PLANNED &&
            !has_device(&session->devices, frame, b)) {
            cox__frame_end_band(frame, b, COX_E_DEVICE_LOST);
            cox__recover_band(session, frame, b, false);
        }
}

void cox__recover_planned(struct cox_session *session)
{
    for (uint32_t i = 0; i < session->order.count; i++)
        if (cox__order_at(&session->order, i)->started)
            recover_frame(session, cox__order_at(&session->order, i));

    if (session->warmup.state != COX__WARMUP_FINISHED && session->warmup.frame->started)
        recover_frame(session, session->warmup.frame);

    if (session->shadow.busy)
        recover_frame(session, session->shadow.frame);
}

bool cox__recover_drop(struct cox__spare *spare, struct cox__frame *frame)
{
    bool any = frame->pool.left > 0;
    frame->pool.left = 0;

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (frame->bands[b].state == COX__BAND_PLANNED &&
            frame->bands[b].kind != COX__BAND_RELEASE) { /* what was acquired is given back */
            any = true;
            cox__residency_note_failed(frame, b);
            cox__frame_end_band(frame, b, frame->status);
            if (frame->bands[b].kind == COX__BAND_CHECK)
                cox__spare_release(spare);
        }

    return any;
}

/* ---- wrong rows, and no device ---- */

/* An earlier pass wrote wrong rows: the frame restarts from its inputs. If it has overwritten some
 * of them, it ends with an error. */
static void restart(struct cox__frame *frame)
{
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++)
        if (frame->pipeline->bindings[i].access == COX__READ_WRITE)
            frame->status = COX_E_MISMATCH;

    frame->again = !frame->status;
    frame->pool.left = 0;
}

void cox__recover_convicted(struct cox_session *session, uint32_t device)
{
    for (uint32_t i = 0; i < session->order.count; i++) {
        struct cox__frame *frame = cox__order_at(&session->order, i);
        uint32_t count = 0;
        if (frame->started && !frame->status)
            count = frame->band_count;

        for (uint32_t b = 0; b < count; b++) {
            if (frame->bands[b].state != COX__BAND_DONE ||
                !cox__band_is_of_split(&frame->bands[b]) || frame->reports[b].device != device)
                continue;

            cox__frame_revoke_band(frame, b, COX_E_MISMATCH);
            if (b < frame->first_band)
                restart(frame);
            else if (!frame->again)
                cox__recover_band(session, frame, b, true);
        }
        frame->sampled = false;
    }
}

/* Whether a device has yet to join, or has just done so. */
static bool any_may_join(const struct cox__devices *devices)
{
    bool any = cox__device_any_joining(devices);
    for (uint32_t d = 0; d < devices->count; d++)
        if (devices->list[d].state == COX_DEVICE_PROBATION && !devices->list[d].lost)
            any = true;
    return any;
}

/* Whether every device hung in its first bands. */
static bool never_ended(const struct cox__devices *devices)
{
    bool never = true;
    for (uint32_t d = 0; d < devices->count; d++)
        never = never && devices->list[d].overran && !devices->list[d].last_done_ns;

    return never;
}

bool cox__recover_no_device(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns)
{
    const bool joined = cox__device_any_joined(&session->devices);
    if ((joined && !session->recovery.no_device_since_ns) || session->no_device ||
        cox__device_any_active(&session->devices) || any_may_join(&session->devices))
        return false;

    /* Wait a while for a lost device to come back, unless the kernels have never ended. */
    uint64_t end_ns = session->recovery.no_device_since_ns;
    if (!never_ended(&session->devices))
        end_ns = cox__later(end_ns, cox__timing_session_timeout_ns(&session->settings));
    if (joined && now_ns < end_ns) {
        if (session->order.count && end_ns < *next_ns)
            *next_ns = end_ns;
        return false;
    }

    pthread_mutex_lock(&session->lock);
    session->no_device = true;
    cox__admission_refuse(session);
    pthread_cond_broadcast(&session->delivered); /* threads stop waiting for a warm-up */
    pthread_mutex_unlock(&session->lock);

    cox__log(&session->runtime->log, COX_LOG_ERROR, "no device is left");
    cox__recover_planned(session);
    return true;
}
