/* For applications that use OpenCL themselves: their contexts, memory objects, images, and memory
 * that other interfaces export. docs/guide/interop.md says what each way costs on which kind of
 * device.
 *
 * This is the library's only header that needs OpenCL's headers. No other header of the library
 * includes it. Every OpenCL object that is passed in must be valid: otherwise a driver may end the
 * process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_OPENCL_H
#define COXSWAIN_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
/* The version that OpenCL's headers declare, unless the application chooses another. The library
 * needs 1.2. */
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The application's contexts, for the runtime to use: a list for cox_runtime_params.contexts.
 *
 *     .contexts = COX_CONTEXTS(context)
 *
 * A device that the runtime selects uses the first of these contexts that has it, instead of a
 * context that the library makes. The library retains that context until the runtime is destroyed.
 * A context selects no devices.
 *
 * The library does not use a context in these cases, and says so in the log:
 *   It has none of the runtime's devices. A part of a CPU (sub-devices, a reserved core) is a
 *    different device from the whole CPU.
 *   Its devices work on host memory and cannot share a buffer. They get contexts of the library's.
 *
 * A device that is lost continues in contexts that the library makes. */
#define COX_CONTEXTS(...) ((const cl_context[]){__VA_ARGS__, NULL})

/* The context and the id of a runtime's device, in which the application can make its own queues,
 * memory and kernels. The library's own memory objects and queues cannot be accessed.
 *
 * Both are borrowed and stay valid until the runtime is destroyed. To keep one for longer, retain
 * it (clRetainContext, clRetainDevice). Devices with the same cox_device_info.context_group have
 * the same context.
 *
 * Does not block. On an error *context and *device are unchanged.
 *
 * Errors:
 *   COX_E_INVALID      A pointer is NULL.
 *   COX_E_NOT_FOUND    There is no device `index`.
 *   COX_E_DEVICE_LOST  The device failed or hung in this context. Sessions continue with it in
 *                      their own contexts. The application's objects in this one remain its own.
 *
 * Thread-safety: as cox_runtime. */
COX_API COX_MUST_CHECK cox_status cox_opencl_device(const cox_runtime *runtime, uint32_t index,
                                                    cl_context *context, cl_device_id *device);

/* Copy `bytes` bytes from a memory object to a buffer, or from a buffer to a memory object. The
 * call enqueues one command on the application's queue, like clEnqueueReadBuffer or
 * clEnqueueWriteBuffer, and does not wait for it. The command runs after the `wait_count` events of
 * `wait`. If `event` is not NULL, it receives the command's event, which the application releases.
 * The application flushes the queue.
 *
 * Do not destroy the buffer until the command is complete. Until then the buffer must not be in a
 * frame under way either, unless both the command and the frame only read it. Submit a frame after
 * clWaitForEvents has returned. Copy a frame's result after its callback has run.
 *
 * On an error nothing was enqueued.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID        A buffer, queue or memory object is NULL. The range exceeds the buffer or
 *                        the memory object. An event or memory object belongs to another context
 *                        than the queue. The call is made in a child process after fork.
 *   COX_E_UNSUPPORTED    The memory object was made without host access.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM
 *
 * Thread-safety: any thread, as for the queue. */
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

/* Make a buffer of a memory object. The call maps the whole object for reading and writing, on the
 * application's queue, after all commands that the queue already has. There is no copy if the
 * driver works in host memory and the object was made with CL_MEM_USE_HOST_PTR or
 * CL_MEM_ALLOC_HOST_PTR.
 *
 * The buffer is like one from cox_buffer_wrap, which explains `released`. On an error `released`
 * does not run.
 *
 * The library unmaps the object on `queue` when no frame and no device uses the buffer any more.
 * The unmap command has been enqueued, and the queue flushed, when `released` runs. If `released`
 * is NULL, this is so when cox_buffer_destroy returns. Commands that are enqueued later see what
 * the frames wrote, if the queue is in order. Until the object is unmapped no command may use it,
 * and the library retains the object and the queue.
 *
 * If a device hangs that may still touch the memory, the object stays mapped.
 *
 * Blocks until the map command is complete.
 *
 * On an error the object is not mapped.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID        As for cox_buffer_wrap. Or `queue` or `mem` is NULL, or their contexts
 *                        differ.
 *   COX_E_UNSUPPORTED    The object was made without host access.
 *   COX_E_DEVICE_MEMORY  The driver cannot map the object.
 *   COX_E_NOMEM
 *
 * Thread-safety: any thread, as for the queue. */
COX_API COX_MUST_CHECK cox_status cox_opencl_map(cox_runtime *runtime, cl_command_queue queue,
                                                 cl_mem mem, cox_released_fn *released, void *user,
                                                 cox_buffer **out);

/* What a frame does to acquire a buffer before its first command on it, and to release it after its
 * last one. Zeros = nothing.
 *
 * A frame that ends with another status than COX_OK may have neither waited nor signalled. */
struct cox_opencl_sync {
    /* The memory is external, as that of cox_opencl_import_fd: enqueue
     * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR. */
    bool external;

    /* Binary semaphores (cl_semaphore_khr) of the device's context, NULL = none. Each frame waits
     * for `wait` once, and signals `signal` once. Submit the frame after the operation that signals
     * `wait`: a device that waits for longer than its timeout counts as lost. The application
     * releases the semaphores after the buffer. */
    void *wait;
    void *signal;
};

/* Make a buffer of a memory object on the runtime's device `index`, without host memory. That
 * device works on the object in place, and frames that it computes alone copy nothing. Other
 * devices get the rows that they read through the host's memory. What they wrote is in the object
 * when the frame's callback runs.
 *
 * The object must be a CL_MEM_READ_WRITE buffer in the device's context (cox_opencl_device). The
 * buffer is its whole size. The library retains the object. `sync` is copied; NULL = zeros.
 *
 * A frame uses the object from cox_session_submit to its callback; nothing else may write it
 * meanwhile, or read it if the frame writes it. Submit the frame after the application's commands
 * on the object are complete. Commands that are enqueued in the callback or later see what the
 * frame wrote.
 *
 * Kernels that do not take NAME_first_row, and bindings with offset_bytes, use the object in place
 * only in the band that begins at row 0. For other bands the device copies rows in its own memory.
 *
 * The buffer's cox_buffer_data is NULL, and so is its entry in cox_pass_done_fn. A session refuses
 * it with COX_E_UNSUPPORTED for a merged buffer, an image, a buffer that stays on devices, and in
 * check mode. `released` is as for cox_buffer_wrap.
 *
 * If the device is lost, this frame and all later ones with the buffer end with COX_E_DEVICE_LOST.
 * Make a new object and buffer when the device is back, or use host memory.
 *
 * On an error *out is NULL.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID        A pointer is NULL. The object is an image, of another context or not
 *                        CL_MEM_READ_WRITE. The call is made in a child process after fork.
 *   COX_E_UNSUPPORTED    The device works in the host's memory (use cox_opencl_map). Or the driver
 *                        lacks a function that `sync` needs.
 *   COX_E_NOT_FOUND, COX_E_DEVICE_LOST  As for cox_opencl_device.
 *   COX_E_NOMEM
 *
 * Thread-safety: any thread. */
COX_API COX_MUST_CHECK cox_status cox_opencl_buffer(cox_runtime *runtime, uint32_t index,
                                                    cl_mem mem, const struct cox_opencl_sync *sync,
                                                    cox_released_fn *released, void *user,
                                                    cox_buffer **out);

/* Make a memory object of memory that another interface exported as an opaque file descriptor
 * (cl_khr_external_memory_opaque_fd). Vulkan does this with
 * VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT.
 *
 * The object is in the context of the runtime's device `index`. That must be the device on which
 * the memory lies: its CL_DEVICE_UUID_KHR equals Vulkan's deviceUUID. `bytes` is the size of the
 * whole allocation. The application releases the object before it frees the memory.
 *
 * On success the descriptor belongs to the driver. On an error the application keeps it.
 *
 * Commands on the object go between clEnqueueAcquireExternalMemObjectsKHR and
 * clEnqueueReleaseExternalMemObjectsKHR. This includes the commands of cox_opencl_read and
 * cox_opencl_write. Frames do both themselves (cox_opencl_buffer). Acquire the object after the
 * other interface's work on the memory has ended.
 *
 * On an error *out is NULL.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID        A pointer is NULL, `fd` is negative, or `bytes` is 0. The call is made in
 *                        a child process after fork.
 *   COX_E_UNSUPPORTED    The device imports no such memory, or the driver rejects this memory.
 *   COX_E_NOT_FOUND, COX_E_DEVICE_LOST  As for cox_opencl_device.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM
 *
 * Thread-safety: as cox_runtime. */
COX_API COX_MUST_CHECK cox_status cox_opencl_import_fd(const cox_runtime *runtime, uint32_t index,
                                                       int fd, size_t bytes, cl_mem *out);

/* Images, for kernels with samplers (cox_buffer_layout.image_order, cox_buffer_layout.image_type
 * and cox_buffer_layout.image_columns).
 *
 * An image has the rows that a buffer pointer would point to, and row 0 is the first of them
 * (NAME_first_row). At the frame's edges CLK_ADDRESS_CLAMP_TO_EDGE repeats the edge row. Elsewhere
 * the rows beyond the band are its halo rows. All devices give the same bits only with integer
 * formats, nearest filtering and coordinates that are not normalised. A device without images, or
 * without this format, leaves the session, with a log line. */

#ifdef __cplusplus
}
#endif
#endif
