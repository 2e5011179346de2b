/* The sweep of fixed splits that cox-lab run compares policies with: its candidates, their samples, the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/frame_figures.h"
#include "support/values.h"

#include <criterion/criterion.h>
#include <string.h>

static struct lab_sweep sweep;
static struct lab_swept oracle;

static void end_sweep(void)
{
    lab_sweep_end(&sweep);
}

static void begin_sweep(uint32_t devices, uint32_t rows, uint32_t row_alignment, uint32_t turn)
{
    end_sweep();
    lab_sweep_begin(&sweep, devices, rows, row_alignment, turn);
}

TestSuite(lab_sweep, .fini = end_sweep);

static void propose(uint32_t first, uint32_t second)
{
    lab_sweep_propose(&sweep, (const uint32_t[]){first, second});
}

/* Add the samples `first`, `first` + 1 and so on. */
static void add_samples(uint32_t candidate, double first, int count)
{
    for (int i = 0; i < count; i++)
        lab_sweep_add(&sweep, candidate, first + i);
}

static void oracle_is(uint32_t candidate)
{
    cr_assert(lab_sweep_oracle(&sweep, &oracle));
    cr_assert_eq(oracle.candidate, candidate);
}

static uint32_t sum_of(const uint32_t *rows, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t d = 0; d < count; d++)
        sum += rows[d];
    return sum;
}

/* Check that boundaries are multiples of the row alignment, that all rows are covered, and that every split occurs
 * once. */
static void check_candidates(void)
{
    for (uint32_t c = 0; c < sweep.count; c++) {
        const uint32_t *rows = sweep.candidates[c].rows;
        uint32_t at = 0;
        cr_assert_eq(sum_of(rows, sweep.device_count), sweep.rows, "candidate %u", c);
        for (uint32_t d = 0; d < sweep.device_count; d++) {
            at += rows[d];
            cr_assert(at % sweep.row_alignment == 0 || at == sweep.rows, "candidate %u, device %u", c, d);
        }
        for (uint32_t other = 0; other < c; other++)
            cr_assert_neq(memcmp(rows, sweep.candidates[other].rows, sweep.device_count * sizeof *rows), 0);
    }
}

Test(lab_sweep, candidates_are_splits)
{
    static const double speeds[COX_DEVICES_MAX] = {3, 1, 8, 0.5, 2, 0.001};
    static const uint32_t row_units[] = {1, 8, 64, 600};
    for (uint32_t devices = 1; devices <= 6; devices++)
        for (int g = 0; g < 4; g++) {
            begin_sweep(devices, 1084, row_units[g], 3);
            cr_assert_eq(sweep.count, devices);
            lab_sweep_spread(&sweep, speeds);
            check_candidates();
            cr_assert(devices == 1 || g == 3 || sweep.count > devices + 2, "%u devices: %u", devices, sweep.count);
        }
}

Test(lab_sweep, a_curve_goes_from_one_end_to_the_other_and_is_kept)
{
    static const double speeds[3] = {3, 1, 2};
    struct lab_spread spreads[LAB_CANDIDATES_MAX] = {{0}};
    for (uint32_t devices = 1; devices <= 3; devices++) {
        begin_sweep(devices, 1084, 8, 3);
        cr_assert_eq(sweep.kept, devices);
        lab_sweep_curve(&sweep, speeds, 10);
        cr_assert_eq(sweep.kept, devices == 1 ? 1 : devices + 9);
        lab_sweep_spread(&sweep, speeds);
        check_candidates();
        for (uint32_t c = 0; c < sweep.count; c++)
            spreads[c] = (struct lab_spread){.p50_ns = 100.0 * (sweep.count - c), .count = 1000};
        for (uint32_t c = devices; c < sweep.kept; c++) {
            cr_assert(c == devices || sweep.candidates[c].rows[0] > sweep.candidates[c - 1].rows[0]);
            cr_assert(lab_sweep_wanted(&sweep, c, spreads));
        }
    }
}

Test(lab_sweep, takes_splits_from_policies_in_whole_granules)
{
    begin_sweep(2, 1084, 8, 3);
    propose(333, 751);
    ASSERT_VALUES(IS(sweep.count, 3), IS(sweep.candidates[2].rows[0], 336));
    propose(333, 751);
    propose(1081, 3);
    propose(0, 0);
    cr_assert_eq(sweep.count, 3);
    check_candidates();
}

/* Two devices with 3 rows and 1 row per microsecond, and up to 10 % of noise. */
static double time_of(const uint32_t *rows, uint32_t *seed)
{
    double first = rows[0] / 3.0, second = rows[1];
    *seed = *seed * 1664525u + 1013904223u;
    return (first > second ? first : second) * 1000 * (0.95 + 0.1 * (*seed >> 8) / 16777216.0);
}

static void take_samples(uint32_t turns, uint32_t *seed)
{
    for (uint32_t t = 0; t < turns; t++)
        for (uint32_t c = 0; c < sweep.count; c++)
            for (uint32_t i = 0; i < sweep.turn; i++)
                cr_assert(lab_sweep_add(&sweep, c, time_of(sweep.candidates[c].rows, seed)));
}

Test(lab_sweep, finds_the_best_split_and_its_time)
{
    static const double speed[2] = {2.6, 1.2}; /* the balance that the sweep starts with is wrong */
    uint32_t seed = 5;
    begin_sweep(2, 1200, 4, 3);
    lab_sweep_spread(&sweep, speed);
    for (int i = 0; i < 6; i++) {
        take_samples(4, &seed);
        lab_sweep_refine(&sweep);
    }
    cr_assert(lab_sweep_oracle(&sweep, &oracle));
    const uint32_t *rows = sweep.candidates[oracle.candidate].rows;
    cr_assert(rows[0] >= 888 && rows[0] <= 912, "%u rows", rows[0]);
    ASSERT_VALUES(NEAR(oracle.spread.p50_ns, 300e3, 6e3), NEAR(oracle.spread.mean_ns, 300e3, 6e3));
}

/* Many splits are equally good. The lowest of their medians would be far too low. */
Test(lab_sweep, is_not_taken_in_by_noise)
{
    double sum = 0, least = 0;
    uint32_t seed = 1;
    enum { TIMES = 40 };
    for (int times = 0; times < TIMES; times++) {
        double best = 1e9;
        begin_sweep(2, 1000, 1, 1);
        for (uint32_t c = 2; c < 42; c++) {
            propose(100 + 20 * c, 900 - 20 * c);
            for (int i = 0; i < 10; i++) {
                seed = seed * 1664525u + 1013904223u;
                lab_sweep_add(&sweep, c, 1000 + 200 * ((seed >> 8) / 16777216.0 - 0.5));
            }
            double p50 = lab_spread_of(sweep.candidates[c].ns, 10).p50_ns;
            best = p50 < best ? p50 : best;
        }
        cr_assert(lab_sweep_oracle(&sweep, &oracle));
        sum += oracle.spread.p50_ns / TIMES;
        least += best / TIMES;
    }
    cr_assert_lt(least, 970);
    cr_assert_float_eq(sum, 1000, 8, "%g", sum);
}

Test(lab_sweep, the_oracle_need_not_share)
{
    static const double speed[2] = {1, 1};
    begin_sweep(2, 1000, 1, 1);
    lab_sweep_spread(&sweep, speed);
    for (uint32_t c = 0; c < sweep.count; c++)
        add_samples(c, c == 1 ? 500 : 900, 6);
    oracle_is(1);
    cr_assert_float_eq(oracle.spread.p50_ns, 502.5, 1);
}

Test(lab_sweep, what_noise_cannot_explain_gets_no_more_samples)
{
    begin_sweep(2, 1000, 1, 3);
    for (uint32_t i = 0; i < 4; i++)
        propose(500 + 10 * i, 500 - 10 * i);
    struct lab_spread spreads[LAB_CANDIDATES_MAX];
    for (int i = 0; i < 20; i++) {
        double noise = 2 * (i % 10 - 4.5); /* ninety per cent are below 7 */
        lab_sweep_add(&sweep, 0, 3000 + noise);
        lab_sweep_add(&sweep, 2, 1000 + noise);
        lab_sweep_add(&sweep, 3, 1015 + noise);
        lab_sweep_add(&sweep, 4, 1030 + noise);
    }
    lab_sweep_add(&sweep, 5, 2000);
    cr_assert(lab_sweep_spreads(&sweep, spreads));
    cr_assert_float_eq(spreads[2].p50_ns, 1000, 1);
    cr_assert(lab_sweep_wanted(&sweep, 0, spreads), "a device alone always is");
    cr_assert(lab_sweep_wanted(&sweep, 3, spreads), "near enough");
    cr_assert_not(lab_sweep_wanted(&sweep, 4, spreads));
    cr_assert(lab_sweep_wanted(&sweep, 5, spreads), "one sample is not enough");
    for (int i = 0; i < 20; i++) /* with ten times the noise it may be as good */
        lab_sweep_add(&sweep, 2, 1000 + 20 * (i % 10 - 4.5));
    cr_assert(lab_sweep_spreads(&sweep, spreads));
    cr_assert(lab_sweep_wanted(&sweep, 4, spreads));
}

Test(lab_sweep, a_lucky_turn_makes_no_oracle)
{
    begin_sweep(2, 1000, 1, 3);
    propose(500, 500);
    propose(600, 400);
    add_samples(2, 1000, 24);
    add_samples(3, 500, 3);
    oracle_is(2);
    add_samples(3, 500, 21);
    oracle_is(3);
}

Test(lab_sweep, what_was_disturbed_is_forgotten)
{
    begin_sweep(2, 1000, 1, 1);
    cr_assert_not(lab_sweep_oracle(&sweep, &oracle));
    lab_sweep_add(&sweep, 0, 100);
    lab_sweep_mark(&sweep);
    lab_sweep_add(&sweep, 0, 900);
    lab_sweep_add(&sweep, 1, 50);
    lab_sweep_undo(&sweep);
    cr_assert(sweep.candidates[0].count == 1 && sweep.candidates[1].count == 0);
    cr_assert(lab_sweep_oracle(&sweep, &oracle));
    cr_assert(oracle.candidate == 0 && oracle.spread.p50_ns == 100);
}

/* One of two splits is run only in quiet rounds. Its samples are lower, but the split is not better. */
Test(lab_sweep, rounds_differ_and_that_is_no_merit_of_a_split)
{
    begin_sweep(2, 1000, 1, 3);
    propose(500, 500);
    propose(510, 490);
    propose(600, 400);
    for (int round = 0; round < 12; round++) {
        double slower = round % 3 == 0 ? 1.0 : 1.5;
        lab_sweep_mark(&sweep);
        for (int i = 0; i < 6; i++) {
            double noise = slower * (1 + 0.002 * (i - 2.5));
            lab_sweep_add(&sweep, 2, 1000 * noise);
            lab_sweep_add(&sweep, 4, 1300 * noise);
            if (round % 3 == 0)
                lab_sweep_add(&sweep, 3, 1020 * noise);
        }
    }
    oracle_is(2);
    ASSERT_VALUES(NEAR(oracle.spread.p50_ns, 1500, 10), NEAR(oracle.spread.mean_ns, 1000 * (4 + 8 * 1.5) / 12, 10));
}

Test(lab_sweep, its_policy_does_as_it_is_told)
{
    struct cox_sched_device devices[3] = {{true, 1, 0}, {true, 1, 0}, {true, 1, 0}};
    const struct cox_sched_view view = {
        .frame = 0, .rows = 100, .row_alignment = 1, .device_count = 3, .devices = devices, .in_flight = 1};
    const uint32_t rows[3] = {70, 0, 30};
    struct cox_split split;
    char state[1], why[200];
    lab_sweep_choose(rows, 3);
    cr_assert_eq(lab_sweep_policy.split(state, &view, &split), COX_OK);
    cr_assert_eq(cox_split_check(&split, &view, why, sizeof why), COX_OK, "%s", why);
    cr_assert(split.band_count == 2 && split.bands[0].rows == 70 && split.bands[1].device == 2);
}
