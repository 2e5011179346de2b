/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"
#include "bench/message.h"

#include <stdlib.h>
#include <string.h>

void *suite_memory_add(struct suite_problem *problem, size_t bytes, bool floats, bool result)
{
    void *data = NULL;

    if (problem->memory_count < SUITE_MEMORIES_MAX)
        data = calloc(1, bytes);
    if (!data) {
        bench_fail("suite: no memory of %zu bytes", bytes);
        return NULL;
    }

    problem->memories[problem->memory_count++] = (struct suite_memory){
        .bytes = bytes, .floats = floats, .result = result, .data = data};

    return data;
}

void suite_fill_floats(float *data, size_t count, float low, float high, uint32_t seed)
{
    const float step = (high - low) / 65536;

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = low + step * (float)(seed >> 16);
    }
}

uint32_t suite_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;

    return *seed;
}

void suite_add_counters(void *into, const void *partial, size_t bytes, void *user)
{
    uint32_t *sums = into;
    const uint32_t *counters = partial;
    (void)user;

    for (size_t i = 0; i < bytes / sizeof *sums; i++)
        sums[i] += counters[i];
}

void suite_set_shape(struct suite_problem *problem, uint32_t columns, uint32_t rows)
{
    problem->params = (struct cox_session_params){
        .columns = columns, .rows = rows, .passes = problem->passes, .buffers = problem->buffers};
}

void suite_set_fields(struct suite_problem *problem, const struct cox_field *fields,
                      const void *constants, size_t bytes)
{
    problem->params.fields = fields;
    problem->params.constants_bytes = bytes;
    problem->constants = constants;
}

void suite_frame_constants(const struct suite_problem *problem, uint32_t frame,
                           struct cox_constants *constants)
{
    memset(constants, 0, sizeof *constants);
    if (problem->constants)
        memcpy(constants, problem->constants, problem->params.constants_bytes);
    if (problem->set_constants)
        problem->set_constants(problem, frame, constants);
}

void suite_add_chain(struct suite_problem *problem, const char *source, bool absolute,
                     size_t pitch_bytes)
{
    static const char *const names[SUITE_CHAIN_BUFFERS] = {"in", "out", "a", "b", "c",
                                                           "d",  "e",   "f", "g"};
    static const struct cox_argument arguments[SUITE_CHAIN_STEPS][3] = {
        {{.name = "from", .buffer = "in", .halo_rows = 1}, {.name = "to", .buffer = "a"}},
        {{.name = "from", .buffer = "a", .halo_rows = 1}, {.name = "to", .buffer = "b"}},
        {{.name = "from", .buffer = "b", .halo_rows = 1}, {.name = "to", .buffer = "c"}},
        {{.name = "from", .buffer = "c", .halo_rows = 1}, {.name = "to", .buffer = "d"}},
        {{.name = "from", .buffer = "d", .halo_rows = 1}, {.name = "to", .buffer = "e"}},
        {{.name = "from", .buffer = "e", .halo_rows = 1}, {.name = "to", .buffer = "f"}},
        {{.name = "from", .buffer = "f", .halo_rows = 1}, {.name = "to", .buffer = "g"}},
        {{.name = "from", .buffer = "g", .halo_rows = 1}, {.name = "to", .buffer = "out"}}};

    for (uint32_t s = 0; s < SUITE_CHAIN_STEPS; s++)
        problem->passes[s] = (struct cox_pass){
            .source = source, .absolute = absolute, .arguments = arguments[s], .fused = s > 0};

    for (uint32_t b = 0; b < SUITE_CHAIN_BUFFERS; b++)
        problem->buffers[b] = (struct cox_buffer_layout){
            .name = names[b], .pitch_bytes = pitch_bytes, .stays = b < 2, .scratch = b >= 2};

    suite_use_in_order(problem);
    problem->use[1][0] = 1;
    problem->use[1][1] = 0;
}

/* With an even number of steps, a frame's result is in `other`. */
void suite_run_chain(const struct suite_problem *problem, void *const *memories,
                     suite_step_fn *step)
{
    float *other = malloc(problem->memories[0].bytes);

    for (uint32_t frame = 0; frame < problem->frames && other; frame++) {
        float *in = memories[frame % 2], *out = memories[1 - frame % 2];

        step(problem, memories, in, out);
        for (int s = 1; s < SUITE_CHAIN_STEPS; s++)
            step(problem, memories, s % 2 ? out : other, s % 2 ? other : out);
        memcpy(out, other, problem->memories[0].bytes);
    }

    free(other);
}

void suite_use_in_order(struct suite_problem *problem)
{
    for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++)
        problem->use[0][b] = problem->use[1][b] = (uint8_t)b;
}

void suite_problem_free(struct suite_problem *problem)
{
    for (uint32_t m = 0; m < problem->memory_count; m++)
        free(problem->memories[m].data);
    free(problem->own);

    *problem = (struct suite_problem){0};
}
