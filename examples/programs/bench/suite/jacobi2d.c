/* PolyBench's Jacobi method in two dimensions. A frame is eight fused sweeps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

static void sweep(const struct suite_problem *problem, void *const *memories, const float *from,
                  float *to)
{
    const size_t n = problem->params.columns;
    (void)memories;

    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++) {
            const float *at = from + y * n + x;

            to[y * n + x] = *at;
            if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
                to[y * n + x] = 0.2f * (at[0] + at[-1] + at[1] + at[n] + at[-(ptrdiff_t)n]);
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    suite_run_chain(problem, memories, sweep);
}

bool suite_make_jacobi2d(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 1024, 8192}, frames[] = {2, 12, 50};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float);

    suite_set_shape(problem, n, n);
    suite_add_chain(problem, bench_text("jacobi2d.cl"), true, pitch);
    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;

    float *first = suite_memory_add(problem, pitch * n, true, true);
    if (!first || !suite_memory_add(problem, pitch * n, true, true))
        return false;
    suite_fill_floats(first, (size_t)n * n, 0, 1, 7);

    return true;
}
