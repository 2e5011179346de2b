/* The peers that hand out rows on demand: `chunks` and `hguided`.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct cox_sched_device devices[] = {{true, 1, 20000}, {true, 1, 10000}, {true, 1, 5000}};
static struct cox_sched_view view = {.rows = 1080, .granule = 8, .device_count = 3, .devices = devices, .pool = true};
static const struct cox_progress progress[3];

static void *make(const struct cox_policy *policy, const struct cox_policy_options *options)
{
    void *state = calloc(1, policy->state_bytes(view.device_count));
    cr_assert_not_null(state);
    cr_assert_eq(policy->init(state, &view, options), COX_OK);
    struct cox_split split = {0};
    (void)policy->split(state, &view, &split);
    return state;
}

static uint32_t grant(const struct cox_policy *policy, void *state, uint32_t device, uint32_t rows)
{
    struct cox_offer offer = {.device = device, .first_row = 1080 - rows, .rows = rows, .progress = progress};
    struct cox_grant out = {0};
    policy->next(state, &view, &offer, &out);
    cr_assert_gt(out.rows, 0);
    cr_assert_leq(out.rows, rows);
    cr_assert(out.rows % 8 == 0 || out.rows == rows);
    return out.rows;
}

Test(chunks, are_a_32nd_of_the_frame_or_as_many_rows_as_wanted)
{
    const struct cox_policy *policy = cox_policy_find("chunks");
    void *state = make(policy, NULL);
    cr_assert_eq(grant(policy, state, 0, 1080), 40, "33 rows, up to the granule");
    cr_assert_eq(grant(policy, state, 2, 24), 24);
    cr_assert_eq(grant(policy, state, 2, 4), 4);
    free(state);
    state = make(policy, &(struct cox_policy_options){.chunk_rows = 100});
    cr_assert_eq(grant(policy, state, 0, 1080), 104);
    view.min_band_rows = 250;
    cr_assert_eq(grant(policy, state, 0, 1080), 256);
    free(state);
    state = make(policy, &(struct cox_policy_options){.chunk_rows = UINT32_MAX});
    cr_assert_eq(grant(policy, state, 0, 1080), 1080);
    free(state);
}

Test(hguided, grants_follow_the_formula)
{
    const struct cox_policy *policy = cox_policy_find("hguided");
    void *state = make(policy, NULL);
    /* Speeds 1 : 2 : 4, so 1/14, 2/14 and 4/14 of what remains, up to the granule. */
    cr_assert_eq(grant(policy, state, 0, 1080), 80);
    cr_assert_eq(grant(policy, state, 1, 1080), 160);
    cr_assert_eq(grant(policy, state, 2, 1080), 312);
    cr_assert_eq(grant(policy, state, 2, 28), 8);
    cr_assert_eq(grant(policy, state, 0, 8), 8);
    free(state);
}

Test(hguided, powers_are_those_of_the_beginning)
{
    const struct cox_policy *policy = cox_policy_find("hguided");
    void *state = make(policy, NULL);
    devices[2].solo_ns = 50000;
    cr_assert_eq(grant(policy, state, 2, 1080), 312);
    devices[2].usable = false; /* but who is not there does not count */
    cr_assert_eq(grant(policy, state, 1, 1080), 360);
    free(state);
    devices[0].solo_ns = devices[1].solo_ns = devices[2].solo_ns = 0;
    devices[2].usable = true;
    devices[0].hint = 2;
    state = make(policy, NULL);
    cr_assert_eq(grant(policy, state, 0, 1080), 272, "hints where there is no warm-up");
    free(state);
}

static void split_both(void)
{
    static const char *const names[] = {"chunks", "hguided"};
    for (int i = 0; i < 2; i++) {
        const struct cox_policy *policy = cox_policy_find(names[i]);
        cr_assert_not_null(policy, "%s", names[i]);
        void *state = make(policy, NULL);
        struct cox_split split = {0};
        char why[160];
        cr_assert_eq(policy->split(state, &view, &split), COX_OK);
        cr_assert_eq(cox_split_check(&split, &view, why, sizeof why), COX_OK, "%s: %s", names[i], why);
        cr_assert_eq(split.pool_rows, view.pool ? view.rows : 0);
        cr_assert_eq(split.band_count, view.pool ? 0 : 3);
        uint32_t rows[3] = {0};
        for (uint32_t b = 0; b < split.band_count; b++)
            rows[split.bands[b].device] = split.bands[b].rows;
        if (!view.pool)
            cr_assert(rows[2] > rows[1] && rows[1] > rows[0], "by the speeds of warm-up");
        free(state);
    }
}

Test(chunks, and_hguided_hand_out_the_whole_frame_or_split_it)
{
    split_both();
    view.pool = false;
    split_both();
    view.rows = 1077;
    split_both();
}

Test(chunks, and_hguided_do_nothing_without_a_device)
{
    for (int d = 0; d < 3; d++)
        devices[d].usable = false;
    const struct cox_policy *policies[] = {cox_policy_find("chunks"), cox_policy_find("hguided")};
    for (int i = 0; i < 2; i++) {
        void *state = make(policies[i], NULL);
        struct cox_split split = {0};
        cr_assert_eq(policies[i]->split(state, &view, &split), COX_E_NO_DEVICE);
        free(state);
    }
}
