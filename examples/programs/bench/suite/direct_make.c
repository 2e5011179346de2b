/* Contexts, programs, kernels and memory of hand-written OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bench/cl.h"
#include "bench/message.h"
#include "direct_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, CPU_ITEMS = 64, GPU_ITEMS = 256, ROW_ITEMS = 64, GROUPS_MIN = 8 };

/* --- devices --- */

/* One context for all devices of a platform. */
static bool make_contexts(struct suite_direct *direct)
{
    for (uint32_t d = 0; d < direct->device_count; d++) {
        cl_device_id ids[COX_DEVICES_MAX];
        cl_uint count = 0;
        cl_int code;

        if (direct->devices[d].context)
            continue;
        for (uint32_t other = d; other < direct->device_count; other++)
            if (direct->devices[other].info.platform_index ==
                direct->devices[d].info.platform_index)
                ids[count++] = direct->devices[other].id;

        cl_context context = clCreateContext(NULL, count, ids, NULL, NULL, &code);
        if (bench_cl_failed(code, "clCreateContext"))
            return false;
        for (uint32_t other = d; other < direct->device_count; other++)
            if (direct->devices[other].info.platform_index ==
                direct->devices[d].info.platform_index) {
                direct->devices[other].context = context;
                direct->kinds[other].context = direct->context_count;
                direct->kinds[other].peers = direct->context_count;
            }
        direct->contexts[direct->context_count++] = context;
    }

    return true;
}

static bool make_queues(struct suite_direct *direct)
{
    for (uint32_t d = 0; d < direct->device_count; d++)
        for (int lane = 0; lane < SUITE_LANES; lane++) {
            struct suite_hand *hand = &direct->devices[d];
            cl_int code;

            if (direct->kinds[d].on_host && lane != SUITE_LANE_COMPUTE)
                continue;
            hand->queues[lane] = clCreateCommandQueue(hand->context, hand->id, 0, &code);
            if (bench_cl_failed(code, "clCreateCommandQueue"))
                return false;
        }

    return true;
}

/* --- kernels --- */

static void show_log(const struct suite_hand *hand, cl_program program)
{
    char log[4096] = "";

    clGetProgramBuildInfo(program, hand->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    if (log[0])
        bench_fail("suite: %s", log);
}

/* The source and kernel of a pass; those that it leaves out are those of earlier passes. */
static const char *source_of(const struct cox_pass *passes, uint32_t pass)
{
    while (pass > 0 && !passes[pass].source)
        pass--;

    return passes[pass].source;
}

/* OpenCL counts groups from the launch's first work-item, this from the frame's. */
static const char group_ids[] =
    "#define get_group_id(dimension) (get_global_id(dimension) / get_local_size(dimension))\n"
    "#line 1\n";

static bool build(struct suite_direct *direct, struct suite_hand *hand, uint32_t pass)
{
    const struct cox_pass *passes = direct->problem->params.passes;
    const char *source = source_of(passes, pass), *own = passes[pass].options;
    char options[512];
    cl_int code;

    snprintf(options, sizeof options, "-cl-kernel-arg-info %s", own ? own : "");
    for (uint32_t earlier = 0; earlier < pass; earlier++) {
        const char *others = passes[earlier].options;
        if (source_of(passes, earlier) == source &&
            strcmp(others ? others : "", own ? own : "") == 0) {
            code = clRetainProgram(hand->programs[earlier]);
            if (bench_cl_failed(code, "clRetainProgram"))
                return false;
            hand->programs[pass] = hand->programs[earlier];
            return true;
        }
    }

    const char *const sources[] = {strstr(source, "get_group_id") ? group_ids : "", source};
    hand->programs[pass] = clCreateProgramWithSource(hand->context, 2, (const char **)sources, NULL,
                                                     &code);
    if (bench_cl_failed(code, "clCreateProgramWithSource"))
        return false;

    /* For all devices of the context: NVIDIA's driver finds no kernels in a program that was built
     * for some of them. */
    code = clBuildProgram(hand->programs[pass], 0, NULL, options, NULL, NULL);
    if (code != CL_SUCCESS)
        show_log(hand, hand->programs[pass]);

    return !bench_cl_failed(code, "clBuildProgram");
}

static bool make_kernels(struct suite_direct *direct, struct suite_hand *hand, uint32_t pass)
{
    const char *name = direct->problem->params.passes[pass].kernel;
    cl_int code;

    for (uint32_t parity = 0; parity < 2; parity++) {
        cl_kernel *kernel = &hand->kernels[pass][parity];
        cl_uint count;

        if (name) {
            *kernel = clCreateKernel(hand->programs[pass], name, &code);
        } else {
            code = clCreateKernelsInProgram(hand->programs[pass], 1, kernel, &count);
        }
        if (bench_cl_failed(code, "clCreateKernel"))
            return false;
    }

    return true;
}

/* --- sizes --- */

static size_t power_of_two(size_t bound)
{
    size_t power = 1;

    while (power * 2 <= bound)
        power *= 2;

    return power;
}

/* Take the local size that the pass states or the kernel requires. Otherwise choose
 * neighbouring work-items of a row, and several rows on a GPU. */
static bool choose_group(const struct suite_direct *direct, struct suite_hand *hand, uint32_t s)
{
    const struct suite_step *step = &direct->view.steps[s];
    const struct cox_pass *pass = step->pass;
    struct suite_group *group = &hand->groups[s];
    size_t required[3] = {0}, most = 1;

    if (bench_cl_failed(clGetKernelWorkGroupInfo(hand->kernels[s][0], hand->id,
                                                 CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required,
                                                 required, NULL),
                        "clGetKernelWorkGroupInfo") ||
        bench_cl_failed(clGetKernelWorkGroupInfo(hand->kernels[s][0], hand->id,
                                                 CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                                 NULL),
                        "clGetKernelWorkGroupInfo"))
        return false;

    group->item_columns = pass->item_columns ? pass->item_columns : 1;
    group->item_rows = pass->item_rows ? pass->item_rows : 1;
    group->local[0] = pass->local_columns ? pass->local_columns : 1;
    group->local[1] = pass->local_rows ? pass->local_rows : 1;
    if (pass->local_columns || pass->local_rows)
        return true;
    if (required[0]) {
        group->local[0] = step->columns ? required[0] : 1;
        group->local[1] = step->columns ? required[1] : required[0];
        return true;
    }

    size_t items = hand->info.type == COX_DEVICE_CPU ? CPU_ITEMS : GPU_ITEMS;
    if (most < items)
        items = power_of_two(most);
    const size_t columns = step->columns / group->item_columns;
    const size_t rows = step->rows / group->item_rows / GROUPS_MIN;
    if (!step->columns) {
        group->local[1] = items;
        return true;
    }
    group->local[0] = power_of_two(columns < ROW_ITEMS ? columns : ROW_ITEMS);
    if (group->local[0] > items)
        group->local[0] = items;
    group->local[1] = items / group->local[0];
    if (group->local[1] > power_of_two(rows))
        group->local[1] = power_of_two(rows);

    return true;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static void to_multiple(uint32_t *multiple, uint32_t of)
{
    *multiple = *multiple / common_divisor(*multiple, of) * of;
}

/* Bands begin where groups and rows of all buffers begin. */
static void find_row_multiple(struct suite_direct *direct)
{
    struct suite_view *view = &direct->view;
    uint32_t multiple = 1;

    for (uint32_t s = 0; s < view->step_count; s++) {
        for (uint32_t d = 0; d < direct->device_count; d++) {
            const struct suite_group *group = &direct->devices[d].groups[s];
            to_multiple(&multiple, group->item_rows);
            if (view->steps[s].absolute)
                to_multiple(&multiple, (uint32_t)group->local[1] * group->item_rows);
        }
        for (uint32_t a = 0; a < view->steps[s].access_count; a++)
            to_multiple(&multiple, view->steps[s].accesses[a].divisor);
    }

    for (uint32_t s = 0; s < view->step_count; s++)
        view->steps[s].row_multiple = multiple;
}

/* --- the view --- */

static bool is_pass(const struct cox_pass *pass)
{
    return pass->source || pass->kernel;
}

static void view_steps(struct suite_direct *direct)
{
    const struct cox_session_params *params = &direct->problem->params;
    struct suite_view *view = &direct->view;
    uint32_t group = 0;

    for (const struct cox_pass *pass = params->passes; is_pass(pass); pass++) {
        struct suite_step *step = &view->steps[view->step_count];
        if (!pass->fused)
            group = view->step_count;
        *step = (struct suite_step){.pass = pass,
                                    .absolute = pass->absolute,
                                    .columns = params->columns,
                                    .rows = params->rows};
        if (pass->columns)
            step->columns = pass->columns;
        if (view->steps[group].pass->rows)
            step->rows = view->steps[group].pass->rows;
        view->step_count++;
        for (uint32_t s = group; s < view->step_count; s++)
            view->steps[s].group_end = view->step_count;
    }
}

/* Whether a buffer is used inside of one fused group alone. */
static bool is_private(const struct suite_view *view, uint32_t buffer)
{
    uint32_t end = 0;

    for (uint32_t s = 0; s < view->step_count; s++)
        for (uint32_t a = 0; a < view->steps[s].access_count; a++) {
            if (view->steps[s].accesses[a].buffer != buffer)
                continue;
            if (end && view->steps[s].group_end != end)
                return false;
            end = view->steps[s].group_end;
            if (view->steps[s].accesses[a].writes && s + 1 == end)
                return false;
        }

    return end > 0 && view->buffers[buffer].layout->scratch;
}

/* The last step that uses a buffer. */
static uint32_t last_use(const struct suite_view *view, uint32_t buffer)
{
    uint32_t last = 0;

    for (uint32_t s = 0; s < view->step_count; s++)
        for (uint32_t a = 0; a < view->steps[s].access_count; a++)
            if (view->steps[s].accesses[a].buffer == buffer)
                last = s;

    return last;
}

/* Private buffers share memory: a slot is free after the last use of its buffer. */
static void share_privates(struct suite_direct *direct)
{
    struct suite_view *view = &direct->view;
    uint32_t last[COX_BUFFERS_MAX] = {0};

    for (uint32_t s = 0; s < view->step_count; s++)
        for (uint32_t a = 0; a < view->steps[s].access_count; a++) {
            struct suite_buffer *buffer = &view->buffers[view->steps[s].accesses[a].buffer];
            uint32_t slot = 0;

            if (buffer->place != SUITE_PRIVATE || !view->steps[s].accesses[a].writes)
                continue;
            while (slot < direct->private_count && last[slot] >= s)
                slot++;
            if (slot == direct->private_count)
                direct->private_count++;
            buffer->ordinal = slot;
            last[slot] = last_use(view, view->steps[s].accesses[a].buffer);
            if (direct->private_bytes[slot] < buffer->bytes)
                direct->private_bytes[slot] = buffer->bytes;
        }
}

/* The size of an element, from the first kernel that says it. */
static size_t element_of(const struct suite_direct *direct, uint32_t buffer)
{
    for (uint32_t s = 0; s < direct->view.step_count; s++)
        for (uint32_t a = 0; a < direct->arguments[s].count; a++) {
            const struct suite_argument *argument = &direct->arguments[s].at[a];
            if (argument->kind == SUITE_BUFFER && argument->element_bytes &&
                direct->view.steps[s].accesses[argument->access].buffer == buffer)
                return argument->element_bytes;
        }

    return 0;
}

static bool view_buffers(struct suite_direct *direct)
{
    const struct cox_session_params *params = &direct->problem->params;
    struct suite_view *view = &direct->view;
    uint32_t frame_count = 0, scratch_count = 0;

    for (const struct cox_buffer_layout *layout = params->buffers; layout->name; layout++) {
        struct suite_buffer *buffer = &view->buffers[view->buffer_count];
        const uint32_t divisor = layout->row_divisor ? layout->row_divisor : 1;
        const uint32_t columns = params->columns ? params->columns : 1;

        *buffer = (struct suite_buffer){.layout = layout,
                                        .pitch_bytes = layout->pitch_bytes,
                                        .border_above = layout->border_above,
                                        .rows = (params->rows + divisor - 1) / divisor +
                                                layout->border_above + layout->border_below};
        if (layout->offset_bytes)
            return bench_fail("suite: buffer %s has bytes before its rows", layout->name);
        if (!buffer->pitch_bytes)
            buffer->pitch_bytes = columns * element_of(direct, view->buffer_count);
        buffer->bytes = layout->bytes;
        if (!buffer->bytes)
            buffer->bytes = buffer->pitch_bytes * buffer->rows;
        if (layout->merge) {
            buffer->rows = 1;
            buffer->pitch_bytes = buffer->bytes;
        } else if (layout->bytes && buffer->pitch_bytes) {
            buffer->rows = (uint32_t)((layout->bytes + buffer->pitch_bytes - 1) /
                                      buffer->pitch_bytes);
        }

        if (!layout->scratch) {
            buffer->ordinal = frame_count++;
        } else if (is_private(view, view->buffer_count)) {
            buffer->place = SUITE_PRIVATE;
        } else {
            buffer->place = SUITE_SCRATCH;
            buffer->ordinal = scratch_count++;
            direct->store_bytes[direct->problem->memory_count + buffer->ordinal] = buffer->bytes;
        }
        if (!buffer->bytes || !buffer->pitch_bytes)
            return bench_fail("suite: the size of buffer %s is not known", layout->name);
        view->buffer_count++;
    }

    for (uint32_t m = 0; m < direct->problem->memory_count; m++)
        direct->store_bytes[m] = direct->problem->memories[m].bytes;
    view->store_count = direct->problem->memory_count + scratch_count;

    return true;
}

/* --- memory --- */

/* Memory of the host: pinned by the first device that copies, else plain. */
static bool make_host_memory(struct suite_direct *direct, uint32_t store)
{
    const size_t bytes = (direct->store_bytes[store] + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    cl_int code;

    for (uint32_t d = 0; d < direct->device_count; d++) {
        struct suite_hand *hand = &direct->devices[d];
        if (direct->kinds[d].on_host)
            continue;
        direct->pinned[store] = clCreateBuffer(hand->context, CL_MEM_ALLOC_HOST_PTR, bytes, NULL,
                                               &code);
        if (bench_cl_failed(code, "clCreateBuffer"))
            return false;
        direct->pinned_queue = hand->queues[SUITE_LANE_COMPUTE];
        direct->data[store] = clEnqueueMapBuffer(direct->pinned_queue, direct->pinned[store],
                                                 CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                                 NULL, NULL, &code);
        return !bench_cl_failed(code, "clEnqueueMapBuffer");
    }

    direct->data[store] = aligned_alloc(PAGE_BYTES, bytes);

    return direct->data[store] || bench_fail("out of memory");
}

/* Memory of a device, or the host's memory as a processor sees it. The driver of a processor works
 * in the host's memory; two of its devices may use different rows at the same time. */
static bool make_mem(struct suite_direct *direct, uint32_t device, size_t bytes, void *data,
                     cl_mem *mem)
{
    const struct suite_hand *hand = &direct->devices[device];
    cl_int code;

    if (direct->kinds[device].on_host && data)
        *mem = clCreateBuffer(hand->context, CL_MEM_USE_HOST_PTR, bytes, data, &code);
    else
        *mem = clCreateBuffer(hand->context, CL_MEM_READ_WRITE, bytes, NULL, &code);

    return !bench_cl_failed(code, "clCreateBuffer");
}

static bool make_memory(struct suite_direct *direct)
{
    const struct suite_view *view = &direct->view;

    for (uint32_t s = 0; s < view->store_count; s++) {
        if (!make_host_memory(direct, s))
            return false;
        for (uint32_t d = 0; d < direct->device_count; d++)
            if (!make_mem(direct, d, direct->store_bytes[s], direct->data[s],
                          &direct->devices[d].stores[s]))
                return false;
    }

    for (uint32_t d = 0; d < direct->device_count; d++) {
        struct suite_hand *hand = &direct->devices[d];
        for (uint32_t p = 0; p < direct->private_count; p++)
            if (!make_mem(direct, d, direct->private_bytes[p], NULL, &hand->privates[p]))
                return false;
        for (uint32_t b = 0; b < view->buffer_count; b++) {
            const size_t bytes = view->buffers[b].bytes;
            if (!view->buffers[b].layout->merge)
                continue;
            hand->partial_data[b] = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) /
                                                                  PAGE_BYTES * PAGE_BYTES);
            if (!hand->partial_data[b])
                return bench_fail("out of memory");
            if (!make_mem(direct, d, bytes, hand->partial_data[b], &hand->partials[b]))
                return false;
        }
    }

    return true;
}

/* --- arguments that never change --- */

static cl_mem mem_of(const struct suite_direct *direct, uint32_t device, uint32_t parity,
                     const struct suite_access *access)
{
    const struct suite_hand *hand = &direct->devices[device];
    const struct suite_buffer *buffer = &direct->view.buffers[access->buffer];

    if (buffer->place == SUITE_PRIVATE)
        return hand->privates[buffer->ordinal];
    if (buffer->layout->merge && access->writes)
        return hand->partials[access->buffer];

    return hand->stores[suite_view_store(&direct->view, parity, access->buffer)];
}

static cl_int bind(const struct suite_direct *direct, uint32_t device, uint32_t s, uint32_t parity)
{
    const struct suite_arguments *arguments = &direct->arguments[s];
    const struct suite_step *step = &direct->view.steps[s];
    cl_kernel kernel = direct->devices[device].kernels[s][parity];
    cl_int code = CL_SUCCESS;

    for (cl_uint a = 0; a < arguments->count && code == CL_SUCCESS; a++) {
        const struct suite_argument *argument = &arguments->at[a];
        const struct suite_access *access = &step->accesses[argument->access];
        cl_mem mem;
        cl_int value = 0;

        switch (argument->kind) {
        case SUITE_BUFFER:
            mem = mem_of(direct, device, parity, access);
            code = clSetKernelArg(kernel, a, sizeof mem, &mem);
            continue;
        case SUITE_LOCAL:
            code = clSetKernelArg(kernel, a, argument->bytes, NULL);
            continue;
        case SUITE_BUFFER_PITCH:
            value = (cl_int)(direct->view.buffers[access->buffer].pitch_bytes /
                             element_of(direct, access->buffer));
            break;
        case SUITE_COLUMNS:
            value = (cl_int)(step->columns ? step->columns : 1);
            break;
        case SUITE_FRAME_ROWS:
        case SUITE_ROWS: /* of an absolute pass */
            value = (cl_int)step->rows;
            break;
        case SUITE_CONSTANT:
            continue;
        default:
            break;
        }
        code = clSetKernelArg(kernel, a, sizeof value, &value);
    }

    return code;
}

static bool make_arguments(struct suite_direct *direct)
{
    for (uint32_t d = 0; d < direct->device_count; d++)
        for (uint32_t s = 0; s < direct->view.step_count; s++)
            for (uint32_t parity = 0; parity < 2; parity++)
                if (bench_cl_failed(bind(direct, d, s, parity), "clSetKernelArg"))
                    return false;

    return true;
}

/* --- all of it --- */

bool suite_direct_make(struct suite_direct *direct, const struct cox_device_info *devices)
{
    struct suite_view *view = &direct->view;

    view->problem = direct->problem;
    for (uint32_t d = 0; d < direct->device_count; d++) {
        direct->devices[d].info = devices[d];
        direct->kinds[d].on_host = devices[d].type == COX_DEVICE_CPU &&
                                   devices[d].mode != COX_MODE_STAGED;
        if (!bench_cl_find_device(&devices[d], &direct->devices[d].id))
            return false;
    }
    if (!make_contexts(direct) || !make_queues(direct))
        return false;

    view_steps(direct);
    for (uint32_t d = 0; d < direct->device_count; d++)
        for (uint32_t s = 0; s < view->step_count; s++) {
            struct suite_hand *hand = &direct->devices[d];
            if (!build(direct, hand, s) || !make_kernels(direct, hand, s) ||
                !suite_arguments_read(hand->kernels[s][0], direct->problem, view->steps[s].pass,
                                      &direct->arguments[s], &view->steps[s]) ||
                !choose_group(direct, hand, s))
                return false;
        }

    find_row_multiple(direct);
    if (!view_buffers(direct))
        return false;
    share_privates(direct);

    return make_memory(direct) && make_arguments(direct);
}

void suite_direct_unmake(struct suite_direct *direct)
{
    for (uint32_t s = 0; s < direct->view.store_count; s++) {
        if (direct->pinned[s] && direct->data[s])
            clEnqueueUnmapMemObject(direct->pinned_queue, direct->pinned[s], direct->data[s], 0,
                                    NULL, NULL);
    }
    if (direct->pinned_queue)
        clFinish(direct->pinned_queue);

    for (uint32_t d = 0; d < direct->device_count; d++) {
        struct suite_hand *hand = &direct->devices[d];
        for (uint32_t s = 0; s < SUITE_STORES_MAX; s++)
            BENCH_CL_RELEASE(MemObject, hand->stores[s]);
        for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++) {
            BENCH_CL_RELEASE(MemObject, hand->privates[b]);
            BENCH_CL_RELEASE(MemObject, hand->partials[b]);
            free(hand->partial_data[b]);
        }
        for (uint32_t s = 0; s < SUITE_PASSES_MAX; s++) {
            BENCH_CL_RELEASE(Kernel, hand->kernels[s][0]);
            BENCH_CL_RELEASE(Kernel, hand->kernels[s][1]);
            BENCH_CL_RELEASE(Program, hand->programs[s]);
        }
        for (int lane = 0; lane < SUITE_LANES; lane++)
            BENCH_CL_RELEASE(CommandQueue, hand->queues[lane]);
    }

    for (uint32_t s = 0; s < direct->view.store_count; s++) {
        if (!direct->pinned[s])
            free(direct->data[s]);
        BENCH_CL_RELEASE(MemObject, direct->pinned[s]);
    }
    for (uint32_t c = 0; c < direct->context_count; c++)
        clReleaseContext(direct->contexts[c]);
}
