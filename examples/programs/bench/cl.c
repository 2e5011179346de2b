/* The same frame in OpenCL written by hand: what the library is measured against. Written to be fast: buffers, kernel
 * arguments and queue are made once, nothing is profiled, and a frame is as few calls as the standard allows.
 *
 * Devices that work on host memory: two page-aligned allocations wrapped with CL_MEM_USE_HOST_PTR, mapped while the
 * host owns them; a frame unmaps both, runs the kernel, maps both. Devices with their own memory: pinned host memory,
 * one in-order queue, write, kernel, read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

enum { IN, OUT, BUFFERS, PLATFORMS_MAX = 16, DEVICES_MAX = 64 };

struct bench_cl {
    bool staged;
    size_t bytes;
    size_t global[2], local[2];
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    void *host[BUFFERS];
    void *allocated[BUFFERS]; /* wrapped memory, ours to free */
    cl_mem pinned[BUFFERS];   /* staged: what `host` maps */
    cl_mem mems[BUFFERS];
    bool mapped;
    sem_t done;
    bool has_sem;
    uint64_t callback_ns; /* written by the driver's callback before it posts `done` */
};

bool bench_cl_failed(cl_int code, const char *call)
{
    if (code == CL_SUCCESS)
        return false;
    bench_fail("hand-written OpenCL: %s returns %d", call, code);
    return true;
}

/* Parts of devices that the library works on: a sub-device, or all cores but the reserved one. They are kept until the
 * program ends: PoCL 3.1 crashes where a sub-device is released while one of its threads still puts away the last
 * command, which no call can wait for. */
static struct part {
    cl_device_id parent, id;
    cl_uint units, number;
} parts[DEVICES_MAX];
static uint32_t part_count;

static bool find_part(const struct cox_device_info *info, cl_device_id parent, cl_device_id *device)
{
    const cl_uint number = info->subdevice ? info->subdevice : 1;
    for (uint32_t p = 0; p < part_count; p++)
        if (parts[p].parent == parent && parts[p].units == info->compute_units &&
            parts[p].number == number) {
            *device = parts[p].id;
            return true;
        }
    cl_device_id ids[DEVICES_MAX];
    cl_device_partition_property properties[DEVICES_MAX + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    cl_uint made = number;
    if (number > DEVICES_MAX || part_count + number > DEVICES_MAX)
        return bench_fail("hand-written OpenCL: sub-device %u is too many", number);
    for (cl_uint i = 0; i < number; i++)
        properties[1 + i] = (cl_device_partition_property)info->compute_units;
    if (bench_cl_failed(clCreateSubDevices(parent, properties, number, ids, &made),
                        "clCreateSubDevices"))
        return false;
    for (cl_uint i = 0; i < made; i++)
        parts[part_count++] = (struct part){
            .parent = parent, .id = ids[i], .units = info->compute_units, .number = i + 1};
    *device = ids[made - 1];
    return true;
}

bool bench_cl_find_device(const struct cox_device_info *info, cl_device_id *device)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_device_id devices[DEVICES_MAX];
    cl_uint count = 0;
    if (bench_cl_failed(clGetPlatformIDs(PLATFORMS_MAX, platforms, &count), "clGetPlatformIDs"))
        return false;
    if (info->platform_index >= count)
        return bench_fail("hand-written OpenCL: platform %u is gone", info->platform_index);
    cl_platform_id platform = platforms[info->platform_index];
    if (bench_cl_failed(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count),
                        "clGetDeviceIDs"))
        return false;
    if (info->device_index >= count)
        return bench_fail("hand-written OpenCL: device %u is gone", info->device_index);
    *device = devices[info->device_index];
    char name[128] = "";
    clGetDeviceInfo(*device, CL_DEVICE_NAME, sizeof name, name, NULL);
    name[sizeof name - 1] = '\0';
    if (strncmp(name, info->name, strlen(name)) !=
        0) /* a sub-device's name has a number behind it */
        return bench_fail("hand-written OpenCL: device %u.%u is %s, not %s", info->platform_index,
                          info->device_index, name, info->name);
    return info->compute_units == info->parent_units || find_part(info, *device, device);
}

static bool build(struct bench_cl *bench)
{
    cl_int code;
    const char *source = work_source;
    bench->program = clCreateProgramWithSource(bench->context, 1, &source, NULL, &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource") ||
        bench_cl_failed(clBuildProgram(bench->program, 1, &bench->device, WORK_BASE_OPTIONS, NULL,
                                       NULL),
                        "clBuildProgram"))
        return false;
    bench->kernel = clCreateKernel(bench->program, WORK_KERNEL, &code);
    return !bench_cl_failed(code, "clCreateKernel");
}

static bool make_wrapped(struct bench_cl *bench, int i)
{
    static const cl_mem_flags flags[BUFFERS] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    cl_int code;
    if (posix_memalign(&bench->allocated[i], 4096, bench->bytes))
        return bench_fail("out of memory");
    memset(bench->allocated[i], 0, bench->bytes);
    bench->mems[i] = clCreateBuffer(bench->context, flags[i] | CL_MEM_USE_HOST_PTR, bench->bytes,
                                    bench->allocated[i], &code);
    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool make_staged(struct bench_cl *bench, int i)
{
    static const cl_mem_flags flags[BUFFERS] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    cl_int code;
    bench->pinned[i] = clCreateBuffer(bench->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                      bench->bytes, NULL, &code);
    if (bench_cl_failed(code, "clCreateBuffer"))
        return false;
    bench->host[i] = clEnqueueMapBuffer(bench->queue, bench->pinned[i], CL_TRUE,
                                        CL_MAP_READ | CL_MAP_WRITE, 0, bench->bytes, 0, NULL, NULL,
                                        &code);
    if (bench_cl_failed(code, "clEnqueueMapBuffer"))
        return false;
    memset(bench->host[i], 0, bench->bytes);
    bench->mems[i] = clCreateBuffer(bench->context, flags[i], bench->bytes, NULL, &code);
    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool set_args(struct bench_cl *bench, const struct work_shape *shape)
{
    const struct work_params params = work_params_of(shape);
    const cl_int columns = (cl_int)shape->columns, rows = (cl_int)shape->rows;
    cl_int code = clSetKernelArg(bench->kernel, 0, sizeof(cl_mem), &bench->mems[IN]);
    code |= clSetKernelArg(bench->kernel, 1, sizeof(cl_mem), &bench->mems[OUT]);
    code |= clSetKernelArg(bench->kernel, 2, sizeof columns, &columns);
    code |= clSetKernelArg(bench->kernel, 3, sizeof rows, &rows);
    code |= clSetKernelArg(bench->kernel, 4, sizeof params.pitch, &params.pitch);
    code |= clSetKernelArg(bench->kernel, 5, sizeof params.work, &params.work);
    code |= clSetKernelArg(bench->kernel, 6, sizeof params.zero, &params.zero);
    return !bench_cl_failed(code, "clSetKernelArg");
}

/* The host owns the buffers between frames: the input to fill, the output to read. */
static cl_int map_buffers(struct bench_cl *bench, cl_event *last)
{
    cl_int code;
    bench->host[IN] = clEnqueueMapBuffer(bench->queue, bench->mems[IN], CL_FALSE, CL_MAP_WRITE, 0,
                                         bench->bytes, 0, NULL, NULL, &code);
    if (code)
        return code;
    bench->host[OUT] = clEnqueueMapBuffer(bench->queue, bench->mems[OUT], CL_FALSE, CL_MAP_READ, 0,
                                          bench->bytes, 0, NULL, last, &code);
    bench->mapped = code == CL_SUCCESS;
    return code;
}

static cl_int unmap_buffers(struct bench_cl *bench)
{
    bench->mapped = false;
    cl_int code = clEnqueueUnmapMemObject(bench->queue, bench->mems[IN], bench->host[IN], 0, NULL,
                                          NULL);
    return code ? code
                : clEnqueueUnmapMemObject(bench->queue, bench->mems[OUT], bench->host[OUT], 0, NULL,
                                          NULL);
}

struct bench_cl *bench_cl_create(const struct cox_device_info *info, const struct work_shape *shape)
{
    struct bench_cl *bench = calloc(1, sizeof *bench);
    if (!bench)
        return bench_fail("out of memory"), NULL;
    bench->staged = info->mode == COX_MODE_STAGED;
    bench->bytes = shape->rows * shape->pitch_bytes;
    bench->local[0] = WORK_LOCAL_COLUMNS;
    bench->local[1] = 1;
    bench->global[0] = (shape->columns + WORK_LOCAL_COLUMNS - 1) / WORK_LOCAL_COLUMNS *
                       WORK_LOCAL_COLUMNS;
    bench->global[1] = shape->rows;
    bench->has_sem = sem_init(&bench->done, 0, 0) == 0;
    cl_int code;
    if (!bench_cl_find_device(info, &bench->device))
        goto fail;
    bench->context = clCreateContext(NULL, 1, &bench->device, NULL, NULL, &code);
    if (bench_cl_failed(code, "clCreateContext"))
        goto fail;
    bench->queue = clCreateCommandQueue(bench->context, bench->device, 0, &code);
    if (bench_cl_failed(code, "clCreateCommandQueue") || !build(bench))
        goto fail;
    for (int i = 0; i < BUFFERS; i++)
        if (!(bench->staged ? make_staged(bench, i) : make_wrapped(bench, i)))
            goto fail;
    if (!set_args(bench, shape))
        goto fail;
    if (!bench->staged && (bench_cl_failed(map_buffers(bench, NULL), "clEnqueueMapBuffer") ||
                           bench_cl_failed(clFinish(bench->queue), "clFinish")))
        goto fail;
    return bench;

fail:
    bench_cl_destroy(&bench);
    return NULL;
}

void bench_cl_destroy(struct bench_cl **out)
{
    struct bench_cl *bench = *out;
    if (!bench)
        return;
    *out = NULL;
    if (bench->mapped)
        unmap_buffers(bench);
    for (int i = 0; i < BUFFERS; i++)
        if (bench->pinned[i] && bench->host[i])
            clEnqueueUnmapMemObject(bench->queue, bench->pinned[i], bench->host[i], 0, NULL, NULL);
    if (bench->queue)
        clFinish(bench->queue);
    for (int i = 0; i < BUFFERS; i++) {
        if (bench->mems[i])
            clReleaseMemObject(bench->mems[i]);
        if (bench->pinned[i])
            clReleaseMemObject(bench->pinned[i]);
        free(bench->allocated[i]);
    }
    if (bench->kernel)
        clReleaseKernel(bench->kernel);
    if (bench->program)
        clReleaseProgram(bench->program);
    if (bench->queue)
        clReleaseCommandQueue(bench->queue);
    if (bench->context)
        clReleaseContext(bench->context);
    if (bench->has_sem)
        sem_destroy(&bench->done);
    free(bench);
}

float *bench_cl_input(struct bench_cl *bench)
{
    return bench->host[IN];
}

const float *bench_cl_output(struct bench_cl *bench)
{
    return bench->host[OUT];
}

bool bench_cl_has(const struct bench_cl *bench, enum bench_cl_form form)
{
    return form == BENCH_CL_CALLBACK ? bench->has_sem
           : form == BENCH_CL_LEAN   ? !bench->staged
                                     : true;
}

const char *bench_cl_describe(const struct bench_cl *bench, enum bench_cl_form form)
{
    switch (form) {
    case BENCH_CL_FINISH:
        return bench->staged ? "write, kernel, read, flush, clFinish"
                             : "unmap, kernel, map, flush, clFinish";
    case BENCH_CL_CALLBACK:
        return bench->staged ? "write, kernel, read, flush, event callback wakes the thread"
                             : "unmap, kernel, map, flush, event callback wakes the thread";
    default:
        return "kernel, flush, clFinish: no mapping, which the standard does not allow";
    }
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
    struct bench_cl *bench = user;
    (void)event;
    (void)status;
    bench->callback_ns = now_ns();
    sem_post(&bench->done);
}

static cl_int enqueue(struct bench_cl *bench, enum bench_cl_form form, cl_event *last)
{
    cl_int code = CL_SUCCESS;
    bool maps = !bench->staged && form != BENCH_CL_LEAN;
    if (bench->staged)
        code = clEnqueueWriteBuffer(bench->queue, bench->mems[IN], CL_FALSE, 0, bench->bytes,
                                    bench->host[IN], 0, NULL, NULL);
    else if (maps)
        code = unmap_buffers(bench);
    if (!code)
        code = clEnqueueNDRangeKernel(bench->queue, bench->kernel, 2, NULL, bench->global,
                                      bench->local, 0, NULL, NULL);
    if (code)
        return code;
    if (bench->staged)
        return clEnqueueReadBuffer(bench->queue, bench->mems[OUT], CL_FALSE, 0, bench->bytes,
                                   bench->host[OUT], 0, NULL, last);
    return maps ? map_buffers(bench, last) : CL_SUCCESS;
}

struct bench_cl_times bench_cl_frame(struct bench_cl *bench, enum bench_cl_form form)
{
    struct bench_cl_times times = {0};
    cl_event last = NULL;
    uint64_t begin = now_ns();
    cl_int code = enqueue(bench, form, form == BENCH_CL_CALLBACK ? &last : NULL);
    if (form == BENCH_CL_CALLBACK) {
        if (!code)
            code = clSetEventCallback(last, CL_COMPLETE, on_complete, bench);
        if (!code)
            code = clFlush(bench->queue);
        while (!code && sem_wait(&bench->done) != 0) { /* interrupted by a signal */
        }
    } else {
        if (!code)
            code = clFlush(bench->queue);
        if (!code)
            code = clFinish(bench->queue);
    }
    times.visible_ns = now_ns() - begin;
    if (form == BENCH_CL_CALLBACK)
        times.callback_ns = bench->callback_ns - begin;
    if (last)
        clReleaseEvent(last);
    if (bench_cl_failed(code, "a frame"))
        return (struct bench_cl_times){0};
    return times;
}

/* Nanoseconds of one copy by its event's profile; 0 = failed. */
static double copy_ns(cl_command_queue queue, cl_mem mem, void *host, size_t bytes, bool in)
{
    cl_event event;
    cl_ulong start = 0, end = 0;
    cl_int code = in ? clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, bytes, host, 0, NULL, &event)
                     : clEnqueueReadBuffer(queue, mem, CL_FALSE, 0, bytes, host, 0, NULL, &event);
    if (bench_cl_failed(code, in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer"))
        return 0;
    bool good = !bench_cl_failed(clFinish(queue), "clFinish") &&
                !clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start,
                                         NULL) &&
                !clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    clReleaseEvent(event);
    return good && end > start ? (double)(end - start) : 0;
}

bool bench_cl_link(const struct cox_device_info *info, size_t bytes, uint32_t times,
                   struct bench_cl_link *link)
{
    struct bench_cl bench = {.bytes = bytes};
    double *ns[2] = {calloc(times, sizeof(double)), calloc(times, sizeof(double))};
    cl_int code = CL_SUCCESS;
    bool good = ns[0] && ns[1] && bench_cl_find_device(info, &bench.device);
    if (good) {
        bench.context = clCreateContext(NULL, 1, &bench.device, NULL, NULL, &code);
        good = !bench_cl_failed(code, "clCreateContext");
    }
    if (good) {
        bench.queue = clCreateCommandQueue(bench.context, bench.device, CL_QUEUE_PROFILING_ENABLE,
                                           &code);
        good = !bench_cl_failed(code, "clCreateCommandQueue") && make_staged(&bench, IN);
    }
    for (uint32_t i = 0; good && i < 2 * (times + 1); i++) { /* the first of each is not counted */
        double one = copy_ns(bench.queue, bench.mems[IN], bench.host[IN], bytes, i % 2 == 0);
        if (i >= 2)
            ns[i % 2][i / 2 - 1] = one;
        good = one > 0;
    }
    if (good) {
        link->write_gbs = (double)bytes / figures_quantile(ns[0], times, 0.5);
        link->read_gbs = (double)bytes / figures_quantile(ns[1], times, 0.5);
    }
    if (bench.queue && bench.pinned[IN] && bench.host[IN])
        clEnqueueUnmapMemObject(bench.queue, bench.pinned[IN], bench.host[IN], 0, NULL, NULL);
    if (bench.queue)
        clFinish(bench.queue);
    if (bench.mems[IN])
        clReleaseMemObject(bench.mems[IN]);
    if (bench.pinned[IN])
        clReleaseMemObject(bench.pinned[IN]);
    if (bench.queue)
        clReleaseCommandQueue(bench.queue);
    if (bench.context)
        clReleaseContext(bench.context);
    free(ns[0]);
    free(ns[1]);
    return good;
}
