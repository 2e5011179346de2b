/* Device memory of an instance: allocated while the instance is made, and filled with zeros. So no
 * frame finds out that it does not fit, and none shows what another program left there. Used by
 * queue slots and frame sets.
 *
 * Runs on the application threads and worker threads that make instances, except that
 * cox__cl_device_memory_clear also runs with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

/* The pattern is an int if the range allows that: some drivers fill bytes one by one. */
cl_int cox__cl_device_memory_clear(const struct cox__instance *instance, cl_mem mem, size_t offset,
                                   size_t bytes, cl_event *event)
{
    const cl_uint zero = 0;
    size_t pattern = sizeof zero;
    if (offset % sizeof zero || bytes % sizeof zero)
        pattern = 1;

    return clEnqueueFillBuffer(instance->queues[COX__CL_QUEUE_COMPUTE], mem, &zero, pattern, offset,
                               bytes, 0, NULL, event);
}

cl_int cox__cl_device_memory_make(struct cox__instance *instance, cl_mem_flags flags, size_t bytes,
                                  cl_mem *out)
{
    const size_t padded = (bytes + 3) / 4 * 4;
    cl_int code;
    cl_mem made = clCreateBuffer(instance->context, flags, padded, NULL, &code);
    if (code)
        return code;

    *out = made;
    return cox__cl_device_memory_clear(instance, made, 0, padded, NULL);
}

cl_int cox__cl_device_memory_wait(struct cox__instance *instance, cl_int code)
{
    const cl_int end = cox__cl_command_queue_drain(instance->queues[COX__CL_QUEUE_COMPUTE],
                                                   instance->shared, COX__CL_TIMEOUT_NS);
    if (code == CL_SUCCESS || end == COX__CL_NOT_IN_TIME)
        return end;
    return code;
}

cox_status cox__cl_device_memory_hangs(struct cox__instance *instance)
{
    cox__log(instance->backend->log, COX_LOG_WARN, "%s does not answer",
             instance->device->info.name);
    instance->hangs = true;
    return COX_E_DEVICE_LOST;
}
