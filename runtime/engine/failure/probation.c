/* A shadow run is one band on the spare buffers. There are two reasons for one:
 *
 * - The policy asks for it, to measure a device that gets no rows.
 * - A device was lost and rebuilt. It is on probation, so it must show that it works.
 *
 * The inputs of the band are copied when the run begins, after every band of the running frames has
 * been submitted. So the frame's buffers may go back to the application before the run ends, and
 * the run never writes to them.
 *
 * Owns struct cox__shadow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "probation.h"
#include "engine/device.h"
#include "engine/event.h"
#include "engine/frame.h"
#include "engine/queue.h"
#include "residency.h"
#include "spare.h"

#include <stdlib.h>
#include <string.h>

/* A run on probation touches about this many bytes: they are compared on the scheduler thread. */
enum { PROBATION_BYTES = 256 << 10 };

/* Make the frame of the shadow runs. False: no memory. */
static bool make_frame(struct cox__shadow *shadow, const struct cox__pipeline *pipeline)
{
    struct cox__frame *frame = calloc(1, sizeof *frame);
    if (frame && !cox__frame_allocate(pipeline, frame)) {
        cox__frame_free(frame);
        free(frame);
        frame = NULL;
    }

    shadow->frame = frame;
    return frame != NULL;
}

/* Begin a shadow run, if that is possible now. */
static void begin(struct cox_session *session, const struct cox__frame *of,
                  const struct cox_band *band, bool probation)
{
    struct cox__shadow *shadow = &session->shadow;
    if (shadow->busy || session->closing || cox__frame_pass(of)->in_place ||
        !cox__device_has_free_slot(&session->devices.list[band->device]))
        return;
    if (!shadow->frame && !make_frame(shadow, &session->pipeline))
        return;

    struct cox__frame *frame = shadow->frame;
    frame->index = of->index;
    if (session->spare.users || !cox__spare_take(session, frame))
        return;

    frame->submit_ns = of->submit_ns;
    memcpy(frame->params, of->params, session->pipeline.params_bytes);

    /* A run for the policy begins while devices write the frame's outputs, and is not compared. A
     * run on probation is compared, with a finished frame. */
    cox__spare_fill_inputs(session, of, band->first_row, band->rows);
    if (probation)
        cox__spare_fill_outputs(session, of, band->first_row, band->rows);

    cox__spare_use(&session->spare);
    shadow->busy = true;
    shadow->device = band->device;
    shadow->probation = probation;
    shadow->compare = probation && session->settings.verify > 0;

    if (shadow->compare)
        cox__spare_digest(session->runtime->backend, cox__frame_pass(of), of->mems, NULL,
                          band->first_row, band->rows, shadow->digest);

    pthread_mutex_lock(&session->lock);
    session->counts.under_way++;
    pthread_mutex_unlock(&session->lock);

    cox__frame_start(session->runtime, frame, COX__FRAME_SHADOW);
    cox__frame_begin_pass(session->runtime, frame, of->pass);
    frame->passes[frame->pass].reason = COX_REASON_PROBE;

    if (!cox__frame_add(&session->devices, frame, band->device, band->first_row, band->rows, 0))
        frame->status = COX_E_DEVICE_MEMORY;
    cox__queue_submit(session, frame, 0);
}

void cox__probation_shadow_begin(struct cox_session *session, struct cox__frame *frame,
                                 uint32_t reserved)
{
    struct cox_band wish = frame->shadow;
    const struct cox__device *device = &session->devices.list[wish.device];
    frame->shadow.rows = 0;

    /* A device that computes inside the enqueue call would hold up this thread, and with it every
     * frame. */
    if (frame->status || !cox__device_is_active(device) || device->blocks_in_submit ||
        reserved >> wish.device & 1)
        return;

    const uint32_t most = device->passes[frame->pass].max_rows;
    if (wish.rows > most)
        wish.rows = most;
    begin(session, frame, &wish, false);
}

/* ---- probation ---- */

/* Rows of a run on probation: few, and no more than one band of the device may have. */
static uint32_t probation_rows(const struct cox__frame *frame, const struct cox__device *device)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    const uint32_t most = device->passes[frame->pass].max_rows;
    size_t per_row = 1;

    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (cox__by_rows(&pass->bindings[i]))
            per_row += pass->bindings[i].pitch_bytes / pass->bindings[i].row_divisor;

    uint64_t rows = PROBATION_BYTES / per_row + 1;
    rows = (rows + pass->row_alignment - 1) / pass->row_alignment * pass->row_alignment;
    if (rows > most)
        rows = most;
    if (rows > pass->rows)
        rows = pass->rows;
    return (uint32_t)rows;
}

/* Whether the device cannot repeat rows of the frame on the spare buffers. */
static bool cannot_be_beside(const struct cox__spare *spare, const struct cox__frame *frame,
                             const struct cox__device *device)
{
    return cox__frame_pass(frame)->in_place ||
           atomic_load(&spare->state) == COX__SPARE_UNAVAILABLE || device->blocks_in_submit;
}

static void emit_result(struct cox__events *events, uint32_t device, cox_status status)
{
    cox__event_emit(events, (struct cox__event){.kind = COX__EVENT_PROBATION_RESULT,
                                                .device = device,
                                                .status = status});
}

void cox__probation_begin(struct cox_session *session, struct cox__frame *frame)
{
    if (frame->held.keeps && !frame->held.write_through)
        return;

    for (uint32_t d = 0; d < session->devices.count && !session->shadow.busy; d++) {
        const struct cox__device *device = &session->devices.list[d];
        const struct cox_band band = {.device = d, .rows = probation_rows(frame, device)};
        if (device->state != COX_DEVICE_PROBATION ||
            !cox__residency_is_on_host(frame, band.first_row, band.rows))
            continue;

        if (cannot_be_beside(&session->spare, frame, device))
            emit_result(&session->events, d, COX_OK);
        else if (frame->status == COX_OK)
            begin(session, frame, &band, true);
    }
}

bool cox__probation_skip(struct cox_session *session, bool warms)
{
    const bool needed = !cox__device_any_active(&session->devices);
    bool any = false;
    for (uint32_t d = 0; d < session->devices.count && !session->shadow.busy; d++)
        if (session->devices.list[d].state == COX_DEVICE_PROBATION &&
            (needed || (warms && !session->devices.list[d].lost))) {
            emit_result(&session->events, d, COX_OK);
            any = true;
        }

    return any;
}

/* ---- the end of a shadow run ---- */

bool cox__probation_shadow_end(struct cox_session *session)
{
    struct cox__shadow *shadow = &session->shadow;
    if (!shadow->busy || shadow->frame->unfinished)
        return false;

    struct cox__frame *frame = shadow->frame;
    unsigned char digest[32];

    if (frame->status == COX_OK && shadow->compare) {
        const struct cox_band_report *report = &frame->reports[0];
        cox__spare_digest(session->runtime->backend, cox__frame_pass(frame), session->spare.mems,
                          NULL, report->first_row, report->rows, digest);
        if (memcmp(digest, shadow->digest, sizeof digest) != 0)
            frame->status = COX_E_MISMATCH;
    }

    cox__frame_report(session, frame);
    shadow->busy = false;
    cox__spare_release(&session->spare);

    if (shadow->probation)
        emit_result(&session->events, shadow->device, frame->status);

    pthread_mutex_lock(&session->lock);
    session->counts.under_way--;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);

    return true;
}
