/* The policies that hand out rows on demand: `chunks` and `hguided`.
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
TestSuite(hguided, .init = see_three);

static void make(const char *name, uint32_t chunk_rows)
{
    begin(name, &(struct cox_policy_options){.chunk_rows = chunk_rows});
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
    make("chunks", 0);
    cr_assert_eq(grant(0, 1080), 40, "33 rows, up to the row alignment");
    ASSERT_VALUES(IS(grant(2, 24), 24), IS(grant(2, 4), 4));
    make("chunks", 100);
    cr_assert_eq(grant(0, 1080), 104);
    view.min_band_rows = 250;
    cr_assert_eq(grant(0, 1080), 256);
    make("chunks", UINT32_MAX);
    cr_assert_eq(grant(0, 1080), 1080);
}

Test(hguided, grants_follow_the_formula)
{
    make("hguided", 0);
    /* The speeds are 1 : 2 : 4. So the devices get 1/14, 2/14 and 4/14 of the remaining rows, rounded up to the row
     * alignment. */
    ASSERT_VALUES(IS(grant(0, 1080), 80), IS(grant(1, 1080), 160), IS(grant(2, 1080), 312), IS(grant(2, 28), 8),
                  IS(grant(0, 8), 8));
}

Test(hguided, powers_are_those_of_the_beginning)
{
    make("hguided", 0);
    devices[2].single_device_ns = 50000;
    cr_assert_eq(grant(2, 1080), 312);
    devices[2].usable = false; /* an unusable device does not count */
    cr_assert_eq(grant(1, 1080), 360);
    see(1080, 8, 3);
    devices[0].hint = 2;
    make("hguided", 0);
    cr_assert_eq(grant(0, 1080), 272, "hints are used without a warm-up");
}

static const char *const names[] = {"chunks", "hguided"};

Test(chunks, and_hguided_hand_out_the_whole_frame_or_split_it)
{
    static const struct {
        bool pool;
        uint32_t rows;
    } frames[] = {{true, 1080}, {false, 1080}, {false, 1077}};
    for (int i = 0; i < 6; i++) {
        view.pool = frames[i / 2].pool;
        view.rows = frames[i / 2].rows;
        begin(names[i % 2], NULL);
        split_frame();
        ASSERT_VALUES(IS(split.pool_rows, view.pool ? view.rows : 0), IS(split.band_count, view.pool ? 0 : 3));
        cr_assert(view.pool || (rows_of(2) > rows_of(1) && rows_of(1) > rows_of(0)), "rows do not follow speeds");
    }
}

Test(chunks, and_hguided_do_nothing_without_a_device)
{
    for (int d = 0; d < 3; d++)
        devices[d].usable = false;
    for (int i = 0; i < 2; i++) {
        begin(names[i], NULL);
        cr_assert_eq(policy->split(state, &view, &split), COX_E_NO_DEVICE);
    }
}
