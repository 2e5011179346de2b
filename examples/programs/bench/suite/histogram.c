/* Parboil's histo: many bins, unevenly filled, with counts that saturate.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES, HISTOGRAM };

struct constants {
    int32_t count, bins;
};

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *constants = problem->constants;
    const uint32_t *samples = memories[SAMPLES];
    uint8_t *histogram = memories[HISTOGRAM];

    memset(histogram, 0, constants->bins);
    for (int32_t i = 0; i < constants->count; i++)
        if (histogram[samples[i]] < 255)
            histogram[samples[i]]++;
}

bool suite_make_histogram(enum suite_size size, struct suite_problem *problem)
{
    static const struct {
        struct constants constants;
        uint32_t frames;
    } shapes[] = {{{20000, 200}, 2}, {{4000000, 16384}, 5}, {{200000000, 1 << 20}, 5}};
    static const struct cox_field fields[] = {
        COX_FIELD(struct constants, count), COX_FIELD(struct constants, bins), {0}};

    const uint32_t count = shapes[size].constants.count, bins = shapes[size].constants.bins;
    uint32_t *samples = suite_memory_add(problem, count * sizeof *samples, false, false);
    if (!samples || !suite_memory_add(problem, bins, false, true))
        return false;

    /* Most samples are near the middle: each is the mean of four random values. */
    uint32_t seed = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int n = 0; n < 4; n++)
            sum += suite_random(&seed) % bins;
        samples[i] = sum / 4;
    }

    problem->passes[0] = (struct cox_pass){
        .source = bench_text("histogram.cl"), .kernel = "histogram_main", .absolute = true};
    problem->passes[1] = (struct cox_pass){
        .kernel = "histogram_final", .rows = bins, .absolute = true};
    problem->buffers[0] = (struct cox_buffer_layout){.name = "samples", .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){.name = "counters",
                                                     .bytes = bins * sizeof(uint32_t),
                                                     .merge = suite_add_counters,
                                                     .scratch = true};
    problem->buffers[2] = (struct cox_buffer_layout){.name = "histogram"};
    suite_set_shape(problem, 0, count);
    suite_set_fields(problem, fields, &shapes[size].constants, sizeof(struct constants));

    problem->frames = shapes[size].frames;
    problem->reference = reference;
    problem->use[0][0] = problem->use[1][0] = SAMPLES;
    problem->use[0][1] = problem->use[1][1] = HISTOGRAM;

    return true;
}
