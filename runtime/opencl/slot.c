/* Queue slots: what a band under way needs, and for how many rows there is device memory.
 *
 * A slot owns its device memory, its events and the partial results. It is made with its instance.
 * While a band is under way it is used with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "engine/pipeline.h"
#include "object.h"

#include <stdlib.h>

/* A smaller piece costs more than it saves: its commands cost 20 to 35 us on an NVIDIA H200, and a
 * copy of 2 MB takes 40 us. */
#define PIECE_BYTES_MIN (2u << 20)

/* Most bytes of a binding in one allocation, in constant memory or in one image. */
static uint64_t most_bytes(const struct cox__instance *instance, const struct cox__pass *pass,
                           uint32_t index)
{
    uint64_t most = instance->device->info.max_alloc_bytes;
    const size_t pitch = pass->bindings[index].pitch_bytes;
    size_t height = 0;

    if (instance->constants >> index & 1 && instance->constant_bytes)
        most = cox__min_u64(most, instance->constant_bytes);
    if (!(pass->images >> index & 1))
        return most;
    if (clGetDeviceInfo(instance->device->id, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof height, &height,
                        NULL))
        return most;

    if (height > most / pitch)
        return most;
    return height * pitch;
}

/* Most rows of one band of a pass that the device can hold in single allocations. */
static uint32_t rows_bound(const struct cox__instance *instance, const struct cox__pass *pass)
{
    uint64_t bound = pass->rows;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        const uint64_t most = most_bytes(instance, pass, i);
        if (binding->row_access == COX__UNUSED || cox__pass_bytes(pass, i) <= most)
            continue;
        if (!cox__by_rows(binding) || cox__from_start(pass, i))
            return 0;

        const uint64_t fit = most / binding->pitch_bytes;
        uint64_t extra = 0;
        if (binding->row_access == COX__HALO)
            extra = (uint64_t)binding->halo_above + binding->halo_below + pass->row_alignment;
        if (fit <= extra)
            return 0;

        bound = cox__min_u64(bound, (fit - extra) * binding->row_divisor);
    }

    /* A band of the whole frame needs no alignment. */
    if (bound < pass->rows)
        bound -= bound % pass->row_alignment;
    return (uint32_t)bound;
}

/* Bytes of a binding for a band of `rows` rows. */
static size_t band_bytes(const struct cox__pass *pass, uint32_t index, uint32_t rows)
{
    const struct cox__binding *binding = &pass->bindings[index];
    if (!cox__by_rows(binding))
        return binding->bytes;

    size_t count = cox__buffer_rows(rows, binding->row_divisor);
    if (binding->row_access == COX__HALO)
        count += (size_t)binding->halo_above + binding->halo_below + pass->row_alignment;

    const size_t all = cox__pass_bytes(pass, index);
    if (cox__from_start(pass, index) ||
        count >= (all - binding->offset_bytes) / binding->pitch_bytes)
        return all;
    return count * binding->pitch_bytes;
}

static void free_slot_mems(struct cox__cl_slot *slot)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++) {
        for (uint32_t p = 0; p < COX__CL_PIECES_MAX; p++) {
            if (slot->pieces[i][p])
                clReleaseMemObject(slot->pieces[i][p]);
            slot->pieces[i][p] = NULL;
        }

        if (slot->mems[i]) {
            clReleaseMemObject(slot->mems[i]);
            slot->mems[i] = NULL;
        }

        cox__cl_image_clear(&slot->images[i]);
    }
}

static cl_int make_pieces(struct cox__instance *instance, struct cox__cl_slot *slot,
                          uint32_t number, uint32_t index, uint32_t max_rows)
{
    const struct cox__pass *pass = &instance->pipeline->passes[number];
    const struct cox__binding *binding = &pass->bindings[index];
    const size_t all = band_bytes(pass, index, max_rows);
    const size_t step = cox__buffer_rows(instance->pieces[number].rows, binding->row_divisor) *
                        binding->pitch_bytes;
    cl_int code = CL_SUCCESS;

    for (uint32_t p = 0; p < COX__CL_PIECES_MAX && code == CL_SUCCESS && p * step < all; p++) {
        const cl_buffer_region region = {.origin = p * step,
                                         .size = cox__min_u64(all - p * step, step)};
        slot->pieces[index][p] = clCreateSubBuffer(slot->mems[index], 0,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    }
    return code;
}

/* Whether a slot needs device memory for a binding. In shared and mapped mode only REDUCE
 * bindings, the band's own, and those that are copied do. */
static bool needs_mem(const struct cox__instance *instance, const struct cox__pass *pass,
                      uint32_t index)
{
    const struct cox__binding *binding = &pass->bindings[index];
    return binding->row_access != COX__UNUSED && !(pass->only_images >> index & 1) &&
           (instance->staged || binding->row_access == COX__REDUCE || cox__is_own(binding) ||
            cox__cl_copies_from_start(instance, pass, index));
}

/* Whether two bindings of a band's own hold rows at the same time: each from its first stage, which
 * writes it, to its last one. */
static bool lifetimes_meet(const struct cox__pass *pass, uint32_t a, uint32_t b)
{
    const uint32_t of[2] = {a, b};
    uint32_t first[2] = {UINT32_MAX, UINT32_MAX}, last[2] = {0};

    for (uint32_t s = 0; s < pass->stage_count; s++)
        for (int i = 0; i < 2; i++) {
            if (!cox__stage_takes(&pass->stages[s], of[i]))
                continue;
            first[i] = cox__min_u32(first[i], s);
            last[i] = s;
        }

    return first[0] <= last[1] && first[1] <= last[0];
}

/* Whether the binding may use the memory of `other`, which may have several users. */
static bool can_share(const struct cox__pass *pass, const struct cox__cl_slot *slot, uint32_t index,
                      uint32_t other, uint32_t rows)
{
    if (!slot->mems[other] || !cox__is_own(&pass->bindings[other]) ||
        band_bytes(pass, other, rows) < band_bytes(pass, index, rows))
        return false;

    for (uint32_t i = 0; i < index; i++)
        if (slot->mems[i] == slot->mems[other] && lifetimes_meet(pass, index, i))
            return false;

    return true;
}

/* Let a band's own binding use the memory of an earlier one that holds no rows at the same time. A
 * long group of fused passes then works on a few buffers, which fit in a processor's cache. Eight
 * stencils over 1024 x 1024 floats take 0.7 times as long on a core of an AMD EPYC.
 *
 * The stages of a band and of its pieces run one after another, in an in-order queue. Returns
 * whether there was such memory; `code` is an error of taking it. */
static bool share_mem(const struct cox__instance *instance, struct cox__cl_slot *slot,
                      uint32_t index, const uint32_t *max_rows, cl_int *code)
{
    for (uint32_t p = 0; p < instance->pass_count; p++) {
        const struct cox__pass *pass = &instance->pipeline->passes[p];
        if (!cox__is_own(&pass->bindings[index]))
            continue;

        for (uint32_t i = 0; i < index; i++) {
            if (!can_share(pass, slot, index, i, max_rows[p]))
                continue;

            *code = clRetainMemObject(slot->mems[i]);
            if (*code == CL_SUCCESS)
                slot->mems[index] = slot->mems[i];
            return true;
        }
    }

    return false;
}

/* Allocate device memory of a binding, as much as the largest pass needs. */
static cl_int make_mem(struct cox__instance *instance, struct cox__cl_slot *slot, uint32_t index,
                       const uint32_t *max_rows)
{
    cl_mem_flags flags = CL_MEM_READ_ONLY;
    cl_int code = CL_SUCCESS;
    size_t bytes = 0;

    if (share_mem(instance, slot, index, max_rows, &code))
        return code;

    for (uint32_t p = 0; p < instance->pass_count; p++) {
        const struct cox__pass *pass = &instance->pipeline->passes[p];
        if (!needs_mem(instance, pass, index))
            continue;

        const size_t need = band_bytes(pass, index, max_rows[p]);
        bytes = cox__max_u64(bytes, need);
        if (need && pass->bindings[index].access != COX__READ)
            flags = CL_MEM_READ_WRITE;
    }
    if (!bytes)
        return CL_SUCCESS;

    return cox__cl_device_memory_make(instance, flags, bytes, &slot->mems[index]);
}

/* Reserve the image of the largest band, as evidence that it fits. */
static cl_int make_image(struct cox__instance *instance, struct cox__cl_slot *slot, uint32_t index,
                         const uint32_t *max_rows)
{
    size_t most = 0;
    if (cox__cl_wraps_images(instance))
        return CL_SUCCESS;

    for (uint32_t p = 0; p < instance->pass_count; p++) {
        const struct cox__pass *pass = &instance->pipeline->passes[p];
        if (!(pass->images >> index & 1))
            continue;

        const size_t pitch = pass->bindings[index].pitch_bytes;
        most = cox__max_u64(most, band_bytes(pass, index, max_rows[p]) / pitch);
    }

    if (!most)
        return CL_SUCCESS;
    return cox__cl_image_reserve(instance, slot, index, (uint32_t)most);
}

/* Whether bands of a pass may be cut into pieces by this binding's rows (band.c). */
static bool is_cut(const struct cox__pipeline *pipeline, const struct cox__pass *pass,
                   uint32_t index)
{
    return pass->bindings[index].row_access == COX__ROWS && !(pipeline->in_several >> index & 1) &&
           !pass->images && !cox__from_start(pass, index);
}

static cl_int make_slot_mems(struct cox__instance *instance, struct cox__cl_slot *slot,
                             const uint32_t *max_rows)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    cl_int code = CL_SUCCESS;

    for (uint32_t i = 0; i < pipeline->binding_count && code == CL_SUCCESS; i++) {
        code = make_mem(instance, slot, i, max_rows);
        if (code == CL_SUCCESS)
            code = make_image(instance, slot, i, max_rows);
        if (!instance->staged)
            continue;

        for (uint32_t p = 0; p < pipeline->pass_count && code == CL_SUCCESS; p++)
            if (is_cut(pipeline, &pipeline->passes[p], i))
                code = make_pieces(instance, slot, p, i, max_rows[p]);
    }

    return cox__cl_device_memory_wait(instance, code);
}

static size_t bytes_by_rows(const struct cox__pass *pass)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (cox__by_rows(&pass->bindings[i]))
            bytes += cox__pass_bytes(pass, i);
    return bytes;
}

/* Pieces begin at multiples of these rows: sub-buffers of the band's memory begin there. */
static uint64_t piece_alignment(const struct cox__instance *instance, const struct cox__pass *pass)
{
    const uint32_t align = instance->device->info.base_align_bytes;
    uint64_t rows = pass->row_alignment;

    for (uint32_t i = 0; align && i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (!is_cut(instance->pipeline, pass, i))
            continue;

        uint64_t aligned = 1; /* both are powers of two times an odd number */
        while (aligned * binding->pitch_bytes % align)
            aligned *= 2;
        rows = cox__pipeline_lcm_bounded(rows, aligned * binding->row_divisor, pass->rows);
    }
    return rows;
}

static void choose_piece_rows(struct cox__instance *instance, uint32_t number, uint32_t max_rows)
{
    const struct cox__pass *pass = &instance->pipeline->passes[number];
    const size_t per_row = bytes_by_rows(pass) / pass->rows + 1;

    instance->pieces[number] = cox__cl_pieces_of(max_rows, PIECE_BYTES_MIN / per_row + 1,
                                                 piece_alignment(instance, pass));
}

/* Choose the most rows of a band for each pass: what single allocations allow, halved `shift`
 * times. False: a pass gets no rows. */
static bool choose_rows(struct cox__instance *instance, uint32_t shift, uint32_t *max_rows)
{
    for (uint32_t p = 0; p < instance->pass_count; p++) {
        const struct cox__pass *pass = &instance->pipeline->passes[p];
        const uint32_t bound = rows_bound(instance, pass);

        max_rows[p] = bound;
        if (shift)
            max_rows[p] = (bound >> shift) / pass->row_alignment * pass->row_alignment;
        if (!max_rows[p] || (max_rows[p] < pass->row_alignment && max_rows[p] < pass->rows))
            return false;

        choose_piece_rows(instance, p, max_rows[p]);
    }
    return true;
}

cox_status cox__cl_slots_allocate(struct cox__instance *instance, uint32_t *max_rows)
{
    for (uint32_t shift = 0; choose_rows(instance, shift, max_rows); shift++) {
        cl_int code = CL_SUCCESS;

        for (uint32_t l = 0; l < instance->slot_count && code == CL_SUCCESS; l++)
            code = make_slot_mems(instance, &instance->slots[l], max_rows);
        if (code == CL_SUCCESS)
            return COX_OK;

        if (code == COX__CL_NOT_IN_TIME)
            return cox__cl_device_memory_hangs(instance);

        for (uint32_t l = 0; l < instance->slot_count; l++)
            free_slot_mems(&instance->slots[l]);

        if (!instance->staged)
            return cox__cl_instance_check(instance, code, "clCreateBuffer");

        cox__log(instance->backend->log, COX_LOG_INFO,
                 "%s: bands of %u rows do not fit (%s); trying half", instance->device->info.name,
                 max_rows[0], cox__cl_error_name(code));
    }

    cox__log(instance->backend->log, COX_LOG_WARN,
             "%s: too little device memory for a frame of this size", instance->device->info.name);
    return COX_E_DEVICE_MEMORY;
}

static bool is_reduced(const struct cox__pipeline *pipeline, uint32_t binding)
{
    bool reduced = false;
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        reduced |= pipeline->passes[p].bindings[binding].row_access == COX__REDUCE;
    return reduced;
}

cox_status cox__cl_slot_make(struct cox__instance *instance, struct cox__cl_slot *slot)
{
    slot->events = calloc(instance->event_max, sizeof *slot->events);
    slot->kinds = calloc(instance->event_max, 1);
    if (!slot->events || !slot->kinds)
        return COX_E_NOMEM;

    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++)
        if (is_reduced(instance->pipeline, i) &&
            !(slot->partials[i] = calloc(1, instance->pipeline->bytes[i])))
            return COX_E_NOMEM;
    return COX_OK;
}

void cox__cl_slot_clear(struct cox__cl_slot *slot)
{
    cox__cl_callback_disarm(slot->callback);
    free_slot_mems(slot);

    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        free(slot->partials[i]);

    free(slot->events);
    free(slot->kinds);
}

void cox__cl_slot_abandon(struct cox__cl_slot *slot)
{
    cox__cl_callback_disarm(slot->callback);
    slot->callback = NULL;

    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        if (slot->objects[i]) {
            cox__cl_object_put(slot->objects[i]);
            slot->objects[i] = NULL;
        }
}

/* The queue that a command of the kind was enqueued on. */
static int queue_of(const struct cox__instance *instance, const struct cox__cl_slot *slot,
                    enum cox__cl_command kind)
{
    if (!instance->staged || slot->staging.in_line)
        return COX__CL_QUEUE_COMPUTE;
    if (kind == COX__CL_COPY_IN)
        return COX__CL_QUEUE_IN;
    if (kind == COX__CL_COPY_OUT)
        return COX__CL_QUEUE_OUT;
    return COX__CL_QUEUE_COMPUTE;
}

cox_status cox__cl_slot_enqueued(struct cox__instance *instance, struct cox__cl_slot *slot,
                                 enum cox__cl_command kind, const struct cox__driver_call *call,
                                 cl_int code, cl_event event, const char *name)
{
    const bool returned = cox__watchdog_call_end(call);
    slot->enqueued_ns[0] = slot->enqueued_ns[1];
    slot->enqueued_ns[1] = cox__clock_ns();

    /* Before this thread leaves: without the event the device's thread does not learn when the
     * command ends. */
    if (code == CL_SUCCESS) {
        slot->kinds[slot->event_count] = (unsigned char)kind;
        slot->events[slot->event_count++] = event;
        instance->unflushed |= UINT32_C(1) << queue_of(instance, slot, kind);
    }

    if (!returned)
        cox__watchdog_call_abandon(call);
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

    for (uint32_t i = 0; cox__cl_wraps_images(instance) && i < COX_BUFFERS_MAX; i++) {
        struct cox__cl_image image = slot->images[i];
        if (!image.mem)
            continue;

        slot->images[i] = (struct cox__cl_image){0};
        const struct cox__driver_call call = cox__cl_call(instance);
        cox__cl_image_clear(&image);
        cox__cl_returned(&call);
    }

    slot->failed = false;
}
