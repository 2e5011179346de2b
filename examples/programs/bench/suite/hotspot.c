/* Rodinia's hotspot: the temperature of a chip over time. A frame is eight steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>

enum { STEPS = 8, POWER = 0, A, B };

struct constants {
    float scale, per_x, per_y, per_z, ambient;
};

static const struct cox_field fields[] = {
    COX_FIELD(struct constants, scale),   COX_FIELD(struct constants, per_x),
    COX_FIELD(struct constants, per_y),   COX_FIELD(struct constants, per_z),
    COX_FIELD(struct constants, ambient), {0}};

static const struct cox_argument there[] = {
    {.name = "from", .buffer = "a", .halo_rows = 1}, {.name = "to", .buffer = "b"}, {0}};
static const struct cox_argument back[] = {
    {.name = "from", .buffer = "b", .halo_rows = 1}, {.name = "to", .buffer = "a"}, {0}};

static void step(const struct constants *k, const float *power, const float *from, float *to,
                 size_t n)
{
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
    for (uint32_t s = 0; s < problem->frames * STEPS; s++)
        step(problem->constants, memories[POWER], memories[s % 2 ? B : A], memories[s % 2 ? A : B],
             problem->params.columns);
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
    static const char *const names[] = {"power", "a", "b"};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float), count = (size_t)n * n;
    float *data[3];

    suite_set_shape(problem, n, n);
    for (uint32_t s = 0; s < STEPS; s++)
        problem->passes[s] = (struct cox_pass){.source = bench_text("hotspot.cl"),
                                               .absolute = true,
                                               .arguments = s % 2 ? back : there};

    struct constants *constants = malloc(sizeof *constants);
    problem->own = constants;
    suite_set_fields(problem, fields, constants, sizeof *constants);
    for (int b = POWER; b <= B; b++) {
        data[b] = suite_memory_add(problem, pitch * n, true, b == A);
        if (!constants || !data[b])
            return false;
        problem->buffers[b] = (struct cox_buffer_layout){
            .name = names[b], .pitch_bytes = pitch, .stays = true};
    }

    *constants = physics(n);
    suite_fill_floats(data[POWER], count, 0, 0.001f, 1);
    suite_fill_floats(data[A], count, 320, 340, 2);

    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;
    suite_use_in_order(problem);

    return true;
}
