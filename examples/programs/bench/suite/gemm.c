/* PolyBench's gemm: one product of square matrices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

enum { A, B, C };

struct constants {
    int32_t inner;
    float alpha, beta;
};

static const struct constants constants[] = {
    {96, 1.5f, 1.25f}, {640, 1.5f, 1.25f}, {4096, 1.5f, 1.25f}};

static const struct cox_field fields[] = {COX_FIELD(struct constants, inner),
                                          COX_FIELD(struct constants, alpha),
                                          COX_FIELD(struct constants, beta),
                                          {0}};

static const struct cox_argument arguments[] = {
    {.name = "b", .whole = true}, {.name = "c", .in_place = true}, {0}};

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *k = problem->constants;
    const size_t n = problem->params.columns;
    const float *a = memories[A], *b = memories[B];
    float *c = memories[C];

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * n + j] *= k->beta;
        for (size_t inner = 0; inner < n; inner++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += k->alpha * a[i * n + inner] * b[inner * n + j];
    }
}

bool suite_make_gemm(enum suite_size size, struct suite_problem *problem)
{
    const uint32_t n = (uint32_t)constants[size].inner;
    const size_t pitch = n * sizeof(float);

    suite_set_shape(problem, n, n);
    suite_set_fields(problem, fields, &constants[size], sizeof *constants);
    problem->passes[0] = (struct cox_pass){
        .source = bench_text("gemm.cl"), .absolute = true, .arguments = arguments};
    problem->buffers[A] = (struct cox_buffer_layout){.name = "a", .pitch_bytes = pitch};
    problem->buffers[B] = (struct cox_buffer_layout){.name = "b", .pitch_bytes = pitch};
    problem->buffers[C] = (struct cox_buffer_layout){.name = "c", .pitch_bytes = pitch};

    problem->frames = 1;
    problem->tolerance = 1e-5;
    problem->reference = reference;
    suite_use_in_order(problem);

    for (int m = A; m <= C; m++) {
        float *data = suite_memory_add(problem, pitch * n, true, m == C);
        if (!data)
            return false;
        suite_fill_floats(data, (size_t)n * n, 0, 1, (uint32_t)m + 1);
    }

    return true;
}
