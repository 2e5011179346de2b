/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/row_set.h"
#include "support/fake_rig.h"
#include <criterion/criterion.h>
#include <string.h>

enum { ROWS = 40 };

static void expect_same(const struct cox__row_set *set, const bool *has)
{
    for (uint32_t row = 0, until; row < ROWS; row++) {
        uint32_t change = row;
        while (change < ROWS && has[change] == has[row])
            change++;
        cr_assert_eq(cox__row_set_has(set, row, ROWS, &until), has[row], "row %u", row);
        cr_assert_eq(until, change, "from row %u", row);
    }
    for (uint32_t i = 0; i < set->count; i++) {
        cr_assert_lt(set->ranges[i].first, set->ranges[i].end);
        cr_assert(i == 0 || set->ranges[i - 1].end < set->ranges[i].first);
    }
}

Test(row_set, has_what_was_added_and_not_removed)
{
    uint64_t seed = 1;
    struct cox__row_set set = {0};
    bool has[ROWS] = {false};
    for (int i = 0; i < 20000; i++) {
        const uint32_t first = (uint32_t)(rig_random(&seed) % (ROWS + 1));
        const uint32_t end = first + (uint32_t)(rig_random(&seed) % (ROWS + 1 - first) / (i % 3 + 1));
        const bool adds = rig_random(&seed) % 2;
        cr_assert(adds ? cox__row_set_add(&set, first, end) : cox__row_set_remove(&set, first, end));
        memset(has + first, adds, end - first);
        expect_same(&set, has);
    }
    cox__row_set_clear(&set);
    memset(has, 0, sizeof has);
    expect_same(&set, has);
    cox__row_set_free(&set);
}

Test(row_set, tells_no_further_than_it_is_asked)
{
    struct cox__row_set set = {0};
    uint32_t until;
    cr_assert(cox__row_set_add(&set, 10, 30));
    cr_assert(cox__row_set_has(&set, 12, 20, &until) && until == 20);
    cr_assert_not(cox__row_set_has(&set, 2, 5, &until) && until == 5);
    cr_assert(!cox__row_set_has(&set, 30, UINT32_MAX, &until) && until == UINT32_MAX);
    cox__row_set_free(&set);
}
