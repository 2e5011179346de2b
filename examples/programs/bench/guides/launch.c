/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "launch.h"
#include "common/now.h"
#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE = 64, EVENTS_MAX = GUIDES_REPEAT_MAX * GUIDES_LAUNCHES_MAX };

bool guides_cell_fail(struct guides_cell *cell, enum guides_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(cell->why, sizeof cell->why, format, args);
    va_end(args);
    cell->status = status;

    return false;
}

bool guides_cell_failed(struct guides_cell *cell, cl_int code, const char *call)
{
    if (guides_good(code, call, cell->why, sizeof cell->why))
        return false;

    cell->status = GUIDES_FAILED;
    return true;
}

/* --- Sizes --- */

static size_t round_up(size_t value, size_t to)
{
    if (!to)
        return value;

    return (value + to - 1) / to * to;
}

static size_t at_least_1(size_t size)
{
    return size ? size : 1;
}

static size_t preferred(const struct guides_device *device, cl_kernel kernel)
{
    size_t multiple = 1;

    clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                             sizeof multiple, &multiple, NULL);

    return at_least_1(multiple);
}

static size_t local_of(const struct guides_device *device, const struct guides_variant *variant,
                       int code, cl_kernel kernel)
{
    const uint32_t number = variant->number;
    uint32_t shape = SHAPE;

    if (device->group < shape)
        shape = device->group;

    switch (code) {
    case GUIDES_TILE:
        return device->tile;
    case GUIDES_GROUP:
        return device->group;
    case GUIDES_SEGMENT:
        return device->group / number;
    case GUIDES_QUARTER:
        return device->group / number / 4;
    case GUIDES_SHAPE:
        return at_least_1(shape / number);
    case GUIDES_ACROSS:
        if (number > shape)
            return shape;
        return number;
    case GUIDES_MULTIPLE:
        return at_least_1(preferred(device, kernel) * number / 4 + variant->more);
    default:
        return (size_t)code;
    }
}

static size_t each_of(const struct guides_device *device, const struct guides_variant *variant,
                      const struct guides_launch *launch)
{
    int each = launch->each;

    if (device->cpu && launch->each_cpu)
        each = launch->each_cpu;
    if (each == GUIDES_SEGMENT)
        return device->group / variant->number;

    return at_least_1((size_t)each);
}

/* The number of work-items in both directions. Returns the number of dimensions. */
static cl_uint sizes_of(const struct guides_device *device, const struct guides_variant *variant,
                        const struct guides_launch *launch, size_t size[2])
{
    const size_t w = device->width, h = device->height;
    const size_t share = device->pixels / at_least_1(launch->share);
    const size_t sizes[][2] = {
        [GUIDES_LINE] = {share / each_of(device, variant, launch)},
        [GUIDES_PLANE] = {w, h},
        [GUIDES_TURNED] = {h, w},
        [GUIDES_ROWS] = {h},
        [GUIDES_COLUMNS] = {w},
        [GUIDES_INTERIOR] = {w - 2, h - 2},
        [GUIDES_PADDED] = {w + 2, h + 2},
        [GUIDES_BORDER] = {2 * (w + h) - 4},
    };

    size[0] = sizes[launch->region][0];
    size[1] = at_least_1(sizes[launch->region][1]);

    return sizes[launch->region][1] ? 2 : 1;
}

/* Add the size of the work-groups to a cell's name. */
static void name_size(const size_t local[2], cl_uint dimensions, struct guides_cell *cell)
{
    const size_t length = strlen(cell->name), room = sizeof cell->name - length;

    if (dimensions == 1)
        snprintf(cell->name + length, room, " (%zu)", local[0]);
    else
        snprintf(cell->name + length, room, " (%zu × %zu)", local[0], local[1]);
}

/* Find the sizes of a launch; false if the device does not allow them. */
static bool find_sizes(struct guides_run *run, uint32_t v, uint32_t l)
{
    const struct guides_device *device = run->device;
    const struct guides_variant *variant = &run->result->experiment->variants[v];
    const struct guides_launch *launch = &variant->launches[l];
    struct guides_prepared *prepared = &run->prepared[v];
    struct guides_cell *cell = &run->result->cells[v];
    size_t size[2], most = 0, items = 1;

    prepared->dimensions[l] = sizes_of(device, variant, launch, size);
    for (int d = 0; d < 2; d++) {
        size_t local = 1;
        if (d < (int)prepared->dimensions[l])
            local = local_of(device, variant, launch->local[d], prepared->kernels[l]);
        prepared->local[l][d] = local;
        prepared->global[l][d] = round_up(size[d], local);
        items *= local;
    }

    clGetKernelWorkGroupInfo(prepared->kernels[l], device->id, CL_KERNEL_WORK_GROUP_SIZE,
                             sizeof most, &most, NULL);
    if (items > most)
        return guides_cell_fail(cell, GUIDES_NOT_OFFERED,
                                "work-groups of %zu items are too large; this kernel allows %zu",
                                items, most);

    if (launch->local[0] == GUIDES_MULTIPLE || launch->local[0] == GUIDES_ACROSS)
        name_size(prepared->local[l], prepared->dimensions[l], cell);

    return true;
}

/* --- Preparing --- */

static bool set_arguments(struct guides_run *run, uint32_t v, uint32_t l)
{
    static const char buffers[] = "iotugrfI", numbers[] = "whcan";
    const struct guides_device *device = run->device;
    const struct guides_variant *variant = &run->result->experiment->variants[v];
    const cl_int values[] = {(cl_int)device->width, (cl_int)device->height,
                             (cl_int)device->log_pixels, (cl_int)device->pixels,
                             (cl_int)variant->number};
    cl_kernel kernel = run->prepared[v].kernels[l];
    cl_int code = CL_SUCCESS;
    cl_uint at = 0;

    for (const char *letter = variant->launches[l].args; *letter; letter++, at++) {
        const char *buffer = strchr(buffers, *letter), *number = strchr(numbers, *letter);

        if (buffer)
            code |= clSetKernelArg(kernel, at, sizeof(cl_mem), &device->buffers[buffer - buffers]);
        else
            code |= clSetKernelArg(kernel, at, sizeof(cl_int), &values[number - numbers]);
    }

    return !guides_cell_failed(&run->result->cells[v], code, "clSetKernelArg");
}

/* Whether the device has what the variant needs; if not, the cell says what is missing. */
static bool offered(const struct guides_device *device, enum guides_need need,
                    struct guides_cell *cell)
{
    if (need == GUIDES_IMAGES && device->no_image)
        return guides_cell_fail(cell, GUIDES_NOT_OFFERED, "%s", device->no_image);
    if (need == GUIDES_COLLECTIVE && !device->collective)
        return guides_cell_fail(cell, GUIDES_NOT_OFFERED,
                                "no work_group_scan_inclusive_add in its OpenCL C");
    if (need == GUIDES_SUBGROUPS && (!device->subgroups || device->major < 2))
        return guides_cell_fail(cell, GUIDES_NOT_OFFERED, "no sub-groups (cl_khr_subgroups)");

    return true;
}

/* Options that select what a variant needs, and the version of OpenCL C that has it. */
static const char *need_options(const struct guides_device *device, enum guides_need need)
{
    const bool is_2 = device->major == 2;

    if (need == GUIDES_COLLECTIVE)
        return is_2 ? " -D COLLECTIVE -cl-std=CL2.0" : " -D COLLECTIVE -cl-std=CL3.0";
    if (need == GUIDES_SUBGROUPS)
        return is_2 ? " -D SUBGROUPS -cl-std=CL2.0" : " -D SUBGROUPS -cl-std=CL3.0";

    return "";
}

static void options_of(const struct guides_device *device, const struct guides_variant *variant,
                       char *text, size_t bytes)
{
    const char *own = variant->options ? variant->options : "";
    uint32_t length = 0;

    if (device->cpu && variant->options_cpu)
        own = variant->options_cpu;
    if (variant->number)
        length = device->group / variant->number;

    snprintf(text, bytes, "-D TILE=%u -D GROUP=%u -D SIDE_BY_SIDE=%d -D LENGTH=%u %s%s %s",
             device->tile, device->group, !device->cpu, length, device->no_image ? "" : "-D IMAGES",
             need_options(device, variant->need), own);
}

bool guides_prepare(struct guides_run *run, uint32_t v)
{
    const struct guides_experiment *experiment = run->result->experiment;
    const struct guides_variant *variant = &experiment->variants[v];
    struct guides_prepared *prepared = &run->prepared[v];
    struct guides_cell *cell = &run->result->cells[v];
    char options[320];
    cl_int code;

    if (!offered(run->device, variant->need, cell))
        return false;
    options_of(run->device, variant, options, sizeof options);
    prepared->program = guides_build(run->device->context, run->device->id,
                                     bench_text(experiment->source), options, cell->why,
                                     sizeof cell->why);
    if (!prepared->program) {
        cell->status = GUIDES_NOT_OFFERED;
        return false;
    }

    for (uint32_t l = 0; l < GUIDES_LAUNCHES_MAX && variant->launches[l].kernel; l++) {
        prepared->kernels[l] = clCreateKernel(prepared->program, variant->launches[l].kernel,
                                              &code);
        if (guides_cell_failed(cell, code, "clCreateKernel"))
            return false;
        prepared->launches++;
        if (!find_sizes(run, v, l) || !set_arguments(run, v, l))
            return false;
    }

    return true;
}

void guides_release(struct guides_prepared *prepared)
{
    for (uint32_t l = 0; l < GUIDES_LAUNCHES_MAX; l++)
        BENCH_CL_RELEASE(Kernel, prepared->kernels[l]);
    BENCH_CL_RELEASE(Program, prepared->program);
    *prepared = (struct guides_prepared){0};
}

/* --- Launching --- */

static cl_int enqueue(const struct guides_device *device, const struct guides_prepared *prepared,
                      uint32_t l, cl_event *event)
{
    const size_t *local = prepared->local[l];
    if (!local[0])
        local = NULL;

    return clEnqueueNDRangeKernel(device->queue, prepared->kernels[l], prepared->dimensions[l],
                                  NULL, prepared->global[l], local, 0, NULL, event);
}

double guides_launch(struct guides_run *run, uint32_t v, uint32_t repeat, bool wall)
{
    struct guides_prepared *prepared = &run->prepared[v];
    struct guides_cell *cell = &run->result->cells[v];
    const struct guides_device *device = run->device;
    const bool profile = device->profiled && !wall;
    cl_event events[EVENTS_MAX];
    uint32_t count = 0;
    cl_int code = CL_SUCCESS;
    double ns = 0;
    uint64_t begin = now_ns();

    for (uint32_t i = 0; i < repeat && !code; i++)
        for (uint32_t l = 0; l < prepared->launches && !code; l++) {
            code = enqueue(device, prepared, l, profile ? &events[count] : NULL);
            count += !code && profile;
        }

    const cl_int finished = clFinish(device->queue);
    uint64_t end = now_ns();

    for (uint32_t i = 0; i < count; i++) {
        ns += bench_cl_event_ns(events[i]);
        clReleaseEvent(events[i]);
    }

    if (guides_cell_failed(cell, code, "clEnqueueNDRangeKernel") ||
        guides_cell_failed(cell, finished, "clFinish"))
        return 0;
    if (!profile)
        return (double)(end - begin);
    if (ns <= 0)
        guides_cell_fail(cell, GUIDES_FAILED, "the device reports a kernel time of zero");

    return ns;
}

/* --- Checking --- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The largest difference, relative to the larger of 1 and the expected value; `*at` = its index. */
static double largest_error(const float *expected, const float *result, size_t count, size_t *at)
{
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)result[i] - (double)expected[i]) /
                       fmax(1, fabs((double)expected[i]));
        if (!(error <= most)) {
            most = error;
            *at = i;
        }
        if (isnan(most) || isinf(most))
            return INFINITY;
    }

    return most;
}

/* Compute the expected result, unless the last check expected the same one. Returns its length. */
static size_t expect(struct guides_device *device, const struct guides_experiment *experiment,
                     const struct guides_variant *variant)
{
    if (device->expected_of != experiment || device->expected_number != variant->number) {
        device->expected_count = experiment->expect(device, variant, device->expected);
        device->expected_of = experiment;
        device->expected_number = variant->number;
    }

    return device->expected_count;
}

bool guides_check(struct guides_run *run, uint32_t v)
{
    const struct guides_experiment *experiment = run->result->experiment;
    const struct guides_variant *variant = &experiment->variants[v];
    struct guides_device *device = run->device;
    struct guides_cell *cell = &run->result->cells[v];
    const size_t count = expect(device, experiment, variant), bytes = count * sizeof(float);
    size_t at = 0;
    double tolerance = experiment->tolerance;

    if (variant->tolerance > 0)
        tolerance = variant->tolerance;

    /* A value that no kernel writes stays NaN. */
    memset(device->result, 0xff, bytes);
    cl_int code = clEnqueueWriteBuffer(device->queue, device->buffers[GUIDES_OUT], CL_TRUE, 0,
                                       bytes, device->result, 0, NULL, NULL);
    if (guides_cell_failed(cell, code, "clEnqueueWriteBuffer") ||
        guides_launch(run, v, 1, true) <= 0)
        return false;
    code = clEnqueueReadBuffer(device->queue, device->buffers[GUIDES_OUT], CL_TRUE, 0, bytes,
                               device->result, 0, NULL, NULL);
    if (guides_cell_failed(cell, code, "clEnqueueReadBuffer"))
        return false;
    if (tolerance == 0) {
        cell->error = 0;
        while (at < count && bits_of(device->result[at]) == bits_of(device->expected[at]))
            at++;
        return at == count ||
               guides_cell_fail(cell, GUIDES_WRONG, "wrong from value %zu of %zu", at, count);
    }

    cell->error = largest_error(device->expected, device->result, count, &at);
    if (cell->error <= tolerance)
        return true;

    return guides_cell_fail(cell, GUIDES_WRONG, "value %zu of %zu is %g instead of %g", at, count,
                            (double)device->result[at], (double)device->expected[at]);
}
