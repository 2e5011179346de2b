/* The spare buffers: a second set, as long as the frame's, so that every offset holds. What a band reads is copied into it
 * first, so that the frame's buffers have nothing to do with what happens on it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"
#include "sha256.h"

#include <string.h>

/* A device that hangs at rows on the spare buffers costs a set of them for ever. After so many the session goes on without. */
enum { SPARES_MAX = 8 };

void cox__engine_drop_spare(struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (session->spare.mems[i] && session->spare.haunted)
            backend->ops->mem_abandon(backend, session->spare.mems[i]);
        else if (session->spare.mems[i])
            cox__engine_drop_mem(session->runtime, session->spare.mems[i]);
}

/* Takes as long as allocating the memory, and perhaps pinning it. Where it cannot be had the session goes on without. */
static void make_spare(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    struct cox__backend *backend = session->runtime->backend;
    cox_status status = COX_OK;
    for (uint32_t i = 0; spare->haunted && i < session->pipeline.binding_count; i++) {
        backend->ops->mem_abandon(backend, spare->mems[i]);
        spare->mems[i] = NULL;
    }
    spare->haunted = false;
    for (uint32_t i = 0; status == COX_OK && i < session->pipeline.binding_count; i++)
        status = backend->ops->mem_create(backend, NULL, cox__binding_bytes(&session->pipeline, i), &spare->mems[i]);
    if (status == COX_OK) {
        atomic_store(&spare->stage, COX__SPARE_READY);
        return;
    }
    cox__log(&session->runtime->log, COX_LOG_WARN, "no rows are done beside the frames: %s", cox_status_text(status));
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (spare->mems[i]) {
            backend->ops->mem_destroy(backend, spare->mems[i]); /* nobody has seen it */
            spare->mems[i] = NULL;
        }
    atomic_store(&spare->stage, COX__SPARE_UNAVAILABLE);
}

static void make_task(void *ctx)
{
    struct cox_session *session = ctx;
    struct cox__loop *loop = session->runtime->loop;
    make_spare(session); /* the session may go from here on */
    cox__loop_wake(loop);
}

/* Not on this thread, which must not wait for drivers. */
static void begin_spare(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    for (uint32_t i = 0; spare->haunted && i < session->pipeline.binding_count; i++)
        cox__haunt_take(session->runtime, spare->mems[i]);
    spare->wait_ns = cox__engine_now(session) + session->give_up_ns;
    session->trouble = true; /* so that somebody looks at the time: in the next step */
    cox__loop_wake(session->runtime->loop);
    atomic_store(&spare->stage, COX__SPARE_BEING_MADE);
    if (spare->made++ < SPARES_MAX && cox__warden_run(session->runtime->warden, make_task, session))
        return;
    cox__log(&session->runtime->log, COX_LOG_WARN, "no rows are done beside the frames any more: %s",
             spare->made > SPARES_MAX ? "devices have hung at such rows too often" : cox_status_text(COX_E_NOMEM));
    atomic_store(&spare->stage, COX__SPARE_UNAVAILABLE);
}

static bool have_spare(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    const enum cox__spare_stage stage = atomic_load(&spare->stage);
    if ((stage == COX__SPARE_NONE || (stage == COX__SPARE_READY && spare->haunted)) && !session->closing)
        begin_spare(session);
    return atomic_load(&spare->stage) == COX__SPARE_READY && !spare->haunted;
}

bool cox__spare_take(struct cox_session *session, const struct cox__slot *owner)
{
    struct cox__spare *spare = &session->spare;
    if (spare->users)
        return spare->owner == owner && spare->frame == owner->index;
    if (!have_spare(session))
        return false;
    spare->owner = owner;
    spare->frame = owner->index;
    spare->whole = false;
    return true;
}

/* The part of a binding's memory that a band over these rows touches. */
static size_t part_of(const struct cox_session *session, uint32_t binding, uint32_t first_row, uint32_t rows,
                      size_t *offset)
{
    const struct cox_binding *of = &session->pipeline.bindings[binding];
    uint32_t first, count;
    *offset = 0;
    if (!cox__by_rows(of))
        return of->bytes;
    cox__binding_rows(&session->pipeline, binding, first_row, rows, &first, &count);
    *offset = first * of->pitch_bytes;
    return count * of->pitch_bytes;
}

static bool written_by_rows(const struct cox_binding *binding)
{
    return binding->contract == COX_ROWS && binding->access != COX_READ;
}

static char *data_of(const struct cox_session *session, struct cox__mem *mem, size_t offset)
{
    return (char *)session->runtime->backend->ops->mem_data(mem) + offset;
}

void cox__spare_fill(struct cox_session *session, const struct cox__slot *frame, uint32_t first_row, uint32_t rows,
                     bool outputs)
{
    struct cox__spare *spare = &session->spare;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        const struct cox_binding *binding = &session->pipeline.bindings[i];
        if (binding->contract == COX_REDUCE || (binding->contract == COX_WHOLE && spare->whole) ||
            (written_by_rows(binding) && !outputs))
            continue;
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        memcpy(data_of(session, spare->mems[i], offset), data_of(session, frame->mems[i], offset), bytes);
    }
    spare->whole = true;
}

void cox__spare_fetch(struct cox_session *session, const struct cox__slot *frame, uint32_t first_row, uint32_t rows)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        if (written_by_rows(&session->pipeline.bindings[i]))
            memcpy(data_of(session, frame->mems[i], offset), data_of(session, session->spare.mems[i], offset), bytes);
    }
}

bool cox__spare_equal(const struct cox_session *session, const struct cox__slot *frame, uint32_t first_row,
                      uint32_t rows)
{
    bool equal = true;
    for (uint32_t i = 0; equal && i < session->pipeline.binding_count; i++) {
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        if (written_by_rows(&session->pipeline.bindings[i]))
            equal = memcmp(data_of(session, frame->mems[i], offset), data_of(session, session->spare.mems[i], offset),
                           bytes) == 0;
    }
    return equal;
}

void cox__rows_digest(const struct cox_session *session, struct cox__mem *const *mems, const void *partials,
                      uint32_t first_row, uint32_t rows, unsigned char digest[32])
{
    struct cox__sha256 sha;
    cox__sha256_begin(&sha);
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        if (written_by_rows(&session->pipeline.bindings[i]))
            cox__sha256_feed(&sha, data_of(session, mems[i], offset), bytes);
    }
    if (partials)
        cox__sha256_feed(&sha, partials, session->partial_bytes);
    cox__sha256_end(&sha, digest);
}

bool cox__spare_add(struct cox_session *session, struct cox__slot *frame, uint32_t unit, uint32_t first_row,
                    uint32_t rows, uint32_t origin, bool check)
{
    const uint32_t before = frame->band_count;
    const bool added = cox__slot_add(session, frame, unit, first_row, rows, frame->reports[origin].attempt + 1);
    for (uint32_t b = before; b < frame->band_count; b++) {
        frame->bands[b].spare = true;
        frame->bands[b].check = check;
        frame->bands[b].origin = origin;
        frame->bands[b].chunk = true;
        session->spare.users++;
        if (!check)
            frame->bands[origin].stand_ins++;
    }
    if (!added) /* what was added runs; with it alone the frame is not whole */
        frame->status = COX_E_NOMEM;
    return added;
}
