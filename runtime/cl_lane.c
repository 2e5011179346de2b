/* Lanes: what a band under way needs, and how much of the frame there is device memory for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_unit.h"

#include <stdlib.h>

/* A piece below this is not worth its enqueueing: three commands cost 45 us on an NVIDIA H200, 8 MB take 145 us to copy. */
#define PIECE_BYTES_MIN (8u << 20)

/* Most rows of one band that the device can hold in single allocations. */
static uint32_t rows_bound(const struct cox__unit *unit)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    uint64_t most = unit->device->info.max_alloc_bytes, bound = pipeline->rows;
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

static void free_lane_mems(struct cox__cl_lane *lane)
{
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++) {
        for (uint32_t p = 0; p < COX__CL_PIECES_MAX; p++)
            if (lane->pieces[i][p]) {
                clReleaseMemObject(lane->pieces[i][p]);
                lane->pieces[i][p] = NULL;
            }
        if (lane->mems[i]) {
            clReleaseMemObject(lane->mems[i]);
            lane->mems[i] = NULL;
        }
    }
}

static cl_int make_pieces(struct cox__unit *unit, struct cox__cl_lane *lane, uint32_t index, uint32_t max_rows)
{
    const struct cox_binding *binding = &unit->pipeline->bindings[index];
    size_t all = staged_bytes(unit->pipeline, index, max_rows);
    uint32_t divisor = binding->row_divisor;
    size_t step = ((size_t)unit->piece_rows + divisor - 1) / divisor * binding->pitch_bytes;
    cl_int code = CL_SUCCESS;
    for (uint32_t p = 0; p < COX__CL_PIECES_MAX && code == CL_SUCCESS && p * step < all; p++) {
        const cl_buffer_region region = {.origin = p * step, .size = all - p * step < step ? all - p * step : step};
        lane->pieces[index][p] = clCreateSubBuffer(lane->mems[index], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    }
    return code;
}

/* Device memory of one lane, touched once: some drivers allocate at first use, and the frame loop is no place to find
 * out that it does not fit. */
static cl_int make_lane_mems(struct cox__unit *unit, struct cox__cl_lane *lane, uint32_t max_rows)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    const cl_uint zero = 0;
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < pipeline->binding_count && code == CL_SUCCESS; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (!unit->staged && binding->contract != COX_REDUCE)
            continue;
        cl_mem_flags flags = binding->access == COX_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        size_t bytes = (staged_bytes(pipeline, i, max_rows) + 3) / 4 * 4;
        lane->mems[i] = clCreateBuffer(unit->context, flags, bytes, NULL, &code);
        if (code)
            lane->mems[i] = NULL;
        else
            code = clEnqueueFillBuffer(unit->queues[COX__CL_QUEUE_COMPUTE], lane->mems[i], &zero, sizeof zero, 0,
                                       sizeof zero, 0, NULL, NULL);
        if (code == CL_SUCCESS && unit->staged && binding->contract == COX_ROWS)
            code = make_pieces(unit, lane, i, max_rows);
    }
    /* What was begun ends before it is released. */
    const cl_int end = cox__cl_drain(unit->queues[COX__CL_QUEUE_COMPUTE], unit->shared, COX__CL_PATIENCE_NS);
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

cox_status cox__cl_lanes_allocate(struct cox__unit *unit, uint32_t *max_rows)
{
    uint32_t granule = unit->pipeline->granule;
    for (uint32_t rows = rows_bound(unit); rows >= granule || rows == unit->pipeline->rows;) {
        unit->piece_rows = unit->staged ? choose_piece_rows(unit->pipeline, rows) : rows;
        cl_int code = CL_SUCCESS;
        for (uint32_t l = 0; l < unit->lane_count && code == CL_SUCCESS; l++)
            code = make_lane_mems(unit, &unit->lanes[l], rows);
        if (code == CL_SUCCESS) {
            *max_rows = rows;
            return COX_OK;
        }
        if (code == COX__CL_NOT_IN_TIME) {
            cox__log(unit->backend->log, COX_LOG_WARN, "%s does not answer", unit->device->info.name);
            unit->hangs = true;
            return COX_E_DEVICE_LOST;
        }
        for (uint32_t l = 0; l < unit->lane_count; l++)
            free_lane_mems(&unit->lanes[l]);
        if (!unit->staged)
            return cox__cl_unit_check(unit, code, "clCreateBuffer");
        cox__log(unit->backend->log, COX_LOG_INFO, "%s: bands of %u rows do not fit (%s); trying half",
                 unit->device->info.name, rows, cox__cl_error_name(code));
        rows = rows / 2 / granule * granule;
        if (!rows)
            break;
    }
    cox__log(unit->backend->log, COX_LOG_WARN, "%s: too little memory for this frame's shape", unit->device->info.name);
    return COX_E_DEVICE_MEMORY;
}

cox_status cox__cl_lane_make(struct cox__unit *unit, struct cox__cl_lane *lane)
{
    lane->events = calloc(unit->event_max, sizeof *lane->events);
    lane->kinds = calloc(unit->event_max, 1);
    if (!lane->events || !lane->kinds)
        return COX_E_NOMEM;
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++)
        if (unit->pipeline->bindings[i].contract == COX_REDUCE &&
            !(lane->partials[i] = calloc(1, unit->pipeline->bindings[i].bytes)))
            return COX_E_NOMEM;
    return COX_OK;
}

void cox__cl_lane_clear(struct cox__cl_lane *lane)
{
    cox__cl_callback_disarm(lane->callback);
    free_lane_mems(lane);
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
        free(lane->partials[i]);
    free(lane->events);
    free(lane->kinds);
}

void cox__cl_lane_forget(struct cox__cl_lane *lane)
{
    cox__cl_callback_disarm(lane->callback);
    lane->callback = NULL;
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
        if (lane->objects[i]) {
            cox__cl_object_put(lane->objects[i]);
            lane->objects[i] = NULL;
        }
}

cox_status cox__cl_lane_enqueued(struct cox__unit *unit, struct cox__cl_lane *lane, enum cox__cl_command kind,
                                 const struct cox__guard_call *call, cl_int code, cl_event event, const char *name)
{
    const bool returned = cox__guard_leave(call);
    if (code == CL_SUCCESS) { /* else nobody would know when it has ended */
        lane->kinds[lane->event_count] = (unsigned char)kind;
        lane->events[lane->event_count++] = event;
    }
    if (!returned)
        cox__guard_desert(call);
    return cox__cl_unit_check(unit, code, name);
}

void cox__cl_lane_end(const struct cox__unit *unit, struct cox__cl_lane *lane)
{
    cox__cl_lane_forget(lane);
    while (lane->event_count) {
        cl_event event = lane->events[--lane->event_count];
        const struct cox__guard_call call = cox__cl_call(unit);
        clReleaseEvent(event);
        cox__cl_returned(&call);
    }
    lane->failed = false;
}
