/* What a policy observes of passes that share a split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "split/together.h"
#include "support/values.h"

#include <criterion/criterion.h>

static struct cox__pass_group together;

static void add(uint32_t pass, uint64_t frame, uint32_t device, uint32_t first_row, uint32_t rows, uint64_t wall_ns)
{
    cox__together_add(&together, pass,
                      &(struct cox_measurement){.frame = frame,
                                                .device = device,
                                                .first_row = first_row,
                                                .rows = rows,
                                                .wall_ns = wall_ns,
                                                .queue_ns = 1,
                                                .late_ns = 2,
                                                .kernel_ns = wall_ns / 2});
}

static bool sum(uint32_t passes, uint64_t frame, uint32_t device, struct cox_measurement *out)
{
    return cox__together_sum(&together, passes, frame, device, out);
}

Test(together, sums_what_a_device_took)
{
    struct cox_measurement out;
    add(0, 7, 1, 40, 60, 1000);
    add(0, 8, 1, 40, 60, 5); /* part of the next frame */
    add(1, 7, 1, 40, 60, 200);
    add(2, 7, 1, 40, 60, 30);
    cr_assert(sum(3, 7, 1, &out));
    ASSERT_VALUES(IS(out.frame, 7), IS(out.device, 1), IS(out.first_row, 40), IS(out.rows, 60), IS(out.wall_ns, 1230),
                  IS(out.queue_ns, 3), IS(out.late_ns, 6), IS(out.kernel_ns, 615), IS(out.flags, 0));
    cr_assert_not(sum(3, 8, 1, &out), "its passes are not over");
    cr_assert_not(sum(3, 7, 0, &out), "it had no rows");
}

Test(together, sums_bands_that_were_cut)
{
    struct cox_measurement out;
    for (uint32_t pass = 0; pass < 2; pass++) {
        add(pass, 0, 0, 0, 20, 100);
        add(pass, 0, 0, 20, 30, 150);
    }
    cr_assert(sum(2, 0, 0, &out));
    ASSERT_VALUES(IS(out.rows, 50), IS(out.wall_ns, 500));
}

Test(together, says_nothing_of_a_device_that_did_other_rows_in_a_pass)
{
    struct cox_measurement out;
    add(0, 1, 0, 0, 50, 100);
    add(1, 1, 0, 0, 30, 100);
    add(2, 1, 0, 0, 50, 100);
    cr_assert_not(sum(3, 1, 0, &out));
    add(0, 1, 1, 50, 50, 100); /* the device has no rows in pass 1 */
    add(2, 1, 1, 50, 50, 100);
    cr_assert_not(sum(3, 1, 1, &out));
    add(1, 1, 2, 0, 50, 100); /* the device has no rows in pass 0 */
    add(2, 1, 2, 0, 50, 100);
    cr_assert_not(sum(3, 1, 2, &out));
    add(0, 1, 3, 0, 50, 100); /* half of the last pass is done */
    add(1, 1, 3, 0, 20, 100);
    cr_assert_not(sum(2, 1, 3, &out));
}

Test(together, says_nothing_of_rows_that_were_done_again)
{
    struct cox_measurement out;
    const struct cox_measurement again = {
        .frame = 3, .device = 0, .rows = 50, .wall_ns = 100, .flags = COX_MEASURED_UNFINISHED};
    cox__together_add(&together, 0, &again);
    add(1, 3, 0, 0, 50, 100);
    cr_assert_not(sum(2, 3, 0, &out));
}

Test(together, forgets_what_was_before_a_beginning_anew)
{
    struct cox_measurement out;
    add(0, 3, 0, 0, 50, 100);
    add(1, 3, 0, 0, 50, 100);
    add(0, 3, 1, 50, 50, 100);
    add(1, 3, 1, 50, 50, 100);
    cox__together_begin(&together, 3);
    add(0, 3, 0, 10, 40, 7);
    add(1, 3, 0, 10, 40, 7);
    cr_assert_not(sum(2, 3, 1, &out), "it no longer has rows");
    cr_assert(sum(2, 3, 0, &out));
    ASSERT_VALUES(IS(out.rows, 40), IS(out.first_row, 10), IS(out.wall_ns, 14));
}

Test(together, tells_no_kernel_time_where_one_is_missing)
{
    struct cox_measurement out;
    struct cox_measurement bare = {.frame = 3, .device = 0, .rows = 50, .wall_ns = 100};
    for (uint32_t missing = 0; missing < 3; missing++) {
        bare.frame = 10 + missing;
        for (uint32_t pass = 0; pass < 3; pass++) {
            bare.kernel_ns = pass == missing ? 0 : 60;
            cox__together_add(&together, pass, &bare);
        }
        cr_assert(sum(3, 10 + missing, 0, &out));
        cr_assert_eq(out.kernel_ns, 0);
    }
}
