/* `chunks`, which hands out rows on demand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/values.h"
#include "unit/sched/policy_at_work.h"

static const struct cox_progress progress[3];

/* Three devices, each twice as fast as the previous one. */
static void see_three(void)
{
    see(1080, 8, 3);
    view.pool = true;
    for (uint32_t d = 0; d < 3; d++)
        devices[d].single_device_ns = 20000 >> d;
}

TestSuite(chunks, .init = see_three);

static void make(uint32_t chunk_rows)
{
    begin("chunks", &(struct cox_policy_options){.chunk_rows = chunk_rows});
    (void)policy->split(state, &view, &split);
}

static uint32_t grant(uint32_t device, uint32_t rows)
{
    struct cox_chunk_request offer = {.device = device, .first_row = 1080 - rows, .rows = rows, .progress = progress};
    struct cox_chunk out = {0};
    policy->assign(state, &view, &offer, &out);
    cr_assert_gt(out.rows, 0);
    cr_assert_leq(out.rows, rows);
    cr_assert(out.rows % 8 == 0 || out.rows == rows);
    return out.rows;
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
    static const struct {
        bool pool;
        uint32_t rows;
    } frames[] = {{true, 1080}, {false, 1080}, {false, 1077}};
    for (int i = 0; i < 3; i++) {
        view.pool = frames[i].pool;
        view.rows = frames[i].rows;
        begin("chunks", NULL);
        split_frame();
        ASSERT_VALUES(IS(split.pool_rows, view.pool ? view.rows : 0), IS(split.band_count, view.pool ? 0 : 3));
        cr_assert(view.pool || (rows_of(2) > rows_of(1) && rows_of(1) > rows_of(0)), "rows do not follow speeds");
    }
}

Test(chunks, do_nothing_without_a_device)
{
    for (int d = 0; d < 3; d++)
        devices[d].usable = false;
    begin("chunks", NULL);
    cr_assert_eq(policy->split(state, &view, &split), COX_E_NO_DEVICE);
}
