/* The interface to applications that use OpenCL themselves (coxswain/opencl.h). A mapped memory
 * object is a wrapped buffer with its own unmapping.
 *
 * Runs on application threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/buffer.h"
#include "api/misuse.h"
#include "instance_parts.h"
#include <coxswain/opencl.h>

/* Check a call that has the application's objects as arguments: if they are invalid, the caller is
 * at fault, not the device. */
static cox_status check(const struct cox__log *log, cl_int code, const char *call,
                        const char *function)
{
    const cox_status status = cox__cl_error_check(log, code, call, function);

    switch (code) {
    case CL_INVALID_CONTEXT:
    case CL_INVALID_DEVICE:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_MEM_OBJECT:
    case CL_INVALID_EVENT:
    case CL_INVALID_EVENT_WAIT_LIST:
        return COX_E_INVALID;
    default:
        return status;
    }
}

cox_status cox_opencl_device(const cox_runtime *runtime, uint32_t index, cl_context *context,
                             cl_device_id *device)
{
    if (!runtime || !context || !device)
        return COX_E_INVALID;

    const struct cox__cl_backend *backend = (const struct cox__cl_backend *)runtime->backend;
    if (index >= backend->device_count)
        return COX_E_NOT_FOUND;

    const struct cox__cl_device *of = &backend->devices[index];
    if (atomic_load(&of->lost))
        return COX_E_DEVICE_LOST;

    *context = backend->groups[of->group].context;
    *device = of->id;
    return COX_OK;
}

/* ---- copies ---- */

/* Where in the buffer's memory the copy begins; NULL = invalid arguments. */
static char *place_of(const cox_buffer *buffer, size_t offset, size_t bytes, const void *queue,
                      const void *mem, const char *function)
{
    if (!buffer || cox__misuse_forked(buffer->runtime, function) ||
        cox__misuse_null(buffer->runtime, queue, function, "queue") ||
        cox__misuse_null(buffer->runtime, mem, function, "the memory object"))
        return NULL;

    if (!bytes || offset > buffer->bytes || bytes > buffer->bytes - offset) {
        cox__log(&buffer->runtime->log, COX_LOG_ERROR,
                 "%s: %zu bytes at offset %zu, but the buffer has %zu", function, bytes, offset,
                 buffer->bytes);
        return NULL;
    }

    char *data = cox_buffer_data(buffer);
    if (!data) {
        cox__log(&buffer->runtime->log, COX_LOG_ERROR,
                 "%s: the buffer lies on a device: copy its memory object", function);
        return NULL;
    }
    return data + offset;
}

cox_status cox_opencl_read(cox_buffer *to, size_t offset, cl_command_queue queue, cl_mem from,
                           size_t from_offset, size_t bytes, cl_uint wait_count,
                           const cl_event *wait, cl_event *event)
{
    char *place = place_of(to, offset, bytes, queue, from, "cox_opencl_read");
    if (!place)
        return COX_E_INVALID;

    return check(&to->runtime->log,
                 clEnqueueReadBuffer(queue, from, CL_FALSE, from_offset, bytes, place, wait_count,
                                     wait, event),
                 "clEnqueueReadBuffer", "cox_opencl_read");
}

cox_status cox_opencl_write(const cox_buffer *from, size_t offset, cl_command_queue queue,
                            cl_mem to, size_t to_offset, size_t bytes, cl_uint wait_count,
                            const cl_event *wait, cl_event *event)
{
    const char *place = place_of(from, offset, bytes, queue, to, "cox_opencl_write");
    if (!place)
        return COX_E_INVALID;

    return check(&from->runtime->log,
                 clEnqueueWriteBuffer(queue, to, CL_FALSE, to_offset, bytes, place, wait_count,
                                      wait, event),
                 "clEnqueueWriteBuffer", "cox_opencl_write");
}

/* ---- mapping ---- */

cox_status cox_opencl_map(cox_runtime *runtime, cl_command_queue queue, cl_mem mem,
                          cox_released_fn *released, void *user, cox_buffer **out)
{
    static const char function[] = "cox_opencl_map";

    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, function, "out") ||
        cox__misuse_forked(runtime, function) ||
        cox__misuse_null(runtime, queue, function, "queue") ||
        cox__misuse_null(runtime, mem, function, "mem"))
        return COX_E_INVALID;

    size_t bytes;
    cl_int code = clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    if (code)
        return check(&runtime->log, code, "clGetMemObjectInfo", function);

    void *data = clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                    NULL, NULL, &code);
    if (code)
        return check(&runtime->log, code, "clEnqueueMapBuffer", function);

    const cox_status status = cox_buffer_wrap(runtime, data, bytes, released, user, out);
    if (status == COX_OK) {
        cox__cl_mem_set_mapped((*out)->mem, mem, queue);
    } else {
        clEnqueueUnmapMemObject(queue, mem, data, 0, NULL, NULL);
        clFlush(queue);
    }

    return status;
}

/* ---- memory objects in place ---- */

cox_status cox_opencl_buffer(cox_runtime *runtime, uint32_t index, cl_mem mem,
                             const struct cox_opencl_sync *sync, cox_released_fn *released,
                             void *user, cox_buffer **out)
{
    static const char function[] = "cox_opencl_buffer";

    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, function, "out") ||
        cox__misuse_forked(runtime, function) || cox__misuse_null(runtime, mem, function, "mem"))
        return COX_E_INVALID;

    struct cox__cl_backend *backend = (struct cox__cl_backend *)runtime->backend;
    cl_context context;
    cl_device_id device;
    cox_status status = cox_opencl_device(runtime, index, &context, &device);
    if (status) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: device %u: %s", function, index,
                 cox_status_text(status));
        return status;
    }

    struct cox__mem *made;
    status = cox__cl_device_buffer_make(backend, index, mem, sync, &made);
    if (status)
        return status;

    status = cox__buffer_make(runtime, made, true, out);
    if (status) {
        cox__cl_mem_destroy(&backend->base, made);
        return status;
    }

    struct cox__mem_link *link = cox__cl_mem_link(made);
    link->released = released;
    link->user = user;
    return COX_OK;
}

/* ---- memory of other interfaces ---- */

/* A function of OpenCL 3.0, declared here since the header may be older. NULL if the loader lacks
 * it. */
#pragma weak clCreateBufferWithProperties
cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context, const cl_ulong *properties,
                                                cl_mem_flags flags, size_t bytes, void *host,
                                                cl_int *code);

enum {
    IMPORT_HANDLE_TYPES = 0x204F,
    DEVICE_HANDLE_LIST = 0x2051,
    OPAQUE_FD = 0x2060,
    HANDLE_TYPES_MAX = 32
};

/* Drivers without support for handles answer with an error. */
static bool imports_fds(cl_device_id device)
{
    cl_uint types[HANDLE_TYPES_MAX];
    size_t bytes = 0;

    if (!clCreateBufferWithProperties ||
        clGetDeviceInfo(device, IMPORT_HANDLE_TYPES, sizeof types, types, &bytes) != CL_SUCCESS)
        return false;

    for (size_t i = 0; i < bytes / sizeof *types; i++)
        if (types[i] == OPAQUE_FD)
            return true;
    return false;
}

cox_status cox_opencl_import_fd(const cox_runtime *runtime, uint32_t index, int fd, size_t bytes,
                                cl_mem *out)
{
    static const char function[] = "cox_opencl_import_fd";
    cl_context context;
    cl_device_id device;
    cl_int code;

    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, function, "out") ||
        cox__misuse_forked(runtime, function))
        return COX_E_INVALID;

    cox_status status = COX_E_INVALID;
    if (fd >= 0 && bytes)
        status = cox_opencl_device(runtime, index, &context, &device);
    if (status) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: descriptor %d, %zu bytes, for device %u: %s",
                 function, fd, bytes, index, cox_status_text(status));
        return status;
    }

    if (!imports_fds(device)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "%s: device %u cannot import memory from opaque file descriptors", function,
                 index);
        return COX_E_UNSUPPORTED;
    }

    const cl_ulong properties[] = {
        OPAQUE_FD, (cl_ulong)fd, DEVICE_HANDLE_LIST, (cl_ulong)(uintptr_t)device, 0, 0};
    cl_mem mem = clCreateBufferWithProperties(context, properties, CL_MEM_READ_WRITE, bytes, NULL,
                                              &code);
    if (code == CL_SUCCESS)
        *out = mem;

    return check(&runtime->log, code, "clCreateBufferWithProperties", function);
}
