/* For applications that use OpenCL themselves: contexts, memory objects and memory of other programs' interfaces.
 * docs/guide/interop.md says what each way costs on which kind of device.
 *
 * Included by no other header of the library, and the only one that needs OpenCL's headers. Every OpenCL object that is
 * passed in must be a valid one: drivers may end the process otherwise.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_OPENCL_H
#define COXSWAIN_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
/* What OpenCL's headers declare, unless the application wants another version; the library needs 1.2. */
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Contexts of the application's for the runtime to use: cox_runtime_params.opencl. Read only during
 * cox_runtime_create.
 *
 * Each device that the runtime selects and one of the contexts has uses that context, the first one that has it, in the
 * place of one that the library makes. The library retains it, and releases it when the runtime is destroyed. A context
 * selects no device. Not used, which the log says:
 *   a context that has none of the runtime's devices    a part of a processor (sub-devices, a reserved core) is another
 *                                                       device than the whole
 *   one whose devices work on host memory and cannot    they get contexts of their own
 *   share a buffer
 * A device that is lost goes on in contexts of the library's. */
struct cox_opencl_contexts {
    const cl_context *contexts;
    uint32_t count;
};

/* The context and the device of a runtime's device, to make queues, memory and kernels in. For the application's work
 * beside the library's: the library's own memory objects and queues are not to be had.
 *
 * Both are borrowed, and stay until the runtime is destroyed; the application retains what it keeps for longer
 * (clRetainContext, clRetainDevice). Devices of the same cox_device_info.context_group have one context.
 *
 * Errors: COX_E_INVALID (a pointer is NULL), COX_E_NOT_FOUND (index past the end), COX_E_DEVICE_LOST (the device failed
 * or hung in this context: sessions go on with it in contexts that are their own; what the application has in this one
 * stays its own); *context and *device are untouched.
 * Thread-safety: as cox_runtime. Does not block. */
COX_API COX_MUST_CHECK cox_status cox_opencl_device(const cox_runtime *runtime, uint32_t index,
                                                    cl_context *context, cl_device_id *device);

/* Copy `bytes` bytes from a memory object to a buffer, or from a buffer to a memory object. The
 * call enqueues a command on the application's queue, like clEnqueueReadBuffer and
 * clEnqueueWriteBuffer without blocking. The command runs after the `wait_count` events of `wait`.
 * If `event` is not NULL it receives the command's event, which the application releases. The
 * application flushes the queue.
 *
 * Do not destroy the buffer until the command is complete. Until then it must not be in a frame
 * under way either, unless the command and the frame only read it. Submit a frame after
 * clWaitForEvents has returned, and copy its result after its callback has run.
 *
 * Errors, each with a line in the log; nothing was enqueued then:
 *   COX_E_INVALID        a buffer, queue or memory object is NULL. The range is beyond the end of
 *                        the buffer or of the memory object. An event or a memory object is of
 *                        another context than the queue. The call is made in a child process after
 *                        fork.
 *   COX_E_UNSUPPORTED    the memory object was made without access for the host
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM
 * Thread-safety: safe from any thread, as the queue is. */
COX_API COX_MUST_CHECK cox_status cox_opencl_read(cox_buffer *to, size_t offset,
                                                  cl_command_queue queue, cl_mem from,
                                                  size_t from_offset, size_t bytes,
                                                  cl_uint wait_count, const cl_event *wait,
                                                  cl_event *event);
COX_API COX_MUST_CHECK cox_status cox_opencl_write(const cox_buffer *from, size_t offset,
                                                   cl_command_queue queue, cl_mem to,
                                                   size_t to_offset, size_t bytes,
                                                   cl_uint wait_count, const cl_event *wait,
                                                   cl_event *event);

/* Make a buffer of a memory object by mapping all of it, for reading and writing, on the application's queue, behind
 * what the queue has. No copy where the driver works in host memory and the object was made with CL_MEM_USE_HOST_PTR or
 * CL_MEM_ALLOC_HOST_PTR.
 *
 * The buffer is as from cox_buffer_wrap, which says what `released` and its absence mean; `released` is not called
 * unless COX_OK. It is unmapped on `queue` when no frame and no device uses it any more: that command has been
 * enqueued, and the queue flushed, when `released` runs, or without it when cox_buffer_destroy returns. What is
 * enqueued on the queue later works on what the frames wrote, if the queue is in order. Until then no command may use
 * the object, and the library retains it and the queue. If a device hangs that may still touch the memory, it stays
 * mapped.
 *
 * Blocks until the map command is complete.
 * Errors, each with a line in the log; the object is not mapped then: COX_E_INVALID (as cox_buffer_wrap; the queue or
 * the object is NULL, they are of different contexts), COX_E_UNSUPPORTED (no access for the host), COX_E_DEVICE_MEMORY
 * (the driver cannot map it), COX_E_NOMEM.
 * Thread-safety: safe from any thread, as the queue is. */
COX_API COX_MUST_CHECK cox_status cox_opencl_map(cox_runtime *runtime, cl_command_queue queue,
                                                 cl_mem mem, cox_released_fn *released, void *user,
                                                 cox_buffer **out);

/* Make a memory object of memory that another interface has exported as an opaque file descriptor
 * (cl_khr_external_memory_opaque_fd). Vulkan does this with
 * VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT. The object is in the context of a runtime's device.
 * That device must be the one that the memory lies on: CL_DEVICE_UUID_KHR is Vulkan's deviceUUID.
 * `bytes` is the size of the whole allocation. The application releases the object before the
 * memory is freed.
 *
 * If COX_OK is returned the descriptor belongs to the driver, otherwise it stays the application's.
 * Commands on the object, such as those of cox_opencl_read and cox_opencl_write, go between
 * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR. Acquire the
 * object after the other interface's work on the memory has ended.
 *
 * Errors, each with a line in the log unless `runtime` is NULL; *out is NULL then:
 *   COX_E_INVALID        a pointer is NULL, `fd` is negative, `bytes` is 0, or the call is made in
 *                        a child process after fork
 *   COX_E_NOT_FOUND, COX_E_DEVICE_LOST  as cox_opencl_device
 *   COX_E_UNSUPPORTED    the device imports no such memory, or the driver does not take this
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM
 * Thread-safety: as cox_runtime. */
COX_API COX_MUST_CHECK cox_status cox_opencl_import_fd(const cox_runtime *runtime, uint32_t index,
                                                       int fd, size_t bytes, cl_mem *out);

#ifdef __cplusplus
}
#endif
#endif
