/* The built-in policies: what each promises, on scripted measurements and on a small model of devices with jitter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_jitter.h"
#include "support/values.h"
#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const policy_names[] = {"adaptive", "ewma",   "chunks", "hguided",    "last-frame",
                                           "mean10",   "static", "single", "inter-frame"};
enum { POLICY_COUNT = sizeof policy_names / sizeof policy_names[0] };

static void *start(const struct cox_policy *policy, const struct cox_sched_view *view,
                   const struct cox_policy_options *options)
{
    void *state = calloc(1, policy->state_bytes(view->device_count));
    cr_assert_not_null(state);
    cr_assert_eq(policy->init(state, view, options), COX_OK);
    return state;
}

static void split_into(const struct cox_policy *policy, void *state, const struct cox_sched_view *view,
                       struct cox_split *out)
{
    char why[200];
    memset(out, 0, sizeof *out);
    cr_assert_eq(policy->split(state, view, out), COX_OK);
    cr_assert_eq(cox_split_check(out, view, why, sizeof why), COX_OK, "%s: %s", policy->name, why);
}

static uint32_t rows_of(const struct cox_split *split, uint32_t device)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < split->band_count; i++)
        rows += split->bands[i].device == device ? split->bands[i].rows : 0;
    return rows;
}

static void observe(const struct cox_policy *policy, void *state, uint64_t frame, uint32_t device, uint32_t rows,
                    double wall_ns)
{
    struct cox_measurement m = {.frame = frame, .device = device, .rows = rows, .wall_ns = (uint64_t)wall_ns};
    if (policy->observe)
        policy->observe(state, &m);
}

/* --- the list --- */

Test(policies, are_listed_in_order_and_found_by_name)
{
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        const struct cox_policy *policy = cox_policy_at(i);
        cr_assert_not_null(policy);
        cr_assert_str_eq(policy->name, policy_names[i]);
        cr_assert_eq(cox_policy_find(policy_names[i]), policy);
    }
    cr_assert_null(cox_policy_at(POLICY_COUNT));
    cr_assert_null(cox_policy_at(UINT32_MAX));
    cr_assert_null(cox_policy_find("Ewma"));
    cr_assert_null(cox_policy_find(""));
    cr_assert_eq(cox_policy_find(NULL), cox_policy_at(0));
}

/* --- promises of every policy --- */

Test(policies, always_give_a_split_under_random_views_lag_and_absurd_measurements)
{
    static const uint64_t absurd[] = {0, 1, 2, 1000, 1000000, 1000000000, UINT64_MAX / 2, UINT64_MAX};
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        const struct cox_policy *policy = cox_policy_at(p);
        random_begin(1000 + p);
        for (uint32_t run = 0; run < 300; run++) {
            struct cox_sched_device devices[COX_DEVICES_MAX];
            struct cox_sched_view view = {.device_count = 1 + random_index(run % 10 == 0 ? COX_DEVICES_MAX : 5),
                                          .devices = devices,
                                          .rows = 1 + random_index(run % 3 == 0 ? 40 : 5000),
                                          .granule = 1 + random_index(run % 2 ? 1 : 40)};
            if (run % 4 == 0)
                view.min_band_rows = random_index(view.rows + 10);
            if (run % 50 == 0)
                view.rows = INT32_MAX - random_index(3);
            for (uint32_t d = 0; d < view.device_count; d++)
                devices[d] = (struct cox_sched_device){.usable = true,
                                                       .hint = random_index(4) ? random_unit() * 100
                                                                               : (random_index(2) ? 0 : 1e300),
                                                       .solo_ns = random_index(3) ? absurd[random_index(8)] : 0};
            void *state = start(policy, &view, &(struct cox_policy_options){.device = random_index(2)});
            struct cox_split late[3];
            for (uint32_t frame = 0; frame < 120; frame++) {
                view.frame = frame;
                if (random_index(8) == 0) {
                    uint32_t d = random_index(view.device_count);
                    devices[d].usable = !devices[d].usable;
                    if (random_index(2))
                        devices[random_index(view.device_count)].solo_ns = absurd[random_index(8)];
                    bool none = true;
                    for (uint32_t i = 0; i < view.device_count; i++)
                        none &= !devices[i].usable;
                    devices[d].usable |= none;
                }
                struct cox_split *split = &late[frame % 3];
                split_into(policy, state, &view, split);
                uint32_t least = view.min_band_rows ? view.min_band_rows : view.granule;
                for (uint32_t i = 0; i < split->band_count && split->band_count > 1; i++)
                    cr_assert_geq(split->bands[i].rows, least, "%s gives a band of %u rows, the minimum is %u",
                                  policy->name, split->bands[i].rows, least);
                if (frame < 2 || !policy->observe)
                    continue;
                const struct cox_split *done = &late[(frame - 2) % 3];
                for (uint32_t i = 0; i < done->band_count; i++) {
                    struct cox_measurement m = {.frame = random_index(9) ? frame - 2 : random_index(UINT32_MAX),
                                                .device = random_index(30) ? done->bands[i].device : 77,
                                                .first_row = done->bands[i].first_row,
                                                .rows = random_index(30) ? done->bands[i].rows : 0,
                                                .wall_ns = random_index(2) ? absurd[random_index(8)]
                                                                           : random_index(1000000),
                                                .kernel_ns = absurd[random_index(8)]};
                    policy->observe(state, &m);
                }
            }
            free(state);
        }
    }
}

Test(policies, refuse_to_split_over_no_device)
{
    const struct cox_sched_device gone[] = {{false, 1, 0}, {false, 1, 0}};
    const struct cox_sched_view view = {.rows = 10, .granule = 1, .device_count = 2, .devices = gone};
    for (uint32_t p = 0; p < POLICY_COUNT; p++) {
        const struct cox_policy *policy = cox_policy_at(p);
        void *state = start(policy, &view, NULL);
        struct cox_split split;
        cr_assert_eq(policy->split(state, &view, &split), COX_E_NO_DEVICE, "%s", policy->name);
        free(state);
    }
}

Test(policies, start_from_warm_up_times_if_all_devices_have_one_and_from_hints_else)
{
    struct cox_sched_device devices[] = {{true, 1, 3000000}, {true, 1, 1000000}};
    const struct cox_sched_view view = {.rows = 1024, .granule = 16, .device_count = 2, .devices = devices};
    static const char *const measuring[] = {"ewma", "last-frame", "mean10"};
    for (uint32_t i = 0; i < 3; i++) {
        const struct cox_policy *policy = cox_policy_find(measuring[i]);
        struct cox_split split;
        devices[0].solo_ns = 3000000;
        void *state = start(policy, &view, NULL);
        split_into(policy, state, &view, &split);
        cr_assert_eq(rows_of(&split, 0), 256, "%s", policy->name);
        cr_assert_eq(split.reason, COX_REASON_FIRST);
        free(state);
        devices[0].solo_ns = 0;
        devices[0].hint = 3;
        state = start(policy, &view, NULL);
        split_into(policy, state, &view, &split);
        cr_assert_eq(rows_of(&split, 0), 768, "%s", policy->name);
        free(state);
    }
}

/* --- a model of devices --- */

enum { MODEL_DEVICES = 3, MODEL_LAG_MAX = 3 };

struct model {
    uint32_t count;
    double fixed_ns[MODEL_DEVICES];
    double ns_per_row[MODEL_DEVICES];
    double sigma;         /* of the log of the jitter */
    double corunning;     /* factor on every time while two or more devices work; 0 = 1 */
    double outliers;      /* share of bands that take five times as long */
    uint32_t step_device; /* takes step_factor times as long in frames step_from .. step_to - 1 */
    uint32_t step_from, step_to;
    double step_factor;
    uint32_t lag; /* frames split before the first of them is observed, less one */
    bool no_warmup;
};

struct outcome {
    double excess;         /* sum of frame times over sum of the oracle's, which knows the model but not the jitter */
    uint32_t changes;      /* splits that differ from the one before */
    uint32_t late_changes; /* those from frame 20 on */
    double ratio[1000];    /* for each frame: time of its split without jitter over the oracle's */
};

static const struct model office = {/* a CPU, an integrated and a discrete GPU at 1080 rows */
                                    .count = 3,
                                    .fixed_ns = {60e3, 250e3, 900e3},
                                    .ns_per_row = {18e3, 9e3, 4.5e3},
                                    .sigma = 0.05};

static const struct model pair = {.count = 2, .fixed_ns = {60e3, 60e3}, .ns_per_row = {18e3, 6e3}, .sigma = 0.05};

static double model_ns(const struct model *m, uint32_t device, uint32_t rows, uint32_t frame, uint32_t working)
{
    if (rows == 0)
        return 0;
    double ns = m->fixed_ns[device] + m->ns_per_row[device] * rows;
    if (m->step_factor > 0 && device == m->step_device && frame >= m->step_from && frame < m->step_to)
        ns *= m->step_factor;
    return working > 1 && m->corunning > 0 ? ns * m->corunning : ns;
}

static double oracle_ns(const struct model *m, const struct cox_sched_view *view, uint32_t frame)
{
    struct cox_cost costs[MODEL_DEVICES];
    uint32_t rows[MODEL_DEVICES];
    double best = HUGE_VAL;
    for (uint32_t d = 0; d < m->count; d++) {
        double one = model_ns(m, d, 1, frame, 2), two = model_ns(m, d, 2, frame, 2);
        costs[d] = (struct cox_cost){view->devices[d].usable, fmax(0, 2 * one - two), two - one};
        if (view->devices[d].usable)
            best = fmin(best, model_ns(m, d, view->rows, frame, 1));
    }
    return fmin(best, cox_waterfill(view->rows, view->granule, 0, costs, m->count, rows));
}

static void simulate(const char *name, const struct model *m, uint32_t frames, uint64_t seed, struct outcome *out)
{
    const struct cox_policy *policy = cox_policy_find(name);
    struct cox_sched_device devices[MODEL_DEVICES];
    struct cox_sched_view view = {.rows = 1080, .granule = 8, .device_count = m->count, .devices = devices};
    random_begin(seed * 7919 + 17);
    for (uint32_t d = 0; d < m->count; d++) {
        double solo_ns = m->no_warmup ? 0 : model_ns(m, d, view.rows, 0, 1) * random_jitter(m->sigma);
        devices[d] = (struct cox_sched_device){.usable = true, .hint = 1, .solo_ns = (uint64_t)solo_ns};
    }
    void *state = start(policy, &view, NULL);
    struct cox_measurement measured[MODEL_LAG_MAX + 1][COX_BANDS_MAX];
    uint32_t measured_count[MODEL_LAG_MAX + 1];
    struct cox_split split, before = {0};
    double total = 0, oracle = 0;
    *out = (struct outcome){0};
    for (uint32_t frame = 0; frame < frames; frame++) {
        view.frame = frame;
        split_into(policy, state, &view, &split);
        if (frame > 0 && (split.band_count != before.band_count ||
                          memcmp(split.bands, before.bands, split.band_count * sizeof split.bands[0]) != 0)) {
            out->changes++;
            out->late_changes += frame >= 20;
        }
        before = split;

        double ns = 0, plain = 0;
        uint32_t slot = frame % (MODEL_LAG_MAX + 1);
        measured_count[slot] = split.band_count;
        for (uint32_t i = 0; i < split.band_count; i++) {
            const struct cox_band *band = &split.bands[i];
            double exact = model_ns(m, band->device, band->rows, frame, split.band_count);
            double t = exact * random_jitter(m->sigma) * (random_unit() < m->outliers ? 5 : 1);
            ns = fmax(ns, t);
            plain = fmax(plain, exact);
            measured[slot][i] = (struct cox_measurement){.frame = frame,
                                                         .device = band->device,
                                                         .first_row = band->first_row,
                                                         .rows = band->rows,
                                                         .wall_ns = (uint64_t)t,
                                                         .kernel_ns = (uint64_t)t};
        }
        double best = oracle_ns(m, &view, frame);
        out->ratio[frame] = plain / best;
        total += ns;
        oracle += best;
        if (frame < m->lag || !policy->observe)
            continue;
        slot = (frame - m->lag) % (MODEL_LAG_MAX + 1);
        for (uint32_t i = 0; i < measured_count[slot]; i++)
            policy->observe(state, &measured[slot][i]);
    }
    out->excess = total / oracle;
    free(state);
}

struct summary {
    double excess; /* mean over the seeds */
    double changes;
    double late_changes;
};

enum { SEEDS = 20, FRAMES = 400 };

static struct outcome outcome;

static struct summary summarise(const char *name, const struct model *m)
{
    struct summary sum = {0};
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        simulate(name, m, FRAMES, seed, &outcome);
        sum.excess += outcome.excess / SEEDS;
        sum.changes += (double)outcome.changes / SEEDS;
        sum.late_changes += (double)outcome.late_changes / SEEDS;
    }
    cr_log_info("%s: excess %.4f, split changes %.1f, after frame 20 %.1f", name, sum.excess, sum.changes,
                sum.late_changes);
    return sum;
}

/* First frame from `from` on after which every one of `run` frames stays within `limit` of the oracle. */
static uint32_t settled(const struct outcome *o, uint32_t from, uint32_t to, uint32_t run, double limit)
{
    uint32_t good = 0;
    for (uint32_t frame = from; frame < to; frame++) {
        good = o->ratio[frame] <= limit ? good + 1 : 0;
        if (good == run)
            return frame + 1 - run;
    }
    return UINT32_MAX;
}

/* --- ewma --- */

Test(ewma, is_deterministic)
{
    static struct outcome a, b;
    simulate("ewma", &office, 300, 3, &a);
    simulate("ewma", &office, 300, 3, &b);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
}

Test(ewma, stays_close_to_the_oracle_and_rarely_moves_under_constant_noise)
{
    /* Two devices: no policy that fixes the split before the frame does better than 1.028 on average; three: 1.04. */
    struct summary two = summarise("ewma", &pair);
    cr_assert_leq(two.excess, 1.04, "%.4f", two.excess);
    cr_assert_leq(two.late_changes, 3, "%.1f", two.late_changes);
    struct summary three = summarise("ewma", &office);
    cr_assert_leq(three.excess, 1.05, "%.4f", three.excess);
    cr_assert_leq(three.late_changes, 3, "%.1f", three.late_changes);
    struct model lagging = office;
    lagging.lag = 2;
    struct summary late = summarise("ewma", &lagging);
    cr_assert_leq(late.excess, 1.05, "%.4f", late.excess);
    cr_assert_leq(late.late_changes, 3, "%.1f", late.late_changes);
}

Test(ewma, loses_less_than_one_per_cent_without_noise)
{
    struct model quiet = office;
    quiet.sigma = 0;
    simulate("ewma", &quiet, FRAMES, 0, &outcome);
    cr_assert_leq(outcome.excess, 1.01, "%.4f", outcome.excess);
    cr_assert_eq(outcome.late_changes, 0);
}

Test(ewma, converges_within_ten_frames_on_two_devices_with_a_threefold_ratio)
{
    for (uint32_t lag = 0; lag <= 2; lag++) {
        for (uint32_t warm = 0; warm < 2; warm++) {
            struct model m = pair;
            m.lag = lag;
            m.no_warmup = !warm;
            for (uint32_t seed = 0; seed < SEEDS; seed++) {
                simulate("ewma", &m, 60, seed, &outcome);
                uint32_t frame = settled(&outcome, 0, 60, 10, 1.06);
                cr_assert_leq(frame, 10, "lag %u, warm-up %u, seed %u: settled at %u", lag, warm, seed, frame);
            }
            m.sigma = 0;
            simulate("ewma", &m, 60, 0, &outcome);
            uint32_t frame = settled(&outcome, 0, 60, 10, 1.02);
            cr_assert_leq(frame, 3 + lag, "lag %u, warm-up %u: settled at %u", lag, warm, frame);
        }
    }
}

Test(ewma, follows_a_threefold_step_in_a_few_frames_in_both_directions)
{
    struct model m = office;
    m.step_device = 2;
    m.step_factor = 3;
    m.step_from = 100;
    m.step_to = 200;
    for (uint32_t lag = 0; lag <= 2; lag += 2) {
        m.lag = lag;
        uint32_t slowest = 0;
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            simulate("ewma", &m, 300, seed, &outcome);
            uint32_t slow = settled(&outcome, 100, 200, 5, 1.12) - 100;
            uint32_t fast = settled(&outcome, 200, 300, 5, 1.12) - 200;
            slowest = slow > slowest ? slow : slowest;
            slowest = fast > slowest ? fast : slowest;
        }
        cr_log_info("lag %u: at most %u frames after a step", lag, slowest);
        cr_assert_leq(slowest, 8 + 3 * lag, "lag %u: %u frames", lag, slowest);
    }
    cr_assert_leq(summarise("ewma", &m).excess, 1.08);
}

Test(ewma, does_not_move_for_one_outlier)
{
    const struct cox_policy *policy = cox_policy_find("ewma");
    const struct cox_sched_device devices[] = {{true, 1, 8000000}, {true, 1, 8000000}};
    struct cox_sched_view view = {.rows = 800, .granule = 8, .device_count = 2, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    random_begin(5);
    for (uint32_t frame = 0; frame < 60; frame++) {
        view.frame = frame;
        split_into(policy, state, &view, &split);
        if (frame >= 30)
            cr_assert_eq(split.reason, COX_REASON_KEPT, "frame %u", frame);
        observe(policy, state, frame, 0, rows_of(&split, 0), 1e4 * rows_of(&split, 0) * random_jitter(0.02));
        observe(policy, state, frame, 1, rows_of(&split, 1),
                1e4 * rows_of(&split, 1) * (frame == 40 ? 50 : random_jitter(0.02)));
    }
    free(state);
}

Test(ewma, survives_outliers_in_one_band_of_a_hundred)
{
    struct model m = office;
    m.outliers = 0.01;
    struct summary ewma = summarise("ewma", &m), last = summarise("last-frame", &m);
    cr_assert_lt(ewma.excess, last.excess); /* most of the excess is the outliers themselves: no split avoids it */
    cr_assert_leq(ewma.late_changes, 8, "%.1f", ewma.late_changes);
}

Test(ewma, leaves_a_split_that_is_slower_than_the_best_device_alone)
{
    struct model m = {
        .count = 2, .fixed_ns = {60e3, 250e3}, .ns_per_row = {9e3, 4.5e3}, .sigma = 0.05, .corunning = 1.9};
    struct summary ewma = summarise("ewma", &m), last = summarise("last-frame", &m);
    cr_assert_leq(ewma.excess, 1.04, "%.4f", ewma.excess);
    cr_assert_geq(last.excess, 1.2); /* the model is one where it matters */
}

Test(ewma, leaves_out_a_device_whose_fixed_cost_is_too_high_and_probes_it)
{
    struct model m = office;
    m.fixed_ns[2] = 9e6;
    struct summary ewma = summarise("ewma", &m), mean = summarise("mean10", &m);
    cr_assert_leq(ewma.excess, 1.07, "%.4f", ewma.excess);
    cr_assert_geq(mean.excess, 1.2);
    simulate("ewma", &m, FRAMES, 1, &outcome);
    uint32_t probes = 0;
    for (uint32_t frame = 100; frame < FRAMES; frame++)
        probes += outcome.ratio[frame] > 1.3;
    cr_assert_geq(probes, 1);
    cr_assert_leq(probes, 6);
}

Test(ewma, takes_a_device_back_after_it_was_too_slow_for_one_granule)
{
    struct model m = pair;
    m.step_device = 1;
    m.step_factor = 2000;
    m.step_from = 50;
    m.step_to = 90;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        simulate("ewma", &m, 300, seed, &outcome);
        uint32_t back = settled(&outcome, 90, 300, 10, 1.1);
        cr_assert_leq(back, 90 + 80, "seed %u: back at frame %u", seed, back);
    }
}

Test(ewma, redistributes_at_once_when_a_device_leaves_and_when_it_is_back)
{
    const struct cox_policy *policy = cox_policy_find("ewma");
    struct cox_sched_device devices[] = {{true, 1, 10000000}, {true, 1, 10000000}, {true, 1, 10000000}};
    struct cox_sched_view view = {.rows = 900, .granule = 4, .device_count = 3, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    for (uint32_t frame = 0; frame < 30; frame++) {
        view.frame = frame;
        devices[1].usable = frame < 10 || frame >= 20;
        split_into(policy, state, &view, &split);
        if (frame == 10 || frame == 20)
            cr_assert_eq(split.reason, COX_REASON_DEVICES);
        cr_assert_eq(rows_of(&split, 1) > 0, devices[1].usable);
        for (uint32_t d = 0; d < 3; d++)
            if (rows_of(&split, d) > 0)
                observe(policy, state, frame, d, rows_of(&split, d), 11e3 * rows_of(&split, d));
    }
    cr_assert_leq(abs((int)rows_of(&split, 1) - 300), 8);
    free(state);
}

Test(ewma, adds_up_several_bands_of_one_device_in_a_frame)
{
    const struct cox_policy *policy = cox_policy_find("ewma");
    const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}};
    struct cox_sched_view view = {.rows = 400, .granule = 1, .device_count = 2, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    for (uint32_t frame = 0; frame < 12; frame++) {
        view.frame = frame;
        split_into(policy, state, &view, &split);
        uint32_t n = rows_of(&split, 0);
        observe(policy, state, frame, 0, n / 4, 3e4 * n * 0.5); /* uneven, but 30 us a row together */
        observe(policy, state, frame, 1, rows_of(&split, 1), 1e4 * rows_of(&split, 1));
        observe(policy, state, frame, 0, n - n / 4, 3e4 * n * 0.5);
    }
    cr_assert_leq(abs((int)rows_of(&split, 0) - 100), 1, "%u rows", rows_of(&split, 0));
    free(state);
}

/* The table of docs/internals/scheduling.md. */
Test(ewma, is_no_worse_than_the_simple_policies_on_any_model)
{
    struct model lagging = office, step = office, corunning = pair, dear = office, outliers = office;
    lagging.lag = 2;
    step.step_device = 2;
    step.step_factor = 3;
    step.step_from = 100;
    step.step_to = 200;
    corunning = (struct model){
        .count = 2, .fixed_ns = {60e3, 250e3}, .ns_per_row = {9e3, 4.5e3}, .sigma = 0.05, .corunning = 1.9};
    dear.fixed_ns[2] = 9e6;
    outliers.outliers = 0.01;
    const struct {
        const char *name;
        const struct model *model;
    } models[] = {{"two devices", &pair},
                  {"three devices", &office},
                  {"two frames late", &lagging},
                  {"a step of three", &step},
                  {"co-running costs", &corunning},
                  {"one to be left out", &dear},
                  {"one per cent outliers", &outliers}};
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        cr_log_info("%s:", models[i].name);
        struct summary ewma = summarise("ewma", models[i].model), last = summarise("last-frame", models[i].model),
                       mean = summarise("mean10", models[i].model);
        cr_assert_leq(ewma.excess, last.excess + 0.002, "%s", models[i].name);
        cr_assert_leq(ewma.excess, mean.excess + 0.005, "%s", models[i].name);
    }
}

/* --- the other policies --- */

Test(last_frame, balances_after_one_frame)
{
    const struct cox_policy *policy = cox_policy_find("last-frame");
    const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}};
    struct cox_sched_view view = {.rows = 1000, .granule = 10, .device_count = 2, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 0), 500);
    observe(policy, state, 0, 0, 500, 4e6);
    observe(policy, state, 0, 1, 500, 1e6);
    view.frame = 1;
    split_into(policy, state, &view, &split);
    ASSERT_VALUES(IS(rows_of(&split, 0), 200), IS(split.predicted_ns, 1600000));
    free(state);
}

Test(mean10, follows_the_formula_of_kernel_times_and_floors_to_sixteen_rows)
{
    const struct cox_policy *policy = cox_policy_find("mean10");
    const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}};
    struct cox_sched_view view = {.rows = 1080, .granule = 8, .device_count = 2, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    split_into(policy, state, &view, &split);
    double mean = 0;
    for (uint32_t frame = 0; frame < 25; frame++) {
        double share = rows_of(&split, 0) / 1080.0;
        double t1 = share * (frame < 12 ? 3e7 : 1e7), t2 = (1 - share) * 1e7;
        double wanted = t2 * share / (t1 * (1 - share) + t2 * share);
        mean = frame == 0 ? wanted : frame < 12 ? 0.25 : frame < 22 ? 0.25 + 0.025 * (frame - 11) : 0.5;
        cr_assert_float_eq(wanted, frame < 12 ? 0.25 : 0.5, 1e-9);
        for (uint32_t d = 0; d < 2; d++) { /* wall times that would say something else */
            struct cox_measurement m = {.frame = frame,
                                        .device = d,
                                        .rows = rows_of(&split, d),
                                        .wall_ns = 100000000,
                                        .kernel_ns = (uint64_t)(d == 0 ? t1 : t2)};
            policy->observe(state, &m);
        }
        view.frame = frame + 1;
        split_into(policy, state, &view, &split);
        int floored = (int)(mean * 1080) / 16 * 16;
        cr_assert(rows_of(&split, 0) == (uint32_t)floored || rows_of(&split, 0) == (uint32_t)floored - 16,
                  "frame %u: %u rows, %d expected (one step less by rounding at most)", frame, rows_of(&split, 0),
                  floored);
    }
    free(state);
}

Test(mean10, uses_wall_times_of_a_device_without_a_profile)
{
    const struct cox_policy *policy = cox_policy_find("mean10");
    const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}};
    struct cox_sched_view view = {.rows = 1600, .granule = 1, .device_count = 2, .devices = devices};
    void *state = start(policy, &view, NULL);
    struct cox_split split;
    split_into(policy, state, &view, &split);
    observe(policy, state, 0, 0, 800, 4e6);
    observe(policy, state, 0, 1, 800, 1e6);
    split_into(policy, state, &view, &split);
    cr_assert_leq(abs((int)rows_of(&split, 0) - 320), 16);
    free(state);
}

Test(left_out_devices, are_probed_with_a_growing_pause)
{
    static const char *const measuring[] = {"ewma", "last-frame", "mean10"};
    const struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}};
    for (uint32_t p = 0; p < 3; p++) {
        const struct cox_policy *policy = cox_policy_find(measuring[p]);
        struct cox_sched_view view = {.rows = 640, .granule = 8, .min_band_rows = 20, .device_count = 2};
        view.devices = devices;
        void *state = start(policy, &view, NULL);
        struct cox_split split;
        uint32_t probes = 0, last = 0, pause = 0;
        for (uint32_t frame = 0; frame < 4000; frame++) {
            view.frame = frame;
            split_into(policy, state, &view, &split);
            uint32_t rows = rows_of(&split, 1);
            if (split.reason == COX_REASON_PROBE) {
                cr_assert_eq(rows, 24, "%s", policy->name);
                cr_assert_geq(frame - last, pause, "%s: frame %u", policy->name, frame);
                pause = probes++ ? frame - last : 0;
                last = frame;
            }
            observe(policy, state, frame, 0, 640 - rows, 1e4 * (640 - rows));
            if (rows > 0)
                observe(policy, state, frame, 1, rows, 1e9 + 1e8 * rows);
        }
        cr_assert_geq(probes, 5, "%s: %u probes", policy->name, probes);
        cr_assert_leq(probes, 9, "%s: %u probes", policy->name, probes);
        free(state);
    }
}

static const struct cox_sched_device four[] = {{true, 1, 0}, {true, 1, 0}, {true, 1, 0}, {true, 1, 0}};

Test(static_policy, keeps_the_given_ratios_to_the_nearest_granule)
{
    const struct cox_policy *policy = cox_policy_find("static");
    const struct cox_sched_view view = {.rows = 1080, .granule = 8, .device_count = 4, .devices = four};
    const double ratios[] = {0.1, 0.0, 0.333, 0.567};
    void *state = start(policy, &view, &(struct cox_policy_options){.ratios = ratios, .ratio_count = 4});
    struct cox_split split;
    for (uint32_t frame = 0; frame < 5; frame++) {
        split_into(policy, state, &view, &split);
        cr_assert_eq(split.reason, COX_REASON_GIVEN);
        cr_assert_eq(rows_of(&split, 0), 112); /* 108 lies halfway */
        cr_assert_eq(rows_of(&split, 1), 0);
        cr_assert_eq(rows_of(&split, 2), 464 - 112); /* 0.433 * 1080 = 467.6 */
        cr_assert_eq(rows_of(&split, 3), 1080 - 464);
    }
    free(state);
    state = start(policy, &view, NULL);
    split_into(policy, state, &view, &split);
    for (uint32_t d = 0; d < 4; d++)
        cr_assert_leq(abs((int)rows_of(&split, d) - 270), 8);
    free(state);
}

Test(static_policy, gives_the_share_of_a_device_that_left_to_the_others_in_proportion)
{
    const struct cox_policy *policy = cox_policy_find("static");
    struct cox_sched_device devices[] = {{true, 1, 0}, {true, 1, 0}, {true, 1, 0}};
    const struct cox_sched_view view = {.rows = 1000, .granule = 1, .device_count = 3, .devices = devices};
    const double ratios[] = {0.2, 0.5, 0.3};
    void *state = start(policy, &view, &(struct cox_policy_options){.ratios = ratios, .ratio_count = 3});
    struct cox_split split;
    devices[1].usable = false;
    split_into(policy, state, &view, &split);
    ASSERT_VALUES(IS(split.reason, COX_REASON_DEVICES), IS(rows_of(&split, 0), 400), IS(rows_of(&split, 2), 600));
    free(state);
    const double all_on_one[] = {0, 1, 0};
    state = start(policy, &view, &(struct cox_policy_options){.ratios = all_on_one, .ratio_count = 3});
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 0), 500);
    free(state);
}

Test(static_policy, refuses_ratios_that_are_not_shares_of_one)
{
    const struct cox_policy *policy = cox_policy_find("static");
    const struct cox_sched_view view = {.rows = 100, .granule = 1, .device_count = 3, .devices = four};
    static const double bad[][3] = {{0.5, 0.5, 0.5}, {0.3, 0.3, 0.3},  {1.2, -0.2, 0},
                                    {NAN, 0.5, 0.5}, {INFINITY, 0, 0}, {0, 0, 0}};
    static const double thirds[] = {0.333, 0.333, 0.333};
    char memory[1024];
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct cox_policy_options options = {.ratios = bad[i], .ratio_count = 3};
        memset(memory, 0, sizeof memory);
        cr_assert_eq(policy->init(memory, &view, &options), COX_E_INVALID, "case %u", i);
    }
    cr_assert_eq(policy->init(memory, &view, &(struct cox_policy_options){.ratios = thirds, .ratio_count = 2}),
                 COX_E_INVALID);
    cr_assert_eq(policy->init(memory, &view, &(struct cox_policy_options){.ratios = thirds, .ratio_count = 3}), COX_OK);
}

Test(single, uses_the_device_asked_for_or_the_fastest_one_and_a_substitute_meanwhile)
{
    const struct cox_policy *policy = cox_policy_find("single");
    struct cox_sched_device devices[] = {{true, 9, 3000}, {true, 1, 1000}, {true, 1, 2000}};
    const struct cox_sched_view view = {.rows = 100, .granule = 16, .device_count = 3, .devices = devices};
    struct cox_split split;
    void *state = start(policy, &view, NULL);
    split_into(policy, state, &view, &split);
    ASSERT_VALUES(IS(rows_of(&split, 1), 100), IS(split.reason, COX_REASON_SINGLE), IS(split.predicted_ns, 1000));
    devices[1].usable = false;
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 2), 100);
    devices[2].solo_ns = 0; /* not all were measured: hints */
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 0), 100);
    free(state);

    devices[1].usable = true;
    state = start(policy, &view, &(struct cox_policy_options){.device = 3});
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 2), 100);
    devices[2].usable = false;
    split_into(policy, state, &view, &split);
    ASSERT_VALUES(IS(rows_of(&split, 2), 0), IS(split.reason, COX_REASON_DEVICES));
    devices[2].usable = true;
    split_into(policy, state, &view, &split);
    cr_assert_eq(rows_of(&split, 2), 100);
    free(state);

    char memory[256] = {0};
    cr_assert_eq(policy->init(memory, &view, &(struct cox_policy_options){.device = 4}), COX_E_INVALID);
}
