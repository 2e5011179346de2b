/* The work-groups of a stage's kernel on one device. They are chosen once, with the instance, and
 * are the same for every frame.
 *
 * A size that the application or the kernel (reqd_work_group_size) states is a promise: a kernel
 * may count on it. A device that does not allow it leaves the session. If neither states a size,
 * any will do, and the library chooses one. A kernel with local memory nearly always counts on its
 * groups, so their size must be stated. The library's choice would be right on one device and wrong
 * on another.
 *
 * The choice: a group is a power of two wide and high. On a CPU it has 64 work-items, else 256, or
 * what the driver allows. They stand side by side in a row, at most 64, and then in further rows:
 * GPUs read neighbouring elements together, and CPUs have vectors. Frames of fewer columns get
 * higher groups, and frames of few rows get wider ones. The last group of a band is padded, so a
 * group has at most an eighth of the frame's rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sources.h"
#include "instance_parts.h"

#include <string.h>

enum { CPU_ITEMS = 64, GPU_ITEMS = 256, ROW_ITEMS = 64, GROUPS_MIN = 8 };

/* What the driver says about a kernel on a device. 0 = nothing. */
struct limits {
    size_t most;     /* work-items of a group */
    size_t multiple; /* preferred */
    size_t sides[3]; /* most in each dimension */
    size_t required[3];
    cl_ulong static_bytes; /* local memory of the kernel, without its arguments */
    cl_ulong local_bytes;  /* of the device */
};

/* No argument must be set yet: some drivers count the local memory of those that are. */
static void read_limits(const struct cox__instance *instance, const struct cox__cl_stage *made,
                        struct limits *limits)
{
    cl_kernel kernel = made->kernels[0].id;
    cl_device_id device = instance->device->id;
    size_t sides[16] = {0};

    *limits = (struct limits){.most = 0};
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limits->most,
                             &limits->most, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                             sizeof limits->multiple, &limits->multiple, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                             sizeof limits->required, limits->required, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof limits->static_bytes,
                             &limits->static_bytes, NULL);

    if (limits->static_bytes == 1) /* NVIDIA 580 says so of kernels without local memory */
        limits->static_bytes = 0;

    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof limits->local_bytes,
                    &limits->local_bytes, NULL);
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sides, sides, NULL) ==
        CL_SUCCESS)
        memcpy(limits->sides, sides, sizeof limits->sides);
}

/* ---- local memory ---- */

static cl_ulong argument_bytes(const struct cox__stage *stage)
{
    cl_ulong bytes = 0;
    for (uint32_t a = 0; a < stage->arg_count; a++)
        if (stage->args[a].kind == COX__ARG_KIND_LOCAL)
            bytes += stage->args[a].bytes;

    return bytes;
}

static cox_status check_local_memory(const struct cox__instance *instance,
                                     const struct cox__cl_stage *made, const struct limits *limits)
{
    const cl_ulong bytes = limits->static_bytes + argument_bytes(made->stage);

    /* rusticl 22.3 counts an array twice if the kernel hands it to a function. */
    cl_ulong least = bytes;
    if (strcmp(instance->device->info.platform, "rusticl") == 0)
        least -= limits->static_bytes / 2;
    if (least <= limits->local_bytes)
        return COX_OK;

    cox__log(instance->backend->log, COX_LOG_WARN,
             "%s: kernel %s uses %llu bytes of local memory, but the device has %llu",
             instance->device->info.name, made->stage->kernel, (unsigned long long)bytes,
             (unsigned long long)limits->local_bytes);
    return COX_E_UNSUPPORTED;
}

/* ---- the library's choice ---- */

static size_t power_of_two_at_most(size_t bound)
{
    size_t power = 1;
    while (power * 2 <= bound)
        power *= 2;

    return power;
}

static size_t power_of_two_at_least(size_t bound)
{
    size_t power = 1;
    while (power < bound)
        power *= 2;

    return power;
}

void cox__cl_work_group_suggest(const struct cox__cl_group_shape *shape, size_t local[2])
{
    size_t items = shape->is_cpu ? CPU_ITEMS : GPU_ITEMS;
    if (shape->multiple > items)
        items = shape->multiple;
    if (shape->most < items)
        items = shape->most;
    items = power_of_two_at_most(items);

    const size_t columns = cox__min_u64(power_of_two_at_least(shape->columns),
                                        power_of_two_at_most(shape->sides[0]));
    const size_t rows = power_of_two_at_most(cox__min_u64(cox__max_u64(shape->rows / GROUPS_MIN, 1),
                                                          shape->sides[1]));

    local[0] = cox__min_u64(columns, cox__min_u64(items, ROW_ITEMS));
    local[1] = cox__min_u64(rows, items / local[0]);
    local[0] = cox__min_u64(columns, items / local[1]);
}

static size_t items_of(uint32_t count, uint32_t per_item)
{
    return ((size_t)count + per_item - 1) / per_item;
}

/* Whether the kernel's groups may have different sizes: it cannot know what a group is. */
static bool ignores_groups(const struct cox__cl_stage *made)
{
    const struct cox__variant *variant = made->variant;
    bool asks = variant->code || variant->libraries || cox__sources_ask_group(variant->source);

    for (const struct cox_source *h = variant->headers; h && h->name; h++)
        asks |= cox__sources_ask_group(h->text);
    return !asks;
}

static size_t divisor(size_t items, size_t most)
{
    while (items % most)
        most--;
    return most;
}

void cox__cl_work_group_divide(const size_t global[2], size_t local[2])
{
    for (int d = 0; d < 2; d++)
        local[d] = divisor(global[d], local[d]);
}

/* Rows that a stage of an absolute pass computes above and below a band, of which work-groups must
 * leave no rest. 0 if it computes the whole frame. */
static uint32_t extent_of(const struct cox__pass *pass, const struct cox__cl_stage *made)
{
    const uint32_t extent = pass->extents[made->stage - pass->stages];
    return extent < pass->rows ? extent : 0;
}

/* In an absolute pass nothing is padded, so that a kernel need not compare its ids. The last group
 * is smaller, or the size divides the columns, the rows of the frame and those of each launch. */
static void fit(const struct cox__pass *pass, struct cox__cl_stage *made,
                const struct cox__cl_group_shape *shape)
{
    const uint32_t of_rows = cox__cl_stage_rows_dimension(made);
    made->partial_groups = ignores_groups(made);
    if (made->partial_groups)
        return;

    size_t unit = shape->rows;
    if (pass->row_alignment < pass->rows)
        unit = pass->row_alignment / made->variant->item_rows;

    const size_t extent = extent_of(pass, made) / made->variant->item_rows;
    size_t *rows = &made->local[of_rows];
    while (unit % *rows || shape->rows % *rows || extent % *rows)
        --*rows;
    if (of_rows)
        made->local[0] = divisor(shape->columns, made->local[0]);
}

static void suggest(const struct cox__instance *instance, const struct cox__pass *pass,
                    struct cox__cl_stage *made, const struct limits *limits)
{
    const uint32_t of_rows = cox__cl_stage_rows_dimension(made);
    const struct cox__cl_group_shape shape = {
        .columns = items_of(made->stage->columns, made->variant->item_columns),
        .rows = items_of(pass->rows, made->variant->item_rows),
        .is_cpu = instance->device->info.type == COX_DEVICE_CPU,
        .multiple = limits->multiple,
        .most = cox__max_u64(limits->most, 1),
        .sides = {cox__max_u64(limits->sides[0], 1), cox__max_u64(limits->sides[of_rows], 1)}};

    cox__cl_work_group_suggest(&shape, made->local);
    if (!of_rows) {
        made->local[0] = made->local[1];
        made->local[1] = 1;
    }
    if (pass->absolute)
        fit(pass, made, &shape);
    cox__log(instance->backend->log, COX_LOG_DEBUG, "%s: kernel %s runs in groups of %zu x %zu",
             instance->device->info.name, made->stage->kernel, made->local[0], made->local[1]);
}

/* ---- sizes that are stated ---- */

static bool is_allowed(const size_t local[2], const struct limits *limits)
{
    return local[0] <= limits->sides[0] && local[1] <= limits->sides[1] &&
           local[0] * local[1] <= limits->most;
}

/* For a kernel that gives the same results with groups of any size. */
static void halve(const struct cox__instance *instance, struct cox__cl_stage *made,
                  const struct limits *limits)
{
    size_t *local = made->local;
    if (is_allowed(local, limits))
        return;

    while (local[0] * local[1] > 1 && !is_allowed(local, limits)) {
        size_t *larger = &local[1];
        if (local[0] >= local[1])
            larger = &local[0];
        *larger = (*larger + 1) / 2;
    }
    cox__log(instance->backend->log, COX_LOG_INFO, "%s: kernel %s runs in groups of %zu x %zu",
             instance->device->info.name, made->stage->kernel, local[0], local[1]);
}

static cox_status check_allowed(const struct cox__instance *instance,
                                const struct cox__cl_stage *made, const struct limits *limits)
{
    if (is_allowed(made->local, limits))
        return COX_OK;

    cox__log(instance->backend->log, COX_LOG_WARN,
             "%s: kernel %s has groups of %zu x %zu work-items; the device allows %zu, and at most "
             "%zu x %zu",
             instance->device->info.name, made->stage->kernel, made->local[0], made->local[1],
             limits->most, limits->sides[0], limits->sides[1]);
    return COX_E_UNSUPPORTED;
}

/* The kernel requires a size. If the session states one, it must be the same. */
static cox_status take_required(const struct cox__instance *instance, const struct cox__pass *pass,
                                struct cox__cl_stage *made, const struct limits *limits)
{
    const size_t *required = limits->required;
    const uint32_t of_rows = cox__cl_stage_rows_dimension(made);
    const bool is_stated = made->local[0] != 0;

    if (required[2] != 1 || (!of_rows && required[1] != 1))
        return cox__cl_arguments_mistake(
            instance, made, " requires groups of %zu x %zu x %zu; allowed: columns and rows only",
            required[0], required[1], required[2]);
    if (is_stated && (required[0] != made->local[0] || required[1] != made->local[1]))
        return cox__cl_arguments_mistake(
            instance, made, " requires groups of %zu x %zu, but the session states %zu x %zu",
            required[0], required[1], made->local[0], made->local[1]);

    made->local[0] = required[0];
    made->local[1] = required[1];

    /* Only the last band of an absolute pass may be padded. */
    const uint64_t rows = (uint64_t)required[of_rows] * made->variant->item_rows;
    const bool splits = pass->row_alignment < pass->rows && pass->row_alignment % rows;
    if (pass->absolute && (splits || extent_of(pass, made) % rows))
        return cox__cl_arguments_mistake(
            instance, made, " requires groups of %zu x %zu; set local_columns and local_rows",
            required[0], required[1]);
    return check_allowed(instance, made, limits);
}

cox_status cox__cl_work_group_choose(struct cox__instance *instance, const struct cox__pass *pass,
                                     struct cox__cl_stage *made)
{
    struct limits limits;
    read_limits(instance, made, &limits);

    /* PoCL 5.0 says 0 bytes for every kernel, so the text of the source counts too. */
    const bool has_local = limits.static_bytes || made->stage->local_arrays ||
                           argument_bytes(made->stage);
    cox_status status = check_local_memory(instance, made, &limits);
    if (status)
        return status;

    made->local[0] = made->variant->local_columns;
    made->local[1] = made->variant->local_rows;
    if (made->stage->one_dimension) {
        made->local[0] = made->variant->local_rows;
        made->local[1] = 1;
    }
    if (limits.required[0])
        return take_required(instance, pass, made, &limits);
    if (made->local[0]) {
        if (made->variant->any_local && !has_local)
            halve(instance, made, &limits);
        return check_allowed(instance, made, &limits);
    }
    if (has_local)
        return cox__cl_arguments_mistake(
            instance, made,
            " uses local memory, so it depends on the size of its groups; set local_columns and "
            "local_rows, or write reqd_work_group_size");

    suggest(instance, pass, made, &limits);
    return COX_OK;
}
