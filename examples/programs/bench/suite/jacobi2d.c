/* PolyBench's Jacobi method in two dimensions. A frame is eight sweeps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

enum { SWEEPS = 8 };

static const struct cox_argument there[] = {
    {.name = "from", .buffer = "a", .halo_rows = 1}, {.name = "to", .buffer = "b"}, {0}};
static const struct cox_argument back[] = {
    {.name = "from", .buffer = "b", .halo_rows = 1}, {.name = "to", .buffer = "a"}, {0}};

static void sweep(const float *from, float *to, size_t n)
{
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
    for (uint32_t s = 0; s < problem->frames * SWEEPS; s++)
        sweep(memories[s % 2], memories[(s + 1) % 2], problem->params.columns);
}

bool suite_make_jacobi2d(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 1024, 8192}, frames[] = {2, 12, 50};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float);

    suite_set_shape(problem, n, n);
    for (uint32_t s = 0; s < SWEEPS; s++)
        problem->passes[s] = (struct cox_pass){.source = bench_text("jacobi2d.cl"),
                                               .absolute = true,
                                               .arguments = s % 2 ? back : there};
    problem->buffers[0] = (struct cox_buffer_layout){
        .name = "a", .pitch_bytes = pitch, .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){
        .name = "b", .pitch_bytes = pitch, .stays = true};

    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;
    suite_use_in_order(problem);

    float *first = suite_memory_add(problem, pitch * n, true, true);
    if (!first || !suite_memory_add(problem, pitch * n, true, false))
        return false;
    suite_fill_floats(first, (size_t)n * n, 0, 1, 7);

    return true;
}
