/* Five-point stencil over a square of floats. Eight fused steps are a frame, so devices exchange
 * eight rows per frame, and rows between the steps are each device's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, SCRATCH = STEPS - 1 };

static const struct cox_argument arguments[STEPS][3] = {
    {{.name = "from", .buffer = "in", .halo_rows = 1}, {.name = "to", .buffer = "a"}},
    {{.name = "from", .buffer = "a", .halo_rows = 1}, {.name = "to", .buffer = "b"}},
    {{.name = "from", .buffer = "b", .halo_rows = 1}, {.name = "to", .buffer = "c"}},
    {{.name = "from", .buffer = "c", .halo_rows = 1}, {.name = "to", .buffer = "d"}},
    {{.name = "from", .buffer = "d", .halo_rows = 1}, {.name = "to", .buffer = "e"}},
    {{.name = "from", .buffer = "e", .halo_rows = 1}, {.name = "to", .buffer = "f"}},
    {{.name = "from", .buffer = "f", .halo_rows = 1}, {.name = "to", .buffer = "g"}},
    {{.name = "from", .buffer = "g", .halo_rows = 1}, {.name = "to", .buffer = "out"}}};

static const char *const scratch[SCRATCH] = {"a", "b", "c", "d", "e", "f", "g"};

static void step(const float *from, float *to, uint32_t size)
{
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

/* An even number of steps: the result of each frame is where it would be in the other buffer. */
static void reference(const struct suite_problem *problem, void *const *memories)
{
    const uint32_t size = problem->params.columns;
    float *other = malloc(problem->memories[0].bytes);

    if (!other)
        return;
    for (uint32_t frame = 0; frame < problem->frames; frame++) {
        float *in = memories[problem->use[frame % 2][0]];
        float *out = memories[problem->use[frame % 2][1]];
        step(in, out, size);
        for (int s = 1; s < STEPS; s++)
            step(s % 2 ? out : other, s % 2 ? other : out, size);
        memcpy(out, other, problem->memories[0].bytes);
    }
    free(other);
}

bool suite_make_stencil5(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 1024, 8192}, frames[] = {3, 12, 200};
    const uint32_t side = sizes[size];
    const size_t pitch = side * sizeof(float);

    problem->params.columns = problem->params.rows = side;
    problem->params.passes = problem->passes;
    problem->params.buffers = problem->buffers;
    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;

    for (uint32_t s = 0; s < STEPS; s++)
        problem->passes[s] = (struct cox_pass){
            .source = bench_text("stencil5.cl"), .arguments = arguments[s], .fused = s > 0};

    problem->buffers[0] = (struct cox_buffer_layout){
        .name = "in", .pitch_bytes = pitch, .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){
        .name = "out", .pitch_bytes = pitch, .stays = true};
    for (uint32_t s = 0; s < SCRATCH; s++)
        problem->buffers[2 + s] = (struct cox_buffer_layout){
            .name = scratch[s], .pitch_bytes = pitch, .scratch = true};

    problem->use[0][1] = problem->use[1][0] = 1;
    float *first = suite_memory_add(problem, pitch * side, true, true);
    if (!first || !suite_memory_add(problem, pitch * side, true, true))
        return false;
    suite_fill_floats(first, (size_t)side * side, 0, 1, 5);

    return true;
}
