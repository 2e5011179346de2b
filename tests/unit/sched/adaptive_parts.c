/* The parts of `adaptive`: what a launch costs, trials of other plans.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/speed.h"
#include "adaptive/trials.h"
#include "support/random_jitter.h"
#include <criterion/criterion.h>
#include <math.h>

/* --- speed --- */

static void learn(struct cox__speed *speed, double ns, double work)
{
    const struct cox__busy busy = {1, work, ns};
    if (!speed->frames)
        cox__speed_begin(speed, ns, work);
    cox__speed_contrast(speed, ns, work);
    cox__speed_learn(speed, &busy);
}

Test(speed, tells_the_fixed_cost_from_launches_of_unlike_size)
{
    struct cox__speed speed = {0};
    random_begin(3);
    for (uint32_t frame = 0; frame < 200; frame++) {
        const double work = frame % 2 ? 900 : 300;
        learn(&speed, 10 * (120 + work) * random_jitter(0.02), work);
    }
    cr_expect_float_eq(speed.theta, 120, 30, "%g", speed.theta);
    cr_expect_float_eq(cox__speed_ns(&speed, 1, 600), 7200, 300, "%g", cox__speed_ns(&speed, 1, 600));
}

Test(speed, follows_a_change_that_stays_and_forgets_one_that_does_not)
{
    struct cox__speed speed = {0};
    random_begin(5);
    for (uint32_t frame = 0; frame < 50; frame++)
        learn(&speed, 5000 * random_jitter(0.02), 500);
    learn(&speed, 40000, 500);
    learn(&speed, 5000, 500);
    cr_expect_float_eq(cox__speed_ns(&speed, 1, 500), 5000, 1000, "%g", cox__speed_ns(&speed, 1, 500));
    for (uint32_t frame = 0; frame < 4; frame++)
        learn(&speed, 15000 * random_jitter(0.02), 500);
    cr_expect_float_eq(cox__speed_ns(&speed, 1, 500), 15000, 1500, "%g", cox__speed_ns(&speed, 1, 500));
}

/* A row costs 60; a launch 120. */
Test(speed, is_not_upset_by_a_launch_that_is_small_beside_its_fixed_cost)
{
    struct cox__speed speed = {0};
    cox__speed_begin(&speed, 120 + 60 * 4320, 4320);
    for (uint32_t frame = 0; frame < 3; frame++) {
        cox__speed_contrast(&speed, 120 + 60 * 8, 8);
        cox__speed_learn(&speed, &(const struct cox__busy){1, 8, 120 + 60 * 8});
    }
    cr_expect_float_eq(cox__speed_ns(&speed, 1, 500), 120 + 60 * 500, 3000, "%g", cox__speed_ns(&speed, 1, 500));
}

Test(speed, stays_finite_whatever_is_measured)
{
    struct cox__speed speed = {0};
    random_begin(7);
    for (uint32_t i = 0; i < 100000; i++) {
        const double ns = exp(random_jitter(1) * 4), work = 1 + 4e9 * fabs(random_jitter(2) - 1);
        learn(&speed, i % 7 ? ns : 1.8e19, i % 5 ? work : 1);
        cr_assert(isfinite(cox__speed_ns(&speed, 1, work)) && cox__speed_level(&speed) > 0, "%u", i);
        cr_assert(speed.theta >= 0 && isfinite(speed.theta) && speed.theta_variance >= 0, "%u", i);
    }
}

/* --- trials --- */

static const struct cox__trial_plan both = {3, 0}, one = {1, 0};
static struct cox__trials trials;
static uint64_t frame;

static void begin_trials(void)
{
    random_begin(11);
    cox__trials_init(&trials, both);
}

TestSuite(trials, .init = begin_trials);

/* Frames take `own` with the plan that is in use at the start, and `other` with another plan. Ends with a verdict
 * or at frame `end`. */
static enum cox__trial_verdict play(uint64_t end, double own, double other)
{
    const struct cox__trial_plan in_use = trials.in_use;
    while (frame < end) {
        const struct cox__trial_plan plan = cox__trials_plan(&trials, frame, 0, 0);
        const enum cox__trial_verdict verdict =
            cox__trials_tell(&trials, frame, (plan.devices == in_use.devices ? own : other) * random_jitter(0.02));
        frame++;
        if (verdict != COX__TRIAL_GOES_ON)
            return verdict;
    }
    return COX__TRIAL_GOES_ON;
}

Test(trials, adopt_a_plan_that_is_faster)
{
    cr_expect_not(cox__trials_due(&trials, one, 0), "the first frames are for learning");
    cr_expect(cox__trials_due(&trials, one, 100));
    cr_expect_not(cox__trials_due(&trials, both, 100), "the other plan is in use");
    cox__trials_begin(&trials, one, 4, 0);
    cr_expect_eq(play(100, 10, 8), COX__TRIAL_WON);
    cr_expect_eq(trials.in_use.devices, one.devices);
    cr_expect_eq(frame, 12 + 4, "the block before costs nothing and is longer");
}

/* Drift of the machine may look like a small gain, so the plan in use is measured once more. */
Test(trials, adopt_a_plan_that_is_a_little_faster_after_a_third_block)
{
    cox__trials_begin(&trials, one, 4, 0);
    cr_expect_eq(play(100, 10, 9.5), COX__TRIAL_WON);
    cr_expect_eq(frame, 12 + 4 + 12);
}

Test(trials, of_a_plan_are_due_at_once_when_its_device_has_become_faster)
{
    cox__trials_begin(&trials, one, 4, 0);
    cr_expect_eq(play(100, 10, 30), COX__TRIAL_LOST);
    cr_expect_not(cox__trials_due(&trials, one, frame + 8));
    cox__trials_forget(&trials, one.devices);
    cr_expect(cox__trials_due(&trials, one, frame));
}

/* Seen on two H200: one frame took 30 times as long, and no trial followed in 1760 frames. */
Test(trials, of_other_plans_wait_a_bounded_number_of_frames_after_a_loss)
{
    enum { BEHIND = 12 }; /* frames split before the policy learns from one */
    const struct cox__trial_plan next = {2, 0};
    enum cox__trial_verdict verdict = COX__TRIAL_GOES_ON;
    bool tried[64] = {false};
    cox__trials_begin(&trials, one, 4, 0);
    for (; verdict == COX__TRIAL_GOES_ON && frame < 64; frame++) {
        tried[frame] = cox__trials_same(cox__trials_plan(&trials, frame, 0, 0), one);
        if (frame >= BEHIND)
            verdict = cox__trials_tell(&trials, frame - BEHIND, tried[frame - BEHIND] ? 3000 : 10);
    }
    cr_expect_eq(verdict, COX__TRIAL_LOST);
    cr_expect(cox__trials_due(&trials, next, frame + 1024 + 4));
}

Test(trials, go_on_after_one_slow_frame)
{
    cox__trials_begin(&trials, one, 8, 0);
    uint32_t tried = 0;
    enum cox__trial_verdict verdict = COX__TRIAL_GOES_ON;
    for (; verdict == COX__TRIAL_GOES_ON && frame < 200; frame++) {
        const bool during = cox__trials_same(cox__trials_plan(&trials, frame, 0, 0), one);
        tried += during;
        const double time = during ? (tried == 3 ? 300 : 8) : 10;
        verdict = cox__trials_tell(&trials, frame, time);
    }
    cr_expect_eq(verdict, COX__TRIAL_WON, "a hiccup decided the trial");
    cr_expect_eq(tried, 8);
}

Test(trials, end_before_they_begin_where_the_plan_in_use_is_good_enough)
{
    cox__trials_begin(&trials, one, 4, 11);
    cr_expect_eq(play(40, 10, 1), COX__TRIAL_GOES_ON, "no frame had the other plan");
    cr_expect_eq(trials.phase, COX__TRIAL_IDLE);
    cr_expect_eq(trials.in_use.devices, both.devices);
    cr_expect(cox__trials_due(&trials, one, frame), "the other plan was rejected without a trial");

    cox__trials_begin(&trials, one, 4, 10); /* the other plan could be as good as this one, but not better */
    for (uint64_t end = frame + 12; frame < end; frame++) {
        cox__trials_plan(&trials, frame, 0, 0);
        cr_expect_eq(cox__trials_tell(&trials, frame, 10), COX__TRIAL_GOES_ON);
    }
    cr_expect_eq(trials.phase, COX__TRIAL_IDLE);
}

Test(trials, of_the_next_plan_may_begin_soon_after_one_that_cost_nothing)
{
    const struct cox__trial_plan next = {2, 0};
    cox__trials_begin(&trials, one, 4, 0);
    cr_expect_eq(play(100, 10, 8), COX__TRIAL_WON);
    cr_expect(cox__trials_due(&trials, next, frame + 8), "a trial that was won delays the next one");
}

Test(trials, end_early_where_a_plan_is_much_slower_and_pause_longer_up_to_a_limit)
{
    const uint64_t most = 256;
    uint64_t pause = 0;
    for (uint32_t i = 0; i < 4; i++) {
        cox__trials_begin(&trials, one, 4, 0);
        const uint64_t began = frame;
        cr_expect_eq(play(UINT64_MAX, 10, 30), COX__TRIAL_LOST);
        cr_expect_leq(frame - began, 12 + 2, "the trial goes on after two bad frames");
        cr_expect_eq(trials.in_use.devices, both.devices);
        const uint64_t lost = frame;
        while (!cox__trials_due(&trials, one, frame))
            (void)play(frame + 1, 10, 30);
        cr_expect_gt(frame - lost, 100, "the next trial comes too soon after a loss");
        cr_expect_gt(trials.plans[0].pause, pause < most ? pause : most - 1);
        cr_expect_leq(trials.plans[0].pause, most);
        pause = trials.plans[0].pause;
    }
}

Test(trials, are_not_decided_by_one_late_frame)
{
    cox__trials_begin(&trials, one, 8, 0);
    enum cox__trial_verdict verdict = COX__TRIAL_GOES_ON;
    for (; verdict == COX__TRIAL_GOES_ON; frame++) {
        const struct cox__trial_plan plan = cox__trials_plan(&trials, frame, 0, 0);
        verdict = cox__trials_tell(&trials, frame, frame % 8 == 3 ? 30 : plan.devices == one.devices ? 8 : 10);
    }
    cr_expect_eq(verdict, COX__TRIAL_WON);
}
