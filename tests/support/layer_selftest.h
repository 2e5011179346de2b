/* Shared by the self-tests of the OpenCL layers: OpenCL calls that must succeed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_SELFTEST_H
#define COX_TESTS_LAYER_SELFTEST_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NEED(what)                                                              \
    do {                                                                        \
        cl_int need_error = (what);                                             \
        if (need_error != CL_SUCCESS) {                                         \
            fprintf(stderr, "line %d: %s = %d\n", __LINE__, #what, need_error); \
            exit(2);                                                            \
        }                                                                       \
    } while (0)

/* Wait until the condition holds. After two minutes the program ends. */
#define AWAIT(condition)                                                                                   \
    do {                                                                                                   \
        for (int await_tries = 0; !(condition); await_tries++) {                                           \
            if (await_tries == 1200000) {                                                                  \
                printf("FAILED: %s, line %d: timed out waiting for %s\n", __func__, __LINE__, #condition); \
                exit(1);                                                                                   \
            }                                                                                              \
            nanosleep(&(const struct timespec){.tv_nsec = 100000}, NULL);                                  \
        }                                                                                                  \
    } while (0)

/* Find the first device of the type. */
static inline bool find_device(cl_device_type type, cl_device_id *device)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint p = 0; p < count && p < 16; p++)
        if (clGetDeviceIDs(platforms[p], type, 1, device, NULL) == CL_SUCCESS)
            return true;
    return false;
}

/* Create two sub-devices of one core each. */
static inline bool halve_device(cl_device_id device, cl_device_id *halves)
{
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_uint most = 0;
    NEED(clGetDeviceInfo(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL));
    return most >= 2 && clCreateSubDevices(device, how, 2, halves, NULL) == CL_SUCCESS;
}

static inline cl_context new_context(cl_uint count, const cl_device_id *devices)
{
    cl_int error;
    cl_context context = clCreateContext(NULL, count, devices, NULL, NULL, &error);
    NEED(error);
    return context;
}

static inline cl_command_queue new_queue(cl_context context, cl_device_id device, cl_command_queue_properties how)
{
    cl_int error;
    cl_command_queue queue = clCreateCommandQueue(context, device, how, &error);
    NEED(error);
    return queue;
}

/* A program built for all devices of the context. */
static inline cl_program new_program(cl_context context, const char *source)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    NEED(error);
    NEED(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    return program;
}

static inline cl_kernel new_kernel(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    NEED(error);
    return kernel;
}

static inline cl_mem new_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host)
{
    cl_int error;
    cl_mem mem = clCreateBuffer(context, flags, bytes, host, &error);
    NEED(error);
    return mem;
}

static inline cl_mem new_part(cl_mem parent, cl_mem_flags flags, size_t from, size_t bytes)
{
    cl_int error;
    const cl_buffer_region region = {from, bytes};
    cl_mem mem = clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    NEED(error);
    return mem;
}

static inline void *new_mapping(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t bytes,
                                cl_event *event)
{
    cl_int error;
    void *mapped = clEnqueueMapBuffer(queue, mem, blocking, flags, 0, bytes, 0, NULL, event, &error);
    NEED(error);
    return mapped;
}

static inline cl_event launch(cl_command_queue queue, cl_kernel kernel, size_t items, const cl_event *wait)
{
    cl_event event;
    const size_t local = 64;
    NEED(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, wait ? 1 : 0, wait, &event));
    return event;
}

static inline void set_args(cl_kernel kernel, cl_mem first, size_t bytes, const void *second)
{
    NEED(clSetKernelArg(kernel, 0, sizeof first, &first));
    NEED(clSetKernelArg(kernel, 1, bytes, second));
}

#endif
