/* The simulator's oracle is optimal. Also tested: passes, and properties of every scenario.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "lab/sim/oracle.h"
#include "lab/sim/simulate.h"
#include "support/fake_rig.h"
#include "unit/programs/lab_told.h"
#include <inttypes.h>

/* --- the oracle --- */

/* Try every split with one band per device, in the order of the devices. */
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
    for (uint32_t end = first_row;; end += scenario->row_alignment) {
        struct cox_split more = *split;
        end = end > scenario->rows ? scenario->rows : end;
        if (end > first_row)
            more.bands[more.band_count++] = (struct cox_band){d, first_row, end - first_row};
        best = fmin(best, sweep(d + 1, end, &more));
        if (end == scenario->rows)
            return best;
    }
}

static void assert_oracle(const char *keys)
{
    set_world(keys);
    double best = sweep(0, 0, &(struct cox_split){0});
    run(NULL, NULL);
    const struct lab_sim_frame *frame = &frames[0];
    ASSERT_VALUES(NEAR(frame->wall_ns / best, 1, 1e-9), NEAR(frame->oracle_ns / frame->wall_ns, 1, 1e-12),
                  NEAR(frame->oracle_expected_ns / frame->wall_ns, 1, 1e-12));
}

#define THREE(rows, row_alignment)                                                                              \
    "'rows': " #rows ", 'granule': " #row_alignment ", 'frames': 1, 'devices': [{'name': 'a', 'fixed_us': 60, " \
    "'row_us': 18}, {'name': 'b', 'fixed_us': 250, 'row_us': 9}, {'name': 'c', 'fixed_us': 900, 'row_us': 4.5}]"

Test(lab_oracle, no_fixed_split_beats_the_oracle)
{
    assert_oracle(THREE(1080, 24));
    assert_oracle(THREE(110, 4));
    assert_oracle(THREE(1000, 27)); /* leaves a rest of one row */
    assert_oracle(THREE(7, 7));
    assert_oracle(THREE(1080, 30) ", 'heavy': [{'first': 0.3, 'rows': 0.2, 'slower': 7}, "
                                  "{'first': 0.4, 'rows': 0.5, 'slower': 0.5}]");
}

Test(lab_oracle, no_fixed_split_beats_the_oracle_under_contention)
{
    static const char *const slower[] = {"1.05", "1.2", "1.4", "1.6", "1.9", "4"};
    static const char *const devices[] = {"", "'devices': ['a', 'b'], ", "'devices': ['b', 'c'], "};
    for (int i = 0; i < 6; i++)
        for (int d = 0; d < 3; d++) {
            char keys[1024];
            snprintf(keys, sizeof keys, THREE(1080, 36) ", 'contention': [{%s'slower': %s}]", devices[d], slower[i]);
            assert_oracle(keys);
        }
}

Test(lab_oracle, the_best_price_is_that_of_some_split_within_the_limit)
{
    static const struct {
        double limit_ns, joules;
    } prices[] = {
        {HUGE_VAL, 0.96},                        /* `b` alone: 160 ms, 0.8 J and 0.16 J */
        {100e6, 32e-3 * 30 + 96e-3 * 5 + 96e-3}, /* in 100 ms `b` does 48 rows, `a` 32 */
        {1, 56e-3 * 30 + 48e-3 * 5 + 56e-3},     /* none meets it; the fastest: 56 and 24 rows in 56 ms */
    };
    set_world("'rows': 80, 'granule': 8, 'frames': 1, 'base_watts': 1, 'devices': [{'name': 'a', 'row_us': 1000, "
              "'watts': 30}, {'name': 'b', 'row_us': 2000, 'watts': 5}]");
    uint32_t rows, row_alignment;
    bool alive[COX_DEVICES_MAX];
    world.begin_run(world.ctx, 1);
    world.begin_frame(world.ctx, 0, &rows, &row_alignment, alive);
    for (int i = 0; i < 3; i++)
        cr_assert_float_eq(lab_oracle_price(&world, 0, rows, row_alignment, alive, prices[i].limit_ns,
                                            lab_scenario_joules, scenario),
                           prices[i].joules, 1e-12, "within %g ns", prices[i].limit_ns);
}

Test(lab_oracle, hindsight_is_the_oracle_a_frame_late)
{
    set_world(PAIR(120, 1, 100, 200) ", 'frames': 20, 'changes': [{'device': 'b', 'from': 5, 'to': 8, 'slower': 2}, "
                                     "{'device': 'b', 'from': 12, 'to': 14, 'gone': true}, {'from': 17, 'rows': 60}]");
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

/* Hash all results of a run, to the last bit. */
static uint64_t fold_frames(uint64_t hash, const struct lab_sim_frame *run_frames, uint64_t count)
{
    for (uint64_t f = 0; f < count; f++) {
        const struct lab_sim_frame *frame = &run_frames[f];
        const double values[] = {frame->wall_ns,          frame->oracle_ns,   frame->oracle_expected_ns,
                                 frame->single_device_ns, frame->expected_ns, frame->joules};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            hash = fold_ns(hash, values[i]);
        hash = fold(fold(hash, frame->launches), frame->moved);
        for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
            hash = fold(fold(hash, frame->rows[d]), frame->oracle_rows[d]);
    }
    return hash;
}

/* This policy splits most of the frame evenly, with made-up predictions, and hands out the rest on demand. It
 * reaches every part of the simulator, and the kept hashes do not depend on the built-in policies. */
static cox_status mixed_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    uint32_t usable = 0, row = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        usable += view->devices[d].usable;
    uint32_t share = view->rows / (usable + 1) / view->row_alignment * view->row_alignment;
    for (uint32_t d = 0; d < view->device_count && share > 0; d++) {
        if (!view->devices[d].usable)
            continue;
        out->bands[out->band_count++] = (struct cox_band){d, row, share};
        out->device_ns[d] = 1 + view->devices[d].single_device_ns * share / view->rows;
        row += share;
    }
    out->pool_first_row = row;
    out->pool_rows = view->rows - row;
    return COX_OK;
}

static void mixed_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                       struct cox_chunk *out)
{
    (void)state;
    uint32_t rows = (offer->rows / 3 + view->row_alignment) / view->row_alignment * view->row_alignment;
    out->rows = rows < offer->rows ? rows : offer->rows;
    out->predicted_ns = 1 + view->devices[offer->device].single_device_ns * out->rows / view->rows;
}

static const struct cox_policy mixed = {
    .name = "mixed", .state_bytes = told_bytes, .init = told_init, .split = mixed_split, .assign = mixed_next};

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

/* Whether the scenario uses none of the newer features, which the kept hash does not cover. */
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

Test(lab_oracle, gives_the_same_results_on_every_machine)
{
    /* This hash changes with the scenarios and the simulator, but not with the machine, the compiler or its
     * options. */
    each_scenario(fold_scenario);
    cr_assert_eq(kept, UINT64_C(0x620797f7ca598135), "%#" PRIx64, kept);
    cr_assert_eq(kept_overlapping, UINT64_C(0xe325cd7fb88cbaea), "%#" PRIx64, kept_overlapping);
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

Test(lab_oracle, a_seed_is_a_result_and_kept_oracles_change_nothing)
{
    each_scenario(repeat_scenario);
}

static void conserve(const struct lab_scenario *found, const struct lab_world *in, struct lab_sim_frame *out)
{
    for (uint32_t p = 0; p == 0 || program_policy_at(p - 1); p++) {
        const struct cox_policy *policy = p == 0 ? &lab_hindsight : program_policy_at(p - 1);
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

Test(lab_oracle, every_row_of_every_frame_is_done_once)
{
    each_scenario(conserve);
}

/* --- invalid worlds --- */

Test(lab_oracle, refuses_what_it_cannot_run)
{
    set_world(TWO ", 'frames': 1");
    told.splits[0] = split_at(50);
    struct lab_world bad[] = {world, world, world};
    bad[0].device_count = 0;
    bad[1].device_count = COX_DEVICES_MAX + 1;
    bad[2].frames = 0;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(lab_simulate(&bad[i], &fixed, NULL, 1, frames, NULL, 0), COX_E_INVALID, "world %d", i);
    double ratios[] = {0.5, 0.9};
    struct lab_sim_options options = {.policy = {.ratios = ratios, .ratio_count = 2}};
    cr_assert_eq(lab_simulate(&world, cox_policy_find("static"), &options, 1, frames, NULL, 0), COX_E_INVALID);
}

static void (*begin_frame_of_scenario)(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *row_alignment, bool *alive);

static void nobody(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *row_alignment, bool *alive)
{
    begin_frame_of_scenario(ctx, frame, rows, row_alignment, alive);
    alive[0] = alive[1] = frame < 1;
}

Test(lab_oracle, refuses_a_world_in_which_nobody_answers)
{
    set_world(TWO ", 'frames': 2");
    told.splits[0] = split_at(50);
    begin_frame_of_scenario = world.begin_frame;
    world.begin_frame = nobody;
    cr_assert_eq(simulate(&fixed, NULL, 1), COX_E_INVALID);
}

/* --- passes --- */

/* The second pass has half as many rows and is slower on `b`. */
#define PASSES(more) "'passes': [{'name': 'first'}, {'rows': 50, 'devices': [{'device': 'b', 'row_us': 4}]" more "}]"

/* The first pass runs on `a`, the second one on `b`. Each of the two policy states sees one pass. */
static cox_status crossing_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    uint32_t *rows = state;
    cr_assert(*rows == 0 || *rows == view->rows, "each pass has its own policy state");
    *rows = view->rows;
    out->band_count = 1;
    out->bands[0] = (struct cox_band){.device = view->rows == 50, .rows = view->rows};
    return COX_OK;
}

static const struct cox_policy crossing = {
    .name = "crossing", .state_bytes = rig_policy_bytes, .split = crossing_split};

Test(lab_oracle, passes_follow_each_other)
{
    static const double half[] = {0.5, 0.5};
    const struct lab_sim_options options = {.policy = {.ratios = half, .ratio_count = 2}};
    set_world(TWO ", 'frames': 3, " PASSES(", 'before_us': 7"));
    run(cox_policy_find("static"), &options);
    for (int f = 0; f < 3; f++)
        ASSERT_VALUES(US(frames[f].wall_ns, 100 + 7 + 100), US(frames[f].expected_ns, 100 + 7 + 100),
                      US(frames[f].single_device_ns, 100 + 7 + 50), US(frames[f].oracle_ns, 67 + 7 + 40),
                      US(frames[f].oracle_expected_ns, 67 + 7 + 40), IS(frames[f].rows[0], 50 + 25),
                      IS(frames[f].rows[1], 50 + 25), IS(frames[f].launches, 4));
    run(NULL, NULL);
    ASSERT_VALUES(US(frames[2].wall_ns, 67 + 7 + 40));
}

Test(lab_oracle, rows_that_move_between_passes_cost_more)
{
    set_world(TWO ", 'frames': 2, " PASSES(", 'moved_row_us': 3"));
    run(&crossing, NULL);
    ASSERT_VALUES(US(frames[1].wall_ns, 100 + 50 * (4 + 3)), US(frames[1].expected_ns, 100 + 50 * (4 + 3)));
    /* Pass 1 has 67 of 100 rows on `a`, pass 2 has 40 of 50. 6.5 of these were on `b`; the oracle moves fewer. */
    cr_assert_lt(frames[1].oracle_ns, 67e3 + 40e3 + 6.5 * 3e3);
    run(NULL, NULL);
    cr_assert_float_eq(frames[1].wall_ns, frames[1].oracle_ns, 1e-3);
}

static struct {
    uint32_t splits, bands;
    struct cox_measurement band; /* the last band of `a` */
    struct cox_frame_measurement frame;
} heard;

/* The boundary moves in each split. */
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
                                         .state_bytes = rig_policy_bytes,
                                         .split = moving_split,
                                         .observe = moving_observe,
                                         .observe_frame = moving_observe_frame};

/* As in the runtime. `a` takes 40 + 3 * 40 us for 40 rows, `b` takes 2 * 60 + 60 us for 60 rows. */
Test(lab_oracle, passes_of_as_many_rows_share_a_split)
{
    set_world(TWO ", 'frames': 1, 'passes': [{}, {'moved_row_us': 5, 'devices': [{'device': 'a', 'row_us': 3}, "
                  "{'device': 'b', 'row_us': 1}]}]");
    run(&moving, NULL);
    ASSERT_VALUES(IS(heard.splits, 1), IS(heard.bands, 2), IS(heard.band.rows, 40), IS(heard.band.first_row, 0),
                  IS(heard.band.flags, 0), US(heard.band.wall_ns, 160), US(heard.frame.wall_ns, 240),
                  US(frames[0].wall_ns, 240));
    heard.splits = heard.bands = 0;
    run(&moving, &(const struct lab_sim_options){.split_each_pass = true});
    ASSERT_VALUES(IS(heard.splits, 2), IS(heard.bands, 4), US(heard.band.wall_ns, 60 * 3 + 20 * 5),
                  US(heard.frame.wall_ns, 60 * 3 + 20 * 5));
}

Test(lab_oracle, passes_of_several_frames_overlap)
{
    set_world(TWO ", 'frames': 20, " PASSES(""));
    run(&crossing, &two_in_flight);
    /* Meanwhile `a` runs the first pass of the next frame. */
    ASSERT_VALUES(US(frames[10].period_ns, 200), US(frames[0].wall_ns, 300));
}

Test(lab_oracle, each_pass_is_learnt_for_itself)
{
    set_world(TWO ", 'frames': 60, " PASSES(""));
    run(cox_policy_find("adaptive"), NULL);
    cr_assert_lt(frames[59].wall_ns, 1.03 * frames[59].oracle_ns, "%g us, the oracle %g", frames[59].wall_ns / 1e3,
                 frames[59].oracle_ns / 1e3);
}

Test(lab_oracle, every_policy_does_every_row_of_every_pass)
{
    set_world(TWO ", 'frames': 40, 'changes': [{'device': 'a', 'from': 10, 'to': 25, 'gone': true}], " PASSES(
        ", 'before_us': 5, 'moved_row_us': 1"));
    for (uint32_t p = 0; program_policy_at(p); p++)
        for (uint32_t in_flight = 1; in_flight <= 3; in_flight++) {
            run(program_policy_at(p), &(const struct lab_sim_options){.in_flight = in_flight});
            for (int f = 0; f < 40; f++)
                cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 150, "%s, frame %d", program_policy_at(p)->name, f);
        }
}
