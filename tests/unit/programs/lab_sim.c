/* The simulator: what it does to policies, and that its oracle is one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/sim/simulate.h"
#include "lab/sim/oracle.h"
#include "lab/sim/scenario.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a policy that does as told --- */

enum { FRAMES_MAX = 64, NOTES_MAX = 4096 };

static struct {
    struct cox_split splits[FRAMES_MAX]; /* of each frame; band_count and pool 0 = the one before */
    cox_status statuses[FRAMES_MAX];
    uint32_t grant; /* rows that it grants, whatever it is offered; UINT32_MAX = all */
    uint64_t grant_predicted_ns;

    uint32_t measured_count;
    struct cox_measurement measured[NOTES_MAX];
    uint64_t heard_before[FRAMES_MAX]; /* measurements heard before the split of a frame */
    bool usable[FRAMES_MAX][COX_DEVICES_MAX];
    uint64_t solo_ns[FRAMES_MAX][COX_DEVICES_MAX];
    uint32_t offers, last_offers;
    uint64_t frames_heard;
    uint64_t deadline_ns, latency_ns; /* of the latest frame */
    bool loaded;
} told;

static size_t told_bytes(uint32_t device_count)
{
    return device_count;
}

static cox_status told_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    for (uint32_t i = 0; i < view->device_count; i++) {
        cr_assert_eq(((char *)state)[i], 0);
        cr_assert_eq(view->devices[i].solo_ns, 0, "init comes before warm-up");
    }
    return COX_OK;
}

static cox_status told_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    static struct cox_split before;
    cr_assert_lt(view->frame, FRAMES_MAX);
    told.heard_before[view->frame] = told.measured_count;
    told.deadline_ns = view->deadline_ns;
    for (uint32_t d = 0; d < view->device_count; d++) {
        told.usable[view->frame][d] = view->devices[d].usable;
        told.solo_ns[view->frame][d] = view->devices[d].solo_ns;
    }
    if (told.splits[view->frame].band_count > 0 || told.splits[view->frame].pool_rows > 0)
        before = told.splits[view->frame];
    *out = before;
    for (uint32_t i = 0; i < out->band_count && i < COX_BANDS_MAX; i++) /* a band for a lost device goes to device 0 */
        if (out->bands[i].device < view->device_count && !view->devices[out->bands[i].device].usable)
            out->bands[i].device = 0;
    return told.statuses[view->frame];
}

static void told_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    if (told.measured_count < NOTES_MAX)
        told.measured[told.measured_count++] = *measurement;
}

static void told_next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer,
                      struct cox_grant *out)
{
    (void)state;
    cr_assert(view->devices[offer->device].usable);
    cr_assert_gt(offer->rows, 0);
    cr_assert_leq((uint64_t)offer->first_row + offer->rows, view->rows);
    told.offers++;
    told.last_offers += offer->last;
    *out = (struct cox_grant){.rows = told.grant == UINT32_MAX ? offer->rows : told.grant,
                              .predicted_ns = told.grant_predicted_ns};
}

static void told_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    cr_assert_eq(measurement->frame, told.frames_heard);
    cr_assert_gt(measurement->wall_ns, 0);
    cr_assert_eq(measurement->deadline_ns, told.deadline_ns);
    told.latency_ns = measurement->latency_ns;
    told.frames_heard++;
}

static void told_load_profile(void *state, const struct cox_sched_view *view, const struct cox_device_profile *profiles)
{
    (void)state;
    (void)view;
    told.loaded = profiles[1].ns_per_row == 9000;
}

static const struct cox_policy handing = {.name = "told",
                                          .state_bytes = told_bytes,
                                          .init = told_init,
                                          .split = told_split,
                                          .observe = told_observe,
                                          .observe_frame = told_frame,
                                          .load_profile = told_load_profile,
                                          .next = told_next};
static const struct cox_policy fixed = {.name = "fixed",
                                        .state_bytes = told_bytes,
                                        .init = told_init,
                                        .split = told_split,
                                        .observe = told_observe,
                                        .observe_frame = told_frame};

/* --- a world from a scenario --- */

static struct lab_scenario *scenario;
static struct lab_scenario_world *scenario_world;
static struct lab_world world;
static struct lab_sim_frame frames[FRAMES_MAX];
static char why[640];

static void set_world(const char *json)
{
    lab_scenario_free(&scenario);
    lab_scenario_world_destroy(&scenario_world);
    scenario = lab_scenario_parse(json, strlen(json), "here", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    scenario_world = lab_scenario_world_create(scenario, &world);
    cr_assert_not_null(scenario_world);
}

static cox_status simulate(const struct cox_policy *policy, const struct lab_sim_options *options, uint64_t seed)
{
    cr_assert_leq(world.frames, FRAMES_MAX);
    told.measured_count = 0;
    told.frames_heard = 0;
    told.offers = told.last_offers = 0;
    return lab_simulate(&world, policy, options, seed, frames, why, sizeof why);
}

static void run(const struct cox_policy *policy, const struct lab_sim_options *options)
{
    cr_assert_eq(simulate(policy, options, 1), COX_OK, "%s", why);
}

/* One row is one microsecond on `a`, two on `b`; no other cost. */
#define TWO \
    "\"rows\": 100, \"granule\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, {\"name\": \"b\", \"row_us\": 2}]"

static const struct cox_split halves = {.band_count = 2, .bands = {{0, 0, 50}, {1, 50, 50}}};

#define ASSERT_US(ns, us) cr_assert_float_eq((ns) / 1e3, (us), 1e-6, "%.9g us instead of %g", (ns) / 1e3, (double)(us))

static const struct cox_measurement *find(uint64_t frame, uint32_t device)
{
    for (uint32_t i = 0; i < told.measured_count; i++)
        if (told.measured[i].frame == frame && told.measured[i].device == device)
            return &told.measured[i];
    return NULL;
}

/* --- time --- */

Test(lab_sim, a_frame_takes_as_long_as_its_last_band)
{
    set_world("{" TWO ", \"frames\": 2}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 100);
    ASSERT_US(frames[1].wall_ns, 100);
    ASSERT_US(frames[0].latency_ns, 100);
    ASSERT_US(frames[0].expected_ns, 100);
    ASSERT_US(frames[0].solo_ns, 100);
    cr_assert_eq(frames[0].rows[0], 50);
    cr_assert_eq(frames[0].rows[1], 50);
    cr_assert_eq(frames[0].launches, 2);
    cr_assert_eq(frames[1].moved, 0);
    cr_assert_lt(frames[0].joules, 0);
    cr_assert_str_empty(why);
}

Test(lab_sim, fixed_launch_transfer_and_overlap_add_up)
{
    set_world("{\"rows\": 100, \"granule\": 1, \"frames\": 1, \"devices\": ["
              "{\"name\": \"a\", \"fixed_us\": 10, \"launch_us\": 3, \"row_us\": 1, \"transfer_us\": 0.5},"
              "{\"name\": \"b\", \"fixed_us\": 20, \"row_us\": 1, \"transfer_us\": 4, \"overlap\": true}]}");
    told.splits[0] = (struct cox_split){.band_count = 3, .bands = {{0, 0, 20}, {1, 20, 40}, {0, 60, 40}}};
    run(&fixed, NULL);
    cr_assert_eq(find(0, 1)->wall_ns, 20000 + 40 * 4000);
    cr_assert_eq(find(0, 1)->kernel_ns, 40 * 1000);
    cr_assert_eq(told.measured[0].wall_ns, 10000 + 20 * 1500);
    cr_assert_eq(told.measured[0].queue_ns, 0);
    cr_assert_eq(told.measured[1].wall_ns, 3000 + 40 * 1500);
    cr_assert_eq(told.measured[1].queue_ns, 40000, "the second band waits behind the first");
    cr_assert_eq(told.measured[1].kernel_ns, 40 * 1000);
}

Test(lab_sim, devices_slow_each_other_down_only_while_both_work)
{
    set_world("{\"rows\": 150, \"granule\": 1, \"frames\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 1}], \"contention\": [{\"slower\": 2}]}");
    told.splits[0] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 100}, {1, 100, 50}}};
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 150); /* both to 100 us at half the rate, then 50 rows alone */
    cr_assert_eq(find(0, 1)->wall_ns, 100000);
    cr_assert_eq(find(0, 0)->wall_ns, 150000);
    ASSERT_US(frames[0].expected_ns, 150);
}

Test(lab_sim, contention_of_a_pair_leaves_the_third_device_alone)
{
    set_world("{\"rows\": 30, \"granule\": 1, \"frames\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 1}, {\"name\": \"c\", \"row_us\": 1}], "
              "\"contention\": [{\"devices\": [\"a\", \"b\"], \"slower\": 3}]}");
    told.splits[0] = (struct cox_split){.band_count = 3, .bands = {{0, 0, 10}, {1, 10, 10}, {2, 20, 10}}};
    run(&fixed, NULL);
    cr_assert_eq(find(0, 0)->wall_ns, 30000);
    cr_assert_eq(find(0, 1)->wall_ns, 30000);
    cr_assert_eq(find(0, 2)->wall_ns, 10000);
}

Test(lab_sim, heat_follows_the_load)
{
    set_world("{\"rows\": 100, \"frames\": 60, \"devices\": ["
              "{\"name\": \"a\", \"row_us\": 1000, \"thermal\": {\"factor\": 2, \"seconds\": 0.5}}, "
              "{\"name\": \"b\", \"row_us\": 2000}]}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    told.splits[40] = (struct cox_split){.band_count = 1, .bands = {{1, 0, 100}}};
    told.splits[50] = told.splits[0];
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 100e3);
    for (int f = 1; f < 40; f++)
        cr_assert_gt(frames[f].wall_ns, frames[f - 1].wall_ns);
    cr_assert_gt(frames[39].wall_ns, 190e6);
    cr_assert_lt(frames[39].wall_ns, 200e6);
    cr_assert_lt(frames[50].wall_ns, 120e6, "idle, it cools down");
}

Test(lab_sim, energy_is_what_busy_and_idle_devices_use)
{
    set_world("{\"rows\": 100, \"frames\": 1, \"base_watts\": 5, \"devices\": ["
              "{\"name\": \"a\", \"row_us\": 1000, \"watts\": 10, \"idle_watts\": 1}, "
              "{\"name\": \"b\", \"row_us\": 2000, \"watts\": 20, \"idle_watts\": 2}]}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 100e3);
    cr_assert_float_eq(frames[0].joules, 0.1 * 5 + 0.05 * 10 + 0.05 * 1 + 0.1 * 20, 1e-9);
}

/* --- measurements --- */

Test(lab_sim, measurements_come_before_the_next_split)
{
    set_world("{" TWO ", \"frames\": 5}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    for (uint64_t f = 0; f < 5; f++)
        cr_assert_eq(told.heard_before[f], 2 * f);
    cr_assert_eq(told.frames_heard, 5);
}

Test(lab_sim, measurements_come_a_frame_later_with_two_in_flight)
{
    set_world("{" TWO ", \"frames\": 5}");
    told.splits[0] = halves;
    run(&fixed, &(struct lab_sim_options){.in_flight = 2});
    cr_assert_eq(told.heard_before[1], 0);
    for (uint64_t f = 1; f < 5; f++)
        cr_assert_eq(told.heard_before[f], 2 * (f - 1));
    cr_assert_eq(told.frames_heard, 5, "the rest comes at the end");
}

Test(lab_sim, latency_is_what_a_frame_waits_behind_others_too)
{
    set_world("{" TWO ", \"frames\": 5}");
    told.splits[0] = halves;
    run(&fixed, &(struct lab_sim_options){.in_flight = 2, .policy = {.deadline_ns = 150000}});
    ASSERT_US(frames[0].latency_ns, 100);
    for (uint64_t f = 1; f < 5; f++)
        ASSERT_US(frames[f].latency_ns, 200);
    cr_assert_eq(told.deadline_ns, 150000);
    cr_assert_eq(told.latency_ns, 200000);
}

Test(lab_sim, a_policy_is_told_what_devices_took_alone)
{
    set_world("{" TWO ", \"frames\": 2, \"changes\": [{\"from\": 1, \"rows\": 200}]}");
    told.splits[0] = halves;
    told.splits[1] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 200}}};
    run(&fixed, NULL);
    cr_assert_eq(told.solo_ns[0][0], 100000);
    cr_assert_eq(told.solo_ns[0][1], 200000);
    cr_assert_eq(told.solo_ns[1][1], 400000, "scaled to the frame's rows");
    run(&fixed, &(struct lab_sim_options){.no_solo = true});
    cr_assert_eq(told.solo_ns[0][0], 0);
}

Test(lab_sim, a_policy_is_given_the_profiles)
{
    set_world("{" TWO ", \"frames\": 1}");
    told.splits[0] = halves;
    struct cox_device_profile profiles[2] = {{.frames = 10, .ns_per_row = 18000}, {.frames = 10, .ns_per_row = 9000}};
    run(&handing, &(struct lab_sim_options){.profiles = profiles});
    cr_assert(told.loaded);
}

/* --- frames in flight --- */

static const struct lab_sim_options two_in_flight = {.in_flight = 2};

Test(lab_sim, bands_of_a_later_frame_wait_in_the_device_s_queue)
{
    set_world("{" TWO ", \"frames\": 4}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, &two_in_flight);
    ASSERT_US(frames[0].wall_ns, 100);
    ASSERT_US(frames[0].period_ns, 100);
    for (int f = 1; f < 4; f++) {
        ASSERT_US(frames[f].wall_ns, 200); /* half of it behind the frame before */
        ASSERT_US(frames[f].period_ns, 100);
        cr_assert_eq(find((uint64_t)f, 0)->queue_ns, 100000);
        cr_assert_eq(find((uint64_t)f, 0)->wall_ns, 100000);
    }
}

Test(lab_sim, frames_on_different_devices_overlap_and_are_delivered_in_order)
{
    set_world("{" TWO ", \"frames\": 4}");
    told.splits[0] = told.splits[2] = (struct cox_split){.band_count = 1, .bands = {{1, 0, 100}}};
    told.splits[1] = told.splits[3] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, &two_in_flight);
    ASSERT_US(frames[0].period_ns, 200);
    ASSERT_US(frames[1].wall_ns, 100);
    ASSERT_US(frames[1].period_ns, 0); /* done before the frame before it */
    ASSERT_US(frames[2].period_ns, 200);
    cr_assert_eq(told.heard_before[2], 2, "both are delivered when the first is done");
}

Test(lab_sim, a_pool_keeps_its_devices_from_later_frames)
{
    set_world("{" TWO ", \"frames\": 2}");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.splits[1] = halves;
    told.grant = 50;
    run(&handing, &two_in_flight);
    /* Both take 50 rows at once, and the pool is empty: bands of the second frame then wait behind. */
    ASSERT_US(frames[0].wall_ns, 100);
    cr_assert_eq(find(1, 0)->queue_ns, 50000);
    cr_assert_eq(find(1, 1)->queue_ns, 100000);
    told.grant = 25;
    run(&handing, &two_in_flight);
    /* `a` takes 25 rows three times, `b` once. Until the pool is empty, at 50 us, neither gets a band of frame 1. */
    ASSERT_US(frames[0].wall_ns, 75);
    cr_assert_eq(find(1, 0)->queue_ns, 25000);
    cr_assert_eq(find(1, 1)->queue_ns, 0);
}

Test(lab_sim, a_device_lost_with_two_frames_under_way_gives_back_both)
{
    set_world("{\"rows\": 100, \"frames\": 8, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
              "{\"name\": \"b\", \"row_us\": 100}], \"changes\": [{\"device\": \"b\", \"from\": 3, \"to\": 5, "
              "\"gone\": true}]}");
    told.splits[0] = halves;
    told.splits[0].predicted_ns = 5000000;
    run(&fixed, &two_in_flight);
    for (int f = 0; f < 8; f++)
        cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 100, "frame %d", f);
    cr_assert_eq(find(2, 1)->flags, COX_MEASURED_UNFINISHED);
    cr_assert_eq(frames[2].rows[0], 100);
    cr_assert_eq(frames[3].rows[0], 100);
    run(NULL, &two_in_flight);
    for (int f = 0; f < 8; f++)
        cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 100, "oracle, frame %d", f);
}

/* --- the engine's thread --- */

#define ALONE "\"rows\": 100, \"granule\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}]"

Test(lab_sim, a_thread_that_wakes_late_costs_each_frame_and_each_grant)
{
    set_world("{" ALONE ", \"frames\": 3, \"engine\": {\"wake_us\": 30}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    for (int f = 0; f < 3; f++) {
        ASSERT_US(frames[f].wall_ns, 100); /* to the band's end */
        ASSERT_US(frames[f].period_ns, 130);
        cr_assert_eq(find((uint64_t)f, 0)->wall_ns, 100000);
    }
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.grant = 25;
    run(&handing, NULL);
    ASSERT_US(frames[0].period_ns, 100 + 4 * 30);
    cr_assert_eq(frames[0].launches, 4);
}

Test(lab_sim, a_queue_with_two_bands_does_not_run_dry)
{
    set_world("{" ALONE ", \"frames\": 4, \"engine\": {\"wake_us\": 30}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, &two_in_flight);
    ASSERT_US(frames[0].period_ns, 130);
    for (int f = 1; f < 4; f++)
        ASSERT_US(frames[f].period_ns, 100);
    /* A third band of a frame is only given when the end of the first has been noticed. */
    set_world("{" ALONE ", \"frames\": 1, \"engine\": {\"wake_us\": 30}}");
    told.splits[0] = (struct cox_split){.band_count = 4, .bands = {{0, 0, 10}, {0, 10, 70}, {0, 80, 10}, {0, 90, 10}}};
    run(&fixed, NULL);
    /* 10 and 70 us without a gap; the end of the first is known at 40 us, and the third waits; that of the second at
     * 110, while it and the third have been done: the fourth begins then. */
    ASSERT_US(frames[0].wall_ns, 120);
}

Test(lab_sim, each_deed_of_the_thread_takes_its_time)
{
    set_world("{" TWO ", \"frames\": 1, \"engine\": {\"busy_us\": 5}}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    /* Splitting, 5 us; a band for `a`; 5 us; a band for `b`, until 110; and to notice each end. */
    cr_assert_eq(find(0, 0)->queue_ns, 5000);
    cr_assert_eq(find(0, 1)->queue_ns, 10000);
    ASSERT_US(frames[0].wall_ns, 110);
    ASSERT_US(frames[0].period_ns, 115);
}

Test(lab_sim, by_the_host_s_clock_a_band_ends_when_it_is_noticed)
{
    set_world("{" ALONE ", \"frames\": 2, \"engine\": {\"wake_us\": 30, \"clock\": \"host\"}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    cr_assert_eq(find(1, 0)->wall_ns, 130000);
    cr_assert_eq(find(1, 0)->kernel_ns, 100000);
    ASSERT_US(frames[1].wall_ns, 130);
    ASSERT_US(frames[1].period_ns, 130);
}

Test(lab_sim, the_application_hands_over_the_next_frame_late)
{
    set_world("{" ALONE ", \"frames\": 3, \"application\": {\"wake_us\": 40}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    ASSERT_US(frames[0].period_ns, 100);
    ASSERT_US(frames[1].period_ns, 140);
    run(&fixed, &two_in_flight);
    ASSERT_US(frames[2].period_ns, 100); /* there is another frame meanwhile */
}

Test(lab_sim, a_tail_beside_a_device_is_there_only_while_it_works)
{
    static const char *const text = "{" TWO ", \"frames\": 1, \"engine\": {\"wake_us\": 30, \"tail\": "
                                    "{\"probability\": 1, \"median_us\": 500, \"p99_us\": 500}, \"beside\": [\"b\"]}}";
    set_world(text);
    told.splits[0] = halves; /* `a` ends while `b` works, `b` alone */
    run(&fixed, NULL);
    ASSERT_US(frames[0].period_ns, 130); /* awake for `b`, the thread sees the end of `a`, too */
    told.splits[0] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 10}, {1, 10, 90}}};
    run(&fixed, NULL);
    ASSERT_US(frames[0].period_ns, 210);
}

Test(lab_sim, a_thread_is_held_up_only_while_a_device_works)
{
    set_world("{" TWO
              ", \"frames\": 1, \"engine\": {\"submit\": {\"probability\": 1, \"median_us\": 40, \"p99_us\": 40}, "
              "\"stall\": {\"probability\": 1, \"median_us\": 7, \"p99_us\": 7}}}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    cr_assert_eq(find(0, 0)->queue_ns, 0, "no device works yet");
    cr_assert_eq(find(0, 1)->queue_ns, 40000);
    ASSERT_US(frames[0].wall_ns, 140);
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.grant = 50;
    run(&handing, NULL);
    ASSERT_US(frames[0].wall_ns, 107);
}

Test(lab_sim, an_application_that_pauses_lets_the_frames_drain)
{
    set_world("{" TWO ", \"frames\": 6, \"application\": {\"pause_frames\": 3}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, &two_in_flight);
    const double us[6] = {100, 200, 200, 100, 200, 200};
    for (int f = 0; f < 6; f++) {
        ASSERT_US(frames[f].wall_ns, us[f]);
        ASSERT_US(frames[f].period_ns, 100);
    }
}

Test(lab_sim, an_idle_device_leaves_the_application_its_core)
{
    set_world("{" ALONE ", \"frames\": 4, \"application\": {\"wake_us\": 500, \"idle_us\": 20}}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    ASSERT_US(frames[1].period_ns, 120);
    run(&fixed, &two_in_flight);
    ASSERT_US(frames[1].period_ns, 100);
    ASSERT_US(frames[2].period_ns, 120); /* not before the device had done all that it had */
}

Test(lab_sim, a_trace_goes_round_from_where_the_seed_says)
{
    set_world("{\"rows\": 100, \"frames\": 9, \"devices\": [{\"name\": \"a\", \"row_us\": 1, \"trace\": [1, 2, 4]}]}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    for (int f = 1; f < 9; f++) {
        double ratio = frames[f].wall_ns / frames[f - 1].wall_ns;
        cr_assert(fabs(ratio - 2) < 1e-9 || fabs(ratio - 0.25) < 1e-9, "frame %d: %g", f, ratio);
    }
    ASSERT_US(frames[3].wall_ns / frames[0].wall_ns, 1e-3);
}

/* --- links and bursts --- */

Test(lab_sim, devices_share_the_rate_of_their_link)
{
#define COPYING(name) "{\"name\": \"" name "\", \"fixed_us\": 10, \"row_us\": 1, \"transfer_us\": 1}"
    static const char *const text =
        "{\"rows\": 100, \"granule\": 1, \"frames\": 1, \"devices\": [" COPYING("a") ", " COPYING("b") "]%s}";
    char json[512];
    snprintf(json, sizeof json, text, "");
    set_world(json);
    told.splits[0] = halves;
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 110);
    snprintf(json, sizeof json, text, ", \"links\": [{\"devices\": [\"a\", \"b\"]}]");
    set_world(json);
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 160); /* both copy from 60 us on, at half the rate */
    told.splits[0] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 40}, {1, 40, 60}}};
    run(&fixed, NULL);
    /* `a` copies from 50 us on, both from 70 us on: `a` until 110, with 40 us left for `b`. */
    ASSERT_US(frames[0].wall_ns, 150);
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    ASSERT_US(frames[0].wall_ns, 210);
#undef COPYING
}

Test(lab_sim, bursts_stop_devices_at_the_same_times_whatever_the_policy_does)
{
    set_world("{\"rows\": 100, \"granule\": 1, \"frames\": 60, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
              "{\"name\": \"b\", \"row_us\": 100}], \"bursts\": [{\"devices\": [\"a\"], \"every_ms\": 50, "
              "\"median_us\": 5000, \"p99_us\": 5000}]}");
    uint32_t devices;
    bool engine;
    double begin_ns[8], end_ns[8];
    world.begin_run(world.ctx, 1);
    for (int b = 0; b < 8; b++) {
        double before_ns = b > 0 ? end_ns[b - 1] : 0;
        begin_ns[b] = world.stolen(world.ctx, before_ns, &devices, &engine);
        cr_assert_eq(devices, 0);
        end_ns[b] = world.stolen(world.ctx, begin_ns[b], &devices, &engine);
        cr_assert_eq(devices, 1);
        cr_assert(!engine);
        cr_assert_float_eq(end_ns[b] - begin_ns[b], 5e6, 10);
    }
    for (uint32_t device = 0; device < 2; device++) {
        told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{device, 0, 100}}};
        run(&fixed, NULL);
        double sum_ns = 0;
        for (int f = 0; f < 60; f++)
            sum_ns += frames[f].period_ns;
        double stolen_ns = 0;
        for (int b = 0; b < 8 && device == 0; b++)
            stolen_ns += begin_ns[b] < sum_ns ? fmin(end_ns[b], sum_ns) - begin_ns[b] : 0;
        if (device == 1 || sum_ns < end_ns[7])
            cr_assert_float_eq(sum_ns, 60 * 10e6 + stolen_ns, 1, "device %u", (unsigned)device);
    }
}

/* --- rows on demand --- */

Test(lab_sim, free_devices_take_rows_from_the_pool)
{
    set_world("{" TWO ", \"frames\": 1}");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.grant = 10;
    run(&handing, NULL);
    /* `a` takes 10 rows every 10 us, `b` every 20 us: 7 and 3 are the shares, and the last ends at 70. */
    ASSERT_US(frames[0].wall_ns, 70);
    cr_assert_eq(frames[0].rows[0], 70);
    cr_assert_eq(frames[0].rows[1], 30);
    cr_assert_eq(frames[0].launches, 10);
    cr_assert_eq(find(0, 0)->flags, 0, "the first band of a device is no chunk");
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < told.measured_count; i++)
        chunks += told.measured[i].flags == COX_MEASURED_CHUNK;
    cr_assert_eq(chunks, 8);
    ASSERT_US(frames[0].expected_ns, 66.666666667);
}

Test(lab_sim, an_answer_that_is_none_takes_all)
{
    set_world("{\"rows\": 100, \"granule\": 8, \"frames\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 2}]}");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.grant = 12; /* not on the granule */
    run(&handing, NULL);
    cr_assert_eq(frames[0].rows[0], 100);
    told.grant = 101;
    run(&handing, NULL);
    cr_assert_eq(frames[0].rows[0], 100);
}

Test(lab_sim, the_last_one_asked_must_take_rows)
{
    set_world("{" TWO ", \"frames\": 3}");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    told.grant = 0;
    run(&handing, NULL);
    cr_assert_eq(frames[0].rows[1], 100, "`a` declines, `b` is the last");
    cr_assert_eq(told.last_offers, 3);
    cr_assert_eq(told.offers, 6, "who declines is not asked again");
}

Test(lab_sim, a_frame_has_no_more_bands_and_chunks_than_possible)
{
    set_world("{\"rows\": 4000, \"granule\": 1, \"frames\": 2, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 2}]}");
    told.splits[0] = (struct cox_split){.pool_rows = 4000};
    told.grant = 1;
    run(&handing, NULL);
    cr_assert_leq(frames[0].launches, COX_BANDS_MAX);
    cr_assert_eq(frames[0].rows[0] + frames[0].rows[1], 4000);
}

Test(lab_sim, no_pool_where_it_is_switched_off)
{
    set_world("{" TWO ", \"frames\": 1}");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    cr_assert_eq(simulate(&handing, &(struct lab_sim_options){.no_pool = true}, 1), COX_E_POLICY);
    cr_assert_not_null(strstr(why, "pool"), "%s", why);
}

/* --- shadows --- */

Test(lab_sim, a_shadow_is_measured_and_not_waited_for)
{
    set_world("{" TWO ", \"frames\": 4}");
    told.splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}, .shadow = {1, 0, 10}};
    told.splits[1] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}, .shadow = {1, 0, 80}};
    told.splits[2] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 100}}};
    run(&fixed, NULL);
    for (int f = 0; f < 4; f++) {
        ASSERT_US(frames[f].wall_ns, 100);
        cr_assert_eq(frames[f].rows[1], 0);
    }
    cr_assert_eq(find(0, 1)->wall_ns, 20000);
    cr_assert_eq(find(0, 1)->flags, COX_MEASURED_SHADOW);
    cr_assert_eq(find(1, 1)->wall_ns, 160000, "it ends within the next frame");
    cr_assert_eq(told.heard_before[2], 3, "and is heard of with that frame");
    cr_assert_eq(told.heard_before[3], 5);
    set_world("{" TWO ", \"frames\": 1}");
    cr_assert_eq(simulate(&fixed, &(struct lab_sim_options){.no_shadow = true}, 1), COX_E_POLICY);
}

/* --- slow and lost --- */

Test(lab_sim, a_band_that_takes_long_is_waited_for)
{
    /* In frame 1 `b` is a hundred times slower than predicted. */
    set_world("{\"rows\": 100, \"granule\": 1, \"frames\": 3, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
              "{\"name\": \"b\", \"row_us\": 200}], \"changes\": [{\"device\": \"b\", \"from\": 1, \"to\": 2, "
              "\"slower\": 100}]}");
    told.splits[0] = (struct cox_split){
        .band_count = 2, .bands = {{0, 0, 60}, {1, 60, 40}}, .device_ns = {6000000, 8000000}, .predicted_ns = 8000000};
    told.grant = UINT32_MAX;
    run(&handing, NULL);
    ASSERT_US(frames[0].wall_ns, 8000);
    ASSERT_US(frames[1].wall_ns, 800000);
    ASSERT_US(frames[2].wall_ns, 8000);
    cr_assert_eq(frames[1].rows[1], 40);
    cr_assert_eq(find(1, 1)->flags, 0);
    cr_assert_eq(told.offers, 0, "nothing is left for `a`");
}

static void set_death_world(const char *to)
{
    static char json[512];
    snprintf(json, sizeof json,
             "{\"rows\": 100, \"granule\": 1, \"frames\": 40, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
             "{\"name\": \"b\", \"row_us\": 200}], \"changes\": [{\"device\": \"b\", \"from\": 3, \"to\": %s, "
             "\"gone\": true}]}",
             to);
    set_world(json);
    told.splits[0] = (struct cox_split){
        .band_count = 2, .bands = {{0, 0, 60}, {1, 60, 40}}, .device_ns = {6000000, 8000000}};
}

Test(lab_sim, rows_of_a_dead_device_are_done_elsewhere)
{
    set_death_world("40");
    run(&fixed, NULL);
    ASSERT_US(frames[2].wall_ns, 8000);
    ASSERT_US(frames[3].wall_ns, 15000); /* lost at 8 ms + 25 % + 1 ms = 11 ms, then 4 ms */
    cr_assert_eq(frames[3].rows[0], 100);
    cr_assert(told.usable[3][1]);
    for (int f = 4; f < 40; f++) {
        cr_assert(!told.usable[f][1], "frame %d", f);
        ASSERT_US(frames[f].wall_ns, 10000);
        cr_assert_eq(frames[f].oracle_rows[1], 0);
    }
    cr_assert_eq(find(3, 1)->flags, COX_MEASURED_UNFINISHED);
    cr_assert_eq(find(3, 1)->wall_ns, 11000000);
    /* With a policy that hands out, the rows go through its `next`. */
    told.grant = 20;
    run(&handing, NULL);
    ASSERT_US(frames[3].wall_ns, 15000);
    cr_assert_eq(frames[3].launches, 4);
}

Test(lab_sim, a_death_without_prediction_takes_ten_frames_to_notice)
{
    set_death_world("40");
    memset(told.splits[0].device_ns, 0, sizeof told.splits[0].device_ns);
    run(&fixed, NULL);
    ASSERT_US(frames[3].wall_ns, 104000); /* ten times 10 ms, then 4 ms */
    ASSERT_US(frames[4].wall_ns, 10000);
}

Test(lab_sim, a_device_that_returns_is_asked_with_a_growing_pause)
{
    /* Lost in frame 3, asked before 4, 6, 10, 18, 26. */
    set_death_world("4");
    run(&fixed, NULL);
    cr_assert(told.usable[4][1]);
    set_death_world("5");
    run(&fixed, NULL);
    cr_assert(!told.usable[5][1]);
    cr_assert(told.usable[6][1]);
    ASSERT_US(frames[6].wall_ns, 8000);
    set_death_world("11");
    run(&fixed, NULL);
    cr_assert(!told.usable[17][1]);
    cr_assert(told.usable[18][1]);
    set_death_world("19");
    run(&fixed, NULL);
    cr_assert(!told.usable[25][1]);
    cr_assert(told.usable[26][1]);
}

Test(lab_sim, with_no_other_device_left_all_are_asked_at_once)
{
    /* `b` goes in frame 3 and is back in frame 8, when `a` goes: nobody has asked `b` again by then. */
    set_world("{\"rows\": 100, \"granule\": 1, \"frames\": 12, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
              "{\"name\": \"b\", \"row_us\": 200}], \"changes\": [{\"device\": \"b\", \"from\": 3, \"to\": 8, "
              "\"gone\": true}, {\"device\": \"a\", \"from\": 8, \"to\": 12, \"gone\": true}]}");
    told.splits[0] = (struct cox_split){
        .band_count = 2, .bands = {{0, 0, 60}, {1, 60, 40}}, .device_ns = {10000000, 8000000}};
    run(&fixed, NULL);
    ASSERT_US(frames[8].wall_ns, 13500 + 20000);
    cr_assert_eq(frames[8].rows[1], 100);
}

/* --- refused splits --- */

static void refuse(const char *about)
{
    set_world("{\"rows\": 96, \"granule\": 8, \"frames\": 3, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 2}]}");
    told.splits[0] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 64}, {1, 64, 32}}};
    told.splits[2] = told.splits[0];
    run(&fixed, NULL);
    cr_assert_eq(frames[0].refused, 0);
    cr_assert_eq(frames[1].refused, 1, "accepted, but %s", about);
    cr_assert_eq(frames[2].refused, 0);
    cr_assert_eq(frames[1].rows[0], 64, "the last good split goes on");
    cr_assert_eq(frames[1].rows[1], 32);
    ASSERT_US(frames[1].wall_ns, 64);
    cr_assert_not_null(strstr(why, "policy 'fixed', frame 1: "), "%s", why);
    cr_assert_not_null(strstr(why, about), "%s", why);
    /* In the first frame there is no split to go on with. */
    told.splits[0] = told.splits[1];
    told.statuses[0] = told.statuses[1];
    cr_assert_eq(simulate(&fixed, NULL, 1), COX_E_POLICY);
    cr_assert_not_null(strstr(why, "policy 'fixed', frame 0: "), "%s", why);
    memset(&told, 0, sizeof told);
}

Test(lab_sim, refuses_splits_that_are_none_and_goes_on)
{
    told.splits[1] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 64}, {1, 56, 40}}};
    refuse("0:0+64 1:56+40");
    told.splits[1] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 64}, {1, 72, 24}}};
    refuse("0:0+64 1:72+24");
    told.splits[1] = (struct cox_split){.band_count = 2, .bands = {{0, 0, 60}, {1, 60, 36}}};
    refuse("multiple of the granule");
    told.splits[1] = (struct cox_split){.band_count = 1, .bands = {{7, 0, 96}}};
    refuse("device 7");
    told.splits[1] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 48}}, .pool_first_row = 48, .pool_rows = 48};
    refuse("pool");
    told.statuses[1] = COX_E_NO_DEVICE;
    refuse(cox_status_text(COX_E_NO_DEVICE));
}

Test(lab_sim, a_last_good_split_that_fits_no_more_becomes_the_best_device_alone)
{
    set_world("{" TWO ", \"frames\": 3, \"changes\": [{\"from\": 1, \"to\": 2, \"rows\": 200}]}");
    told.splits[0] = halves;
    run(&fixed, NULL);
    cr_assert_eq(frames[1].refused, 1);
    cr_assert_eq(frames[1].rows[0], 200);
    cr_assert_eq(frames[2].refused, 0);
}

Test(lab_sim, the_bands_of_a_long_split_are_cut_in_the_message)
{
    set_world("{\"rows\": 128, \"granule\": 1, \"frames\": 1, \"devices\": [{\"name\": \"a\", \"row_us\": 1}, "
              "{\"name\": \"b\", \"row_us\": 2}]}");
    told.splits[0].band_count = COX_BANDS_MAX;
    for (uint32_t i = 0; i < COX_BANDS_MAX; i++)
        told.splits[0].bands[i] = (struct cox_band){0, i * 2, 1};
    cr_assert_eq(simulate(&fixed, NULL, 1), COX_E_POLICY);
    cr_assert_not_null(strstr(why, "..."), "%s", why);
}

/* --- the oracle --- */

/* Every split of one band a device, in the devices' order. */
static double sweep(uint32_t d, uint32_t first_row, struct cox_split *split)
{
    if (d == world.device_count) {
        if (first_row < scenario->rows)
            return HUGE_VAL;
        told.splits[0] = *split;
        run(&fixed, NULL);
        return frames[0].wall_ns;
    }
    double best = HUGE_VAL;
    for (uint32_t end = first_row;; end += scenario->granule) {
        struct cox_split more = *split;
        end = end > scenario->rows ? scenario->rows : end;
        if (end > first_row)
            more.bands[more.band_count++] = (struct cox_band){d, first_row, end - first_row};
        best = fmin(best, sweep(d + 1, end, &more));
        if (end == scenario->rows)
            return best;
    }
}

static void assert_oracle(const char *json)
{
    set_world(json);
    double best = sweep(0, 0, &(struct cox_split){0});
    run(NULL, NULL);
    cr_assert_float_eq(frames[0].wall_ns / best, 1, 1e-9, "the oracle needs %.9g us, the best split %.9g",
                       frames[0].wall_ns / 1e3, best / 1e3);
    cr_assert_float_eq(frames[0].oracle_ns / frames[0].wall_ns, 1, 1e-12);
    cr_assert_float_eq(frames[0].oracle_expected_ns / frames[0].wall_ns, 1, 1e-12);
}

#define THREE                                                                                                  \
    "\"devices\": [{\"name\": \"a\", \"fixed_us\": 60, \"row_us\": 18}, {\"name\": \"b\", \"fixed_us\": 250, " \
    "\"row_us\": 9}, {\"name\": \"c\", \"fixed_us\": 900, \"row_us\": 4.5}]"

Test(lab_sim, no_fixed_split_beats_the_oracle)
{
    assert_oracle("{\"rows\": 1080, \"granule\": 24, \"frames\": 1, " THREE "}");
    assert_oracle("{\"rows\": 110, \"granule\": 4, \"frames\": 1, " THREE "}");
    assert_oracle("{\"rows\": 1000, \"granule\": 27, \"frames\": 1, " THREE "}"); /* and a rest of one row */
    assert_oracle("{\"rows\": 7, \"granule\": 7, \"frames\": 1, " THREE "}");
    assert_oracle("{\"rows\": 1080, \"granule\": 30, \"frames\": 1, " THREE
                  ", \"heavy\": [{\"first\": 0.3, \"rows\": 0.2, "
                  "\"slower\": 7}, {\"first\": 0.4, \"rows\": 0.5, \"slower\": 0.5}]}");
}

Test(lab_sim, no_fixed_split_beats_the_oracle_under_contention)
{
    static const char *const slower[] = {"1.05", "1.2", "1.4", "1.6", "1.9", "4"};
    for (int i = 0; i < 6; i++) {
        char json[1024];
        snprintf(json, sizeof json,
                 "{\"rows\": 1080, \"granule\": 36, \"frames\": 1, " THREE ", \"contention\": [{\"slower\": %s}]}",
                 slower[i]);
        assert_oracle(json);
        snprintf(json, sizeof json,
                 "{\"rows\": 1080, \"granule\": 36, \"frames\": 1, " THREE
                 ", \"contention\": [{\"devices\": [\"a\", \"b\"], \"slower\": %s}]}",
                 slower[i]);
        assert_oracle(json);
        snprintf(json, sizeof json,
                 "{\"rows\": 1080, \"granule\": 36, \"frames\": 1, " THREE
                 ", \"contention\": [{\"devices\": [\"b\", \"c\"], \"slower\": %s}]}",
                 slower[i]);
        assert_oracle(json);
    }
}

Test(lab_sim, the_best_price_is_that_of_some_split_within_the_limit)
{
    set_world(
        "{\"rows\": 80, \"granule\": 8, \"frames\": 1, \"base_watts\": 1, \"devices\": ["
        "{\"name\": \"a\", \"row_us\": 1000, \"watts\": 30}, {\"name\": \"b\", \"row_us\": 2000, \"watts\": 5}]}");
    uint32_t rows, granule;
    bool alive[COX_DEVICES_MAX];
    world.begin_run(world.ctx, 1);
    world.begin_frame(world.ctx, 0, &rows, &granule, alive);
    /* `b` alone: 160 ms, 0.8 J and 0.16 J. In 100 ms `b` does 48 rows, `a` 32: 0.96 + 0.48 + 0.096 J. */
    cr_assert_float_eq(lab_oracle_price(&world, 0, rows, granule, alive, HUGE_VAL, lab_scenario_joules, scenario), 0.96,
                       1e-12);
    cr_assert_float_eq(lab_oracle_price(&world, 0, rows, granule, alive, 100e6, lab_scenario_joules, scenario),
                       32e-3 * 30 + 96e-3 * 5 + 96e-3, 1e-12);
    /* Where none is soon enough, the soonest: 56 and 24 rows in 56 ms. */
    cr_assert_float_eq(lab_oracle_price(&world, 0, rows, granule, alive, 1, lab_scenario_joules, scenario),
                       56e-3 * 30 + 48e-3 * 5 + 56e-3, 1e-12);
}

Test(lab_sim, hindsight_is_the_oracle_a_frame_late)
{
    set_world("{\"rows\": 120, \"granule\": 1, \"frames\": 20, \"devices\": [{\"name\": \"a\", \"row_us\": 100}, "
              "{\"name\": \"b\", \"row_us\": 200}], \"changes\": [{\"device\": \"b\", \"from\": 5, \"to\": 8, "
              "\"slower\": 2}, {\"device\": \"b\", \"from\": 12, \"to\": 14, \"gone\": true}, "
              "{\"from\": 17, \"rows\": 60}]}");
    run(&lab_hindsight, NULL);
    const double us[20] = {
        8000,  8000,  8000, 8000, 8000, 16000, 9600, 9600, 9600, 8000, 8000, 8000, 8000 * 1.25 + 1000 + 4000,
        12000, 12000, 8000, 8000, 4000, 4000,  4000};
    for (int f = 0; f < 20; f++)
        cr_assert_float_eq(frames[f].wall_ns / 1e3, us[f], 1e-6, "frame %d: %g us", f, frames[f].wall_ns / 1e3);
}

/* --- all scenarios --- */

static uint64_t fold(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3) ^ hash >> 29;
}

static uint64_t fold_ns(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return fold(hash, bits);
}

/* Everything that a run says, to the last bit. */
static uint64_t fold_frames(uint64_t hash, const struct lab_sim_frame *run_frames, uint64_t count)
{
    for (uint64_t f = 0; f < count; f++) {
        const struct lab_sim_frame *frame = &run_frames[f];
        const double values[] = {frame->wall_ns, frame->oracle_ns,   frame->oracle_expected_ns,
                                 frame->solo_ns, frame->expected_ns, frame->joules};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            hash = fold_ns(hash, values[i]);
        hash = fold(fold(hash, frame->launches), frame->moved);
        for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
            hash = fold(fold(hash, frame->rows[d]), frame->oracle_rows[d]);
    }
    return hash;
}

/* Most of the frame split evenly with made-up predictions, the rest on demand: calls on every part of the simulator,
 * and no change of a built-in policy shows in the kept figures. */
static cox_status mixed_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    uint32_t usable = 0, row = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        usable += view->devices[d].usable;
    uint32_t share = view->rows / (usable + 1) / view->granule * view->granule;
    for (uint32_t d = 0; d < view->device_count && share > 0; d++) {
        if (!view->devices[d].usable)
            continue;
        out->bands[out->band_count++] = (struct cox_band){d, row, share};
        out->device_ns[d] = 1 + view->devices[d].solo_ns * share / view->rows;
        row += share;
    }
    out->pool_first_row = row;
    out->pool_rows = view->rows - row;
    return COX_OK;
}

static void mixed_next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer,
                       struct cox_grant *out)
{
    (void)state;
    uint32_t rows = (offer->rows / 3 + view->granule) / view->granule * view->granule;
    out->rows = rows < offer->rows ? rows : offer->rows;
    out->predicted_ns = 1 + view->devices[offer->device].solo_ns * out->rows / view->rows;
}

static const struct cox_policy mixed = {
    .name = "mixed", .state_bytes = told_bytes, .init = told_init, .split = mixed_split, .next = mixed_next};

static void each_scenario(void (*visit)(const struct lab_scenario *found, const struct lab_world *in,
                                        struct lab_sim_frame *out))
{
    char name[LAB_NAME_MAX];
    uint32_t count = 0;
    for (; lab_scenario_name(count, name, sizeof name); count++) {
        struct lab_scenario *found = lab_scenario_load(name, why, sizeof why);
        cr_assert_not_null(found, "%s", why);
        struct lab_world in;
        struct lab_scenario_world *ctx = lab_scenario_world_create(found, &in);
        struct lab_sim_frame *out = malloc(found->frames * sizeof *out);
        cr_assert(ctx && out);
        visit(found, &in, out);
        free(out);
        lab_scenario_world_destroy(&ctx);
        lab_scenario_free(&found);
    }
    cr_assert_geq(count, 25);
}

/* Without what came later to scenarios. */
static bool is_plain(const struct lab_scenario *found, const struct lab_world *in)
{
    bool plain = !in->wake_ns && !in->hand_over_ns && !in->stolen && !in->copying;
    for (uint32_t d = 0; d < found->device_count; d++) {
        const struct lab_scenario_device *device = &found->devices[d];
        plain &= device->level_change == 0 && device->jump_frames == 0 && device->launch_tail.probability == 0;
    }
    return plain;
}

static uint64_t kept, kept_overlapping;

static void fold_scenario(const struct lab_scenario *found, const struct lab_world *in, struct lab_sim_frame *out)
{
    cr_assert_eq(lab_simulate(in, &mixed, &two_in_flight, 7, out, why, sizeof why), COX_OK, "%s: %s", found->name, why);
    kept_overlapping = fold_frames(kept_overlapping, out, found->frames);
    for (uint64_t f = 0; f < found->frames; f++)
        kept_overlapping = fold_ns(kept_overlapping, out[f].period_ns);
    if (!is_plain(found, in))
        return;
    cr_assert_eq(lab_simulate(in, NULL, NULL, 7, out, why, sizeof why), COX_OK, "%s", found->name);
    kept = fold_frames(kept, out, found->frames);
    cr_assert_eq(lab_simulate(in, &mixed, NULL, 7, out, why, sizeof why), COX_OK, "%s: %s", found->name, why);
    kept = fold_frames(kept, out, found->frames);
}

Test(lab_sim, gives_the_same_results_on_every_machine)
{
    /* Changes with the scenarios and the simulator; never with the machine, the compiler or its options. */
    each_scenario(fold_scenario);
    cr_assert_eq(kept, UINT64_C(0x620797f7ca598135), "%#" PRIx64, kept);
    cr_assert_eq(kept_overlapping, UINT64_C(0x110b007bd1bc6163), "%#" PRIx64, kept_overlapping);
}

static void repeat_scenario(const struct lab_scenario *found, const struct lab_world *in, struct lab_sim_frame *out)
{
    struct lab_sim_options options = {.oracles = calloc(found->frames, sizeof *options.oracles)};
    cr_assert_eq(lab_simulate(in, &mixed, NULL, 3, out, why, sizeof why), COX_OK);
    uint64_t first = fold_frames(1, out, found->frames);
    cr_assert_eq(lab_simulate(in, &mixed, NULL, 4, out, why, sizeof why), COX_OK);
    cr_assert_neq(fold_frames(1, out, found->frames), first, "%s: another seed", found->name);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(lab_simulate(in, &mixed, &options, 3, out, why, sizeof why), COX_OK);
        cr_assert_eq(fold_frames(1, out, found->frames), first, "%s: kept oracles", found->name);
    }
    free(options.oracles);
}

Test(lab_sim, a_seed_is_a_result_and_kept_oracles_change_nothing)
{
    each_scenario(repeat_scenario);
}

static void conserve(const struct lab_scenario *found, const struct lab_world *in, struct lab_sim_frame *out)
{
    for (uint32_t p = 0; p == 0 || cox_policy_at(p - 1); p++) {
        const struct cox_policy *policy = p == 0 ? &lab_hindsight : cox_policy_at(p - 1);
        const struct lab_sim_options options = {.in_flight = 1 + p % 3};
        cr_assert_eq(lab_simulate(in, policy, &options, 11, out, why, sizeof why), COX_OK, "%s: %s", found->name, why);
        for (uint64_t f = 0; f < found->frames; f++) {
            uint64_t rows = 0, oracle_rows = 0;
            for (uint32_t d = 0; d < found->device_count; d++) {
                rows += out[f].rows[d];
                oracle_rows += out[f].oracle_rows[d];
                if (!lab_scenario_is_alive(found, d, f))
                    cr_assert_eq(out[f].rows[d], 0, "%s: %s: rows on a dead device", found->name, policy->name);
            }
            cr_assert_eq(rows, oracle_rows, "%s: %s: frame %" PRIu64 " has %" PRIu64 " rows", found->name, policy->name,
                         f, rows);
            cr_assert(out[f].wall_ns > 0 && isfinite(out[f].wall_ns));
            cr_assert_geq(out[f].expected_ns, 0);
        }
    }
}

Test(lab_sim, every_row_of_every_frame_is_done_once)
{
    each_scenario(conserve);
}

/* --- worlds that are none --- */

Test(lab_sim, refuses_what_it_cannot_run)
{
    set_world("{" TWO ", \"frames\": 1}");
    told.splits[0] = halves;
    struct lab_world bad = world;
    bad.device_count = 0;
    cr_assert_eq(lab_simulate(&bad, &fixed, NULL, 1, frames, NULL, 0), COX_E_INVALID);
    bad.device_count = COX_DEVICES_MAX + 1;
    cr_assert_eq(lab_simulate(&bad, &fixed, NULL, 1, frames, NULL, 0), COX_E_INVALID);
    bad = world;
    bad.frames = 0;
    cr_assert_eq(lab_simulate(&bad, &fixed, NULL, 1, frames, NULL, 0), COX_E_INVALID);
    double ratios[] = {0.5, 0.9};
    struct lab_sim_options options = {.policy = {.ratios = ratios, .ratio_count = 2}};
    cr_assert_eq(lab_simulate(&world, cox_policy_find("static"), &options, 1, frames, NULL, 0), COX_E_INVALID);
}

static void (*begin_frame_of_scenario)(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *granule, bool *alive);

static void nobody(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *granule, bool *alive)
{
    begin_frame_of_scenario(ctx, frame, rows, granule, alive);
    alive[0] = alive[1] = frame < 1;
}

Test(lab_sim, refuses_a_world_in_which_nobody_answers)
{
    set_world("{" TWO ", \"frames\": 2}");
    told.splits[0] = halves;
    begin_frame_of_scenario = world.begin_frame;
    world.begin_frame = nobody;
    cr_assert_eq(simulate(&fixed, NULL, 1), COX_E_INVALID);
}

/* --- passes --- */

/* The second pass has half as many rows, and is slower on `b`. */
#define PASSES(more) \
    "\"passes\": [{\"name\": \"first\"}, {\"rows\": 50, \"devices\": [{\"device\": \"b\", \"row_us\": 4}]" more "}]"

static size_t crossing_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(uint32_t);
}

/* The first pass on `a`, the second one on `b`; each state sees one of them. */
static cox_status crossing_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    uint32_t *rows = state;
    cr_assert(*rows == 0 || *rows == view->rows, "a pass has a state of its own");
    *rows = view->rows;
    out->band_count = 1;
    out->bands[0] = (struct cox_band){.device = view->rows == 50, .rows = view->rows};
    return COX_OK;
}

static const struct cox_policy crossing = {.name = "crossing", .state_bytes = crossing_bytes, .split = crossing_split};

Test(lab_sim, passes_follow_each_other)
{
    static const double half[] = {0.5, 0.5};
    const struct lab_sim_options options = {.policy = {.ratios = half, .ratio_count = 2}};
    set_world("{" TWO ", \"frames\": 3, " PASSES(", \"before_us\": 7") "}");
    run(cox_policy_find("static"), &options);
    for (int f = 0; f < 3; f++) {
        ASSERT_US(frames[f].wall_ns, 100 + 7 + 100);
        ASSERT_US(frames[f].expected_ns, 100 + 7 + 100);
        ASSERT_US(frames[f].solo_ns, 100 + 7 + 50);
        ASSERT_US(frames[f].oracle_ns, 67 + 7 + 40);
        ASSERT_US(frames[f].oracle_expected_ns, 67 + 7 + 40);
        cr_assert(frames[f].rows[0] == 50 + 25 && frames[f].rows[1] == 50 + 25 && frames[f].launches == 4);
    }
    run(NULL, NULL);
    ASSERT_US(frames[2].wall_ns, 67 + 7 + 40);
}

Test(lab_sim, rows_that_move_between_passes_cost_more)
{
    set_world("{" TWO ", \"frames\": 2, " PASSES(", \"moved_row_us\": 3") "}");
    run(&crossing, NULL);
    ASSERT_US(frames[1].wall_ns, 100 + 50 * (4 + 3));
    ASSERT_US(frames[1].expected_ns, 100 + 50 * (4 + 3));
    /* 67 of 100 rows on `a`, then 40 of 50, of which 6.5 were on `b`: the oracle has fewer of them move. */
    cr_assert_lt(frames[1].oracle_ns, 67e3 + 40e3 + 6.5 * 3e3);
    run(NULL, NULL);
    cr_assert_float_eq(frames[1].wall_ns, frames[1].oracle_ns, 1e-3);
}

static struct {
    uint32_t splits, bands;
    struct cox_measurement band; /* the last of `a` */
    struct cox_frame_measurement frame;
} heard;

/* A border that moves each time. */
static cox_status moving_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    const uint32_t border = heard.splits++ % 2 ? 60 : 40;
    (void)state;
    out->band_count = 2;
    out->bands[0] = (struct cox_band){0, 0, border};
    out->bands[1] = (struct cox_band){1, border, view->rows - border};
    return COX_OK;
}

static void moving_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    heard.bands++;
    if (measurement->device == 0)
        heard.band = *measurement;
}

static void moving_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    heard.frame = *measurement;
}

static const struct cox_policy moving = {.name = "moving",
                                         .state_bytes = crossing_bytes,
                                         .split = moving_split,
                                         .observe = moving_observe,
                                         .observe_frame = moving_observe_frame};

/* As in the runtime: on `a` 40 rows take 40 + 3 * 40 us, on `b` 60 rows 2 * 60 + 60 us. */
Test(lab_sim, passes_of_as_many_rows_share_a_split)
{
    set_world("{" TWO ", \"frames\": 1, \"passes\": [{}, {\"moved_row_us\": 5, \"devices\": ["
              "{\"device\": \"a\", \"row_us\": 3}, {\"device\": \"b\", \"row_us\": 1}]}]}");
    run(&moving, NULL);
    cr_assert(heard.splits == 1 && heard.bands == 2);
    cr_assert(heard.band.rows == 40 && heard.band.first_row == 0 && !heard.band.flags);
    ASSERT_US((double)heard.band.wall_ns, 160);
    ASSERT_US((double)heard.frame.wall_ns, 240);
    ASSERT_US(frames[0].wall_ns, 240);
    heard.splits = heard.bands = 0;
    run(&moving, &(const struct lab_sim_options){.split_each_pass = true});
    cr_assert(heard.splits == 2 && heard.bands == 4);
    ASSERT_US((double)heard.band.wall_ns, 60 * 3 + 20 * 5);
    ASSERT_US((double)heard.frame.wall_ns, 60 * 3 + 20 * 5);
}

Test(lab_sim, passes_of_several_frames_overlap)
{
    set_world("{" TWO ", \"frames\": 20, " PASSES("") "}");
    run(&crossing, &(const struct lab_sim_options){.in_flight = 2});
    ASSERT_US(frames[10].period_ns, 200); /* `a` is at the next frame's first pass meanwhile */
    ASSERT_US(frames[0].wall_ns, 300);
}

Test(lab_sim, each_pass_is_learnt_for_itself)
{
    set_world("{" TWO ", \"frames\": 60, " PASSES("") "}");
    run(cox_policy_find("adaptive"), NULL);
    cr_assert_lt(frames[59].wall_ns, 1.03 * frames[59].oracle_ns, "%g us, the oracle %g", frames[59].wall_ns / 1e3,
                 frames[59].oracle_ns / 1e3);
}

Test(lab_sim, every_policy_does_every_row_of_every_pass)
{
    set_world("{" TWO
              ", \"frames\": 40, \"changes\": [{\"device\": \"a\", \"from\": 10, \"to\": 25, \"gone\": true}], " PASSES(
                  ", \"before_us\": 5, \"moved_row_us\": 1") "}");
    for (uint32_t p = 0; cox_policy_at(p); p++)
        for (uint32_t in_flight = 1; in_flight <= 3; in_flight++) {
            run(cox_policy_at(p), &(const struct lab_sim_options){.in_flight = in_flight});
            for (int f = 0; f < 40; f++)
                cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 150, "%s, frame %d", cox_policy_at(p)->name, f);
        }
}
