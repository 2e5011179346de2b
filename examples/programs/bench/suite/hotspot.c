/* Rodinia's hotspot: the temperature of a chip over time. A frame is eight fused steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>

enum { POWER = 2 }; /* the memory after those of the temperature */

struct constants {
    float scale, per_x, per_y, per_z, ambient;
};

static const struct cox_field fields[] = {
    COX_FIELD(struct constants, scale),   COX_FIELD(struct constants, per_x),
    COX_FIELD(struct constants, per_y),   COX_FIELD(struct constants, per_z),
    COX_FIELD(struct constants, ambient), {0}};

static void step(const struct suite_problem *problem, void *const *memories, const float *from,
                 float *to)
{
    const struct constants *k = problem->constants;
    const float *power = memories[POWER];
    const size_t n = problem->params.columns;

    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++) {
            const float *at = from + y * n + x;
            const float up = y > 0 ? at[-(ptrdiff_t)n] : *at, down = y < n - 1 ? at[n] : *at;
            const float left = x > 0 ? at[-1] : *at, right = x < n - 1 ? at[1] : *at;

            to[y * n + x] = *at + k->scale * (power[y * n + x] + (down + up - 2 * *at) * k->per_y +
                                              (right + left - 2 * *at) * k->per_x +
                                              (k->ambient - *at) * k->per_z);
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    suite_run_chain(problem, memories, step);
}

/* The physics of a silicon chip of 16 x 16 x 0.5 mm, in SI units. */
static struct constants physics(uint32_t n)
{
    const float thickness = 0.0005f, side = 0.016f, heat = 1.75e6f, conductivity = 100;
    const float hottest = 3e6f, precision = 0.001f, cell = side / (float)n;
    const float capacity = 0.5f * heat * thickness * cell * cell;
    const float slope = hottest / (0.5f * thickness * heat);

    return (struct constants){.scale = precision / slope / capacity,
                              .per_x = 2 * conductivity * thickness,
                              .per_y = 2 * conductivity * thickness,
                              .per_z = conductivity * cell * cell / thickness,
                              .ambient = 80};
}

bool suite_make_hotspot(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 1024, 8192}, frames[] = {2, 10, 50};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float), count = (size_t)n * n;

    suite_set_shape(problem, n, n);
    suite_add_chain(problem, bench_text("hotspot.cl"), true, pitch);
    problem->buffers[SUITE_CHAIN_BUFFERS] = (struct cox_buffer_layout){
        .name = "power", .pitch_bytes = pitch, .stays = true};

    struct constants *constants = malloc(sizeof *constants);
    problem->own = constants;
    suite_set_fields(problem, fields, constants, sizeof *constants);

    float *first = suite_memory_add(problem, pitch * n, true, true);
    float *second = suite_memory_add(problem, pitch * n, true, true);
    float *power = suite_memory_add(problem, pitch * n, true, false);
    if (!constants || !first || !second || !power)
        return false;

    *constants = physics(n);
    suite_fill_floats(power, count, 0, 0.001f, 1);
    suite_fill_floats(first, count, 320, 340, 2);

    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;

    return true;
}
