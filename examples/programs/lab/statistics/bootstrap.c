/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"
#include "common/quantiles.h"
#include "lab/sim/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, STREAM = 0x62 };

static const double low_share = 0.025, high_share = 0.975;

const struct lab_pair lab_no_pair = {0, NAN, NAN, {NAN, NAN}, {NAN, NAN}};

/* --- Values in blocks ------------------------------------------------------------------------- */

static bool grow_values(struct lab_blocks *blocks)
{
    if (blocks->count < blocks->room)
        return true;

    size_t room = blocks->room ? 2 * blocks->room : 256;
    struct lab_blocked *values = realloc(blocks->values, room * sizeof *values);

    if (!values)
        return false;
    blocks->values = values;
    blocks->room = room;
    return true;
}

static bool grow_list(struct lab_blocks *blocks)
{
    if (blocks->blocks < blocks->block_room)
        return true;

    uint32_t room = blocks->block_room ? 2 * blocks->block_room : 32;
    struct lab_block *list = realloc(blocks->list, room * sizeof *list);

    if (!list)
        return false;
    blocks->list = list;
    blocks->block_room = room;
    return true;
}

/* Whether the last block is this one. */
static bool is_open(const struct lab_blocks *blocks, uint64_t number)
{
    if (blocks->blocks == 0)
        return false;

    const struct lab_block *last = &blocks->list[blocks->blocks - 1];
    return last->number == number && last->stratum == blocks->stratum;
}

void lab_blocks_add(struct lab_blocks *blocks, double value, uint64_t number)
{
    if (!grow_values(blocks) || !grow_list(blocks)) {
        blocks->failed = true;
        return;
    }

    if (!is_open(blocks, number))
        blocks->list[blocks->blocks++] = (struct lab_block){number, blocks->stratum, 0, 0};

    struct lab_block *block = &blocks->list[blocks->blocks - 1];
    block->count++;
    block->sum += value;

    blocks->values[blocks->count++] = (struct lab_blocked){value, blocks->blocks - 1};
    blocks->sorted = false;
}

void lab_blocks_free(struct lab_blocks *blocks)
{
    free(blocks->values);
    free(blocks->list);
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
    if (blocks->count && !blocks->sorted)
        qsort(blocks->values, blocks->count, sizeof *blocks->values, by_value);
    blocks->sorted = true;
}

/* --- Draws ------------------------------------------------------------------------------------ */

/* Draw as many blocks of each stratum as it has, and count how often each is drawn. */
static void draw(const struct lab_block *list, uint32_t count, uint64_t number, uint32_t which,
                 uint32_t *times)
{
    memset(times, 0, count * sizeof *times);

    for (uint32_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && list[end].stratum == list[first].stratum)
            end++;

        for (uint32_t b = first; b < end; b++)
            times[first + lab_random_bits(SEED, STREAM, number, which, b) % (end - first)]++;
    }
}

/* The quantiles, from the highest. */
enum { P999, P995, P99, P50, QUANTILES };
static const unsigned per_mille[QUANTILES] = {999, 995, 990, 500};

/* The figures of one draw. */
struct drawn {
    double mean, quantiles[QUANTILES];
};

/* Only the quantiles before `quantiles`: low ones take longer, because the values are read from the
 * greatest one down. */
static struct drawn figures_of(const struct lab_blocks *blocks, const uint32_t *times,
                               int quantiles)
{
    struct drawn drawn = {NAN, {NAN, NAN, NAN, NAN}};
    uint64_t count = 0, seen = 0;
    double sum = 0;
    int q = 0;

    for (uint32_t b = 0; b < blocks->blocks; b++) {
        count += (uint64_t)times[b] * blocks->list[b].count;
        sum += times[b] * blocks->list[b].sum;
    }
    drawn.mean = sum / (double)count;

    for (size_t i = blocks->count; i-- > 0 && q < quantiles;) {
        seen += times[blocks->values[i].block];

        while (q < quantiles && seen > count - rank_of(count, per_mille[q]))
            drawn.quantiles[q++] = blocks->values[i].value;
    }
    return drawn;
}

static struct lab_interval interval_of(double *values)
{
    double low = quantile_of(values, LAB_BOOTSTRAP_DRAWS, low_share);
    return (struct lab_interval){low, quantile_of(values, LAB_BOOTSTRAP_DRAWS, high_share)};
}

/* --- One policy ------------------------------------------------------------------------------- */

bool lab_bootstrap(struct lab_blocks *of, struct lab_blocks *over, struct lab_intervals *out)
{
    enum { MEAN = QUANTILES, RATIO, FIGURES };
    const struct lab_interval unknown = {NAN, NAN};
    bool compared = over && over->blocks > 1;
    *out = (struct lab_intervals){unknown, unknown, unknown, unknown, unknown, unknown};

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
            draw(of->list, of->blocks, n, 0, times);

            struct drawn drawn = figures_of(of, times, QUANTILES);
            values[MEAN][n] = drawn.mean;
            values[RATIO][n] = drawn.quantiles[P50];
            for (int q = 0; q < QUANTILES; q++)
                values[q][n] = drawn.quantiles[q];
        }

        out->mean = interval_of(values[MEAN]);
        out->p50 = interval_of(values[P50]);
        out->p99 = interval_of(values[P99]);
        out->p995 = interval_of(values[P995]);
        out->p999 = interval_of(values[P999]);
    }

    if (good && compared) {
        sort(over);
        for (uint32_t n = 0; n < LAB_BOOTSTRAP_DRAWS; n++) {
            draw(over->list, over->blocks, n, 1, times);
            values[RATIO][n] /= figures_of(over, times, QUANTILES).quantiles[P50];
        }
        out->ratio = interval_of(values[RATIO]);
    }

    free(values);
    free(times);
    return good;
}

/* --- A pair of policies ----------------------------------------------------------------------- */

/* The blocks that both have: their strata for draw(), and their places in each list. */
struct common {
    uint32_t count;
    struct lab_block *list;
    uint32_t *places[2];
    uint32_t *drawn;    /* how often each is drawn */
    uint32_t *times[2]; /* the same by the places in each list */
};

static void free_common(struct common *common)
{
    free(common->list);
    free(common->drawn);
    for (int side = 0; side < 2; side++) {
        free(common->places[side]);
        free(common->times[side]);
    }
}

static bool is_before(const struct lab_block *left, const struct lab_block *right)
{
    if (left->stratum != right->stratum)
        return left->stratum < right->stratum;
    return left->number < right->number;
}

/* False if out of memory; free it in any case. */
static bool find_common(const struct lab_blocks *sides[2], struct common *common)
{
    const uint32_t room = 1 + (sides[0]->blocks < sides[1]->blocks ? sides[0]->blocks
                                                                   : sides[1]->blocks);
    bool good = true;

    *common = (struct common){.list = malloc(room * sizeof *common->list),
                              .drawn = malloc(room * sizeof *common->drawn)};
    for (int side = 0; side < 2; side++) {
        common->places[side] = malloc(room * sizeof *common->places[side]);
        common->times[side] = calloc(sides[side]->blocks + 1u, sizeof *common->times[side]);
        good = good && common->places[side] && common->times[side];
    }
    if (!good || !common->list || !common->drawn)
        return false;

    for (uint32_t a = 0, b = 0; a < sides[0]->blocks && b < sides[1]->blocks;) {
        const struct lab_block *left = &sides[0]->list[a], *right = &sides[1]->list[b];

        if (is_before(left, right)) {
            a++;
        } else if (is_before(right, left)) {
            b++;
        } else {
            common->list[common->count] = *left;
            common->places[0][common->count] = a++;
            common->places[1][common->count++] = b++;
        }
    }
    return true;
}

/* One policy's figures over the other's, with the blocks as often as they were drawn. */
static void compare(const struct lab_blocks *sides[2], struct common *common, double *mean,
                    double *p99)
{
    struct drawn drawn[2];

    for (int side = 0; side < 2; side++) {
        for (uint32_t c = 0; c < common->count; c++)
            common->times[side][common->places[side][c]] = common->drawn[c];
        drawn[side] = figures_of(sides[side], common->times[side], P99 + 1);
    }

    *mean = drawn[0].mean / drawn[1].mean;
    *p99 = drawn[0].quantiles[P99] / drawn[1].quantiles[P99];
}

static bool resample(const struct lab_blocks *sides[2], struct common *common, struct lab_pair *out)
{
    double(*values)[LAB_BOOTSTRAP_DRAWS] = malloc(2 * sizeof *values);

    if (!values)
        return false;

    for (uint32_t n = 0; n < LAB_BOOTSTRAP_DRAWS; n++) {
        draw(common->list, common->count, n, 0, common->drawn);
        compare(sides, common, &values[0][n], &values[1][n]);
    }

    out->mean_interval = interval_of(values[0]);
    out->p99_interval = interval_of(values[1]);
    free(values);
    return true;
}

bool lab_bootstrap_pair(struct lab_blocks *of, struct lab_blocks *over, struct lab_pair *out)
{
    const struct lab_blocks *sides[2] = {of, over};
    struct common common = {.count = 0};

    *out = lab_no_pair;
    if (of->failed || over->failed)
        return false;

    sort(of);
    sort(over);

    bool good = find_common(sides, &common);
    if (good && common.count > 0) {
        for (uint32_t c = 0; c < common.count; c++)
            common.drawn[c] = 1;
        out->blocks = common.count;
        compare(sides, &common, &out->mean, &out->p99);
    }
    if (good && common.count > 1)
        good = resample(sides, &common, out);

    free_common(&common);
    return good;
}
