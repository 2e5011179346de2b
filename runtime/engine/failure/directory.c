/* SPDX-License-Identifier: Apache-2.0 */
#include "directory.h"
#include "engine/buffers.h"
#include "engine/invariant.h"
#include "engine/row_set.h"

#include <stdlib.h>

/* ---- the life of a buffer ---- */

/* The buffer's life, made at the first call. NULL: no memory. */
static struct cox__buffer_life *life_of(cox_buffer *buffer)
{
    struct cox__buffer_life *life = atomic_load(&buffer->life);
    if (life)
        return life;

    struct cox__buffer_life *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;

    atomic_init(&made->refs, 1);
    if (atomic_compare_exchange_strong(&buffer->life, &life, made))
        return made;

    free(made); /* another thread was faster */
    return life;
}

/* A number that changes whenever the buffer's content does. */
static uint64_t content_of(cox_buffer *buffer)
{
    return buffer->content + atomic_load(&buffer->changes);
}

/* ---- entries ---- */

static struct cox__row_set *set_of(const struct cox_session *session, const struct cox__kept *kept,
                                   uint32_t place)
{
    return &kept->rows[cox__place_index(place, session->devices.count)];
}

bool cox__directory_allocate(struct cox_session *session)
{
    bool made = true;
    for (uint32_t k = 0; k < session->pipeline.kept_count; k++) {
        struct cox__kept *kept = &session->residency.kept[k];
        kept->rows = calloc(session->devices.count + 2, sizeof *kept->rows);
        made &= kept->rows != NULL;
    }

    return made;
}

/* The entry's buffer is kept no longer. */
static void leave_buffer(const struct cox_session *session, struct cox__kept *kept)
{
    const struct cox_session *keeper = session;
    if (kept->life)
        atomic_compare_exchange_strong(&kept->life->keeper, &keeper, NULL);

    cox__buffers_put_life(kept->life);
    kept->life = NULL;
}

void cox__directory_free(struct cox_session *session)
{
    for (uint32_t k = 0; k < session->pipeline.kept_count; k++) {
        struct cox__kept *kept = &session->residency.kept[k];
        leave_buffer(session, kept);
        for (uint32_t i = 0; kept->rows && i < session->devices.count + 2; i++)
            cox__row_set_free(&kept->rows[i]);
        free(kept->rows);
        kept->rows = NULL;
    }
}

/* Only the host's memory has rows, and it has all. False: no memory. */
static bool reset(const struct cox_session *session, struct cox__kept *kept)
{
    for (uint32_t i = 0; i < session->devices.count + 2; i++)
        cox__row_set_clear(&kept->rows[i]);

    return cox__row_set_add(set_of(session, kept, COX__PLACE_HOST), 0, kept->all_rows);
}

static bool is_on_host(const struct cox_session *session, const struct cox__kept *kept)
{
    uint32_t until;
    return cox__row_set_has(set_of(session, kept, COX__PLACE_HOST), 0, kept->all_rows, &until) &&
           until == kept->all_rows;
}

/* The entry of a buffer; NULL = it has none. */
static struct cox__kept *find(struct cox_session *session, const struct cox__buffer_life *life)
{
    for (uint32_t k = 0; life && k < session->pipeline.kept_count; k++)
        if (session->residency.kept[k].life == life)
            return &session->residency.kept[k];

    return NULL;
}

/* Whether the entry may go to another buffer. */
static bool is_free(const struct cox_session *session, const struct cox__kept *kept)
{
    if (!kept->life)
        return true;

    return !kept->frames && (atomic_load(&kept->life->ended) || is_on_host(session, kept));
}

/* Take an entry with memory for the binding: the one that was not used for longest. NULL: devices
 * have the newest rows of all buffers. */
static struct cox__kept *take(struct cox_session *session, uint32_t binding)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    struct cox__kept *oldest = NULL;

    for (uint32_t k = 0; k < pipeline->kept_count; k++) {
        struct cox__kept *kept = &session->residency.kept[k];
        if (pipeline->kept_bytes[k] < pipeline->bytes[binding] || !is_free(session, kept))
            continue;
        if (!kept->life)
            return kept;
        if (!oldest || kept->used < oldest->used)
            oldest = kept;
    }

    if (oldest)
        leave_buffer(session, oldest);
    return oldest;
}

static bool has_shape_of(const struct cox__kept *kept, const struct cox__pipeline *pipeline,
                         uint32_t binding)
{
    return kept->pitch_bytes == pipeline->bindings[binding].pitch_bytes &&
           kept->all_rows == cox__kept_rows(pipeline, binding);
}

/* Give a free entry to the buffer of a binding. */
static void adopt(struct cox__kept *kept, const struct cox__pipeline *pipeline, uint32_t binding,
                  struct cox__buffer_life *life, uint64_t content)
{
    atomic_fetch_add(&life->refs, 1);
    kept->life = life;
    kept->content = content - 1; /* the row sets are of another buffer */
    kept->pitch_bytes = pipeline->bindings[binding].pitch_bytes;
    kept->all_rows = cox__kept_rows(pipeline, binding);
}

/* The session whose devices have newer rows of the buffer than the host's memory, or NULL. */
static const struct cox_session *keeper_of(const cox_buffer *buffer)
{
    const struct cox__buffer_life *life = atomic_load(&buffer->life);
    if (!life)
        return NULL;

    return atomic_load(&life->keeper);
}

cox_status cox__directory_check(const struct cox_session *session, uint32_t binding,
                                const cox_buffer *buffer)
{
    const struct cox_session *keeper = keeper_of(buffer);
    if (!keeper || (keeper == session && session->pipeline.stays >> binding & 1))
        return COX_OK;

    cox__log(&session->runtime->log, COX_LOG_ERROR,
             "buffer %u (%s): devices of %s have its newest rows; call cox_session_fetch first",
             binding, session->pipeline.bindings[binding].name,
             keeper == session ? "this session" : "another session");
    return COX_E_INVALID;
}

/* ---- frames ---- */

/* The entry that the frame's buffer has already, with the rows of this binding; NULL = none. */
static struct cox__kept *entry_of(struct cox_session *session, const struct cox__frame *frame,
                                  uint32_t binding)
{
    if (!frame->buffers[binding] || !(session->pipeline.stays >> binding & 1))
        return NULL;

    struct cox__kept *kept = find(session, atomic_load(&frame->buffers[binding]->life));
    if (!kept || !has_shape_of(kept, &session->pipeline, binding))
        return NULL;

    return kept;
}

bool cox__directory_has_room(struct cox_session *session, const struct cox__frame *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    uint32_t own = 0, missing = 0, room = 0;
    size_t bytes = 0;
    if (!pipeline->stays || frame->fetch)
        return true;

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox__kept *kept = entry_of(session, frame, i);
        if (kept) {
            own |= UINT32_C(1) << cox__directory_number(session, kept);
        } else if (pipeline->stays >> i & 1) {
            missing++;
            if (pipeline->bytes[i] > bytes)
                bytes = pipeline->bytes[i];
        }
    }

    for (uint32_t k = 0; k < pipeline->kept_count; k++)
        room += !(own >> k & 1) && pipeline->kept_bytes[k] >= bytes &&
                is_free(session, &session->residency.kept[k]);
    return missing <= room;
}

static cox_status open_binding(struct cox_session *session, struct cox__frame *frame,
                               uint32_t binding)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    cox_buffer *buffer = frame->buffers[binding];
    struct cox__buffer_life *life = life_of(buffer);
    if (!life)
        return COX_E_NOMEM;

    struct cox__kept *kept = find(session, life);
    if (kept && !has_shape_of(kept, pipeline, binding)) {
        if (!is_free(session, kept)) {
            cox__log(&session->runtime->log, COX_LOG_ERROR,
                     "buffer %u (%s): its rows stay on devices with another pitch or size; call "
                     "cox_session_fetch first",
                     binding, pipeline->bindings[binding].name);
            return COX_E_INVALID;
        }
        leave_buffer(session, kept);
        kept = NULL;
    }

    const uint64_t content = content_of(buffer);
    if (!kept && (kept = take(session, binding)))
        adopt(kept, pipeline, binding, life, content);
    if (!kept) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "buffer %u (%s): the devices have memory for %u buffers that stay; call "
                 "cox_session_fetch for one of them first",
                 binding, pipeline->bindings[binding].name, pipeline->kept_count);
        return COX_E_INVALID;
    }

    if (kept->content != content && !reset(session, kept)) {
        if (!kept->frames) /* else the entry would stay in use */
            leave_buffer(session, kept);
        return COX_E_NOMEM;
    }

    kept->content = content;
    kept->used = frame->number;
    kept->frames++;
    frame->held.kept[binding] = kept;
    return COX_OK;
}

/* A fetch names a buffer by any binding. Move it to the one whose rows the entry has. */
static cox_status open_fetch(struct cox_session *session, struct cox__frame *frame,
                             uint32_t binding)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    cox_buffer *buffer = frame->buffers[binding];
    struct cox__mem *mem = frame->mems[binding];
    const struct cox__kept *kept = find(session, atomic_load(&buffer->life));
    if (!kept || kept->content != content_of(buffer))
        return COX_OK; /* nothing to fetch */

    uint32_t fits = 0;
    while (!(pipeline->stays >> fits & 1) || !has_shape_of(kept, pipeline, fits))
        fits++;
    COX_INVARIANT(fits < pipeline->binding_count);

    frame->buffers[binding] = NULL;
    frame->mems[binding] = NULL;
    frame->buffers[fits] = buffer;
    frame->mems[fits] = mem;
    return open_binding(session, frame, fits);
}

cox_status cox__directory_open(struct cox_session *session, struct cox__frame *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (!frame->buffers[i])
            continue;

        cox_status status = cox__directory_check(session, i, frame->buffers[i]);
        if (status)
            return status;
        if (frame->fetch)
            return open_fetch(session, frame, i);

        if (pipeline->stays >> i & 1)
            status = open_binding(session, frame, i);
        if (status)
            return status;
    }
    return COX_OK;
}

static void close_binding(struct cox_session *session, const struct cox__frame *frame,
                          uint32_t binding)
{
    struct cox__kept *kept = frame->held.kept[binding];
    const bool writes = !frame->fetch && session->pipeline.bindings[binding].access != COX__READ;

    kept->frames--;
    if (!writes && !frame->fetch)
        return;

    /* What a failed frame left is undefined. */
    kept->content = content_of(frame->buffers[binding]);
    if (frame->status && !reset(session, kept)) {
        leave_buffer(session, kept);
        return;
    }

    const struct cox_session *keeper = NULL;
    if (!is_on_host(session, kept))
        keeper = session;
    atomic_store(&kept->life->keeper, keeper);
}

void cox__directory_close(struct cox_session *session, const struct cox__frame *frame)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (frame->held.kept[i])
            close_binding(session, frame, i);
}

bool cox__directory_is_fetched(const struct cox_session *session, const struct cox__frame *frame)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (frame->held.kept[i] && !is_on_host(session, frame->held.kept[i]))
            return false;

    return true;
}

void cox__directory_forget(struct cox_session *session, uint32_t device)
{
    for (uint32_t k = 0; k < session->pipeline.kept_count; k++)
        cox__row_set_clear(set_of(session, &session->residency.kept[k], device));
}
