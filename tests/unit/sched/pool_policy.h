/* Tests of policies that hand out rows on demand, of the library or not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_POOL_POLICY_H
#define COX_TESTS_POOL_POLICY_H

#include "support/values.h"
#include "unit/sched/policy_at_work.h"

static const struct cox_progress progress[3];

/* Three devices, each twice as fast as the previous one. */
static inline void see_three(void)
{
    see(1080, 8, 3);
    view.pool = true;
    for (uint32_t d = 0; d < 3; d++)
        devices[d].single_device_ns = 20000 >> d;
}

/* Begin with the policy and let it split the frame. */
static inline void make_pool(const struct cox_policy *given, const struct cox_policy_options *options)
{
    begin_policy(given, options);
    (void)policy->split(state, &view, &split);
}

/* The rows that the device gets when `rows` are left in the pool. Checks that they are valid. */
static inline uint32_t grant(uint32_t device, uint32_t rows)
{
    struct cox_chunk_request offer = {.device = device, .first_row = 1080 - rows, .rows = rows, .progress = progress};
    struct cox_chunk out = {0};
    policy->assign(state, &view, &offer, &out);
    cr_assert_gt(out.rows, 0);
    cr_assert_leq(out.rows, rows);
    cr_assert(out.rows % 8 == 0 || out.rows == rows);
    return out.rows;
}

/* With a pool all rows are in it. Without one the frame is split by the speeds. */
static inline void check_pool_or_split(const struct cox_policy *given)
{
    static const struct {
        bool pool;
        uint32_t rows;
    } frames[] = {{true, 1080}, {false, 1080}, {false, 1077}};
    for (int i = 0; i < 3; i++) {
        view.pool = frames[i].pool;
        view.rows = frames[i].rows;
        begin_policy(given, NULL);
        split_frame();
        ASSERT_VALUES(IS(split.pool_rows, view.pool ? view.rows : 0), IS(split.band_count, view.pool ? 0 : 3));
        cr_assert(view.pool || (rows_of(2) > rows_of(1) && rows_of(1) > rows_of(0)), "rows do not follow speeds");
    }
}

static inline void check_pool_without_device(const struct cox_policy *given)
{
    for (int d = 0; d < 3; d++)
        devices[d].usable = false;
    begin_policy(given, NULL);
    cr_assert_eq(policy->split(state, &view, &split), COX_E_NO_DEVICE);
}

#endif
