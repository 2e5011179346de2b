/* Parboil's tpacf: angles between points of one observed and two random data sets.
 *
 * Work per point differs: an observed point has pairs with all random points, and the last point of
 * a set has none with its own set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 256, BINS = 32, SETS = 3 }; /* GROUP and BINS as in the pass's options */

enum { XS, YS, ZS, EDGES, HISTOGRAMS };

struct constants {
    int32_t set_points, sets;
};

static uint32_t bin_of(float dot, const float *edges)
{
    uint32_t bin = 0;
    while (bin < BINS - 1 && dot < edges[bin])
        bin++;

    return bin;
}

/* The pairs of one point with points of a range. */
static void count_pairs(void *const *memories, int32_t point, int32_t first, int32_t end,
                        uint32_t *histogram)
{
    const float *xs = memories[XS], *ys = memories[YS], *zs = memories[ZS];

    for (int32_t j = first; j < end; j++) {
        const float dot = xs[point] * xs[j] + ys[point] * ys[j] + zs[point] * zs[j];
        histogram[bin_of(dot, memories[EDGES])]++;
    }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *constants = problem->constants;
    const int32_t set_points = constants->set_points, total = set_points * constants->sets;
    uint32_t *histograms = memories[HISTOGRAMS];

    memset(histograms, 0, 3 * BINS * sizeof *histograms);
    for (int32_t point = 0; point < total; point++) {
        const int32_t set = point / set_points;
        uint32_t *own = histograms;
        if (set > 0)
            own += 2 * BINS;

        count_pairs(memories, point, point + 1, (set + 1) * set_points, own);
        if (set == 0)
            count_pairs(memories, point, set_points, total, histograms + BINS);
    }
}

static float random_float(uint32_t *seed)
{
    return (float)(suite_random(seed) >> 8) / (1 << 23) - 1;
}

/* A random point on the sphere of radius 1, near the point `near` if that is not NULL. */
static void random_point(uint32_t *seed, const float *near, float *point)
{
    float square = 0;

    while (square < 0.01f || square > 1) {
        square = 0;
        for (int d = 0; d < 3; d++) {
            point[d] = random_float(seed);
            if (near)
                point[d] = near[d] * 0.9f + point[d] * 0.05f;
            square += point[d] * point[d];
        }
    }

    for (int d = 0; d < 3; d++)
        point[d] /= sqrtf(square);
}

/* Half of the observed points are in clusters of 16. */
static void fill(int32_t set_points, int32_t total, float *xs, float *ys, float *zs)
{
    uint32_t seed = 1;
    float centre[3];

    for (int32_t p = 0; p < total; p++) {
        float point[3];

        if (p % 16 == 0)
            random_point(&seed, NULL, centre);
        random_point(&seed, p < set_points / 2 ? centre : NULL, point);

        xs[p] = point[0];
        ys[p] = point[1];
        zs[p] = point[2];
    }
}

bool suite_make_tpacf(enum suite_size size, struct suite_problem *problem)
{
    static const struct constants shapes[] = {{700, SETS}, {2000, SETS}, {16384, SETS}};
    static const struct cox_field fields[] = {
        COX_FIELD(struct constants, set_points), COX_FIELD(struct constants, sets), {0}};
    static const struct cox_argument arguments[] = {{.name = "xs", .whole = true},
                                                    {.name = "ys", .whole = true},
                                                    {.name = "zs", .whole = true},
                                                    {.name = "edges", .whole = true},
                                                    {0}};

    const int32_t total = shapes[size].set_points * SETS;
    const size_t bytes = (size_t)total * sizeof(float);
    float *xs = suite_memory_add(problem, bytes, true, false);
    float *ys = suite_memory_add(problem, bytes, true, false);
    float *zs = suite_memory_add(problem, bytes, true, false);
    float *edges = suite_memory_add(problem, BINS * sizeof *edges, true, false);
    if (!xs || !ys || !zs || !edges ||
        !suite_memory_add(problem, 3 * BINS * sizeof(uint32_t), false, true))
        return false;

    fill(shapes[size].set_points, total, xs, ys, zs);

    /* Bins are wider for larger angles. */
    edges[BINS - 1] = -1;
    for (int b = BINS - 2; b >= 0; b--)
        edges[b] = 1 - (1 - edges[b + 1]) * 0.75f;

    problem->passes[0] = (struct cox_pass){.source = bench_text("tpacf.cl"),
                                           .options = "-D GROUP=256 -D BINS=32",
                                           .local_rows = GROUP,
                                           .absolute = true,
                                           .arguments = arguments};
    problem->buffers[0] = (struct cox_buffer_layout){.name = "xs", .bytes = bytes, .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){.name = "ys", .bytes = bytes, .stays = true};
    problem->buffers[2] = (struct cox_buffer_layout){.name = "zs", .bytes = bytes, .stays = true};
    problem->buffers[3] = (struct cox_buffer_layout){
        .name = "edges", .bytes = BINS * sizeof *edges, .stays = true};
    problem->buffers[4] = (struct cox_buffer_layout){
        .name = "histograms", .bytes = 3 * BINS * sizeof(uint32_t), .merge = suite_add_counters};
    suite_set_shape(problem, 0, (uint32_t)total);
    suite_set_fields(problem, fields, &shapes[size], sizeof(struct constants));

    problem->frames = 2;
    problem->reference = reference;
    suite_use_in_order(problem);

    return true;
}
