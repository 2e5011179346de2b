/* How long the warm-up takes on one device, and how exact its time for the whole pass is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/measure.h"
#include <criterion/criterion.h>
#include <math.h>

TestSuite(measure, .timeout = 60);

/* A device takes `fixed_ns`, and `wave_ns` for each `cores` rows that it has begun. */
struct model {
    double fixed_ns;
    double wave_ns;
    double cores;
    double compile_ns; /* in its first run */
};

struct outcome {
    double whole_ns; /* as measured; 0 = not measured */
    double spent_ns; /* in all runs, without compilation */
    uint32_t slices;
    uint32_t wholes;
};

static double time_of(const struct model *model, uint32_t rows)
{
    return model->fixed_ns + model->wave_ns * ceil(rows / model->cores);
}

static struct outcome measure(const struct model *model, uint32_t rows, uint32_t unit, uint32_t most, uint64_t known_ns)
{
    struct cox__measure measure;
    struct outcome out = {0};
    cox__measure_begin(&measure, rows, unit, most, known_ns, false);
    while (measure.state != COX__MEASURE_DONE) {
        const bool whole = measure.state == COX__MEASURE_WHOLE, first = measure.state == COX__MEASURE_COMPILE;
        const uint32_t run = whole ? rows : measure.slice;
        cr_assert(run > 0 && (whole || (run <= most && (run % unit == 0 || run == rows))), "%u rows", run);
        cr_assert_lt(out.slices + out.wholes, 40, "it does not end");
        const double ns = time_of(model, run);
        out.slices += !whole;
        out.wholes += whole;
        out.spent_ns += ns;
        const uint64_t got = cox__measure_learn(&measure, run, (uint64_t)(ns + first * model->compile_ns), false);
        if (got)
            out.whole_ns = (double)got;
    }
    return out;
}

Test(measure, a_cheap_pass_is_timed_whole_as_often_as_before)
{
    const struct model cheap = {20e3, 1e3, 1, 0};
    const struct outcome out = measure(&cheap, 1080, 4, 540, 0);
    cr_expect_eq(out.wholes, 12);
    cr_expect_leq(out.slices, 3);
    cr_expect_float_eq(out.whole_ns, time_of(&cheap, 1080), 1);
}

Test(measure, a_dear_pass_costs_a_sixteenth_of_itself_and_its_time_is_right, .timeout = 60)
{
    for (double whole_ns = 500e6; whole_ns < 100e9; whole_ns *= 1.7)
        for (uint32_t rows = 256; rows <= 4320; rows += 508) {
            const struct model dear = {100e3, whole_ns / rows, 1, 1e9};
            const struct outcome out = measure(&dear, rows, 1, rows / 2, 0);
            cr_expect_eq(out.wholes, 0, "%g s, %u rows", whole_ns * 1e-9, rows);
            cr_expect_leq(out.spent_ns, time_of(&dear, rows) / 8, "%g s of %g s", out.spent_ns * 1e-9, whole_ns * 1e-9);
            cr_expect(fabs(out.whole_ns / time_of(&dear, rows) - 1) < 0.05, "%g s, not %g s", out.whole_ns * 1e-9,
                      whole_ns * 1e-9);
        }
}

Test(measure, compilation_is_not_counted)
{
    const struct model slow_compiler = {50e3, 1e4, 1, 5e9};
    cr_expect_float_eq(measure(&slow_compiler, 1000, 1, 500, 0).whole_ns, 50e3 + 1e7, 1);
}

/* A device with many cores takes as long for a few rows as for many. */
Test(measure, a_device_with_more_cores_than_a_slice_has_rows_is_not_taken_to_be_slow)
{
    for (double cores = 1; cores <= 1024; cores *= 2)
        for (double wave_ns = 1e6; wave_ns < 1e9; wave_ns *= 10) {
            const struct model wide = {20e3, wave_ns, cores, 0};
            const struct outcome out = measure(&wide, 1024, 1, 512, 0);
            const double ratio = out.whole_ns / time_of(&wide, 1024);
            cr_expect(ratio > 0.6 && ratio < 1.5, "%g cores, waves of %g ms: %g times", cores, wave_ns * 1e-6, ratio);
        }
}

Test(measure, rows_in_few_large_units_are_enough)
{
    const struct model dear = {0, 1e6, 1, 0};
    for (uint32_t units = 1; units < 12; units++) {
        const struct outcome out = measure(&dear, 64 * units, 64, units > 1 ? units / 2 * 64 : 64, 0);
        cr_expect_float_eq(out.whole_ns, 64e6 * units, 64e6 * units * 0.05, "%u units", units);
        cr_expect_leq(out.slices, 3);
    }
}

Test(measure, a_known_time_is_only_repeated)
{
    const struct model cheap = {20e3, 1e3, 1, 0}, dear = {0, 1e7, 1, 1e9};
    const struct outcome same = measure(&cheap, 1000, 1, 500, 1020000), old = measure(&cheap, 1000, 1, 500, 300000),
                         far = measure(&dear, 1000, 1, 500, 10000000000);
    cr_expect(same.slices == 1 && same.wholes == 1 && same.whole_ns == 0);
    cr_expect(old.slices == 1 && old.wholes == 2);
    cr_expect_float_eq(old.whole_ns, 1020000, 1, "it holds no longer");
    cr_expect(far.slices == 1 && far.wholes == 0);
}

/* Such a device takes the last rows of the pass, which are fewer than those of a slice. */
Test(measure, slices_that_the_end_of_the_pass_cuts_short_come_to_an_end)
{
    struct cox__measure measure;
    uint64_t whole_ns = 0;
    uint32_t runs = 0;
    cox__measure_begin(&measure, 33, 16, 16, 0, false);
    for (; measure.state <= COX__MEASURE_SLICE && runs < 10; runs++)
        whole_ns = cox__measure_learn(&measure, 1, 4000000, false);
    cr_expect_leq(runs, 2);
    cr_expect_eq(whole_ns, 33 * 4000000u);
}
