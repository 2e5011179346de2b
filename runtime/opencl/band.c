/* How a band becomes commands.
 *
 * Shared and mapped mode: one in-order queue. The band objects (band_object.h) are mapped while the application owns
 * the memory; a band unmaps them, runs its kernels and maps them again. The last command's event stands for the band.
 *
 * Staged mode: three in-order queues on the device's own memory, for copying in, computing, copying out. The kernels
 * wait for the copies in and the copies out for the kernels. A band that is alone on its device is cut into pieces, so
 * that the copies of one overlap the kernels of another; else the bands overlap each other, and each is one piece:
 * every command costs the scheduler thread 6 to 15 us on an NVIDIA H200. The wait lists stay within one device.
 *
 * REDUCE bindings live in a small device buffer per queue slot in every mode: filled with zeros before, read
 * afterwards.
 *
 * All functions run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "band_object.h"

static cox_status clear_partials(struct cox__instance *instance, struct cox__cl_slot *slot, cl_mem *mems)
{
    const cl_uchar zero = 0;
    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++) {
        const struct cox_binding *binding = &instance->pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        mems[i] = slot->mems[i];
        cl_event event; /* kept: no other command's event tells if this one fails */
        const struct cox__driver_call call = cox__cl_call(instance);
        cl_int code = clEnqueueFillBuffer(instance->queues[COX__CL_QUEUE_COMPUTE], mems[i], &zero, 1, 0, binding->bytes,
                                          0, NULL, &event);
        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code, event,
                                                        "clEnqueueFillBuffer");
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status read_partials(struct cox__instance *instance, struct cox__cl_slot *slot, cl_command_queue queue)
{
    bool across = queue != instance->queues[COX__CL_QUEUE_COMPUTE];
    cl_event after = cox__cl_slot_newest(slot);
    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++) {
        const struct cox_binding *binding = &instance->pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        cl_event event;
        const struct cox__driver_call call = cox__cl_call(instance);
        cl_int code = clEnqueueReadBuffer(queue, slot->mems[i], CL_FALSE, 0, binding->bytes, slot->partials[i],
                                          across ? 1 : 0, across ? &after : NULL, &event);
        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_COPY_OUT, &call, code, event,
                                                        "clEnqueueReadBuffer");
        if (status)
            return status;
    }
    return COX_OK;
}

/* Where a buffer row begins in a binding's memory. */
static size_t row_offset(const struct cox_binding *binding, uint32_t row)
{
    return cox__by_rows(binding) ? (size_t)row * binding->pitch_bytes : 0;
}

/* ---- shared and mapped mode ---- */

static cox_status unmap_objects(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot,
                                cl_mem *mems, uint32_t *origins)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        uint32_t first = 0, count = 0;
        if (binding->contract == COX_REDUCE)
            continue;
        if (cox__by_rows(binding))
            cox__binding_rows(pipeline, i, job->first_row, job->rows, &first, &count);
        size_t bytes = cox__by_rows(binding) ? count * binding->pitch_bytes : binding->bytes;
        const enum cox_access access = job->preserve && binding->access == COX_WRITE ? COX_READ_WRITE : binding->access;
        struct cox__cl_object *object = cox__cl_object_get(instance->backend, job->mems[i], instance->device_index,
                                                           access, binding->contract == COX_ROWS,
                                                           row_offset(binding, first), bytes, instance->shared);
        if (!object)
            return COX_E_DEVICE_MEMORY;
        slot->objects[i] = object;
        mems[i] = object->mem;
        origins[i] = first;
    }
    return COX_OK;
}

static cox_status map_objects(struct cox__instance *instance, struct cox__cl_slot *slot)
{
    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++) {
        struct cox__cl_object *object = slot->objects[i];
        if (!object)
            continue;
        cl_event event;
        cl_int code;
        const struct cox__driver_call call = cox__cl_call(instance);
        void *mapped = cox__cl_object_map(object, &event, &code);
        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_COPY_OUT, &call, code, event,
                                                        "clEnqueueMapBuffer");
        if (status)
            return status;
        object->mapped = mapped;
    }
    return COX_OK;
}

static cox_status enqueue_direct(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot)
{
    cl_mem mems[COX_BINDINGS_MAX] = {0};
    uint32_t origins[COX_BINDINGS_MAX] = {0};
    const struct cox__cl_launch launch = {
        .job = job, .slot = slot, .first_row = job->first_row, .rows = job->rows, .mems = mems, .origins = origins};
    cox_status status = unmap_objects(instance, job, slot, mems, origins);
    if (status == COX_OK)
        status = clear_partials(instance, slot, mems);
    if (status == COX_OK)
        status = cox__cl_stages_run(instance, &launch, NULL);
    if (status == COX_OK)
        status = map_objects(instance, slot);
    if (status == COX_OK)
        status = read_partials(instance, slot, instance->queues[COX__CL_QUEUE_COMPUTE]);
    return status;
}

/* ---- staged mode ---- */

/* Rows of a binding's host memory to or from the slot's device memory, which begins at buffer row `origin`. */
static cox_status copy(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot, uint32_t index,
                       bool in, uint32_t origin, uint32_t first, uint32_t count, cl_event after)
{
    const struct cox_binding *binding = &instance->pipeline->bindings[index];
    size_t bytes = cox__by_rows(binding) ? count * binding->pitch_bytes : binding->bytes;
    size_t there = row_offset(binding, first - origin);
    char *here = (char *)job->mems[index]->data + row_offset(binding, first);
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    cl_int code = in ? clEnqueueWriteBuffer(instance->queues[COX__CL_QUEUE_IN], slot->mems[index], CL_FALSE, there,
                                            bytes, here, 0, NULL, &event)
                     : clEnqueueReadBuffer(instance->queues[COX__CL_QUEUE_OUT], slot->mems[index], CL_FALSE, there,
                                           bytes, here, after ? 1 : 0, after ? &after : NULL, &event);
    return cox__cl_slot_enqueued(instance, slot, in ? COX__CL_COPY_IN : COX__CL_COPY_OUT, &call, code, event,
                                 in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
}

/* Where a band's memory lies while it is enqueued piece by piece. */
struct staging {
    cl_mem mems[COX_BINDINGS_MAX];
    uint32_t origins[COX_BINDINGS_MAX];      /* of the piece, for the kernel */
    uint32_t band_origins[COX_BINDINGS_MAX]; /* of the band: where the slot's memory begins */
    uint32_t band_counts[COX_BINDINGS_MAX];  /* buffer rows that the band touches */
    bool cut;                                /* into pieces */
};

/* Copy in what a piece needs: its own rows; with the first piece also the buffers that are not cut into pieces (HALO,
 * WHOLE), since a kernel reads them as a whole. */
static cox_status copy_piece_in(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot,
                                struct staging *state, uint32_t first_row, uint32_t rows, uint32_t piece)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        uint32_t first = state->band_origins[i], count = state->band_counts[i];
        bool cut = state->cut && binding->contract == COX_ROWS;
        if (binding->contract == COX_REDUCE)
            continue;
        if (cut)
            cox__binding_rows(pipeline, i, first_row, rows, &first, &count);
        state->mems[i] = cut ? slot->pieces[i][piece] : slot->mems[i];
        state->origins[i] = first;
        if ((binding->access == COX_WRITE && !job->preserve) || (!cut && piece > 0))
            continue;
        cox_status status = copy(instance, job, slot, i, true, state->band_origins[i], first, count, NULL);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status copy_piece_out(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot,
                                 const struct staging *state, uint32_t first_row, uint32_t rows)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    cl_event after = cox__cl_slot_newest(slot);
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (pipeline->bindings[i].contract != COX_ROWS || pipeline->bindings[i].access == COX_READ)
            continue;
        uint32_t first, count;
        cox__binding_rows(pipeline, i, first_row, rows, &first, &count);
        cox_status status = copy(instance, job, slot, i, false, state->band_origins[i], first, count, after);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status enqueue_staged(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot)
{
    const uint32_t piece_rows = job->alone ? instance->piece_rows : job->rows;
    struct staging state = {.cut = piece_rows < job->rows};
    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++)
        if (cox__by_rows(&instance->pipeline->bindings[i]))
            cox__binding_rows(instance->pipeline, i, job->first_row, job->rows, &state.band_origins[i],
                              &state.band_counts[i]);
    cox_status status = clear_partials(instance, slot, state.mems);
    for (uint32_t done = 0, piece = 0; status == COX_OK && done < job->rows; piece++) {
        uint32_t rows = job->rows - done < piece_rows ? job->rows - done : piece_rows;
        const struct cox__cl_launch launch = {.job = job,
                                              .slot = slot,
                                              .first_row = job->first_row + done,
                                              .rows = rows,
                                              .mems = state.mems,
                                              .origins = state.origins};
        uint32_t before = slot->event_count;
        status = copy_piece_in(instance, job, slot, &state, launch.first_row, rows, piece);
        if (status == COX_OK)
            status = cox__cl_stages_run(instance, &launch,
                                        slot->event_count > before ? cox__cl_slot_newest(slot) : NULL);
        if (status == COX_OK)
            status = copy_piece_out(instance, job, slot, &state, launch.first_row, rows);
        done += rows;
    }
    return status == COX_OK ? read_partials(instance, slot, instance->queues[COX__CL_QUEUE_OUT]) : status;
}

cox_status cox__cl_band_enqueue(struct cox__instance *instance, struct cox__job *job, struct cox__cl_slot *slot)
{
    return instance->staged ? enqueue_staged(instance, job, slot) : enqueue_direct(instance, job, slot);
}
