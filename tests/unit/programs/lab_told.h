/* Shared by the tests of the simulator: a policy that a test scripts, and a world from a scenario.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAB_TOLD_H
#define COX_TESTS_LAB_TOLD_H

#include "lab/sim/simulate.h"
#include "lab/sim/scenario.h"
#include "support/values.h"
#include "unit/programs/lab_support.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* --- a policy that a test scripts --- */

enum { FRAMES_MAX = 64, NOTES_MAX = 4096 };

static struct {
    struct cox_split splits[FRAMES_MAX]; /* of each frame; if band_count and pool are 0, the previous one */
    cox_status statuses[FRAMES_MAX];
    uint32_t grant; /* number of rows in each answer; UINT32_MAX = all */

    uint32_t measured_count;
    struct cox_measurement measured[NOTES_MAX];
    uint64_t heard_before[FRAMES_MAX]; /* measurements observed before the split of a frame */
    bool usable[FRAMES_MAX][COX_DEVICES_MAX];
    uint64_t single_device_ns[FRAMES_MAX][COX_DEVICES_MAX];
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
        cr_assert_eq(view->devices[i].single_device_ns, 0, "init comes before warm-up");
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
        told.single_device_ns[view->frame][d] = view->devices[d].single_device_ns;
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

static void told_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                      struct cox_chunk *out)
{
    (void)state;
    cr_assert(view->devices[offer->device].usable);
    cr_assert_gt(offer->rows, 0);
    cr_assert_leq((uint64_t)offer->first_row + offer->rows, view->rows);
    told.offers++;
    told.last_offers += offer->last;
    *out = (struct cox_chunk){.rows = told.grant == UINT32_MAX ? offer->rows : told.grant};
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

#define TOLD                                                                                    \
    .state_bytes = told_bytes, .init = told_init, .split = told_split, .observe = told_observe, \
    .observe_frame = told_frame
static const struct cox_policy handing = {.name = "told", TOLD, .load_profile = told_load_profile, .assign = told_next};
static const struct cox_policy fixed = {.name = "fixed", TOLD};

/* --- a world from a scenario --- */

static struct lab_scenario *scenario;
static struct lab_scenario_world *scenario_world;
static struct lab_world world;
static struct lab_sim_frame frames[FRAMES_MAX];
static const struct lab_sim_options two_in_flight = {.in_flight = 2};
static char why[640];

/* `keys`: the scenario's keys. */
static void set_world(const char *keys)
{
    const char *json = lab_object(keys);
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

/* The first `border` rows on `a`, the other rows on `b`. */
static struct cox_split split_at(uint32_t border)
{
    struct cox_split split = {0};
    if (border > 0)
        split.bands[split.band_count++] = (struct cox_band){0, 0, border};
    if (border < scenario->rows)
        split.bands[split.band_count++] = (struct cox_band){1, border, scenario->rows - border};
    return split;
}

static inline void run_split(struct cox_split split, uint32_t in_flight)
{
    told.splits[0] = split;
    run(&fixed, &(struct lab_sim_options){.in_flight = in_flight});
}

/* Devices that need this much time per row; nothing else costs time. */
#define ALONE "'rows': 100, 'granule': 1, 'devices': [{'name': 'a', 'row_us': 1}]"
#define PAIR(rows, row_alignment, a_us, b_us)                                                                          \
    "'rows': " #rows ", 'granule': " #row_alignment ", 'devices': [{'name': 'a', 'row_us': " #a_us "}, {'name': 'b', " \
    "'row_us': " #b_us "}]"
#define TWO PAIR(100, 1, 1, 2)

/* A time in nanoseconds, and the expected value in microseconds. */
#define US(ns, us) NEAR((ns) / 1e3, us, 1e-6)

#endif
