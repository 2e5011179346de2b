/* SHOC's spmv: a sparse matrix in compressed rows, with one work-item or WIDTH work-items per row.
 *
 * The list of row starts has one row more than the matrix: it ends with the number of values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>

enum { GROUP = 128, WIDTH = 32 }; /* as in the pass's options */

enum { ROW_STARTS, VALUES, COLS, VEC, OUT };

struct constants {
    int32_t dim;
};

struct shape {
    struct constants constants;
    int32_t mean; /* values per row */
    uint32_t frames;
};

static const struct shape shapes[] = {{{1000}, 20, 2}, {{100000}, 50, 10}, {{2000000}, 64, 10}};

static void reference_scalar(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *constants = problem->constants;
    const int32_t *cols = memories[COLS], *row_starts = memories[ROW_STARTS];
    const float *values = memories[VALUES], *vec = memories[VEC];
    float *out = memories[OUT];

    for (int32_t row = 0; row < constants->dim; row++) {
        float sum = 0;
        for (int32_t j = row_starts[row]; j < row_starts[row + 1]; j++)
            sum += values[j] * vec[cols[j]];
        out[row] = sum;
    }
}

/* Adds in the same order as the kernel. */
static void reference_vector(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *constants = problem->constants;
    const int32_t *cols = memories[COLS], *row_starts = memories[ROW_STARTS];
    const float *values = memories[VALUES], *vec = memories[VEC];
    float *out = memories[OUT];

    for (int32_t row = 0; row < constants->dim; row++) {
        float sums[WIDTH] = {0};
        for (int32_t j = row_starts[row]; j < row_starts[row + 1]; j++)
            sums[(j - row_starts[row]) % WIDTH] += values[j] * vec[cols[j]];

        for (int half = WIDTH / 2; half > 0; half /= 2)
            for (int lane = 0; lane < half; lane++)
                sums[lane] += sums[lane + half];
        out[row] = sums[0];
    }
}

/* Rows of 1 to 2 * mean - 1 values, then one in 64 rows of eight times as many. */
static int32_t fill_row_starts(const struct shape *shape, int32_t *row_starts)
{
    uint32_t seed = 1;

    row_starts[0] = 0;
    for (int32_t row = 0; row < shape->constants.dim; row++) {
        int32_t length = 1 + (int32_t)(suite_random(&seed) % (2 * shape->mean - 1));
        if (suite_random(&seed) % 64 == 0)
            length *= 8;
        row_starts[row + 1] = row_starts[row] + length;
    }

    return row_starts[shape->constants.dim];
}

/* The memories. Returns the number of values; 0 = failed after a message. */
static size_t fill(const struct shape *shape, struct suite_problem *problem)
{
    const size_t dim = shape->constants.dim;
    int32_t *row_starts = suite_memory_add(problem, (dim + 1) * sizeof *row_starts, false, false);
    if (!row_starts)
        return 0;

    const size_t count = fill_row_starts(shape, row_starts);
    float *values = suite_memory_add(problem, count * sizeof *values, true, false);
    int32_t *cols = suite_memory_add(problem, count * sizeof *cols, false, false);
    float *vec = suite_memory_add(problem, dim * sizeof *vec, true, false);
    if (!values || !cols || !vec || !suite_memory_add(problem, dim * sizeof *vec, true, true))
        return 0;

    uint32_t seed = 2;
    for (size_t j = 0; j < count; j++)
        cols[j] = suite_random(&seed) % dim;
    suite_fill_floats(values, count, -1, 1, 3);
    suite_fill_floats(vec, dim, -1, 1, 4);

    return count;
}

/* Each row has `row_items` work-items. */
static bool make(enum suite_size size, const struct cox_pass *pass, uint32_t row_items,
                 struct suite_problem *problem)
{
    static const struct cox_field fields[] = {COX_FIELD(struct constants, dim), {0}};

    const struct shape *shape = &shapes[size];
    const size_t dim = shape->constants.dim;
    const size_t count = fill(shape, problem);
    if (!count)
        return false;

    problem->passes[0] = *pass;
    problem->buffers[0] = (struct cox_buffer_layout){
        .name = "row_starts", .row_divisor = row_items, .border_below = 1, .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){
        .name = "values", .bytes = count * sizeof(float), .stays = true};
    problem->buffers[2] = (struct cox_buffer_layout){
        .name = "cols", .bytes = count * sizeof(int32_t), .stays = true};
    problem->buffers[3] = (struct cox_buffer_layout){
        .name = "vec", .bytes = dim * sizeof(float), .stays = true};
    problem->buffers[4] = (struct cox_buffer_layout){
        .name = "out", .row_divisor = row_items, .stays = true};
    suite_set_shape(problem, 0, (uint32_t)dim * row_items);
    suite_set_fields(problem, fields, &shape->constants, sizeof(struct constants));

    problem->frames = shape->frames;
    suite_use_in_order(problem);

    return true;
}

static const struct cox_argument arguments[] = {{.name = "row_starts", .halo_below = 1},
                                                {.name = "values", .whole = true},
                                                {.name = "cols", .whole = true},
                                                {.name = "vec", .whole = true},
                                                {0}};

static const char options[] = "-D GROUP=128 -D WIDTH=32";

bool suite_make_spmv_scalar(enum suite_size size, struct suite_problem *problem)
{
    const struct cox_pass pass = {.source = bench_text("spmv.cl"),
                                  .kernel = "spmv_scalar",
                                  .options = options,
                                  .absolute = true,
                                  .arguments = arguments};

    problem->reference = reference_scalar;
    return make(size, &pass, 1, problem);
}

bool suite_make_spmv_vector(enum suite_size size, struct suite_problem *problem)
{
    const struct cox_pass pass = {.source = bench_text("spmv.cl"),
                                  .kernel = "spmv_vector",
                                  .options = options,
                                  .local_rows = GROUP,
                                  .absolute = true,
                                  .arguments = arguments};

    problem->reference = reference_vector;
    return make(size, &pass, WIDTH, problem);
}
