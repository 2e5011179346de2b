/* Rodinia's kmeans: devices assign points to centres. The host moves the centres after each frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES, CENTRES, MEMBERSHIP };

struct constants {
    int32_t points, clusters, dimensions;
};

struct own {
    struct constants constants;
    double sums[]; /* of the features and of the points of each cluster */
};

static void assign(const struct constants *constants, const float *features, const float *centres,
                   int32_t *membership)
{
    const int32_t dimensions = constants->dimensions;

    for (int32_t p = 0; p < constants->points; p++) {
        const float *point = features + (size_t)p * dimensions;
        float least = FLT_MAX;

        for (int32_t c = 0; c < constants->clusters; c++) {
            float distance = 0;
            for (int32_t d = 0; d < dimensions; d++) {
                const float difference = point[d] - centres[c * dimensions + d];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                membership[p] = c;
            }
        }
    }
}

static void move_centres(const struct suite_problem *problem, uint32_t frame, void *const *memories)
{
    struct own *own = problem->own;
    const int32_t clusters = own->constants.clusters, dimensions = own->constants.dimensions;
    const float *features = memories[FEATURES];
    float *centres = memories[CENTRES];
    const int32_t *membership = memories[MEMBERSHIP];
    double *counts = own->sums + (size_t)clusters * dimensions;
    (void)frame;

    memset(own->sums, 0, (size_t)clusters * (dimensions + 1) * sizeof *own->sums);
    for (int32_t p = 0; p < own->constants.points; p++) {
        double *sums = own->sums + (size_t)membership[p] * dimensions;
        for (int32_t d = 0; d < dimensions; d++)
            sums[d] += features[(size_t)p * dimensions + d];
        counts[membership[p]]++;
    }

    for (int32_t c = 0; c < clusters; c++)
        for (int32_t d = 0; d < dimensions && counts[c] > 0; d++)
            centres[c * dimensions + d] = (float)(own->sums[c * dimensions + d] / counts[c]);
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const struct own *own = problem->own;

    for (uint32_t frame = 0; frame < problem->frames; frame++) {
        assign(&own->constants, memories[FEATURES], memories[CENTRES], memories[MEMBERSHIP]);
        move_centres(problem, frame, memories);
    }
}

bool suite_make_kmeans(enum suite_size size, struct suite_problem *problem)
{
    static const struct {
        struct constants constants;
        uint32_t frames;
    } shapes[] = {{{3000, 5, 8}, 3}, {{200000, 8, 34}, 4}, {{2000000, 16, 34}, 5}};
    static const struct cox_field fields[] = {COX_FIELD(struct constants, points),
                                              COX_FIELD(struct constants, clusters),
                                              COX_FIELD(struct constants, dimensions),
                                              {0}};
    static const struct cox_argument arguments[] = {{.name = "centres", .whole = true}, {0}};

    const size_t points = shapes[size].constants.points;
    const size_t clusters = shapes[size].constants.clusters;
    const size_t point_bytes = shapes[size].constants.dimensions * sizeof(float);

    float *features = suite_memory_add(problem, points * point_bytes, true, false);
    float *centres = suite_memory_add(problem, clusters * point_bytes, true, true);
    struct own *own = malloc(sizeof *own + clusters * (point_bytes * 2 + sizeof(double)));
    problem->own = own;
    if (!own || !features || !centres ||
        !suite_memory_add(problem, points * sizeof(int32_t), false, true))
        return false;

    /* The first points are the first centres. */
    suite_fill_floats(features, points * point_bytes / sizeof *features, 0, 255, 1);
    memcpy(centres, features, clusters * point_bytes);
    own->constants = shapes[size].constants;

    problem->passes[0] = (struct cox_pass){
        .source = bench_text("kmeans.cl"), .absolute = true, .arguments = arguments};
    problem->buffers[0] = (struct cox_buffer_layout){
        .name = "features", .pitch_bytes = point_bytes, .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){.name = "centres",
                                                     .bytes = clusters * point_bytes};
    problem->buffers[2] = (struct cox_buffer_layout){.name = "membership"};
    suite_set_shape(problem, 0, (uint32_t)points);
    suite_set_fields(problem, fields, &own->constants, sizeof own->constants);

    problem->frames = shapes[size].frames;
    problem->after_frame = move_centres;
    problem->reads[FEATURES] = problem->reads[MEMBERSHIP] = true;
    problem->writes[CENTRES] = true;
    problem->reference = reference;
    suite_use_in_order(problem);

    return true;
}
