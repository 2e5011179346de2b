/* The parts that `adaptive` learns with: the estimator of a device, the rows' cost profile, the share kept back, the
 * fluid water-filling.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/estimator.h"
#include "adaptive/row_profile.h"
#include "support/random_jitter.h"
#include "adaptive/tail_reserve.h"
#include "adaptive/fluid.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A device of 250 us + 30 us for a further launch + 9 us a row. */
static double device_ns(bool further, double work)
{
    return (further ? 30e3 : 250e3) + 9e3 * work;
}

static struct cox__estimate known(void)
{
    struct cox__estimate e;
    cox__estimate_init(&e);
    cox__estimate_begin(&e, device_ns(false, 1080), 1080, 0.1, 6e6);
    return e;
}

static double learn(struct cox__estimate *e, bool further, double work, double ns)
{
    double variance;
    struct cox__sample sample = {.further = further, .work = work, .ns = ns};
    return cox__estimate_learn(e, &sample, &variance);
}

/* One frame: a small band, now and then a large one, and two chunks. */
static void learn_frame(struct cox__estimate *e, uint32_t frame, double factor, double sigma)
{
    static const double bands[] = {40, 300, 620, 150};
    cox__estimate_age(e);
    learn(e, false, bands[frame % 4], factor * device_ns(false, bands[frame % 4]) * random_jitter(sigma));
    learn(e, true, 90, factor * device_ns(true, 90) * random_jitter(sigma));
    learn(e, true, 25, factor * device_ns(true, 25) * random_jitter(sigma));
}

static bool is_positive(const struct cox__estimate *e)
{
    for (int j = 0; j < COX__UNKNOWNS; j++)
        if (!(e->d[j] > 0) || !isfinite(e->d[j]) || !isfinite(e->x[j]) || !isfinite(e->u[j]))
            return false;
    return e->x[COX__FIRST] >= 0 && e->x[COX__LAUNCH] >= 0 && e->x[COX__PER_ROW] > 0;
}

Test(estimator, tells_fixed_cost_launch_and_cost_per_row_apart)
{
    random_begin(11);
    struct cox__estimate e = known();
    for (uint32_t frame = 0; frame < 400; frame++)
        learn_frame(&e, frame, 1, 0.05);
    cr_assert_float_eq(e.x[COX__FIRST], 250e3, 40e3, "%.0f", e.x[COX__FIRST]);
    cr_assert_float_eq(e.x[COX__LAUNCH], 30e3, 15e3, "%.0f", e.x[COX__LAUNCH]);
    cr_assert_float_eq(e.x[COX__PER_ROW], 9e3, 200, "%.0f", e.x[COX__PER_ROW]);
    cr_assert_float_eq(sqrt(e.variance), 0.05, 0.012, "%.4f", sqrt(e.variance));
}

Test(estimator, knows_exactly_what_is_measured_without_noise)
{
    struct cox__estimate e = known();
    for (uint32_t frame = 0; frame < 60; frame++)
        learn_frame(&e, frame, 1, 0);
    cr_assert_float_eq(cox__estimate_ns(&e, false, 500), device_ns(false, 500), 0.002 * device_ns(false, 500));
    cr_assert_float_eq(cox__estimate_ns(&e, true, 50), device_ns(true, 50), 0.01 * device_ns(true, 50));
}

Test(estimator, is_sure_of_little_at_first_and_of_more_later)
{
    struct cox__estimate e = known();
    double before = cox__estimate_error(&e, false, 300);
    for (uint32_t frame = 0; frame < 20; frame++)
        learn_frame(&e, frame, 1, 0.05);
    cr_assert_lt(cox__estimate_error(&e, false, 300), 0.3 * before);
}

Test(estimator, follows_a_jump_at_once_and_keeps_the_shape)
{
    random_begin(5);
    struct cox__estimate e = known();
    for (uint32_t frame = 0; frame < 200; frame++)
        learn_frame(&e, frame, 1, 0.02);
    double shape = e.x[COX__FIRST] / e.x[COX__PER_ROW];
    struct cox__sample slow = {.work = 300, .ns = 3 * device_ns(false, 300)};
    struct cox__residual residual;
    cox__estimate_compare(&e, &slow, &residual);
    cr_assert_float_eq(residual.ratio, 3, 0.15);
    cox__estimate_jump(&e, &slow, 0.08);
    cr_assert_float_eq(cox__estimate_ns(&e, false, 600), 3 * device_ns(false, 600), 0.08 * 3 * device_ns(false, 600));
    cr_assert_float_eq(e.x[COX__FIRST] / e.x[COX__PER_ROW], shape, 0.1 * shape);
    struct cox__sample back = {.work = 100, .ns = device_ns(false, 100)};
    cox__estimate_jump(&e, &back, 0.08);
    cr_assert_float_eq(cox__estimate_ns(&e, false, 600), device_ns(false, 600), 0.1 * device_ns(false, 600));
}

Test(estimator, is_hardly_moved_by_one_outlier)
{
    random_begin(7);
    struct cox__estimate e = known();
    for (uint32_t frame = 0; frame < 100; frame++)
        learn_frame(&e, frame, 1, 0.05);
    double before = cox__estimate_ns(&e, false, 300);
    double residual = learn(&e, false, 300, 5 * device_ns(false, 300));
    cr_assert_lt(residual, 0.25); /* clipped */
    cr_assert_lt(cox__estimate_ns(&e, false, 300) / before, 1.05);
}

Test(estimator, finds_a_drift_and_lags_little_behind_it)
{
    random_begin(9);
    struct cox__estimate e = known();
    double worst = 0, factor = 1;
    for (uint32_t frame = 0; frame < 400; frame++) {
        factor = frame < 100 ? 1 : 1 + 0.4 * sin(6.283185307179586 * (frame - 100) / 200.0);
        learn_frame(&e, frame, factor, 0.03);
        double z = cox__estimate_ns(&e, false, 300) / (factor * device_ns(false, 300)) - 1;
        cox__estimate_trend(&e, -z / 0.03, false);
        if (frame > 150)
            worst = fmax(worst, fabs(z));
    }
    cr_assert_lt(worst, 0.12, "%.3f", worst);
}

Test(estimator, rings_after_a_run_of_residuals_that_point_one_way_but_not_after_noise)
{
    random_begin(13);
    struct cox__estimate e = known();
    uint32_t rung = 0;
    for (uint32_t frame = 0; frame < 500; frame++)
        rung += cox__estimate_trend(&e, log(random_jitter(1)), false);
    cr_assert_leq(rung, 5, "%u", rung);
    e = known();
    rung = 0;
    for (uint32_t frame = 0; frame < 5; frame++)
        rung += cox__estimate_trend(&e, 2.5, false);
    cr_assert_geq(rung, 1);
    e = known();
    for (uint32_t frame = 0; frame < 50; frame++)
        cr_assert_not(cox__estimate_trend(&e, 3, true)); /* the content changes */
}

Test(estimator, never_takes_a_fixed_cost_below_zero_or_a_further_launch_for_dearer_than_the_first)
{
    random_begin(17);
    struct cox__estimate e = known();
    for (uint32_t frame = 0; frame < 300; frame++) {
        cox__estimate_age(&e);
        double work = 20 + 600 * random_unit();
        learn(&e, false, work, 9e3 * work * random_jitter(0.2)); /* no fixed cost at all */
        learn(&e, true, work, 40e3 + 9e3 * work);
        cr_assert(is_positive(&e));
    }
    cr_assert_leq(e.x[COX__LAUNCH], 1.01 * e.x[COX__FIRST] + 100);
}

Test(estimator, stays_positive_over_a_million_updates_of_any_size)
{
    static const double extremes[] = {1, 2, 1e3, 1e6, 1e9, 1e12, 1.8e19};
    random_begin(19);
    struct cox__estimate e;
    cox__estimate_init(&e);
    cox__estimate_begin(&e, 1e6, 100, 0.3, 1e6);
    for (uint32_t i = 0; i < 1000000; i++) {
        double work = random_unit() < 0.5 ? 1 + 5000 * random_unit() : extremes[random_index(4)];
        struct cox__sample sample = {.further = random_unit() < 0.5,
                                     .work = work,
                                     .work_variance = random_unit() < 0.2 ? random_unit() : 0,
                                     .ns = random_unit() < 0.5 ? 1e6 * random_unit() + 1 : extremes[random_index(7)]};
        double what = random_unit();
        double variance = 1;
        if (what < 0.1)
            cox__estimate_age(&e);
        else if (what < 0.15)
            cox__estimate_jump(&e, &sample, 0.1);
        else if (what < 0.2)
            cox__estimate_scale(&e, 0.1 + 10 * random_unit(), 0.3);
        else if (what < 0.25)
            cox__estimate_stretch(&e, 0.2 + 3 * random_unit());
        else if (what < 0.3)
            cox__estimate_trend(&e, 10 * random_unit() - 5, false);
        else
            cox__estimate_learn(&e, &sample, &variance);
        if (!is_positive(&e) || !(variance > 0) || !(cox__estimate_error(&e, true, work) >= 0))
            cr_assert(false, "update %u: %g %g %g, %g %g %g", i, e.x[0], e.x[1], e.x[2], e.d[0], e.d[1], e.d[2]);
    }
}

/* --- the profile --- */

Test(row_profile, counts_rows_while_they_cost_alike)
{
    struct cox__row_profile p;
    cox__row_profile_init(&p);
    cr_assert_float_eq(cox__row_profile_work(&p, 1080, 0, 1080), 1080, 1e-6);
    cr_assert_float_eq(cox__row_profile_work(&p, 1080, 200, 33), 33, 1e-6);
    for (uint32_t row = 0; row <= 1080; row += 8)
        cr_assert_eq(cox__row_profile_row(&p, 1080, row), row);
    cr_assert_eq(cox__row_profile_row(&p, 5, 1e300), 5);
    cr_assert_eq(cox__row_profile_row(&p, 5, -1e300), 0);
    cr_assert_eq(cox__row_profile_row(&p, 5, NAN), 0);
}

/* Rows 250 .. 499 of 1000 are four times as heavy; sixteen launches a frame. */
Test(row_profile, learns_where_the_heavy_rows_are_and_keeps_a_mean_of_one)
{
    struct cox__row_profile p;
    cox__row_profile_init(&p);
    double scale = 1; /* of the device's model, which takes the mean */
    for (uint32_t frame = 0; frame < 40; frame++) {
        scale *= cox__row_profile_age(&p, 1000);
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t first = i * 62, count = i < 15 ? 62 : 70;
            double truth = 0;
            for (uint32_t row = first; row < first + count; row++)
                truth += row >= 250 && row < 500 ? 4 : 1;
            struct cox__span span;
            cox__row_profile_span(&p, 1000, first, count, &span);
            if (frame == 0)
                cox__row_profile_reopen(&p, &span);
            double residual = truth / (scale * cox__row_profile_work(&p, 1000, first, count)) - 1;
            double variance = 0.0025 + cox__row_profile_variance(&p, &span);
            cox__row_profile_learn(&p, &span, residual, variance, 0);
        }
    }
    cox__row_profile_age(&p, 1000);
    double mean = 0;
    for (int i = 0; i < COX__SEGMENTS; i++)
        mean += p.cost[i] / COX__SEGMENTS;
    cr_assert_float_eq(mean, 1, 0.01);
    double heavy = cox__row_profile_work(&p, 1000, 300, 150) / 150,
           light = cox__row_profile_work(&p, 1000, 600, 300) / 300;
    cr_assert_float_eq(heavy / light, 4, 0.8, "%.2f", heavy / light);
    /* equal areas: half of the work is done at row 406 */
    cr_assert_leq(abs((int)cox__row_profile_row(&p, 1000, 500) - 406), 25);
}

Test(row_profile, survives_any_residual)
{
    static const double absurd[] = {0, 1, -1, 1e300, -1e300, INFINITY, -INFINITY, NAN, 1e-300};
    struct cox__row_profile p;
    cox__row_profile_init(&p);
    random_begin(23);
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t rows = 1 + random_index(5000);
        uint32_t first = random_index(rows);
        uint32_t count = 1 + (uint32_t)(random_unit() * (rows - first - 1));
        struct cox__span span;
        cox__row_profile_span(&p, rows, first, count, &span);
        cox__row_profile_learn(&p, &span, absurd[random_index(9)], absurd[random_index(9)], absurd[random_index(9)]);
        if (i % 7 == 0)
            cox__row_profile_reopen(&p, &span);
        if (i % 5 == 0)
            cr_assert_gt(cox__row_profile_age(&p, rows), 0);
        double work = cox__row_profile_work(&p, rows, first, count);
        cr_assert(work > 0 && isfinite(work), "launch %u: %g", i, work);
        cr_assert(cox__row_profile_variance(&p, &span) >= 0);
        cr_assert_leq(cox__row_profile_row(&p, rows, random_unit() * rows), rows);
    }
}

/* --- the share kept back --- */

static double settled_share(double sigma, double outliers, double launch)
{
    struct cox__tail_reserve reserve;
    cox__tail_reserve_init(&reserve);
    for (uint32_t frame = 0; frame < 1500; frame++) {
        double share = cox__tail_reserve_share(&reserve);
        double latest = fmax(random_jitter(sigma), random_jitter(sigma)) * (1 - share) *
                        (random_unit() < outliers ? 5 : 1);
        cox__tail_reserve_learn(&reserve, share, 1, latest, launch);
    }
    return cox__tail_reserve_share(&reserve);
}

Test(tail_reserve, grows_with_the_noise_and_with_outliers_and_shrinks_with_the_cost_of_launches)
{
    random_begin(29);
    double quiet = settled_share(0.01, 0, 0.003), usual = settled_share(0.05, 0, 0.003);
    double noisy = settled_share(0.25, 0, 0.003), outliers = settled_share(0.05, 0.02, 0.003);
    double dear = settled_share(0.05, 0.02, 0.1);
    cr_assert_leq(quiet, usual);
    cr_assert_lt(usual, noisy);
    cr_assert_lt(usual, outliers);
    cr_assert_lt(dear, outliers);
}

Test(tail_reserve, survives_any_frame)
{
    static const double absurd[] = {0, 1, -1, 1e300, INFINITY, NAN, 0.999999};
    struct cox__tail_reserve reserve;
    cox__tail_reserve_init(&reserve);
    random_begin(31);
    for (uint32_t i = 0; i < 10000; i++) {
        cox__tail_reserve_learn(&reserve, absurd[random_index(7)], absurd[random_index(7)], absurd[random_index(7)],
                                absurd[random_index(7)]);
        double share = cox__tail_reserve_share(&reserve);
        cr_assert(share > 0 && share < 1);
    }
}

/* --- the plan --- */

Test(fluid, levels_like_water)
{
    const struct cox__fluid_device two[] = {{true, 10, 1}, {true, 0, 1}, {false, 0, 100}};
    cr_assert_float_eq(cox__fluid_level(two, 3, 30), 20, 1e-9);
    cr_assert_float_eq(cox__fluid_level(two, 3, 5), 5, 1e-9); /* the first would begin too late */
    cr_assert_lt(cox__fluid_level(two + 2, 1, 5), 0);
}

static struct cox__planned_device planned(double first, double launch, double row, double tail_reserve)
{
    return (struct cox__planned_device){.in = true,
                                        .first_ns = first,
                                        .launch_ns = launch,
                                        .ns_per_row = row,
                                        .tail_reserve = tail_reserve,
                                        .suspected_change = 1};
}

Test(fluid, gives_all_at_once_where_nothing_can_be_handed_out_later)
{
    struct cox__planned_device devices[] = {planned(60e3, 12e3, 18e3, 0.1), planned(250e3, 30e3, 9e3, 0.1)};
    double pool;
    double level = cox__fluid_plan(devices, 2, 1080, 8, false, &pool);
    cr_assert_eq(pool, 0);
    cr_assert_float_eq(devices[0].work + devices[1].work, 1080, 1e-6);
    cr_assert_float_eq(devices[0].end_ns, level, 1e-3);
    cr_assert_float_eq(devices[1].end_ns, level, 1e-3);
}

Test(fluid, keeps_rows_back_from_devices_whose_launches_are_cheap_enough)
{
    struct cox__planned_device devices[] = {planned(60e3, 12e3, 18e3, 0.1), planned(250e3, 4e6, 9e3, 0.1)};
    double pool;
    double level = cox__fluid_plan(devices, 2, 1080, 8, true, &pool);
    cr_assert_gt(pool, 0);
    cr_assert_float_eq(devices[0].end_ns, 0.9 * level, 0.01 * level);
    cr_assert_float_eq(devices[1].end_ns, level, 0.01 * level); /* a further launch would cost it 4 ms */
}

Test(fluid, leaves_out_a_device_that_would_only_delay_the_frame)
{
    struct cox__planned_device devices[] = {planned(60e3, 12e3, 18e3, 0.1), planned(30e6, 30e3, 9e3, 0.1)};
    double pool;
    cox__fluid_plan(devices, 2, 1080, 8, true, &pool);
    cr_assert_eq(devices[1].work, 0);
    cr_assert_float_eq(devices[0].work, 1080, 1e-6);
    cr_assert_eq(pool, 0);
}

Test(fluid, gives_a_suspected_device_what_it_can_do_if_it_is_slow)
{
    struct cox__planned_device devices[] = {planned(60e3, 12e3, 18e3, 0.1), planned(250e3, 30e3, 9e3, 0.1)};
    double pool, suspected_pool;
    cox__fluid_plan(devices, 2, 1080, 8, true, &pool);
    double before = devices[1].work, others = devices[0].work;
    devices[1].suspected_change = 4;
    cox__fluid_plan(devices, 2, 1080, 8, true, &suspected_pool);
    cr_assert_float_eq(devices[1].work, before / 4, 1);
    cr_assert_float_eq(devices[0].work, others, 1e-6);
    cr_assert_float_eq(suspected_pool, pool + 0.75 * before, 1);
}

Test(fluid, hands_out_all_of_a_share_that_is_not_worth_another_launch)
{
    cr_assert_eq(cox__fluid_part(1e6, 1e6, 0.1, 0.5), 1);
    double part = cox__fluid_part(1e6, 1e3, 0.3, 0.5);
    cr_assert(part >= 0.5 && part < 1, "%.2f", part);
}
