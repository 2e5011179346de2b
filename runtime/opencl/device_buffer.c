/* Memory objects of the application that lie on a device (cox_opencl_buffer): checked, made into
 * memory for frames, acquired and released.
 *
 * A frame acquires external memory before its first command on it, and releases it after the last
 * one. Both are commands on the compute queue, in separate bands (engine/home.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

/* Functions of extensions; the loader has none of them. The headers may be older. */
typedef cl_int(CL_API_CALL memory_fn)(cl_command_queue queue, cl_uint count, const cl_mem *objects,
                                      cl_uint wait_count, const cl_event *wait, cl_event *event);
typedef cl_int(CL_API_CALL semaphore_fn)(cl_command_queue queue, cl_uint count,
                                         void *const *semaphores, const cl_ulong *payloads,
                                         cl_uint wait_count, const cl_event *wait, cl_event *event);

static const char acquire_name[] = "clEnqueueAcquireExternalMemObjectsKHR";
static const char release_name[] = "clEnqueueReleaseExternalMemObjectsKHR";
static const char wait_name[] = "clEnqueueWaitSemaphoresKHR";
static const char signal_name[] = "clEnqueueSignalSemaphoresKHR";

static void *find(const struct cox__cl_device *device, const char *name)
{
    return clGetExtensionFunctionAddressForPlatform(device->platform, name);
}

/* The first function that is needed and missing; NULL = none is. */
static const char *missing(const struct cox__cl_device *device, const struct cox_opencl_sync *sync)
{
    if (sync->external && !find(device, acquire_name))
        return acquire_name;
    if (sync->external && !find(device, release_name))
        return release_name;
    if (sync->wait && !find(device, wait_name))
        return wait_name;
    if (sync->signal && !find(device, signal_name))
        return signal_name;

    return NULL;
}

/* ---- creation ---- */

static cox_status check_object(const struct cox__cl_backend *backend, uint32_t device,
                               cl_mem object)
{
    const struct cox__cl_device *of = &backend->devices[device];
    cl_context context = NULL;
    cl_mem_flags flags = 0;
    cl_mem_object_type type = 0;

    const cl_int code = clGetMemObjectInfo(object, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    if (code) {
        cox__cl_error_check(backend->log, code, "clGetMemObjectInfo", "cox_opencl_buffer");
        return COX_E_INVALID;
    }

    clGetMemObjectInfo(object, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    clGetMemObjectInfo(object, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (context != backend->groups[of->group].context || type != CL_MEM_OBJECT_BUFFER) {
        cox__log(backend->log, COX_LOG_ERROR,
                 "cox_opencl_buffer: %s: the memory object is an image, or is not in the device's "
                 "context (cox_opencl_device)",
                 of->info.name);
        return COX_E_INVALID;
    }

    if (flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) {
        cox__log(backend->log, COX_LOG_ERROR,
                 "cox_opencl_buffer: %s: the memory object must be CL_MEM_READ_WRITE",
                 of->info.name);
        return COX_E_INVALID;
    }
    return COX_OK;
}

cox_status cox__cl_device_buffer_make(struct cox__cl_backend *backend, uint32_t device,
                                      cl_mem object, const struct cox_opencl_sync *sync,
                                      struct cox__mem **out)
{
    const struct cox__cl_device *of = &backend->devices[device];

    if (of->info.mode != COX_MODE_STAGED) {
        cox__log(backend->log, COX_LOG_ERROR,
                 "cox_opencl_buffer: %s works in the host's memory: use cox_opencl_map",
                 of->info.name);
        return COX_E_UNSUPPORTED;
    }

    const char *lacks = sync ? missing(of, sync) : NULL;
    if (lacks) {
        cox__log(backend->log, COX_LOG_ERROR, "cox_opencl_buffer: %s: the driver has no %s",
                 of->info.name, lacks);
        return COX_E_UNSUPPORTED;
    }

    const cox_status status = check_object(backend, device, object);
    if (status)
        return status;
    return cox__cl_mem_create_home(backend, device, object, sync, out);
}

/* ---- acquire and release ---- */

/* Enqueue a command on external memory. */
static cox_status enqueue_memory(struct cox__instance *instance, struct cox__cl_slot *slot,
                                 const struct cox__mem *mem, const char *name)
{
    memory_fn *function = (memory_fn *)find(instance->device, name);
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = function(instance->queues[COX__CL_QUEUE_COMPUTE], 1, &mem->home, 0, NULL,
                                 &event);

    return cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code, event, name);
}

static cox_status enqueue_semaphore(struct cox__instance *instance, struct cox__cl_slot *slot,
                                    void *semaphore, const char *name)
{
    semaphore_fn *function = (semaphore_fn *)find(instance->device, name);
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = function(instance->queues[COX__CL_QUEUE_COMPUTE], 1, &semaphore, NULL, 0,
                                 NULL, &event);

    return cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code, event, name);
}

/* A job without commands would never end. */
static cox_status enqueue_marker(struct cox__instance *instance, struct cox__cl_slot *slot)
{
    cl_event event;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = clEnqueueMarkerWithWaitList(instance->queues[COX__CL_QUEUE_COMPUTE], 0,
                                                    NULL, &event);

    return cox__cl_slot_enqueued(instance, slot, COX__CL_CLEAR, &call, code, event,
                                 "clEnqueueMarkerWithWaitList");
}

cox_status cox__cl_device_buffer_acquire(struct cox__instance *instance, struct cox__cl_slot *slot,
                                         const struct cox__mem *mem)
{
    cox_status status = COX_OK;

    if (mem->sync.wait)
        status = enqueue_semaphore(instance, slot, mem->sync.wait, wait_name);
    if (status == COX_OK && mem->sync.external)
        status = enqueue_memory(instance, slot, mem, acquire_name);
    if (status == COX_OK && !slot->event_count)
        status = enqueue_marker(instance, slot);

    return status;
}

cox_status cox__cl_device_buffer_release(struct cox__instance *instance, struct cox__cl_slot *slot,
                                         const struct cox__mem *mem)
{
    cox_status status = COX_OK;

    if (mem->sync.external)
        status = enqueue_memory(instance, slot, mem, release_name);
    if (status == COX_OK && mem->sync.signal)
        status = enqueue_semaphore(instance, slot, mem->sync.signal, signal_name);
    if (status == COX_OK && !slot->event_count)
        status = enqueue_marker(instance, slot);

    return status;
}
