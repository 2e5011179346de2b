/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "bits_device.h"

#include <stdio.h>
#include <stdlib.h>

void bits_device_open(struct bits_device *device)
{
    cl_platform_id platform;
    cl_int code = clGetPlatformIDs(1, &platform, NULL);
    if (code || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device->id, NULL)) {
        fprintf(stderr, "skipped, because there is no OpenCL device\n");
        exit(77);
    }
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    bits_need(code, "clCreateContext");
    device->queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    bits_need(code, "clCreateCommandQueue");
}

void bits_device_close(struct bits_device *device)
{
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->context);
}

cl_kernel bits_device_build(const struct bits_device *device, const struct cox__stage *stage,
                            const struct cox__variant *variant)
{
    cl_int code;
    const char *source = variant->source;
    cl_program program = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    bits_need(code, "clCreateProgramWithSource");
    code = clBuildProgram(program, 1, &device->id, variant->options, NULL, NULL);
    if (code) {
        static char log[1 << 16];
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "%s %s\n%s\n", stage->kernel, variant->options, log);
    }
    bits_need(code, "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, stage->kernel, &code);
    bits_need(code, "clCreateKernel");
    clReleaseProgram(program);
    return kernel;
}

size_t bits_global_size(uint32_t count, uint32_t item, uint32_t local)
{
    const size_t items = (count + item - 1) / item;
    return (items + local - 1) / local * local;
}
