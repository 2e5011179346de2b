/* Five-point stencil over a square of floats. Eight fused steps are a frame, so devices exchange
 * eight rows per frame, and rows between the steps are each device's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

static void step(const struct suite_problem *problem, void *const *memories, const float *from,
                 float *to)
{
    const uint32_t size = problem->params.columns;
    (void)memories;

    for (uint32_t row = 0; row < size; row++)
        for (uint32_t x = 0; x < size; x++) {
            const float *at = from + (size_t)row * size + x;
            const float up = row > 0 ? at[-(ptrdiff_t)size] : *at;
            const float down = row < size - 1 ? at[size] : *at;
            const float left = x > 0 ? at[-1] : *at;
            const float right = x < size - 1 ? at[1] : *at;

            to[(size_t)row * size + x] = 0.5f * *at + 0.125f * ((up + down) + (left + right));
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    suite_run_chain(problem, memories, step);
}

bool suite_make_stencil5(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 1024, 8192}, frames[] = {3, 12, 200};
    const uint32_t side = sizes[size];
    const size_t pitch = side * sizeof(float);

    suite_set_shape(problem, side, side);
    suite_add_chain(problem, bench_text("stencil5.cl"), false, pitch);
    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;

    float *first = suite_memory_add(problem, pitch * side, true, true);
    if (!first || !suite_memory_add(problem, pitch * side, true, true))
        return false;
    suite_fill_floats(first, (size_t)side * side, 0, 1, 5);

    return true;
}
