/* The spare buffers are as long as the frame's, so every offset is valid in both. The inputs of a
 * band are copied to them first, so work on them does not touch the frame's buffers. The worker
 * thread allocates them, since a driver may take long for that.
 *
 * Owns struct cox__spare.
 * SPDX-License-Identifier: Apache-2.0 */
#include "spare.h"
#include "engine/engine.h"
#include "engine/frame.h"
#include "engine/invariant.h"
#include "engine/memory.h"
#include "base/bounds.h"
#include "base/digest.h"
#include "engine/timing.h"
#include "engine/transitions.h"

#include <string.h>

/* A device that hangs while it works on the spare buffers costs a set of them, perhaps for good.
 * After this many sets the session does without. */
enum { SETS_MAX = 8 };

void cox__spare_drop(struct cox_runtime *runtime, const struct cox__spare *spare)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        if (spare->mems[i])
            cox__memory_drop(runtime, spare->mems[i]);
}

/* ---- allocation ---- */

cox_status cox__spare_make_mems(struct cox__backend *backend, const struct cox__pipeline *pipeline,
                                uint32_t bindings, struct cox__mem **mems, uint32_t *failed)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const size_t bytes = pipeline->bytes[i];
        mems[i] = NULL;

        cox_status status = COX_OK;
        if (bytes && bindings >> i & 1)
            status = backend->ops->mem_create(backend, NULL, bytes, &mems[i]);
        if (status == COX_OK)
            continue;

        *failed = i;
        mems[i] = NULL;
        while (i-- > 0)
            if (mems[i]) {
                backend->ops->mem_destroy(backend, mems[i]); /* no device has seen it */
                mems[i] = NULL;
            }
        return status;
    }
    return COX_OK;
}

/* Takes as long as the driver needs to allocate the memory, and perhaps to pin it. */
static void allocate(struct cox_session *session)
{
    uint32_t failed;
    const cox_status status = cox__spare_make_mems(session->runtime->backend, &session->pipeline,
                                                   UINT32_MAX, session->spare.mems, &failed);

    if (status)
        cox__log(&session->runtime->log, COX_LOG_WARN,
                 "shadow runs and checks are not possible: %s", cox_status_text(status));
    cox__transition_spare(&session->spare, status ? COX__SPARE_UNAVAILABLE : COX__SPARE_READY);
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
    cox__log(&session->runtime->log, COX_LOG_WARN,
             "shadow runs and checks are no longer possible: %s", why);
    cox__transition_spare(&session->spare, COX__SPARE_UNAVAILABLE);
}

static void begin_allocation(struct cox_session *session)
{
    struct cox__spare *spare = &session->spare;
    if (spare->made++ == SETS_MAX) {
        go_without(session, "devices hung in them too often");
        return;
    }

    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (spare->mems[i]) { /* of a set that a device may still write to */
            cox__memory_let_go(session->runtime, spare->mems[i]);
            spare->mems[i] = NULL;
        }

    spare->wait_ns = cox__engine_now(session->runtime) +
                     cox__timing_session_timeout_ns(&session->settings);
    session->recovery.attention = true; /* the next step looks at the time */
    cox__loop_wake(session->runtime->loop);
    cox__transition_spare(spare, COX__SPARE_ALLOCATING);

    if (cox__worker_run(session->runtime->worker, allocate_task, session))
        return;
    go_without(session, cox_status_text(COX_E_NOMEM));
}

bool cox__spare_take(struct cox_session *session, const struct cox__frame *owner)
{
    struct cox__spare *spare = &session->spare;
    if (spare->users)
        return spare->owner == owner && spare->frame_index == owner->index;

    const enum cox__spare_state state = atomic_load(&spare->state);
    if ((state == COX__SPARE_NONE || state == COX__SPARE_TAINTED) && !session->closing)
        begin_allocation(session);

    if (atomic_load(&spare->state) != COX__SPARE_READY)
        return false;

    spare->owner = owner;
    spare->frame_index = owner->index;
    spare->whole = false;
    return true;
}

void cox__spare_use(struct cox__spare *spare)
{
    spare->users++;
}

void cox__spare_release(struct cox__spare *spare)
{
    COX_INVARIANT(spare->users > 0);
    spare->users--;
}

/* ---- contents ---- */

/* The part of a binding's memory that a band touches: `count` runs of `bytes`, from one to the next
 * `step`. The bytes between them are not the frame's. */
struct part {
    size_t offset, bytes, step;
    uint32_t count;
};

static struct part part_of(const struct cox__pass *pass, uint32_t binding, uint32_t first_row,
                           uint32_t rows)
{
    const struct cox__binding *of = &pass->bindings[binding];
    uint32_t first, count;
    if (!cox__by_rows(of))
        return (struct part){.bytes = of->bytes, .count = 1};

    cox__pipeline_binding_rows(pass, binding, first_row, rows, &first, &count);
    struct part part = {
        .offset = cox__row_offset(of, first), .bytes = count * of->pitch_bytes, .count = 1};

    if (cox__has_gaps(of)) {
        part.bytes = cox__row_bytes(of);
        part.step = of->pitch_bytes;
        part.count = count;
    }
    return part;
}

/* Run `n` of a part. */
static char *run_of(struct cox__backend *backend, struct cox__mem *mem, const struct part *part,
                    uint32_t n)
{
    return (char *)backend->ops->mem_data(mem) + part->offset + n * part->step;
}

static void copy_part(const struct cox_session *session, const struct cox__frame *frame,
                      uint32_t binding, uint32_t first_row, uint32_t rows)
{
    struct cox__backend *backend = session->runtime->backend;
    const struct part part = part_of(cox__frame_pass(frame), binding, first_row, rows);

    for (uint32_t n = 0; n < part.count; n++)
        memcpy(run_of(backend, session->spare.mems[binding], &part, n),
               run_of(backend, frame->mems[binding], &part, n), part.bytes);
}

static bool part_equals(const struct cox_session *session, const struct cox__frame *frame,
                        uint32_t binding, uint32_t first_row, uint32_t rows)
{
    struct cox__backend *backend = session->runtime->backend;
    const struct part part = part_of(cox__frame_pass(frame), binding, first_row, rows);

    for (uint32_t n = 0; n < part.count; n++)
        if (memcmp(run_of(backend, frame->mems[binding], &part, n),
                   run_of(backend, session->spare.mems[binding], &part, n), part.bytes) != 0)
            return false;
    return true;
}

/* Whether a band only reads the frame's memory of the binding. */
static bool is_input(const struct cox__binding *binding)
{
    return cox__is_shared(binding) && binding->row_access != COX__REDUCE &&
           !cox__written_by_rows(binding);
}

void cox__spare_fill_inputs(struct cox_session *session, const struct cox__frame *frame,
                            uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *pass = cox__frame_pass(frame);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (is_input(binding) && !(binding->row_access == COX__WHOLE && session->spare.whole))
            copy_part(session, frame, i, first_row, rows);
    }

    session->spare.whole = true;
}

void cox__spare_fill_outputs(struct cox_session *session, const struct cox__frame *frame,
                             uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (cox__written_by_rows(&pass->bindings[i]))
            copy_part(session, frame, i, first_row, rows);
}

/* ---- contents for a vote ---- */

static void flip(char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] ^= COX__SPARE_FLIP;
}

void cox__spare_fill_flipped(struct cox_session *session, const struct cox__frame *frame,
                             uint32_t first_row, uint32_t rows)
{
    struct cox__backend *backend = session->runtime->backend;
    const struct cox__pass *pass = cox__frame_pass(frame);
    cox__spare_fill_outputs(session, frame, first_row, rows);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct part part = part_of(pass, i, first_row, rows);
        for (uint32_t n = 0; n < part.count && cox__written_by_rows(&pass->bindings[i]); n++)
            flip(run_of(backend, session->spare.mems[i], &part, n), part.bytes);
    }
}

/* The bytes from the first to the last one of a part. */
static size_t extent_of(const struct part *part)
{
    return (part->count - 1) * part->step + part->bytes;
}

void cox__spare_change_neighbours(struct cox_session *session, const struct cox__frame *frame,
                                  uint32_t first_row, uint32_t rows)
{
    struct cox__backend *backend = session->runtime->backend;
    const struct cox__pass *pass = cox__frame_pass(frame);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (!cox__is_shared(binding) || !cox__by_rows(binding))
            continue;

        const struct part part = part_of(pass, i, first_row, rows);
        const size_t bytes = extent_of(&part), end = part.offset + bytes;
        const size_t above = (size_t)cox__min_u64(part.offset, bytes);
        const size_t below = (size_t)cox__min_u64(session->pipeline.bytes[i] - end, bytes);
        char *data = backend->ops->mem_data(session->spare.mems[i]);

        flip(data + part.offset - above, above);
        flip(data + end, below);
    }
}

uint32_t cox__spare_changed_input(const struct cox_session *session, const struct cox__frame *frame,
                                  uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *pass = cox__frame_pass(frame);

    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (is_input(&pass->bindings[i]) && !part_equals(session, frame, i, first_row, rows))
            return i;
    return COX_BUFFERS_MAX;
}

/* ---- results ---- */

size_t cox__spare_result_bytes(const struct cox__pass *pass, uint32_t first_row, uint32_t rows)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct part part = part_of(pass, i, first_row, rows);
        if (cox__written_by_rows(&pass->bindings[i]))
            sum += part.count * part.bytes;
    }
    return sum;
}

void cox__spare_copy_result(struct cox__backend *backend, const struct cox__pass *pass,
                            struct cox__mem *const *mems, uint32_t first_row, uint32_t rows,
                            unsigned char *to)
{
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct part part = part_of(pass, i, first_row, rows);
        for (uint32_t n = 0; n < part.count && cox__written_by_rows(&pass->bindings[i]); n++) {
            memcpy(to, run_of(backend, mems[i], &part, n), part.bytes);
            to += part.bytes;
        }
    }
}

void cox__spare_locate(const struct cox__pass *pass, uint32_t first_row, uint32_t rows, size_t at,
                       uint32_t *binding, size_t *row)
{
    *binding = 0;
    *row = 0;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct part part = part_of(pass, i, first_row, rows);
        if (!cox__written_by_rows(&pass->bindings[i]))
            continue;

        const size_t run = at / part.bytes;
        *binding = i;
        *row = (part.offset - pass->bindings[i].offset_bytes + run * part.step + at % part.bytes) /
                   pass->bindings[i].pitch_bytes -
               pass->bindings[i].border_above;
        if (run < part.count)
            return;
        at -= part.count * part.bytes;
    }
}

bool cox__spare_equals(const struct cox_session *session, const struct cox__frame *frame,
                       uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    bool equal = true;

    for (uint32_t i = 0; equal && i < pass->binding_count; i++)
        if (cox__written_by_rows(&pass->bindings[i]))
            equal = part_equals(session, frame, i, first_row, rows);
    return equal;
}

void cox__spare_digest(struct cox__backend *backend, const struct cox__pass *pass,
                       struct cox__mem *const *mems, const void *partials, uint32_t first_row,
                       uint32_t rows, unsigned char digest[32])
{
    struct cox__digest sha;
    cox__digest_begin(&sha);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (!cox__written_by_rows(&pass->bindings[i]))
            continue;

        const struct part part = part_of(pass, i, first_row, rows);
        for (uint32_t n = 0; n < part.count; n++)
            cox__digest_feed(&sha, run_of(backend, mems[i], &part, n), part.bytes);
    }

    if (partials)
        cox__digest_feed(&sha, partials, pass->partial_bytes);
    cox__digest_end(&sha, digest);
}

bool cox__spare_add_check(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                          uint32_t first_row, uint32_t rows, uint32_t origin)
{
    const uint32_t before = frame->band_count;
    const bool added = cox__frame_add(&session->devices, frame, device, first_row, rows,
                                      frame->reports[origin].attempt + 1);

    for (uint32_t b = before; b < frame->band_count; b++) {
        frame->bands[b].kind = COX__BAND_CHECK;
        frame->bands[b].origin = origin;
        cox__spare_use(&session->spare);
    }

    if (!added) { /* the bands that were added run, but alone they do not check the rows */
        cox__log(&session->runtime->log, COX_LOG_ERROR, "frame %llu: too many bands to check",
                 (unsigned long long)frame->index);
        frame->status = COX_E_NOMEM;
    }
    return added;
}
