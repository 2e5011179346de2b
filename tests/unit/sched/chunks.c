/* `chunks`, which hands out rows on demand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "unit/sched/pool_policy.h"

TestSuite(chunks, .init = see_three);

static void make(uint32_t chunk_rows)
{
    make_pool(cox_policy_find("chunks"), &(struct cox_policy_options){.chunk_rows = chunk_rows});
}

Test(chunks, are_a_32nd_of_the_frame_or_as_many_rows_as_wanted)
{
    make(0);
    cr_assert_eq(grant(0, 1080), 40, "33 rows, up to the row alignment");
    ASSERT_VALUES(IS(grant(2, 24), 24), IS(grant(2, 4), 4));
    make(100);
    cr_assert_eq(grant(0, 1080), 104);
    view.min_band_rows = 250;
    cr_assert_eq(grant(0, 1080), 256);
    make(UINT32_MAX);
    cr_assert_eq(grant(0, 1080), 1080);
}

Test(chunks, hand_out_the_whole_frame_or_split_it)
{
    check_pool_or_split(cox_policy_find("chunks"));
}

Test(chunks, do_nothing_without_a_device)
{
    check_pool_without_device(cox_policy_find("chunks"));
}
