/* The order in which frames use buffers, across sessions; see struct cox_buffer.
 *
 * Owns the buffers' counts and `failed`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "buffers.h"
#include "engine.h"
#include "memory.h"

#include <stdlib.h>

static bool writes(const struct cox__frame *frame, uint32_t binding)
{
    return !frame->fetch && frame->pipeline->bindings[binding].access != COX__READ;
}

static bool reads(const struct cox__frame *frame, uint32_t binding)
{
    return frame->fetch || frame->pipeline->bindings[binding].access != COX__WRITE;
}

/* A buffer that is bound twice in one frame is only read, so its second use does not wait for the
 * first. */
void cox__buffers_queue(struct cox__frame *frame)
{
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++) {
        cox_buffer *buffer = frame->buffers[b];

        frame->mems[b] = NULL;
        if (!buffer)
            continue;

        frame->turns[b] = buffer->writes;
        if (writes(frame, b)) {
            frame->turns[b] = buffer->uses;
            buffer->writes++;
        }
        buffer->uses++;
    }
}

bool cox__buffers_take(struct cox__frame *frame)
{
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++) {
        const cox_buffer *buffer = frame->buffers[b];
        if (!buffer)
            continue;

        const uint64_t ended = writes(frame, b) ? buffer->uses_ended : buffer->writes_ended;
        if (ended < frame->turns[b])
            return false;
    }

    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++)
        if (frame->buffers[b])
            frame->mems[b] = atomic_load(&frame->buffers[b]->mem);
        else
            frame->mems[b] = frame->scratch[b];

    return true;
}

cox_status cox__buffers_status(const struct cox__frame *frame)
{
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++) {
        const cox_buffer *buffer = frame->buffers[b];
        if (!buffer)
            continue;
        if (buffer->unsafe)
            return COX_E_MEMORY_UNSAFE;
        if (reads(frame, b) && frame->number < buffer->failed_before)
            return buffer->failed;
    }

    return COX_OK;
}

uint32_t cox__buffers_written(const struct cox__frame *frame)
{
    uint32_t written = 0;
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++)
        written |= (uint32_t)writes(frame, b) << b;

    return written;
}

void cox__buffers_leave(const struct cox_runtime *runtime, const struct cox__frame *frame)
{
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++) {
        cox_buffer *buffer = frame->buffers[b];
        if (!buffer)
            continue;

        atomic_fetch_add(&buffer->leaving, 1);
        if (!writes(frame, b))
            continue;

        buffer->content++;
        buffer->failed = frame->status;
        buffer->failed_before = 0;
        if (frame->status)
            buffer->failed_before = atomic_load(&runtime->frames_submitted);
    }
}

void cox__buffers_put_life(struct cox__buffer_life *life)
{
    if (life && atomic_fetch_sub(&life->refs, 1) == 1)
        free(life);
}

/* Free a buffer. No frame and no handle of the application refers to it any more. */
static void end_buffer(cox_buffer *buffer)
{
    struct cox__mem *mem = atomic_load(&buffer->mem);
    struct cox__buffer_life *life = atomic_load(&buffer->life);
    if (mem)
        cox__memory_let_go_locking(buffer->runtime, mem);
    if (life)
        atomic_store(&life->ended, true);

    cox__buffers_put_life(life);
    free(buffer);
}

void cox__buffers_give_back(const struct cox_session *session, cox_buffer *const *buffers,
                            uint32_t written)
{
    bool last[COX_BUFFERS_MAX] = {false};
    struct cox_runtime *runtime = session->runtime;

    /* Under the lock, so that cox_buffer_destroy sees both counts change at once. */
    pthread_mutex_lock(&runtime->release.lock);

    for (uint32_t b = 0; b < session->pipeline.binding_count; b++) {
        if (!buffers[b])
            continue;
        buffers[b]->uses_ended++;
        buffers[b]->writes_ended += written >> b & 1;
        atomic_fetch_sub(&buffers[b]->leaving, 1);
        last[b] = atomic_fetch_sub(&buffers[b]->refs, 1) == 1;
    }

    pthread_cond_broadcast(&runtime->release.given_back);
    pthread_mutex_unlock(&runtime->release.lock);

    for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
        if (last[b])
            end_buffer(buffers[b]);
}

void cox__buffers_unref(cox_buffer *buffer)
{
    if (atomic_fetch_sub(&buffer->refs, 1) == 1)
        end_buffer(buffer);
}
