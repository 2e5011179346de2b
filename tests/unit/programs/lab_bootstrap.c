/* Confidence intervals by a block bootstrap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/statistics/bootstrap.h"
#include "lab/run/frame_figures.h"
#include "lab/sim/by_seed.h"
#include "lab/sim/random.h"
#include "lab/statistics/tail.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct lab_blocks blocks, others;
static struct lab_intervals out;

static void free_blocks(void)
{
    lab_blocks_free(&blocks);
    lab_blocks_free(&others);
}

TestSuite(lab_bootstrap, .fini = free_blocks);

static double normal(uint64_t seed, uint64_t index)
{
    return lab_random_normal(lab_random_uniform(lab_random_bits(seed, 3, index, 0, 0)));
}

static bool holds(const struct lab_interval *interval, double value)
{
    return interval->low <= value && value <= interval->high;
}

Test(lab_bootstrap, constant_values_leave_no_doubt)
{
    for (uint64_t i = 0; i < 40; i++)
        lab_blocks_add(&blocks, 5, i / 8);
    cr_assert(blocks.blocks == 5 && blocks.count == 40);
    cr_assert(lab_bootstrap(&blocks, &blocks, &out));
    cr_assert(out.mean.low == 5 && out.mean.high == 5 && out.p99.low == 5 && out.ratio.low == 1 && out.ratio.high == 1);
}

Test(lab_bootstrap, less_than_two_blocks_say_nothing)
{
    struct lab_blocks one = {0}, none = {0}, two = {0};
    struct lab_intervals out;
    lab_blocks_add(&one, 5, 7);
    lab_blocks_add(&one, 6, 7);
    lab_blocks_add(&two, 5, 7);
    lab_blocks_add(&two, 6, 9);
    cr_assert(lab_bootstrap(&one, NULL, &out));
    cr_assert(isnan(out.mean.low) && isnan(out.p50.high));
    cr_assert(lab_bootstrap(&none, &two, &out));
    cr_assert(isnan(out.p99.low) && isnan(out.ratio.low));
    cr_assert(lab_bootstrap(&two, &one, &out));
    cr_assert(out.mean.low >= 5 && out.mean.high <= 6 && isnan(out.ratio.high));
    lab_blocks_free(&one);
    lab_blocks_free(&two);
}

/* Independent values with a standard deviation of 1. The interval reaches 1.96 / sqrt(n) to each side of the mean,
 * and 95 % of the intervals contain the true mean of 10. */
Test(lab_bootstrap, intervals_are_as_wide_as_theory_says)
{
    enum { COUNT = 400, TIMES = 100 };
    int held = 0, held_median = 0;
    double width = 0;
    for (uint64_t times = 0; times < TIMES; times++) {
        free_blocks();
        for (uint64_t i = 0; i < COUNT; i++)
            lab_blocks_add(&blocks, 10 + normal(times, i), i / 8);
        cr_assert(lab_bootstrap(&blocks, NULL, &out));
        held += holds(&out.mean, 10);
        held_median += holds(&out.p50, 10);
        width += (out.mean.high - out.mean.low) / TIMES;
        cr_assert(isnan(out.ratio.low));
    }
    cr_assert_float_eq(width, 2 * 1.96 / sqrt(COUNT), 0.02, "%g", width);
    cr_assert(held >= 86, "%d of %d", held, TIMES);
    cr_assert(held_median >= 86, "%d of %d", held_median, TIMES);
}

/* Blocks of similar frames. Drawn one by one, the frames would count as eight times as many. */
Test(lab_bootstrap, frames_that_are_alike_count_as_what_they_are)
{
    struct lab_intervals together, alone;
    for (uint64_t i = 0; i < 400; i++) {
        double value = 10 + normal(1, i / 8);
        lab_blocks_add(&blocks, value, i / 8);
        lab_blocks_add(&others, value, i);
    }
    cr_assert(lab_bootstrap(&blocks, NULL, &together));
    cr_assert(lab_bootstrap(&others, NULL, &alone));
    double ratio = (together.mean.high - together.mean.low) / (alone.mean.high - alone.mean.low);
    cr_assert(ratio > 2.2 && ratio < 3.5, "%g, expected the square root of 8", ratio);
}

Test(lab_bootstrap, the_same_values_give_the_same_intervals)
{
    struct lab_intervals both[2];
    for (int times = 0; times < 2; times++) {
        free_blocks();
        for (uint64_t i = 0; i < 80; i++) {
            lab_blocks_add(&blocks, 20 + normal(1, i), i / 8);
            lab_blocks_add(&others, 10 + normal(2, i), i / 4);
        }
        cr_assert(lab_bootstrap(&blocks, &others, &both[times]));
        cr_assert(holds(&both[times].ratio, 2), "%g to %g", both[times].ratio.low, both[times].ratio.high);
    }
    cr_assert(both[0].p50.low == both[1].p50.low && both[0].ratio.high == both[1].ratio.high);
}

/* 2500 frames in blocks of eight that share half of their variance. The true p99 of a normal distribution with a
 * variance of 1 is 2.326. */
Test(lab_bootstrap, intervals_of_quantiles_hold_the_true_ones)
{
    enum { COUNT = 2500, TIMES = 60 };
    int held_p99 = 0, held_p995 = 0;
    for (uint64_t times = 0; times < TIMES; times++) {
        free_blocks();
        for (uint64_t i = 0; i < COUNT; i++)
            lab_blocks_add(&blocks, sqrt(0.5) * (normal(2 * times, i / 8) + normal(2 * times + 1, i)), i / 8);
        cr_assert(lab_bootstrap(&blocks, NULL, &out));
        held_p99 += holds(&out.p99, 2.3263);
        held_p995 += holds(&out.p995, 2.5758);
        cr_assert(out.p99.high <= out.p995.high && out.p995.high <= out.p999.high);
    }
    cr_assert(held_p99 >= 52, "%d of %d", held_p99, TIMES);
    cr_assert(held_p995 >= 50, "%d of %d", held_p995, TIMES);
}

Test(lab_bootstrap, quantiles_are_those_of_the_nearest_rank)
{
    for (uint64_t i = 0; i < 2000; i++) /* two equal blocks: every draw is the same */
        lab_blocks_add(&blocks, (double)(i % 1000) + 1, i / 1000);
    cr_assert(lab_bootstrap(&blocks, NULL, &out));
    cr_assert(out.p50.low == 500 && out.p50.high == 500 && out.p99.low == 990 && out.p99.high == 990);
    cr_assert(out.p995.low == 995 && out.p999.low == 999 && out.p999.high == 999);
}

/* --- Policy against policy ---------------------------------------------------------------------------------------- */

/* Rounds of eight frames. What a round does to both policies is ten times the policies' own noise. */
static void take_rounds(uint64_t seed, uint64_t rounds, double factor)
{
    free_blocks();
    for (uint64_t i = 0; i < 8 * rounds; i++) {
        const double round = exp(0.2 * normal(3 * seed, i / 8));
        lab_blocks_add(&blocks, factor * round * (10 + 0.2 * normal(3 * seed + 1, i)), i / 8);
        lab_blocks_add(&others, round * (10 + 0.2 * normal(3 * seed + 2, i)), i / 8);
    }
}

Test(lab_bootstrap, the_same_rounds_of_both_policies_are_compared)
{
    enum { TIMES = 60 };
    int held = 0;
    for (uint64_t times = 0; times < TIMES; times++) {
        struct lab_pair pair;
        take_rounds(times, 50, 1.02);
        cr_assert(lab_bootstrap_pair(&blocks, &others, &pair));
        cr_assert_eq(pair.blocks, 50);
        cr_assert(holds(&pair.mean_interval, pair.mean) && holds(&pair.p99_interval, pair.p99));
        cr_assert_lt(pair.mean_interval.high - pair.mean_interval.low, 0.01, "%g to %g", pair.mean_interval.low,
                     pair.mean_interval.high);
        held += holds(&pair.mean_interval, 1.02);
        /* Independent draws cannot tell the policies apart. */
        cr_assert(lab_bootstrap(&blocks, &others, &out));
        cr_assert_gt(out.ratio.high - out.ratio.low, 0.05);
    }
    cr_assert(held >= 51, "%d of %d", held, TIMES);
}

Test(lab_bootstrap, a_policy_equals_itself)
{
    struct lab_pair pair;
    take_rounds(1, 20, 1);
    cr_assert(lab_bootstrap_pair(&blocks, &blocks, &pair));
    cr_assert(pair.mean == 1 && pair.mean_interval.low == 1 && pair.mean_interval.high == 1);
    cr_assert(pair.p99 == 1 && pair.p99_interval.low == 1 && pair.p99_interval.high == 1);
}

Test(lab_bootstrap, rounds_that_one_policy_lacks_are_left_out)
{
    struct lab_pair pair;
    for (uint64_t b = 0; b < 12; b++) {
        if (b != 3)
            lab_blocks_add(&blocks, b == 5 ? 900 : 20, b);
        if (b != 5)
            lab_blocks_add(&others, b == 3 ? 900 : 10, b);
    }
    cr_assert(lab_bootstrap_pair(&blocks, &others, &pair));
    cr_assert_eq(pair.blocks, 10);
    cr_assert(pair.mean == 2 && pair.p99 == 2 && pair.mean_interval.low == 2 && pair.mean_interval.high == 2);
}

Test(lab_bootstrap, no_common_round_says_nothing)
{
    struct lab_pair pair;
    lab_blocks_add(&blocks, 5, 1);
    lab_blocks_add(&others, 5, 2);
    cr_assert(lab_bootstrap_pair(&blocks, &others, &pair));
    cr_assert(pair.blocks == 0 && isnan(pair.mean) && isnan(pair.p99) && isnan(pair.mean_interval.low));
    lab_blocks_add(&others, 4, 3);
    lab_blocks_add(&blocks, 8, 3);
    cr_assert(lab_bootstrap_pair(&blocks, &others, &pair));
    cr_assert(pair.blocks == 1 && pair.mean == 2 && pair.p99 == 2 && isnan(pair.p99_interval.high));
}

/* A quiet phase and a disturbed one: how many blocks each has is no chance. */
Test(lab_bootstrap, each_draw_has_as_many_blocks_of_a_phase)
{
    struct lab_pair pair;
    for (uint64_t b = 0; b < 20; b++) {
        blocks.stratum = others.stratum = b >= 10;
        lab_blocks_add(&blocks, b >= 10 ? 100 : 10, b < 10 ? b : b - 1);
        lab_blocks_add(&others, b >= 10 ? 50 : 10, b < 10 ? b : b - 1);
    }
    cr_assert_eq(blocks.blocks, 20, "the same number in two phases is two blocks");
    cr_assert(lab_bootstrap(&blocks, NULL, &out));
    cr_assert(out.mean.low == 55 && out.mean.high == 55);
    cr_assert(lab_bootstrap_pair(&blocks, &others, &pair));
    cr_assert(pair.blocks == 20 && pair.mean_interval.low == 55 / 30.0 && pair.mean_interval.high == 55 / 30.0);
}

Test(lab_bootstrap, the_same_rounds_give_the_same_intervals)
{
    struct lab_pair both[2];
    for (int times = 0; times < 2; times++) {
        take_rounds(4, 30, 1.1);
        cr_assert(lab_bootstrap_pair(&blocks, &others, &both[times]));
    }
    cr_assert(both[0].mean == both[1].mean && both[0].mean_interval.low == both[1].mean_interval.low);
    cr_assert(both[0].p99 == both[1].p99 && both[0].p99_interval.high == both[1].p99_interval.high);
}

/* --- Seeds -------------------------------------------------------------------------------------------------------- */

Test(lab_bootstrap, seeds_are_compared_one_by_one)
{
    enum { SEEDS = 5, FRAMES = 100 };
    static const double ratios[SEEDS] = {1.1, 0.9, 1.0, 1.3, 1.2};
    static double first[SEEDS * FRAMES], second[SEEDS * FRAMES];
    struct lab_by_seed one = {.seeds = 0}, two = {.seeds = 0};
    struct lab_certainty sure;
    for (int i = 0; i < SEEDS * FRAMES; i++) {
        first[i] = 10 * (1 + i / FRAMES) * (i % FRAMES < 98 ? 1 : 3); /* the slowest two of a hundred */
        second[i] = first[i] * ratios[i / FRAMES];
    }
    cr_assert(lab_by_seed_fill(&one, first, FRAMES, SEEDS) && lab_by_seed_fill(&two, second, FRAMES, SEEDS));
    cr_assert(lab_certainty_of(&one, &one, &sure));
    cr_assert(isnan(sure.over_first.mean) && isnan(sure.mean_of_seeds.median) && sure.of.mean.low > 0);
    cr_assert(lab_certainty_of(&two, &one, &sure));
    cr_assert_eq(sure.over_first.blocks, SEEDS);
    cr_assert_float_eq(sure.mean_of_seeds.least, 0.9, 1e-9);
    cr_assert_float_eq(sure.mean_of_seeds.median, 1.1, 1e-9);
    cr_assert_float_eq(sure.mean_of_seeds.most, 1.3, 1e-9);
    cr_assert_float_eq(sure.p99_of_seeds.least, 0.9, 1e-9);
    cr_assert_float_eq(sure.p99_of_seeds.most, 1.3, 1e-9);
    cr_assert(sure.over_first.mean_interval.low > 0.9 && sure.over_first.mean_interval.high < 1.3);
    lab_by_seed_free(&one);
    lab_by_seed_free(&two);
}

/* --- Too few frames ----------------------------------------------------------------------------------------------- */

Test(lab_bootstrap, a_quantile_needs_ten_frames_beyond_it)
{
    static const unsigned shown[] = {500, 990, 999, 0};
    char text[LAB_TAIL_TEXT_BYTES];
    cr_assert(lab_tail_beyond(1000, 990) == 10 && lab_tail_beyond(999, 990) == 9 && lab_tail_beyond(10000, 999) == 10);
    cr_assert_not(lab_tail_warning(10000, shown, text, sizeof text));
    cr_assert(lab_tail_warning(9999, shown, text, sizeof text));
    cr_assert_str_eq(text, "Uncertain: of 9999 frames only 9 are above p99.9. 10 are needed: 10000 frames for p99.9.");
    cr_assert(lab_tail_warning(999, shown, text, sizeof text));
    cr_assert_str_eq(
        text, "Uncertain: of 999 frames only 9 are above p99, 0 are above p99.9. 10 are needed: 1000 frames for p99, "
              "10000 for p99.9.");
    cr_assert(lab_tail_warning(19, shown, text, sizeof text));
    cr_assert(strstr(text, "only 9 are above p50, 0 are above p99") && strstr(text, "20 frames for p50"));
    cr_assert_not(lab_tail_warning(0, shown, text, sizeof text));
    cr_assert(lab_blocks_warning(9, "seeds", text, sizeof text));
    cr_assert_str_eq(text, "Too narrow: 95 % intervals of 9 seeds; use 10 or more.");
    cr_assert_not(lab_blocks_warning(10, "seeds", text, sizeof text));
    cr_assert_not(lab_blocks_warning(1, "seeds", text, sizeof text), "without an interval");
}

/* --- Figures of a run --------------------------------------------------------------------------------------------- */

enum { STRIDE = 20, REPEATS = 3 };

Test(lab_run, repeats_are_figured_together)
{
    static struct lab_run_frame frames[STRIDE * REPEATS];
    const struct lab_run_range range = {4, 20, REPEATS, STRIDE};
    const struct lab_run_reference reference = {
        .device_count = 1, .solo = {{200, 200, 200, 200, 200, 9}}, .oracle = {.spread = {100, 100, 100, 100, 100, 9}}};
    struct lab_run_figures figures;
    for (int f = 0; f < STRIDE * REPEATS; f++)
        frames[f] = (struct lab_run_frame){.ns = f % STRIDE < 4 ? 9000 : 100, .joules = -1, .split = 1};
    for (int f = 0; f < 5; f++) /* one repeat settles late, one never settles */
        frames[STRIDE + 4 + f].ns = 500;
    for (int f = 0; f < 16; f++)
        frames[2 * STRIDE + 4 + f].ns = 300;
    frames[5].failed = true;
    frames[2 * STRIDE + 10].split = 2;
    cr_assert(lab_run_figures_of(frames, &range, &reference, &figures));
    cr_assert(figures.frames == 47 && figures.failed == 1);
    cr_assert_float_eq(figures.spread.mean_ns, (15 * 100 + 5 * 500 + 11 * 100 + 16 * 300) / 47.0, 1e-9);
    cr_assert_float_eq(figures.changes, 200.0 / 48, 1e-9);
    cr_assert_eq(figures.settled, 5, "the median of 0, 5 and never");
    lab_run_blocks_of(frames, &range, 8, &blocks);
    cr_assert(blocks.count == 47 && blocks.blocks == 6, "%zu in %u", blocks.count, blocks.blocks);
    free_blocks();
}

Test(lab_run, turns_of_a_reference_are_blocks)
{
    double ns[7] = {1, 2, 3, 4, 5, 6, 7};
    const struct lab_candidate candidate = {.ns = ns, .count = 7};
    lab_run_blocks_of_turns(&candidate, 3, &blocks);
    cr_assert(blocks.count == 7 && blocks.blocks == 3);
    free_blocks();
}
