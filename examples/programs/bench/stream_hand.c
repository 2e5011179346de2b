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
    const struct cox_variant *variant;
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

/* As the library chooses: by the type of device, else the one for any. */
static const struct cox_variant *find_variant(const struct cox_stage *stage,
                                              enum cox_device_type type)
{
    const struct cox_variant *found = NULL;
    for (uint32_t v = 0; v < stage->variant_count; v++)
        if (stage->variants[v].type == type || (!found && !stage->variants[v].type))
            found = &stage->variants[v];
    return found;
}

static bool make_context(struct stream_hand *hand)
{
    cl_int code;

    hand->context = clCreateContext(NULL, 1, &hand->device, NULL, NULL, &code);
    if (bench_cl_failed(code, "clCreateContext"))
        return false;

    for (int q = 0; q < QUEUES; q++) {
        hand->queues[q] = clCreateCommandQueue(hand->context, hand->device, 0, &code);
        if (bench_cl_failed(code, "clCreateCommandQueue"))
            return false;
    }

    hand->program = clCreateProgramWithSource(hand->context, 1,
                                              (const char **)&hand->variant->source, NULL, &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource"))
        return false;

    char *options = work_build_options(hand->variant, hand->frames->arithmetic);
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
    const bool in = frames->pipeline.bindings[b].access == COX_READ;
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
    cl_int code;

    for (uint32_t set = 0; set < hand->frames->sets; set++) {
        struct slot *slot = &hand->slots[set];
        slot->kernel = clCreateKernel(hand->program, hand->frames->pipeline.stages[0].kernel,
                                      &code);
        if (bench_cl_failed(code, "clCreateKernel"))
            return false;
        for (uint32_t b = 0; b < hand->frames->pipeline.binding_count; b++)
            if (!make_buffer(hand, slot, set, b))
                return false;
    }

    return true;
}

struct stream_hand *stream_hand_create(const struct cox_device_info *info,
                                       const struct stream_frames *frames, uint32_t most)
{
    struct stream_hand *hand = calloc(1, sizeof *hand);
    if (!hand)
        return bench_fail("out of memory"), NULL;
    hand->frames = frames;
    hand->variant = find_variant(&frames->pipeline.stages[0], info->type);
    hand->done_ns = calloc(most, sizeof *hand->done_ns);
    if (!hand->done_ns)
        bench_fail("out of memory");
    if (!hand->done_ns || !bench_cl_find_device(info, &hand->device) || !make_context(hand) ||
        !make_slots(hand))
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

static cl_int set_args(struct stream_hand *hand, const struct slot *slot)
{
    const struct cox_stage *stage = &hand->frames->pipeline.stages[0];
    const cl_int numbers[COX_ARG_KIND_IMAGE + 1] = {
        [COX_ARG_KIND_FIRST] = (cl_int)hand->first_row,
        [COX_ARG_KIND_ROWS] = (cl_int)hand->rows,
        [COX_ARG_KIND_FRAME] = (cl_int)hand->frames->height,
        [COX_ARG_KIND_COLUMNS] = (cl_int)stage->columns};

    for (cl_uint a = 0; a < stage->arg_count; a++) {
        const struct cox_arg *arg = &stage->args[a];
        cl_int number = 0, code;
        const void *value = &number;
        size_t bytes = sizeof number;
        switch (arg->kind) {
        case COX_ARG_KIND_BUFFER:
            value = &slot->mems[arg->index];
            bytes = sizeof slot->mems[arg->index];
            break;
        case COX_ARG_KIND_PARAMS:
            value = (const char *)&hand->frames->params + arg->offset;
            bytes = arg->bytes;
            break;
        case COX_ARG_KIND_LOCAL:
            value = NULL;
            bytes = arg->bytes;
            break;
        case COX_ARG_KIND_ORIGIN:
            number = (cl_int)hand->spans[arg->index].first;
            break;
        default:
            number = numbers[arg->kind];
        }
        code = clSetKernelArg(slot->kernel, a, bytes, value);
        if (code)
            return code;
    }

    return CL_SUCCESS;
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
    const struct cox_variant *variant = hand->variant;

    hand->first_row = first_row;
    hand->rows = rows;
    hand->in_flight = in_flight;
    for (uint32_t b = 0; b < hand->frames->pipeline.binding_count; b++)
        hand->spans[b] = stream_frames_span(hand->frames, b, first_row, rows);

    hand->local[0] = bench_value(variant->local_columns, 1);
    hand->local[1] = bench_value(variant->local_rows, 1);
    hand->global[0] = padded(hand->frames->pipeline.stages[0].columns, variant->item_columns,
                             (uint32_t)hand->local[0]);
    hand->global[1] = padded(rows, variant->item_rows, (uint32_t)hand->local[1]);
    for (uint32_t s = 0; s < in_flight; s++)
        if (bench_cl_failed(set_args(hand, &hand->slots[s]), "clSetKernelArg"))
            return false;

    return true;
}

bool stream_hand_split(struct stream_hand *const *hands, uint32_t count, uint32_t in_flight)
{
    const struct stream_frames *frames = hands[0]->frames;
    uint32_t row_alignment = 1, first = 0;

    for (uint32_t b = 0; b < frames->pipeline.binding_count; b++)
        if (frames->pipeline.bindings[b].row_divisor > row_alignment)
            row_alignment = frames->pipeline.bindings[b].row_divisor;

    if (frames->height / row_alignment < count)
        return bench_fail("%u rows are too few for %u devices", frames->height, count);

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
    const struct cox_session_params *pipeline = &hand->frames->pipeline;
    cl_int code = CL_SUCCESS;

    for (uint32_t b = 0; code == CL_SUCCESS && pipeline->bindings[b].access == COX_READ; b++) {
        /* The inputs come first. */
        const bool is_last = pipeline->bindings[b + 1].access != COX_READ;
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
    const struct cox_session_params *pipeline = &hand->frames->pipeline;
    cl_int code = CL_SUCCESS;
    bool first = true;

    for (uint32_t b = 0; code == CL_SUCCESS && b < pipeline->binding_count; b++) {
        if (pipeline->bindings[b].access == COX_READ)
            continue;
        const bool is_last = b + 1 == pipeline->binding_count;
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
        return bench_fail("no thread can be started");

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
            for (uint32_t b = 0; b < frames->pipeline.binding_count; b++)
                if (frames->pipeline.bindings[b].access != COX_READ)
                    memcpy((char *)cox_buffer_data(frames->buffers[s][b]) +
                               hands[d]->spans[b].offset,
                           hands[d]->slots[s].host[b] + hands[d]->spans[b].offset,
                           hands[d]->spans[b].bytes);
}
