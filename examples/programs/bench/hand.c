/* The same frame in hand-written OpenCL, which the library is compared with. It is written to be
 * fast:
 *   - It creates buffers, kernel arguments and the queue once.
 *   - It profiles nothing.
 *   - A frame takes as few calls as the standard allows.
 *
 * A device that works on host memory has two page-aligned allocations. They are wrapped with
 * CL_MEM_USE_HOST_PTR and mapped while the host owns them. A frame unmaps both, runs the kernel,
 * and maps both.
 *
 * A device with its own memory has pinned host memory and one in-order queue. A frame writes, runs
 * the kernel, and reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hand.h"
#include "cl.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "message.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

enum { IN, OUT, BUFFERS };
enum { LOCAL_COLUMNS = 64 };

struct bench_hand {
    bool staged;
    size_t bytes;
    size_t global[2], local[2];
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    void *host[BUFFERS];
    void *allocated[BUFFERS]; /* wrapped memory, which this struct owns */
    cl_mem pinned[BUFFERS];   /* staged: what `host` maps */
    cl_mem mems[BUFFERS];
    bool mapped;
    sem_t done;
    bool has_sem;
    uint64_t callback_ns; /* written by the driver's callback before it posts `done` */
};

static bool open_queue(struct bench_hand *hand, const struct cox_device_info *info,
                       cl_command_queue_properties properties)
{
    cl_int code;

    if (!bench_cl_find_device(info, &hand->device))
        return false;
    hand->context = clCreateContext(NULL, 1, &hand->device, NULL, NULL, &code);
    if (bench_cl_failed(code, "clCreateContext"))
        return false;
    hand->queue = clCreateCommandQueue(hand->context, hand->device, properties, &code);

    return !bench_cl_failed(code, "clCreateCommandQueue");
}

static bool build(struct bench_hand *hand)
{
    cl_int code;
    const char *source = work_source;

    hand->program = clCreateProgramWithSource(hand->context, 1, &source, NULL, &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource") ||
        bench_cl_failed(clBuildProgram(hand->program, 1, &hand->device, WORK_BASE_OPTIONS, NULL,
                                       NULL),
                        "clBuildProgram"))
        return false;

    hand->kernel = clCreateKernel(hand->program, WORK_KERNEL, &code);

    return !bench_cl_failed(code, "clCreateKernel");
}

static bool make_wrapped(struct bench_hand *hand, int i)
{
    static const cl_mem_flags flags[BUFFERS] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    cl_int code;

    if (posix_memalign(&hand->allocated[i], 4096, hand->bytes))
        return bench_fail("out of memory");
    memset(hand->allocated[i], 0, hand->bytes);
    hand->mems[i] = clCreateBuffer(hand->context, flags[i] | CL_MEM_USE_HOST_PTR, hand->bytes,
                                   hand->allocated[i], &code);

    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool make_staged(struct bench_hand *hand, int i)
{
    static const cl_mem_flags flags[BUFFERS] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    cl_int code;

    hand->pinned[i] = clCreateBuffer(hand->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                     hand->bytes, NULL, &code);
    if (bench_cl_failed(code, "clCreateBuffer"))
        return false;
    hand->host[i] = clEnqueueMapBuffer(hand->queue, hand->pinned[i], CL_TRUE,
                                       CL_MAP_READ | CL_MAP_WRITE, 0, hand->bytes, 0, NULL, NULL,
                                       &code);
    if (bench_cl_failed(code, "clEnqueueMapBuffer"))
        return false;
    memset(hand->host[i], 0, hand->bytes);
    hand->mems[i] = clCreateBuffer(hand->context, flags[i], hand->bytes, NULL, &code);

    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool set_args(struct bench_hand *hand, const struct work_shape *shape)
{
    const struct work_constants constants = work_constants_of(shape);
    const cl_int columns = (cl_int)shape->columns, rows = (cl_int)shape->rows;
    const cl_int pitch = (cl_int)(shape->pitch_bytes / WORK_ITEM_BYTES);
    cl_int code = clSetKernelArg(hand->kernel, 0, sizeof(cl_mem), &hand->mems[IN]);

    code |= clSetKernelArg(hand->kernel, 1, sizeof(cl_mem), &hand->mems[OUT]);
    code |= clSetKernelArg(hand->kernel, 2, sizeof columns, &columns);
    code |= clSetKernelArg(hand->kernel, 3, sizeof rows, &rows);
    code |= clSetKernelArg(hand->kernel, 4, sizeof pitch, &pitch);
    code |= clSetKernelArg(hand->kernel, 5, sizeof pitch, &pitch);
    code |= clSetKernelArg(hand->kernel, 6, sizeof constants.work, &constants.work);
    code |= clSetKernelArg(hand->kernel, 7, sizeof constants.zero, &constants.zero);

    return !bench_cl_failed(code, "clSetKernelArg");
}

/* Between frames the host owns the buffers: it fills the input and reads the output. */
static cl_int map_buffers(struct bench_hand *hand, cl_event *last)
{
    cl_int code;

    hand->host[IN] = clEnqueueMapBuffer(hand->queue, hand->mems[IN], CL_FALSE, CL_MAP_WRITE, 0,
                                        hand->bytes, 0, NULL, NULL, &code);
    if (code)
        return code;
    hand->host[OUT] = clEnqueueMapBuffer(hand->queue, hand->mems[OUT], CL_FALSE, CL_MAP_READ, 0,
                                         hand->bytes, 0, NULL, last, &code);
    hand->mapped = code == CL_SUCCESS;

    return code;
}

static cl_int unmap_buffers(struct bench_hand *hand)
{
    hand->mapped = false;
    cl_int code = clEnqueueUnmapMemObject(hand->queue, hand->mems[IN], hand->host[IN], 0, NULL,
                                          NULL);
    if (code)
        return code;

    return clEnqueueUnmapMemObject(hand->queue, hand->mems[OUT], hand->host[OUT], 0, NULL, NULL);
}

struct bench_hand *bench_hand_create(const struct cox_device_info *info,
                                     const struct work_shape *shape)
{
    struct bench_hand *hand = calloc(1, sizeof *hand);
    if (!hand)
        return bench_fail("out of memory"), NULL;
    hand->staged = info->mode == COX_MODE_STAGED;
    hand->bytes = shape->rows * shape->pitch_bytes;
    hand->local[0] = LOCAL_COLUMNS;
    hand->local[1] = 1;
    hand->global[0] = (shape->columns + LOCAL_COLUMNS - 1) / LOCAL_COLUMNS * LOCAL_COLUMNS;
    hand->global[1] = shape->rows;
    hand->has_sem = sem_init(&hand->done, 0, 0) == 0;
    if (!open_queue(hand, info, 0) || !build(hand))
        goto fail;

    for (int i = 0; i < BUFFERS; i++)
        if (hand->staged ? !make_staged(hand, i) : !make_wrapped(hand, i))
            goto fail;

    if (!set_args(hand, shape))
        goto fail;
    if (!hand->staged && (bench_cl_failed(map_buffers(hand, NULL), "clEnqueueMapBuffer") ||
                          bench_cl_failed(clFinish(hand->queue), "clFinish")))
        goto fail;
    return hand;

fail:
    bench_hand_destroy(&hand);
    return NULL;
}

void bench_hand_destroy(struct bench_hand **out)
{
    struct bench_hand *hand = *out;
    if (!hand)
        return;
    *out = NULL;
    if (hand->mapped)
        unmap_buffers(hand);
    for (int i = 0; i < BUFFERS; i++)
        if (hand->pinned[i] && hand->host[i])
            clEnqueueUnmapMemObject(hand->queue, hand->pinned[i], hand->host[i], 0, NULL, NULL);

    if (hand->queue)
        clFinish(hand->queue);
    for (int i = 0; i < BUFFERS; i++) {
        BENCH_CL_RELEASE(MemObject, hand->mems[i]);
        BENCH_CL_RELEASE(MemObject, hand->pinned[i]);
        free(hand->allocated[i]);
    }

    BENCH_CL_RELEASE(Kernel, hand->kernel);
    BENCH_CL_RELEASE(Program, hand->program);
    BENCH_CL_RELEASE(CommandQueue, hand->queue);
    BENCH_CL_RELEASE(Context, hand->context);
    if (hand->has_sem)
        sem_destroy(&hand->done);
    free(hand);
}

float *bench_hand_input(struct bench_hand *hand)
{
    return hand->host[IN];
}

const float *bench_hand_output(struct bench_hand *hand)
{
    return hand->host[OUT];
}

bool bench_hand_has(const struct bench_hand *hand, enum bench_hand_form form)
{
    if (form == BENCH_HAND_CALLBACK)
        return hand->has_sem;

    return form != BENCH_HAND_LEAN || !hand->staged;
}

const char *bench_hand_describe(const struct bench_hand *hand, enum bench_hand_form form)
{
    static const char *const texts[2][BENCH_HAND_FORMS] = {
        {"unmap, kernel, map, flush, clFinish",
         "unmap, kernel, map, flush, event callback wakes the thread",
         "kernel, flush, clFinish; no mapping (the standard forbids that)"},
        {"write, kernel, read, flush, clFinish",
         "write, kernel, read, flush, event callback wakes the thread",
         "kernel, flush, clFinish; no mapping (the standard forbids that)"}};

    return texts[hand->staged][form];
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
    struct bench_hand *hand = user;
    (void)event;
    (void)status;
    hand->callback_ns = now_ns();
    sem_post(&hand->done);
}

static cl_int enqueue(struct bench_hand *hand, enum bench_hand_form form, cl_event *last)
{
    cl_int code = CL_SUCCESS;
    bool maps = !hand->staged && form != BENCH_HAND_LEAN;

    if (hand->staged)
        code = clEnqueueWriteBuffer(hand->queue, hand->mems[IN], CL_FALSE, 0, hand->bytes,
                                    hand->host[IN], 0, NULL, NULL);
    else if (maps)
        code = unmap_buffers(hand);

    if (!code)
        code = clEnqueueNDRangeKernel(hand->queue, hand->kernel, 2, NULL, hand->global, hand->local,
                                      0, NULL, NULL);
    if (code)
        return code;
    if (hand->staged)
        return clEnqueueReadBuffer(hand->queue, hand->mems[OUT], CL_FALSE, 0, hand->bytes,
                                   hand->host[OUT], 0, NULL, last);
    if (maps)
        return map_buffers(hand, last);

    return CL_SUCCESS;
}

struct bench_hand_times bench_hand_frame(struct bench_hand *hand, enum bench_hand_form form)
{
    struct bench_hand_times times = {0};
    cl_event last = NULL;
    uint64_t begin = now_ns();
    cl_int code = enqueue(hand, form, form == BENCH_HAND_CALLBACK ? &last : NULL);

    if (form == BENCH_HAND_CALLBACK) {
        if (!code)
            code = clSetEventCallback(last, CL_COMPLETE, on_complete, hand);
        if (!code)
            code = clFlush(hand->queue);
        while (!code && sem_wait(&hand->done) != 0)
            ; /* interrupted by a signal */
    } else {
        if (!code)
            code = clFlush(hand->queue);
        if (!code)
            code = clFinish(hand->queue);
    }

    times.visible_ns = now_ns() - begin;
    if (form == BENCH_HAND_CALLBACK)
        times.callback_ns = hand->callback_ns - begin;
    BENCH_CL_RELEASE(Event, last);
    if (bench_cl_failed(code, "a frame"))
        return (struct bench_hand_times){0};

    return times;
}

/* --- Link --- */

/* The time of one copy in ns, by its event's profile; 0 = failed. */
static double copy_ns(struct bench_hand *hand, bool in)
{
    cl_event event;
    cl_int code;

    if (in)
        code = clEnqueueWriteBuffer(hand->queue, hand->mems[IN], CL_FALSE, 0, hand->bytes,
                                    hand->host[IN], 0, NULL, &event);
    else
        code = clEnqueueReadBuffer(hand->queue, hand->mems[IN], CL_FALSE, 0, hand->bytes,
                                   hand->host[IN], 0, NULL, &event);

    if (bench_cl_failed(code, in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer"))
        return 0;

    double ns = 0;
    if (!bench_cl_failed(clFinish(hand->queue), "clFinish"))
        ns = bench_cl_event_ns(event);
    clReleaseEvent(event);

    return ns;
}

bool bench_link_measure(const struct cox_device_info *info, size_t bytes, uint32_t times,
                        struct bench_link *link)
{
    struct bench_hand *hand = calloc(1, sizeof *hand);
    double *ns = calloc(2 * (size_t)times, sizeof *ns);
    bool good = hand && ns;

    if (good) {
        hand->bytes = bytes;
        good = open_queue(hand, info, CL_QUEUE_PROFILING_ENABLE) && make_staged(hand, IN);
    }

    /* Copies in and out take turns. The first one of each is not counted. */
    for (uint32_t i = 0; good && i < 2 * (times + 1); i++) {
        const double one = copy_ns(hand, i % 2 == 0);
        if (i >= 2)
            ns[i % 2 * times + i / 2 - 1] = one;
        good = one > 0;
    }

    if (good) {
        link->write_gbs = (double)bytes / quantile_of(ns, times, 0.5);
        link->read_gbs = (double)bytes / quantile_of(ns + times, times, 0.5);
    }

    bench_hand_destroy(&hand);
    free(ns);
    return good;
}
