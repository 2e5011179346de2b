/* How a band becomes commands.
 *
 * Shared and mapped mode: one in-order queue. The band objects (object.h) are mapped while the
 * application owns the memory. A band unmaps them, runs its kernels and maps them again. The event
 * of the last command is the event of the band.
 *
 * Staged mode: three in-order queues on the device's own memory, for copying in, computing, copying
 * out. The kernels wait for the copies in, and the copies out for the kernels. A band that is alone
 * on its device is cut into pieces, so that the copies of one piece overlap the kernels of another.
 * The engine says how many, because every command costs the scheduler thread 2 to 8 us on an NVIDIA
 * H200. Otherwise the bands overlap each other, and each is one piece. A band that copies few rows
 * uses the compute queue alone: a wait between queues would take longer than the copies. The wait
 * lists stay within one device. The engine decides which rows to copy of those that stay on the
 * device from pass to pass (frame_set.c).
 *
 * A buffer that lies on the device (device_buffer.c) is used in place. That needs kernels that can
 * use memory of all rows, or a band that begins at row 0. Otherwise the device copies the rows to
 * the slot's memory and back.
 *
 * If kernels take a buffer from row 0 on (cox_pass.absolute), mapped devices that are no CPUs copy
 * too, on their only queue. Not every driver maps a part of a buffer.
 *
 * In every mode, images (image.c) wrap the host's memory, or are written from it before the
 * kernels.
 *
 * In every mode, REDUCE bindings live in a small device buffer per queue slot. It is filled with
 * zeros before the kernels and read after them.
 *
 * A kernel may leave elements of its rows alone (enum cox__coverage). In shared and mapped mode
 * they keep their value: the band object sends the device what the memory holds. Staged memory
 * holds rows of earlier frames, perhaps of other buffers. So the rows that a band writes are copied
 * in (COVERS_SOME) or filled with zeros (COVERS_UNKNOWN) before its kernels. The fill is the first
 * command on the compute queue, and is enqueued while rows are copied in. Scratch is not filled: it
 * holds nothing but what earlier frames of this session left there.
 *
 * All functions run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "object.h"

/* Fill part of a device buffer with zeros before the band's kernels. The event is kept: no other
 * command's event reports a failure of this one. */
static cox_status clear(struct cox__instance *instance, struct cox__cl_slot *slot, cl_mem mem,
                        size_t offset, size_t bytes)
{
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = cox__cl_device_memory_clear(instance, mem, offset, bytes, &event);

    return cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code, event,
                                 "clEnqueueFillBuffer");
}

static cox_status clear_partials(struct cox__instance *instance, const struct cox__pass *pass,
                                 struct cox__cl_slot *slot, cl_mem *mems)
{
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (binding->row_access != COX__REDUCE)
            continue;

        mems[i] = slot->mems[i];
        const cox_status status = clear(instance, slot, mems[i], 0, binding->bytes);
        if (status)
            return status;
    }

    return COX_OK;
}

static cox_status read_partials(struct cox__instance *instance, const struct cox__pass *pass,
                                struct cox__cl_slot *slot, cl_command_queue queue)
{
    cl_event after = NULL;

    /* An in-order queue needs no wait list for its own commands. */
    if (queue != instance->queues[COX__CL_QUEUE_COMPUTE])
        after = cox__cl_slot_newest(slot);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (binding->row_access != COX__REDUCE)
            continue;

        cl_event event;
        const struct cox__driver_call call = cox__cl_call(instance);
        cl_int code = clEnqueueReadBuffer(queue, slot->mems[i], CL_FALSE, 0, binding->bytes,
                                          slot->partials[i], after != NULL,
                                          cox__cl_wait_list(&after), &event);

        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_COPY_OUT, &call,
                                                        code, event, "clEnqueueReadBuffer");
        if (status)
            return status;
    }

    return COX_OK;
}

/* Where a buffer row begins in a binding's memory. */
static size_t row_offset(const struct cox__binding *binding, uint32_t row)
{
    if (!cox__by_rows(binding))
        return 0;
    return cox__row_offset(binding, row);
}

/* How many bytes `count` rows of a binding need; a binding without rows is taken as a whole. */
static size_t rows_bytes(const struct cox__binding *binding, uint32_t count)
{
    if (!cox__by_rows(binding))
        return binding->bytes;
    return count * binding->pitch_bytes;
}

/* Make the slot's image of the band's rows of a binding: wrap the rows or write them to it. */
static cox_status open_image(struct cox__instance *instance, const struct cox__job *job,
                             struct cox__cl_slot *slot, uint32_t index)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const struct cox__binding *binding = &pass->bindings[index];
    uint32_t first = 0, count = (uint32_t)(binding->bytes / binding->pitch_bytes);

    if (cox__by_rows(binding))
        cox__pipeline_binding_rows(pass, index, job->first_row, job->rows, &first, &count);

    char *rows = (char *)job->mems[index]->data + row_offset(binding, first);
    if (cox__cl_wraps_images(instance))
        return cox__cl_image_wrap(instance, slot, index, count, rows);

    const cox_status status = cox__cl_image_fit(instance, slot, index, count);
    if (status)
        return status;

    cl_command_queue queue = instance->queues[COX__CL_QUEUE_COMPUTE];
    if (instance->staged)
        queue = instance->queues[COX__CL_QUEUE_IN];

    const size_t origin[3] = {0}, region[3] = {instance->pipeline->images[index]->bytes, count, 1};
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = clEnqueueWriteImage(queue, slot->images[index].mem, CL_FALSE, origin,
                                            region, binding->pitch_bytes, 0, rows, 0, NULL, &event);

    return cox__cl_slot_enqueued(instance, slot, COX__CL_COPY_IN, &call, code, event,
                                 "clEnqueueWriteImage");
}

static cox_status open_images(struct cox__instance *instance, const struct cox__job *job,
                              struct cox__cl_slot *slot)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    cox_status status = COX_OK;

    for (uint32_t i = 0; i < pass->binding_count && status == COX_OK; i++)
        if (pass->images >> i & 1)
            status = open_image(instance, job, slot, i);
    return status;
}

/* ---- copies ---- */

/* What a copy between the host and a device moves: `count` rows of a binding, or all of a
 * binding that is not by rows. */
struct copy {
    const struct cox__binding *binding;
    uint32_t index;
    bool in; /* to the device */
    cl_mem mem;
    bool from_start; /* `mem` is laid out like the host's memory */
    uint32_t at;     /* else the row of `mem` at which the copy begins */
    uint32_t first;
    uint32_t count;
    cl_event after; /* a copy out waits for it; NULL = none */
};

/* Where the rows of a copy begin on the device. */
static size_t offset_there(const struct copy *copy)
{
    if (copy->from_start || !cox__by_rows(copy->binding))
        return row_offset(copy->binding, copy->first);
    return rows_bytes(copy->binding, copy->at);
}

static cl_int copy_bytes(cl_command_queue queue, char *host, const struct copy *copy,
                         cl_event *event)
{
    const size_t here = row_offset(copy->binding, copy->first), there = offset_there(copy);
    const size_t bytes = rows_bytes(copy->binding, copy->count);

    if (copy->in)
        return clEnqueueWriteBuffer(queue, copy->mem, CL_FALSE, there, bytes, host + here, 0, NULL,
                                    event);
    return clEnqueueReadBuffer(queue, copy->mem, CL_FALSE, there, bytes, host + here,
                               copy->after != NULL, cox__cl_wait_list(&copy->after), event);
}

/* Rows with gaps between them, which are not the frame's. */
static cl_int copy_rectangle(cl_command_queue queue, char *host, const struct copy *copy,
                             cl_event *event)
{
    const size_t pitch = copy->binding->pitch_bytes;
    const size_t here[3] = {0, row_offset(copy->binding, copy->first) / pitch, 0};
    const size_t there[3] = {0, offset_there(copy) / pitch, 0};
    const size_t region[3] = {cox__row_bytes(copy->binding), copy->count, 1};

    if (copy->in)
        return clEnqueueWriteBufferRect(queue, copy->mem, CL_FALSE, there, here, region, pitch, 0,
                                        pitch, 0, host, 0, NULL, event);
    return clEnqueueReadBufferRect(queue, copy->mem, CL_FALSE, there, here, region, pitch, 0, pitch,
                                   0, host, copy->after != NULL, cox__cl_wait_list(&copy->after),
                                   event);
}

static cox_status enqueue_copy(struct cox__instance *instance, const struct cox__job *job,
                               struct cox__cl_slot *slot, const struct copy *copy)
{
    char *host = job->mems[copy->index]->data;
    const bool gaps = cox__has_gaps(copy->binding);
    enum cox__cl_command kind = COX__CL_COPY_OUT;
    const char *name = gaps ? "clEnqueueReadBufferRect" : "clEnqueueReadBuffer";
    if (copy->in) {
        kind = COX__CL_COPY_IN;
        name = gaps ? "clEnqueueWriteBufferRect" : "clEnqueueWriteBuffer";
    }

    cl_command_queue queue = instance->queues[COX__CL_QUEUE_OUT];
    if (!instance->staged || slot->staging.in_line)
        queue = instance->queues[COX__CL_QUEUE_COMPUTE];
    else if (copy->in)
        queue = instance->queues[COX__CL_QUEUE_IN];

    cl_event event;
    cl_int code;
    const struct cox__driver_call call = cox__cl_call(instance);
    if (gaps)
        code = copy_rectangle(queue, host, copy, &event);
    else
        code = copy_bytes(queue, host, copy, &event);

    return cox__cl_slot_enqueued(instance, slot, kind, &call, code, event, name);
}

/* Rows of a binding to or from the slot's device memory, from its row `at` on. */
static cox_status copy_of_slot(struct cox__instance *instance, const struct cox__job *job,
                               struct cox__cl_slot *slot, uint32_t index, bool in, uint32_t at,
                               uint32_t first, uint32_t count, cl_event after)
{
    const struct copy copy = {.binding = &cox__cl_pass(instance, job)->bindings[index],
                              .index = index,
                              .in = in,
                              .mem = slot->mems[index],
                              .from_start = cox__from_start(cox__cl_pass(instance, job), index),
                              .at = at,
                              .first = first,
                              .count = count,
                              .after = after};
    return enqueue_copy(instance, job, slot, &copy);
}

/* ---- shared and mapped mode ---- */

static cox_status unmap_objects(struct cox__instance *instance, struct cox__job *job,
                                struct cox__cl_slot *slot, cl_mem *mems, uint32_t *origins)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const uint32_t align = instance->device->info.base_align_bytes;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        uint32_t first = 0, count = 0;
        if (binding->row_access == COX__REDUCE || binding->row_access == COX__UNUSED)
            continue;

        if (cox__by_rows(binding))
            cox__pipeline_binding_rows(pass, i, job->first_row, job->rows, &first, &count);
        origins[i] = first;
        if (cox__from_start(pass, i))
            origins[i] = 0;
        if (cox__is_own(binding) || pass->only_images >> i & 1 ||
            cox__cl_copies_from_start(instance, pass, i)) {
            mems[i] = slot->mems[i];
            continue;
        }

        /* Bytes that no kernel writes must keep their value, also on a device that works on a copy
         * of the host's memory. Devices that share the memory have no copies, and there the
         * unmapping would count as a write to rows that another device may have got since. */
        enum cox__access access = binding->access;
        if (access == COX__WRITE && !instance->shared->subbuffers &&
            (binding->coverage != COX__COVERS_ALL || cox__has_gaps(binding)))
            access = COX__READ_WRITE;

        const struct cox__cl_part part = {.access = access,
                                          .disjoint = binding->row_access == COX__ROWS &&
                                                      cox__begins_aligned(binding, align),
                                          .from_start = cox__from_start(pass, i),
                                          .offset = row_offset(binding, first),
                                          .bytes = rows_bytes(binding, count)};
        struct cox__cl_object *object = cox__cl_object_get(instance->backend, job->mems[i],
                                                           instance->device_index, &part,
                                                           instance->shared);
        if (!object)
            return COX_E_DEVICE_MEMORY;

        slot->objects[i] = object;
        mems[i] = object->mem;
    }

    return COX_OK;
}

static cox_status map_objects(struct cox__instance *instance, struct cox__cl_slot *slot)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++) {
        struct cox__cl_object *object = slot->objects[i];
        if (!object)
            continue;

        cl_event event;
        cl_int code;
        const struct cox__driver_call call = cox__cl_call(instance);
        void *mapped = cox__cl_object_map(object, &event, &code);

        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_COPY_OUT, &call,
                                                        code, event, "clEnqueueMapBuffer");
        if (status)
            return status;

        object->mapped = mapped;
    }

    return COX_OK;
}

/* Whether the memory of a band's rows must hold what the buffer held: kernels read it, or may leave
 * elements alone. */
static bool needs_content(const struct cox__binding *binding)
{
    return binding->access != COX__WRITE || binding->coverage != COX__COVERS_ALL;
}

/* Copy the rows of bindings that kernels take from row 0 on, if the device is no CPU. `in`: to the
 * slot's memory, before the kernels. Otherwise, copy what they wrote back to the host. */
static cox_status copy_from_start(struct cox__instance *instance, const struct cox__job *job,
                                  struct cox__cl_slot *slot, bool in)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    cox_status status = COX_OK;

    for (uint32_t i = 0; i < pass->binding_count && status == COX_OK; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        uint32_t first, count;
        if (!cox__cl_copies_from_start(instance, pass, i) ||
            (in ? !needs_content(binding) : !cox__written_by_rows(binding)))
            continue;

        cox__pipeline_binding_rows(pass, i, job->first_row, job->rows, &first, &count);
        if (in)
            cox__pipeline_read_rows(pass, i, job->first_row, job->rows, &first, &count);
        status = copy_of_slot(instance, job, slot, i, in, 0, first, count, NULL);
    }

    return status;
}

static cox_status enqueue_direct(struct cox__instance *instance, struct cox__job *job,
                                 struct cox__cl_slot *slot)
{
    cl_mem mems[COX_BUFFERS_MAX] = {0};
    uint32_t origins[COX_BUFFERS_MAX] = {0};
    const struct cox__cl_launch launch = {.job = job,
                                          .slot = slot,
                                          .first_row = job->first_row,
                                          .rows = job->rows,
                                          .mems = mems,
                                          .origins = origins};

    /* The images come first, while all of the host's memory is mapped. */
    cox_status status = open_images(instance, job, slot);
    if (status == COX_OK)
        status = unmap_objects(instance, job, slot, mems, origins);
    if (status == COX_OK)
        status = copy_from_start(instance, job, slot, true);
    if (status == COX_OK)
        status = clear_partials(instance, cox__cl_pass(instance, job), slot, mems);
    if (status == COX_OK)
        status = cox__cl_stages_run(instance, &launch, 0, cox__cl_pass(instance, job)->stage_count,
                                    NULL);
    if (status == COX_OK)
        status = copy_from_start(instance, job, slot, false);
    if (status == COX_OK)
        status = map_objects(instance, slot);
    if (status == COX_OK)
        status = read_partials(instance, cox__cl_pass(instance, job), slot,
                               instance->queues[COX__CL_QUEUE_COMPUTE]);

    return status;
}

/* ---- staged mode ---- */

/* Copy rows of a binding to or from the frame's memory on the device. */
static cox_status copy_of_set(struct cox__instance *instance, const struct cox__job *job,
                              struct cox__cl_slot *slot, uint32_t index, bool in, uint32_t first,
                              uint32_t count, cl_event after)
{
    const struct copy copy = {.binding = &instance->pipeline->bindings[index],
                              .index = index,
                              .in = in,
                              .mem = cox__cl_resident_mem(instance, job, index),
                              .from_start = true,
                              .first = first,
                              .count = count,
                              .after = after};
    return enqueue_copy(instance, job, slot, &copy);
}

/* Copy those ranges of a binding that stay on the device and lie in rows first .. end - 1. */
static cox_status copy_ranges(struct cox__instance *instance, struct cox__job *job,
                              struct cox__cl_slot *slot, uint32_t index, bool in, uint32_t first,
                              uint32_t end, cl_event after)
{
    const struct cox__job_range *ranges = job->back;
    uint32_t count = job->back_count;
    if (in) {
        ranges = job->ranges;
        count = job->range_count;
    }

    for (uint32_t r = 0; r < count; r++) {
        const struct cox__job_range *range = &ranges[r];
        const uint32_t from = cox__max_u64(range->first, first);
        const uint32_t to = cox__min_u64(range->first + range->count, end);
        if (range->binding != index || from >= to)
            continue;

        const cox_status status = copy_of_set(instance, job, slot, index, in, from, to - from,
                                              after);
        if (status)
            return status;
    }

    return COX_OK;
}

/* Some rows of a staged band, which its kernels compute at a time. */
struct piece {
    uint32_t number;
    uint32_t first_row;
    uint32_t rows;
    bool last;
};

static struct piece piece_of(const struct cox__job *job, const struct cox__cl_staging *state,
                             uint32_t number)
{
    const uint32_t done = number * state->piece_rows;
    const uint32_t rows = cox__min_u64(job->rows - done, state->piece_rows);

    return (struct piece){.number = number,
                          .first_row = job->first_row + done,
                          .rows = rows,
                          .last = done + rows == job->rows};
}

/* Whether a binding is divided among the pieces. Others (HALO, WHOLE, reads_all) come with the
 * first piece. A part of a HALO binding for each piece was slower on two NVIDIA H200: 0.91 of
 * hand-written OpenCL instead of 0.95, because small copies cost more. */
static bool is_cut(const struct cox__cl_staging *state, const struct cox__binding *binding)
{
    return state->cut && binding->row_access == COX__ROWS && !binding->reads_all;
}

/* Which rows of a binding a piece takes. */
static void rows_of(const struct cox__instance *instance, const struct cox__job *job,
                    const struct cox__cl_staging *state, uint32_t index, struct piece piece,
                    uint32_t *first, uint32_t *count)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);

    *first = state->band_firsts[index];
    *count = state->band_counts[index];
    if (is_cut(state, &pass->bindings[index]))
        cox__pipeline_binding_rows(pass, index, piece.first_row, piece.rows, first, count);
}

/* The rows of the slot's memory that each piece has for itself. */
static uint32_t cell_rows(const struct cox__instance *instance, const struct cox__job *job,
                          const struct cox__binding *binding)
{
    return cox__buffer_rows(instance->pieces[job->pass].rows, binding->row_divisor);
}

/* The row of the slot's memory at which buffer row `first` of a piece lies. */
static uint32_t row_in_slot(const struct cox__instance *instance, const struct cox__job *job,
                            const struct cox__cl_staging *state, uint32_t index, struct piece piece,
                            uint32_t first)
{
    const struct cox__binding *binding = &cox__cl_pass(instance, job)->bindings[index];

    if (is_cut(state, binding))
        return piece.number * cell_rows(instance, job, binding);
    return first - state->band_origins[index];
}

/* Copy in a piece's rows of one binding. */
static cox_status copy_binding_in(struct cox__instance *instance, struct cox__job *job,
                                  struct cox__cl_slot *slot, uint32_t index, struct piece piece)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const struct cox__binding *binding = &pass->bindings[index];
    const struct cox__cl_staging *state = &slot->staging;
    uint32_t first, count, end = UINT32_MAX;
    if (piece.number > 0 && !is_cut(state, binding))
        return COX_OK;

    rows_of(instance, job, state, index, piece, &first, &count);

    if (cox__cl_keeps(job, index)) {
        if (cox__by_rows(binding))
            end = first + count;
        return copy_ranges(instance, job, slot, index, true, first, end, NULL);
    }

    const bool copied = !cox__is_own(binding) && !(pass->only_images >> index & 1);
    const bool needed = binding->access == COX__READ || cox__keeps_values(binding);
    if (!copied || !needed)
        return COX_OK;
    return copy_of_slot(instance, job, slot, index, true,
                        row_in_slot(instance, job, state, index, piece, first), first, count, NULL);
}

static bool is_reduced_or_unused(const struct cox__binding *binding)
{
    return binding->row_access == COX__REDUCE || binding->row_access == COX__UNUSED;
}

static cox_status copy_piece_in(struct cox__instance *instance, struct cox__job *job,
                                struct cox__cl_slot *slot, struct piece piece)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    cox_status status = COX_OK;

    for (uint32_t i = 0; i < pass->binding_count && status == COX_OK; i++)
        if (!is_reduced_or_unused(&pass->bindings[i]))
            status = copy_binding_in(instance, job, slot, i, piece);

    return status;
}

/* Set where the kernels of a piece find their rows. */
static void place_piece(struct cox__instance *instance, const struct cox__job *job,
                        struct cox__cl_slot *slot, struct piece piece)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    struct cox__cl_staging *state = &slot->staging;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        uint32_t first, count;
        if (is_reduced_or_unused(&pass->bindings[i]))
            continue;

        rows_of(instance, job, state, i, piece, &first, &count);
        state->mems[i] = slot->mems[i];
        state->origins[i] = first;

        const bool whole = cox__cl_keeps(job, i) && !(state->indirect >> i & 1);
        if (whole)
            state->mems[i] = cox__cl_resident_mem(instance, job, i);
        else if (!cox__from_start(pass, i) && is_cut(state, &pass->bindings[i]))
            state->mems[i] = slot->pieces[i][piece.number];
        if (whole || cox__from_start(pass, i))
            state->origins[i] = 0;
    }
}

/* Enqueue a copy of rows between the application's memory on the device and the slot's. */
static cl_int copy_there(const struct cox__instance *instance, const struct copy *copy, cl_mem home,
                         cl_event *event)
{
    const struct cox__binding *binding = copy->binding;
    const size_t pitch = binding->pitch_bytes;
    const size_t at_home = row_offset(binding, copy->first),
                 in_slot = rows_bytes(binding, copy->at);
    const cl_uint waits = copy->after != NULL;
    cl_command_queue queue = instance->queues[COX__CL_QUEUE_COMPUTE];

    if (copy->in)
        return clEnqueueCopyBuffer(queue, home, copy->mem, at_home, in_slot,
                                   rows_bytes(binding, copy->count), waits,
                                   cox__cl_wait_list(&copy->after), event);
    if (!cox__has_gaps(binding))
        return clEnqueueCopyBuffer(queue, copy->mem, home, in_slot, at_home,
                                   rows_bytes(binding, copy->count), waits,
                                   cox__cl_wait_list(&copy->after), event);

    /* Bytes between the rows keep their values. */
    const size_t from[3] = {in_slot % pitch, in_slot / pitch, 0};
    const size_t to[3] = {at_home % pitch, at_home / pitch, 0};
    const size_t region[3] = {cox__row_bytes(binding), copy->count, 1};
    return clEnqueueCopyBufferRect(queue, copy->mem, home, from, to, region, pitch, 0, pitch, 0,
                                   waits, cox__cl_wait_list(&copy->after), event);
}

/* Copy the rows of bindings that cannot be used in place to the slot's memory, before the kernels
 * and after the copies in. Later, copy back those that were written. */
static cox_status copy_indirect(struct cox__instance *instance, struct cox__job *job,
                                struct cox__cl_slot *slot, bool in, cl_event after)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const struct cox__cl_staging *state = &slot->staging;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (!(state->indirect >> i & 1) ||
            (in ? !needs_content(binding) : !cox__written_by_rows(binding)))
            continue;

        struct copy copy = {.binding = binding,
                            .index = i,
                            .in = in,
                            .mem = slot->mems[i],
                            .first = state->band_firsts[i],
                            .count = state->band_counts[i],
                            .after = after};
        if (!in)
            cox__pipeline_binding_rows(pass, i, job->first_row, job->rows, &copy.first,
                                       &copy.count);
        copy.at = copy.first - state->band_origins[i];

        cl_event event;
        const struct cox__driver_call call = cox__cl_call(instance);
        const cl_int code = copy_there(instance, &copy, cox__cl_resident_mem(instance, job, i),
                                       &event);
        const cox_status status = cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code,
                                                        event, "clEnqueueCopyBuffer");
        if (status)
            return status;
    }

    return COX_OK;
}

/* Copy out what a piece's kernels wrote. The queue is in order: only the first copy waits for the
 * kernels. */
static cox_status copy_piece_out(struct cox__instance *instance, struct cox__job *job,
                                 struct cox__cl_slot *slot, struct piece piece)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const struct cox__cl_staging *state = &slot->staging;
    const uint32_t before = slot->event_count;
    cl_event after = cox__cl_slot_newest(slot);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const bool kept = cox__cl_keeps(job, i);
        cox_status status = COX_OK;
        if (!cox__written_by_rows(&pass->bindings[i]))
            continue;
        if (slot->event_count > before)
            after = NULL;

        uint32_t first, count;
        cox__pipeline_binding_rows(pass, i, piece.first_row, piece.rows, &first, &count);

        if (!kept)
            status = copy_of_slot(instance, job, slot, i, false,
                                  row_in_slot(instance, job, state, i, piece, first), first, count,
                                  after);
        else if (job->out >> i & 1)
            status = copy_of_set(instance, job, slot, i, false, first, count, after);
        else if (piece.last) /* all that it gives back: a copy out ends the band */
            status = copy_ranges(instance, job, slot, i, false, 0, UINT32_MAX, after);

        if (status)
            return status;
    }

    return COX_OK;
}

/* Whether the job copies all of its rows of some binding, in or out. */
static bool copies_rows(const struct cox__pass *pass, const struct cox__job *job)
{
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__ROWS &&
            (!cox__cl_keeps(job, i) || job->out >> i & 1))
            return true;

    uint64_t rows = 0;
    for (uint32_t r = 0; r < job->range_count; r++)
        rows += job->ranges[r].count;

    return rows >= job->rows / 2;
}

/* Whether the rows of a binding must not show what the device's memory holds. */
static bool must_clear(const struct cox__job *job, const struct cox__binding *binding,
                       uint32_t index)
{
    return cox__written_by_rows(binding) && binding->access == COX__WRITE &&
           binding->coverage == COX__COVERS_UNKNOWN && !binding->scratch &&
           !(job->own_rows >> index & 1);
}

/* Bytes of the slot's memory that hold the band's rows of a binding. */
static size_t bytes_in_slot(const struct cox__instance *instance, const struct cox__job *job,
                            const struct cox__cl_staging *state, uint32_t index)
{
    const struct cox__binding *binding = &cox__cl_pass(instance, job)->bindings[index];
    if (!is_cut(state, binding))
        return rows_bytes(binding, state->band_counts[index]);

    const struct piece last = piece_of(job, state, (job->rows - 1) / state->piece_rows);
    uint32_t first, count;
    rows_of(instance, job, state, index, last, &first, &count);
    return rows_bytes(binding, last.number * cell_rows(instance, job, binding) + count);
}

static cox_status clear_outputs(struct cox__instance *instance, const struct cox__job *job,
                                struct cox__cl_slot *slot)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    const struct cox__cl_staging *state = &slot->staging;
    cox_status status = COX_OK;

    for (uint32_t i = 0; i < pass->binding_count && status == COX_OK; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        const size_t offset = row_offset(binding, state->band_firsts[i]);
        const size_t bytes = rows_bytes(binding, state->band_counts[i]);
        if (!must_clear(job, binding, i))
            continue;

        if (cox__cl_keeps(job, i))
            status = clear(instance, slot, cox__cl_resident_mem(instance, job, i), offset, bytes);
        else if (cox__from_start(pass, i))
            status = clear(instance, slot, slot->mems[i], offset, bytes);
        else
            status = clear(instance, slot, slot->mems[i], 0,
                           bytes_in_slot(instance, job, state, i));
    }

    return status;
}

/* The bindings of a job that cannot be used in place where their buffers lie. */
static uint32_t indirect_of(const struct cox__instance *instance, const struct cox__job *job)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    uint32_t indirect = 0;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        uint32_t first, count;
        if (!(job->homed >> i & 1) || !cox__is_shared(binding) || !cox__by_rows(binding) ||
            cox__from_start(pass, i))
            continue;

        cox__pipeline_binding_rows(pass, i, job->first_row, job->rows, &first, &count);
        if (binding->offset_bytes || (first && !(pass->asks_origin >> i & 1)))
            indirect |= UINT32_C(1) << i;
    }

    return indirect;
}

/* Whether a band may be cut into pieces. A band with images is one piece: images are of the whole
 * band. So is a band whose rows are on the device already: there are no copies for its kernels to
 * overlap.
 *
 * Each pass would cut a binding differently, and with NVIDIA 580 the process ends when overlapping
 * sub-buffers are released. So a band is cut only if each of its ROWS bindings is used by
 * this pass alone or stays on the device. Kernels get all of a binding that stays there. */
static bool may_cut(const struct cox__instance *instance, const struct cox__job *job,
                    uint32_t indirect)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    if (!job->alone || pass->images || !copies_rows(pass, job) || indirect)
        return false;

    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__ROWS && instance->pipeline->in_several >> i & 1 &&
            !cox__cl_keeps(job, i))
            return false;
    return true;
}

static uint32_t rows_of_piece(const struct cox__instance *instance, const struct cox__job *job,
                              uint32_t indirect)
{
    if (!may_cut(instance, job, indirect))
        return job->rows;
    return cox__cl_piece_rows(&instance->pieces[job->pass], job->rows, job->pieces,
                              cox__cl_pass(instance, job)->row_alignment);
}

/* Plan how the band is enqueued. */
static void begin_staged(const struct cox__instance *instance, struct cox__job *job,
                         struct cox__cl_slot *slot)
{
    const struct cox__pass *pass = cox__cl_pass(instance, job);
    struct cox__cl_staging *state = &slot->staging;

    const uint32_t indirect = indirect_of(instance, job);
    *state = (struct cox__cl_staging){.indirect = indirect,
                                      .piece_rows = rows_of_piece(instance, job, indirect)};
    state->cut = state->piece_rows < job->rows;
    job->pieces = (job->rows + state->piece_rows - 1) / state->piece_rows;
    state->in_line = !pass->images && !copies_rows(pass, job);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (!cox__by_rows(&pass->bindings[i]))
            continue;

        cox__pipeline_read_rows(pass, i, job->first_row, job->rows, &state->band_firsts[i],
                                &state->band_counts[i]);
        if (!cox__from_start(pass, i))
            state->band_origins[i] = state->band_firsts[i];
    }
}

/* Enqueue the copies in of the next piece, if there is one. */
static cox_status bring_piece(struct cox__instance *instance, struct cox__job *job,
                              struct cox__cl_slot *slot)
{
    struct cox__cl_staging *state = &slot->staging;
    const uint32_t before = slot->event_count;
    const uint32_t number = state->brought;
    if (number * state->piece_rows >= job->rows)
        return COX_OK;

    cox_status status = copy_piece_in(instance, job, slot, piece_of(job, state, number));
    if (status == COX_OK && number == 0)
        status = open_images(instance, job, slot);

    state->copied[number % 2] = NULL;
    if (slot->event_count > before)
        state->copied[number % 2] = cox__cl_slot_newest(slot);
    state->brought++;
    return status;
}

/* Before the first kernel of a piece: bring the next piece, so that the copies never pause, and
 * clear what the kernels must not see. */
static cox_status begin_piece(struct cox__instance *instance, struct cox__job *job,
                              struct cox__cl_slot *slot, struct piece piece)
{
    cox_status status = bring_piece(instance, job, slot);

    if (status == COX_OK && piece.number == 0)
        status = clear_partials(instance, cox__cl_pass(instance, job), slot, slot->staging.mems);
    if (status == COX_OK && piece.number == 0)
        status = clear_outputs(instance, job, slot);

    place_piece(instance, job, slot, piece);
    return status;
}

/* The end of a piece, after its kernels. */
static cox_status end_piece(struct cox__instance *instance, struct cox__job *job,
                            struct cox__cl_slot *slot, struct piece piece)
{
    struct cox__cl_staging *state = &slot->staging;
    const cox_status status = copy_piece_out(instance, job, slot, piece);
    if (status)
        return status;

    state->stage = 0;
    state->piece++;
    if (!piece.last)
        return COX_OK;

    cl_command_queue queue = instance->queues[COX__CL_QUEUE_OUT];
    if (state->in_line)
        queue = instance->queues[COX__CL_QUEUE_COMPUTE];
    state->complete = true;
    return read_partials(instance, cox__cl_pass(instance, job), slot, queue);
}

/* Enqueue the first kernel of the current piece, or those that are left. */
static cox_status enqueue_kernels(struct cox__instance *instance, struct cox__job *job,
                                  struct cox__cl_slot *slot)
{
    const uint32_t count = cox__cl_pass(instance, job)->stage_count;
    struct cox__cl_staging *state = &slot->staging;
    const struct piece piece = piece_of(job, state, state->piece);
    const struct cox__cl_launch launch = {.job = job,
                                          .slot = slot,
                                          .first_row = piece.first_row,
                                          .rows = piece.rows,
                                          .mems = state->mems,
                                          .origins = state->origins};
    const uint32_t first = state->stage;
    cox_status status = COX_OK;
    cl_event copied = NULL;
    uint32_t end = count;

    if (first == 0) {
        status = begin_piece(instance, job, slot, piece);
        copied = state->copied[piece.number % 2];
        end = 1;
        if (status == COX_OK)
            status = copy_indirect(instance, job, slot, true, copied);
    }

    if (status == COX_OK)
        status = cox__cl_stages_run(instance, &launch, first, end, copied);
    state->stage = end;
    if (status || end < count)
        return status;

    status = copy_indirect(instance, job, slot, false, NULL);
    if (status)
        return status;
    return end_piece(instance, job, slot, piece);
}

/* Enqueue the next part of a staged band. The first part is what its device needs to begin: the
 * copies in of the first piece, or else the first kernel. */
cox_status cox__cl_band_continue(struct cox__instance *instance, struct cox__job *job,
                                 struct cox__cl_slot *slot)
{
    const struct cox__cl_staging *state = &slot->staging;
    cox_status status = COX_OK;
    bool begins = false;

    if (state->brought == 0) {
        status = bring_piece(instance, job, slot);
        begins = slot->event_count > 0;
    }
    if (status == COX_OK && !begins)
        status = enqueue_kernels(instance, job, slot);

    job->unfinished = status == COX_OK && !state->complete;
    return status;
}

/* Move rows, or acquire or release a buffer. The bands that wrote the rows are over. */
static cox_status enqueue_transfer(struct cox__instance *instance, struct cox__job *job,
                                   struct cox__cl_slot *slot)
{
    const struct cox__job_range *range = &job->ranges[0];

    /* Acquiring and releasing are commands of the compute queue. */
    slot->staging.in_line = job->kind == COX__JOB_ACQUIRE || job->kind == COX__JOB_RELEASE;

    switch (job->kind) {
    case COX__JOB_ACQUIRE:
        return cox__cl_device_buffer_acquire(instance, slot, job->mems[range->binding]);
    case COX__JOB_RELEASE:
        return cox__cl_device_buffer_release(instance, slot, job->mems[range->binding]);
    default:
        return copy_of_set(instance, job, slot, range->binding, job->kind == COX__JOB_PUSH,
                           range->first, range->count, NULL);
    }
}

cox_status cox__cl_band_enqueue(struct cox__instance *instance, struct cox__job *job,
                                struct cox__cl_slot *slot)
{
    job->unfinished = false;
    slot->staging.in_line = false;

    if (job->kind != COX__JOB_BAND)
        return enqueue_transfer(instance, job, slot);

    if (!instance->staged) {
        job->pieces = 1;
        return enqueue_direct(instance, job, slot);
    }

    begin_staged(instance, job, slot);
    return cox__cl_band_continue(instance, job, slot);
}
