/* Moves a frame out of memory that a lost device may still write to. Such a device may wake at any
 * time and write its rows, so no frame may use that memory:
 *
 * - A buffer that the library allocated gets fresh memory, with the valid rows copied. The old
 *   memory is left to the device. Before that the frame's running bands end; its other bands wait.
 * - Memory of the application cannot be replaced. The frame ends with COX_E_MEMORY_UNSAFE, and so
 *   does each later frame with that buffer. This holds even after the device has ended: it may have
 *   written while the application refilled the buffer.
 *
 * The worker thread allocates and copies. If a driver does not return from an allocation, the frame
 * ends with an error.
 *
 * Owns each frame's `relocation`, and the buffers' `mem` and `unsafe`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "relocate.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/order.h"
#include "engine/timing.h"

#include <stdlib.h>
#include <string.h>

/* The engine gives up an allocation by the worker thread only after its time limit, and after this
 * many polls. If the process could not run, the limit passes, but the polls do not happen. */
#define LOOKS 20u

/*   ALLOCATING -> COPYING -> DONE
 *        '------> DROPPED (the engine has stopped waiting) */
enum relocation_state { ALLOCATING, COPYING, DONE, DROPPED };

struct cox__relocation {
    _Atomic enum relocation_state state;
    struct cox_runtime *runtime;
    uint64_t last_ns;  /* when the engine looked last */
    uint64_t look_ns;  /* one look counts for at most this long */
    uint64_t left_ns;  /* how much longer the engine waits */
    uint32_t bindings; /* a bit for each */
    cox_status status;
    uint32_t count;
    struct {
        uint32_t binding;
        size_t bytes;
        struct cox__mem *from, *to;
    } parts[COX_BUFFERS_MAX];
};

/* ---- the worker thread ---- */

static void destroy_fresh(struct cox__relocation *relocation)
{
    struct cox__backend *backend = relocation->runtime->backend;
    for (uint32_t i = 0; i < relocation->count; i++)
        if (relocation->parts[i].to)
            backend->ops->mem_destroy(backend, relocation->parts[i].to);
}

static bool change_state(struct cox__relocation *relocation, enum relocation_state from,
                         enum relocation_state to)
{
    return atomic_compare_exchange_strong(&relocation->state, &from, to);
}

static void relocate_task(void *ctx)
{
    struct cox__relocation *relocation = ctx;
    struct cox__backend *backend = relocation->runtime->backend;
    struct cox__loop *loop = relocation->runtime->loop;

    for (uint32_t i = 0; i < relocation->count && relocation->status == COX_OK; i++)
        relocation->status = backend->ops->mem_create(backend, NULL, relocation->parts[i].bytes,
                                                      &relocation->parts[i].to);

    /* If the engine has given up, the frame and the memory to copy from may be gone. */
    if (!change_state(relocation, ALLOCATING, COPYING)) {
        destroy_fresh(relocation);
        free(relocation);
        return;
    }

    for (uint32_t i = 0; i < relocation->count && relocation->status == COX_OK; i++)
        memcpy(backend->ops->mem_data(relocation->parts[i].to),
               backend->ops->mem_data(relocation->parts[i].from), relocation->parts[i].bytes);

    if (relocation->status)
        destroy_fresh(relocation);
    atomic_store(&relocation->state, DONE); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

/* ---- the engine ---- */

/* End the frame with an error, unless it has one. */
static void fail(const struct cox__log *log, struct cox__frame *frame, cox_status status)
{
    if (frame->status)
        return;

    cox__log(log, COX_LOG_ERROR, "frame %llu: %s", (unsigned long long)frame->index,
             cox_status_text(status));
    frame->status = status;
}

/* The buffers keep the memory that they have. Scratch keeps its memory until the next frame that
 * uses it tries again. A missing buffer does not prevent the retry. */
static void end_tainted(const struct cox__log *log, struct cox__frame *frame, uint32_t bindings)
{
    cox_status status = COX_E_NOMEM;
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++)
        if (frame->buffers[b] && bindings >> b & 1) {
            frame->buffers[b]->unsafe = true;
            status = COX_E_MEMORY_UNSAFE;
        }
    fail(log, frame, status);
}

static void install(struct cox_runtime *runtime, struct cox__frame *frame,
                    const struct cox__relocation *relocation)
{
    for (uint32_t i = 0; i < relocation->count; i++) {
        const uint32_t b = relocation->parts[i].binding;
        if (frame->buffers[b])
            atomic_store(&frame->buffers[b]->mem, relocation->parts[i].to);
        else
            frame->scratch[b] = relocation->parts[i].to;
        frame->mems[b] = relocation->parts[i].to;
        cox__memory_let_go(runtime, relocation->parts[i].from);
    }

    cox__log(
        &runtime->log, COX_LOG_WARN,
        "frame %llu moves to new memory: a device that was given up may still write to the old "
        "memory",
        (unsigned long long)frame->index);
}

/* Whether the running relocation has ended. */
static bool has_ended(struct cox_runtime *runtime, struct cox__frame *frame)
{
    struct cox__relocation *relocation = frame->relocation;
    const uint32_t bindings = relocation->bindings;

    if (atomic_load(&relocation->state) == DONE) {
        frame->relocation = NULL;
        if (relocation->status)
            end_tainted(&runtime->log, frame, bindings);
        else
            install(runtime, frame, relocation);
        free(relocation);
        return true;
    }

    /* Of a late look only `look_ns` counts. */
    const uint64_t now_ns = cox__engine_now(runtime);
    uint64_t counted_ns = now_ns - relocation->last_ns;
    if (counted_ns > relocation->look_ns)
        counted_ns = relocation->look_ns;
    if (counted_ns > relocation->left_ns)
        counted_ns = relocation->left_ns;
    relocation->last_ns = now_ns;
    relocation->left_ns -= counted_ns;
    if (relocation->left_ns || !change_state(relocation, ALLOCATING, DROPPED))
        return false;

    frame->relocation = NULL; /* the task frees it */
    end_tainted(&runtime->log, frame, bindings);
    return true;
}

static bool is_under_way(const struct cox__frame *frame)
{
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (frame->bands[b].state == COX__BAND_QUEUED || frame->bands[b].state == COX__BAND_RUNNING)
            return true;
    return false;
}

/* Find the frame's buffers whose memory is tainted and can be replaced: a bit for each binding. If
 * memory that cannot be replaced is tainted, the function gives the frame an error status. */
static uint32_t find_tainted(struct cox_runtime *runtime, struct cox__frame *frame)
{
    uint32_t bindings = 0;
    for (uint32_t b = 0; b < frame->pipeline->binding_count; b++) {
        cox_buffer *buffer = frame->buffers[b]; /* NULL = scratch */
        if ((buffer && buffer->unsafe) || !cox__memory_is_tainted(runtime, frame->mems[b], true))
            continue;

        if (buffer && (buffer->wrapped || frame->pipeline->bindings[b].access == COX__READ)) {
            buffer->unsafe = true;
            fail(&runtime->log, frame, COX_E_MEMORY_UNSAFE);
        } else {
            bindings |= UINT32_C(1) << b;
        }
    }
    return bindings;
}

/* Start the relocation. False: no memory, or no thread. */
static bool begin(struct cox_session *session, struct cox__frame *frame, uint32_t bindings)
{
    struct cox__relocation *relocation = calloc(1, sizeof *relocation);
    if (!relocation)
        return false;

    relocation->runtime = session->runtime;
    relocation->last_ns = cox__engine_now(session->runtime);
    relocation->left_ns = cox__timing_session_timeout_ns(&session->settings);
    relocation->look_ns = relocation->left_ns / LOOKS + 1;
    relocation->bindings = bindings;

    for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
        if (bindings >> b & 1) {
            relocation->parts[relocation->count].binding = b;
            relocation->parts[relocation->count].bytes = session->pipeline.bytes[b];
            if (frame->buffers[b])
                relocation->parts[relocation->count].bytes = frame->buffers[b]->bytes;
            relocation->parts[relocation->count++].from = frame->mems[b];
        }

    frame->relocation = relocation;
    session->recovery.attention = true; /* the next step looks at the time */
    cox__loop_wake(session->runtime->loop);
    if (cox__worker_run_now(session->runtime->worker, relocate_task, relocation))
        return true;

    frame->relocation = NULL;
    free(relocation);
    return false;
}

bool cox__relocate_holds(struct cox_session *session, struct cox__frame *frame)
{
    if (!frame->relocation && !atomic_load(&session->runtime->lost.abandoned))
        return false;
    if (frame->relocation && !has_ended(session->runtime, frame))
        return true;

    const uint32_t bindings = find_tainted(session->runtime, frame);
    if (!bindings)
        return false;

    if (is_under_way(frame)) /* running bands still write to the old memory */
        return true;

    if (begin(session, frame, bindings))
        return !has_ended(session->runtime, frame);
    end_tainted(&session->runtime->log, frame, bindings);
    return false;
}

void cox__relocate_due(const struct cox__order *order, uint64_t *next_ns)
{
    for (uint32_t i = 0; i < order->count; i++) {
        const struct cox__relocation *relocation = cox__order_at(order, i)->relocation;
        if (!relocation)
            continue;

        uint64_t wait_ns = relocation->look_ns;
        if (relocation->left_ns < wait_ns)
            wait_ns = relocation->left_ns;
        const uint64_t due_ns = relocation->last_ns + wait_ns;
        if (due_ns < *next_ns)
            *next_ns = due_ns;
    }
}
