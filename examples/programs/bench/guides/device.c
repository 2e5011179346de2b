/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "device.h"
#include "bench/message.h"
#include "common/now.h"
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT of OpenCL 3.0; the headers are used for 1.2. */
enum { DEVICE_COLLECTIVE = 0x1068 };

enum { COPY_NS_MOST = 10000000, WIDTH_LEAST = 512 };

/* --- Properties --- */

static void choose_size(struct guides_device *device, cl_bool unified, cl_ulong memory)
{
    device->width = 4096;
    device->height = 2048;
    if (device->quick) {
        device->width = 256;
        device->height = 128;
    } else if (!device->cpu && !unified && memory >= (cl_ulong)1 << 28) {
        /* A GPU with its own memory has larger caches. */
        device->width *= 2;
        device->height *= 2;
    }
}

static void find_properties(struct guides_device *device)
{
    char text[16384] = "";
    cl_bool yes = CL_FALSE, unified = CL_FALSE;
    cl_uint line = 0;
    cl_ulong memory = 0;
    cl_device_type type = 0;

    clGetDeviceInfo(device->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof text - 1, text, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, sizeof line, &line, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof memory, &memory, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    device->cpu = (type & CL_DEVICE_TYPE_CPU) && !(type & CL_DEVICE_TYPE_GPU);
    if (strncmp(text, "OpenCL ", 7) == 0)
        device->major = (uint32_t)strtoul(text + 7, NULL, 10);

    /* OpenCL 2.x always has collective functions, 3.0 only if the device says so. */
    if (device->major >= 3)
        clGetDeviceInfo(device->id, DEVICE_COLLECTIVE, sizeof yes, &yes, NULL);
    device->collective = device->major == 2 || yes;
    text[0] = '\0';
    clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, sizeof text - 1, text, NULL);
    device->subgroups = strstr(text, "cl_khr_subgroups") != NULL;
    device->line = 16;
    if (line >= sizeof(float))
        device->line = line / sizeof(float);
    choose_size(device, unified, memory);
}

/* --- Inputs --- */

/* Pseudo-random multiples of 2^-10 below 1. */
static void fill_input(struct guides_device *device)
{
    uint32_t state = 1;
    for (size_t i = 0; i < device->pixels; i++) {
        state = state * 1664525u + 1013904223u;
        device->input[i] = (float)(state >> 22) / 1024.0f;
    }
}

/* The Gaussian, and the recursion that approximates it (Young and van Vliet, 1995, equations 8 and
 * 11). */
static void fill_weights(struct guides_device *device)
{
    const double sigma = 4.0 / 3;
    double one[GUIDES_TAPS], sum = 0;

    for (int i = 0; i < GUIDES_TAPS; i++) {
        const int taps_before = GUIDES_TAPS / 2;
        const double from = i - taps_before;
        one[i] = exp(-from * from / (2 * sigma * sigma));
        sum += one[i];
    }

    for (int i = 0; i < GUIDES_TAPS; i++) {
        device->gauss[i] = (float)(one[i] / sum);
        for (int j = 0; j < GUIDES_TAPS; j++)
            device->gauss[GUIDES_TAPS * (1 + j) + i] = (float)(one[i] / sum * (one[j] / sum));
    }

    const double q = 3.97156 - 4.14554 * sqrt(1 - 0.26891 * sigma);
    const double b0 = 1.57825 + 2.44413 * q + 1.4281 * q * q + 0.422205 * q * q * q;
    const double b1 = 2.44413 * q + 2.85619 * q * q + 1.26661 * q * q * q;
    const double b2 = -(1.4281 * q * q + 1.26661 * q * q * q), b3 = 0.422205 * q * q * q;
    device->ratios[0] = (float)(1 - (b1 + b2 + b3) / b0);
    device->ratios[1] = (float)(b1 / b0);
    device->ratios[2] = (float)(b2 / b0);
    device->ratios[3] = (float)(b3 / b0);
    for (int i = 0; i < GUIDES_FILTER; i++)
        device->taps[i] = (float)(1 + i) / 128;
}

static bool make_buffer(struct guides_device *device, enum guides_buffer index, size_t count,
                        const float *content)
{
    cl_int code;

    device->buffers[index] = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                            count * sizeof(float), NULL, &code);
    if (bench_cl_failed(code, "clCreateBuffer"))
        return false;

    return !content ||
           !bench_cl_failed(clEnqueueWriteBuffer(device->queue, device->buffers[index], CL_TRUE, 0,
                                                 count * sizeof(float), content, 0, NULL, NULL),
                            "clEnqueueWriteBuffer");
}

static void make_image(struct guides_device *device)
{
    const cl_image_format format = {CL_R, CL_FLOAT};
    const cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                       .image_width = device->width,
                                       .image_height = device->height};
    const size_t from[3] = {0}, size[3] = {device->width, device->height, 1};
    cl_bool yes = CL_FALSE;
    cl_int code = CL_SUCCESS;

    clGetDeviceInfo(device->id, CL_DEVICE_IMAGE_SUPPORT, sizeof yes, &yes, NULL);
    if (!yes) {
        device->no_image = "no images";
        return;
    }

    if (device->info.compute_units != device->info.parent_units) {
        device->no_image = "no images on a sub-device, because PoCL 3.1 crashes";
        return;
    }

    cl_mem image = clCreateImage(device->context, CL_MEM_READ_ONLY, &format, &description, NULL,
                                 &code);
    if (!code)
        code = clEnqueueWriteImage(device->queue, image, CL_TRUE, from, size, 0, 0, device->input,
                                   0, NULL, NULL);
    if (code) {
        device->no_image = "no images of this size with one float per pixel";
        BENCH_CL_RELEASE(MemObject, image);
        image = NULL;
    }

    device->buffers[GUIDES_IMAGE] = image;
}

/* Time one run of a kernel in ns, by the profile (0 = no profile) and by the host's clock. */
static bool time_copy(struct guides_device *device, cl_kernel kernel, double *profile,
                      uint64_t *wall)
{
    const size_t global[2] = {device->width, device->height};
    cl_event event;
    uint64_t begin = now_ns();

    if (bench_cl_failed(clEnqueueNDRangeKernel(device->queue, kernel, 2, NULL, global, NULL, 0,
                                               NULL, &event),
                        "clEnqueueNDRangeKernel"))
        return false;

    bool good = !bench_cl_failed(clFinish(device->queue), "clFinish");
    *wall = now_ns() - begin;
    *profile = bench_cl_event_ns(event);
    clReleaseEvent(event);

    return good;
}

/* Choose sizes of work-groups. llvmpipe allows a kernel fewer work-items than it allows the
 * device. */
static void find_groups(struct guides_device *device, cl_kernel kernel)
{
    size_t items = 0;

    clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof items, &items,
                             NULL);
    if (items >= 256)
        device->tile = 16;
    else if (items >= 64)
        device->tile = 8;
    else if (items >= 16)
        device->tile = 4;
    else
        device->tile = 1;

    for (device->group = 256; device->group > items && device->group > 1;)
        device->group /= 2;
}

/* Run a first kernel. It shows how large work-groups may be, and whether the profile gives real
 * times: rusticl 22.3 reports one nanosecond for every kernel. */
static bool try_kernel(struct guides_device *device)
{
    const cl_int width = (cl_int)device->width, height = (cl_int)device->height;
    char why[240];
    double profile = 0;
    uint64_t wall = 0;
    cl_int code;
    cl_program program = guides_build(device->context, device->id, bench_text("edges.cl"),
                                      "-D TILE=1", why, sizeof why);

    if (!program)
        return bench_fail("%s: a copy: %s", device->info.name, why);

    cl_kernel kernel = clCreateKernel(program, "buffer_copy", &code);
    bool good = !bench_cl_failed(code, "clCreateKernel");
    if (good) {
        find_groups(device, kernel);
        code = clSetKernelArg(kernel, 0, sizeof(cl_mem), &device->buffers[GUIDES_IN]);
        code |= clSetKernelArg(kernel, 1, sizeof(cl_mem), &device->buffers[GUIDES_OUT]);
        code |= clSetKernelArg(kernel, 2, sizeof width, &width);
        code |= clSetKernelArg(kernel, 3, sizeof height, &height);
        good = !bench_cl_failed(code, "clSetKernelArg");
        device->copy_ns = UINT64_MAX;
        for (int i = 0; good && i < 3; i++) {
            good = time_copy(device, kernel, &profile, &wall);
            if (wall < device->copy_ns)
                device->copy_ns = wall;
        }
        clReleaseKernel(kernel);
    }

    clReleaseProgram(program);
    device->profiled = profile > 100 && profile <= (double)wall;

    return good;
}

static bool open_size(struct guides_device *device)
{
    cl_int code;

    /* The pixels of a padded input, and what a filter reads after the last one. */
    const size_t count = (size_t)(device->width + 2) * (device->height + 2) + GUIDES_TAIL;
    device->pixels = (size_t)device->width * device->height;
    for (device->log_pixels = 0; (size_t)1 << device->log_pixels < device->pixels;)
        device->log_pixels++;

    device->input = calloc(count, sizeof(float));
    device->expected = calloc(count, sizeof(float));
    device->result = calloc(count, sizeof(float));
    if (!device->input || !device->expected || !device->result)
        return bench_fail("out of memory");
    fill_input(device);
    fill_weights(device);
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (bench_cl_failed(code, "clCreateContext"))
        return false;
    device->queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE,
                                         &code);
    if (bench_cl_failed(code, "clCreateCommandQueue"))
        return false;
    if (!make_buffer(device, GUIDES_IN, count, device->input) ||
        !make_buffer(device, GUIDES_OUT, count, device->result) ||
        !make_buffer(device, GUIDES_THERE, count, device->result) ||
        !make_buffer(device, GUIDES_BETWEEN, count, device->result) ||
        !make_buffer(device, GUIDES_GAUSS, GUIDES_TAPS * (GUIDES_TAPS + 1), device->gauss) ||
        !make_buffer(device, GUIDES_RATIOS, 4, device->ratios) ||
        !make_buffer(device, GUIDES_STEPS, GUIDES_FILTER, device->taps))
        return false;

    make_image(device);

    return try_kernel(device);
}

bool guides_device_open(struct guides_device *device)
{
    device->copy_rate = device->add_rate = device->local_rate = NAN;
    if (!bench_cl_find_device(&device->info, &device->id))
        return false;
    find_properties(device);

    /* On slow devices the blurs of large planes would take minutes. */
    while (open_size(device)) {
        if (device->quick || device->copy_ns <= COPY_NS_MOST || device->width <= WIDTH_LEAST)
            return true;
        guides_device_close(device);
        device->width /= 2;
        device->height /= 2;
    }

    return false;
}

void guides_device_close(struct guides_device *device)
{
    if (device->queue)
        clFinish(device->queue);
    for (int i = 0; i < GUIDES_BUFFERS; i++)
        BENCH_CL_RELEASE(MemObject, device->buffers[i]);

    BENCH_CL_RELEASE(CommandQueue, device->queue);
    BENCH_CL_RELEASE(Context, device->context);
    memset(device->buffers, 0, sizeof device->buffers);
    device->queue = NULL;
    device->context = NULL;
    free(device->input);
    free(device->expected);
    free(device->result);
    device->input = device->expected = device->result = NULL;
}
