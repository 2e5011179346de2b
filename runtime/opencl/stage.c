/* The kernels of an instance: built, checked against their stages, and launched.
 *
 * They are built with their instance. Arguments are set and kernels launched with the engine lock
 * held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make one of the stage's kernels. Errors (logged): E_BUILD, E_NOMEM, … */
static cox_status make_kernel(struct cox__instance *instance, const struct cox__cl_stage *made,
                              struct cox__cl_kernel *kernel)
{
    cl_int code;

    kernel->memos = calloc(cox__max_u64(made->stage->arg_count, 1), sizeof *kernel->memos);
    if (!kernel->memos)
        return COX_E_NOMEM;

    kernel->id = clCreateKernel(made->program->id, made->stage->kernel, &code);
    if (code)
        kernel->id = NULL;

    if (code == CL_INVALID_KERNEL_NAME) {
        cox__log(instance->backend->log, COX_LOG_ERROR, "the source has no kernel %s",
                 made->stage->kernel);
        return COX_E_BUILD;
    }
    return cox__cl_instance_check(instance, code, "clCreateKernel");
}

static cox_status make_kernels(struct cox__instance *instance, struct cox__cl_stage *made)
{
    uint32_t count = 1;
    if (instance->staged)
        count = instance->slot_count;

    made->kernels = calloc(count, sizeof *made->kernels);
    if (!made->kernels)
        return COX_E_NOMEM;

    for (; made->kernel_count < count; made->kernel_count++) {
        struct cox__cl_kernel *kernel = &made->kernels[made->kernel_count];
        const cox_status status = make_kernel(instance, made, kernel);
        if (status) {
            free(kernel->memos);
            return status;
        }
    }

    return COX_OK;
}

/* Get a stage's program, with the runtime's arithmetic among its options. */
static cox_status build(struct cox__instance *instance, struct cox__cl_stage *made)
{
    struct cox__variant kernel = *made->variant;
    char *options = cox__cl_program_options(instance->backend, &kernel);
    if (!options)
        return COX_E_NOMEM;

    kernel.options = options;
    const cox_status status = cox__cl_program_get(instance->backend, instance->device_index,
                                                  instance->context, &kernel, &made->program);

    free(options);
    return status;
}

cox_status cox__cl_stage_make(struct cox__instance *instance, const struct cox__pass *pass,
                              struct cox__cl_stage *made)
{
    const struct cox__log *log = instance->backend->log;
    const struct cox_device_info *info = &instance->device->info;

    made->variant = cox__pipeline_stage_variant(made->stage, instance->device_index, info->type);
    if (!made->variant) {
        cox__log(log, COX_LOG_WARN, "%s: kernel %s has no variant for a %s", info->name,
                 made->stage->kernel, cox_device_type_name(info->type));
        return COX_E_UNSUPPORTED;
    }

    cox_status status = build(instance, made);
    if (status == COX_OK)
        status = make_kernels(instance, made);
    if (status)
        return status;

    status = cox__cl_arguments_check(instance, pass, made);
    if (status == COX_OK)
        status = cox__cl_work_group_choose(instance, pass, made);
    if (status == COX_OK)
        status = cox__cl_arguments_try(instance, pass, made);
    return status;
}

void cox__cl_stage_clear(struct cox__instance *instance, struct cox__cl_stage *stage, bool sound)
{
    for (uint32_t k = 0; k < stage->kernel_count; k++) {
        clReleaseKernel(stage->kernels[k].id);
        free(stage->kernels[k].memos);
    }

    cox__cl_program_put(instance->backend, stage->program, sound);
    free(stage->kernels);
}

/* Set an argument if its value has changed. `value` NULL: local memory. */
static cl_int set_arg(struct cox__cl_kernel *kernel, cl_uint index, size_t bytes, const void *value)
{
    struct cox__cl_memo *memo = &kernel->memos[index];
    if (memo->bytes == bytes && (!value || memcmp(memo->value, value, bytes) == 0))
        return CL_SUCCESS;

    const cl_int code = clSetKernelArg(kernel->id, index, bytes, value);
    memo->bytes = bytes;
    if (code)
        memo->bytes = 0; /* after a refusal the argument's value is unknown */
    if (value)
        memcpy(memo->value, value, bytes);
    return code;
}

/* Set an argument to a memory object. `stays`: it lives as long as the kernel. Band objects, images
 * and the application's objects come and go, and a new one may have the address of a released one:
 * they are set each time. */
static cl_int set_mem(struct cox__cl_kernel *kernel, cl_uint index, cl_mem mem, bool stays)
{
    if (stays)
        return set_arg(kernel, index, sizeof mem, &mem);
    kernel->memos[index].bytes = 0;
    return clSetKernelArg(kernel->id, index, sizeof mem, &mem);
}

/* The value of an argument that describes the launch. */
static cl_int launch_number(const struct cox__instance *instance, const struct cox__cl_stage *stage,
                            const struct cox__cl_launch *launch, const struct cox__arg *arg)
{
    const struct cox__pass *pass = cox__cl_pass(instance, launch->job);

    switch (arg->kind) {
    case COX__ARG_KIND_VALUE:
        return (cl_int)arg->offset;
    case COX__ARG_KIND_FIRST:
        return pass->absolute ? 0 : (cl_int)launch->first_row;
    case COX__ARG_KIND_ROWS:
        return (cl_int)(pass->absolute ? pass->rows : launch->rows);
    case COX__ARG_KIND_FRAME:
        return (cl_int)pass->rows;
    case COX__ARG_KIND_ORIGIN:
        return (cl_int)launch->origins[arg->index] -
               (cl_int)pass->bindings[arg->index].border_above;
    default:
        return (cl_int)stage->stage->columns;
    }
}

static cl_int set_args(const struct cox__instance *instance, const struct cox__cl_stage *stage,
                       struct cox__cl_kernel *kernel, const struct cox__cl_launch *launch)
{
    for (uint32_t a = 0; a < stage->stage->arg_count; a++) {
        const struct cox__arg *arg = &stage->stage->args[a];
        cl_int number, code;

        switch (arg->kind) {
        case COX__ARG_KIND_BUFFER:
            code = set_mem(kernel, a, launch->mems[arg->index],
                           instance->staged && !(launch->job->homed >> arg->index & 1));
            break;
        case COX__ARG_KIND_IMAGE:
            code = set_mem(kernel, a, launch->slot->images[arg->index].mem, false);
            break;
        case COX__ARG_KIND_PARAMS:
            code = set_arg(kernel, a, arg->bytes, (const char *)launch->job->params + arg->offset);
            break;
        case COX__ARG_KIND_LOCAL:
            code = set_arg(kernel, a, arg->bytes, NULL);
            break;
        default:
            number = launch_number(instance, stage, launch, arg);
            code = set_arg(kernel, a, sizeof number, &number);
        }

        if (code)
            return code;
    }

    return CL_SUCCESS;
}

/* Work-items for `count` columns or rows, in whole groups unless the last one may be partial. */
static size_t work_items(const struct cox__cl_stage *stage, uint32_t count, uint32_t per_item,
                         size_t local)
{
    const size_t items = ((size_t)count + per_item - 1) / per_item;
    if (stage->partial_groups)
        return items;
    return (items + local - 1) / local * local;
}

/* Extend a launch to the rows of a stage: its own, and those around it that later stages need. */
static void extend(struct cox__cl_launch *launch, const struct cox__pass *pass, uint32_t stage)
{
    const uint32_t extent = pass->extents[stage];
    const uint32_t first = launch->first_row, end = first + launch->rows;
    const uint32_t above = cox__min_u64(first, extent);
    const uint32_t below = cox__min_u64(pass->rows - end, extent);

    launch->first_row = first - above;
    launch->rows = end + below - launch->first_row;
}

cl_int cox__cl_stage_set(const struct cox__instance *instance, const struct cox__cl_launch *launch,
                         uint32_t number, struct cox__cl_range *range)
{
    const struct cox__cl_stage *stage = &instance->stages[launch->job->pass][number];
    const struct cox__pass *pass = cox__cl_pass(instance, launch->job);
    const struct cox__variant *variant = stage->variant;
    const uint32_t of_rows = cox__cl_stage_rows_dimension(stage);
    struct cox__cl_launch extended = *launch;
    extend(&extended, pass, number);

    *range = (struct cox__cl_range){.dimensions = of_rows + 1, .global = {1, 1}};
    if (of_rows)
        range->global[0] = work_items(stage, stage->stage->columns, variant->item_columns,
                                      stage->local[0]);
    range->global[of_rows] = work_items(stage, extended.rows, variant->item_rows,
                                        stage->local[of_rows]);
    if (pass->absolute)
        range->offset[of_rows] = extended.first_row / variant->item_rows;
    return set_args(instance, stage, cox__cl_stage_kernel(stage, launch->job), &extended);
}

/* The work-items of a launch in one dimension: whole groups, or a last one with fewer. */
struct side {
    size_t offset, items, local;
};

/* Cut a dimension of the range. Returns the number of sides. */
static uint32_t cut(const struct cox__cl_stage *stage, const struct cox__cl_range *range,
                    uint32_t dimension, struct side sides[2])
{
    const size_t offset = range->offset[dimension], items = range->global[dimension];
    const size_t local = stage->local[dimension], rest = items % local;
    uint32_t count = 0;

    if (items > rest)
        sides[count++] = (struct side){offset, items - rest, local};
    if (rest)
        sides[count++] = (struct side){offset + items - rest, rest, rest};

    return count;
}

/* Enqueue a stage over a range, with one launch for each size of group. */
static cox_status enqueue_range(struct cox__instance *instance, const struct cox__cl_launch *launch,
                                const struct cox__cl_stage *stage,
                                const struct cox__cl_range *range, cl_event wait)
{
    struct side x[2], y[2];
    const uint32_t columns = cut(stage, range, 0, x), rows = cut(stage, range, 1, y);

    for (uint32_t i = 0; i < columns * rows; i++) {
        const struct side *column = &x[i % columns], *row = &y[i / columns];
        const size_t offset[2] = {column->offset, row->offset};
        const size_t global[2] = {column->items, row->items};
        const size_t local[2] = {column->local, row->local};
        cl_event event;

        const struct cox__driver_call call = cox__cl_call(instance);
        const cl_int code = clEnqueueNDRangeKernel(instance->queues[COX__CL_QUEUE_COMPUTE],
                                                   cox__cl_stage_kernel(stage, launch->job)->id,
                                                   range->dimensions,
                                                   offset[0] || offset[1] ? offset : NULL, global,
                                                   local, wait != NULL, cox__cl_wait_list(&wait),
                                                   &event);
        const cox_status status = cox__cl_slot_enqueued(instance, launch->slot, COX__CL_KERNEL,
                                                        &call, code, event,
                                                        "clEnqueueNDRangeKernel");
        if (status)
            return status;
    }

    return COX_OK;
}

cox_status cox__cl_stages_run(struct cox__instance *instance, const struct cox__cl_launch *launch,
                              uint32_t first, uint32_t end, cl_event after)
{
    for (uint32_t s = first; s < end; s++) {
        const struct cox__cl_stage *stage = &instance->stages[launch->job->pass][s];
        struct cox__cl_range range;

        const struct cox__driver_call call = cox__cl_call(instance);
        const cl_int code = cox__cl_stage_set(instance, launch, s, &range);
        cox__cl_returned(&call);
        if (code)
            return cox__cl_instance_check(instance, code, "clSetKernelArg");

        cl_event wait = NULL;
        if (s == first)
            wait = after;
        const cox_status status = enqueue_range(instance, launch, stage, &range, wait);
        if (status)
            return status;
    }

    return COX_OK;
}
