/* The policy `adaptive`: its splits are valid for any observations, and near the best ones on a small model of
 * devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_jitter.h"
#include "unit/sched/policy_at_work.h"
#include <math.h>

/* --- the list --- */

Test(adaptive, is_the_default)
{
    cr_assert_eq(cox_policy_find(NULL), cox_policy_find("adaptive"));
}

/* --- any observations --- */

/* Request rows of the pool, as any device at any time. */
static void request_anything(const uint64_t *absurd)
{
    struct cox_progress progress[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view.device_count; d++)
        progress[d] = (struct cox_progress){random_index(3) ? random_index(view.rows + 1) : 0, random_index(view.rows),
                                            absurd[random_index(8)]};
    const struct cox_chunk_request request = {.device = random_index(view.device_count),
                                              .first_row = split.pool_first_row,
                                              .rows = split.pool_rows,
                                              .elapsed_ns = absurd[random_index(8)],
                                              .last = random_index(2),
                                              .progress = progress};
    struct cox_chunk chunk = {0};
    policy->assign(state, &view, &request, &chunk);
    cr_assert(chunk.rows > 0 || !request.last);
    cr_assert_leq(chunk.rows, request.rows);
    cr_assert(chunk.rows == request.rows || chunk.rows % view.row_alignment == 0);
}

Test(adaptive, gives_valid_splits_under_random_views_and_absurd_measurements, .timeout = 600)
{
    static const uint64_t absurd[] = {0, 1, 2, 1000, 1000000, 1000000000, UINT64_MAX / 2, UINT64_MAX};
    random_begin(4711);
    for (uint32_t run = 0; run < 400; run++) {
        view = (struct cox_sched_view){.device_count = 1 + random_index(run % 8 == 0 ? COX_DEVICES_MAX : 5),
                                       .devices = devices,
                                       .rows = 1 + random_index(run % 3 == 0 ? 40 : 5000),
                                       .in_flight = random_index(4),
                                       .pool = run % 4 != 0,
                                       .shadow = run % 3 != 0};
        view.row_alignment = 1 + random_index(run % 5 == 0 ? view.rows + 3 : 20); /* sometimes more than the frame */
        if (run % 6 == 0)
            view.min_band_rows = random_index(view.rows + 10);
        for (uint32_t d = 0; d < view.device_count; d++)
            devices[d] = (struct cox_sched_device){true, random_index(4) ? random_unit() * 100 : 1e300,
                                                   random_index(3) ? absurd[random_index(8)] : 0};
        struct cox_policy_options options = {.objective = run % 7 == 0 ? COX_OBJECTIVE_ENERGY
                                                                       : COX_OBJECTIVE_THROUGHPUT,
                                             .deadline_ns = absurd[random_index(8)]};
        begin("adaptive", &options);
        if (run % 5 == 1) {
            struct cox_device_profile profiles[COX_DEVICES_MAX];
            for (uint32_t d = 0; d < view.device_count; d++)
                profiles[d] = (struct cox_device_profile){random_index(3),
                                                          (double)absurd[random_index(8)],
                                                          random_index(5) ? random_unit() * 1e6 : NAN,
                                                          random_index(5) ? random_unit() * 1e5 : INFINITY,
                                                          (double)absurd[random_index(8)],
                                                          random_unit()};
            policy->load_profile(state, &view, profiles);
        }
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
            view.deadline_ns = random_index(3) ? absurd[random_index(8)] : random_index(100000000);
            split_frame();
            cr_assert(split.pool_rows == 0 || view.deadline_ns > 0);
            if (split.pool_rows > 0)
                request_anything(absurd);
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
                policy->observe(state, &m);
            }
            struct cox_frame_measurement done = {.frame = view.frame,
                                                 .wall_ns = absurd[random_index(8)],
                                                 .period_ns = absurd[random_index(8)],
                                                 .latency_ns = absurd[random_index(8)],
                                                 .deadline_ns = view.deadline_ns,
                                                 .joules = random_index(2) ? -1 : random_unit() * 10};
            if (random_index(4))
                policy->observe_frame(state, &done);
        }
        struct cox_device_profile profiles[COX_DEVICES_MAX];
        policy->save_profile(state, &view, profiles);
        for (uint32_t d = 0; d < view.device_count; d++)
            cr_assert(isfinite(profiles[d].fixed_ns) && isfinite(profiles[d].ns_per_row) && profiles[d].frames >= 0 &&
                      profiles[d].share >= 0 && profiles[d].share <= 1);
    }
}

/* --- a model of devices --- */

enum { DEVICES = 3 };

struct model {
    uint32_t count;
    double launch_ns[DEVICES], row_ns[DEVICES];
    double sigma;
    double noise[DEVICES]; /* more than `sigma`; the chance of a band is the sum of both */
    double corunning;      /* factor on every time in frames on which several devices work; 0 = 1 */
    struct step step;
    double heavy; /* factor on the second quarter of the rows; 0 = 1 */
    uint32_t outlier_frame, outlier_device;
    bool no_shadow, no_solo;
};

static const struct model pair = {.count = 2, .launch_ns = {60e3, 250e3}, .row_ns = {18e3, 9e3}, .sigma = 0.05};

static const struct model *model;     /* the model in use */
static double frame_ns, frame_joules; /* of the last frame; the test sets the joules */
static uint32_t last_device;          /* of the last frame: the one that ended last */
static uint32_t done_rows[DEVICES];   /* in the last frame */

static uint8_t row_device[8192]; /* 1 + the device that had the row last; 0 = no device has had it */

/* Time for the rows of a band that come from another device. */
static double moving_ns(const struct cox_band *band)
{
    double ns = 0;
    for (uint32_t row = band->first_row; row < band->first_row + band->rows; row++) {
        if (row_device[row] && row_device[row] != band->device + 1)
            ns += view.move_ns;
        row_device[row] = (uint8_t)(band->device + 1);
    }
    return ns;
}

static double rows_cost(const struct model *m, uint32_t first_row, uint32_t rows, uint32_t frame_rows)
{
    if (!(m->heavy > 0))
        return rows;
    double cost = 0;
    for (uint32_t row = first_row; row < first_row + rows; row++)
        cost += 4 * row >= frame_rows && 2 * row < frame_rows ? m->heavy : 1;
    return cost;
}

static double launch_ns(const struct cox_band *band)
{
    const struct model *m = model;
    double ns = m->launch_ns[band->device] +
                m->row_ns[band->device] * rows_cost(m, band->first_row, band->rows, view.rows);
    ns *= step_at(&m->step, band->device, view.frame);
    return ns;
}

static void run_begin_with(uint64_t seed, const struct model *m, const struct cox_policy_options *options)
{
    random_begin(seed);
    model = m;
    frame_joules = -1;
    memset(row_device, 0, sizeof row_device);
    see(1080, 8, m->count);
    view.pool = true;
    view.shadow = !m->no_shadow;
    view.deadline_ns = options ? options->deadline_ns : 0;
    for (uint32_t d = 0; d < m->count; d++)
        devices[d].single_device_ns = m->no_solo ? 0 : (uint64_t)launch_ns(&(struct cox_band){d, 0, view.rows});
    begin("adaptive", options);
}

static void run_begin(uint64_t seed, const struct model *m)
{
    run_begin_with(seed, m, NULL);
}

static double jittered_ns(const struct cox_band *band)
{
    double ns = launch_ns(band) * random_jitter(model->sigma);
    if (model->outlier_frame > 0 && view.frame == model->outlier_frame && band->device == model->outlier_device)
        ns *= 5;
    return ns;
}

/* Hand out the rows of the pool. `end_ns`: when each device is free. */
static void hand_out(double *end_ns)
{
    bool declined[DEVICES] = {false};
    double begin_ns[DEVICES] = {0};
    uint32_t under_way[DEVICES], first_row = split.pool_first_row;
    for (uint32_t d = 0; d < view.device_count; d++)
        under_way[d] = rows_of(d);
    for (uint32_t left = split.pool_rows; left > 0;) {
        struct cox_progress progress[DEVICES] = {{0}};
        uint32_t free = view.device_count, asking = 0;
        for (uint32_t d = 0; d < view.device_count; d++) {
            asking += !declined[d];
            if (!declined[d] && (free == view.device_count || end_ns[d] < end_ns[free]))
                free = d;
        }
        for (uint32_t d = 0; d < view.device_count; d++)
            if (end_ns[d] > end_ns[free])
                progress[d] = (struct cox_progress){under_way[d], 0, (uint64_t)(end_ns[free] - begin_ns[d])};
        const struct cox_chunk_request request = {.device = free,
                                                  .first_row = first_row,
                                                  .rows = left,
                                                  .elapsed_ns = (uint64_t)end_ns[free],
                                                  .last = asking == 1,
                                                  .progress = progress};
        struct cox_chunk chunk = {0};
        policy->assign(state, &view, &request, &chunk);
        cr_assert(chunk.rows <= left && (chunk.rows > 0 || !request.last));
        const struct cox_band band = {.device = free, .first_row = first_row, .rows = chunk.rows};
        declined[free] = chunk.rows == 0;
        if (declined[free])
            continue;
        const double ns = jittered_ns(&band);
        band_took(&band, ns, COX_MEASURED_CHUNK);
        begin_ns[free] = end_ns[free];
        under_way[free] = chunk.rows;
        end_ns[free] += ns;
        done_rows[free] += chunk.rows;
        first_row += chunk.rows;
        left -= chunk.rows;
    }
}

static void run_frame(void)
{
    double corunning = 1, end_ns = 0, ends_ns[DEVICES] = {0};
    split_frame();
    cr_assert(split.pool_rows == 0 || view.deadline_ns > 0);
    if (model->corunning > 0 && (split.band_count > 1 || split.shadow.rows > 0))
        corunning = model->corunning;
    memset(done_rows, 0, sizeof done_rows);
    for (uint32_t i = 0; i < split.band_count; i++) {
        const struct cox_band *band = &split.bands[i];
        double ns = jittered_ns(band) * corunning;
        if (model->noise[band->device] > 0)
            ns *= random_jitter(model->noise[band->device]);
        ns += moving_ns(band);
        done_rows[band->device] += band->rows;
        band_took(band, ns, 0);
        if (ns >= fmax(ends_ns[0], fmax(ends_ns[1], ends_ns[2])))
            last_device = band->device;
        ends_ns[band->device] = ns;
    }
    hand_out(ends_ns);
    for (uint32_t d = 0; d < view.device_count; d++)
        end_ns = fmax(end_ns, ends_ns[d]);
    if (split.shadow.rows > 0)
        band_took(&split.shadow, launch_ns(&split.shadow) * corunning * random_jitter(model->sigma),
                  COX_MEASURED_SHADOW);
    struct cox_frame_measurement done = {.frame = view.frame,
                                         .wall_ns = (uint64_t)end_ns,
                                         .period_ns = (uint64_t)end_ns,
                                         .latency_ns = (uint64_t)end_ns,
                                         .deadline_ns = view.deadline_ns,
                                         .joules = frame_joules};
    policy->observe_frame(state, &done);
    frame_ns = end_ns;
    view.frame++;
}

/* Mean frame time over frames from `from` up to but not including `to`. */
static double mean_ns(uint32_t from, uint32_t to)
{
    double sum = 0;
    while (view.frame < from)
        run_frame();
    while (view.frame < to) {
        run_frame();
        sum += frame_ns;
    }
    return sum / (to - from);
}

/* The best fixed split without jitter. */
static double best_ns(const struct model *m)
{
    struct cox_cost costs[DEVICES];
    uint32_t rows[DEVICES];
    for (uint32_t d = 0; d < m->count; d++)
        costs[d] = (struct cox_cost){true, m->launch_ns[d], m->row_ns[d]};
    return cox_waterfill(1080, 8, 0, costs, m->count, rows);
}

/* --- quality of its splits --- */

Test(adaptive, is_deterministic)
{
    const size_t bytes = cox_policy_find("adaptive")->state_bytes(2);
    run_begin(3, &pair);
    mean_ns(0, 100);
    const struct cox_split first = split;
    const double first_ns = frame_ns;
    void *first_state = malloc(bytes);
    memcpy(first_state, state, bytes);
    run_begin(3, &pair);
    mean_ns(0, 100);
    cr_assert_eq(memcmp(&first, &split, sizeof split), 0);
    cr_assert_eq(first_ns, frame_ns);
    cr_assert_eq(memcmp(first_state, state, bytes), 0);
    free(first_state);
}

Test(adaptive, is_as_good_as_the_best_fixed_split_under_noise_and_rarely_moves)
{
    run_begin(17, &pair);
    mean_ns(0, 20);
    struct cox_split before = split;
    uint32_t moves = 0;
    double sum = 0;
    for (uint32_t frame = 20; frame < 400; frame++) {
        run_frame();
        sum += frame_ns;
        moves += split.band_count != before.band_count ||
                 memcmp(split.bands, before.bands, before.band_count * sizeof before.bands[0]) != 0;
        before = split;
    }
    /* two bands with jitter s cost 1 + 0.564 s under any policy */
    cr_assert_lt(sum / 380 / best_ns(&pair), 1.035, "%.4f", sum / 380 / best_ns(&pair));
    cr_assert_leq(moves, 60, "%u", moves);
}

Test(adaptive, is_at_its_split_after_three_frames_and_says_what_it_expects)
{
    struct model m = pair;
    m.sigma = 0;
    run_begin(1, &m);
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_FIRST);
    cr_assert_gt(split.predicted_ns, 0);
    for (uint32_t frame = 1; frame < 4; frame++)
        run_frame();
    cr_assert_lt(frame_ns / best_ns(&m), 1.02, "%.4f", frame_ns / best_ns(&m));
    cr_assert_float_eq((double)split.predicted_ns, frame_ns, 0.03 * frame_ns);
    for (uint32_t i = 0; i < split.band_count; i++)
        cr_assert_gt(split.device_ns[split.bands[i].device], 0);
}

/* The slow device has a third of the speed, so it should end last in a third of the frames. With equal mean ends it
 * would in half of them. */
Test(adaptive, a_noisy_device_ends_last_as_often_as_its_share_of_the_speed)
{
    struct model m = {.count = 2, .launch_ns = {60e3, 60e3}, .row_ns = {18e3, 9e3}, .noise = {0.2, 0.01}};
    uint32_t last = 0, frames = 0;
    run_begin(23, &m);
    for (mean_ns(0, 200); view.frame < 2200; frames++) {
        run_frame();
        last += last_device == 0;
    }
    cr_assert_gt(last, 0.26 * frames, "%u of %u", last, frames);
    cr_assert_lt(last, 0.41 * frames, "%u of %u", last, frames);
}

/* How often the split changes until frame `to`. */
static uint32_t moves_until(uint32_t to)
{
    uint32_t moves = 0;
    struct cox_split before = split;
    while (view.frame < to) {
        run_frame();
        moves += split.band_count != before.band_count ||
                 memcmp(split.bands, before.bands, before.band_count * sizeof before.bands[0]) != 0;
        before = split;
    }
    return moves;
}

Test(adaptive, rows_that_stay_move_once_the_losses_exceed_the_cost_of_moving_them)
{
    struct model m = pair, slow = pair;
    m.sigma = 0;
    m.step = (struct step){1, 1.3, 50, 10000};
    slow.launch_ns[1] *= 1.3;
    slow.row_ns[1] *= 1.3;
    run_begin(5, &m);
    view.move_ns = 20 * pair.row_ns[1];
    mean_ns(0, 50);
    cr_assert_eq(moves_until(54), 0);
    cr_assert_geq(moves_until(200), 1);
    cr_assert_lt(frame_ns / best_ns(&slow), 1.03, "%.4f", frame_ns / best_ns(&slow));
    cr_assert_eq(moves_until(600), 0);
}

Test(adaptive, rows_that_stay_do_not_move_for_noise)
{
    run_begin(17, &pair);
    mean_ns(0, 20);
    const uint32_t free_moves = moves_until(400);
    run_begin(17, &pair);
    view.move_ns = 20 * pair.row_ns[1];
    mean_ns(0, 20);
    const uint32_t moves = moves_until(400);
    cr_assert_lt(4 * moves, free_moves, "%u moves, %u if moving costs nothing", moves, free_moves);
}

/* Rows that stay on devices, and content that differs from row to row, need an order that does not change. */
Test(adaptive, devices_keep_their_order_if_rows_are_no_multiple_of_the_alignment)
{
    struct model m = pair;
    m.row_ns[0] = m.row_ns[1];
    m.launch_ns[0] = m.launch_ns[1];
    run_begin(61, &m);
    view.rows = 1085;
    for (uint32_t frame = 0; frame < 300; frame++) {
        run_frame();
        for (uint32_t i = 1; i < split.band_count; i++)
            cr_assert_gt(split.bands[i].device, split.bands[i - 1].device, "frame %u", frame);
    }
}

Test(adaptive, finds_its_way_without_warm_up_times)
{
    struct model m = pair;
    m.no_solo = true;
    run_begin(23, &m);
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_FIRST);
    cr_assert_eq(split.predicted_ns, 0); /* no prediction is possible */
    double ns = mean_ns(3, 100);
    cr_assert_lt(ns / best_ns(&m), 1.06, "%.4f", ns / best_ns(&m));
}

Test(adaptive, begins_with_hints_where_no_time_is_known)
{
    see(1024, 16, 2);
    devices[0].hint = 3;
    begin("adaptive", NULL);
    split_frame();
    cr_assert_eq(split.reason, COX_REASON_FIRST);
    cr_assert_float_eq((double)rows_of(0) / rows_of(1), 3, 0.3, "%u rows and %u", rows_of(0), rows_of(1));
}

Test(adaptive, follows_a_threefold_step_within_four_frames_both_ways)
{
    for (uint32_t device = 0; device < 2; device++) {
        struct model m = pair, slow = pair;
        m.step = (struct step){device, 3, 50, 100};
        slow.launch_ns[device] *= 3;
        slow.row_ns[device] *= 3;
        for (uint32_t seed = 1; seed <= 10; seed++) {
            run_begin(seed, &m);
            mean_ns(0, 54);
            double after = mean_ns(54, 58) / best_ns(&slow);
            cr_assert_lt(after, 1.1, "device %u, seed %u: %.3f", device, seed, after);
            mean_ns(99, 104);
            after = mean_ns(104, 108) / best_ns(&pair);
            cr_assert_lt(after, 1.1, "device %u, seed %u, back: %.3f", device, seed, after);
        }
    }
}

Test(adaptive, is_back_at_its_split_two_frames_after_an_outlier)
{
    struct model m = pair;
    m.sigma = 0.02;
    m.outlier_frame = 60;
    m.outlier_device = 1;
    run_begin(29, &m);
    mean_ns(0, 60);
    const uint32_t before = rows_of(1);
    mean_ns(60, 63); /* the first one is the outlier */
    cr_assert_float_eq((double)rows_of(1), before, 0.1 * before, "%u, before %u", rows_of(1), before);
}

Test(adaptive, leaves_out_a_useless_device_and_probes_it_by_shadows)
{
    struct model m = pair;
    m.launch_ns[0] = 12e6; /* the other device needs less than that for the whole frame */
    run_begin(31, &m);
    uint32_t shadows = 0, used = 0;
    for (uint32_t frame = 0; frame < 600; frame++) {
        run_frame();
        used += frame > 5 && done_rows[0] > 0;
        shadows += split.shadow.rows > 0;
        cr_assert(split.shadow.rows == 0 || split.shadow.device == 0);
    }
    cr_assert_leq(used, 3, "%u", used);
    cr_assert(shadows >= 3 && shadows <= 8, "%u", shadows);
}

Test(adaptive, probes_by_a_small_band_where_there_are_no_shadows)
{
    struct model m = pair;
    m.launch_ns[0] = 12e6;
    m.no_shadow = true;
    run_begin(37, &m);
    uint32_t probes = 0;
    for (uint32_t frame = 0; frame < 600; frame++) {
        run_frame();
        probes += frame > 5 && split.reason == COX_REASON_PROBE && rows_of(0) == 8;
    }
    cr_assert(probes >= 3 && probes <= 8, "%u", probes);
}

Test(adaptive, takes_a_device_back_when_a_shadow_shows_that_it_is_worth_it)
{
    struct model m = pair;
    m.step = (struct step){0, 400, 20, 60};
    run_begin(41, &m);
    mean_ns(0, 200);
    cr_assert_gt(done_rows[0], 200);
}

Test(adaptive, gives_whole_frames_to_one_device_where_corunning_costs_more_than_it_brings)
{
    struct model m = pair;
    m.corunning = 1.9;
    run_begin(43, &m);
    double ns = mean_ns(0, 400), solo = (double)devices[1].single_device_ns;
    cr_assert_lt(ns / solo, 1.05, "%.4f", ns / solo);
    cr_assert_eq(done_rows[1], 1080);
}

/* The first frame of a trial takes several times as long, because its rows come from the other device. */
Test(adaptive, finds_the_better_device_set_where_rows_must_move_for_a_trial)
{
    struct model m = pair;
    m.corunning = 1.7;
    run_begin(43, &m);
    view.move_ns = 4 * pair.row_ns[1];
    mean_ns(0, 300);
    const double ns = mean_ns(300, 600), solo = (double)devices[1].single_device_ns;
    cr_assert_lt(ns / solo, 1.05, "%.4f", ns / solo);
}

Test(adaptive, never_tries_fewer_devices_where_corunning_costs_nothing)
{
    struct model m = pair;
    run_begin(47, &m);
    for (uint32_t frame = 0; frame < 400; frame++) {
        run_frame();
        cr_assert_neq(split.reason, COX_REASON_TRIAL);
        cr_assert_neq(split.reason, COX_REASON_SUBSET);
    }
}

Test(adaptive, balances_rows_that_are_not_alike)
{
    struct model m = pair;
    m.heavy = 5;
    m.sigma = 0.02;
    run_begin(53, &m);
    double ns = mean_ns(40, 140);
    struct model flat = m; /* the work of twice the rows: 1 + (5 - 1) / 4 */
    flat.row_ns[0] *= 2;
    flat.row_ns[1] *= 2;
    cr_assert_lt(ns / best_ns(&flat), 1.04, "%.4f", ns / best_ns(&flat));
}

Test(adaptive, redistributes_at_once_when_a_device_leaves_and_when_it_is_back)
{
    run_begin(59, &pair);
    mean_ns(0, 40);
    devices[0].usable = false;
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_DEVICES);
    cr_assert_eq(done_rows[1], 1080);
    mean_ns(41, 60);
    devices[0].usable = true;
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_DEVICES);
    cr_assert_gt(done_rows[0], 200);
    cr_assert_lt(frame_ns / best_ns(&pair), 1.15, "%.3f", frame_ns / best_ns(&pair));
}

Test(adaptive, begins_where_an_earlier_session_ended)
{
    run_begin(61, &pair);
    mean_ns(0, 100);
    struct cox_device_profile profiles[DEVICES];
    policy->save_profile(state, &view, profiles);
    for (uint32_t d = 0; d < 2; d++)
        cr_assert(profiles[d].frames > 50 && profiles[d].share > 0 && profiles[d].single_device_ns > 0);

    struct model cold = pair;
    cold.no_solo = true;
    run_begin(61, &cold);
    policy->load_profile(state, &view, profiles);
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_PROFILE);
    cr_assert_gt(rows_of(1), rows_of(0));
    cr_assert_lt(frame_ns / best_ns(&pair), 1.06, "%.4f", frame_ns / best_ns(&pair));
}

Test(adaptive, ignores_a_memory_of_nothing)
{
    run_begin(1, &pair);
    const struct cox_device_profile nothing[DEVICES] = {{0}};
    policy->load_profile(state, &view, nothing);
    run_frame();
    cr_assert_eq(split.reason, COX_REASON_FIRST);
}

Test(adaptive, follows_a_frame_of_another_size)
{
    run_begin(67, &pair);
    mean_ns(0, 50);
    double before = frame_ns;
    view.rows = 2160;
    run_frame();
    cr_assert_float_eq(frame_ns / before, 2, 0.3, "%.3f", frame_ns / before);
}

/* --- latency --- */

/* Rows of device 1 in the third frame, after it took twice as long for the first. Two frames are in flight, and
 * both devices are equally fast. */
static uint32_t rows_after_a_late_band(enum cox_objective objective)
{
    see(1080, 8, 2);
    view.in_flight = 2;
    devices[0].single_device_ns = devices[1].single_device_ns = 20000000;
    begin("adaptive", &(struct cox_policy_options){.objective = objective});
    for (view.frame = 0; view.frame < 2; view.frame++)
        split_frame();
    view.frame = 0;
    took(0, 540, 10000000);
    took(1, 540, 20000000);
    struct cox_frame_measurement done = {
        .frame = 0, .wall_ns = 20000000, .period_ns = 20000000, .latency_ns = 20000000, .joules = -1};
    policy->observe_frame(state, &done);
    view.frame = 2;
    split_frame();
    return rows_of(1);
}

Test(adaptive, makes_up_for_all_of_a_head_start_where_latency_counts)
{
    const uint32_t throughput = rows_after_a_late_band(COX_OBJECTIVE_THROUGHPUT);
    const uint32_t latency = rows_after_a_late_band(COX_OBJECTIVE_LATENCY);
    cr_assert_lt(latency + 40, throughput, "%u, %u", latency, throughput);
}

/* --- energy --- */

/* Device 0 uses 60 W while it works, device 1 uses 8 W. */
static void run_energy(bool meter)
{
    run_begin_with(71, &pair, &(struct cox_policy_options){.objective = COX_OBJECTIVE_ENERGY, .deadline_ns = 20000000});
    for (uint32_t frame = 0; frame < 1200; frame++) {
        run_frame();
        /* The policy gets these joules with the next frame; they change little from frame to frame. */
        if (meter)
            frame_joules = (60 * pair.row_ns[0] * done_rows[0] + 8 * pair.row_ns[1] * done_rows[1]) * 1e-9;
    }
}

Test(adaptive, saves_energy_within_a_deadline_where_there_is_a_meter)
{
    run_energy(true);
    cr_assert_lt(done_rows[0], 100, "%u rows on the device that uses 60 W", done_rows[0]);
}

Test(adaptive, is_after_time_where_there_is_no_meter)
{
    run_energy(false);
    cr_assert_gt(done_rows[0], 250);
    cr_assert_lt(frame_ns / best_ns(&pair), 1.1);
}

/* --- deadlines --- */

static void run_begin_until(uint64_t seed, const struct model *m, uint64_t deadline_ns)
{
    run_begin_with(seed, m, &(struct cox_policy_options){.deadline_ns = deadline_ns});
}

Test(adaptive, leaves_out_helpers_where_one_device_meets_the_deadline)
{
    run_begin_until(73, &pair, 20000000); /* the second device alone takes 10 ms */
    mean_ns(0, 40);
    cr_assert_eq(done_rows[1], 1080);
    for (uint32_t frame = 40; frame < 300; frame++) {
        run_frame();
        cr_assert_eq(done_rows[1], 1080, "frame %u", frame);
    }
}

Test(adaptive, keeps_helpers_where_no_device_is_sure_to_meet_the_deadline)
{
    run_begin_until(73, &pair, 12000000);
    for (uint32_t frame = 0; frame < 300; frame++) {
        run_frame();
        cr_assert_gt(done_rows[0], 100, "frame %u", frame);
    }
}

Test(adaptive, takes_helpers_back_after_a_missed_deadline)
{
    struct model m = pair;
    m.step = (struct step){1, 2.5, 100, 101};
    run_begin_until(79, &m, 20000000);
    mean_ns(0, 100);
    cr_assert_eq(done_rows[1], 1080);
    run_frame(); /* 25 ms */
    for (uint32_t frame = 0; frame < 100; frame++) {
        run_frame();
        cr_assert_gt(done_rows[0], 100, "%u frames after the miss", frame);
    }
}

Test(adaptive, hands_out_rows_on_demand_so_that_a_late_device_delays_a_frame_less)
{
    struct model m = pair;
    m.row_ns[0] *= 2; /* frames take 13 ms */
    m.row_ns[1] *= 2;
    m.outlier_frame = 60;
    m.outlier_device = 0;
    run_begin(83, &m);
    const double fixed = mean_ns(60, 61) / mean_ns(61, 80);
    run_begin_until(83, &m, 24000000);
    mean_ns(0, 60);
    cr_assert_gt(split.pool_rows, 0);
    const double on_demand = mean_ns(60, 61) / mean_ns(61, 80);
    cr_assert_gt(fixed, 4, "%.2f", fixed);
    cr_assert_lt(on_demand, 3.2, "%.2f, with fixed bands %.2f", on_demand, fixed);
}

Test(adaptive, splits_short_frames_in_advance_in_spite_of_a_deadline)
{
    run_begin_until(89, &pair, 12000000); /* they take 7 ms */
    for (uint32_t frame = 0; frame < 100; frame++) {
        run_frame();
        cr_assert_eq(split.pool_rows, 0);
    }
}
