/* Shadows: rows that a device without rows does once more beside a frame, to show what it could do by now.
 *
 * They run on spare buffers as long as the frame's, so that every offset holds. What the shadow reads is copied when it
 * begins, after every band of the frames under way has been handed to its device; so the frame's buffers may go back to the
 * application before the shadow is over, and nothing it writes lands in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

static void free_spare(struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    struct cox__slot *slot = session->spare.slot;
    for (uint32_t i = 0; slot && i < session->pipeline.binding_count; i++)
        if (slot->mems[i])
            backend->ops->mem_destroy(backend, slot->mems[i]);
    free(slot);
    session->spare.slot = NULL;
}

void cox__engine_drop_spare(struct cox_session *session)
{
    free_spare(session);
}

static bool have_spare(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    struct cox__backend *backend = session->runtime->backend;
    if (spare->slot || spare->unavailable)
        return !spare->unavailable;
    cox_status status = COX_OK;
    spare->slot = calloc(1, sizeof *spare->slot);
    for (uint32_t i = 0; spare->slot && status == COX_OK && i < session->pipeline.binding_count; i++)
        status = backend->ops->mem_create(backend, NULL, cox__binding_bytes(&session->pipeline, i),
                                          &spare->slot->mems[i]);
    if (spare->slot && status == COX_OK)
        return true;
    cox__log(&session->runtime->log, COX_LOG_WARN, "no device is measured beside the frames: %s",
             cox_status_text(spare->slot ? status : COX_E_NOMEM));
    free_spare(session);
    spare->unavailable = true;
    return false;
}

static void copy_inputs(const struct cox_session *session, const struct cox__slot *frame, uint32_t first_row,
                        uint32_t rows)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__backend_ops *ops = session->runtime->backend->ops;
    const struct cox__slot *slot = session->spare.slot;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        size_t offset = 0, bytes = binding->bytes;
        if (binding->access == COX_WRITE)
            continue;
        if (cox__by_rows(binding)) {
            uint32_t first, count;
            cox__binding_rows(pipeline, i, first_row, rows, &first, &count);
            offset = first * binding->pitch_bytes;
            bytes = count * binding->pitch_bytes;
        }
        memcpy((char *)ops->mem_data(slot->mems[i]) + offset, (const char *)ops->mem_data(frame->mems[i]) + offset,
               bytes);
    }
}

void cox__shadow_begin(struct cox_session *session, struct cox__slot *frame, uint32_t held)
{
    struct cox__spare *spare = &session->spare;
    const struct cox_band wish = frame->shadow;
    const struct cox__session_unit *unit = &session->units[wish.device];
    frame->shadow.rows = 0;
    /* A device that computes inside the enqueue call would hold up this thread, and with it every frame. */
    if (spare->busy || frame->status || !unit->usable || unit->blocks_in_submit || held >> wish.device & 1 ||
        !cox__engine_has_lane(session, wish.device) || !have_spare(session))
        return;
    struct cox__slot *slot = spare->slot;
    const uint32_t rows = wish.rows < unit->max_rows ? wish.rows : unit->max_rows;
    slot->index = frame->index;
    slot->submit_ns = frame->submit_ns;
    memcpy(slot->params, frame->params, session->pipeline.params_bytes);
    copy_inputs(session, frame, wish.first_row, rows);
    spare->busy = true;
    spare->unit = wish.device;
    pthread_mutex_lock(&session->lock);
    session->under_way++;
    pthread_mutex_unlock(&session->lock);
    cox__slot_start(session, slot, COX__SLOT_SHADOW);
    slot->reason = COX_REASON_PROBE;
    if (!cox__slot_add(session, slot, wish.device, wish.first_row, rows, 0))
        slot->status = COX_E_DEVICE_MEMORY;
    cox__slot_submit(session, slot, 0);
}

bool cox__shadow_end(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    if (!spare->busy || spare->slot->unfinished)
        return false;
    cox__slot_report(session, spare->slot);
    spare->busy = false;
    pthread_mutex_lock(&session->lock);
    session->under_way--;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
    return true;
}
