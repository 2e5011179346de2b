/* CHAI's HSTI: a histogram of few bins, with work-groups that split the input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 256, EACH = 16, BINS = 256 }; /* as in the pass's options */

enum { SAMPLES, HISTOGRAM };

struct constants {
    int32_t count;
};

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const struct constants *constants = problem->constants;
    const uint32_t *samples = memories[SAMPLES];
    uint32_t *histogram = memories[HISTOGRAM];

    memset(histogram, 0, BINS * sizeof *histogram);
    for (int32_t i = 0; i < constants->count; i++)
        histogram[samples[i] * BINS >> 12]++;
}

bool suite_make_hsti(enum suite_size size, struct suite_problem *problem)
{
    static const struct {
        struct constants constants;
        uint32_t frames;
    } shapes[] = {{{50000}, 2}, {{8000000}, 5}, {{250000000}, 20}};
    static const struct cox_field fields[] = {COX_FIELD(struct constants, count), {0}};

    const uint32_t count = shapes[size].constants.count;
    uint32_t *samples = suite_memory_add(problem, count * sizeof *samples, false, false);
    if (!samples || !suite_memory_add(problem, BINS * sizeof(uint32_t), false, true))
        return false;

    /* A picture of 12 bits: brightness changes slowly, with noise. */
    uint32_t seed = 1;
    for (uint32_t i = 0; i < count; i++)
        samples[i] = (i / 64 + suite_random(&seed) % 1024) % 4096;

    problem->passes[0] = (struct cox_pass){.source = bench_text("hsti.cl"),
                                           .options = "-D GROUP=256 -D EACH=16 -D BINS=256",
                                           .local_rows = GROUP,
                                           .item_rows = EACH,
                                           .absolute = true};
    problem->buffers[0] = (struct cox_buffer_layout){.name = "samples", .stays = true};
    problem->buffers[1] = (struct cox_buffer_layout){
        .name = "histogram", .bytes = BINS * sizeof(uint32_t), .merge = suite_add_counters};
    suite_set_shape(problem, 0, count);
    suite_set_fields(problem, fields, &shapes[size].constants, sizeof(struct constants));

    problem->frames = shapes[size].frames;
    problem->reference = reference;
    suite_use_in_order(problem);

    return true;
}
