/* cox-bench resident: frames that are made and used on one device. The application's kernels make
 * each frame's input and use its output, in memory objects of that device. In between, a frame runs
 * through a session, or through a kernel launch in hand-written OpenCL. Each device with its own
 * memory has a row. Runs take turns.
 *
 * Hand-written: three kernels a frame on one in-order queue. With the library, the application's
 * queue has the first and the last kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl.h"
#include "commands.h"
#include "common/now.h"
#include "common/quantiles.h"
#include "device_list.h"
#include "json_members.h"
#include "lines.h"
#include "message.h"
#include "open_runtime.h"
#include "session.h"

#include <coxswain/opencl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, FRAMES = 600, LEAD = 16, IN_FLIGHT = 3, WIDTH = 3840, HEIGHT = 2160 };
enum { LOCAL_COLUMNS = 64, IN_BYTES = 8, OUT_BYTES = 4 }; /* bytes of a pixel */

static const double bar = 0.98;

/* The frame's kernel, and those of the application. One pixel for each work-item. */
static const char source[] =
    "kernel void map(global const ushort4 *in, global uchar4 *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    uint4 v = convert_uint4(in[y * columns + x]);\n"
    "    for (int i = 0; i < 24; i++) v = v * 3u + (v >> 7);\n"
    "    out[y * columns + x] = convert_uchar4(v & 255u);\n"
    "}\n";
static const char own_source[] =
    "kernel void make(global ushort4 *in, uint seed, int columns)\n"
    "{\n"
    "    uint at = get_global_id(1) * columns + get_global_id(0);\n"
    "    in[at] = (ushort4)(at, at * 3u + seed, at >> 8, seed);\n"
    "}\n"
    "kernel void use(global const uchar4 *out, global uint *sum, int columns)\n"
    "{\n"
    "    uint at = get_global_id(1) * columns + get_global_id(0);\n"
    "    uint4 v = convert_uint4(out[at]);\n"
    "    sum[at] = sum[at] * 31u + v.x + v.y * 7u + v.z * 11u + v.w * 13u;\n"
    "}\n";

static const struct cox_argument arguments[] = {{.name = "out", .writes_all = true}, {0}};
static const struct cox_pass passes[] = {{.source = source, .arguments = arguments}, {0}};

/* The application's objects on one device. `make`, `use` and `map` are kernels. */
struct resident {
    cox_runtime *runtime;
    uint32_t width, height, frame_count, in_flight, slots;
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_program own, frames;
    cl_kernel make, use, map;
    cl_mem in[COX_IN_FLIGHT_MAX + 1], out[COX_IN_FLIGHT_MAX + 1], sum;
    cox_buffer *inputs[COX_IN_FLIGHT_MAX + 1], *outputs[COX_IN_FLIGHT_MAX + 1];
    cl_event made[COX_IN_FLIGHT_MAX + 1]; /* by slot */
    cox_session *session;
    sem_t done; /* a count of frames */
    bool failed;
};

/* --- objects --- */

static bool build(struct resident *r, const char *text, cl_program *program)
{
    cl_int code;
    *program = clCreateProgramWithSource(r->context, 1, &text, NULL, &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource"))
        return false;

    return !bench_cl_failed(clBuildProgram(*program, 1, &r->device, "", NULL, NULL),
                            "clBuildProgram");
}

static bool make_kernel(cl_program program, const char *name, cl_kernel *kernel)
{
    cl_int code;
    *kernel = clCreateKernel(program, name, &code);
    return !bench_cl_failed(code, "clCreateKernel");
}

static bool make_object(const struct resident *r, size_t pixel_bytes, cl_mem *object)
{
    cl_int code;
    *object = clCreateBuffer(r->context, CL_MEM_READ_WRITE,
                             (size_t)r->width * r->height * pixel_bytes, NULL, &code);
    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool make_frames(struct resident *r, uint32_t device)
{
    for (uint32_t s = 0; s < r->slots; s++) {
        if (!make_object(r, IN_BYTES, &r->in[s]) || !make_object(r, OUT_BYTES, &r->out[s]))
            return false;

        cox_status status = cox_opencl_buffer(r->runtime, device, r->in[s], NULL, NULL, NULL,
                                              &r->inputs[s]);
        if (status == COX_OK)
            status = cox_opencl_buffer(r->runtime, device, r->out[s], NULL, NULL, NULL,
                                       &r->outputs[s]);
        if (!bench_good(status, "a buffer"))
            return false;
    }

    return make_object(r, OUT_BYTES, &r->sum);
}

static bool make_session(struct resident *r, uint32_t device)
{
    const struct bench_device_list list = bench_device_list(&device, 1);
    const struct cox_session_params params = {.columns = r->width,
                                              .rows = r->height,
                                              .passes = passes,
                                              .devices = list.text,
                                              .in_flight = r->in_flight,
                                              .no_profile = true};

    return bench_good(bench_session_create(r->runtime, &params, &r->session), "session");
}

static bool open_device(struct resident *r, uint32_t device)
{
    cl_int code;
    if (!bench_good(cox_opencl_device(r->runtime, device, &r->context, &r->device), "device"))
        return false;

    r->queue = clCreateCommandQueue(r->context, r->device, 0, &code);
    return !bench_cl_failed(code, "clCreateCommandQueue") && build(r, source, &r->frames) &&
           build(r, own_source, &r->own) && make_kernel(r->frames, "map", &r->map) &&
           make_kernel(r->own, "make", &r->make) && make_kernel(r->own, "use", &r->use) &&
           make_frames(r, device) && make_session(r, device);
}

static void close_device(struct resident *r)
{
    bench_session_destroy(&r->session);
    if (r->queue)
        clFinish(r->queue);

    for (uint32_t s = 0; s < r->slots; s++) {
        cox_buffer_destroy(&r->inputs[s]);
        cox_buffer_destroy(&r->outputs[s]);
        BENCH_CL_RELEASE(Event, r->made[s]);
        BENCH_CL_RELEASE(MemObject, r->in[s]);
        BENCH_CL_RELEASE(MemObject, r->out[s]);
    }

    BENCH_CL_RELEASE(MemObject, r->sum);
    BENCH_CL_RELEASE(Kernel, r->make);
    BENCH_CL_RELEASE(Kernel, r->use);
    BENCH_CL_RELEASE(Kernel, r->map);
    BENCH_CL_RELEASE(Program, r->own);
    BENCH_CL_RELEASE(Program, r->frames);
    BENCH_CL_RELEASE(CommandQueue, r->queue);
}

/* --- the application's kernels --- */

static cl_int launch(const struct resident *r, cl_kernel kernel, cl_event *event)
{
    const size_t local[] = {LOCAL_COLUMNS, 1};
    const size_t global[] = {r->width, r->height};
    const bool whole = r->width % LOCAL_COLUMNS == 0;

    return clEnqueueNDRangeKernel(r->queue, kernel, 2, NULL, global, whole ? local : NULL, 0, NULL,
                                  event);
}

static cl_int enqueue_make(const struct resident *r, uint32_t slot, uint32_t frame, cl_event *event)
{
    const cl_int columns = (cl_int)r->width;
    const cl_uint seed = frame;
    cl_int code = clSetKernelArg(r->make, 0, sizeof(cl_mem), &r->in[slot]);

    code |= clSetKernelArg(r->make, 1, sizeof seed, &seed);
    code |= clSetKernelArg(r->make, 2, sizeof columns, &columns);
    return code ? code : launch(r, r->make, event);
}

static cl_int enqueue_use(const struct resident *r, uint32_t slot, cl_event *event)
{
    const cl_int columns = (cl_int)r->width;
    cl_int code = clSetKernelArg(r->use, 0, sizeof(cl_mem), &r->out[slot]);

    code |= clSetKernelArg(r->use, 1, sizeof(cl_mem), &r->sum);
    code |= clSetKernelArg(r->use, 2, sizeof columns, &columns);
    return code ? code : launch(r, r->use, event);
}

static cl_int enqueue_map(const struct resident *r, uint32_t slot)
{
    const cl_int columns = (cl_int)r->width, rows = (cl_int)r->height;
    cl_int code = clSetKernelArg(r->map, 0, sizeof(cl_mem), &r->in[slot]);

    code |= clSetKernelArg(r->map, 1, sizeof(cl_mem), &r->out[slot]);
    code |= clSetKernelArg(r->map, 2, sizeof columns, &columns);
    code |= clSetKernelArg(r->map, 3, sizeof rows, &rows);
    return code ? code : launch(r, r->map, NULL);
}

/* --- the two ways --- */

/* Wait for an event of the slot, and release it. */
static cl_int wait_for(struct resident *r, uint32_t slot)
{
    if (!r->made[slot])
        return CL_SUCCESS;

    const cl_int code = clWaitForEvents(1, &r->made[slot]);
    clReleaseEvent(r->made[slot]);
    r->made[slot] = NULL;
    return code;
}

static bool run_hand(struct resident *r, uint32_t count)
{
    cl_int code = CL_SUCCESS;
    for (uint32_t f = 0; f < count && code == CL_SUCCESS; f++) {
        const uint32_t slot = f % r->slots;

        code = wait_for(r, slot);
        if (code == CL_SUCCESS)
            code = enqueue_make(r, slot, f, NULL);
        if (code == CL_SUCCESS)
            code = enqueue_map(r, slot);
        if (code == CL_SUCCESS)
            code = enqueue_use(r, slot, &r->made[slot]);
        if (code == CL_SUCCESS)
            code = clFlush(r->queue);
    }

    const cl_int end = clFinish(r->queue);
    for (uint32_t s = 0; s < r->slots; s++)
        wait_for(r, s);
    return !bench_cl_failed(code ? code : end, "a hand-written frame");
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct resident *r = user;
    (void)frame;
    r->failed |= status != COX_OK;
    sem_post(&r->done);
}

static void wait_done(struct resident *r)
{
    while (sem_wait(&r->done) != 0)
        ; /* interrupted by a signal */
}

static bool submit(struct resident *r, uint32_t frame)
{
    const uint32_t slot = frame % r->slots;
    if (bench_cl_failed(wait_for(r, slot), "making a frame"))
        return false;

    const struct cox_frame of = {.buffers = COX_BUFFERS(r->inputs[slot], r->outputs[slot])};
    return bench_good(cox_session_submit(r->session, &of, on_done, r), "submit");
}

/* The input of a frame is made while the frame before it is submitted. */
static bool run_library(struct resident *r, uint32_t count)
{
    bool good = true;
    uint32_t submitted = 0, used = 0;

    for (uint32_t f = 0; good && f < count; f++) {
        const uint32_t slot = f % r->slots;
        cl_int code = CL_SUCCESS;

        if (f >= r->slots) {
            wait_done(r);
            code = enqueue_use(r, used++ % r->slots, NULL);
        }
        if (code == CL_SUCCESS)
            code = enqueue_make(r, slot, f, &r->made[slot]);
        if (code == CL_SUCCESS)
            code = clFlush(r->queue);
        good = !bench_cl_failed(code, "a frame") && (f == 0 || submit(r, submitted++));
    }

    good = good && submit(r, submitted++);
    for (; used < submitted; used++) {
        wait_done(r);
        if (enqueue_use(r, used % r->slots, NULL))
            good = false;
    }

    clFinish(r->queue);
    return good && !r->failed;
}

/* --- measurement --- */

typedef bool run_fn(struct resident *r, uint32_t count);

/* Frames per second of a run, and a number that follows from all outputs. */
static bool measure(struct resident *r, run_fn *run, double *fps, uint32_t *digest)
{
    const size_t pixels = (size_t)r->width * r->height;
    const cl_uint zero = 0;
    uint32_t *sums = malloc(pixels * sizeof *sums);
    if (!sums)
        return bench_fail("out of memory");

    bool good = run(r, LEAD) &&
                !bench_cl_failed(clEnqueueFillBuffer(r->queue, r->sum, &zero, sizeof zero, 0,
                                                     pixels * sizeof zero, 0, NULL, NULL),
                                 "clEnqueueFillBuffer") &&
                !bench_cl_failed(clFinish(r->queue), "clFinish");

    const uint64_t begin = now_ns();
    good = good && run(r, r->frame_count);
    *fps = r->frame_count * 1e9 / (double)(now_ns() - begin);

    good = good && !bench_cl_failed(clEnqueueReadBuffer(r->queue, r->sum, CL_TRUE, 0,
                                                        pixels * sizeof *sums, sums, 0, NULL, NULL),
                                    "clEnqueueReadBuffer");
    *digest = 0;
    for (size_t i = 0; good && i < pixels; i++)
        *digest = *digest * 16777619u ^ sums[i];

    free(sums);
    return good;
}

static bool run_rounds(struct resident *r, double fps[2][ROUNDS], double *ratios)
{
    static run_fn *const runs[2] = {run_hand, run_library};
    uint32_t digests[2];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            const int way = (i + round) % 2;
            if (!measure(r, runs[way], &fps[way][round], &digests[way]))
                return false;
        }
        if (digests[0] != digests[1])
            return bench_fail("the outputs differ");
        ratios[round] = fps[1][round] / fps[0][round];
    }

    return true;
}

static bool run_device(const struct bench_options *options, struct json *json, cox_runtime *runtime,
                       uint32_t device, bool *met)
{
    double fps[2][ROUNDS], ratios[ROUNDS];
    struct cox_device_info info;
    struct resident r = {.runtime = runtime,
                         .width = bench_value(options->width, WIDTH),
                         .height = bench_value(options->height, HEIGHT),
                         .frame_count = bench_value(options->frames, FRAMES),
                         .in_flight = bench_value(options->in_flight, IN_FLIGHT)};
    r.slots = r.in_flight + 1;
    if (sem_init(&r.done, 0, 0))
        return bench_fail("cannot make a semaphore");

    const bool good = open_device(&r, device) && run_rounds(&r, fps, ratios);
    close_device(&r);
    sem_destroy(&r.done);
    if (!good)
        return false;

    cox_runtime_device_info(runtime, device, &info);
    const double ratio = quantile_of(ratios, ROUNDS, 0.5);
    const double hand = quantile_of(fps[0], ROUNDS, 0.5),
                 library = quantile_of(fps[1], ROUNDS, 0.5);
    *met &= ratio >= bar;
    if (options->json) {
        json_open_object(json, true);
        json_member_string(json, "device", info.name);
        json_member_number(json, "hand_written_fps", hand);
        json_member_number(json, "library_fps", library);
        json_member_number(json, "ratio", ratio);
        json_member_bool(json, "met", ratio >= bar);
        json_close_object(json);
        return true;
    }

    printf("%-40.40s hand-written %8.1f frames/s, library %8.1f: %.3f (%.3f-%.3f), bar %.2f: %s\n",
           info.name, hand, library, ratio, ratios[0], ratios[ROUNDS - 1], bar,
           bench_verdict(ratio >= bar));
    return true;
}

bool bench_resident(const struct bench_options *options, bool *met)
{
    cox_runtime *runtime = NULL;
    struct json json;
    uint32_t ran = 0;
    bool good = bench_open_runtime(options, options->arithmetic, &runtime);

    *met = true;
    if (good && options->json) {
        json_begin(&json, stdout);
        json_open_object(&json, false);
        json_member_array(&json, "devices", false);
    }
    for (uint32_t d = 0; good && d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        cox_runtime_device_info(runtime, d, &info);
        if (info.mode != COX_MODE_STAGED)
            continue;

        good = run_device(options, &json, runtime, d, met);
        ran++;
    }

    if (good && !ran)
        good = bench_fail("no device has its own memory (mode staged)");
    if (good && options->json) {
        json_close_array(&json);
        json_report_end(&json);
    }
    cox_runtime_destroy(&runtime);
    return good;
}
