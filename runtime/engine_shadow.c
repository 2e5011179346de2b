/* Bands on the spare buffers that no frame waits for. A shadow: rows that a device without rows does once more beside a frame,
 * to show what it could do by now. A proof: rows that a device which was lost does, to show that it works again.
 *
 * What they read is copied when they begin, after every band of the frames under way has been handed to its device; so the
 * frame's buffers may go back to the application before they are over, and nothing they write lands in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that a proof touches, about: it is compared on the scheduler thread. */
enum { PROOF_BYTES = 256 << 10 };

/* Begin a shadow or a proof where that can be done now. */
static void begin(struct cox_session *session, const struct cox__slot *frame, uint32_t unit, uint32_t first_row,
                  uint32_t rows, bool proof)
{
    struct cox__shadow *shadow = &session->shadow;
    if (shadow->busy || session->closing || session->pipeline.in_place || !cox__engine_has_lane(session, unit))
        return;
    if (!shadow->slot && !(shadow->slot = calloc(1, sizeof *shadow->slot)))
        return;
    struct cox__slot *slot = shadow->slot;
    slot->index = frame->index;
    if (session->spare.users || !cox__spare_take(session, slot))
        return;
    slot->submit_ns = frame->submit_ns;
    memcpy(slot->params, frame->params, session->pipeline.params_bytes);
    /* Devices are writing the rows of a frame that a shadow runs beside, and a proof is compared at most. */
    cox__spare_fill(session, frame, first_row, rows, proof);
    session->spare.users++;
    shadow->busy = true;
    shadow->unit = unit;
    shadow->proof = proof;
    shadow->compare = proof && session->verify > 0;
    if (shadow->compare)
        cox__rows_digest(session, frame->mems, NULL, first_row, rows, shadow->digest);
    pthread_mutex_lock(&session->lock);
    session->under_way++;
    pthread_mutex_unlock(&session->lock);
    cox__slot_start(session, slot, COX__SLOT_SHADOW);
    slot->reason = COX_REASON_PROBE;
    if (!cox__slot_add(session, slot, unit, first_row, rows, 0))
        slot->status = COX_E_DEVICE_MEMORY;
    cox__slot_submit(session, slot, 0);
}

void cox__shadow_begin(struct cox_session *session, struct cox__slot *frame, uint32_t held)
{
    const struct cox_band wish = frame->shadow;
    const struct cox__session_unit *unit = &session->units[wish.device];
    frame->shadow.rows = 0;
    /* A device that computes inside the enqueue call would hold up this thread, and with it every frame. */
    if (frame->status || !unit->usable || unit->blocks_in_submit || held >> wish.device & 1)
        return;
    const uint32_t rows = wish.rows < unit->max_rows ? wish.rows : unit->max_rows;
    begin(session, frame, wish.device, wish.first_row, rows, false);
}

/* Rows of a proof: few, and as few as one band of the unit may have. */
static uint32_t proof_rows(const struct cox_session *session, const struct cox__session_unit *unit)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    size_t per_row = 1;
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (cox__by_rows(&pipeline->bindings[i]))
            per_row += pipeline->bindings[i].pitch_bytes / pipeline->bindings[i].row_divisor;
    uint64_t rows = PROOF_BYTES / per_row + 1;
    rows = (rows + pipeline->granule - 1) / pipeline->granule * pipeline->granule;
    rows = rows < unit->max_rows ? rows : unit->max_rows;
    return rows < pipeline->rows ? (uint32_t)rows : pipeline->rows;
}

void cox__shadow_prove(struct cox_session *session, struct cox__slot *frame)
{
    for (uint32_t u = 0; u < session->unit_count; u++) {
        const struct cox__session_unit *unit = &session->units[u];
        if (unit->proving && !unit->blocks_in_submit)
            begin(session, frame, u, 0, proof_rows(session, unit), true);
    }
}

bool cox__shadow_end(struct cox_session *session)
{
    struct cox__shadow *shadow = &session->shadow;
    if (!shadow->busy || shadow->slot->unfinished)
        return false;
    struct cox__slot *slot = shadow->slot;
    unsigned char digest[32];
    if (slot->status == COX_OK && shadow->compare) {
        cox__rows_digest(session, session->spare.mems, NULL, slot->reports[0].first_row, slot->reports[0].rows, digest);
        if (memcmp(digest, shadow->digest, sizeof digest) != 0)
            slot->status = COX_E_MISMATCH;
    }
    cox__slot_report(session, slot);
    shadow->busy = false;
    session->spare.users--;
    if (shadow->proof)
        cox__unit_proved(session, shadow->unit, slot->status);
    pthread_mutex_lock(&session->lock);
    session->under_way--;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
    return true;
}
