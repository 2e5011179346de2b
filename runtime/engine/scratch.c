/* The scratch buffers are as long as the frame's, so that every offset holds. What a band reads is copied into them
 * first, so that the frame's buffers have nothing to do with what happens on them. The worker thread allocates them,
 * since that may take as long as the driver pleases.
 *
 * Owns struct cox__scratch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"
#include "buffer_use.h"
#include "engine.h"
#include "frame.h"
#include "invariant.h"
#include "store/sha256.h"
#include "timing.h"
#include "transitions.h"

#include <string.h>

/* A device that hangs at rows on the scratch buffers costs a set of them for good. After so many the session goes on
 * without. */
enum { SETS_MAX = 8 };

void cox__engine_drop_scratch(struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    const bool tainted = atomic_load(&session->scratch.state) == COX__SCRATCH_TAINTED;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (session->scratch.mems[i] && tainted)
            backend->ops->mem_abandon(backend, session->scratch.mems[i]);
        else if (session->scratch.mems[i])
            cox__engine_drop_mem(session->runtime, session->scratch.mems[i]);
}

/* ---- allocation ---- */

/* Takes as long as allocating the memory, and perhaps pinning it. */
static void allocate(struct cox_session *session)
{
    struct cox__scratch *scratch = &session->scratch;
    struct cox__backend *backend = session->runtime->backend;
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (scratch->mems[i]) { /* tainted */
            backend->ops->mem_abandon(backend, scratch->mems[i]);
            scratch->mems[i] = NULL;
        }
    for (uint32_t i = 0; status == COX_OK && i < session->pipeline.binding_count; i++)
        status = backend->ops->mem_create(backend, NULL, cox__binding_bytes(&session->pipeline, i), &scratch->mems[i]);
    if (status == COX_OK) {
        cox__scratch_set_state(scratch, COX__SCRATCH_READY);
        return;
    }
    cox__log(&session->runtime->log, COX_LOG_WARN, "no rows are done beside the frames: %s", cox_status_text(status));
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (scratch->mems[i]) {
            backend->ops->mem_destroy(backend, scratch->mems[i]); /* no device has seen it */
            scratch->mems[i] = NULL;
        }
    cox__scratch_set_state(scratch, COX__SCRATCH_UNAVAILABLE);
}

static void allocate_task(void *ctx)
{
    struct cox_session *session = ctx;
    struct cox__loop *loop = session->runtime->loop;
    allocate(session); /* the session may go from here on */
    cox__loop_wake(loop);
}

static void go_without(struct cox_session *session, const char *why)
{
    cox__log(&session->runtime->log, COX_LOG_WARN, "no rows are done beside the frames any more: %s", why);
    cox__scratch_set_state(&session->scratch, COX__SCRATCH_UNAVAILABLE);
}

static void begin_allocation(struct cox_session *session)
{
    struct cox__scratch *scratch = &session->scratch;
    if (scratch->made++ == SETS_MAX) {
        go_without(session, "devices have hung at such rows too often");
        return;
    }
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (scratch->mems[i])
            cox__buffer_take_taint(session->runtime, scratch->mems[i]);
    scratch->wait_ns = cox__engine_now(session) + cox__session_timeout_ns(session);
    session->attention = true; /* the next step looks at the time */
    cox__loop_wake(session->runtime->loop);
    cox__scratch_set_state(scratch, COX__SCRATCH_ALLOCATING);
    if (cox__worker_run(session->runtime->worker, allocate_task, session))
        return;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (scratch->mems[i])
            cox__buffer_taint(session->runtime, scratch->mems[i]);
    go_without(session, cox_status_text(COX_E_NOMEM));
}

bool cox__scratch_take(struct cox_session *session, const struct cox__frame *owner)
{
    struct cox__scratch *scratch = &session->scratch;
    if (scratch->users)
        return scratch->owner == owner && scratch->frame_index == owner->index;
    const enum cox__scratch_state state = atomic_load(&scratch->state);
    if ((state == COX__SCRATCH_NONE || state == COX__SCRATCH_TAINTED) && !session->closing)
        begin_allocation(session);
    if (atomic_load(&scratch->state) != COX__SCRATCH_READY)
        return false;
    scratch->owner = owner;
    scratch->frame_index = owner->index;
    scratch->whole = false;
    return true;
}

void cox__scratch_use(struct cox_session *session)
{
    session->scratch.users++;
}

void cox__scratch_release(struct cox_session *session)
{
    COX_INVARIANT(session->scratch.users > 0);
    session->scratch.users--;
}

/* ---- contents ---- */

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

void cox__scratch_fill(struct cox_session *session, const struct cox__frame *frame, uint32_t first_row, uint32_t rows,
                       bool outputs)
{
    struct cox__scratch *scratch = &session->scratch;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        const struct cox_binding *binding = &session->pipeline.bindings[i];
        if (binding->contract == COX_REDUCE || (binding->contract == COX_WHOLE && scratch->whole) ||
            (written_by_rows(binding) && !outputs))
            continue;
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        memcpy(data_of(session, scratch->mems[i], offset), data_of(session, frame->mems[i], offset), bytes);
    }
    scratch->whole = true;
}

bool cox__scratch_equals(const struct cox_session *session, const struct cox__frame *frame, uint32_t first_row,
                         uint32_t rows)
{
    bool equal = true;
    for (uint32_t i = 0; equal && i < session->pipeline.binding_count; i++) {
        size_t offset, bytes = part_of(session, i, first_row, rows, &offset);
        if (written_by_rows(&session->pipeline.bindings[i]))
            equal = memcmp(data_of(session, frame->mems[i], offset), data_of(session, session->scratch.mems[i], offset),
                           bytes) == 0;
    }
    return equal;
}

void cox__scratch_digest(const struct cox_session *session, struct cox__mem *const *mems, const void *partials,
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

bool cox__scratch_add_check(struct cox_session *session, struct cox__frame *frame, uint32_t device, uint32_t first_row,
                            uint32_t rows, uint32_t origin)
{
    const uint32_t before = frame->band_count;
    const bool added = cox__frame_add(session, frame, device, first_row, rows, frame->reports[origin].attempt + 1);
    for (uint32_t b = before; b < frame->band_count; b++) {
        frame->bands[b].kind = COX__BAND_CHECK;
        frame->bands[b].origin = origin;
        cox__scratch_use(session);
    }
    if (!added) /* what was added runs; with it alone the rows are not checked */
        frame->status = COX_E_NOMEM;
    return added;
}
