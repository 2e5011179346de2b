/* One device's part of a session: its context, its queues, its kernels and its lanes, made and given back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_unit.h"
#include "give_up.h"

#include <stdlib.h>
#include <time.h>

static cox_status make_queues(struct cox__unit *unit)
{
    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++) {
        if (!unit->staged && q != COX__CL_QUEUE_COMPUTE)
            continue;
        cl_int code;
        unit->queues[q] = clCreateCommandQueue(unit->context, unit->device->id, CL_QUEUE_PROFILING_ENABLE, &code);
        cox_status status = cox__cl_unit_check(unit, code, "clCreateCommandQueue");
        if (status) {
            unit->queues[q] = NULL;
            return status;
        }
    }
    const struct cox__cl_group *group = &unit->backend->groups[unit->device->group];
    unit->shared = cox__cl_queue_new(unit->queues[COX__CL_QUEUE_COMPUTE], unit->context,
                                     !unit->own_context && unit->device->info.mode == COX_MODE_SHARED &&
                                         group->subbuffers);
    return unit->shared ? COX_OK : COX_E_NOMEM;
}

/* The group's, which shared mode needs; a device that was lost on it gets one of its own. */
static cox_status make_context(struct cox__unit *unit, bool fresh)
{
    unit->context = unit->backend->groups[unit->device->group].context;
    if (!fresh)
        return COX_OK;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)unit->device->platform, 0};
    cl_bool available = CL_TRUE;
    cl_int code = clGetDeviceInfo(unit->device->id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    if (code == CL_SUCCESS && !available)
        code = CL_DEVICE_NOT_AVAILABLE;
    if (code)
        return cox__cl_unit_check(unit, code, "clGetDeviceInfo");
    unit->context = clCreateContext(properties, 1, &unit->device->id, NULL, NULL, &code);
    unit->own_context = code == CL_SUCCESS;
    return cox__cl_unit_check(unit, code, "clCreateContext");
}

cox_status cox__cl_unit_create(struct cox__backend *base, uint32_t device, const struct cox__pipeline *pipeline,
                               uint32_t lanes, bool fresh, struct cox__unit **out, uint32_t *max_rows)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    cox_status status = COX_E_NOMEM;
    struct cox__unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return status;
    unit->backend = backend;
    unit->device = &backend->devices[device];
    unit->device_index = device;
    unit->pipeline = pipeline;
    unit->staged = unit->device->info.mode == COX_MODE_STAGED;
    unit->event_max = COX__CL_PIECES_MAX * (pipeline->stage_count + 2 * pipeline->binding_count);
    if (fresh)
        atomic_store(&unit->device->lost, true);
    unit->lanes = calloc(lanes, sizeof *unit->lanes);
    if (!unit->lanes)
        goto fail;
    unit->lane_count = lanes;
    for (uint32_t l = 0; l < lanes; l++) {
        status = cox__cl_lane_make(unit, &unit->lanes[l]);
        if (status)
            goto fail;
    }
    status = make_context(unit, atomic_load(&unit->device->lost));
    if (status)
        goto fail;
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        unit->stages[s].stage = &pipeline->stages[s];
        status = cox__cl_stage_make(unit, &unit->stages[s]);
        if (status)
            goto fail;
    }
    status = make_queues(unit);
    if (status)
        goto fail;
    status = cox__cl_lanes_allocate(unit, max_rows);
    if (status)
        goto fail;
    *out = unit;
    return COX_OK;

fail:
    if (unit->hangs) { /* for ever, as far as anybody is going to know */
        cox__cl_hangs(backend, device, unit->shared);
        cox__give_up(unit);
    } else {
        cox__cl_unit_destroy(base, unit);
    }
    return status;
}

/* Whether a command has ended: by what its driver says, unless that says nothing but errors. */
static bool is_over(cl_event event, bool *silent)
{
    cl_int state = CL_QUEUED;
    *silent = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) != CL_SUCCESS;
    return !*silent && state <= CL_COMPLETE;
}

/* For as long as it takes: the only proof that a device does not hang any more is that all it had to do has ended. One that
 * answers nothing but errors for a while has no more to do. */
static void outwait(struct cox__unit *unit)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 10000000};
    for (uint32_t l = 0; l < unit->lane_count; l++) {
        struct cox__cl_lane *lane = &unit->lanes[l];
        uint64_t since_ns = 0;
        while (lane->event_count) {
            bool silent;
            if (is_over(lane->events[lane->event_count - 1], &silent)) {
                clReleaseEvent(lane->events[--lane->event_count]);
                since_ns = 0;
                continue;
            }
            const uint64_t now = cox__clock_ns();
            since_ns = !silent ? 0 : since_ns ? since_ns : now;
            if (silent && now - since_ns > COX__CL_LITTLE_PATIENCE_NS)
                break;
            nanosleep(&pause, NULL);
        }
    }
}

/* An abandoned unit may outlive its session and so its pipeline, which is not looked at here. */
void cox__cl_unit_destroy(struct cox__backend *base, struct cox__unit *unit)
{
    (void)base;
    if (unit->abandoned) {
        outwait(unit);
        cox__cl_hangs_no_more(unit->backend, unit->device_index, unit->shared);
    }
    for (uint32_t l = 0; l < unit->lane_count; l++)
        cox__cl_lane_clear(&unit->lanes[l]);
    for (uint32_t s = 0; s < COX_STAGES_MAX; s++)
        cox__cl_stage_clear(&unit->stages[s]);
    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++)
        if (unit->queues[q] && !(unit->shared && q == COX__CL_QUEUE_COMPUTE))
            clReleaseCommandQueue(unit->queues[q]);
    if (unit->shared)
        cox__cl_queue_unref(unit->shared);
    if (unit->own_context)
        clReleaseContext(unit->context);
    free(unit->lanes);
    free(unit);
}

/* Touches nothing that a job_* function, in whose midst a thread is, looks at. */
void cox__cl_unit_seize(struct cox__backend *base, struct cox__unit *unit)
{
    if (unit->abandoned)
        return;
    unit->abandoned = true;
    atomic_store(&unit->device->lost, true);
    cox__cl_hangs((struct cox__cl_backend *)base, unit->device_index, unit->shared);
}

/* The events stay: its destruction asks them. */
void cox__cl_unit_abandon(struct cox__backend *base, struct cox__unit *unit)
{
    for (uint32_t l = 0; l < unit->lane_count; l++)
        cox__cl_lane_forget(&unit->lanes[l]);
    cox__cl_unit_seize(base, unit);
}

/* What was enqueued on a queue that cannot be flushed may never begin: each band under way fails, once its commands have ended
 * or the engine has waited for long enough. */
void cox__cl_unit_flush(struct cox__backend *base, struct cox__unit *unit)
{
    (void)base;
    cl_int code = CL_SUCCESS;
    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++)
        if (unit->queues[q]) {
            const struct cox__guard_call call = cox__cl_call(unit);
            const cl_int one = clFlush(unit->queues[q]);
            cox__cl_returned(&call);
            code = code ? code : one;
        }
    if (!code)
        return;
    cox__cl_unit_check(unit, code, "clFlush");
    cox__cl_queue_failed(unit->shared);
    for (uint32_t l = 0; l < unit->lane_count; l++)
        unit->lanes[l].failed |= unit->lanes[l].event_count > 0;
}
