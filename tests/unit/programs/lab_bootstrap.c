/* Confidence intervals by a block bootstrap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/bootstrap.h"
#include "lab/run/frame_figures.h"
#include "lab/sim/random.h"

#include <criterion/criterion.h>
#include <math.h>

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

/* --- Figures of a run --------------------------------------------------------------------------------------------- */

enum { STRIDE = 20, REPEATS = 3 };

Test(lab_run, repeats_are_figured_together)
{
    static struct lab_run_frame frames[STRIDE * REPEATS];
    const struct lab_run_range range = {4, 20, REPEATS, STRIDE};
    const struct lab_run_reference reference = {
        .device_count = 1, .solo = {{200, 200, 200, 200, 9}}, .oracle = {.spread = {100, 100, 100, 100, 9}}};
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
