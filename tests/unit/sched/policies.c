/* The built-in policies: the list, what all of them promise, and what `static` and `single` do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/values.h"
#include "unit/sched/policy_promises.h"
#include <math.h>

static const char *const policy_names[] = {"adaptive", "chunks", "static", "single"};
enum { POLICY_COUNT = sizeof policy_names / sizeof policy_names[0] };

/* --- the list --- */

Test(policies, are_listed_in_order_and_found_by_name)
{
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        const struct cox_policy *found = cox_policy_at(i);
        cr_assert_not_null(found);
        cr_assert_str_eq(found->name, policy_names[i]);
        cr_assert_eq(cox_policy_find(policy_names[i]), found);
    }
    cr_assert_null(cox_policy_at(POLICY_COUNT));
    cr_assert_null(cox_policy_at(UINT32_MAX));
    cr_assert_null(cox_policy_find("Static"));
    cr_assert_null(cox_policy_find(""));
    cr_assert_eq(cox_policy_find(NULL), cox_policy_at(0));
}

/* --- guarantees of every policy --- */

Test(policies, always_give_a_split_under_random_views_lag_and_absurd_measurements)
{
    for (uint32_t p = 0; p < POLICY_COUNT; p++)
        check_splits(cox_policy_at(p), 1000 + p);
}

Test(policies, refuse_to_split_over_no_device)
{
    for (uint32_t p = 0; p < POLICY_COUNT; p++)
        check_no_device(cox_policy_at(p));
}

/* --- static, single --- */

/* Set a split by ratios. */
static void split_by(const double *ratios, uint32_t count)
{
    begin("static", &(struct cox_policy_options){.ratios = ratios, .ratio_count = count});
    split_frame();
}

Test(static_policy, keeps_the_given_ratios_to_the_nearest_granule)
{
    see(1080, 8, 4);
    split_by((const double[]){0.1, 0.0, 0.333, 0.567}, 4);
    for (uint32_t frame = 0; frame < 5; frame++, split_frame()) /* halfway between is 108: 0.433 * 1080 = 467.6 */
        ASSERT_VALUES(IS(split.reason, COX_REASON_GIVEN), IS(rows_of(0), 112), IS(rows_of(1), 0),
                      IS(rows_of(2), 464 - 112), IS(rows_of(3), 1080 - 464));
    begin("static", NULL);
    split_frame();
    for (uint32_t d = 0; d < 4; d++)
        cr_assert_leq(abs((int)rows_of(d) - 270), 8);
}

Test(static_policy, gives_the_share_of_a_device_that_left_to_the_others_in_proportion)
{
    see(1000, 1, 3);
    devices[1].usable = false;
    split_by((const double[]){0.2, 0.5, 0.3}, 3);
    ASSERT_VALUES(IS(split.reason, COX_REASON_DEVICES), IS(rows_of(0), 400), IS(rows_of(2), 600));
    split_by((const double[]){0, 1, 0}, 3);
    cr_assert_eq(rows_of(0), 500);
}

Test(static_policy, refuses_ratios_that_are_not_shares_of_one)
{
    static const struct {
        double ratios[3];
        uint32_t count;
        cox_status status;
    } cases[] = {{{0.5, 0.5, 0.5}, 3, COX_E_INVALID},       {{0.3, 0.3, 0.3}, 3, COX_E_INVALID},
                 {{1.2, -0.2, 0}, 3, COX_E_INVALID},        {{NAN, 0.5, 0.5}, 3, COX_E_INVALID},
                 {{INFINITY, 0, 0}, 3, COX_E_INVALID},      {{0, 0, 0}, 3, COX_E_INVALID},
                 {{0.333, 0.333, 0.333}, 2, COX_E_INVALID}, {{0.333, 0.333, 0.333}, 3, COX_OK}};
    see(100, 1, 3);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct cox_policy_options options = {.ratios = cases[i].ratios, .ratio_count = cases[i].count};
        char memory[1024] = {0};
        cr_assert_eq(cox_policy_find("static")->init(memory, &view, &options), cases[i].status, "case %u", i);
    }
}

Test(single, uses_the_device_asked_for_or_the_fastest_one_and_a_substitute_meanwhile)
{
    see(100, 16, 3);
    devices[0] = (struct cox_sched_device){true, 9, 3000};
    devices[1].single_device_ns = 1000;
    devices[2].single_device_ns = 2000;
    begin("single", NULL);
    split_frame();
    ASSERT_VALUES(IS(rows_of(1), 100), IS(split.reason, COX_REASON_SINGLE), IS(split.predicted_ns, 1000));
    devices[1].usable = false;
    split_frame();
    cr_assert_eq(rows_of(2), 100);
    devices[2].single_device_ns = 0; /* one device was not measured, so hints are used */
    split_frame();
    cr_assert_eq(rows_of(0), 100);

    devices[1].usable = true;
    begin("single", &(struct cox_policy_options){.device = 3});
    split_frame();
    cr_assert_eq(rows_of(2), 100);
    devices[2].usable = false;
    split_frame();
    ASSERT_VALUES(IS(rows_of(2), 0), IS(split.reason, COX_REASON_DEVICES));
    devices[2].usable = true;
    split_frame();
    cr_assert_eq(rows_of(2), 100);

    char memory[256] = {0};
    cr_assert_eq(policy->init(memory, &view, &(struct cox_policy_options){.device = 4}), COX_E_INVALID);
}
