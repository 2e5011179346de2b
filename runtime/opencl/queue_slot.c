/* Queue slots: what a band under way needs, and for how many rows there is device memory.
 *
 * A slot owns its device memory, its events and the partial results. It is made with its instance; while a band is
 * under way it is used with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "band_object.h"

#include <stdlib.h>

/* A piece below this is not worth its enqueueing: three commands cost 45 us on an NVIDIA H200, 8 MB take 145 us to
 * copy. */
#define PIECE_BYTES_MIN (8u << 20)

/* Most rows of one band that the device can hold in single allocations. */
static uint32_t rows_bound(const struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    uint64_t most = instance->device->info.max_alloc_bytes, bound = pipeline->rows;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (cox__binding_bytes(pipeline, i) <= most)
            continue;
        if (!cox__by_rows(binding))
            return 0;
        uint64_t fit = most / binding->pitch_bytes;
        uint64_t extra = binding->contract == COX_HALO ? 2ull * binding->halo_rows + pipeline->granule : 0;
        uint64_t rows = fit > extra ? (fit - extra) * binding->row_divisor : 0;
        bound = rows < bound ? rows : bound;
    }
    return bound == pipeline->rows ? (uint32_t)bound : (uint32_t)(bound - bound % pipeline->granule);
}

static size_t staged_bytes(const struct cox__pipeline *pipeline, uint32_t index, uint32_t rows)
{
    const struct cox_binding *binding = &pipeline->bindings[index];
    if (!cox__by_rows(binding))
        return binding->bytes;
    size_t count = rows / binding->row_divisor + (rows % binding->row_divisor != 0);
    if (binding->contract == COX_HALO)
        count += 2 * (size_t)binding->halo_rows + pipeline->granule;
    size_t all = cox__binding_bytes(pipeline, index);
    return count < all / binding->pitch_bytes ? count * binding->pitch_bytes : all;
}

static void free_slot_mems(struct cox__cl_slot *slot)
{
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++) {
        for (uint32_t p = 0; p < COX__CL_PIECES_MAX; p++)
            if (slot->pieces[i][p]) {
                clReleaseMemObject(slot->pieces[i][p]);
                slot->pieces[i][p] = NULL;
            }
        if (slot->mems[i]) {
            clReleaseMemObject(slot->mems[i]);
            slot->mems[i] = NULL;
        }
    }
}

static cl_int make_pieces(struct cox__instance *instance, struct cox__cl_slot *slot, uint32_t index, uint32_t max_rows)
{
    const struct cox_binding *binding = &instance->pipeline->bindings[index];
    size_t all = staged_bytes(instance->pipeline, index, max_rows);
    uint32_t divisor = binding->row_divisor;
    size_t step = ((size_t)instance->piece_rows + divisor - 1) / divisor * binding->pitch_bytes;
    cl_int code = CL_SUCCESS;
    for (uint32_t p = 0; p < COX__CL_PIECES_MAX && code == CL_SUCCESS && p * step < all; p++) {
        const cl_buffer_region region = {.origin = p * step, .size = all - p * step < step ? all - p * step : step};
        slot->pieces[index][p] = clCreateSubBuffer(slot->mems[index], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    }
    return code;
}

/* Device memory of one slot, written once: some drivers allocate at first use, and a frame under way is the wrong time
 * to find out that the memory does not fit. */
static cl_int make_slot_mems(struct cox__instance *instance, struct cox__cl_slot *slot, uint32_t max_rows)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    const cl_uint zero = 0;
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < pipeline->binding_count && code == CL_SUCCESS; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (!instance->staged && binding->contract != COX_REDUCE)
            continue;
        cl_mem_flags flags = binding->access == COX_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        size_t bytes = (staged_bytes(pipeline, i, max_rows) + 3) / 4 * 4;
        slot->mems[i] = clCreateBuffer(instance->context, flags, bytes, NULL, &code);
        if (code)
            slot->mems[i] = NULL;
        else
            code = clEnqueueFillBuffer(instance->queues[COX__CL_QUEUE_COMPUTE], slot->mems[i], &zero, sizeof zero, 0,
                                       sizeof zero, 0, NULL, NULL);
        if (code == CL_SUCCESS && instance->staged && binding->contract == COX_ROWS)
            code = make_pieces(instance, slot, i, max_rows);
    }
    /* The fill commands end before their buffers are released. */
    const cl_int end = cox__cl_drain(instance->queues[COX__CL_QUEUE_COMPUTE], instance->shared, COX__CL_TIMEOUT_NS);
    return code == CL_SUCCESS || end == COX__CL_NOT_IN_TIME ? end : code;
}

static size_t frame_bytes(const struct cox__pipeline *pipeline)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        bytes += cox__by_rows(&pipeline->bindings[i]) ? cox__binding_bytes(pipeline, i) : 0;
    return bytes;
}

/* Rows of a piece: COX__CL_PIECES_MAX pieces for the largest band, unless they would be too small. */
static uint32_t choose_piece_rows(const struct cox__pipeline *pipeline, uint32_t max_rows)
{
    uint64_t rows = (max_rows + COX__CL_PIECES_MAX - 1) / COX__CL_PIECES_MAX;
    size_t per_row = frame_bytes(pipeline) / pipeline->rows + 1;
    if (rows * per_row < PIECE_BYTES_MIN)
        rows = PIECE_BYTES_MIN / per_row + 1;
    rows = (rows + pipeline->granule - 1) / pipeline->granule * pipeline->granule;
    return rows < max_rows ? (uint32_t)rows : max_rows;
}

cox_status cox__cl_slots_allocate(struct cox__instance *instance, uint32_t *max_rows)
{
    uint32_t granule = instance->pipeline->granule;
    for (uint32_t rows = rows_bound(instance); rows >= granule || rows == instance->pipeline->rows;) {
        instance->piece_rows = instance->staged ? choose_piece_rows(instance->pipeline, rows) : rows;
        cl_int code = CL_SUCCESS;
        for (uint32_t l = 0; l < instance->slot_count && code == CL_SUCCESS; l++)
            code = make_slot_mems(instance, &instance->slots[l], rows);
        if (code == CL_SUCCESS) {
            *max_rows = rows;
            return COX_OK;
        }
        if (code == COX__CL_NOT_IN_TIME) {
            cox__log(instance->backend->log, COX_LOG_WARN, "%s does not answer", instance->device->info.name);
            instance->hangs = true;
            return COX_E_DEVICE_LOST;
        }
        for (uint32_t l = 0; l < instance->slot_count; l++)
            free_slot_mems(&instance->slots[l]);
        if (!instance->staged)
            return cox__cl_instance_check(instance, code, "clCreateBuffer");
        cox__log(instance->backend->log, COX_LOG_INFO, "%s: bands of %u rows do not fit (%s); trying half",
                 instance->device->info.name, rows, cox__cl_error_name(code));
        rows = rows / 2 / granule * granule;
        if (!rows)
            break;
    }
    cox__log(instance->backend->log, COX_LOG_WARN, "%s: too little memory for this frame's shape",
             instance->device->info.name);
    return COX_E_DEVICE_MEMORY;
}

cox_status cox__cl_slot_make(struct cox__instance *instance, struct cox__cl_slot *slot)
{
    slot->events = calloc(instance->event_max, sizeof *slot->events);
    slot->kinds = calloc(instance->event_max, 1);
    if (!slot->events || !slot->kinds)
        return COX_E_NOMEM;
    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++)
        if (instance->pipeline->bindings[i].contract == COX_REDUCE &&
            !(slot->partials[i] = calloc(1, instance->pipeline->bindings[i].bytes)))
            return COX_E_NOMEM;
    return COX_OK;
}

void cox__cl_slot_clear(struct cox__cl_slot *slot)
{
    cox__cl_callback_disarm(slot->callback);
    free_slot_mems(slot);
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
        free(slot->partials[i]);
    free(slot->events);
    free(slot->kinds);
}

void cox__cl_slot_abandon(struct cox__cl_slot *slot)
{
    cox__cl_callback_disarm(slot->callback);
    slot->callback = NULL;
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
        if (slot->objects[i]) {
            cox__cl_object_put(slot->objects[i]);
            slot->objects[i] = NULL;
        }
}

cox_status cox__cl_slot_enqueued(struct cox__instance *instance, struct cox__cl_slot *slot, enum cox__cl_command kind,
                                 const struct cox__driver_call *call, cl_int code, cl_event event, const char *name)
{
    const bool returned = cox__driver_call_end(call);
    slot->enqueued_ns[0] = slot->enqueued_ns[1];
    slot->enqueued_ns[1] = cox__clock_ns();
    /* Before this thread leaves: without the event the end of the command could not be learnt. */
    if (code == CL_SUCCESS) {
        slot->kinds[slot->event_count] = (unsigned char)kind;
        slot->events[slot->event_count++] = event;
    }
    if (!returned)
        cox__driver_call_abandon(call);
    return cox__cl_instance_check(instance, code, name);
}

void cox__cl_slot_end(const struct cox__instance *instance, struct cox__cl_slot *slot)
{
    cox__cl_slot_abandon(slot);
    while (slot->event_count) {
        cl_event event = slot->events[--slot->event_count];
        const struct cox__driver_call call = cox__cl_call(instance);
        clReleaseEvent(event);
        cox__cl_returned(&call);
    }
    slot->failed = false;
}
