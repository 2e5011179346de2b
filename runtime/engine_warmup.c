/* Warm-up: before a session's first frame every device does all of it alone, first to compile, then to be timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <string.h>

/* Warm-up times a device until so many runs or so much time are spent, and the shortest run counts: it takes a processor's
 * workers some ten milliseconds to be spread over the cores. */
#define SOLO_RUNS 12
#define SOLO_NS 40000000ull
/* A device that takes this long to submit to, and most of the band's time, computes inside the enqueue call. */
#define BLOCKING_NS 100000ull

static void warmup_release(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t i = 0; i < session->pipeline.binding_count && !atomic_load(&session->runtime->wild); i++)
        if (warmup->owns_mem[i]) {
            backend->ops->mem_destroy(backend, warmup->slot->mems[i]);
            warmup->owns_mem[i] = false;
        }
    warmup->finished = true; /* what a device that hangs may still write to goes with the session */
}

void cox__engine_drop_warmup(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (warmup->owns_mem[i])
            cox__engine_drop_mem(session->runtime, warmup->slot->mems[i]);
}

/* The first frame's own buffers serve, since its bands write the same rows again; a binding that is read and written
 * gets a copy. */
static cox_status warmup_borrow(struct cox_session *session, const struct cox__slot *frame)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    memcpy(warmup->slot->mems, frame->mems, sizeof frame->mems);
    memcpy(warmup->slot->params, frame->params, sizeof frame->params);
    warmup->slot->index = frame->index;
    warmup->slot->submit_ns = frame->submit_ns;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (session->pipeline.bindings[i].access != COX_READ_WRITE)
            continue;
        size_t bytes = cox__binding_bytes(&session->pipeline, i);
        cox_status status = backend->ops->mem_create(backend, NULL, bytes, &warmup->slot->mems[i]);
        if (status)
            return status;
        warmup->owns_mem[i] = true;
        memcpy(backend->ops->mem_data(warmup->slot->mems[i]), backend->ops->mem_data(frame->mems[i]), bytes);
    }
    return COX_OK;
}

/* Note what the finished run showed and move on to the next run or unit. */
static void warmup_learn(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__slot *slot = warmup->slot;
    struct cox__session_unit *unit = &session->units[warmup->unit];
    cox__slot_report(session, slot);
    slot->started = false;
    uint64_t wall = slot->end_ns - slot->start_ns;
    bool blocks = warmup->submit_ns > BLOCKING_NS && warmup->submit_ns > wall / 2;
    if (slot->status == COX_OK && warmup->run > 0) {
        unit->blocks_in_submit = blocks;
        session->any_blocks |= unit->blocks_in_submit;
        pthread_mutex_lock(&session->lock);
        /* What an earlier session measured may hold no longer. */
        if (!unit->solo_ns || wall < unit->solo_ns || (warmup->run == 1 && wall / 2 > unit->solo_ns))
            unit->solo_ns = wall ? wall : 1;
        pthread_mutex_unlock(&session->lock);
    }
    warmup->spent_ns = warmup->run == 0 ? 0 : warmup->spent_ns + wall;
    /* What an earlier session measured spares the timed runs; where the first one kept the thread busy, one of them tells
     * whether that was the compiler. */
    uint32_t runs = !session->recall.recalled || !unit->solo_ns ? SOLO_RUNS : blocks ? 1 : 0;
    bool again = warmup->run < runs && warmup->spent_ns < SOLO_NS;
    if (slot->status == COX_OK && again) {
        warmup->run++;
    } else {
        warmup->unit++;
        warmup->run = 0;
    }
}

static bool warmup_submit(struct cox_session *session, struct cox__slot *slot)
{
    bool progress = cox__slot_submit(session, slot, 0);
    return cox__slot_submit_blocking(session, slot, 0) || progress;
}

bool cox__warmup_step(struct cox_session *session, const struct cox__slot *frame)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__slot *slot = warmup->slot;
    if (slot->started) {
        bool progress = warmup_submit(session, slot);
        if (slot->unfinished)
            return progress;
        warmup_learn(session);
    } else if (warmup->unit == 0 && warmup->run == 0) {
        cox_status status = warmup_borrow(session, frame);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "no warm-up: %s", cox_status_text(status));
            warmup_release(session);
            return true;
        }
    }
    while (warmup->unit < session->unit_count && !session->units[warmup->unit].usable)
        warmup->unit++;
    if (warmup->unit == session->unit_count) {
        warmup_release(session);
        return true;
    }
    cox__slot_start(session, slot, COX__SLOT_WARMUP);
    slot->reason = COX_REASON_WARMUP;
    if (!cox__slot_add(session, slot, warmup->unit, 0, session->pipeline.rows, 0))
        slot->status = COX_E_DEVICE_MEMORY;
    warmup_submit(session, slot);
    warmup->submit_ns = cox__engine_now(session) - slot->start_ns;
    return true;
}
