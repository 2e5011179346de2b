/* Fills a device's local memory before a trial, so that a kernel which reads what no work-item has
 * set gets other values from trial to trial.
 *
 * This is an attempt: no rule of OpenCL says that groups of the next kernel get the same memory. On
 * CPUs and on GPUs they do. A device that refuses the launch does without.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

static const char source[] =
    "kernel void cox_taint(volatile local uint *memory, uint words, uint value)\n"
    "{\n"
    "    for (uint i = get_local_id(0); i < words; i += get_local_size(0))\n"
    "        memory[i] = value * (i | 1);\n"
    "}\n";

/* Groups for each compute unit of the device, so that none gets no group. */
enum { GROUPS = 4 };

/* Whether a kernel of the pass uses local memory. A kernel whose driver does not say may use it. */
static bool uses_local(const struct cox__instance *instance, uint32_t pass)
{
    for (uint32_t s = 0; s < instance->pipeline->passes[pass].stage_count; s++) {
        const struct cox__cl_stage *stage = &instance->stages[pass][s];
        cl_ulong bytes = 0;
        const cl_int code = clGetKernelWorkGroupInfo(stage->kernels[0].id, instance->device->id,
                                                     CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes,
                                                     NULL);
        if (code || bytes || stage->stage->local_arrays)
            return true;
        for (uint32_t a = 0; a < stage->stage->arg_count; a++)
            if (stage->stage->args[a].kind == COX__ARG_KIND_LOCAL)
                return true;
    }
    return false;
}

/* Sets `*call` to the call whose code is returned. */
static cl_int launch(const struct cox__instance *instance, cl_kernel kernel, cl_uint value,
                     const char **call)
{
    cl_ulong bytes = 0;
    cl_uint units = 1;
    cl_device_id device = instance->device->id;

    *call = "clGetDeviceInfo";
    cl_int code = clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    if (!code)
        code = clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    if (code)
        return code;

    const size_t local = 1, global = (size_t)units * GROUPS;
    const cl_uint words = (cl_uint)(bytes / sizeof words);

    *call = "clSetKernelArg";
    code = clSetKernelArg(kernel, 0, bytes, NULL);
    if (!code)
        code = clSetKernelArg(kernel, 1, sizeof words, &words);
    if (!code)
        code = clSetKernelArg(kernel, 2, sizeof value, &value);
    if (code)
        return code;

    *call = "clEnqueueNDRangeKernel";
    return clEnqueueNDRangeKernel(instance->queues[COX__CL_QUEUE_COMPUTE], kernel, 1, NULL, &global,
                                  &local, 0, NULL, NULL);
}

cox_status cox__cl_taint_run(const struct cox__instance *instance, uint32_t pass, uint32_t value)
{
    struct cox__cl_program *program;
    cl_int code;
    if (!uses_local(instance, pass))
        return COX_OK;

    const struct cox__variant taint = {.source = source, .options = ""};
    const cox_status status = cox__cl_program_get(instance->backend, instance->device_index,
                                                  instance->context, &taint, &program);
    if (status)
        return status;

    const char *call = "clCreateKernel";
    cl_kernel kernel = clCreateKernel(program->id, "cox_taint", &code);
    if (!code) {
        code = launch(instance, kernel, value, &call);
        clReleaseKernel(kernel);
    }
    cox__cl_program_put(instance->backend, program, true);

    /* The rest of the check is worth as much without it. */
    if (code)
        cox__log(instance->backend->log, COX_LOG_WARN,
                 "%s: the check cannot fill local memory: %s failed: %s",
                 instance->device->info.name, call, cox__cl_error_name(code));
    return COX_OK;
}
