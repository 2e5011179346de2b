/* `adaptive`: valid splits and grants whatever it is told, and what it promises on a small model of devices whose free
 * time is offered rows of the pool.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_jitter.h"
#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct cox_policy *adaptive(void)
{
    const struct cox_policy *policy = cox_policy_find("adaptive");
    cr_assert_not_null(policy);
    return policy;
}

static void *start(const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    void *state = calloc(1, adaptive()->state_bytes(view->device_count));
    cr_assert_not_null(state);
    cr_assert_eq(adaptive()->init(state, view, options), COX_OK);
    return state;
}

static void split_into(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    char why[200];
    memset(out, 0, sizeof *out);
    cr_assert_eq(adaptive()->split(state, view, out), COX_OK);
    cr_assert_eq(cox_split_check(out, view, why, sizeof why), COX_OK, "frame %llu: %s", (unsigned long long)view->frame,
                 why);
}

static uint32_t rows_of(const struct cox_split *split, uint32_t device)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < split->band_count; i++)
        rows += split->bands[i].device == device ? split->bands[i].rows : 0;
    return rows;
}

/* --- the list --- */

Test(adaptive, is_the_default)
{
    cr_assert_eq(cox_policy_find(NULL), adaptive());
}

/* --- whatever it is told --- */

static bool is_grant(const struct cox_sched_view *view, const struct cox_offer *offer, const struct cox_grant *grant)
{
    if (grant->rows == 0)
        return !offer->last;
    uint64_t end = (uint64_t)offer->first_row + grant->rows;
    return grant->rows <= offer->rows && (end % view->granule == 0 || end == (uint64_t)offer->first_row + offer->rows);
}

/* One frame in which devices end in any order and offers come with any progress. */
static void hostile_offers(void *state, const struct cox_sched_view *view, const struct cox_split *split)
{
    uint32_t first = split->pool_first_row, rows = split->pool_rows;
    for (uint32_t tries = 0; rows > 0 && tries < 400; tries++) {
        struct cox_progress progress[COX_DEVICES_MAX];
        for (uint32_t d = 0; d < view->device_count; d++)
            progress[d] = (struct cox_progress){random_index(3) ? random_index(view->rows) : 0,
                                                random_index(view->rows),
                                                random_index(4) ? random_index(1000000000) : UINT64_MAX};
        struct cox_offer offer = {.device = random_index(view->device_count),
                                  .first_row = first,
                                  .rows = rows,
                                  .elapsed_ns = random_index(100000000),
                                  .last = random_index(5) == 0,
                                  .progress = progress};
        struct cox_grant grant = {0};
        adaptive()->next(state, view, &offer, &grant);
        cr_assert(is_grant(view, &offer, &grant), "%u of %u rows from %u, granule %u, last %d", grant.rows, rows, first,
                  view->granule, offer.last);
        first += grant.rows;
        rows -= grant.rows;
    }
}

Test(adaptive, gives_valid_splits_and_grants_under_random_views_and_absurd_measurements, .timeout = 600)
{
    static const uint64_t absurd[] = {0, 1, 2, 1000, 1000000, 1000000000, UINT64_MAX / 2, UINT64_MAX};
    random_begin(4711);
    for (uint32_t run = 0; run < 400; run++) {
        struct cox_sched_device devices[COX_DEVICES_MAX];
        struct cox_sched_view view = {.device_count = 1 + random_index(run % 8 == 0 ? COX_DEVICES_MAX : 5),
                                      .devices = devices,
                                      .rows = 1 + random_index(run % 3 == 0 ? 40 : 5000),
                                      .in_flight = random_index(4),
                                      .pool = run % 4 != 0,
                                      .shadow = run % 3 != 0};
        view.granule = 1 + random_index(run % 5 == 0 ? view.rows + 3 : 20); /* up to more than the frame */
        if (run % 6 == 0)
            view.min_band_rows = random_index(view.rows + 10);
        for (uint32_t d = 0; d < view.device_count; d++)
            devices[d] = (struct cox_sched_device){true, random_index(4) ? random_unit() * 100 : 1e300,
                                                   random_index(3) ? absurd[random_index(8)] : 0};
        struct cox_policy_options options = {.objective = run % 7 == 0 ? COX_OBJECTIVE_ENERGY : COX_OBJECTIVE_TIME,
                                             .deadline_ns = absurd[random_index(8)]};
        void *state = start(&view, &options);
        if (run % 5 == 1) {
            struct cox_device_profile profiles[COX_DEVICES_MAX];
            for (uint32_t d = 0; d < view.device_count; d++)
                profiles[d] = (struct cox_device_profile){random_index(3),
                                                          (double)absurd[random_index(8)],
                                                          random_index(5) ? random_unit() * 1e6 : NAN,
                                                          random_index(5) ? random_unit() * 1e5 : INFINITY,
                                                          (double)absurd[random_index(8)],
                                                          random_unit()};
            adaptive()->load_profile(state, &view, profiles);
        }
        struct cox_split split;
        for (uint32_t frame = 0; frame < 90; frame++) {
            view.frame = random_index(50) ? frame : frame * (uint64_t)1000003;
            if (random_index(12) == 0)
                view.rows = 1 + random_index(5000);
            if (random_index(8) == 0) {
                uint32_t d = random_index(view.device_count);
                devices[d].usable = !devices[d].usable;
                bool none = true;
                for (uint32_t i = 0; i < view.device_count; i++)
                    none &= !devices[i].usable;
                devices[d].usable |= none;
            }
            split_into(state, &view, &split);
            hostile_offers(state, &view, &split);
            for (uint32_t i = 0; i < split.band_count + 3; i++) {
                const struct cox_band *band = &split.bands[i % split.band_count];
                struct cox_measurement m = {.frame = random_index(9) ? view.frame : random_index(UINT32_MAX),
                                            .device = random_index(30) ? band->device : random_index(100),
                                            .first_row = random_index(20) ? band->first_row : random_index(UINT32_MAX),
                                            .rows = random_index(20) ? band->rows : random_index(UINT32_MAX),
                                            .wall_ns = random_index(2) ? absurd[random_index(8)]
                                                                       : random_index(100000000),
                                            .kernel_ns = absurd[random_index(8)],
                                            .flags = random_index(8)};
                adaptive()->observe(state, &m);
            }
            struct cox_frame_measurement done = {.frame = view.frame,
                                                 .wall_ns = absurd[random_index(8)],
                                                 .period_ns = absurd[random_index(8)],
                                                 .joules = random_index(2) ? -1 : random_unit() * 10};
            if (random_index(4))
                adaptive()->observe_frame(state, &done);
        }
        struct cox_device_profile profiles[COX_DEVICES_MAX];
        adaptive()->save_profile(state, &view, profiles);
        for (uint32_t d = 0; d < view.device_count; d++)
            cr_assert(isfinite(profiles[d].fixed_ns) && isfinite(profiles[d].ns_per_row) && profiles[d].frames >= 0 &&
                      profiles[d].share >= 0 && profiles[d].share <= 1);
        free(state);
    }
}

/* --- a model of devices --- */

enum { DEVICES = 3 };

struct model {
    uint32_t count;
    double first_ns[DEVICES], launch_ns[DEVICES], row_ns[DEVICES];
    double sigma;
    double corunning;     /* factor on every time in frames that several devices work in; 0 = 1 */
    uint32_t step_device; /* takes step_factor times as long from frame step_from to before step_to */
    uint32_t step_from, step_to;
    double step_factor;
    double heavy; /* factor on the second quarter of the rows; 0 = 1 */
    uint32_t outlier_frame, outlier_device;
    bool no_pool, no_shadow, no_solo;
};

static const struct model pair = {
    .count = 2, .first_ns = {60e3, 250e3}, .launch_ns = {12e3, 30e3}, .row_ns = {18e3, 9e3}, .sigma = 0.05};

struct run {
    const struct model *model;
    struct cox_sched_device devices[DEVICES];
    struct cox_sched_view view;
    void *state;
    struct cox_split split;
    double ns;                   /* of the last frame */
    uint32_t done_rows[DEVICES]; /* in it */
    uint32_t launches;
    double joules;
};

static double rows_cost(const struct model *m, uint32_t first_row, uint32_t rows, uint32_t frame_rows)
{
    if (!(m->heavy > 0))
        return rows;
    double cost = 0;
    for (uint32_t row = first_row; row < first_row + rows; row++)
        cost += 4 * row >= frame_rows && 2 * row < frame_rows ? m->heavy : 1;
    return cost;
}

static double launch_ns(const struct run *run, const struct cox_band *band, bool further)
{
    const struct model *m = run->model;
    double ns = (further ? m->launch_ns : m->first_ns)[band->device] +
                m->row_ns[band->device] * rows_cost(m, band->first_row, band->rows, run->view.rows);
    if (m->step_factor > 0 && band->device == m->step_device && run->view.frame >= m->step_from &&
        run->view.frame < m->step_to)
        ns *= m->step_factor;
    return ns;
}

static void run_begin(struct run *run, const struct model *model, const struct cox_policy_options *options)
{
    *run = (struct run){.model = model,
                        .view = {.rows = 1080,
                                 .granule = 8,
                                 .device_count = model->count,
                                 .in_flight = 1,
                                 .pool = !model->no_pool,
                                 .shadow = !model->no_shadow},
                        .joules = -1};
    run->view.devices = run->devices;
    for (uint32_t d = 0; d < model->count; d++) {
        struct cox_band all = {d, 0, run->view.rows};
        uint64_t solo_ns = model->no_solo ? 0 : (uint64_t)launch_ns(run, &all, false);
        run->devices[d] = (struct cox_sched_device){true, 1, solo_ns};
    }
    run->state = start(&run->view, options);
}

static void measure(struct run *run, const struct cox_band *band, double ns, uint32_t flags)
{
    struct cox_measurement m = {.frame = run->view.frame,
                                .device = band->device,
                                .first_row = band->first_row,
                                .rows = band->rows,
                                .wall_ns = (uint64_t)ns,
                                .flags = flags};
    adaptive()->observe(run->state, &m);
}

/* One frame: bands, offers to whoever is free, measurements. */
static void run_frame(struct run *run)
{
    const struct model *m = run->model;
    struct cox_split *split = &run->split;
    split_into(run->state, &run->view, split);
    struct cox_band under_way[DEVICES] = {{0}};
    double since[DEVICES] = {0}, end[DEVICES] = {0};
    bool further[DEVICES] = {false}, declined[DEVICES] = {false};
    double corunning = 1;
    if (m->corunning > 0 && (split->band_count > 1 || split->shadow.rows > 0))
        corunning = m->corunning;
    memset(run->done_rows, 0, sizeof run->done_rows);
    run->launches = split->band_count;
    for (uint32_t i = 0; i < split->band_count; i++) {
        uint32_t d = split->bands[i].device;
        under_way[d] = split->bands[i];
        end[d] = launch_ns(run, &under_way[d], false) * corunning * random_jitter(m->sigma);
        if (m->outlier_frame > 0 && run->view.frame == m->outlier_frame && d == m->outlier_device)
            end[d] *= 5;
    }
    uint32_t first = split->pool_first_row, rows = split->pool_rows;
    double now = 0;
    for (;;) {
        for (uint32_t d = 0; d < m->count && rows > 0; d++) {
            if (under_way[d].rows > 0 || declined[d] || !run->devices[d].usable)
                continue;
            struct cox_progress progress[DEVICES] = {{0}};
            bool last = true;
            for (uint32_t i = 0; i < m->count; i++) {
                last &= i == d || (under_way[i].rows == 0 && (declined[i] || !run->devices[i].usable));
                if (under_way[i].rows > 0)
                    progress[i] = (struct cox_progress){under_way[i].rows, under_way[i].first_row,
                                                        (uint64_t)(now - since[i])};
            }
            struct cox_offer offer = {.device = d,
                                      .first_row = first,
                                      .rows = rows,
                                      .elapsed_ns = (uint64_t)now,
                                      .last = last,
                                      .progress = progress};
            struct cox_grant grant = {0};
            adaptive()->next(run->state, &run->view, &offer, &grant);
            cr_assert(is_grant(&run->view, &offer, &grant));
            if (grant.rows == 0) {
                declined[d] = true;
                continue;
            }
            under_way[d] = (struct cox_band){d, first, grant.rows};
            further[d] = rows_of(split, d) > 0 || run->done_rows[d] > 0;
            since[d] = now;
            end[d] = now + launch_ns(run, &under_way[d], further[d]) * corunning * random_jitter(m->sigma);
            first += grant.rows;
            rows -= grant.rows;
            run->launches++;
        }
        uint32_t next = m->count;
        for (uint32_t d = 0; d < m->count; d++)
            if (under_way[d].rows > 0 && (next == m->count || end[d] < end[next]))
                next = d;
        if (next == m->count)
            break;
        now = end[next];
        run->done_rows[next] += under_way[next].rows;
        measure(run, &under_way[next], now - since[next], further[next] ? COX_MEASURED_CHUNK : 0);
        under_way[next].rows = 0;
    }
    cr_assert_eq(rows, 0);
    if (split->shadow.rows > 0)
        measure(run, &split->shadow, launch_ns(run, &split->shadow, false) * corunning * random_jitter(m->sigma),
                COX_MEASURED_SHADOW);
    struct cox_frame_measurement done = {
        .frame = run->view.frame, .wall_ns = (uint64_t)now, .period_ns = (uint64_t)now, .joules = run->joules};
    adaptive()->observe_frame(run->state, &done);
    run->ns = now;
    run->view.frame++;
}

static void run_end(struct run *run)
{
    free(run->state);
}

/* Mean frame time over frames from `from` up to but not including `to`. */
static double mean_ns(struct run *run, uint32_t from, uint32_t to)
{
    double sum = 0;
    while (run->view.frame < from)
        run_frame(run);
    while (run->view.frame < to) {
        run_frame(run);
        sum += run->ns;
    }
    return sum / (to - from);
}

/* The best fixed split without jitter. */
static double best_ns(const struct model *m)
{
    struct cox_cost costs[DEVICES];
    uint32_t rows[DEVICES];
    for (uint32_t d = 0; d < m->count; d++)
        costs[d] = (struct cox_cost){true, m->first_ns[d], m->row_ns[d]};
    return cox_waterfill(1080, 8, 0, costs, m->count, rows);
}

/* --- what it promises --- */

Test(adaptive, is_deterministic)
{
    struct run a, b;
    random_begin(3);
    run_begin(&a, &pair, NULL);
    for (uint32_t frame = 0; frame < 100; frame++)
        run_frame(&a);
    random_begin(3);
    run_begin(&b, &pair, NULL);
    for (uint32_t frame = 0; frame < 100; frame++)
        run_frame(&b);
    cr_assert_eq(memcmp(&a.split, &b.split, sizeof a.split), 0);
    cr_assert_eq(a.ns, b.ns);
    cr_assert_eq(memcmp(a.state, b.state, adaptive()->state_bytes(2)), 0);
    run_end(&a);
    run_end(&b);
}

Test(adaptive, beats_every_fixed_split_under_noise_and_rarely_moves)
{
    struct run run;
    random_begin(17);
    run_begin(&run, &pair, NULL);
    mean_ns(&run, 0, 20);
    struct cox_split before = run.split;
    uint32_t moves = 0;
    double sum = 0;
    for (uint32_t frame = 20; frame < 400; frame++) {
        run_frame(&run);
        sum += run.ns;
        moves += run.split.band_count != before.band_count ||
                 memcmp(run.split.bands, before.bands, before.band_count * sizeof before.bands[0]) != 0;
        before = run.split;
    }
    /* two bands with jitter s cost 1 + 0.564 s */
    cr_assert_lt(sum / 380 / best_ns(&pair), 1.02, "%.4f", sum / 380 / best_ns(&pair));
    cr_assert_leq(moves, 20, "%u", moves);
    run_end(&run);
}

Test(adaptive, needs_no_pool)
{
    struct model m = pair;
    m.no_pool = true;
    struct run run;
    random_begin(19);
    run_begin(&run, &m, NULL);
    double ns = mean_ns(&run, 20, 300);
    cr_assert_lt(ns / best_ns(&m), 1.04, "%.4f", ns / best_ns(&m));
    cr_assert_eq(run.split.pool_rows, 0);
    run_end(&run);
}

Test(adaptive, calibrates_in_the_first_frame_and_says_so)
{
    struct model m = pair;
    m.sigma = 0;
    struct run run;
    run_begin(&run, &m, NULL);
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_CALIBRATION);
    cr_assert_gt(run.split.pool_rows, 700);
    cr_assert_gt(run.split.predicted_ns, 0);
    for (uint32_t frame = 1; frame < 3; frame++)
        run_frame(&run);
    cr_assert_lt(run.ns / best_ns(&m), 1.02, "%.4f", run.ns / best_ns(&m));
    cr_assert_float_eq((double)run.split.predicted_ns, run.ns, 0.03 * run.ns);
    for (uint32_t i = 0; i < run.split.band_count; i++)
        cr_assert_gt(run.split.device_ns[run.split.bands[i].device], 0);
    run_end(&run);
}

Test(adaptive, finds_its_way_without_warm_up_times)
{
    struct model m = pair;
    m.no_solo = true;
    struct run run;
    random_begin(23);
    run_begin(&run, &m, NULL);
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_FIRST);
    cr_assert_eq(run.split.predicted_ns, 0); /* there is no time to tell */
    double ns = mean_ns(&run, 3, 100);
    cr_assert_lt(ns / best_ns(&m), 1.03, "%.4f", ns / best_ns(&m));
    run_end(&run);
}

Test(adaptive, follows_a_threefold_step_within_two_frames_both_ways)
{
    for (uint32_t device = 0; device < 2; device++) {
        struct model m = pair, slow = pair;
        m.step_device = device;
        m.step_factor = 3;
        m.step_from = 50;
        m.step_to = 100;
        slow.first_ns[device] *= 3;
        slow.row_ns[device] *= 3;
        for (uint32_t seed = 1; seed <= 10; seed++) {
            struct run run;
            random_begin(seed);
            run_begin(&run, &m, NULL);
            mean_ns(&run, 0, 52);
            double after = mean_ns(&run, 52, 56) / best_ns(&slow);
            cr_assert_lt(after, 1.1, "device %u, seed %u: %.3f", device, seed, after);
            mean_ns(&run, 99, 102);
            after = mean_ns(&run, 102, 106) / best_ns(&pair);
            cr_assert_lt(after, 1.1, "device %u, seed %u, back: %.3f", device, seed, after);
            run_end(&run);
        }
    }
}

Test(adaptive, gives_a_suspected_device_less_for_one_frame_and_is_back_at_its_split)
{
    struct model m = pair;
    m.sigma = 0.02;
    m.outlier_frame = 60;
    m.outlier_device = 1;
    struct run run;
    random_begin(29);
    run_begin(&run, &m, NULL);
    mean_ns(&run, 0, 60);
    struct cox_split before = run.split;
    run_frame(&run); /* the outlier */
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_CHANGED);
    uint32_t smaller = rows_of(&run.split, 1);
    cr_assert_lt(smaller, rows_of(&before, 1) / 2);
    cr_assert_lt(run.ns / best_ns(&m), 1.06, "%.4f", run.ns / best_ns(&m)); /* doubt is cheap */
    run_frame(&run);
    cr_assert_gt(rows_of(&run.split, 1), 2 * smaller, "%u after %u, before %u, reason %s", rows_of(&run.split, 1),
                 smaller, rows_of(&before, 1), cox_reason_text(run.split.reason));
    run_end(&run);
}

Test(adaptive, leaves_out_a_useless_device_and_probes_it_by_shadows_with_growing_pauses)
{
    struct model m = pair;
    m.first_ns[0] = 12e6; /* the other one needs less than that for the whole frame */
    struct run run;
    random_begin(31);
    run_begin(&run, &m, NULL);
    uint32_t shadows = 0;
    uint64_t last = 0, pause = 0;
    for (uint32_t frame = 0; frame < 600; frame++) {
        run_frame(&run);
        if (frame > 5)
            cr_assert_eq(run.done_rows[0], 0, "frame %u", frame);
        if (run.split.shadow.rows == 0)
            continue;
        cr_assert_eq(run.split.shadow.device, 0);
        cr_assert_geq(frame - last, pause);
        pause = shadows++ ? frame - last : 0;
        last = frame;
    }
    cr_assert(shadows >= 3 && shadows <= 8, "%u", shadows);
    run_end(&run);
}

Test(adaptive, probes_by_a_small_band_where_there_are_no_shadows)
{
    struct model m = pair;
    m.first_ns[0] = 12e6;
    m.no_shadow = true;
    struct run run;
    random_begin(37);
    run_begin(&run, &m, NULL);
    uint32_t probes = 0;
    for (uint32_t frame = 0; frame < 600; frame++) {
        run_frame(&run);
        probes += frame > 5 && run.split.reason == COX_REASON_PROBE && rows_of(&run.split, 0) == 8;
    }
    cr_assert(probes >= 3 && probes <= 8, "%u", probes);
    run_end(&run);
}

Test(adaptive, takes_a_device_back_when_a_shadow_shows_that_it_is_worth_it)
{
    struct model m = pair;
    m.step_device = 0;
    m.step_factor = 400;
    m.step_from = 20;
    m.step_to = 60;
    struct run run;
    random_begin(41);
    run_begin(&run, &m, NULL);
    mean_ns(&run, 0, 200);
    cr_assert_gt(run.done_rows[0], 200);
    run_end(&run);
}

Test(adaptive, gives_whole_frames_to_one_device_where_corunning_costs_more_than_it_brings)
{
    struct model m = pair;
    m.corunning = 1.9;
    struct run run;
    random_begin(43);
    run_begin(&run, &m, NULL);
    double ns = mean_ns(&run, 0, 400), solo = (double)run.devices[1].solo_ns;
    cr_assert_lt(ns / solo, 1.01, "%.4f", ns / solo);
    cr_assert_eq(run.done_rows[1], 1080);
    run_end(&run);
}

Test(adaptive, never_tries_fewer_devices_where_corunning_costs_nothing)
{
    struct model m = pair;
    struct run run;
    random_begin(47);
    run_begin(&run, &m, NULL);
    for (uint32_t frame = 0; frame < 400; frame++) {
        run_frame(&run);
        cr_assert_neq(run.split.reason, COX_REASON_TRIAL);
        cr_assert_neq(run.split.reason, COX_REASON_SUBSET);
    }
    run_end(&run);
}

Test(adaptive, learns_which_rows_are_heavy)
{
    struct model m = pair;
    m.heavy = 5;
    m.sigma = 0.02;
    struct run run;
    random_begin(53);
    run_begin(&run, &m, NULL);
    double ns = mean_ns(&run, 40, 140);
    struct model flat = m; /* twice the rows' work: 1 + (5 - 1) / 4 */
    flat.row_ns[0] *= 2;
    flat.row_ns[1] *= 2;
    cr_assert_lt(ns / best_ns(&flat), 1.04, "%.4f", ns / best_ns(&flat));
    run_end(&run);
}

Test(adaptive, redistributes_at_once_when_a_device_leaves_and_when_it_is_back)
{
    struct run run;
    random_begin(59);
    run_begin(&run, &pair, NULL);
    mean_ns(&run, 0, 40);
    run.devices[0].usable = false;
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_DEVICES);
    cr_assert_eq(run.done_rows[1], 1080);
    mean_ns(&run, 41, 60);
    run.devices[0].usable = true;
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_DEVICES);
    cr_assert_gt(run.done_rows[0], 200);
    cr_assert_lt(run.ns / best_ns(&pair), 1.15, "%.3f", run.ns / best_ns(&pair));
    run_end(&run);
}

Test(adaptive, begins_where_an_earlier_session_ended)
{
    struct run run;
    random_begin(61);
    run_begin(&run, &pair, NULL);
    mean_ns(&run, 0, 100);
    struct cox_device_profile profiles[DEVICES];
    adaptive()->save_profile(run.state, &run.view, profiles);
    for (uint32_t d = 0; d < 2; d++)
        cr_assert(profiles[d].frames > 50 && profiles[d].share > 0 && profiles[d].solo_ns > 0);
    run_end(&run);

    struct model cold = pair;
    cold.no_solo = true;
    run_begin(&run, &cold, NULL);
    adaptive()->load_profile(run.state, &run.view, profiles);
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_PROFILE);
    cr_assert_gt(rows_of(&run.split, 1), rows_of(&run.split, 0));
    cr_assert_lt(run.ns / best_ns(&pair), 1.06, "%.4f", run.ns / best_ns(&pair));
    run_end(&run);
}

Test(adaptive, ignores_a_memory_of_nothing)
{
    struct run run;
    run_begin(&run, &pair, NULL);
    const struct cox_device_profile nothing[DEVICES] = {{0}};
    adaptive()->load_profile(run.state, &run.view, nothing);
    run_frame(&run);
    cr_assert_eq(run.split.reason, COX_REASON_CALIBRATION);
    run_end(&run);
}

Test(adaptive, follows_a_frame_of_another_size)
{
    struct run run;
    random_begin(67);
    run_begin(&run, &pair, NULL);
    mean_ns(&run, 0, 50);
    double before = run.ns;
    run.view.rows = 2160;
    run_frame(&run);
    cr_assert_float_eq(run.ns / before, 2, 0.3, "%.3f", run.ns / before);
    run_end(&run);
}

/* --- energy --- */

/* Joules of a frame: watts while a device works. */
static double joules(const struct run *run, double cpu_watts, double gpu_watts)
{
    return (cpu_watts * run->model->row_ns[0] * run->done_rows[0] +
            gpu_watts * run->model->row_ns[1] * run->done_rows[1]) *
           1e-9;
}

static void run_energy(const struct cox_policy_options *options, bool meter, struct run *run)
{
    random_begin(71);
    run_begin(run, &pair, options);
    for (uint32_t frame = 0; frame < 1200; frame++) {
        run_frame(run);
        run->joules = meter ? joules(run, 60, 8) : -1; /* of the frame before, told with the next: steady enough */
    }
}

Test(adaptive, saves_energy_within_a_deadline_where_there_is_a_meter)
{
    struct cox_policy_options options = {.objective = COX_OBJECTIVE_ENERGY, .deadline_ns = 20000000};
    struct run run;
    run_energy(&options, true, &run);
    cr_assert_lt(run.done_rows[0], 100, "%u rows on the device that burns 60 W", run.done_rows[0]);
    run_end(&run);
}

Test(adaptive, is_after_time_where_there_is_no_meter)
{
    struct cox_policy_options options = {.objective = COX_OBJECTIVE_ENERGY, .deadline_ns = 20000000};
    struct run run;
    run_energy(&options, false, &run);
    cr_assert_gt(run.done_rows[0], 250);
    cr_assert_lt(run.ns / best_ns(&pair), 1.1);
    run_end(&run);
}
