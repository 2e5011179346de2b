/* Experiments on the host's work: transfers, clocks, and first builds and launches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "common/now.h"
#include "launch.h"
#include "program.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nanoseconds since `begin`, or 0 if the call failed; the cell then says so. */
static double time_since(uint64_t begin, struct guides_cell *cell, cl_int code, const char *call)
{
    const double ns = (double)(now_ns() - begin);

    if (guides_cell_failed(cell, code, call))
        return 0;

    return ns;
}

static bool same(const struct guides_run *run, uint32_t v, const float *result)
{
    const struct guides_device *device = run->device;
    run->result->cells[v].error = 0;
    return memcmp(result, device->input, device->pixels * sizeof *result) == 0 ||
           guides_cell_fail(&run->result->cells[v], GUIDES_WRONG, "values differ from those sent");
}

#define WAY(key_, name_, group_)                    \
    {                                               \
        .key = key_, .name = name_, .group = group_ \
    }

/* --- Transfers --- */

enum { PAGEABLE_WRITE, PINNED_WRITE, MAPPED_WRITE, PAGEABLE_READ, PINNED_READ, MAPPED_READ };
enum { ON_DEVICE, PINNED, MAPPED }; /* the run's buffers */

static const struct guides_variant transfers[] = {
    [PAGEABLE_WRITE] = WAY("write_pageable", "written from pageable memory", "to the device"),
    [PINNED_WRITE] = WAY("write_pinned", "written from pinned memory", "to the device"),
    [MAPPED_WRITE] = WAY("write_mapped", "mapped and filled by the host", "to the device"),
    [PAGEABLE_READ] = WAY("read_pageable", "read into pageable memory", "from the device"),
    [PINNED_READ] = WAY("read_pinned", "read into pinned memory", "from the device"),
    [MAPPED_READ] = WAY("read_mapped", "mapped and copied by the host", "from the device"),
};

static bool prepare_transfer(struct guides_run *run, uint32_t v)
{
    static const cl_mem_flags flags[] = {[ON_DEVICE] = CL_MEM_READ_WRITE,
                                         [PINNED] = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                         [MAPPED] = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR};
    struct guides_device *device = run->device;
    struct guides_cell *cell = &run->result->cells[v];
    const size_t bytes = device->pixels * sizeof(float);
    cl_int code;

    for (int m = 0; m <= MAPPED; m++)
        if (!run->mems[m]) {
            run->mems[m] = clCreateBuffer(device->context, flags[m], bytes, NULL, &code);
            if (guides_cell_failed(cell, code, "clCreateBuffer"))
                return false;
        }

    if (!run->host[PINNED]) {
        run->host[PINNED] = clEnqueueMapBuffer(device->queue, run->mems[PINNED], CL_TRUE,
                                               CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL,
                                               &code);
        if (guides_cell_failed(cell, code, "clEnqueueMapBuffer"))
            return false;
    }

    return true;
}

static cl_int map_and_copy(struct guides_run *run, bool write)
{
    const struct guides_device *device = run->device;
    const size_t bytes = device->pixels * sizeof(float);
    const cl_map_flags flags = write ? CL_MAP_WRITE : CL_MAP_READ;
    cl_int code;
    void *host = clEnqueueMapBuffer(device->queue, run->mems[MAPPED], CL_TRUE, flags, 0, bytes, 0,
                                    NULL, NULL, &code);

    if (code)
        return code;
    if (write)
        memcpy(host, device->input, bytes);
    else
        memcpy(device->result, host, bytes);

    return clEnqueueUnmapMemObject(device->queue, run->mems[MAPPED], host, 0, NULL, NULL);
}

static cl_int copy(struct guides_run *run, int mem, void *host, bool write)
{
    const struct guides_device *device = run->device;
    const size_t bytes = device->pixels * sizeof(float);

    if (write)
        return clEnqueueWriteBuffer(device->queue, run->mems[mem], CL_TRUE, 0, bytes, host, 0, NULL,
                                    NULL);

    return clEnqueueReadBuffer(device->queue, run->mems[mem], CL_TRUE, 0, bytes, host, 0, NULL,
                               NULL);
}

static double sample_transfer(struct guides_run *run, uint32_t v)
{
    struct guides_device *device = run->device;
    uint64_t begin = now_ns();
    cl_int code = CL_SUCCESS;

    switch (v) {
    case PAGEABLE_WRITE:
        code = copy(run, ON_DEVICE, device->input, true);
        break;
    case PINNED_WRITE:
        code = copy(run, ON_DEVICE, run->host[PINNED], true);
        break;
    case PAGEABLE_READ:
        code = copy(run, ON_DEVICE, device->result, false);
        break;
    case PINNED_READ:
        code = copy(run, ON_DEVICE, run->host[PINNED], false);
        break;
    default:
        code = map_and_copy(run, v == MAPPED_WRITE);
    }
    if (!code)
        code = clFinish(device->queue);

    return time_since(begin, &run->result->cells[v], code, "a transfer");
}

/* The target of the transfer holds other data before it. Afterwards all buffers hold the input. */
static bool check_transfer(struct guides_run *run, uint32_t v)
{
    struct guides_device *device = run->device;
    struct guides_cell *cell = &run->result->cells[v];
    const size_t bytes = device->pixels * sizeof(float);
    const bool write = v <= MAPPED_WRITE;
    int mem = ON_DEVICE;
    float *before = device->input, *arrived = device->result;

    if (v == MAPPED_WRITE || v == MAPPED_READ)
        mem = MAPPED;
    memcpy(run->host[PINNED], device->input, bytes);
    memset(device->result, 0xff, bytes);
    if (write)
        before = device->result;
    if (guides_cell_failed(cell, copy(run, mem, before, true), "clEnqueueWriteBuffer"))
        return false;
    if (v == PINNED_READ) {
        arrived = run->host[PINNED];
        memset(arrived, 0xff, bytes);
    }

    if (sample_transfer(run, v) <= 0)
        return false;
    if (write &&
        guides_cell_failed(cell, copy(run, mem, device->result, false), "clEnqueueReadBuffer"))
        return false;

    return same(run, v, arrived);
}

/* --- Clocks --- */

enum { BY_PROFILE = 0, WAITED = 1000 /* other numbers: launches before the host waits */ };

#define COPIES(key_, name_, number_)                                                \
    {                                                                               \
        .key = key_, .name = name_, .group = "copy kernel", .number = number_,      \
        .options = "-D VEC=4 -D CHAINS=1 -D N=0", .launches = {                     \
            {.kernel = "ceiling", .args = "io", .local = {GUIDES_GROUP}, .each = 4} \
        }                                                                           \
    }
#define EMPTIES(key_, name_, number_)                                           \
    {                                                                           \
        .key = key_, .name = name_, .group = "empty kernel", .number = number_, \
        .options = "-D VEC=4 -D CHAINS=1 -D N=0", .launches = {                 \
            {.kernel = "empty", .args = "o", .region = GUIDES_COLUMNS}          \
        }                                                                       \
    }

static const struct guides_variant clocks[] = {
    COPIES("copy_profile", "profile, start to end", BY_PROFILE),
    COPIES("copy_wall", "host, one launch and wait", 1),
    COPIES("copy_wall_20", "host, mean of 20 launches", 20),
    EMPTIES("empty_profile", "profile, start to end", BY_PROFILE),
    EMPTIES("empty_waited", "profile, submission to start", WAITED),
    EMPTIES("empty_wall", "host, one launch and wait", 1),
    EMPTIES("empty_wall_100", "host, mean of 100 launches", 100),
};

static size_t expect_input(const struct guides_device *device, const struct guides_variant *variant,
                           float *expected)
{
    (void)variant;
    memcpy(expected, device->input, device->pixels * sizeof *expected);
    return device->pixels;
}

static bool prepare_clock(struct guides_run *run, uint32_t v)
{
    const uint32_t number = clocks[v].number;
    if (!run->device->profiled && (number == BY_PROFILE || number == WAITED))
        return guides_cell_fail(&run->result->cells[v], GUIDES_NOT_OFFERED,
                                "the device reports no kernel times");
    return guides_prepare(run, v);
}

static bool check_clock(struct guides_run *run, uint32_t v)
{
    if (strcmp(clocks[v].launches[0].kernel, "empty") == 0)
        return guides_launch(run, v, 1, true) > 0;

    return guides_check(run, v);
}

static double sample_wait(struct guides_run *run, uint32_t v)
{
    const struct guides_prepared *prepared = &run->prepared[v];
    struct guides_cell *cell = &run->result->cells[v];
    cl_ulong submitted = 0, started = 0;
    cl_event event;

    if (guides_cell_failed(cell,
                           clEnqueueNDRangeKernel(run->device->queue, prepared->kernels[0], 1, NULL,
                                                  prepared->global[0], NULL, 0, NULL, &event),
                           "clEnqueueNDRangeKernel"))
        return 0;

    cl_int code = clFinish(run->device->queue);
    if (!code)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, sizeof submitted,
                                       &submitted, NULL);
    if (!code)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof started, &started,
                                       NULL);
    clReleaseEvent(event);
    if (guides_cell_failed(cell, code, "clGetEventProfilingInfo"))
        return 0;
    if (started <= submitted)
        return 1;

    return (double)(started - submitted);
}

static double sample_clock(struct guides_run *run, uint32_t v)
{
    const uint32_t number = clocks[v].number;

    if (number == WAITED)
        return sample_wait(run, v);
    if (number == BY_PROFILE)
        return guides_launch(run, v, 1, false);

    return guides_launch(run, v, number, true) / number;
}

static void say_clocks(const struct guides_device *device,
                       const struct guides_experiment *experiment, const struct guides_cell *cells,
                       char *text, size_t bytes)
{
    const struct guides_cell *profile = &cells[0], *wall = &cells[1], *empty = &cells[5],
                             *many = &cells[6];
    char one[32], other[32];

    (void)device;
    (void)experiment;
    if (profile->status == GUIDES_MEASURED && wall->status == GUIDES_MEASURED)
        guides_say(text, bytes,
                   "Of %s µs that the host waits for a copy, the profile "
                   "reports %s. ",
                   guides_number(wall->value.median, one, sizeof one),
                   guides_number(profile->value.median, other, sizeof other));

    if (empty->status == GUIDES_MEASURED && many->status == GUIDES_MEASURED)
        guides_say(text, bytes,
                   "One launch with a wait costs %s µs; one of 100 launches with one "
                   "wait costs %s µs. ",
                   guides_number(empty->value.median, one, sizeof one),
                   guides_number(many->value.median, other, sizeof other));
}

/* --- First times --- */

enum {
    BUILD_NEW,
    BUILD_AGAIN,
    BUILD_BINARY,
    LAUNCH_FIRST,
    LAUNCH_SECOND,
    LAUNCH_WARM,
    BUFFER_FIRST,
    BUFFER_SECOND
};
enum { WARM = 10, NEW_BUFFER = 0 };

static const struct guides_variant firsts[] = {
    [BUILD_NEW] = WAY("build_new", "a new source", "build"),
    [BUILD_AGAIN] = WAY("build_again", "the same source again", "build"),
    [BUILD_BINARY] = WAY("build_binary", "from a binary", "build"),
    [LAUNCH_FIRST] = WAY("launch_first", "first launch", "kernel"),
    [LAUNCH_SECOND] = WAY("launch_second", "second launch", "kernel"),
    [LAUNCH_WARM] = WAY("launch_warm", "mean of ten more", "kernel"),
    [BUFFER_FIRST] = WAY("buffer_first", "created, and first written by a kernel", "buffer"),
    [BUFFER_SECOND] = WAY("buffer_second", "written again", "buffer"),
};

static cl_program build_source(struct guides_run *run, struct guides_cell *cell)
{
    char options[48];

    snprintf(options, sizeof options, "-D NONCE=0x%xu", (unsigned)run->nonce);
    cl_program program = guides_build(run->device->context, run->device->id, bench_text("cold.cl"),
                                      options, cell->why, sizeof cell->why);
    if (!program)
        cell->status = GUIDES_FAILED;

    return program;
}

static double sample_new(struct guides_run *run, struct guides_cell *cell)
{
    cl_int code;

    BENCH_CL_RELEASE(Kernel, run->kernel);
    BENCH_CL_RELEASE(Program, run->program);
    run->kernel = NULL;
    run->nonce = run->nonce * 6364136223846793005u + 1442695040888963407u;
    uint64_t begin = now_ns();
    run->program = build_source(run, cell);
    if (!run->program)
        return 0;

    double ns = (double)(now_ns() - begin);
    run->kernel = clCreateKernel(run->program, "cold", &code);
    if (guides_cell_failed(cell, code, "clCreateKernel"))
        return 0;
    code = clSetKernelArg(run->kernel, 0, sizeof(cl_mem), &run->device->buffers[GUIDES_IN]);
    if (guides_cell_failed(cell, code, "clSetKernelArg"))
        return 0;

    return ns;
}

static double sample_again(struct guides_run *run, struct guides_cell *cell)
{
    uint64_t begin = now_ns();
    cl_program program = build_source(run, cell);
    double ns = (double)(now_ns() - begin);

    if (!program)
        return 0;
    clReleaseProgram(program);

    return ns;
}

static double sample_binary(struct guides_run *run, struct guides_cell *cell)
{
    const cl_device_id *id = &run->device->id;
    size_t bytes = 0;
    cl_int code = clGetProgramInfo(run->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
                                   NULL);
    unsigned char *binary = NULL;

    if (!code && bytes)
        binary = malloc(bytes);
    if (!binary) {
        guides_cell_fail(cell, GUIDES_NOT_OFFERED, "the driver gave no binary of the program");
        return 0;
    }

    code = clGetProgramInfo(run->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
    uint64_t begin = now_ns();
    cl_program program = NULL;
    if (!code)
        program = clCreateProgramWithBinary(run->device->context, 1, id, &bytes,
                                            (const unsigned char **)&binary, NULL, &code);
    if (program && !code)
        code = clBuildProgram(program, 1, id, NULL, NULL, NULL);
    double ns = time_since(begin, cell, code, "a program from a binary");

    BENCH_CL_RELEASE(Program, program);
    free(binary);
    return ns;
}

static double sample_launches(struct guides_run *run, struct guides_cell *cell, cl_mem out,
                              uint32_t count)
{
    const size_t global = run->device->pixels, local = run->device->group;
    uint64_t begin = now_ns();
    cl_int code = clSetKernelArg(run->kernel, 1, sizeof out, &out);

    for (uint32_t i = 0; i < count && !code; i++)
        code = clEnqueueNDRangeKernel(run->device->queue, run->kernel, 1, NULL, &global, &local, 0,
                                      NULL, NULL);
    if (!code)
        code = clFinish(run->device->queue);

    return time_since(begin, cell, code, "a launch") / count;
}

static double sample_buffer(struct guides_run *run, struct guides_cell *cell)
{
    cl_int code;

    BENCH_CL_RELEASE(MemObject, run->mems[NEW_BUFFER]);
    uint64_t begin = now_ns();
    run->mems[NEW_BUFFER] = clCreateBuffer(run->device->context, CL_MEM_READ_WRITE,
                                           run->device->pixels * sizeof(float), NULL, &code);
    if (guides_cell_failed(cell, code, "clCreateBuffer") ||
        sample_launches(run, cell, run->mems[NEW_BUFFER], 1) <= 0)
        return 0;

    return (double)(now_ns() - begin);
}

static double sample_first(struct guides_run *run, uint32_t v)
{
    struct guides_cell *cell = &run->result->cells[v];

    if (v != BUILD_NEW && !run->kernel) {
        guides_cell_fail(cell, GUIDES_FAILED, "the build failed");
        return 0;
    }

    switch (v) {
    case BUILD_NEW:
        return sample_new(run, cell);
    case BUILD_AGAIN:
        return sample_again(run, cell);
    case BUILD_BINARY:
        return sample_binary(run, cell);
    case BUFFER_FIRST:
        return sample_buffer(run, cell);
    case BUFFER_SECOND:
        return sample_launches(run, cell, run->mems[NEW_BUFFER], 1);
    default:
        return sample_launches(run, cell, run->device->buffers[GUIDES_OUT],
                               v == LAUNCH_WARM ? WARM : 1);
    }
}

static bool prepare_first(struct guides_run *run, uint32_t v)
{
    return v != BUFFER_SECOND || run->mems[NEW_BUFFER] ||
           guides_cell_fail(&run->result->cells[v], GUIDES_FAILED, "no buffer was created");
}

/* Check the output of the kernel from the newest source. */
static bool check_first(struct guides_run *run, uint32_t v)
{
    const struct guides_device *device = run->device;
    struct guides_cell *cell = &run->result->cells[v];
    const size_t bytes = device->pixels * sizeof(float);
    cl_mem mem = device->buffers[GUIDES_OUT];

    if (v >= BUFFER_FIRST)
        mem = run->mems[NEW_BUFFER];
    if (sample_first(run, v) <= 0)
        return false;
    if (v == BUILD_NEW && sample_launches(run, cell, mem, 1) <= 0)
        return false;
    if (v == BUILD_AGAIN || v == BUILD_BINARY || v == BUFFER_FIRST)
        return true;
    if (guides_cell_failed(cell,
                           clEnqueueReadBuffer(device->queue, mem, CL_TRUE, 0, bytes,
                                               device->result, 0, NULL, NULL),
                           "clEnqueueReadBuffer"))
        return false;

    for (size_t i = 0; i < device->pixels; i++) {
        uint32_t value;
        memcpy(&value, &device->result[i], sizeof value);
        value ^= (uint32_t)run->nonce;
        memcpy(&device->result[i], &value, sizeof value);
    }

    return same(run, v, device->result);
}

static void say_firsts(const struct guides_device *device,
                       const struct guides_experiment *experiment, const struct guides_cell *cells,
                       char *text, size_t bytes)
{
    char first[32], warm[32];

    (void)device;
    (void)experiment;
    if (cells[BUILD_NEW].status == GUIDES_MEASURED &&
        cells[LAUNCH_FIRST].status == GUIDES_MEASURED &&
        cells[LAUNCH_WARM].status == GUIDES_MEASURED)
        guides_say(
            text, bytes,
            "A new kernel takes %s ms to the end of its first launch; a warm launch takes %s ms. ",
            guides_number(cells[BUILD_NEW].value.median + cells[LAUNCH_FIRST].value.median, first,
                          sizeof first),
            guides_number(cells[LAUNCH_WARM].value.median, warm, sizeof warm));
}

const struct guides_experiment guides_host[] = {
    {.key = "transfers",
     .title = "Transfers: pinned against pageable",
     .guide = "Let the driver allocate host memory (CL_MEM_ALLOC_HOST_PTR): it is pinned, so "
              "the device copies it directly. Devices that share the host's memory need no "
              "copy: map it. All pixels once, by the host's clock.",
     .unit = GUIDES_GBS,
     .work = sizeof(float),
     .prepare = prepare_transfer,
     .sample = sample_transfer,
     .check = check_transfer,
     GUIDES_VARIANTS(transfers)},
    {.key = "clocks",
     .title = "Profile against wall clock",
     .guide = "Time kernels with events, because the host's clock includes the launch. "
              "Enqueue many launches before one wait.",
     .source = "ceilings.cl",
     .unit = GUIDES_US,
     .no_contest = true,
     .expect = expect_input,
     .prepare = prepare_clock,
     .sample = sample_clock,
     .check = check_clock,
     .finding = say_clocks,
     GUIDES_VARIANTS(clocks)},
    {.key = "cold",
     .title = "Cold against warm",
     .guide = "Build once and keep binaries. Do not measure the first launch. Reuse "
              "buffers. All by the host's clock.",
     .unit = GUIDES_MS,
     .in_order = true,
     .prepare = prepare_first,
     .sample = sample_first,
     .check = check_first,
     .finding = say_firsts,
     GUIDES_VARIANTS(firsts)},
    {0},
};
