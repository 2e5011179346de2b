/* Device memory of an instance: allocated while the instance is made, and written once, so that no
 * frame finds out that it does not fit. Used by queue slots and frame sets.
 *
 * Runs on the application threads and worker threads that make instances.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

cl_int cox__cl_device_memory_make(struct cox__instance *instance, cl_mem_flags flags, size_t bytes,
                                  cl_mem *out)
{
    const cl_uint zero = 0;
    cl_int code;
    cl_mem made = clCreateBuffer(instance->context, flags, (bytes + 3) / 4 * 4, NULL, &code);
    if (code)
        return code;

    *out = made;
    return clEnqueueFillBuffer(instance->queues[COX__CL_QUEUE_COMPUTE], made, &zero, sizeof zero, 0,
                               sizeof zero, 0, NULL, NULL);
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
