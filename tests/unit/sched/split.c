/* What makes a split valid, and the messages about invalid ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <string.h>

static const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}, {false, 1, 0}};
static const struct cox_sched_view view = {.rows = 100, .row_alignment = 8, .device_count = 3, .devices = devices};

static void refuse_in(const struct cox_sched_view *in, const struct cox_split *split, const char *about)
{
    char why[200];
    memset(why, '#', sizeof why);
    cr_assert_eq(cox_split_check(split, in, why, sizeof why), COX_E_POLICY, "accepted, but %s", about);
    cr_assert_not_null(memchr(why, '\0', sizeof why));
    cr_assert_not_null(strstr(why, about), "refused with: %s", why);
    cr_assert_eq(cox_split_check(split, in, NULL, 0), COX_E_POLICY);
    char tiny[4];
    cr_assert_eq(cox_split_check(split, in, tiny, sizeof tiny), COX_E_POLICY);
    cr_assert_eq(strlen(tiny), 3);
}

static void refuse(const struct cox_split *split, const char *about)
{
    refuse_in(&view, split, about);
}

static void accept_in(const struct cox_sched_view *in, const struct cox_split *split)
{
    char why[200] = "#";
    cr_assert_eq(cox_split_check(split, in, why, sizeof why), COX_OK, "%s", why);
    cr_assert_str_empty(why);
}

struct bad {
    struct cox_split split;
    const char *about;
};

Test(split_check, accepts_one_band_and_several_for_one_device)
{
    accept_in(&view, &(struct cox_split){.band_count = 1, .bands = {{1, 0, 100}}});
    accept_in(&view, &(struct cox_split){.band_count = 4, .bands = {{1, 0, 8}, {0, 8, 40}, {1, 48, 48}, {0, 96, 4}}});
}

Test(split_check, accepts_the_most_bands_and_refuses_one_more)
{
    struct cox_sched_view fine = view;
    fine.rows = COX_BANDS_MAX;
    fine.row_alignment = 1;
    struct cox_split split = {.band_count = COX_BANDS_MAX};
    for (uint32_t i = 0; i < COX_BANDS_MAX; i++)
        split.bands[i] = (struct cox_band){i % 2, i, 1};
    cr_assert_eq(cox_split_check(&split, &fine, NULL, 0), COX_OK);
    split.band_count++;
    refuse(&split, "129 bands");
}

Test(split_check, refuses_bands_that_are_none_overlap_or_leave_gaps)
{
    static const struct bad bad[] = {
        {{.band_count = 0}, "no band"},
        {{.band_count = 2, .bands = {{0, 0, 100}, {1, 96, 0}}}, "band 1 is empty"},
        {{.band_count = 1, .bands = {{3, 0, 100}}}, "band 0 is for device 3, but there are 3"},
        {{.band_count = 1, .bands = {{UINT32_MAX, 0, 100}}}, "band 0"},
        {{.band_count = 2, .bands = {{0, 0, 64}, {2, 64, 36}}}, "band 1 is for device 2, which"},
        {{.band_count = 2, .bands = {{0, 0, 64}, {1, 56, 44}}}, "band 1 begins at row 56"},
        {{.band_count = 2, .bands = {{0, 0, 48}, {1, 56, 44}}}, "rows 48 to 55 before band 1"},
        {{.band_count = 2, .bands = {{0, 56, 44}, {1, 0, 56}}}, "rows 0 to 55 before band 0"},
        {{.band_count = 2, .bands = {{0, 0, 56}, {1, 0, 100}}}, "band 1 begins at row 0"},
        {{.band_count = 2, .bands = {{0, 0, 50}, {1, 50, 50}}}, "multiple of the row alignment 8"},
        {{.band_count = 1, .bands = {{0, 0, 101}}}, "ends at row 101, but the frame has 100"},
        {{.band_count = 1, .bands = {{0, 0, 96}}}, "ends at row 96, but the frame has 100"},
        {{.band_count = 2, .bands = {{0, 0, 8}, {1, 8, UINT32_MAX}}}, "band 1 ends at row"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuse(&bad[i].split, bad[i].about);
}

Test(split_check, accepts_a_pool_before_between_and_after_bands_and_alone)
{
    static const struct cox_split good[] = {
        {.band_count = 1, .bands = {{0, 16, 84}}, .pool_first_row = 0, .pool_rows = 16},
        {.band_count = 2, .bands = {{0, 0, 16}, {1, 48, 52}}, .pool_first_row = 16, .pool_rows = 32},
        {.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 80, .pool_rows = 20},
        {.band_count = 0, .pool_first_row = 0, .pool_rows = 100},
    };
    struct cox_sched_view pool = view;
    pool.pool = true;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        accept_in(&pool, &good[i]);
        refuse(&good[i], "the view does not allow");
    }
}

Test(split_check, refuses_a_pool_that_overlaps_a_band_leaves_a_gap_or_is_misaligned)
{
    static const struct bad bad[] = {
        {{.band_count = 1, .bands = {{0, 0, 100}}, .pool_first_row = 8, .pool_rows = 16}, "the pool begins at row 8"},
        {{.band_count = 1, .bands = {{0, 0, 100}}, .pool_first_row = 0, .pool_rows = 16}, "band 0"},
        {{.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 72, .pool_rows = 28}, "the pool begins at row 72"},
        {{.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 88, .pool_rows = 12}, "the pool begins at row 88"},
        {{.band_count = 2, .bands = {{0, 0, 16}, {1, 40, 60}}, .pool_first_row = 16, .pool_rows = 16}, "in no band"},
        {{.band_count = 2, .bands = {{0, 0, 16}, {1, 16, 84}}, .pool_first_row = 16, .pool_rows = 16}, "band 1"},
        {{.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 80, .pool_rows = 12}, "the pool ends at row 92"},
        {{.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 80, .pool_rows = 24}, "the pool ends at row 104"},
        {{.band_count = 1, .bands = {{0, 0, 80}}, .pool_first_row = 80, .pool_rows = UINT32_MAX}, "the pool ends"},
        {{.band_count = 1, .bands = {{0, 4, 96}}, .pool_first_row = 0, .pool_rows = 4}, "the pool ends at row 4"},
        {{.band_count = 0, .pool_first_row = 4, .pool_rows = 96}, "the pool begins at row 4"},
        {{.band_count = 0, .pool_first_row = 0, .pool_rows = 0}, "no band"},
        {{.band_count = 0, .pool_first_row = 8, .pool_rows = 92}, "the pool begins at row 8"},
    };
    struct cox_sched_view pool = view;
    pool.pool = true;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuse_in(&pool, &bad[i].split, bad[i].about);
}

Test(split_check, a_shadow_is_for_a_usable_device_without_a_band)
{
    static const struct {
        struct cox_band shadow;
        const char *about; /* NULL: accepted */
    } shadows[] = {{{1, 16, 8}, NULL},
                   {{1, 96, 4}, NULL},
                   {{0, 16, 8}, "the shadow's device 0 has band 0"},
                   {{2, 16, 8}, "not usable"},
                   {{3, 16, 8}, "device 3"},
                   {{1, 12, 8}, "the shadow begins"},
                   {{1, 16, 7}, "the shadow ends"},
                   {{1, 96, 8}, "the shadow ends"}};
    struct cox_split split = {.band_count = 1, .bands = {{0, 0, 100}}, .shadow = {1, 16, 8}};
    struct cox_sched_view shadow = view;
    refuse(&split, "the view does not allow");
    shadow.shadow = true;
    for (size_t i = 0; i < sizeof shadows / sizeof shadows[0]; i++) {
        split.shadow = shadows[i].shadow;
        if (shadows[i].about)
            refuse_in(&shadow, &split, shadows[i].about);
        else
            accept_in(&shadow, &split);
    }
}

Test(reasons, each_has_a_text_of_its_own)
{
    for (int a = COX_REASON_NONE; a <= COX_REASON_PROBE; a++)
        for (int b = COX_REASON_NONE; b <= COX_REASON_PROBE; b++)
            cr_assert_eq(strcmp(cox_reason_text((enum cox_reason)a), cox_reason_text((enum cox_reason)b)) == 0, a == b);
    cr_assert_str_eq(cox_reason_text(COX_REASON_SINGLE), "one device by request");
    cr_assert_str_eq(cox_reason_text((enum cox_reason)999), "unknown reason");
    cr_assert_str_eq(cox_reason_text((enum cox_reason) - 1), "unknown reason");
}
