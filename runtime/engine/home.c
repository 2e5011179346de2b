/* SPDX-License-Identifier: Apache-2.0 */
#include "home.h"
#include "binding.h"
#include "device.h"
#include "frame.h"
#include "order.h"
#include "engine/failure/residency.h"

bool cox__home_find(const struct cox_runtime *runtime, const struct cox__mem *mem,
                    struct cox__mem_home *home)
{
    return mem && runtime->backend->ops->mem_home(mem, home);
}

/* The session's device with this number in the runtime, or the number of devices. */
static uint32_t device_of(const struct cox__devices *devices, uint32_t number)
{
    uint32_t d = 0;
    while (d < devices->count && devices->list[d].device != number)
        d++;

    return d;
}

/* ---- submission ---- */

static bool is_merged(const struct cox__pipeline *pipeline, uint32_t binding)
{
    bool merged = false;
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        merged |= pipeline->passes[p].bindings[binding].row_access == COX__REDUCE;

    return merged;
}

/* Why a buffer on a device cannot be used for the binding; NULL = it can. */
static const char *why_not(const struct cox_session *session, uint32_t binding)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    if (is_merged(pipeline, binding))
        return "it is merged";
    if (pipeline->images[binding])
        return "kernels take it as an image";
    if (pipeline->stays >> binding & 1)
        return "it stays on devices (cox_buffer_layout.stays)";
    if (session->check)
        return "the session checks its kernels (cox_session_params.check)";

    return NULL;
}

cox_status cox__home_check(const struct cox_session *session, uint32_t binding,
                           const cox_buffer *buffer)
{
    const struct cox_runtime *runtime = session->runtime;
    const char *name = session->pipeline.bindings[binding].name;
    struct cox__mem *mem = atomic_load(&buffer->mem);
    struct cox__mem_home home;
    if (!cox__home_find(runtime, mem, &home))
        return COX_OK;

    const char *why = why_not(session, binding);
    if (why) {
        cox__log(&runtime->log, COX_LOG_ERROR, "buffer %u (%s) cannot lie on a device: %s", binding,
                 name, why);
        return COX_E_UNSUPPORTED;
    }

    if (device_of(&session->devices, home.device) == session->devices.count) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "buffer %u (%s) lies on device %u, which takes no part in the session", binding,
                 name, home.device);
        return COX_E_INVALID;
    }

    if (session->devices.count == 1)
        return COX_OK;
    return runtime->backend->ops->mem_add_host(runtime->backend, mem);
}

/* ---- the start of a frame ---- */

bool cox__home_is_joining(const struct cox_session *session, const struct cox__frame *frame)
{
    struct cox__mem_home home;
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!frame->buffers[i] || !cox__home_find(session->runtime, frame->mems[i], &home))
            continue;

        const uint32_t d = device_of(&session->devices, home.device);
        if (d < session->devices.count && session->devices.list[d].state == COX_DEVICE_JOINING)
            return true;
    }

    return false;
}

/* Whether the session can use the frame's buffer where it lies. */
static bool is_usable(const struct cox_session *session, const struct cox__frame *frame,
                      uint32_t binding)
{
    struct cox__backend *backend = session->runtime->backend;
    const uint32_t home = frame->held.home[binding];
    if (home == session->devices.count)
        return false;

    const struct cox__device *device = &session->devices.list[home];

    return cox__device_is_active(device) && device->queue && !device->queue->stuck &&
           backend->ops->instance_reaches(backend, device->queue->instance, frame->mems[binding]);
}

/* End a frame with an error, unless it has one. */
static void lose(const struct cox_session *session, struct cox__frame *frame, uint32_t binding)
{
    if (frame->status)
        return;

    frame->status = COX_E_DEVICE_LOST;
    cox__log(&session->runtime->log, COX_LOG_ERROR,
             "frame %llu: the device on which buffer %u (%s) lies was lost",
             (unsigned long long)frame->index, binding, frame->pipeline->bindings[binding].name);
}

void cox__home_open(struct cox_session *session, struct cox__frame *frame)
{
    struct cox__held *held = &frame->held;
    struct cox__mem_home home;

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!frame->buffers[i] || !cox__home_find(session->runtime, frame->mems[i], &home))
            continue;

        held->home[i] = device_of(&session->devices, home.device);
        if (!is_usable(session, frame, i)) {
            held->homed = held->to_acquire = 0;
            lose(session, frame, i);
            return;
        }

        held->homed |= UINT32_C(1) << i;
        held->to_acquire |= (uint32_t)home.acquired << i;
    }
}

void cox__home_forget(const struct cox_session *session, uint32_t device)
{
    for (uint32_t f = 0; f < session->order.count; f++) {
        struct cox__frame *frame = cox__order_at(&session->order, f);
        for (uint32_t i = 0; frame->started && i < frame->pipeline->binding_count; i++)
            if (frame->held.homed >> i & 1 && frame->held.home[i] == device)
                lose(session, frame, i);
    }
}

static void add_transfer(struct cox__frame *frame, enum cox__band_kind kind, uint32_t binding,
                         struct cox__row_range rows)
{
    if (!cox__frame_add_transfer(frame, kind, frame->held.home[binding], binding, rows) &&
        frame->status == COX_OK)
        frame->status = COX_E_NOMEM;
}

/* Acquire or release those of the buffers whose bits are set. */
static void add_for_each(struct cox__frame *frame, enum cox__band_kind kind, uint32_t bindings)
{
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++)
        if (bindings >> i & 1)
            add_transfer(frame, kind, i, (struct cox__row_range){0, 1});
}

void cox__home_acquire(struct cox__frame *frame)
{
    add_for_each(frame, COX__BAND_ACQUIRE, frame->held.to_acquire);
}

/* ---- the end of a frame ---- */

/* Push the rows that other devices wrote. */
static void push(struct cox_session *session, struct cox__frame *frame, uint32_t binding)
{
    if (frame->pipeline->bindings[binding].access == COX__READ || frame->status)
        return;
    if (!is_usable(session, frame, binding)) {
        lose(session, frame, binding);
        return;
    }

    struct cox__row_range rows = {0, 0};
    while (cox__residency_next_away(frame, binding, &rows))
        add_transfer(frame, COX__BAND_PUSH, binding, rows);
}

bool cox__home_hand_back(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t before = frame->band_count;
    if (!frame->held.homed)
        return false;

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++)
        if (frame->held.homed >> i & 1)
            push(session, frame, i);
    if (frame->band_count > before)
        return true;

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++)
        if (frame->held.to_release >> i & 1 && !is_usable(session, frame, i))
            frame->held.to_release &= ~(UINT32_C(1) << i);
    add_for_each(frame, COX__BAND_RELEASE, frame->held.to_release);

    return frame->band_count > before;
}
