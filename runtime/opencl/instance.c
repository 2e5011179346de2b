/* Device instances: their context, queues, kernels and queue slots, made and given back.
 *
 * instance_create and instance_destroy run on application threads and worker threads. isolate,
 * abandon and flush run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "hang.h"
#include "host/leak.h"

#include <stdlib.h>
#include <time.h>

/* Fused kernels from this number on are not timed. */
enum { MANY_STAGES = 3 };

static uint32_t most_stages(const struct cox__pipeline *pipeline)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        most = cox__max_u64(most, pipeline->passes[p].stage_count);

    return most;
}

/* A profile costs the thread that enqueues 6 us per command on an NVIDIA H200, and leaves about
 * 10 us between two kernels on an H100. So a staged device times nothing if the engine watches it
 * closely. Otherwise it times only the copies out, since the last one's end is the band's end.
 *
 * If rows stay on the device, a band may end with a kernel. The kernels are then timed too, unless
 * there are many: the host then sees the band's end a little late. */
static cl_command_queue_properties queue_properties(const struct cox__instance *instance, int queue)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    if (!instance->staged || pipeline->profile)
        return CL_QUEUE_PROFILING_ENABLE;
    if (pipeline->watched)
        return 0;
    if (queue == COX__CL_QUEUE_OUT)
        return CL_QUEUE_PROFILING_ENABLE;
    if (queue == COX__CL_QUEUE_COMPUTE && pipeline->resident && most_stages(pipeline) < MANY_STAGES)
        return CL_QUEUE_PROFILING_ENABLE;

    return 0;
}

static cox_status make_queues(struct cox__instance *instance)
{
    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++) {
        if (!instance->staged && q != COX__CL_QUEUE_COMPUTE)
            continue;

        cl_int code;
        instance->queues[q] = clCreateCommandQueue(instance->context, instance->device->id,
                                                   queue_properties(instance, q), &code);
        const cox_status status = cox__cl_instance_check(instance, code, "clCreateCommandQueue");
        if (status) {
            instance->queues[q] = NULL;
            return status;
        }
    }

    const bool subbuffers = !instance->own_context &&
                            instance->device->info.mode == COX_MODE_SHARED &&
                            instance->backend->groups[instance->device->group].subbuffers;
    instance->shared = cox__cl_command_queue_new(instance->queues[COX__CL_QUEUE_COMPUTE],
                                                 instance->context, subbuffers);
    if (!instance->shared)
        return COX_E_NOMEM;
    return COX_OK;
}

/* Use the group's context, which shared mode needs. A device that was lost on that context gets its
 * own (`fresh`). */
static cox_status make_context(struct cox__instance *instance, bool fresh)
{
    instance->context = instance->backend->groups[instance->device->group].context;
    if (!fresh)
        return COX_OK;

    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, (cl_context_properties)instance->device->platform, 0};
    cl_bool available = CL_TRUE;
    cl_int code = clGetDeviceInfo(instance->device->id, CL_DEVICE_AVAILABLE, sizeof available,
                                  &available, NULL);

    if (code == CL_SUCCESS && !available)
        code = CL_DEVICE_NOT_AVAILABLE;
    if (code)
        return cox__cl_instance_check(instance, code, "clGetDeviceInfo");

    instance->context = clCreateContext(properties, 1, &instance->device->id, NULL, NULL, &code);
    instance->own_context = code == CL_SUCCESS;
    return cox__cl_instance_check(instance, code, "clCreateContext");
}

static cox_status make_stages(struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        for (uint32_t s = 0; s < pipeline->passes[p].stage_count; s++) {
            struct cox__cl_stage *made = &instance->stages[p][s];
            made->stage = &pipeline->passes[p].stages[s];

            const cox_status status = cox__cl_stage_make(instance, &pipeline->passes[p], made);
            if (status)
                return status;
        }
    return COX_OK;
}

/* Make the parts that need the device, from the context to the frame sets. */
static cox_status make_parts(struct cox__instance *instance, uint32_t *max_rows)
{
    cox_status status = make_context(instance, atomic_load(&instance->device->lost));

    if (status == COX_OK)
        status = cox__cl_images_check(instance);
    if (status == COX_OK)
        status = make_stages(instance);
    if (status == COX_OK)
        status = make_queues(instance);
    if (status == COX_OK)
        status = cox__cl_slots_allocate(instance, max_rows);
    if (status == COX_OK)
        status = cox__cl_frame_sets_allocate(instance);
    return status;
}

cox_status cox__cl_instance_create(struct cox__backend *base, uint32_t device,
                                   const struct cox__pipeline *pipeline, uint32_t slots, bool fresh,
                                   struct cox__instance **out, uint32_t *max_rows)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    cox_status status = COX_E_NOMEM;
    struct cox__instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return status;

    instance->backend = backend;
    instance->device = &backend->devices[device];
    instance->device_index = device;
    instance->pipeline = pipeline;
    instance->staged = instance->device->info.mode == COX_MODE_STAGED;
    instance->pass_count = pipeline->pass_count;
    instance->event_max = COX__CL_PIECES_MAX *
                          (COX__CL_LAUNCHES_MAX * COX_FUSED_MAX + 2 * pipeline->binding_count);

    /* copies of ranges, and of rows on the device */
    instance->event_max += COX__JOB_RANGES_MAX + COX__JOB_BACK_MAX + 2 * pipeline->binding_count;

    if (fresh)
        atomic_store(&instance->device->lost, true);

    instance->slots = calloc(slots, sizeof *instance->slots);
    if (!instance->slots)
        goto fail;

    instance->slot_count = slots;
    for (uint32_t l = 0; l < slots; l++) {
        status = cox__cl_slot_make(instance, &instance->slots[l]);
        if (status)
            goto fail;
    }

    status = make_parts(instance, max_rows);
    if (status)
        goto fail;

    *out = instance;
    return COX_OK;

fail:
    if (instance->hangs) {
        /* No event will say when the device has ended, so it counts as hung from now on. */
        cox__cl_hang_begins(backend, device, instance->shared);
        cox__leak(instance);
    } else {
        cox__cl_instance_destroy(base, instance, NULL, NULL);
    }
    return status;
}

/* Whether a command has ended. `silent`: the driver answers with an error. */
static bool has_ended(cl_event event, bool *silent)
{
    cl_int state = CL_QUEUED;
    const cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                       &state, NULL);
    *silent = code != CL_SUCCESS;
    return !*silent && state <= CL_COMPLETE;
}

/* Wait until all commands under way have ended, however long that takes: nothing else proves that a
 * device does not hang any more. If the driver answers with errors only for a while, a command
 * counts as ended. */
static void drain_slots(struct cox__instance *instance)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 10000000};

    for (uint32_t l = 0; l < instance->slot_count; l++) {
        struct cox__cl_slot *slot = &instance->slots[l];
        uint64_t since_ns = 0;

        while (slot->event_count) {
            bool silent;
            if (has_ended(slot->events[slot->event_count - 1], &silent)) {
                clReleaseEvent(slot->events[--slot->event_count]);
                since_ns = 0;
                continue;
            }

            const uint64_t now = cox__clock_ns();
            if (!silent)
                since_ns = 0;
            else if (!since_ns)
                since_ns = now;
            if (silent && now - since_ns > COX__CL_SHORT_TIMEOUT_NS)
                break;

            nanosleep(&pause, NULL);
        }
    }
}

/* An abandoned instance may outlive its session and its pipeline, so the pipeline is not read
 * here. */
void cox__cl_instance_destroy(struct cox__backend *base, struct cox__instance *instance,
                              cox__ended_fn *ended, void *ctx)
{
    (void)base;

    /* A program of the instance's own context cannot be used by others. */
    const bool sound = !instance->abandoned && !instance->own_context && instance->shared &&
                       cox__cl_command_queue_state(instance->shared) == COX__CL_SOUND;

    if (instance->abandoned) {
        drain_slots(instance);
        cox__cl_hang_ends(instance->backend, instance->device_index, instance->shared);
    }

    for (uint32_t l = 0; l < instance->slot_count; l++)
        cox__cl_slot_clear(&instance->slots[l]);

    cox__cl_frame_sets_free(instance);
    for (uint32_t p = 0; p < COX_PASSES_MAX; p++)
        for (uint32_t s = 0; s < COX_FUSED_MAX; s++)
            cox__cl_stage_clear(instance, &instance->stages[p][s], sound);

    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++)
        if (instance->queues[q] && !(instance->shared && q == COX__CL_QUEUE_COMPUTE))
            clReleaseCommandQueue(instance->queues[q]);

    if (instance->shared)
        cox__cl_command_queue_unref(instance->shared);
    if (instance->own_context)
        clReleaseContext(instance->context);

    free(instance->slots);
    free(instance);

    if (ended)
        ended(ctx);
}

/* Change nothing that a job_* function reads: a thread is inside one. */
void cox__cl_instance_isolate(struct cox__backend *base, struct cox__instance *instance)
{
    if (instance->abandoned)
        return;

    instance->abandoned = true;
    atomic_store(&instance->device->lost, true);
    cox__cl_hang_begins((struct cox__cl_backend *)base, instance->device_index, instance->shared);
}

/* The events stay: instance_destroy polls them. */
void cox__cl_instance_abandon(struct cox__backend *base, struct cox__instance *instance)
{
    for (uint32_t l = 0; l < instance->slot_count; l++)
        cox__cl_slot_abandon(&instance->slots[l]);
    cox__cl_instance_isolate(base, instance);
}

/* Commands on a queue that cannot be flushed may never begin. So each band under way fails, once
 * its commands have ended or the engine's timeout is over. */
void cox__cl_instance_flush(struct cox__backend *base, struct cox__instance *instance)
{
    (void)base;
    cl_int code = CL_SUCCESS;

    for (int q = 0; q < COX__CL_QUEUE_COUNT; q++)
        if (instance->unflushed >> q & 1) {
            const struct cox__driver_call call = cox__cl_call(instance);
            const cl_int one = clFlush(instance->queues[q]);
            cox__cl_returned(&call);

            if (!code)
                code = one;
        }

    instance->unflushed = 0;
    if (!code)
        return;

    cox__cl_instance_check(instance, code, "clFlush");
    cox__cl_command_queue_failed(instance->shared);

    for (uint32_t l = 0; l < instance->slot_count; l++)
        instance->slots[l].failed |= instance->slots[l].event_count > 0;
}
