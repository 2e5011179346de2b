/* SPDX-License-Identifier: Apache-2.0 */
#include "direct.h"
#include "bench/cl.h"
#include "bench/message.h"
#include "common/now.h"
#include "direct_parts.h"

#include <stdlib.h>
#include <string.h>

/* What is known during a run. */
struct run {
    struct suite_direct *direct;
    /* For each queue: commands before this index are done, or are flushed. */
    uint32_t finished[COX_DEVICES_MAX * SUITE_LANES];
    uint32_t flushed[COX_DEVICES_MAX * SUITE_LANES];
    uint32_t frame; /* of the constants; UINT32_MAX = none yet */
};

/* --- creation --- */

struct suite_direct *suite_direct_create(const struct suite_problem *problem,
                                         const struct cox_device_info *devices, uint32_t count)
{
    struct suite_direct *direct = calloc(1, sizeof *direct);

    if (!direct) {
        bench_fail("out of memory");
        return NULL;
    }

    direct->problem = problem;
    direct->device_count = count;
    direct->constants_vary = problem->set_constants != NULL;
    for (const struct cox_pass *pass = problem->params.passes; pass->source || pass->kernel; pass++)
        direct->constants_vary |= pass->done != NULL;

    if (!suite_direct_make(direct, devices))
        suite_direct_destroy(&direct);

    return direct;
}

static void drop_plan(struct suite_direct *direct)
{
    suite_plan_destroy(&direct->plan);
    free(direct->events);
    direct->events = NULL;
}

void suite_direct_destroy(struct suite_direct **direct)
{
    if (!*direct)
        return;

    drop_plan(*direct);
    suite_direct_unmake(*direct);
    free(*direct);
    *direct = NULL;
}

const void *suite_direct_data(const struct suite_direct *direct, uint32_t memory)
{
    return direct->data[memory];
}

/* --- arguments --- */

static cl_int bind_constants(const struct suite_direct *direct, uint32_t device, uint32_t step,
                             uint32_t parity)
{
    const struct suite_arguments *arguments = &direct->arguments[step];
    cl_int code = CL_SUCCESS;

    for (cl_uint a = 0; a < arguments->count && code == CL_SUCCESS; a++) {
        const struct suite_argument *argument = &arguments->at[a];
        if (argument->kind == SUITE_CONSTANT)
            code = clSetKernelArg(direct->devices[device].kernels[step][parity], a, argument->bytes,
                                  (const char *)&direct->constants + argument->offset);
    }

    return code;
}

/* A band of a pass that is not absolute: its first row and its number of rows. */
static cl_int bind_band(const struct suite_direct *direct, uint32_t device, uint32_t step,
                        uint32_t parity, struct suite_range band)
{
    const struct suite_arguments *arguments = &direct->arguments[step];
    cl_kernel kernel = direct->devices[device].kernels[step][parity];
    const cl_int first = (cl_int)band.first, rows = (cl_int)(band.end - band.first);
    cl_int code = CL_SUCCESS;

    if (direct->view.steps[step].absolute)
        return code;
    for (cl_uint a = 0; a < arguments->count && code == CL_SUCCESS; a++) {
        if (arguments->at[a].kind == SUITE_FIRST_ROW)
            code = clSetKernelArg(kernel, a, sizeof first, &first);
        if (arguments->at[a].kind == SUITE_ROWS)
            code = clSetKernelArg(kernel, a, sizeof rows, &rows);
    }

    return code;
}

bool suite_direct_split(struct suite_direct *direct, const double *shares)
{
    cl_int code = CL_SUCCESS;

    drop_plan(direct);
    direct->plan = suite_plan_create(&direct->view, direct->kinds, shares, direct->device_count);
    if (!direct->plan)
        return false;
    direct->events = calloc(direct->plan->count + 1, sizeof *direct->events);
    if (!direct->events)
        return bench_fail("out of memory");

    /* A device's band of a pass is the same in all frames. */
    suite_frame_constants(direct->problem, 0, &direct->constants);
    for (uint32_t c = 0; c < direct->plan->count && code == CL_SUCCESS; c++) {
        const struct suite_command *command = &direct->plan->commands[c];
        if (command->frame > 0)
            break;
        for (uint32_t parity = 0; command->kind == SUITE_KERNEL && parity < 2; parity++) {
            code = bind_band(direct, command->device, command->step, parity, command->rows);
            if (code == CL_SUCCESS)
                code = bind_constants(direct, command->device, command->step, parity);
        }
    }

    return !bench_cl_failed(code, "clSetKernelArg");
}

bool suite_direct_through_host(struct suite_direct *direct, bool through_host)
{
    bool peers = false;

    for (uint32_t d = 0; d < direct->device_count; d++) {
        direct->kinds[d].peers = through_host ? d : direct->kinds[d].context;
        for (uint32_t other = 0; other < d; other++)
            peers |= !direct->kinds[d].on_host && !direct->kinds[other].on_host &&
                     direct->kinds[d].context == direct->kinds[other].context;
    }

    return peers;
}

/* --- one command --- */

static size_t rounded_up(size_t count, size_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

static cl_int enqueue_kernel(struct suite_direct *direct, const struct suite_command *command,
                             cl_uint count, const cl_event *after, cl_event *event)
{
    const struct suite_hand *hand = &direct->devices[command->device];
    const struct suite_step *step = &direct->view.steps[command->step];
    const struct suite_group *group = &hand->groups[command->step];
    const uint32_t parity = command->frame % 2;
    const size_t rows = command->rows.end - command->rows.first;
    size_t offset[2] = {0, 0}, global[2];
    cl_int code = CL_SUCCESS;

    global[0] = rounded_up((step->columns + group->item_columns - 1) / group->item_columns,
                           group->local[0]);
    global[1] = rounded_up((rows + group->item_rows - 1) / group->item_rows, group->local[1]);
    if (step->absolute)
        offset[1] = command->rows.first / group->item_rows;
    if (direct->constants_vary)
        code = bind_constants(direct, command->device, command->step, parity);
    if (code != CL_SUCCESS)
        return code;

    /* Without columns there is one dimension. */
    const uint32_t skip = step->columns ? 0 : 1;

    return clEnqueueNDRangeKernel(hand->queues[SUITE_LANE_COMPUTE],
                                  hand->kernels[command->step][parity], 2 - skip, offset + skip,
                                  global + skip, group->local + skip, count, after, event);
}

/* The bytes of a command's rows in its store. */
static size_t bytes_of(const struct suite_direct *direct, const struct suite_command *command,
                       size_t *offset)
{
    const size_t all = direct->store_bytes[command->store];
    size_t end = command->rows.end * command->pitch_bytes;

    *offset = command->rows.first * command->pitch_bytes;
    if (end > all)
        end = all;

    return end - *offset;
}

static cl_int enqueue(struct suite_direct *direct, const struct suite_command *command,
                      cl_uint count, const cl_event *after, cl_event *event)
{
    static const cl_uint zero = 0;
    struct suite_hand *hand = &direct->devices[command->device];
    cl_command_queue queue = hand->queues[command->lane];
    cl_mem mem = hand->stores[command->store];
    size_t offset, bytes;

    switch (command->kind) {
    case SUITE_WRITE:
        bytes = bytes_of(direct, command, &offset);
        return clEnqueueWriteBuffer(queue, mem, CL_FALSE, offset, bytes,
                                    (const char *)direct->data[command->store] + offset, count,
                                    after, event);
    case SUITE_READ:
        bytes = bytes_of(direct, command, &offset);
        return clEnqueueReadBuffer(queue, mem, CL_FALSE, offset, bytes,
                                   (char *)direct->data[command->store] + offset, count, after,
                                   event);
    case SUITE_COPY:
        bytes = bytes_of(direct, command, &offset);
        return clEnqueueCopyBuffer(queue, direct->devices[command->from].stores[command->store],
                                   mem, offset, offset, bytes, count, after, event);
    case SUITE_ZERO:
        return clEnqueueFillBuffer(queue, hand->partials[command->buffer], &zero, sizeof zero, 0,
                                   direct->view.buffers[command->buffer].bytes, count, after,
                                   event);
    case SUITE_READ_PARTIAL:
        return clEnqueueReadBuffer(queue, hand->partials[command->buffer], CL_FALSE, 0,
                                   direct->view.buffers[command->buffer].bytes,
                                   hand->partial_data[command->buffer], count, after, event);
    default:
        return enqueue_kernel(direct, command, count, after, event);
    }
}

/* --- what the host does --- */

static void merge(struct suite_direct *direct, const struct suite_command *command)
{
    const struct suite_buffer *buffer = &direct->view.buffers[command->buffer];
    void *into = direct->data[command->store];

    memset(into, 0, buffer->bytes);
    for (uint32_t d = 0; d < direct->device_count; d++)
        if (command->devices & (1u << d))
            buffer->layout->merge(into, direct->devices[d].partial_data[command->buffer],
                                  buffer->bytes, buffer->layout->merge_user);
}

static void step_done(struct suite_direct *direct, const struct suite_command *command)
{
    const struct cox_pass *pass = direct->view.steps[command->step].pass;
    void *buffers[COX_BUFFERS_MAX] = {NULL};

    for (uint32_t b = 0; b < direct->view.buffer_count; b++)
        if (direct->view.buffers[b].place != SUITE_PRIVATE)
            buffers[b] = direct->data[suite_view_store(&direct->view, command->frame, b)];

    pass->done(pass->done_user, buffers, &direct->constants);
}

static void do_on_host(struct suite_direct *direct, const struct suite_command *command)
{
    if (command->kind == SUITE_MERGE)
        merge(direct, command);
    else if (command->kind == SUITE_STEP_DONE)
        step_done(direct, command);
    else
        direct->problem->after_frame(direct->problem, command->frame, direct->data);
}

/* --- a run --- */

static cl_int for_each_queue(const struct suite_direct *direct, cl_int call(cl_command_queue))
{
    cl_int code = CL_SUCCESS;

    for (uint32_t d = 0; d < direct->device_count; d++)
        for (int lane = 0; lane < SUITE_LANES && code == CL_SUCCESS; lane++)
            if (direct->devices[d].queues[lane])
                code = call(direct->devices[d].queues[lane]);

    return code;
}

static uint32_t queue_index(const struct suite_command *command)
{
    return command->device * SUITE_LANES + command->lane;
}

/* Events of another context cannot be waited for by a device. */
static bool host_must_wait(const struct suite_direct *direct, const struct suite_command *command,
                           const struct suite_command *before)
{
    return command->kind >= SUITE_MERGE ||
           direct->kinds[command->device].context != direct->kinds[before->device].context;
}

/* Flush all queues, with the commands before `index`. */
static cl_int flush_all(struct run *run, uint32_t index)
{
    for (uint32_t q = 0; q < COX_DEVICES_MAX * SUITE_LANES; q++)
        run->flushed[q] = index;

    return for_each_queue(run->direct, clFlush);
}

/* Only flushed commands may be waited for on another queue. The command at `index` waits for
 * `earlier`. */
static cl_int flush_earlier(struct run *run, uint32_t earlier, uint32_t index)
{
    const struct suite_command *command = &run->direct->plan->commands[earlier];
    const uint32_t queue = queue_index(command);

    if (run->flushed[queue] > earlier)
        return CL_SUCCESS;
    run->flushed[queue] = index;

    return clFlush(run->direct->devices[command->device].queues[command->lane]);
}

static cl_int run_command(struct run *run, uint32_t index)
{
    struct suite_direct *direct = run->direct;
    const struct suite_plan *plan = direct->plan;
    const struct suite_command *command = &plan->commands[index];
    cl_event after[COX_DEVICES_MAX * SUITE_LANES];
    cl_uint count = 0;
    bool flushed = false;
    cl_int code = CL_SUCCESS;

    for (uint32_t n = 0; n < command->need_count && code == CL_SUCCESS; n++) {
        const uint32_t earlier = plan->needs[command->first_need + n];
        const struct suite_command *before = &plan->commands[earlier];
        if (earlier < run->finished[queue_index(before)])
            continue;
        if (!host_must_wait(direct, command, before)) {
            after[count++] = direct->events[earlier];
            code = flush_earlier(run, earlier, index);
            continue;
        }
        if (!flushed)
            code = flush_all(run, index);
        flushed = true;
        if (code == CL_SUCCESS)
            code = clWaitForEvents(1, &direct->events[earlier]);
        run->finished[queue_index(before)] = earlier + 1;
    }
    if (code != CL_SUCCESS)
        return code;

    if (command->frame != run->frame) {
        run->frame = command->frame;
        if (direct->constants_vary)
            suite_frame_constants(direct->problem, command->frame, &direct->constants);
        code = flush_all(run, index);
    }
    if (code != CL_SUCCESS)
        return code;
    if (command->kind >= SUITE_MERGE) {
        do_on_host(direct, command);
        return CL_SUCCESS;
    }

    return enqueue(direct, command, count, count ? after : NULL,
                   command->awaited ? &direct->events[index] : NULL);
}

/* Some drivers return from clFinish early if clFlush came before (rusticl 22.3), so wait for
 * events. */
static cl_int wait_for_all(const struct suite_direct *direct)
{
    cl_int code = for_each_queue(direct, clFlush);

    for (uint32_t q = 0; q < COX_DEVICES_MAX * SUITE_LANES && code == CL_SUCCESS; q++)
        if (direct->plan->last[q])
            code = clWaitForEvents(1, &direct->events[direct->plan->last[q] - 1]);

    return code;
}

bool suite_direct_run(struct suite_direct *direct, double *wall_ns)
{
    struct run run = {.direct = direct, .frame = UINT32_MAX};
    cl_int code = CL_SUCCESS;

    for (uint32_t m = 0; m < direct->problem->memory_count; m++)
        memcpy(direct->data[m], direct->problem->memories[m].data,
               direct->problem->memories[m].bytes);

    const uint64_t start = now_ns();
    for (uint32_t c = 0; c < direct->plan->count && code == CL_SUCCESS; c++)
        code = run_command(&run, c);
    if (code == CL_SUCCESS)
        code = wait_for_all(direct);
    *wall_ns = (double)(now_ns() - start);
    const cl_int ended = for_each_queue(direct, clFinish);

    for (uint32_t c = 0; c < direct->plan->count; c++) {
        BENCH_CL_RELEASE(Event, direct->events[c]);
        direct->events[c] = NULL;
    }

    return !bench_cl_failed(code, "a run") && !bench_cl_failed(ended, "clFinish");
}
