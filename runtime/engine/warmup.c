/* The warm-up: every device does a frame alone, first to compile, then to be timed. It runs before
 * a session's first frame, on that frame's buffers, or on its own buffers when cox_session_warm
 * asks for it.
 *
 * Owns struct cox__warmup, and the devices' `single_device_ns` and `blocks_in_submit`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "warmup.h"
#include "device.h"
#include "engine.h"
#include "frame.h"
#include "base/bounds.h"
#include "memory.h"
#include "queue.h"
#include "engine/failure/residency.h"
#include "transitions.h"

#include <string.h>

/* Limits of a device's timed runs, of which the shortest counts. It takes about 10 ms until the
 * workers of a CPU device are spread over the cores. */
#define SOLO_RUNS 12
#define SOLO_NS 40000000ull
/* A device that takes this long to submit to, and most of the band's time, computes inside the
 * enqueue call. */
#define BLOCKING_NS 100000ull

static void give_back_buffers(struct cox_runtime *runtime, struct cox__warmup *warmup)
{
    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++)
        if (warmup->owns_mem[i]) {
            cox__memory_let_go(runtime, warmup->frame->mems[i]);
            warmup->owns_mem[i] = false;
        }
}

static void publish(struct cox_session *session, bool over)
{
    pthread_mutex_lock(&session->lock);
    if (over && cox__device_any_active(&session->devices))
        cox__transition_warmth(&session->warmth, COX__SESSION_WARM);
    else if (over)
        cox__transition_warmth(&session->warmth, COX__SESSION_WARM_IN_VAIN);

    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock);
}

static void drop_given(struct cox_runtime *runtime, const struct cox__warmup *warmup)
{
    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++)
        if (warmup->given[i])
            cox__memory_let_go(runtime, warmup->given[i]);
}

static void finish(struct cox_session *session)
{
    give_back_buffers(session->runtime, &session->warmup);
    if (session->warmup.state == COX__WARMUP_BORROWED_ASKED)
        drop_given(session->runtime, &session->warmup);
    cox__transition_warmup(&session->warmup, COX__WARMUP_FINISHED);
    publish(session, true);
}

void cox__warmup_drop(struct cox_runtime *runtime, const struct cox__warmup *warmup)
{
    const bool has_given = warmup->state == COX__WARMUP_ASKED ||
                           warmup->state == COX__WARMUP_BORROWED_ASKED;

    for (uint32_t i = 0; i < warmup->frame->pipeline->binding_count; i++) {
        if (warmup->owns_mem[i])
            cox__memory_drop(runtime, warmup->frame->mems[i]);
        if (has_given && warmup->given[i])
            cox__memory_drop(runtime, warmup->given[i]);
    }
}

/* Use the first frame's buffers: its bands will write the same rows again. A binding that is read
 * and written gets a copy. */
static cox_status borrow_buffers(struct cox__backend *backend, struct cox__warmup *warmup,
                                 const struct cox__frame *first)
{
    const struct cox__pipeline *pipeline = first->pipeline;

    memcpy(warmup->frame->mems, first->mems, sizeof first->mems);
    memcpy(warmup->frame->params, first->params, sizeof first->params);
    warmup->frame->index = first->index;
    warmup->frame->submit_ns = first->submit_ns;
    cox__transition_warmup(warmup, COX__WARMUP_BORROWED);

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (pipeline->bindings[i].access != COX__READ_WRITE)
            continue;

        size_t bytes = pipeline->bytes[i];
        cox_status status = backend->ops->mem_create(backend, NULL, bytes, &warmup->frame->mems[i]);
        if (status)
            return status;

        warmup->owns_mem[i] = true;
        memcpy(backend->ops->mem_data(warmup->frame->mems[i]),
               backend->ops->mem_data(first->mems[i]), bytes);
    }

    return COX_OK;
}

/* Begin the runs, or continue them, on the memory that cox_session_warm gave. */
static void take_given(struct cox__warmup *warmup)
{
    const struct cox__pipeline *pipeline = warmup->frame->pipeline;

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        warmup->frame->mems[i] = warmup->given[i];
        warmup->owns_mem[i] = warmup->given[i] != NULL;
    }

    memcpy(warmup->frame->params, warmup->params, pipeline->params_bytes);
    cox__transition_warmup(warmup, COX__WARMUP_OWN);
}

bool cox__warmup_is_asked(const struct cox__warmup *warmup)
{
    const enum cox__warmup_state state = warmup->state;
    return state == COX__WARMUP_ASKED || state == COX__WARMUP_BORROWED_ASKED ||
           state == COX__WARMUP_OWN;
}

void cox__warmup_request(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;

    if (warmup->state == COX__WARMUP_FINISHED && session->warmup.used) { /* a frame came first */
        drop_given(session->runtime, &session->warmup);
        publish(session, true);
        return;
    }

    if (warmup->state == COX__WARMUP_BORROWED)
        cox__transition_warmup(warmup, COX__WARMUP_BORROWED_ASKED);
    else
        cox__transition_warmup(warmup, COX__WARMUP_ASKED);
}

/* How many timed runs the device needs in this pass. */
static uint32_t timed_runs(const struct cox_session *session,
                           const struct cox__device_pass *of_pass, bool blocks)
{
    if (session->devices.count == 1)
        return 0;
    if (!session->profile.is_loaded || !of_pass->single_device_ns)
        return SOLO_RUNS;

    /* The time comes from a device profile. If the first run kept the thread busy, another one
     * shows whether that was the compiler. */
    return blocks ? 1 : 0;
}

/* Note what the finished run showed and move on to the next run or device. */
static void learn_from_run(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__frame *frame = warmup->frame;
    struct cox__device *device = &session->devices.list[warmup->device];
    struct cox__device_pass *of_pass = &device->passes[warmup->pass];

    cox__frame_report(session, frame);
    frame->started = false;

    uint64_t wall = frame->end_ns - frame->start_ns;
    bool blocks = warmup->submit_ns > BLOCKING_NS && warmup->submit_ns > wall / 2;

    if (frame->status == COX_OK && warmup->run > 0) {
        device->blocks_in_submit = blocks || (device->blocks_in_submit && warmup->pass > 0);
        session->devices.any_blocks |= device->blocks_in_submit;
        pthread_mutex_lock(&session->lock);

        /* A time from an earlier session may be outdated. */
        if (!of_pass->single_device_ns || wall < of_pass->single_device_ns ||
            (warmup->run == 1 && wall / 2 > of_pass->single_device_ns))
            of_pass->single_device_ns = cox__max_u64(wall, 1);

        pthread_mutex_unlock(&session->lock);
    }

    if (warmup->run == 0)
        warmup->spent_ns = 0;
    else
        warmup->spent_ns += wall;

    const uint32_t runs = timed_runs(session, of_pass, blocks);
    const bool again = warmup->run < runs && warmup->spent_ns < SOLO_NS;
    if (frame->status == COX_OK && again) {
        warmup->run++;
        return;
    }

    warmup->run = 0;
    if (frame->status == COX_OK && ++warmup->pass < session->pipeline.pass_count)
        return;

    warmup->pass = 0;
    warmup->device++;
    publish(session, false);
}

static bool submit_run(struct cox_session *session, struct cox__frame *frame)
{
    bool progress = cox__queue_submit(session, frame, 0);
    return cox__queue_submit_blocking(session, frame, 0) || progress;
}

bool cox__warmup_pause(struct cox_session *session)
{
    const bool asked = session->warmup.state == COX__WARMUP_BORROWED_ASKED;
    if (session->warmup.state != COX__WARMUP_BORROWED && !asked)
        return true;
    if (session->warmup.frame->started) {
        submit_run(session, session->warmup.frame);
        if (session->warmup.frame->unfinished)
            return false;
        learn_from_run(session);
    }

    give_back_buffers(session->runtime, &session->warmup);
    cox__transition_warmup(&session->warmup, asked ? COX__WARMUP_ASKED : COX__WARMUP_WAITING);

    return true;
}

/* Begin the next run: one pass, whole, on the current device. */
static void begin_run(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__frame *frame = warmup->frame;
    const uint32_t rows = session->pipeline.passes[warmup->pass].rows;

    cox__frame_start(session->runtime, frame, COX__FRAME_WARMUP);
    cox__frame_begin_pass(session->runtime, frame, warmup->pass);
    frame->passes[warmup->pass].reason = COX_REASON_WARMUP;

    cox__residency_start_warmup(&session->devices, frame, warmup->device);
    if (!cox__frame_add(&session->devices, frame, warmup->device, 0, rows, 0))
        frame->status = COX_E_DEVICE_MEMORY;

    submit_run(session, frame);
    warmup->submit_ns = cox__engine_now(session->runtime) - frame->start_ns;
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
    } else if (warmup->state == COX__WARMUP_ASKED) {
        take_given(warmup);
    } else if (warmup->state == COX__WARMUP_WAITING) {
        cox_status status = borrow_buffers(session->runtime->backend, warmup, first);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "no warm-up: %s",
                     cox_status_text(status));
            finish(session);
            return true;
        }
    }

    /* Skip devices that are not active. */
    while (warmup->device < session->devices.count &&
           !cox__device_is_active(&session->devices.list[warmup->device])) {
        warmup->device++;
        warmup->pass = warmup->run = 0;
    }

    if (warmup->device == session->devices.count) {
        finish(session);
        return true;
    }

    begin_run(session);

    return true;
}
