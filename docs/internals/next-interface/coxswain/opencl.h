/* For applications that use OpenCL themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_OPENCL_H
#define COXSWAIN_OPENCL_H
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <coxswain/session.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The application's contexts (cox_runtime_params.contexts). A device that is in one of them uses it. The
 * library retains contexts until the runtime is destroyed. */
struct cox_opencl_contexts {
    const cl_context *contexts;
    uint32_t count;
};

/* A device's context and id. Both are borrowed. Errors: COX_E_INVALID, COX_E_NOT_FOUND,
 * COX_E_DEVICE_LOST (sessions have moved to a new context). */
COX_API COX_MUST_CHECK cox_status cox_opencl_device(const cox_runtime *runtime, uint32_t index,
                                                    cl_context *context, cl_device_id *device);

/* Make a buffer of a memory object, by mapping it on `queue`. It is unmapped on `queue` when no frame
 * uses it any more; then `released` runs. Blocks until it is mapped. */
COX_API COX_MUST_CHECK cox_status cox_opencl_map(cox_runtime *runtime, cl_command_queue queue,
                                                 cl_mem mem, cox_released_fn *released, void *user,
                                                 cox_buffer **out);
#ifdef __cplusplus
}
#endif
#endif
