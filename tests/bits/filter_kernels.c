/* Every filter of support/ref_filter_case.c in each form of its kernels, on planes of at most 40 x 40: for a simulator
 * that looks at each access (kernels.sh), and against the reference.
 *
 *   bits_filter_kernels [--vectors | --scalars] [NAME]    only filters of this name
 *
 * The passes are run by hand, as kernels.c runs its kernels, and for its reasons: all OpenCL calls come from one
 * thread, and each band has buffers of its own that hold the rows it was promised and no more. Each pass is cut into
 * one band, then three. Both forms must give the same bits.
 *
 * Prints a line "bits NAME NUMBER SIZE HASH RUNS equal" (or DIFFERENT) for each filter, and "N passed, N failed".
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/bits_device.h"
#include "support/bits_suite.h"
#include "support/ref_filter_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMS = 2, MOST = 40 };

static struct {
    struct bits_device device;
    uint32_t passed, failed;
    int first_form, last_form; /* 0 = vectors, 1 = scalars */
} here = {.last_form = FORMS - 1};

/* --- A band ------------------------------------------------------------------------------------------------------- */

/* Rows of a binding in a buffer of just that size. */
struct rows {
    cl_mem mem;
    uint32_t first, count;
};

static uint32_t at_least_1(uint32_t x)
{
    return x ? x : 1;
}

static bool is_private(const struct cox_use *use)
{
    return use->contract == COX_HALO && use->access == COX_READ_WRITE;
}

/* Rows [first, first + count) and `more` on both sides, as far as there are any. */
static void widen(uint32_t *first, uint32_t *count, uint32_t more, uint32_t all)
{
    const uint32_t end = all - *first - *count > more ? *first + *count + more : all;
    *first = *first > more ? *first - more : 0;
    *count = end - *first;
}

/* What is written stays uninitialised: reading it before would be told. */
static struct rows rows_open(const struct filter_test *test, const struct cox_use *use, void *plane, uint32_t first,
                             uint32_t count, uint32_t pass_rows, uint32_t private_rows)
{
    const struct cox_binding *binding = &test->session.bindings[use->binding];
    const uint32_t divisor = at_least_1(use->row_divisor);
    if (use->contract == COX_HALO)
        widen(&first, &count, use->halo_rows * divisor + (use->access == COX_READ ? private_rows : 0), pass_rows);
    struct rows rows = {.first = first / divisor, .count = (first + count + divisor - 1) / divisor - first / divisor};
    if (use->contract == COX_WHOLE)
        rows = (struct rows){.count = (uint32_t)(binding->bytes / binding->pitch_bytes)};
    cl_int code;
    const size_t bytes = rows.count * binding->pitch_bytes;
    rows.mem = clCreateBuffer(here.device.context, use->access == COX_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE,
                              bytes, NULL, &code);
    bits_need(code, "clCreateBuffer");
    if (use->access == COX_READ)
        bits_need(clEnqueueWriteBuffer(here.device.queue, rows.mem, CL_TRUE, 0, bytes,
                                       (char *)plane + rows.first * binding->pitch_bytes, 0, NULL, NULL),
                  "clEnqueueWriteBuffer");
    return rows;
}

static void launch(const struct filter_test *test, const struct cox_stage *stage, const struct cox_variant *variant,
                   cl_kernel kernel, const struct rows *rows, uint32_t first, uint32_t count)
{
    for (uint32_t a = 0; a < stage->arg_count; a++) {
        const struct cox_arg *arg = &stage->args[a];
        const bool params = arg->kind == COX_ARG_KIND_PARAMS, buffer = arg->kind == COX_ARG_KIND_BUFFER;
        const cl_int number = (cl_int)(arg->kind == COX_ARG_KIND_FIRST  ? first
                                       : arg->kind == COX_ARG_KIND_ROWS ? count
                                                                        : rows[arg->index].first);
        const void *value = &number;
        if (params)
            value = (const char *)&test->params + arg->offset;
        else if (buffer)
            value = &rows[arg->index].mem;
        bits_need(clSetKernelArg(kernel, a,
                                 params   ? arg->bytes
                                 : buffer ? sizeof(cl_mem)
                                          : sizeof number,
                                 value),
                  "clSetKernelArg");
    }
    const uint32_t local_columns = at_least_1(variant->local_columns), local_rows = at_least_1(variant->local_rows);
    const size_t local[2] = {local_columns, local_rows};
    const size_t global[2] = {bits_global_size(stage->columns, at_least_1(variant->item_columns), local_columns),
                              bits_global_size(count, at_least_1(variant->item_rows), local_rows)};
    bits_need(clEnqueueNDRangeKernel(here.device.queue, kernel, 2, NULL, global, local, 0, NULL, NULL),
              "clEnqueueNDRangeKernel");
}

/* Whether the stage writes the band's own rows: it takes what it writes as its last buffer. */
static uint32_t written_by(const struct cox_stage *stage)
{
    uint32_t written = 0;
    for (uint32_t a = 0; a < stage->arg_count; a++)
        if (stage->args[a].kind == COX_ARG_KIND_BUFFER)
            written = stage->args[a].index;
    return written;
}

/* Through the host and back: what one kernel initialised, Oclgrind does not know in the next one's threads. */
static void take_round(const struct filter_test *test, uint32_t binding, const struct rows *rows)
{
    const size_t bytes = rows->count * test->session.bindings[binding].pitch_bytes;
    void *memory = malloc(bytes);
    bits_need(clEnqueueReadBuffer(here.device.queue, rows->mem, CL_TRUE, 0, bytes, memory, 0, NULL, NULL),
              "clEnqueueReadBuffer");
    bits_need(clEnqueueWriteBuffer(here.device.queue, rows->mem, CL_TRUE, 0, bytes, memory, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
    free(memory);
}

static void run_band(const struct filter_test *test, void *const *planes, const struct cox_pass *pass, int form,
                     cl_kernel *kernels, uint32_t first, uint32_t count)
{
    struct rows rows[COX_BINDINGS_MAX] = {{0}};
    const struct cox_use *private = NULL;
    for (uint32_t u = 0; u < pass->use_count; u++)
        if (is_private(&pass->uses[u]))
    private = &pass->uses[u];
    const uint32_t private_rows = private ? private->halo_rows * at_least_1(private->row_divisor) : 0;
    for (uint32_t u = 0; u < pass->use_count; u++) {
        const struct cox_use *use = &pass->uses[u];
        rows[use->binding] = rows_open(test, use, planes[use->binding], first, count, pass->rows, private_rows);
    }
    for (uint32_t s = 0; s < pass->stage_count; s++) {
        const struct cox_stage *stage = &pass->stages[s];
        uint32_t begin = first, stage_rows = count;
        if (private && written_by(stage) == private->binding)
            widen(&begin, &stage_rows, private_rows, pass->rows);
        launch(test, stage, &stage->variants[form], kernels[s], rows, begin, stage_rows);
        if (s + 1 < pass->stage_count)
            take_round(test, written_by(stage), &rows[written_by(stage)]);
    }
    for (uint32_t u = 0; u < pass->use_count; u++) {
        const struct cox_use *use = &pass->uses[u];
        const size_t pitch = test->session.bindings[use->binding].pitch_bytes;
        struct rows *from = &rows[use->binding];
        if (use->access == COX_WRITE)
            bits_need(clEnqueueReadBuffer(here.device.queue, from->mem, CL_TRUE, 0, from->count * pitch,
                                          (char *)planes[use->binding] + from->first * pitch, 0, NULL, NULL),
                      "clEnqueueReadBuffer");
        clReleaseMemObject(from->mem);
    }
}

/* --- A filter ----------------------------------------------------------------------------------------------------- */

static void run_pass(const struct filter_test *test, void *const *planes, const struct cox_pass *pass, int form,
                     uint32_t bands)
{
    cl_kernel kernels[COX_STAGES_MAX];
    uint32_t granule = 1; /* powers of two */
    for (uint32_t s = 0; s < pass->stage_count; s++) {
        const struct cox_variant *variant = &pass->stages[s].variants[form];
        const uint32_t rows = at_least_1(variant->local_rows) * at_least_1(variant->item_rows);
        granule = rows > granule ? rows : granule;
        kernels[s] = bits_device_build(&here.device, &pass->stages[s], variant);
    }
    const uint32_t step = (pass->rows / bands + granule - 1) / granule * granule;
    for (uint32_t first = 0; first < pass->rows;) {
        const uint32_t left = pass->rows - first, count = step && bands > 1 && left > step ? step : left;
        run_band(test, planes, pass, form, kernels, first, count);
        first += count;
    }
    for (uint32_t s = 0; s < pass->stage_count; s++)
        clReleaseKernel(kernels[s]);
}

static void run_filter(uint32_t number)
{
    const struct filter_case *about = &filter_cases[number];
    struct filter_test test;
    bits_need(filter_test_open(&test, about, 16, MOST), about->name);
    void *planes[COX_BINDINGS_MAX] = {0};
    for (uint32_t b = 0; b < test.session.binding_count; b++)
        planes[b] = test.planes[b] ? test.planes[b] : calloc(1, test.session.bindings[b].bytes);
    const size_t bytes = test.out_row_bytes * test.out_rows;
    uint8_t *result = malloc(bytes);
    if (!result)
        exit(1);
    uint64_t hash = 0;
    uint32_t runs = 0;
    bool equal = true;
    char text[128];
    for (int form = here.first_form; form <= here.last_form; form++)
        for (uint32_t bands = 1; bands <= 3; bands += 2) {
            filter_test_spoil(&test, NULL);
            for (uint32_t p = 0; p < test.session.pass_count; p++)
                run_pass(&test, planes, &test.session.passes[p], form, bands);
            filter_test_result(&test, result);
            hash = runs ? hash : bits_hash(result, bytes);
            equal &= hash == bits_hash(result, bytes);
            runs++;
        }
    equal &= filter_test_judge(&test, result, text, sizeof text);
    printf("bits %s %u %ux%u %016" PRIx64 " %u %s\n", about->name, number, test.shape.width, test.shape.height, hash,
           runs, equal ? "equal" : "DIFFERENT");
    equal ? here.passed++ : here.failed++;
    free(result);
    for (uint32_t b = 0; b < test.session.binding_count; b++)
        if (!test.planes[b])
            free(planes[b]);
    filter_test_close(&test);
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    for (int a = 1; a < argc; a++) {
        if (!strcmp(argv[a], "--vectors"))
            here.last_form = 0;
        if (!strcmp(argv[a], "--scalars"))
            here.first_form = 1;
        if (argv[a][0] != '-')
            only = argv[a];
    }
    bits_device_open(&here.device);
    for (uint32_t i = 0; i < filter_case_count; i++)
        if (!only || !strcmp(only, filter_cases[i].name))
            run_filter(i);
    bits_device_close(&here.device);
    printf("%u passed, %u failed\n", here.passed, here.failed);
    return here.failed || !here.passed;
}
