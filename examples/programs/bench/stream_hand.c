/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_hand.h"
#include "cl.h"
#include "common/now.h"
#include "common/work.h"
#include "message.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_IN, QUEUE_COMPUTE, QUEUE_OUT, QUEUES };

struct slot {
    cl_kernel kernel;
    cl_mem pinned[STREAM_BUFFERS_MAX]; /* what `host` maps; a whole frame */
    char *host[STREAM_BUFFERS_MAX];
    cl_mem mems[STREAM_BUFFERS_MAX]; /* the band is at their beginning */
    cl_event done;                   /* the last copy out of the current frame */
};

struct stream_hand {
    const struct stream_frames *frames;
    const struct stream_kernel *kernel;
    cl_device_id device;
    cl_context context;
    cl_command_queue queues[QUEUES];
    cl_program program;
    struct slot slots[STREAM_IN_FLIGHT_MAX];
    uint64_t *done_ns; /* of each frame of a run */
    /* The band that stream_hand_split gave. */
    uint32_t first_row, rows, in_flight;
    struct stream_span spans[STREAM_BUFFERS_MAX];
    size_t global[2], local[2];
    /* The current run. */
    uint32_t frame_count;
    pthread_t thread;
    bool good;
};

/* --- creation --- */

static bool make_context(struct stream_hand *hand, enum cox_arithmetic arithmetic)
{
    const struct cox_pass *pass = &hand->kernel->passes[0];
    const char *source = pass->source;
    cl_int code;

    hand->context = clCreateContext(NULL, 1, &hand->device, NULL, NULL, &code);
    if (bench_cl_failed(code, "clCreateContext"))
        return false;

    for (int q = 0; q < QUEUES; q++) {
        hand->queues[q] = clCreateCommandQueue(hand->context, hand->device, 0, &code);
        if (bench_cl_failed(code, "clCreateCommandQueue"))
            return false;
    }

    hand->program = clCreateProgramWithSource(hand->context, 1, &source, NULL, &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource"))
        return false;

    char *options = work_build_options(pass->options, arithmetic);
    code = CL_OUT_OF_HOST_MEMORY;
    if (options)
        code = clBuildProgram(hand->program, 1, &hand->device, options, NULL, NULL);
    free(options);
    return !bench_cl_failed(code, "clBuildProgram");
}

static bool make_buffer(struct stream_hand *hand, struct slot *slot, uint32_t set, uint32_t b)
{
    const struct stream_frames *frames = hand->frames;
    const size_t bytes = stream_frames_span(frames, b, 0, frames->height).bytes;
    const bool in = frames->planes[b].in;
    const cl_mem_flags flags = in ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY;
    cl_int code;

    slot->mems[b] = clCreateBuffer(hand->context, flags, bytes, NULL, &code);
    if (bench_cl_failed(code, "clCreateBuffer"))
        return false;
    slot->pinned[b] = clCreateBuffer(hand->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                     bytes, NULL, &code);
    if (bench_cl_failed(code, "clCreateBuffer"))
        return false;
    slot->host[b] = clEnqueueMapBuffer(hand->queues[QUEUE_COMPUTE], slot->pinned[b], CL_TRUE,
                                       CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    if (bench_cl_failed(code, "clEnqueueMapBuffer"))
        return false;
    if (in)
        memcpy(slot->host[b], cox_buffer_data(frames->buffers[set][b]), bytes);
    else
        memset(slot->host[b], 0, bytes);

    return true;
}

static bool make_slots(struct stream_hand *hand)
{
    for (uint32_t set = 0; set < hand->frames->sets; set++) {
        struct slot *slot = &hand->slots[set];
        const cl_int code = clCreateKernelsInProgram(hand->program, 1, &slot->kernel, NULL);
        if (bench_cl_failed(code, "clCreateKernelsInProgram"))
            return false;
        for (uint32_t b = 0; b < hand->frames->plane_count; b++)
            if (!make_buffer(hand, slot, set, b))
                return false;
    }

    return true;
}

struct stream_hand *stream_hand_create(const struct cox_device_info *info,
                                       const struct stream_frames *frames,
                                       const struct stream_kernel *kernel,
                                       enum cox_arithmetic arithmetic, uint32_t most)
{
    struct stream_hand *hand = calloc(1, sizeof *hand);
    if (!hand)
        return bench_fail("out of memory"), NULL;
    hand->frames = frames;
    hand->kernel = kernel;
    hand->done_ns = calloc(most, sizeof *hand->done_ns);
    if (!hand->done_ns)
        bench_fail("out of memory");
    if (!hand->done_ns || !bench_cl_find_device(info, &hand->device) ||
        !make_context(hand, arithmetic) || !make_slots(hand))
        stream_hand_destroy(&hand);
    return hand;
}

static void clear_slot(struct stream_hand *hand, struct slot *slot)
{
    for (int b = 0; b < STREAM_BUFFERS_MAX; b++) {
        if (slot->host[b])
            clEnqueueUnmapMemObject(hand->queues[QUEUE_COMPUTE], slot->pinned[b], slot->host[b], 0,
                                    NULL, NULL);
        if (slot->host[b])
            clFinish(hand->queues[QUEUE_COMPUTE]);
        BENCH_CL_RELEASE(MemObject, slot->pinned[b]);
        BENCH_CL_RELEASE(MemObject, slot->mems[b]);
    }

    BENCH_CL_RELEASE(Kernel, slot->kernel);
}

void stream_hand_destroy(struct stream_hand **out)
{
    struct stream_hand *hand = *out;
    if (!hand)
        return;
    *out = NULL;
    for (int set = 0; set < STREAM_IN_FLIGHT_MAX; set++)
        clear_slot(hand, &hand->slots[set]);

    BENCH_CL_RELEASE(Program, hand->program);
    for (int q = 0; q < QUEUES; q++)
        BENCH_CL_RELEASE(CommandQueue, hand->queues[q]);

    BENCH_CL_RELEASE(Context, hand->context);
    free(hand->done_ns);
    free(hand);
}

/* --- bands --- */

/* Set the next argument, a number, unless an earlier one failed. */
static cl_int set_number(cl_kernel kernel, cl_uint *at, cl_int code, size_t value)
{
    const cl_int number = (cl_int)value;

    if (code)
        return code;

    return clSetKernelArg(kernel, (*at)++, sizeof number, &number);
}

static cl_int set_args(struct stream_hand *hand, const struct slot *slot)
{
    const struct stream_frames *frames = hand->frames;
    const uint32_t numbers[] = {frames->width, hand->rows, hand->first_row, frames->height};
    cl_int code = CL_SUCCESS;
    cl_uint at = 0;

    for (uint32_t b = 0; code == CL_SUCCESS && b < frames->plane_count; b++)
        code = clSetKernelArg(slot->kernel, at++, sizeof slot->mems[b], &slot->mems[b]);

    for (uint32_t b = 0; b < frames->plane_count; b++)
        code = set_number(slot->kernel, &at, code,
                          frames->planes[b].pitch_bytes / hand->kernel->element_bytes[b]);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        code = set_number(slot->kernel, &at, code, numbers[i]);

    for (uint32_t b = 0; b < frames->plane_count; b++)
        if (frames->planes[b].halo_rows)
            code = set_number(slot->kernel, &at, code, hand->spans[b].first);

    return code;
}

static size_t padded(uint32_t count, uint32_t per_item, uint32_t local)
{
    size_t items = count;
    if (per_item)
        items = (count + per_item - 1) / per_item;

    return (items + local - 1) / local * local;
}

static bool set_band(struct stream_hand *hand, uint32_t first_row, uint32_t rows,
                     uint32_t in_flight)
{
    const struct stream_frames *frames = hand->frames;
    const struct cox_pass *pass = &hand->kernel->passes[0];

    hand->first_row = first_row;
    hand->rows = rows;
    hand->in_flight = in_flight;
    for (uint32_t b = 0; b < frames->plane_count; b++)
        hand->spans[b] = stream_frames_span(frames, b, first_row, rows);

    hand->local[0] = bench_value(pass->local_columns, 64);
    hand->local[1] = bench_value(pass->local_rows, 1);
    hand->global[0] = padded(frames->width, pass->item_columns, (uint32_t)hand->local[0]);
    hand->global[1] = padded(rows, pass->item_rows, (uint32_t)hand->local[1]);
    for (uint32_t s = 0; s < in_flight; s++)
        if (bench_cl_failed(set_args(hand, &hand->slots[s]), "clSetKernelArg"))
            return false;

    return true;
}

bool stream_hand_split(struct stream_hand *const *hands, uint32_t count, uint32_t in_flight)
{
    const struct stream_frames *frames = hands[0]->frames;
    uint32_t row_alignment = 1, first = 0;

    for (uint32_t b = 0; b < frames->plane_count; b++)
        if (frames->planes[b].row_divisor > row_alignment)
            row_alignment = frames->planes[b].row_divisor;

    if (frames->height / row_alignment < count)
        return bench_fail("--size: %u rows are too few for %u devices", frames->height, count);

    for (uint32_t d = 0; d < count; d++) {
        uint32_t end = (uint32_t)((uint64_t)frames->height / row_alignment * (d + 1) / count) *
                       row_alignment;
        if (d + 1 == count)
            end = frames->height;
        if (!set_band(hands[d], first, end - first, in_flight))
            return false;
        first = end;
    }

    return true;
}

/* --- a run --- */

static cl_int copy_in(struct stream_hand *hand, struct slot *slot, cl_event *last)
{
    const struct stream_plane *planes = hand->frames->planes;
    cl_int code = CL_SUCCESS;

    for (uint32_t b = 0; code == CL_SUCCESS && planes[b].in; b++) {
        /* The inputs come first. */
        const bool is_last = !planes[b + 1].in;
        code = clEnqueueWriteBuffer(hand->queues[QUEUE_IN], slot->mems[b], CL_FALSE, 0,
                                    hand->spans[b].bytes, slot->host[b] + hand->spans[b].offset, 0,
                                    NULL, is_last ? last : NULL);
    }

    if (code)
        return code;

    return clFlush(hand->queues[QUEUE_IN]);
}

static cl_int copy_out(struct stream_hand *hand, struct slot *slot, cl_event after)
{
    const struct stream_frames *frames = hand->frames;
    cl_int code = CL_SUCCESS;
    bool first = true;

    for (uint32_t b = 0; code == CL_SUCCESS && b < frames->plane_count; b++) {
        if (frames->planes[b].in)
            continue;
        const bool is_last = b + 1 == frames->plane_count;
        code = clEnqueueReadBuffer(hand->queues[QUEUE_OUT], slot->mems[b], CL_FALSE, 0,
                                   hand->spans[b].bytes, slot->host[b] + hand->spans[b].offset,
                                   first ? 1 : 0, first ? &after : NULL,
                                   is_last ? &slot->done : NULL);
        first = false; /* the queue is in order */
    }

    if (code)
        return code;

    return clFlush(hand->queues[QUEUE_OUT]);
}

static cl_int submit(struct stream_hand *hand, struct slot *slot)
{
    cl_event in = NULL, computed = NULL;
    cl_int code = copy_in(hand, slot, &in);

    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(hand->queues[QUEUE_COMPUTE], slot->kernel, 2, NULL,
                                      hand->global, hand->local, 1, &in, &computed);
    if (code == CL_SUCCESS)
        code = clFlush(hand->queues[QUEUE_COMPUTE]);
    if (code == CL_SUCCESS)
        code = copy_out(hand, slot, computed);
    BENCH_CL_RELEASE(Event, in);
    BENCH_CL_RELEASE(Event, computed);

    return code;
}

static cl_int wait_for(struct stream_hand *hand, uint32_t frame)
{
    struct slot *slot = &hand->slots[frame % hand->in_flight];
    const cl_int code = clWaitForEvents(1, &slot->done);

    hand->done_ns[frame] = now_ns();
    clReleaseEvent(slot->done);
    slot->done = NULL;

    return code;
}

static void *feed(void *user)
{
    struct stream_hand *hand = user;
    cl_int code = CL_SUCCESS;
    uint32_t waited = 0;

    for (uint32_t f = 0; code == CL_SUCCESS && f < hand->frame_count; f++) {
        if (f >= hand->in_flight)
            code = wait_for(hand, waited++);
        if (code == CL_SUCCESS)
            code = submit(hand, &hand->slots[f % hand->in_flight]);
    }

    while (code == CL_SUCCESS && waited < hand->frame_count)
        code = wait_for(hand, waited++);

    hand->good = !bench_cl_failed(code, "a stream");
    for (int q = 0; !hand->good && q < QUEUES; q++)
        clFinish(hand->queues[q]);
    for (int s = 0; s < STREAM_IN_FLIGHT_MAX; s++)
        if (hand->slots[s].done) {
            clReleaseEvent(hand->slots[s].done);
            hand->slots[s].done = NULL;
        }

    return NULL;
}

bool stream_hand_run(struct stream_hand *const *hands, uint32_t count, uint32_t frame_count,
                     uint64_t *done_ns)
{
    uint32_t started = 0;
    bool good = true;

    for (uint32_t d = 0; d < count; d++)
        hands[d]->frame_count = frame_count;
    if (count == 1)
        feed(hands[0]);
    while (count > 1 && started < count &&
           pthread_create(&hands[started]->thread, NULL, feed, hands[started]) == 0)
        started++;

    for (uint32_t d = 0; d < started; d++)
        pthread_join(hands[d]->thread, NULL);
    if (count > 1 && started < count)
        return bench_fail("cannot start a thread");

    for (uint32_t d = 0; d < count; d++)
        good &= hands[d]->good;

    uint64_t last = 0; /* frames are delivered in order */
    for (uint32_t f = 0; good && f < frame_count; f++) {
        for (uint32_t d = 0; d < count; d++)
            if (hands[d]->done_ns[f] > last)
                last = hands[d]->done_ns[f];
        done_ns[f] = last;
    }

    return good;
}

void stream_hand_collect(struct stream_hand *const *hands, uint32_t count,
                         struct stream_frames *frames)
{
    for (uint32_t d = 0; d < count; d++)
        for (uint32_t s = 0; s < hands[d]->in_flight; s++)
            for (uint32_t b = 0; b < frames->plane_count; b++)
                if (!frames->planes[b].in)
                    memcpy((char *)cox_buffer_data(frames->buffers[s][b]) +
                               hands[d]->spans[b].offset,
                           hands[d]->slots[s].host[b] + hands[d]->spans[b].offset,
                           hands[d]->spans[b].bytes);
}
