/* The function that minimises the frame time, compared with exhaustive search, and its contract.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_jitter.h"
#include "support/values.h"
#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <math.h>

struct instance {
    uint32_t rows, row_alignment, min_band, count;
    struct cox_cost costs[COX_DEVICES_MAX];
};

static double time_of(const struct cox_cost *cost, uint32_t rows)
{
    return rows == 0 ? 0 : cost->fixed_ns + cost->ns_per_row * (double)rows;
}

/* The rules, written independently of the implementation. */
static bool allowed(const struct instance *in, const uint32_t *rows)
{
    uint32_t least = in->min_band ? in->min_band : in->row_alignment;
    uint64_t sum = 0;
    uint32_t off_row_alignment = 0;
    for (uint32_t d = 0; d < in->count; d++) {
        sum += rows[d];
        if (rows[d] > 0 && !in->costs[d].usable)
            return false;
        if (rows[d] > 0 && rows[d] < least && rows[d] != in->rows)
            return false;
        off_row_alignment += rows[d] % in->row_alignment != 0;
    }
    return sum == in->rows && off_row_alignment <= 1;
}

static double frame_time(const struct instance *in, const uint32_t *rows)
{
    double ns = 0;
    for (uint32_t d = 0; d < in->count; d++)
        ns = fmax(ns, time_of(&in->costs[d], rows[d]));
    return ns;
}

/* Try every way to hand out `left` rows to the devices from `device` on. */
static void exhaust(const struct instance *in, uint32_t device, uint32_t left, uint32_t *rows, double *best)
{
    if (device + 1 == in->count) {
        rows[device] = left;
        if (allowed(in, rows))
            *best = fmin(*best, frame_time(in, rows));
        return;
    }
    uint32_t rest = in->rows % in->row_alignment;
    for (uint32_t n = 0; n <= left; n++) {
        if (n % in->row_alignment != 0 && n % in->row_alignment != rest)
            continue;
        rows[device] = n;
        exhaust(in, device + 1, left - n, rows, best);
    }
}

static struct instance random_instance(void)
{
    static const uint32_t row_units[] = {1, 1, 2, 3, 4, 5, 8};
    struct instance in = {.row_alignment = row_units[random_index(7)], .count = 1 + random_index(4)};
    uint32_t most = in.row_alignment == 1 ? (in.count == 4 ? 14 : 24) : 6 * in.row_alignment + in.row_alignment / 2;
    in.rows = 1 + random_index(most);
    if (random_index(2))
        in.min_band = 1 + random_index(in.rows + 3);
    bool whole_numbers = random_index(2); /* whole numbers produce ties */
    for (uint32_t d = 0; d < in.count; d++) {
        struct cox_cost *cost = &in.costs[d];
        cost->usable = random_index(8) != 0;
        cost->fixed_ns = whole_numbers ? random_index(20) : 40 * random_unit() * random_unit();
        cost->ns_per_row = whole_numbers ? 1 + random_index(6) : 0.1 + 5 * random_unit();
        if (random_index(10) == 0)
            cost->fixed_ns *= 20;
    }
    return in;
}

Test(waterfill, finds_the_least_frame_time_of_all_splits_on_20000_random_instances)
{
    random_begin(20261120);
    uint32_t without_device = 0, dropped = 0, bound = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        struct instance in = random_instance();
        uint32_t rows[COX_DEVICES_MAX], any[COX_DEVICES_MAX] = {0};
        double got = cox_waterfill(in.rows, in.row_alignment, in.min_band, in.costs, in.count, rows);
        double best = HUGE_VAL;
        exhaust(&in, 0, in.rows, any, &best);
        if (isinf(best)) {
            cr_assert(got < 0, "instance %u has no solution", i);
            without_device++;
            continue;
        }
        cr_assert(allowed(&in, rows), "instance %u: not a split: rows %u row alignment %u min %u -> %u %u %u %u", i,
                  in.rows, in.row_alignment, in.min_band, rows[0], rows[1], rows[2], rows[3]);
        cr_assert_eq(got, frame_time(&in, rows), "instance %u: returns %.17g for a split of %.17g", i, got,
                     frame_time(&in, rows));
        cr_assert_leq(got, best * (1 + 1e-13), "instance %u: %.17g instead of %.17g (rows %u row alignment %u min %u)",
                      i, got, best, in.rows, in.row_alignment, in.min_band);
        uint32_t zero = 0;
        for (uint32_t d = 0; d < in.count; d++)
            zero += in.costs[d].usable && rows[d] == 0;
        dropped += zero > 0;
        bound += in.min_band > in.row_alignment;
    }
    /* The random instances reach the cases that matter. */
    cr_assert_gt(without_device, 200);
    cr_assert_gt(dropped, 2000);
    cr_assert_gt(bound, 4000);
}

static struct instance large_instance(uint32_t min_band)
{
    struct instance in = {
        .rows = 4320 + random_index(40), .row_alignment = 1 + random_index(16), .count = COX_DEVICES_MAX};
    in.min_band = min_band;
    for (uint32_t d = 0; d < in.count; d++)
        in.costs[d] = (struct cox_cost){.usable = random_index(10) != 0,
                                        .fixed_ns = 2e6 * random_unit() * random_unit(),
                                        .ns_per_row = 3e3 + 4e4 * random_unit()};
    return in;
}

Test(waterfill, no_granule_can_move_to_an_earlier_end_with_32_devices)
{
    random_begin(7);
    for (uint32_t i = 0; i < 300; i++) {
        struct instance in = large_instance(0);
        uint32_t rows[COX_DEVICES_MAX];
        double ns = cox_waterfill(in.rows, in.row_alignment, 0, in.costs, in.count, rows);
        cr_assert(allowed(&in, rows));
        cr_assert_eq(ns, frame_time(&in, rows));
        double level = 0; /* rows that all devices finish by ns without rounding: at least the frame's */
        for (uint32_t d = 0; d < in.count; d++) {
            if (!in.costs[d].usable)
                continue;
            level += fmax(0, (ns - in.costs[d].fixed_ns) / in.costs[d].ns_per_row);
            if (rows[d] < in.row_alignment || time_of(&in.costs[d], rows[d]) < ns)
                continue;
            for (uint32_t to = 0; to < in.count; to++)
                if (to != d && in.costs[to].usable)
                    cr_assert_geq(time_of(&in.costs[to], rows[to] + in.row_alignment), ns);
        }
        cr_assert_geq(level, in.rows - 1e-6);
    }
}

Test(waterfill, a_minimum_band_binds_with_32_devices_too)
{
    random_begin(11);
    for (uint32_t i = 0; i < 60; i++) {
        struct instance in = large_instance(200 + random_index(1200));
        uint32_t rows[COX_DEVICES_MAX], free_rows[COX_DEVICES_MAX];
        double ns = cox_waterfill(in.rows, in.row_alignment, in.min_band, in.costs, in.count, rows);
        double relaxed = cox_waterfill(in.rows, in.row_alignment, 0, in.costs, in.count, free_rows);
        cr_assert(allowed(&in, rows));
        cr_assert_eq(ns, frame_time(&in, rows));
        cr_assert_geq(ns, relaxed);
    }
}

Test(waterfill, leaves_out_a_device_whose_fixed_cost_exceeds_its_gain)
{
    const struct cox_cost costs[] = {{true, 60e3, 18e3}, {true, 250e3, 9e3}, {true, 9e6, 4.5e3}};
    uint32_t rows[3];
    double ns = cox_waterfill(1080, 8, 0, costs, 3, rows);
    cr_assert_eq(rows[2], 0);
    cr_assert_gt(rows[0], 0);
    cr_assert_eq(rows[0] + rows[1], 1080);
    cr_assert_lt(ns, 9e6);
}

Test(waterfill, gives_a_frame_smaller_than_the_granule_to_the_fastest_device)
{
    const struct cox_cost costs[] = {{true, 100, 10}, {true, 0, 11}, {false, 0, 1}};
    uint32_t rows[3];
    cr_assert_eq(cox_waterfill(5, 16, 0, costs, 3, rows), 55);
    ASSERT_VALUES(IS(rows[1], 5), IS(rows[0] + rows[2], 0));
}

Test(waterfill, survives_the_largest_frame_and_extreme_costs)
{
    uint32_t rows[3];
    const struct cox_cost wide[] = {{true, 0, 1e-6}, {true, 1e18, 1e20}, {true, 5, 1e-6}};
    cr_assert_geq(cox_waterfill(UINT32_MAX, 1, 0, wide, 3, rows), 0);
    ASSERT_VALUES(IS((uint64_t)rows[0] + rows[1] + rows[2], UINT32_MAX), IS(rows[1], 0));
    const struct cox_cost same[] = {{true, 0, 1}, {true, 0, 1}, {true, 0, 1}};
    cr_assert_eq(cox_waterfill(UINT32_MAX, 1, 0, same, 3, rows), UINT32_MAX / 3);
    cr_assert_geq(cox_waterfill(UINT32_MAX, UINT32_MAX, UINT32_MAX, same, 3, rows), 0);
}

Test(waterfill, refuses_what_is_out_of_range_and_leaves_zeros)
{
    const struct cox_cost good[] = {{true, 0, 1}, {true, 0, 1}};
    static const struct cox_cost bad[] = {
        {true, -1, 1},  {true, NAN, 1},      {true, INFINITY, 1},  {true, 0, 0},          {true, 0, -1},
        {true, 0, NAN}, {true, 0, INFINITY}, {true, 1e300, 1e308}, {true, 1e200, 1e-200}, {true, 0, 1e-300}};
    uint32_t rows[2] = {7, 7};
    cr_assert_lt(cox_waterfill(0, 1, 0, good, 2, rows), 0);
    cr_assert_lt(cox_waterfill(10, 0, 0, good, 2, rows), 0);
    cr_assert_lt(cox_waterfill(10, 1, 0, good, 0, rows), 0);
    cr_assert_lt(cox_waterfill(10, 1, 0, good, COX_DEVICES_MAX + 1, rows), 0);
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cox_cost costs[] = {good[0], bad[i]};
        rows[0] = rows[1] = 7;
        cr_assert_lt(cox_waterfill(10, 1, 0, costs, 2, rows), 0, "cost %u is accepted", i);
        cr_assert_eq(rows[0] + rows[1], 0);
        costs[1].usable = false; /* an unusable device's costs do not matter */
        cr_assert_eq(cox_waterfill(10, 1, 0, costs, 2, rows), 10);
    }
    const struct cox_cost gone[] = {{false, 0, 1}, {false, 0, 1}};
    cr_assert_lt(cox_waterfill(10, 1, 0, gone, 2, rows), 0);
}
