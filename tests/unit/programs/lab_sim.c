/* The simulator: the times of frames, the observations of policies, and how slow, lost and invalid devices are
 * handled.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/sim/simulate.h"
#include "unit/programs/lab_told.h"
#include <inttypes.h>

/* All rows on demand, `grant` rows at a time. */
static void run_pool(uint32_t grant, uint32_t in_flight)
{
    told.splits[0] = (struct cox_split){.pool_rows = scenario->rows};
    told.grant = grant;
    run(&handing, &(struct lab_sim_options){.in_flight = in_flight});
}

static void assert_refused(const struct lab_sim_options *options, const char *words)
{
    cr_assert_eq(simulate(&handing, options, 1), COX_E_POLICY);
    cr_assert_not_null(strstr(why, words), "%s", why);
}

static const struct cox_measurement *find(uint64_t frame, uint32_t device)
{
    for (uint32_t i = 0; i < told.measured_count; i++)
        if (told.measured[i].frame == frame && told.measured[i].device == device)
            return &told.measured[i];
    return NULL;
}

/* --- time --- */

/* A scenario, the splits of its frames, and the expected times. */
struct timing {
    const char *what, *keys; /* keys: NULL = those of the previous row */
    uint32_t border;         /* as for split_at, unless one of these is set: */
    struct cox_band bands[5];
    uint32_t grant;     /* as for run_pool */
    uint32_t in_flight; /* 0 = 1 */
    struct {
        enum { END, WALL, PERIOD, EXPOSED, LATENCY, EXPECTED, LAUNCHES, QUEUE, BAND, KERNEL, LATE } what;
        uint64_t frame;
        double us;       /* or a number instead */
        uint32_t device; /* of a band */
        uint64_t more;   /* this many later frames have the same time */
    } expected[8];
};

static double timing_got(int what, uint64_t frame, uint32_t device)
{
    switch (what) {
    case WALL:
        return frames[frame].wall_ns / 1e3;
    case PERIOD:
        return frames[frame].period_ns / 1e3;
    case LATENCY:
        return frames[frame].latency_ns / 1e3;
    case EXPOSED:
        return frames[frame].exposed_ns / 1e3;
    case EXPECTED:
        return frames[frame].expected_ns / 1e3;
    case LAUNCHES:
        return frames[frame].launches;
    case QUEUE:
        return (double)find(frame, device)->queue_ns / 1e3;
    case BAND:
        return (double)find(frame, device)->wall_ns / 1e3;
    case LATE:
        return (double)find(frame, device)->late_ns / 1e3;
    default:
        return (double)find(frame, device)->kernel_ns / 1e3;
    }
}

static void check_timings(const struct timing *timings, size_t count)
{
    for (const struct timing *t = timings; t < timings + count; t++) {
        if (t->keys)
            set_world(t->keys);
        struct cox_split split = t->bands[0].rows > 0 ? (struct cox_split){0} : split_at(t->border);
        for (uint32_t i = 0; t->bands[i].rows > 0; i++)
            split.bands[split.band_count++] = t->bands[i];
        if (t->grant > 0)
            run_pool(t->grant, t->in_flight);
        else
            run_split(split, t->in_flight);
        for (int i = 0; t->expected[i].what != END; i++)
            for (uint64_t f = t->expected[i].frame; f <= t->expected[i].frame + t->expected[i].more; f++) {
                const double got = timing_got(t->expected[i].what, f, t->expected[i].device);
                cr_assert_float_eq(got, t->expected[i].us, 1e-6, "%s: frame %" PRIu64 ": %.9g instead of %g", t->what,
                                   f, got, t->expected[i].us);
            }
    }
}

Test(lab_sim, devices_take_as_long_as_their_rows_what_they_share_and_who_is_before_them)
{
#define COPYING                                                                                       \
    "'rows': 100, 'granule': 1, 'frames': 1, 'devices': [{'name': 'a', 'fixed_us': 10, 'row_us': 1, " \
    "'transfer_us': 1}, {'name': 'b', 'fixed_us': 10, 'row_us': 1, 'transfer_us': 1}]"
    static const struct timing timings[] = {
        /* Both devices reach 100 us at half speed, then 50 rows remain for one device. */
        {"devices slow each other down only while both work",
         PAIR(150, 1, 1, 1) ", 'frames': 1, 'contention': [{'slower': 2}]", .border = 100,
         .expected = {{WALL, 0, 150}, {EXPECTED, 0, 150}, {BAND, 0, 150, 0}, {BAND, 0, 100, 1}}},
        {"contention of a pair leaves the third device alone",
         "'rows': 30, 'granule': 1, 'frames': 1, 'devices': [{'name': 'a', 'row_us': 1}, {'name': 'b', 'row_us': 1}, "
         "{'name': 'c', 'row_us': 1}], 'contention': [{'devices': ['a', 'b'], 'slower': 3}]",
         .bands = {{0, 0, 10}, {1, 10, 10}, {2, 20, 10}},
         .expected = {{BAND, 0, 30, 0}, {BAND, 0, 30, 1}, {BAND, 0, 10, 2}}},
        {"of a pair one may slow down alone: it does 25 rows beside `b`",
         PAIR(150, 1, 1, 1) ", 'frames': 1, 'contention': [{'slower': 2, 'slows': ['a']}]", .border = 100,
         .expected = {{BAND, 0, 125, 0}, {BAND, 0, 50, 1}}},
        {"a band that waits is copied in meanwhile",
         "'rows': 100, 'granule': 1, 'frames': 3, 'devices': [{'name': 'a', 'fixed_us': 20, 'row_us': 1, "
         "'ahead_us': 10, 'ahead_row_us': 0.2}]",
         .border = 100, .in_flight = 2, .expected = {{BAND, 0, 120}, {BAND, 1, 90, 0, 1}}},
        {"but no longer than it waits", NULL, .bands = {{0, 0, 1}, {0, 1, 99}}, .expected = {{WALL, 0, 21 + 78}}},
        {"devices copy at once without a link", COPYING, .border = 50, .expected = {{WALL, 0, 110}}},
        {"both copy from 60 us on, at half the rate", COPYING ", 'links': [{'devices': ['a', 'b']}]", .border = 50,
         .expected = {{WALL, 0, 160}}},
        {"`a` copies from 50 us on, both from 70 us on: `a` until 110, with 40 us left for `b`", NULL, .border = 40,
         .expected = {{WALL, 0, 150}}},
        {"one device has the link for itself", NULL, .border = 100, .expected = {{WALL, 0, 210}}},
        {"half of a frame's time is behind the frame before in the device's queue", TWO ", 'frames': 4", .border = 100,
         .in_flight = 2,
         .expected = {{WALL, 0, 100},
                      {WALL, 1, 200, 0, 2},
                      {PERIOD, 0, 100, 0, 3},
                      {QUEUE, 1, 100, 0, 2},
                      {BAND, 1, 100, 0, 2}}},
    };
    check_timings(timings, sizeof timings / sizeof timings[0]);
}

Test(lab_sim, threads_of_the_engine_and_the_application_take_their_time)
{
    static const struct timing timings[] = {
        {"a thread that wakes late costs each frame", ALONE ", 'frames': 3, 'engine': {'wake_us': 30}", .border = 100,
         .expected = {{WALL, 0, 100, 0, 2}, {PERIOD, 0, 130, 0, 2}, {BAND, 0, 100, 0, 2}, {LATE, 0, 30}}},
        {"and each grant", NULL, .grant = 25, .expected = {{PERIOD, 0, 100 + 4 * 30}, {LAUNCHES, 0, 4}}},
        {"a queue with two bands does not run dry", ALONE ", 'frames': 4, 'engine': {'wake_us': 30}", .border = 100,
         .in_flight = 2, .expected = {{PERIOD, 0, 130}, {PERIOD, 1, 100, 0, 2}}},
        /* The first two bands end at 10 and 70 us without a gap. The engine notices the first end at 40 us, and the
         * third band waits. It notices the second end at 110 us, when the third band has ended as well, so the
         * fourth one begins then. */
        {"a third band of a frame is given when the end of the first has been noticed",
         ALONE ", 'frames': 1, 'engine': {'wake_us': 30}", .bands = {{0, 0, 10}, {0, 10, 70}, {0, 80, 10}, {0, 90, 10}},
         .expected = {{WALL, 0, 120}}},
        /* The split takes 5 us, and so does the start of each band. The band of `b` ends at 110 us. Noticing an end
         * takes 5 us as well. */
        {"each deed of the thread takes its time", TWO ", 'frames': 1, 'engine': {'busy_us': 5}", .border = 50,
         .expected = {{QUEUE, 0, 5, 0}, {QUEUE, 0, 10, 1}, {WALL, 0, 110}, {PERIOD, 0, 115}}},
        {"by the host's clock a band ends when it is noticed",
         ALONE ", 'frames': 2, 'engine': {'wake_us': 30, 'clock': 'host'}", .border = 100,
         .expected = {{BAND, 1, 130}, {KERNEL, 1, 100}, {WALL, 1, 130}, {PERIOD, 1, 130}, {LATE, 1, 0}}},
        {"the application hands over the next frame late", ALONE ", 'frames': 3, 'application': {'wake_us': 40}",
         .border = 100, .expected = {{PERIOD, 0, 100}, {PERIOD, 1, 140}, {EXPOSED, 1, 100}}},
        {"a camera's frames come at its pace", ALONE ", 'frames': 5, 'application': {'period_us': 150}", .border = 100,
         .expected = {{WALL, 0, 100, 0, 4}, {PERIOD, 1, 150, 0, 3}, {LATENCY, 0, 100, 0, 4}}},
        {"frames that come too fast wait", ALONE ", 'frames': 5, 'application': {'period_us': 80}", .border = 100,
         .expected = {{PERIOD, 1, 100, 0, 3}, {LATENCY, 0, 100}, {LATENCY, 1, 120}, {LATENCY, 2, 140}}},
        {"with several in flight in the queue", NULL, .border = 100, .in_flight = 2,
         .expected = {{PERIOD, 1, 100, 0, 3}, {QUEUE, 1, 20}, {LATENCY, 2, 140}}},
        {"there is another frame meanwhile", ALONE ", 'frames': 3, 'application': {'wake_us': 40}", .border = 100,
         .in_flight = 2, .expected = {{PERIOD, 2, 100}}},
        {"awake for `b`, the thread sees the end of `a`, too",
         TWO ", 'frames': 1, 'engine': {'wake_us': 30, 'beside': ['b'], 'tail': {'probability': 1, 'median_us': 500, "
             "'p99_us': 500}}",
         .border = 50, .expected = {{PERIOD, 0, 130}}},
        {"a tail beside a device is there only while it works", NULL, .border = 10, .expected = {{PERIOD, 0, 210}}},
        {"the device that costs the thread least is served first, and the next one waits",
         "'rows': 100, 'granule': 1, 'frames': 1, 'devices': [{'name': 'a', 'row_us': 1, 'submit_us': 30}, "
         "{'name': 'b', 'row_us': 1, 'submit_us': 10}]",
         .border = 50, .expected = {{QUEUE, 0, 10, 0}, {QUEUE, 0, 0, 1}, {WALL, 0, 60}}},
        {"each band costs it", NULL, .bands = {{0, 0, 25}, {0, 25, 25}, {1, 50, 50}},
         .expected = {{QUEUE, 0, 0, 1}, {WALL, 0, 65}}},
        {"a thread is held up only while a device works",
         TWO ", 'frames': 1, 'engine': {'submit': {'probability': 1, 'median_us': 40, 'p99_us': 40}, "
             "'stall': {'probability': 1, 'median_us': 7, 'p99_us': 7}}",
         .border = 50, .expected = {{QUEUE, 0, 0, 0}, {QUEUE, 0, 40, 1}, {WALL, 0, 140}}},
        {"a stalled grant", NULL, .grant = 50, .expected = {{WALL, 0, 107}}},
        {"an application that pauses lets the frames drain", TWO ", 'frames': 6, 'application': {'pause_frames': 3}",
         .border = 100, .in_flight = 2,
         .expected =
             {{WALL, 0, 100}, {WALL, 1, 200, 0, 1}, {WALL, 3, 100}, {WALL, 4, 200, 0, 1}, {PERIOD, 0, 100, 0, 5}}},
        {"an idle device leaves the application its core",
         ALONE ", 'frames': 4, 'application': {'wake_us': 500, 'idle_us': 20}", .border = 100,
         .expected = {{PERIOD, 1, 120}}},
        {"not before the device had done all that it had", NULL, .border = 100, .in_flight = 2,
         .expected = {{PERIOD, 1, 100}, {PERIOD, 2, 120}}},
    };
    check_timings(timings, sizeof timings / sizeof timings[0]);
}

Test(lab_sim, a_frame_takes_as_long_as_its_last_band)
{
    set_world(TWO ", 'frames': 2");
    run_split(split_at(50), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 100), US(frames[1].wall_ns, 100), US(frames[0].latency_ns, 100),
                  US(frames[0].expected_ns, 100), US(frames[0].single_device_ns, 100), IS(frames[0].rows[0], 50),
                  IS(frames[0].rows[1], 50), IS(frames[0].launches, 2), IS(frames[1].moved, 0));
    cr_assert_lt(frames[0].joules, 0);
    cr_assert_str_empty(why);
}

Test(lab_sim, fixed_launch_transfer_and_overlap_add_up)
{
    set_world("'rows': 100, 'granule': 1, 'frames': 1, 'devices': ["
              "{'name': 'a', 'fixed_us': 10, 'launch_us': 3, 'row_us': 1, 'transfer_us': 0.5},"
              "{'name': 'b', 'fixed_us': 20, 'row_us': 1, 'transfer_us': 4, 'overlap': true}]");
    run_split((struct cox_split){.band_count = 3, .bands = {{0, 0, 20}, {1, 20, 40}, {0, 60, 40}}}, 1);
    const struct cox_measurement *first = &told.measured[0], *second = &told.measured[1];
    ASSERT_VALUES(IS(find(0, 1)->wall_ns, 20000 + 40 * 4000), IS(find(0, 1)->kernel_ns, 40 * 1000),
                  IS(first->wall_ns, 10000 + 20 * 1500), IS(first->queue_ns, 0), IS(second->wall_ns, 3000 + 40 * 1500),
                  IS(second->kernel_ns, 40 * 1000));
    cr_assert_eq(second->queue_ns, 40000, "the second band waits behind the first");
}

Test(lab_sim, heat_follows_the_load)
{
    set_world("'rows': 100, 'frames': 60, 'devices': [{'name': 'a', 'row_us': 1000, 'thermal': {'factor': 2, "
              "'seconds': 0.5}}, {'name': 'b', 'row_us': 2000}]");
    told.splits[40] = split_at(0);
    told.splits[50] = split_at(100);
    run_split(split_at(100), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 100e3));
    for (int f = 1; f < 40; f++)
        cr_assert_gt(frames[f].wall_ns, frames[f - 1].wall_ns);
    cr_assert_gt(frames[39].wall_ns, 190e6);
    cr_assert_lt(frames[39].wall_ns, 200e6);
    cr_assert_lt(frames[50].wall_ns, 120e6, "idle, it cools down");
}

Test(lab_sim, heat_with_two_thresholds_stays_between_them)
{
    set_world("'rows': 100, 'frames': 60, 'devices': [{'name': 'a', 'row_us': 1000, 'thermal': {'factor': 2, "
              "'seconds': 0.5, 'hot': 0.6, 'cool': 0.3}}, {'name': 'b', 'row_us': 1000}]");
    for (int f = 20; f < 40; f++)
        told.splits[f] = split_at(0);
    told.splits[24] = told.splits[39] = split_at(100);
    run_split(split_at(100), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 100e3), US(frames[4].wall_ns, 100e3), US(frames[6].wall_ns, 200e3),
                  US(frames[19].wall_ns, 200e3));
    ASSERT_VALUES(US(frames[24].wall_ns, 200e3), US(frames[39].wall_ns, 100e3));
}

Test(lab_sim, devices_that_share_a_power_budget_are_slower_only_while_both_work)
{
    set_world("'rows': 100, 'frames': 60, 'devices': [{'name': 'a', 'row_us': 1000}, {'name': 'b', 'row_us': 1000}], "
              "'power': [{'factor': 1.5, 'seconds': 0.2, 'hot': 0.7, 'cool': 0.6}]");
    for (int f = 30; f < 60; f++)
        told.splits[f] = split_at(100);
    run_split(split_at(50), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 50e3), US(frames[29].wall_ns, 75e3), US(frames[30].wall_ns, 150e3),
                  US(frames[59].wall_ns, 100e3));
}

Test(lab_sim, a_clock_governor_is_heat_that_makes_faster)
{
    set_world("'rows': 100, 'frames': 40, 'devices': [{'name': 'a', 'row_us': 1000, 'thermal': {'factor': 0.5, "
              "'seconds': 0.1}}]");
    run_split(split_at(100), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 100e3));
    cr_assert_lt(frames[39].wall_ns, 51e6);
    cr_assert_gt(frames[39].wall_ns, 50e6 - 1);
}

Test(lab_sim, energy_is_what_busy_and_idle_devices_use)
{
    set_world("'rows': 100, 'frames': 1, 'base_watts': 5, 'devices': [{'name': 'a', 'row_us': 1000, 'watts': 10, "
              "'idle_watts': 1}, {'name': 'b', 'row_us': 2000, 'watts': 20, 'idle_watts': 2}]");
    run_split(split_at(50), 1);
    ASSERT_VALUES(US(frames[0].wall_ns, 100e3),
                  NEAR(frames[0].joules, 0.1 * 5 + 0.05 * 10 + 0.05 * 1 + 0.1 * 20, 1e-9));
}

/* --- what a policy observes --- */

Test(lab_sim, measurements_come_before_the_next_split_or_a_frame_later_with_two_in_flight)
{
    set_world(TWO ", 'frames': 5");
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        run_split(split_at(50), in_flight);
        for (uint64_t f = 0; f < 5; f++)
            cr_assert_eq(told.heard_before[f], f < in_flight ? 0 : 2 * (f + 1 - in_flight), "frame %" PRIu64, f);
        cr_assert_eq(told.frames_heard, 5, "the rest comes at the end");
    }
}

Test(lab_sim, latency_is_what_a_frame_waits_behind_others_too)
{
    set_world(TWO ", 'frames': 5");
    told.splits[0] = split_at(50);
    run(&fixed, &(struct lab_sim_options){.in_flight = 2, .policy = {.deadline_ns = 150000}});
    for (uint64_t f = 0; f < 5; f++)
        ASSERT_VALUES(US(frames[f].latency_ns, f == 0 ? 100 : 200));
    ASSERT_VALUES(IS(told.deadline_ns, 150000), IS(told.latency_ns, 200000));
}

Test(lab_sim, a_policy_is_told_what_devices_took_alone)
{
    set_world(TWO ", 'frames': 2, 'changes': [{'from': 1, 'rows': 200}]");
    told.splits[1] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 200}}};
    run_split(split_at(50), 1);
    ASSERT_VALUES(IS(told.single_device_ns[0][0], 100000), IS(told.single_device_ns[0][1], 200000));
    cr_assert_eq(told.single_device_ns[1][1], 400000, "scaled to the frame's rows");
}

Test(lab_sim, a_policy_is_given_the_profiles)
{
    set_world(TWO ", 'frames': 1");
    told.splits[0] = split_at(50);
    struct cox_device_profile profiles[2] = {{.frames = 10, .ns_per_row = 18000}, {.frames = 10, .ns_per_row = 9000}};
    run(&handing, &(struct lab_sim_options){.profiles = profiles});
    cr_assert(told.loaded);
}

/* --- frames in flight --- */

Test(lab_sim, frames_on_different_devices_overlap_and_are_delivered_in_order)
{
    set_world(TWO ", 'frames': 4");
    told.splits[1] = told.splits[3] = split_at(100);
    told.splits[2] = split_at(0);
    run_split(split_at(0), 2);
    /* The second frame ends before the first. */
    ASSERT_VALUES(US(frames[0].period_ns, 200), US(frames[1].wall_ns, 100), US(frames[1].period_ns, 0),
                  US(frames[2].period_ns, 200));
    cr_assert_eq(told.heard_before[2], 2, "both are delivered when the first is done");
}

Test(lab_sim, a_pool_keeps_its_devices_from_later_frames)
{
    set_world(TWO ", 'frames': 2");
    told.splits[1] = split_at(50);
    run_pool(50, 2);
    /* Both devices take 50 rows at once, which empties the pool. So bands of the second frame wait behind them. */
    ASSERT_VALUES(US(frames[0].wall_ns, 100), IS(find(1, 0)->queue_ns, 50000), IS(find(1, 1)->queue_ns, 100000));
    run_pool(25, 2);
    /* `a` takes 25 rows three times, `b` once. No device gets a band of frame 1 before the pool is empty, at 50 us. */
    ASSERT_VALUES(US(frames[0].wall_ns, 75), IS(find(1, 0)->queue_ns, 25000), IS(find(1, 1)->queue_ns, 0));
}

Test(lab_sim, a_device_lost_with_two_frames_under_way_gives_back_both)
{
    set_world(PAIR(100, 1, 100, 100) ", 'frames': 8, 'changes': [{'device': 'b', 'from': 3, 'to': 5, 'gone': true}]");
    told.splits[0] = split_at(50);
    told.splits[0].predicted_ns = 5000000;
    run(&fixed, &two_in_flight);
    for (int f = 0; f < 8; f++)
        cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 100, "frame %d", f);
    ASSERT_VALUES(IS(find(2, 1)->flags, COX_MEASURED_UNFINISHED), IS(frames[2].rows[0], 100),
                  IS(frames[3].rows[0], 100));
    run(NULL, &two_in_flight);
    for (int f = 0; f < 8; f++)
        cr_assert_eq(frames[f].rows[0] + frames[f].rows[1], 100, "oracle, frame %d", f);
}

Test(lab_sim, a_trace_goes_round_from_where_the_seed_says)
{
    set_world("'rows': 100, 'frames': 9, 'devices': [{'name': 'a', 'row_us': 1, 'trace': [1, 2, 4]}]");
    run_split(split_at(100), 1);
    for (int f = 1; f < 9; f++) {
        double ratio = frames[f].wall_ns / frames[f - 1].wall_ns;
        cr_assert(fabs(ratio - 2) < 1e-9 || fabs(ratio - 0.25) < 1e-9, "frame %d: %g", f, ratio);
    }
    ASSERT_VALUES(US(frames[3].wall_ns / frames[0].wall_ns, 1e-3));
}

Test(lab_sim, bursts_stop_devices_at_the_same_times_whatever_the_policy_does)
{
    set_world(PAIR(100, 1, 100, 100) ", 'frames': 60, 'bursts': [{'devices': ['a'], 'every_ms': 50, "
                                     "'median_us': 5000, 'p99_us': 5000}]");
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
        run_split(split_at(device == 0 ? 100 : 0), 1);
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

Test(lab_sim, a_compositor_takes_the_device_at_its_rate)
{
    set_world(PAIR(100, 1, 100, 100) ", 'frames': 60, 'bursts': [{'devices': ['a'], 'period_ms': 16, "
                                     "'median_us': 2000, 'p99_us': 2000}]");
    uint32_t devices;
    bool engine;
    double end_ns = 0, begin_ns = 0;
    world.begin_run(world.ctx, 1);
    for (int b = 0; b < 20; b++) {
        double before_ns = begin_ns;
        begin_ns = world.stolen(world.ctx, end_ns, &devices, &engine);
        end_ns = world.stolen(world.ctx, begin_ns, &devices, &engine);
        cr_assert_eq(devices, 1);
        cr_assert_float_eq(end_ns - begin_ns, 2e6, 10);
        if (b > 0)
            cr_assert_float_eq(begin_ns - before_ns, 16e6, 10);
    }
}

Test(lab_sim, recorded_late_launches_come_back_with_the_trace)
{
    set_world("'rows': 100, 'frames': 8, 'devices': [{'name': 'a', 'row_us': 1, 'trace': [1, 2], "
              "'trace_late_us': [0, 50]}]");
    run_split(split_at(100), 1);
    for (int f = 0; f < 8; f++)
        cr_assert(fabs(frames[f].wall_ns - 100e3) < 1 || fabs(frames[f].wall_ns - 250e3) < 1, "frame %d: %g", f,
                  frames[f].wall_ns);
    cr_assert_gt(fabs(frames[1].wall_ns - frames[0].wall_ns), 149e3);
}

Test(lab_sim, the_warm_up_has_the_shortest_of_the_first_times_of_a_trace)
{
    set_world("'rows': 100, 'frames': 2, 'devices': [{'name': 'a', 'row_us': 1, 'trace': [3, 2, 4], "
              "'trace_late_us': [9000]}]");
    run_split(split_at(100), 1);
    ASSERT_VALUES(IS(told.single_device_ns[0][0], 200000));
}

/* --- rows on demand --- */

Test(lab_sim, free_devices_take_rows_from_the_pool)
{
    set_world(TWO ", 'frames': 1");
    run_pool(10, 1);
    /* `a` takes 10 rows every 10 us, `b` every 20 us. So `a` gets 7 chunks, `b` gets 3, and the last one ends at 70
     * us. */
    ASSERT_VALUES(US(frames[0].wall_ns, 70), IS(frames[0].rows[0], 70), IS(frames[0].rows[1], 30),
                  IS(frames[0].launches, 10), US(frames[0].expected_ns, 66.666666667));
    cr_assert_eq(find(0, 0)->flags, 0, "the first band of a device is no chunk");
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < told.measured_count; i++)
        chunks += told.measured[i].flags == COX_MEASURED_CHUNK;
    cr_assert_eq(chunks, 8);
}

Test(lab_sim, an_answer_that_is_none_takes_all)
{
    set_world(PAIR(100, 8, 1, 2) ", 'frames': 1");
    run_pool(12, 1);
    cr_assert_eq(frames[0].rows[0], 100, "12 is not on the granule");
    run_pool(101, 1);
    cr_assert_eq(frames[0].rows[0], 100);
}

Test(lab_sim, the_last_one_asked_must_take_rows)
{
    set_world(TWO ", 'frames': 3");
    run_pool(0, 1);
    cr_assert_eq(frames[0].rows[1], 100, "`a` declines, `b` is the last");
    cr_assert_eq(told.last_offers, 3);
    cr_assert_eq(told.offers, 6, "a device that declines is not asked again");
}

Test(lab_sim, a_frame_has_no_more_bands_and_chunks_than_possible)
{
    set_world(PAIR(4000, 1, 1, 2) ", 'frames': 2");
    run_pool(1, 1);
    cr_assert_leq(frames[0].launches, COX_BANDS_MAX);
    cr_assert_eq(frames[0].rows[0] + frames[0].rows[1], 4000);
}

/* --- shadows --- */

Test(lab_sim, a_shadow_is_measured_and_not_waited_for)
{
    set_world(TWO ", 'frames': 4");
    told.splits[2] = split_at(100);
    told.splits[0] = told.splits[1] = told.splits[2];
    told.splits[0].shadow = (struct cox_band){1, 0, 10};
    told.splits[1].shadow = (struct cox_band){1, 0, 80};
    run(&fixed, NULL);
    for (int f = 0; f < 4; f++)
        ASSERT_VALUES(US(frames[f].wall_ns, 100), IS(frames[f].rows[1], 0));
    ASSERT_VALUES(IS(find(0, 1)->wall_ns, 20000), IS(find(0, 1)->flags, COX_MEASURED_SHADOW));
    cr_assert_eq(find(1, 1)->wall_ns, 160000, "it ends within the next frame");
    cr_assert_eq(told.heard_before[2], 3, "and it is observed with that frame");
    cr_assert_eq(told.heard_before[3], 5);
}

Test(lab_sim, no_pool_and_no_shadow_where_they_are_switched_off)
{
    set_world(TWO ", 'frames': 1");
    told.splits[0] = (struct cox_split){.pool_rows = 100};
    assert_refused(&(struct lab_sim_options){.no_pool = true}, "pool");
    told.splits[0] = split_at(100);
    told.splits[0].shadow = (struct cox_band){1, 0, 10};
    cr_assert_eq(simulate(&fixed, &(struct lab_sim_options){.no_shadow = true}, 1), COX_E_POLICY);
}

/* --- slow and lost devices --- */

Test(lab_sim, a_band_that_takes_long_is_waited_for)
{
    /* In frame 1 `b` is a hundred times slower than predicted. */
    set_world(PAIR(100, 1, 100, 200) ", 'frames': 3, 'changes': [{'device': 'b', 'from': 1, 'to': 2, 'slower': 100}]");
    told.splits[0] = (struct cox_split){
        .band_count = 2, .bands = {{0, 0, 60}, {1, 60, 40}}, .device_ns = {6000000, 8000000}, .predicted_ns = 8000000};
    told.grant = UINT32_MAX;
    run(&handing, NULL);
    ASSERT_VALUES(US(frames[0].wall_ns, 8000), US(frames[1].wall_ns, 800000), US(frames[2].wall_ns, 8000),
                  IS(frames[1].rows[1], 40), IS(find(1, 1)->flags, 0));
    cr_assert_eq(told.offers, 0, "nothing is left for `a`");
}

/* `b` is gone from frame 3 to frame `to`. */
static void set_death_world(int to)
{
    char keys[512];
    snprintf(keys, sizeof keys,
             PAIR(100, 1, 100, 200) ", 'frames': 40, 'changes': [{'device': 'b', 'from': 3, 'to': %d, 'gone': true}]",
             to);
    set_world(keys);
    told.splits[0] = split_at(60);
    told.splits[0].device_ns[0] = 6000000;
    told.splits[0].device_ns[1] = 8000000;
}

Test(lab_sim, rows_of_a_dead_device_are_done_elsewhere)
{
    set_death_world(40);
    run(&fixed, NULL);
    /* In frame 3 the loss is noticed at 8 ms + 25 % + 1 ms = 11 ms. The repeated rows take 4 ms. */
    ASSERT_VALUES(US(frames[2].wall_ns, 8000), US(frames[3].wall_ns, 15000), IS(frames[3].rows[0], 100),
                  IS(told.usable[3][1], true), IS(find(3, 1)->flags, COX_MEASURED_UNFINISHED),
                  IS(find(3, 1)->wall_ns, 11000000));
    for (int f = 4; f < 40; f++) {
        cr_assert(!told.usable[f][1], "frame %d", f);
        ASSERT_VALUES(US(frames[f].wall_ns, 10000), IS(frames[f].oracle_rows[1], 0));
    }
    /* With a policy that hands out rows, these rows are handed out by its `next`. */
    told.grant = 20;
    run(&handing, NULL);
    ASSERT_VALUES(US(frames[3].wall_ns, 15000), IS(frames[3].launches, 4));
}

Test(lab_sim, a_death_without_prediction_takes_ten_frames_to_notice)
{
    set_death_world(40);
    run_split(split_at(60), 1);
    ASSERT_VALUES(US(frames[3].wall_ns, 104000), US(frames[4].wall_ns, 10000)); /* ten times 10 ms, then 4 ms */
}

Test(lab_sim, a_device_that_returns_is_asked_with_a_growing_pause)
{
    static const struct {
        int to, usable; /* frame of its return, frame of its next use; lost in 3, polled before 4, 6, 10, 18, 26 */
    } returns[] = {{4, 4}, {5, 6}, {11, 18}, {19, 26}};
    for (int i = 0; i < 4; i++) {
        const int usable = returns[i].usable;
        set_death_world(returns[i].to);
        run(&fixed, NULL);
        cr_assert(told.usable[usable][1], "frame %d", usable);
        cr_assert(usable == 4 || !told.usable[usable - 1][1], "frame %d", usable - 1);
        ASSERT_VALUES(US(frames[usable].wall_ns, 8000));
    }
}

Test(lab_sim, with_no_other_device_left_all_are_asked_at_once)
{
    /* `b` is gone from frame 3 to frame 8. When `a` goes in frame 8, `b` has not been polled again yet. */
    set_world(PAIR(100, 1, 100, 200) ", 'frames': 12, 'changes': [{'device': 'b', 'from': 3, 'to': 8, 'gone': true}, "
                                     "{'device': 'a', 'from': 8, 'to': 12, 'gone': true}]");
    told.splits[0] = split_at(60);
    told.splits[0].device_ns[0] = 10000000;
    told.splits[0].device_ns[1] = 8000000;
    run(&fixed, NULL);
    ASSERT_VALUES(US(frames[8].wall_ns, 13500 + 20000), IS(frames[8].rows[1], 100));
}

/* --- refused splits --- */

Test(lab_sim, refuses_splits_that_are_none_and_goes_on)
{
    static const struct {
        struct cox_split split;
        cox_status status;
        const char *about;
    } bad[] = {
        {{.band_count = 2, .bands = {{0, 0, 64}, {1, 56, 40}}}, COX_OK, "0:0+64 1:56+40"},
        {{.band_count = 2, .bands = {{0, 0, 64}, {1, 72, 24}}}, COX_OK, "0:0+64 1:72+24"},
        {{.band_count = 2, .bands = {{0, 0, 60}, {1, 60, 36}}}, COX_OK, "multiple of the row alignment"},
        {{.band_count = 1, .bands = {{7, 0, 96}}}, COX_OK, "device 7"},
        {{.band_count = 1, .bands = {{0, 0, 48}}, .pool_first_row = 48, .pool_rows = 48}, COX_OK, "pool"},
        {{0}, COX_E_NO_DEVICE, NULL},
    };
    set_world(PAIR(96, 8, 1, 2) ", 'frames': 3");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *about = bad[i].about ? bad[i].about : cox_status_text(bad[i].status);
        memset(&told, 0, sizeof told);
        told.splits[0] = told.splits[2] = split_at(64);
        told.splits[1] = bad[i].split;
        told.statuses[1] = bad[i].status;
        run(&fixed, NULL);
        cr_assert_eq(frames[1].refused, 1, "accepted, but %s", about);
        /* The last valid split stays in use. */
        ASSERT_VALUES(IS(frames[0].refused, 0), IS(frames[2].refused, 0), IS(frames[1].rows[0], 64),
                      IS(frames[1].rows[1], 32), US(frames[1].wall_ns, 64));
        cr_assert_not_null(strstr(why, "policy 'fixed', frame 1: "), "%s", why);
        cr_assert_not_null(strstr(why, about), "%s", why);
        /* In the first frame there is no earlier split to use. */
        told.splits[0] = told.splits[1];
        told.statuses[0] = told.statuses[1];
        cr_assert_eq(simulate(&fixed, NULL, 1), COX_E_POLICY);
        cr_assert_not_null(strstr(why, "policy 'fixed', frame 0: "), "%s", why);
    }
}

Test(lab_sim, a_last_good_split_that_fits_no_more_becomes_the_best_device_alone)
{
    set_world(TWO ", 'frames': 3, 'changes': [{'from': 1, 'to': 2, 'rows': 200}]");
    run_split(split_at(50), 1);
    ASSERT_VALUES(IS(frames[1].refused, 1), IS(frames[1].rows[0], 200), IS(frames[2].refused, 0));
}

Test(lab_sim, the_bands_of_a_long_split_are_cut_in_the_message)
{
    set_world(PAIR(128, 1, 1, 2) ", 'frames': 1");
    told.splits[0].band_count = COX_BANDS_MAX;
    for (uint32_t i = 0; i < COX_BANDS_MAX; i++)
        told.splits[0].bands[i] = (struct cox_band){0, i * 2, 1};
    assert_refused(NULL, "...");
}
