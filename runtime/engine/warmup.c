/* Before a session's first frame every device does all of it alone, first to compile, then to be timed.
 *
 * Owns struct cox__warmup, and the devices' `solo_ns` and `blocks_in_submit`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "warmup.h"
#include "engine.h"
#include "frame.h"
#include "queue.h"

#include <string.h>

/* Warm-up times a device until so many runs or so much time are spent, and the shortest run counts: it takes a
 * processor's workers some ten milliseconds to be spread over the cores. */
#define SOLO_RUNS 12
#define SOLO_NS 40000000ull
/* A device that takes this long to submit to, and most of the band's time, computes inside the enqueue call. */
#define BLOCKING_NS 100000ull

static void finish(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t i = 0; i < session->pipeline.binding_count && !atomic_load(&session->runtime->tainted_count); i++)
        if (warmup->owns_mem[i]) {
            backend->ops->mem_destroy(backend, warmup->frame->mems[i]);
            warmup->owns_mem[i] = false;
        }
    warmup->finished = true; /* a copy that a device which was given up may still write to goes with the session */
}

void cox__engine_drop_warmup(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (warmup->owns_mem[i])
            cox__engine_drop_mem(session->runtime, warmup->frame->mems[i]);
}

/* The first frame's own buffers serve, since its bands write the same rows again; a binding that is read and written
 * gets a copy. */
static cox_status borrow_buffers(struct cox_session *session, const struct cox__frame *frame)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    memcpy(warmup->frame->mems, frame->mems, sizeof frame->mems);
    memcpy(warmup->frame->params, frame->params, sizeof frame->params);
    warmup->frame->index = frame->index;
    warmup->frame->submit_ns = frame->submit_ns;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (session->pipeline.bindings[i].access != COX_READ_WRITE)
            continue;
        size_t bytes = cox__binding_bytes(&session->pipeline, i);
        cox_status status = backend->ops->mem_create(backend, NULL, bytes, &warmup->frame->mems[i]);
        if (status)
            return status;
        warmup->owns_mem[i] = true;
        memcpy(backend->ops->mem_data(warmup->frame->mems[i]), backend->ops->mem_data(frame->mems[i]), bytes);
    }
    return COX_OK;
}

/* Note what the finished run showed and move on to the next run or device. */
static void learn_from_run(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__frame *frame = warmup->frame;
    struct cox__device *device = &session->devices[warmup->device];
    cox__frame_report(session, frame);
    frame->started = false;
    uint64_t wall = frame->end_ns - frame->start_ns;
    bool blocks = warmup->submit_ns > BLOCKING_NS && warmup->submit_ns > wall / 2;
    if (frame->status == COX_OK && warmup->run > 0) {
        device->blocks_in_submit = blocks;
        session->any_blocks |= device->blocks_in_submit;
        pthread_mutex_lock(&session->lock);
        /* What an earlier session measured may hold no longer. */
        if (!device->solo_ns || wall < device->solo_ns || (warmup->run == 1 && wall / 2 > device->solo_ns))
            device->solo_ns = wall ? wall : 1;
        pthread_mutex_unlock(&session->lock);
    }
    warmup->spent_ns = warmup->run == 0 ? 0 : warmup->spent_ns + wall;
    /* What an earlier session measured spares the timed runs; where the first one kept the thread busy, one of them
     * tells whether that was the compiler. */
    uint32_t runs = !session->profile.is_loaded || !device->solo_ns ? SOLO_RUNS : blocks ? 1 : 0;
    bool again = warmup->run < runs && warmup->spent_ns < SOLO_NS;
    if (frame->status == COX_OK && again) {
        warmup->run++;
    } else {
        warmup->device++;
        warmup->run = 0;
    }
}

static bool submit_run(struct cox_session *session, struct cox__frame *frame)
{
    bool progress = cox__queue_submit(session, frame, 0);
    return cox__queue_submit_blocking(session, frame, 0) || progress;
}

bool cox__warmup_step(struct cox_session *session, const struct cox__frame *first)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__frame *frame = warmup->frame;
    if (frame->started) {
        bool progress = submit_run(session, frame);
        if (frame->unfinished)
            return progress;
        learn_from_run(session);
    } else if (warmup->device == 0 && warmup->run == 0) {
        cox_status status = borrow_buffers(session, first);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "no warm-up: %s", cox_status_text(status));
            finish(session);
            return true;
        }
    }
    while (warmup->device < session->device_count && !cox__device_is_active(&session->devices[warmup->device]))
        warmup->device++;
    if (warmup->device == session->device_count) {
        finish(session);
        return true;
    }
    cox__frame_start(session, frame, COX__FRAME_WARMUP);
    frame->reason = COX_REASON_WARMUP;
    if (!cox__frame_add(session, frame, warmup->device, 0, session->pipeline.rows, 0))
        frame->status = COX_E_DEVICE_MEMORY;
    submit_run(session, frame);
    warmup->submit_ns = cox__engine_now(session) - frame->start_ns;
    return true;
}
