/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"
#include "common/quantiles.h"
#include "lab/sim/random.h"

#include <math.h>
#include <stdlib.h>

enum { SEED = 1, STREAM = 0x62 };

static const double low_share = 0.025, high_share = 0.975;

void lab_blocks_add(struct lab_blocks *blocks, double value, uint64_t block)
{
    if (blocks->count == blocks->room) {
        size_t room = blocks->room ? 2 * blocks->room : 256;
        struct lab_blocked *values = realloc(blocks->values, room * sizeof *values);

        if (!values) {
            blocks->failed = true;
            return;
        }
        blocks->values = values;
        blocks->room = room;
    }

    if (blocks->count == 0 || block != blocks->last)
        blocks->blocks++;

    blocks->last = block;
    blocks->values[blocks->count++] = (struct lab_blocked){value, blocks->blocks - 1};
}

void lab_blocks_free(struct lab_blocks *blocks)
{
    free(blocks->values);
    *blocks = (struct lab_blocks){0};
}

static int by_value(const void *left, const void *right)
{
    const struct lab_blocked *a = left, *b = right;

    if (a->value != b->value)
        return (a->value > b->value) - (a->value < b->value);
    return (a->block > b->block) - (a->block < b->block);
}

static void sort(struct lab_blocks *blocks)
{
    if (blocks->count)
        qsort(blocks->values, blocks->count, sizeof *blocks->values, by_value);
}

/* The figures of one draw. */
struct drawn {
    double mean, p50, p99;
};

/* Draw as many blocks as there are; `times` has room for a count of each. */
static struct drawn draw(const struct lab_blocks *blocks, uint64_t number, uint32_t which,
                         uint32_t *times)
{
    struct drawn drawn = {NAN, NAN, NAN};
    uint64_t count = 0, seen = 0;
    double sum = 0;

    for (uint32_t b = 0; b < blocks->blocks; b++)
        times[b] = 0;
    for (uint32_t b = 0; b < blocks->blocks; b++)
        times[lab_random_bits(SEED, STREAM, number, which, b) % blocks->blocks]++;

    for (size_t i = 0; i < blocks->count; i++) {
        count += times[blocks->values[i].block];
        sum += times[blocks->values[i].block] * blocks->values[i].value;
    }

    drawn.mean = sum / (double)count;

    for (size_t i = 0; i < blocks->count && isnan(drawn.p99); i++) {
        seen += times[blocks->values[i].block];
        if (isnan(drawn.p50) && 2 * seen >= count)
            drawn.p50 = blocks->values[i].value;
        if (100 * seen >= 99 * count)
            drawn.p99 = blocks->values[i].value;
    }

    return drawn;
}

static struct lab_interval interval_of(double *values)
{
    double low = quantile_of(values, LAB_BOOTSTRAP_DRAWS, low_share);
    return (struct lab_interval){low, quantile_of(values, LAB_BOOTSTRAP_DRAWS, high_share)};
}

bool lab_bootstrap(struct lab_blocks *of, struct lab_blocks *over, struct lab_intervals *out)
{
    enum { MEAN, P50, P99, RATIO, FIGURES };
    const struct lab_interval unknown = {NAN, NAN};
    bool compared = over && over->blocks > 1;
    *out = (struct lab_intervals){unknown, unknown, unknown, unknown};

    if (of->failed || (over && over->failed))
        return false;
    if (of->blocks < 2)
        return true;

    uint32_t most = of->blocks;
    if (compared && over->blocks > most)
        most = over->blocks;

    double(*values)[LAB_BOOTSTRAP_DRAWS] = malloc(FIGURES * sizeof *values);
    uint32_t *times = malloc(most * sizeof *times);
    const bool good = values && times;

    if (good) {
        sort(of);
        for (uint32_t n = 0; n < LAB_BOOTSTRAP_DRAWS; n++) {
            struct drawn drawn = draw(of, n, 0, times);
            values[MEAN][n] = drawn.mean;
            values[P50][n] = values[RATIO][n] = drawn.p50;
            values[P99][n] = drawn.p99;
        }

        out->mean = interval_of(values[MEAN]);
        out->p50 = interval_of(values[P50]);
        out->p99 = interval_of(values[P99]);
    }

    if (good && compared) {
        sort(over);
        for (uint32_t n = 0; n < LAB_BOOTSTRAP_DRAWS; n++)
            values[RATIO][n] /= draw(over, n, 1, times).p50;
        out->ratio = interval_of(values[RATIO]);
    }

    free(values);
    free(times);
    return good;
}
