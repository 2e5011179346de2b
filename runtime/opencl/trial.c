/* Trials of check mode: one band's kernels run on separate buffers. The buffers are larger than
 * what the kernels get.
 *
 * The kernels get the same arguments as in a frame: sub-buffers at aligned offsets, and images. A
 * kernel that goes beyond a sub-buffer stays in the larger buffer, whose bytes all come back.
 *
 * Runs on the application's thread that submits a frame. No job uses the instance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hang.h"
#include "host/leak.h"
#include "instance_parts.h"

/* Longer than any driver compiles a kernel, on a busy machine too. */
#define TIMEOUT_NS 600000000000ull

/* Backwards, the groups are launched in at most this many parts. */
enum { PARTS_X = 4, PARTS_Y = 64 };

/* The memory objects of a trial. */
struct objects {
    cl_mem all[COX_BUFFERS_MAX];
    cl_mem given[COX_BUFFERS_MAX]; /* parts of `all` */
    size_t pads[COX_BUFFERS_MAX];  /* bytes of `all` before the trial's memory */
    struct cox__cl_slot slot;      /* only its images are used */
};

/* ---- memory ---- */

/* Inner objects go first: NVIDIA's driver releases them with the outer ones. */
static void release(struct objects *objects)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++) {
        if (objects->given[i])
            clReleaseMemObject(objects->given[i]);
        if (objects->all[i])
            clReleaseMemObject(objects->all[i]);
        cox__cl_image_clear(&objects->slot.images[i]);
    }
}

static cl_int make_buffer(const struct cox__instance *instance, struct objects *objects,
                          const struct cox__trial_memory *memory, uint32_t binding)
{
    /* Rows behind a border begin anywhere, but a sub-buffer does not. */
    const uint32_t align = cox__max_u64(instance->device->info.base_align_bytes, 1);
    const size_t pad = (align - memory->start % align) % align;
    const cl_buffer_region region = {.origin = pad + memory->start, .size = memory->span};
    cl_int code;
    cl_mem all = clCreateBuffer(instance->context, CL_MEM_READ_WRITE, pad + memory->bytes, NULL,
                                &code);
    if (code)
        return code;

    objects->all[binding] = all;
    objects->pads[binding] = pad;
    code = clEnqueueWriteBuffer(instance->queues[COX__CL_QUEUE_COMPUTE], all, CL_FALSE, pad,
                                memory->bytes, memory->data, 0, NULL, NULL);
    if (code)
        return code;

    cl_mem given = clCreateSubBuffer(all, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (!code)
        objects->given[binding] = given;
    return code;
}

static cl_int make_image(const struct cox__instance *instance, struct objects *objects,
                         const struct cox__trial_memory *memory, uint32_t binding)
{
    const size_t pitch = instance->pipeline->bindings[binding].pitch_bytes;
    const uint32_t rows = (uint32_t)(memory->span / pitch);
    cl_int code;
    cl_mem image = cox__cl_image_copy(instance, binding, rows, memory->data + memory->start, &code);
    if (!code)
        objects->slot.images[binding] = (struct cox__cl_image){.mem = image, .rows = rows};
    return code;
}

static cl_int make_objects(const struct cox__instance *instance, const struct cox__trial *trial,
                           struct objects *objects)
{
    const struct cox__pass *pass = &instance->pipeline->passes[trial->pass];
    cl_int code = CL_SUCCESS;

    for (uint32_t i = 0; !code && i < pass->binding_count; i++) {
        const struct cox__trial_memory *memory = &trial->memories[i];
        if (!memory->data)
            continue;

        if (!(pass->only_images >> i & 1))
            code = make_buffer(instance, objects, memory, i);
        if (!code && pass->images >> i & 1)
            code = make_image(instance, objects, memory, i);
    }
    return code;
}

/* Copy all memory back. */
static cl_int read_objects(const struct cox__instance *instance, const struct cox__trial *trial,
                           const struct objects *objects)
{
    cl_command_queue queue = instance->queues[COX__CL_QUEUE_COMPUTE];
    cl_int code = CL_SUCCESS;

    for (uint32_t i = 0; !code && i < COX_BUFFERS_MAX; i++) {
        const struct cox__trial_memory *memory = &trial->memories[i];
        if (objects->all[i])
            code = clEnqueueReadBuffer(queue, objects->all[i], CL_FALSE, objects->pads[i],
                                       memory->bytes, memory->data, 0, NULL, NULL);
    }
    return code;
}

/* ---- kernels ---- */

/* Work-items of one part if `global` is cut into at most `parts` parts of whole groups. */
static size_t part_of(size_t global, size_t local, size_t parts)
{
    const size_t groups = global / local;
    return (groups + parts - 1) / parts * local;
}

/* Enqueue work-items from `offset` on, `part` or as many as there are. */
static cl_int enqueue_part(const struct cox__instance *instance, const struct cox__cl_stage *stage,
                           const struct cox__cl_range *range, const size_t part[2],
                           const size_t offset[2])
{
    const size_t size[2] = {cox__min_u64(part[0], range->global[0] - offset[0]),
                            cox__min_u64(part[1], range->global[1] - offset[1])};
    const size_t from[2] = {range->offset[0] + offset[0], range->offset[1] + offset[1]};
    return clEnqueueNDRangeKernel(instance->queues[COX__CL_QUEUE_COMPUTE], stage->kernels[0].id,
                                  range->dimensions, from, size, stage->local, 0, NULL, NULL);
}

/* Add a group in each dimension in which some work-items have nothing to do. `extent`: rows that
 * the stage may compute above and below the launch's. */
static void widen(const struct cox__cl_stage *stage, size_t rows, size_t extent, size_t global[2])
{
    const struct cox__variant *variant = stage->variant;
    const uint32_t of_rows = cox__cl_stage_rows_dimension(stage);

    if (of_rows && (global[0] - 1) * variant->item_columns >= stage->stage->columns)
        global[0] += stage->local[0];
    if ((global[of_rows] - 1) * variant->item_rows >= rows + 2 * extent)
        global[of_rows] += stage->local[of_rows];
}

static cl_int run_stage(const struct cox__instance *instance, const struct cox__trial *trial,
                        const struct cox__cl_launch *launch, uint32_t number)
{
    const struct cox__cl_stage *stage = &instance->stages[trial->pass][number];
    struct cox__cl_range range;
    cl_int code;

    /* The objects are new, though they may have the addresses of old ones. */
    for (uint32_t a = 0; a < stage->stage->arg_count; a++)
        stage->kernels[0].memos[a].bytes = 0;

    code = cox__cl_stage_set(instance, launch, number, &range);
    if (code)
        return code;
    if (trial->wider)
        widen(stage, trial->rows, instance->pipeline->passes[trial->pass].extents[number],
              range.global);

    /* Launched in parts, a kernel that asks for its group would get other answers, except in an
     * absolute pass. */
    const bool may_depend = stage->variant->code || stage->variant->libraries ||
                            (!instance->pipeline->passes[trial->pass].absolute &&
                             cox__pipeline_asks_group(stage->variant->source));
    if (!trial->backwards || may_depend)
        return clEnqueueNDRangeKernel(instance->queues[COX__CL_QUEUE_COMPUTE], stage->kernels[0].id,
                                      range.dimensions, range.offset, range.global, stage->local, 0,
                                      NULL, NULL);

    const size_t *global = range.global;
    const size_t parts = range.dimensions > 1 ? PARTS_X : PARTS_Y;
    const size_t part[2] = {part_of(global[0], stage->local[0], parts),
                            part_of(global[1], stage->local[1], PARTS_Y)};
    for (size_t y = (global[1] - 1) / part[1] + 1; y-- > 0;)
        for (size_t x = (global[0] - 1) / part[0] + 1; !code && x-- > 0;)
            code = enqueue_part(instance, stage, &range, part,
                                (const size_t[]){x * part[0], y * part[1]});
    return code;
}

static cl_int run_stages(const struct cox__instance *instance, const struct cox__trial *trial,
                         struct objects *objects)
{
    const struct cox__job job = {.pass = trial->pass, .params = trial->params};
    uint32_t origins[COX_BUFFERS_MAX];
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        origins[i] = trial->memories[i].origin;

    const struct cox__cl_launch launch = {.job = &job,
                                          .slot = &objects->slot,
                                          .first_row = trial->first_row,
                                          .rows = trial->rows,
                                          .mems = objects->given,
                                          .origins = origins};
    cl_int code = CL_SUCCESS;
    for (uint32_t s = 0; !code && s < instance->pipeline->passes[trial->pass].stage_count; s++)
        code = run_stage(instance, trial, &launch, s);
    return code;
}

cox_status cox__cl_trial_run(struct cox__backend *base, struct cox__instance *instance,
                             const struct cox__trial *trial)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    struct objects objects = {.all = {NULL}};
    const char *call = "clCreateBuffer";

    const cox_status tainted = cox__cl_taint_run(instance, trial->pass, trial->taint);
    if (tainted)
        return tainted;

    cl_int code = make_objects(instance, trial, &objects);
    if (!code) {
        call = "clEnqueueNDRangeKernel";
        code = run_stages(instance, trial, &objects);
    }
    if (!code) {
        call = "clEnqueueReadBuffer";
        code = read_objects(instance, trial, &objects);
    }

    /* After an error, too: commands may be under way. */
    const cl_int end = cox__cl_command_queue_drain(instance->queues[COX__CL_QUEUE_COMPUTE],
                                                   instance->shared, TIMEOUT_NS);
    if (end == COX__CL_NOT_IN_TIME) {
        const cox_status status = cox__cl_device_memory_hangs(instance);
        cox__cl_hang_begins(backend, instance->device_index, instance->shared);
        cox__leak(instance);
        return status;
    }

    release(&objects);
    if (!code)
        code = end;
    return cox__cl_instance_check(instance, code, call);
}
