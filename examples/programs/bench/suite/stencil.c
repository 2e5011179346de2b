/* Parboil's stencil: seven points of a volume. A row of the frame is a plane. A frame is eight
 * steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

enum { STEPS = 8 };

struct constants {
    int32_t width, height;
    float near, centre;
};

static const struct constants constants[] = {
    {24, 20, 1 / 36.f, 1 / 6.f}, {128, 128, 1 / 36.f, 1 / 6.f}, {512, 512, 1 / 36.f, 1 / 6.f}};

static const struct cox_field fields[] = {COX_FIELD(struct constants, width),
                                          COX_FIELD(struct constants, height),
                                          COX_FIELD(struct constants, near),
                                          COX_FIELD(struct constants, centre),
                                          {0}};

static const struct cox_argument there[] = {
    {.name = "from", .buffer = "a", .halo_rows = 1}, {.name = "to", .buffer = "b"}, {0}};
static const struct cox_argument back[] = {
    {.name = "from", .buffer = "b", .halo_rows = 1}, {.name = "to", .buffer = "a"}, {0}};

static void step(const struct constants *k, const float *from, float *to, size_t planes)
{
    const size_t width = (size_t)k->width, height = (size_t)k->height, plane = width * height;

    for (size_t z = 1; z + 1 < planes; z++)
        for (size_t y = 1; y + 1 < height; y++)
            for (size_t x = 1; x + 1 < width; x++) {
                const size_t at = z * plane + y * width + x;
                to[at] = k->near * (from[at - 1] + from[at + 1] + from[at - width] +
                                    from[at + width] + from[at - plane] + from[at + plane]) -
                         k->centre * from[at];
            }
}

/* Both memories have the same outermost points then. */
static void copy_all(const float *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    copy_all(memories[0], memories[1], problem->memories[0].bytes / sizeof(float));
    for (uint32_t s = 0; s < problem->frames * STEPS; s++)
        step(problem->constants, memories[s % 2], memories[(s + 1) % 2], problem->params.rows);
}

bool suite_make_stencil(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t planes[] = {24, 64, 256}, frames[] = {2, 13, 13};
    const uint32_t plane = (uint32_t)(constants[size].width * constants[size].height);
    const size_t pitch = plane * sizeof(float);

    suite_set_shape(problem, plane, planes[size]);
    suite_set_fields(problem, fields, &constants[size], sizeof *constants);
    for (uint32_t s = 0; s < STEPS; s++)
        problem->passes[s] = (struct cox_pass){.source = bench_text("stencil.cl"),
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

    float *first = suite_memory_add(problem, pitch * planes[size], true, true);
    if (!first || !suite_memory_add(problem, pitch * planes[size], true, false))
        return false;
    suite_fill_floats(first, (size_t)plane * planes[size], 0, 1, 9);

    return true;
}
