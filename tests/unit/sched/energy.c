/* The energy chooser on a simulated machine. Each device's time and power are linear in its rows, and the meter
 * counts in ticks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/energy.h"
#include "unit/sched/policy_at_work.h"
#include <math.h>

enum { ROWS = 1080, GRANULE = 8, LAG_MAX = 16 };

struct device {
    double fixed_ns, ns_per_row;
    double watts; /* while it computes */
};

struct machine {
    uint32_t count, in_flight;
    struct device devices[COX_DEVICES_MAX];
    bool gone[COX_DEVICES_MAX];
    double idle_watts;
    double noise;       /* relative deviation of each band's time */
    double tick_ns;     /* of the meter; 0 = exact */
    double contention;  /* factor on every band's time if two or more devices have rows; 0 = 1 */
    double deadline_ns; /* 0 = none */
    bool full; /* as many frames as possible are in flight, each behind the earlier ones; otherwise one at a time */
    uint32_t min_band;

    struct cox__energy energy;
    uint64_t frame;
    uint64_t random;
    double now_ns, used_joules, shown_joules, shown_ns;
    struct cox_frame_measurement late[LAG_MAX]; /* not observed yet */
    uint32_t late_count;

    /* What happened in the last frames. */
    struct cox__energy_choice choice;
    uint32_t rows[COX_DEVICES_MAX];
    double frame_ns, frame_joules; /* the true values */
    double end_ns[LAG_MAX];        /* of the last frames */
    double latency_ns;
    double (*reading)(uint64_t frame, double joules);
};

static double uniform(struct machine *m)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (double)((m->random * 0x2545F4914F6CDD1Dull) >> 11) / 9007199254740992.0;
}

/* Mean 1, nearly normal distribution. */
static double jitter(struct machine *m)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(m);
    return 1 + m->noise * (sum - 6);
}

static struct machine started(struct machine m)
{
    m.random = 0x9E3779B97F4A7C15ull;
    cox__energy_init(&m.energy);
    return m;
}

/* True time and energy of these rows, without jitter. */
static void price(const struct machine *m, const uint32_t *rows, double *ns, double *joules)
{
    uint32_t busy = 0;
    *ns = *joules = 0;
    for (uint32_t d = 0; d < m->count; d++)
        busy += rows[d] > 0;
    for (uint32_t d = 0; d < m->count; d++) {
        if (rows[d] == 0)
            continue;
        double t = m->devices[d].fixed_ns + m->devices[d].ns_per_row * rows[d];
        t *= busy > 1 && m->contention > 0 ? m->contention : 1;
        *ns = fmax(*ns, t);
        *joules += m->devices[d].watts * t * 1e-9;
    }
    *joules += m->idle_watts * *ns * 1e-9;
}

static void look_at(const struct machine *m)
{
    for (uint32_t d = 0; d < m->count; d++)
        devices[d] = (struct cox_sched_device){.usable = !m->gone[d], .hint = 1};
    view = (struct cox_sched_view){.frame = m->frame,
                                   .rows = ROWS,
                                   .row_alignment = GRANULE,
                                   .min_band_rows = m->min_band,
                                   .device_count = m->count,
                                   .devices = devices,
                                   .in_flight = m->in_flight,
                                   .deadline_ns = (uint64_t)m->deadline_ns};
}

static void observe_oldest(struct machine *m)
{
    cox__energy_observe(&m->energy, &m->late[0]);
    m->late_count--;
    memmove(m->late, m->late + 1, m->late_count * sizeof m->late[0]);
}

/* Run one frame, and do with the chooser's answer what the policy does. */
static void run_frame(struct machine *m)
{
    look_at(m);
    struct cox_cost together[COX_DEVICES_MAX], alone[COX_DEVICES_MAX];
    double noise[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < m->count; d++) {
        alone[d] = (struct cox_cost){
            .usable = !m->gone[d], .fixed_ns = m->devices[d].fixed_ns, .ns_per_row = m->devices[d].ns_per_row};
        together[d] = alone[d];
        together[d].fixed_ns *= m->contention > 0 ? m->contention : 1;
        together[d].ns_per_row *= m->contention > 0 ? m->contention : 1;
        noise[d] = m->noise;
    }
    uint32_t own[COX_DEVICES_MAX] = {0};
    double own_ns = cox_waterfill(ROWS, GRANULE, m->min_band, together, m->count, own);
    struct cox__energy_costs costs = {.together = together, .alone = alone, .noise = noise, .own_ns = own_ns};

    cox__energy_choose(&m->energy, &view, &costs, &m->choice);
    memcpy(m->rows, m->choice.own ? own : m->choice.rows, sizeof m->rows);
    if (!m->choice.own) {
        uint64_t sum = 0, off_row_alignment = 0;
        for (uint32_t d = 0; d < m->count; d++) {
            cr_assert(m->choice.rows[d] == 0 || !m->gone[d]);
            cr_assert(m->choice.rows[d] == 0 || m->choice.rows[d] >= (m->min_band ? m->min_band : GRANULE) ||
                      m->choice.rows[d] == ROWS);
            sum += m->choice.rows[d];
            off_row_alignment += m->choice.rows[d] % GRANULE != 0;
        }
        cr_assert_eq(sum, ROWS, "frame %lu has %lu rows", (unsigned long)m->frame, (unsigned long)sum);
        cr_assert_leq(off_row_alignment, 1);
    }

    price(m, m->rows, &m->frame_ns, &m->frame_joules);
    double factor = 0;
    for (uint32_t d = 0; d < m->count; d++)
        if (m->rows[d] > 0)
            factor = fmax(factor, jitter(m));
    m->frame_ns *= factor;
    m->frame_joules *= factor;
    m->now_ns += m->frame_ns;
    m->used_joules += m->frame_joules;
    const uint32_t in_flight = m->in_flight ? m->in_flight : 1;
    m->latency_ns = m->full ? m->now_ns - m->end_ns[m->frame % in_flight] : m->frame_ns;
    m->end_ns[m->frame % in_flight] = m->now_ns;
    double before = m->shown_joules;
    if (m->tick_ns == 0) {
        m->shown_joules = m->used_joules;
    } else if (m->now_ns - m->shown_ns >= m->tick_ns) {
        m->shown_joules = m->used_joules; /* compared with it, the unread part of a tick is small */
        m->shown_ns = m->now_ns;
    }
    struct cox_frame_measurement seen = {.frame = m->frame,
                                         .wall_ns = (uint64_t)(m->frame_ns * in_flight),
                                         .period_ns = (uint64_t)m->frame_ns,
                                         .latency_ns = (uint64_t)m->latency_ns,
                                         .deadline_ns = (uint64_t)m->deadline_ns,
                                         .joules = m->shown_joules - before};
    if (m->reading)
        seen.joules = m->reading(m->frame, seen.joules);
    m->late[m->late_count++] = seen;
    m->frame++;
    if (m->late_count >= in_flight)
        observe_oldest(m);
}

struct totals {
    double ns, joules; /* mean of a frame */
    uint32_t late;     /* frames that exceeded the deadline */
    uint32_t trials;
};

static struct totals run(struct machine *m, uint32_t frames)
{
    struct totals totals = {0};
    for (uint32_t i = 0; i < frames; i++) {
        run_frame(m);
        totals.ns += m->frame_ns / frames;
        totals.joules += m->frame_joules / frames;
        totals.late += m->deadline_ns > 0 && m->latency_ns > m->deadline_ns;
        totals.trials += m->choice.role == COX__ENERGY_TRIAL;
    }
    return totals;
}

/* The least joules of all splits within the deadline. It tries all splits in steps of the row alignment, for two or
 * three devices. */
static double least_joules(const struct machine *m)
{
    double least = INFINITY;
    for (uint32_t a = 0; a <= ROWS; a += GRANULE)
        for (uint32_t b = 0; a + b <= ROWS; b += GRANULE) {
            uint32_t rows[COX_DEVICES_MAX] = {a, b, ROWS - a - b};
            if (m->count == 2 && rows[2] > 0)
                continue;
            double ns, joules;
            price(m, rows, &ns, &joules);
            if (m->deadline_ns == 0 || ns <= m->deadline_ns)
                least = fmin(least, joules);
        }
    return least;
}

/* `deadline_ns`: 0 = none. */
static struct machine cpu_and_gpu(double deadline_ns)
{
    return started((struct machine){.count = 2,
                                    .in_flight = 2,
                                    .devices = {{60e3, 18e3, 40}, {250e3, 9e3, 12}},
                                    .idle_watts = 5,
                                    .noise = 0.02,
                                    .deadline_ns = deadline_ns});
}

static struct machine three_devices(double deadline_ns)
{
    return started((struct machine){.count = 3,
                                    .in_flight = 2,
                                    .devices = {{60e3, 18e3, 30}, {250e3, 9e3, 12}, {900e3, 4.5e3, 90}},
                                    .idle_watts = 10,
                                    .noise = 0.02,
                                    .deadline_ns = deadline_ns});
}

/* After `learning` frames, the mean of `frames` frames is at most `factor` times the least joules. */
static struct totals run_near_the_least(struct machine *m, uint32_t learning, uint32_t frames, double factor)
{
    run(m, learning);
    struct totals later = run(m, frames);
    cr_assert_lt(later.joules, factor * least_joules(m), "deadline %g: %g J, least %g J", m->deadline_ns, later.joules,
                 least_joules(m));
    return later;
}

/* No frame takes longer than the deadline. */
static void run_in_time(struct machine *m, uint32_t frames)
{
    for (uint32_t f = 0; f < frames; f++) {
        run_frame(m);
        cr_assert_leq(m->frame_ns, m->deadline_ns, "deadline %g, frame %u: %g", m->deadline_ns, f, m->frame_ns);
    }
}

Test(energy, finds_the_device_that_needs_least_without_a_deadline)
{
    struct machine m = cpu_and_gpu(0);
    run_near_the_least(&m, 400, 600, 1.02);
    cr_assert_eq(m.rows[0], 0);
    cr_assert_eq(m.choice.role, COX__ENERGY_LEAST);
}

Test(energy, keeps_all_devices_where_idling_costs_most)
{
    struct machine m = cpu_and_gpu(0);
    m.idle_watts = 300;
    run_near_the_least(&m, 400, 600, 1.02);
    cr_assert(m.choice.own);
    cr_assert_eq(m.choice.role, COX__ENERGY_LEAST);
}

/* 8 ms are too short for the frugal device alone, which needs 9.97 ms, and longer than the balanced split, which
 * needs 6.6 ms. */
Test(energy, fills_the_frugal_device_up_to_the_deadline)
{
    struct machine m = cpu_and_gpu(8e6);
    double ns, balanced;
    uint32_t rows[COX_DEVICES_MAX];
    struct cox_cost costs[] = {{true, 60e3, 18e3}, {true, 250e3, 9e3}};
    cox_waterfill(ROWS, GRANULE, 0, costs, 2, rows);
    price(&m, rows, &ns, &balanced);
    run(&m, 400);
    struct totals later = run(&m, 1000);
    double least = least_joules(&m);
    cr_assert_lt(later.joules, least + 0.5 * (balanced - least), "%g, least %g, balanced %g", later.joules, least,
                 balanced);
    cr_assert_gt(m.rows[1], rows[1]);
    cr_assert_leq(later.late, 10);
}

/* The frugal device alone would be late by 60 rows. That is too few for a band of another device. */
Test(energy, moves_rows_from_a_filled_device_where_the_rest_is_too_short_for_a_band)
{
    struct machine m = cpu_and_gpu(9.43e6);
    m.noise = 0;
    m.min_band = 100;
    run(&m, 1000);
    cr_assert_eq(m.choice.role, COX__ENERGY_LEAST);
    cr_assert(m.rows[0] >= 100 && m.rows[0] < 100 + GRANULE, "%u rows", m.rows[0]);
}

Test(energy, finds_the_least_of_three_devices_whatever_the_deadline)
{
    static const double deadlines[] = {0, 20e6, 11e6, 8e6, 6e6, 5e6};
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        struct machine m = three_devices(deadlines[i]);
        /* Staying three standard deviations below the deadline costs energy. */
        struct totals later = run_near_the_least(&m, 800, 1500, 1.12);
        cr_assert_leq(later.late, 15, "deadline %g: %u frames late", deadlines[i], later.late);
    }
}

Test(energy, never_plans_beyond_the_deadline_where_the_shortest_time_is_within)
{
    static const double deadlines[] = {20e6, 11e6, 8e6, 6e6, 5e6, 4.5e6, 4.3e6};
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        struct machine m = three_devices(deadlines[i]);
        m.noise = 0;
        run_in_time(&m, 3000);
    }
}

Test(energy, splits_for_the_shortest_time_where_nothing_meets_the_deadline)
{
    struct machine m = three_devices(2e6);
    for (uint32_t f = 0; f < 1000; f++) {
        run_frame(&m);
        cr_assert(m.choice.own);
        cr_assert_neq(m.choice.role, COX__ENERGY_TRIAL);
    }
}

Test(energy, follows_a_change_of_power)
{
    struct machine m = cpu_and_gpu(0);
    run(&m, 500);
    cr_assert_eq(m.rows[0], 0);
    m.devices[1].watts = 120;
    run_near_the_least(&m, 300, 300, 1.05);
    cr_assert_eq(m.rows[1], 0);
}

Test(energy, follows_a_change_of_speed_within_the_frame_that_shows_it)
{
    struct machine m = cpu_and_gpu(11e6);
    run(&m, 500);
    cr_assert_eq(m.rows[0], 0, "the frugal device alone meets the deadline");
    m.devices[1].ns_per_row *= 2; /* 19.7 ms alone */
    struct totals now = run(&m, 1);
    cr_assert_eq(now.late, 0);
    struct totals later = run(&m, 300);
    cr_assert_leq(later.late, 3);
    m.devices[1].ns_per_row /= 2;
    run(&m, 300);
    cr_assert_eq(m.rows[0], 0);
}

Test(energy, keeps_the_deadline_that_frames_have_of_their_own)
{
    struct machine m = cpu_and_gpu(0);
    m.noise = 0;
    run(&m, 400);
    cr_assert_gt(m.frame_ns, 8e6, "the frugal device does it all");
    m.deadline_ns = 8e6;
    run_in_time(&m, 400);
    m.deadline_ns = 0;
    run(&m, 400);
    cr_assert_gt(m.frame_ns, 8e6);
}

/* Every eighth frame has 8 ms. That costs nearly as much as 8 ms for every frame, and none is late. */
Test(energy, keeps_the_shortest_of_deadlines_that_take_turns)
{
    struct machine m = cpu_and_gpu(0), strict = cpu_and_gpu(8e6);
    double joules = 0;
    m.noise = 0;
    for (uint32_t f = 0; f < 1400; f++) {
        m.deadline_ns = f % 8 == 7 ? 8e6 : 0;
        run_frame(&m);
        joules += f >= 400 ? m.frame_joules / 1000 : 0;
        cr_assert(f < 8 || m.frame_ns <= 8e6, "frame %u: %g", f, m.frame_ns);
    }
    strict.noise = 0;
    run(&strict, 400);
    cr_assert_lt(joules, 1.01 * run(&strict, 1000).joules);
}

/* The costs say that the deadline can be met, although the device is slower. Only a missed deadline shows it. */
Test(energy, leaves_at_once_when_a_frame_misses_the_deadline)
{
    struct machine m = cpu_and_gpu(11e6);
    run(&m, 500);
    cr_assert_not(m.choice.own);
    struct cox_frame_measurement miss = {.frame = m.late[0].frame,
                                         .wall_ns = 12000000,
                                         .period_ns = 12000000,
                                         .latency_ns = 12000000,
                                         .deadline_ns = (uint64_t)m.deadline_ns,
                                         .joules = 0.1};
    m.late[0] = miss;
    run_frame(&m); /* observes the frame after its split */
    for (int i = 0; i < 4; i++) {
        run_frame(&m);
        cr_assert(m.choice.own, "frame %d after the miss", i);
    }
    run_frame(&m);
    cr_assert_not(m.choice.own);
}

/* The frugal device alone takes 10 ms. Without earlier frames that would be within the deadline. */
Test(energy, holds_the_deadline_against_the_wait_behind_frames_in_flight)
{
    struct machine m = cpu_and_gpu(22.5e6);
    m.in_flight = 3;
    m.full = true;
    run(&m, 1000);
    struct totals full = run(&m, 1000);
    cr_assert_leq(full.late, 20, "%u of 1000 are late", full.late);
    cr_assert_lt(full.ns, 7.5e6);
    m.full = false;
    run(&m, 1000);
    struct totals paced = run(&m, 1000);
    cr_assert_leq(paced.late, 20);
    cr_assert_gt(paced.ns, 9e6, "the bound of %g ms stays", m.energy.bound_ns / 1e6);
    cr_assert_lt(paced.joules, full.joules);
}

/* The count starts at the first frame, before the chooser trusts the meter. */
Test(energy, forgets_a_miss_after_sixty_four_frames_within_the_deadline)
{
    struct machine m = cpu_and_gpu(100e6);
    m.in_flight = 1;
    m.noise = 0;
    m.energy.misses = 2;
    run(&m, 63);
    cr_assert_eq(m.energy.misses, 2);
    run(&m, 1);
    cr_assert_eq(m.energy.misses, 1);
}

/* With 5 % of jitter, a band that ends near enough to the deadline to save energy is sometimes late. */
Test(energy, balances_what_is_saved_against_misses)
{
    struct machine m = cpu_and_gpu(8e6);
    m.noise = 0.05;
    struct totals first = run(&m, 16);
    run(&m, 400);
    struct totals later = run(&m, 4000);
    cr_assert_leq(later.late, 4000 / 50);
    cr_assert_gt(later.late, 0, "the split stays too far from the deadline");
    cr_assert_lt(later.joules, 0.985 * first.joules, "%g J, at first %g J", later.joules, first.joules);
}

Test(energy, trials_become_rare)
{
    struct machine m = three_devices(11e6);
    run(&m, 1000);
    run(&m, 8000);
    struct totals later = run(&m, 4000);
    cr_assert_leq(later.trials, 4000 / 20);
    cr_assert_gt(later.trials, 0);
}

Test(energy, sees_through_a_meter_that_ticks_slower_than_frames)
{
    struct machine m = cpu_and_gpu(0);
    for (uint32_t d = 0; d < 2; d++) {
        m.devices[d].fixed_ns /= 20;
        m.devices[d].ns_per_row /= 20; /* frames of 0.5 ms */
    }
    m.tick_ns = 1e6;
    run_near_the_least(&m, 2000, 2000, 1.05);

    m = cpu_and_gpu(0);
    m.tick_ns = 100e6;
    run_near_the_least(&m, 3000, 3000, 1.05);
}

/* All of these frames use the caller's split. */
static void run_own(struct machine *m, uint32_t frames)
{
    for (uint32_t f = 0; f < frames; f++) {
        run_frame(m);
        cr_assert(m->choice.own);
        cr_assert_eq(m->choice.role, COX__ENERGY_OWN);
    }
}

static double no_reading(uint64_t frame, double joules)
{
    (void)frame, (void)joules;
    return -1;
}

static double nonsense(uint64_t frame, double joules)
{
    (void)joules;
    static const double values[] = {-1, NAN, INFINITY, -INFINITY, 1e300, -0.0};
    return values[frame % (sizeof values / sizeof *values)];
}

static double stops(uint64_t frame, double joules)
{
    return frame < 500 || frame >= 1000 ? joules : -1;
}

static double stands_still(uint64_t frame, double joules)
{
    return frame < 500 || frame >= 1000 ? joules : 0;
}

static double now_and_then(uint64_t frame, double joules)
{
    return frame % 3 == 0 ? -1 : joules;
}

Test(energy, is_the_callers_own_split_without_a_meter)
{
    static double (*const readings[])(uint64_t, double) = {no_reading, nonsense};
    for (int i = 0; i < 2; i++) {
        struct machine m = cpu_and_gpu(0);
        m.reading = readings[i];
        run_own(&m, 500);
    }
}

Test(energy, is_the_callers_own_split_while_the_meter_is_silent)
{
    static double (*const readings[])(uint64_t, double) = {stops, stands_still};
    static const uint32_t waits[] = {40, 200}; /* frames; a second of zeros */
    for (int i = 0; i < 2; i++) {
        struct machine m = cpu_and_gpu(0);
        m.reading = readings[i];
        run(&m, 500);
        cr_assert_not(m.choice.own);
        run(&m, waits[i]);
        run_own(&m, 500 - waits[i]);
        run(&m, 400);
        cr_assert_not(m.choice.own, "the meter is back");
    }
}

Test(energy, gives_a_meter_up_after_sixteen_zeros_that_take_a_second)
{
    struct machine m = cpu_and_gpu(0);
    m.in_flight = 1;
    m.reading = stands_still;
    run(&m, 500);
    m.devices[0].fixed_ns = m.devices[1].fixed_ns = 100e6;
    run(&m, 15);
    cr_assert_gt(m.energy.read_frames, 0);
    run(&m, 1);
    cr_assert_eq(m.energy.read_frames, 0);
}

/* By the time the meter is back, the machine may behave differently. */
Test(energy, begins_with_the_callers_own_split_when_the_meter_is_back)
{
    struct machine m = cpu_and_gpu(0);
    m.reading = stops;
    run(&m, 500);
    cr_assert_eq(m.rows[0], 0, "the GPU alone needs least");
    run(&m, 500);
    m.devices[1].watts = 400;
    do
        run_frame(&m);
    while (m.choice.own && m.frame < 1100);
    cr_assert_not(m.choice.own);
    cr_assert_neq(m.choice.role, COX__ENERGY_LEAST, "what was learned before the silence counts");
}

Test(energy, does_without_single_readings)
{
    struct machine m = cpu_and_gpu(0);
    m.reading = now_and_then;
    run(&m, 600);
    cr_assert_eq(m.rows[0], 0);
}

Test(energy, lets_go_of_a_device_that_is_gone)
{
    struct machine m = three_devices(11e6);
    run(&m, 800);
    m.gone[1] = true;
    run(&m, 800); /* run_frame asserts that it gets no rows */
    m.gone[1] = false;
    run_near_the_least(&m, 1000, 500, 1.1);
    m.gone[0] = m.gone[1] = true;
    run(&m, 100);
    cr_assert(m.choice.own);
}

Test(energy, tries_single_devices_at_their_time_alone)
{
    struct machine m = cpu_and_gpu(10.9e6); /* 9.97 ms alone, 18.9 ms with the others */
    m.contention = 1.9;
    run(&m, 400);
    cr_assert_eq(m.rows[0], 0);
}

Test(energy, does_not_count_forgotten_frames)
{
    struct machine m = cpu_and_gpu(0);
    for (uint32_t f = 0; f < 600; f++) {
        run_frame(&m);
        cox__energy_forget(&m.energy, f);
        cr_assert(m.choice.own, "nothing was measured");
    }
}

Test(energy, is_deterministic)
{
    struct machine a = three_devices(0), b = three_devices(0);
    for (uint32_t f = 0; f < 1000; f++) {
        run_frame(&a);
        run_frame(&b);
        cr_assert_arr_eq(a.rows, b.rows, sizeof a.rows);
    }
}

Test(energy, looks_at_no_device_beyond_those_of_the_view)
{
    struct machine a = cpu_and_gpu(8e6), b = cpu_and_gpu(8e6);
    for (uint32_t f = 0; f < 1000; f++) {
        devices[2] = (struct cox_sched_device){.usable = false};
        run_frame(&a);
        devices[2] = (struct cox_sched_device){.usable = true, .hint = 1};
        run_frame(&b);
        cr_assert_arr_eq(a.rows, b.rows, sizeof a.rows, "frame %u", f);
    }
}

Test(energy, works_with_many_devices_minimum_bands_and_any_depth)
{
    for (uint32_t depth = 0; depth <= 16; depth += 4) {
        struct machine m =
            started((struct machine){.count = 32, .in_flight = depth, .idle_watts = 20, .noise = 0.02, .min_band = 16});
        for (uint32_t d = 0; d < m.count; d++)
            m.devices[d] = (struct device){50e3, 20e3 + 1e3 * d, d % 2 ? 20 : 60};
        m.deadline_ns = 6e6;
        double first = run(&m, 16).joules;
        run(&m, 6000);
        struct totals later = run(&m, 1000);
        cr_assert_leq(later.late, 20);
        cr_assert_lt(later.joules, 0.75 * first, "%g J, at first %g J", later.joules, first);
    }
}

Test(energy, survives_costs_that_are_none)
{
    static const double bad[] = {NAN, INFINITY, -1, 0, 1e308, 5e-324};
    for (uint32_t i = 0; i < 36; i++) {
        struct machine m = three_devices(i % 2 ? 8e6 : 0);
        run(&m, 40 + 10 * i);
        struct cox_cost costs[3] = {{true, bad[i % 6], bad[i / 6]}, {true, 1e5, 1e4}, {true, bad[i / 6], bad[i % 6]}};
        double noise[3] = {bad[i % 6], bad[i / 6], 0};
        struct cox__energy_costs given = {.together = costs, .noise = noise, .own_ns = bad[i % 6]};
        for (uint32_t f = 0; f < 200; f++) {
            struct cox__energy_choice choice;
            look_at(&m);
            view.frame = m.frame++;
            cox__energy_choose(&m.energy, &view, &given, &choice);
            uint64_t sum = 0;
            for (uint32_t d = 0; d < 3; d++)
                sum += choice.rows[d];
            cr_assert_eq(sum, choice.own ? 0 : ROWS);
            cox__energy_observe(&m.energy, &(struct cox_frame_measurement){
                                               .frame = view.frame, .period_ns = 5000000, .joules = 0.1});
        }
    }
}

/* The policy that uses the chooser, with bands observed one by one and no pool. Returns joules per frame of the
 * last quarter. */
static double run_adaptive(struct machine *m, uint32_t frames, enum cox_objective objective, uint32_t *reasons)
{
    struct cox_policy_options options = {.objective = objective, .deadline_ns = (uint64_t)m->deadline_ns};
    double sum = 0;
    m->random = 99;
    look_at(m);
    begin("adaptive", &options);
    for (uint32_t f = 0; f < frames; f++) {
        uint32_t rows[COX_DEVICES_MAX] = {0};
        view.frame = f;
        split_frame();
        reasons[split.reason]++;
        double latest = 0, total_ns, joules;
        for (uint32_t b = 0; b < split.band_count; b++) {
            const struct cox_band *band = &split.bands[b];
            const struct device *device = &m->devices[band->device];
            double ns = (device->fixed_ns + device->ns_per_row * band->rows) * jitter(m);
            latest = fmax(latest, ns);
            rows[band->device] += band->rows;
            band_took(band, ns, 0);
        }
        price(m, rows, &total_ns, &joules);
        if (f >= frames / 4 * 3)
            sum += joules / (frames - frames / 4 * 3);
        policy->observe_frame(state, &(struct cox_frame_measurement){.frame = f,
                                                                     .wall_ns = (uint64_t)latest,
                                                                     .period_ns = (uint64_t)latest,
                                                                     .latency_ns = (uint64_t)latest,
                                                                     .joules = joules});
    }
    return sum;
}

Test(energy, is_what_adaptive_makes_small_if_asked_to)
{
    uint32_t timely[64] = {0}, frugal[64] = {0};
    struct machine m = cpu_and_gpu(0);
    double shortest = run_adaptive(&m, 800, COX_OBJECTIVE_THROUGHPUT, timely);
    m = cpu_and_gpu(11e6);
    cr_assert_eq(timely[COX_REASON_ENERGY], 0);
    double least = run_adaptive(&m, 800, COX_OBJECTIVE_ENERGY, frugal);
    cr_assert_gt(frugal[COX_REASON_ENERGY], 400);
    cr_assert_gt(frugal[COX_REASON_TRIAL], 0);
    cr_assert_lt(least, 0.7 * shortest, "%g J, for the shortest time %g J", least, shortest);
}
