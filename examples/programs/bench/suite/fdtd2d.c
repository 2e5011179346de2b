/* PolyBench's fdtd-2d. A frame is four steps. In a step, ex runs directly after ey on the same
 * rows, since neither reads what the other writes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

enum { STEPS = 4, KERNELS = 3, SOURCE = 0, EX, EY, HZ };

struct constants {
    int32_t t;
};

static const struct cox_field fields[] = {COX_FIELD(struct constants, t), {0}};

static const struct cox_argument ey_arguments[] = {{.name = "source", .whole = true},
                                                   {.name = "hz", .halo_above = 1},
                                                   {.name = "ey", .in_place = true},
                                                   {0}};
static const struct cox_argument ex_arguments[] = {{.name = "ex", .in_place = true}, {0}};
static const struct cox_argument hz_arguments[] = {
    {.name = "ey", .halo_below = 1}, {.name = "hz", .in_place = true}, {0}};

static void set_time(const struct suite_problem *problem, uint32_t frame, void *constants)
{
    (void)problem;
    *(struct constants *)constants = (struct constants){.t = (int32_t)(frame * STEPS)};
}

static void step(float source, float *ex, float *ey, float *hz, size_t n)
{
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++) {
            const size_t at = y * n + x;
            if (y > 0)
                ey[at] -= 0.5f * (hz[at] - hz[at - n]);
            else
                ey[at] = source;
            if (x > 0)
                ex[at] -= 0.5f * (hz[at] - hz[at - 1]);
        }

    for (size_t y = 0; y + 1 < n; y++)
        for (size_t x = 0; x + 1 < n; x++) {
            const size_t at = y * n + x;
            hz[at] -= 0.7f * (ex[at + 1] - ex[at] + ey[at + n] - ey[at]);
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const float *source = memories[SOURCE];

    for (uint32_t t = 0; t < problem->frames * STEPS; t++)
        step(source[t], memories[EX], memories[EY], memories[HZ], problem->params.columns);
}

static void describe_passes(struct suite_problem *problem)
{
    static const char *const options[STEPS] = {"-D STEP=0", "-D STEP=1", "-D STEP=2", "-D STEP=3"};
    const char *source = bench_text("fdtd2d.cl");

    for (uint32_t s = 0; s < STEPS; s++) {
        struct cox_pass *pass = &problem->passes[KERNELS * s];
        pass[0] = (struct cox_pass){.source = source,
                                    .kernel = "fdtd_ey",
                                    .options = options[s],
                                    .absolute = true,
                                    .arguments = ey_arguments};
        pass[1] = (struct cox_pass){.source = source,
                                    .kernel = "fdtd_ex",
                                    .options = options[s],
                                    .absolute = true,
                                    .fused = true,
                                    .arguments = ex_arguments};
        pass[2] = (struct cox_pass){.source = source,
                                    .kernel = "fdtd_hz",
                                    .options = options[s],
                                    .absolute = true,
                                    .arguments = hz_arguments};
    }
}

bool suite_make_fdtd2d(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {64, 2048, 4096}, frames[] = {3, 6, 125};
    static const char *const names[] = {"source", "ex", "ey", "hz"};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float), source_bytes = frames[size] * STEPS * sizeof(float);

    suite_set_shape(problem, n, n);
    suite_set_fields(problem, fields, NULL, sizeof(struct constants));
    describe_passes(problem);

    float *source = suite_memory_add(problem, source_bytes, true, false);
    if (!source)
        return false;
    for (uint32_t t = 0; t < frames[size] * STEPS; t++)
        source[t] = (float)t / (float)(frames[size] * STEPS);
    problem->buffers[SOURCE] = (struct cox_buffer_layout){
        .name = names[SOURCE], .bytes = source_bytes, .stays = true};

    for (uint32_t b = EX; b <= HZ; b++) {
        float *data = suite_memory_add(problem, pitch * n, true, true);
        if (!data)
            return false;
        suite_fill_floats(data, (size_t)n * n, 0, 1, b);
        problem->buffers[b] = (struct cox_buffer_layout){
            .name = names[b], .pitch_bytes = pitch, .stays = true};
    }

    problem->frames = frames[size];
    problem->set_constants = set_time;
    problem->tolerance = 1e-5;
    problem->reference = reference;
    suite_use_in_order(problem);

    return true;
}
