/* The application's own OpenCL context, and a choice of devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/opencl.h>
#include <stdio.h>
static const char twice[] =
    "kernel void twice(global const float *in, global float *out, int columns, int rows)\n"
    "{ int i = get_global_id(1) * columns + get_global_id(0);\n"
    "  if (get_global_id(0) < columns && get_global_id(1) < rows) out[i] = 2 * in[i]; }\n";
static float in[64][64], out[64][64];
int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    if (!error)
        error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    cl_context context = error ? NULL : clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cox_runtime *runtime = NULL;
    cox_status status =
        cox_runtime_create(&(struct cox_runtime_params){.devices = "0.0",
                                                        .contexts =
                                                            &(struct cox_opencl_contexts){&context,
                                                                                          1}},
                           &runtime);
    if (!status)
        status = cox_run(runtime, twice, &(struct cox_range){64, 64}, COX_ARGS(in, out));
    printf("%s\n", cox_status_text(status));
    cox_runtime_destroy(&runtime);
    clReleaseContext(context);
    return status != COX_OK;
}
