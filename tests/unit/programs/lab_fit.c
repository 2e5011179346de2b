/* cox-lab fit on a recorded run: it finds the numbers of the scenario that was recorded, and forecasts the
 * policies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/fit/check.h"
#include "unit/programs/lab_recorded.h"

enum { CHECKS_MAX = 16 };

static struct lab_fit fit;
static struct lab_scenario *scenario;

static void end_fit(void)
{
    lab_scenario_free(&scenario);
    lab_fit_free(&fit);
    remove_path();
}

TestSuite(lab_fit, .init = make_path, .fini = end_fit);

static const char *const some[] = {"ewma", "last-frame", "mean10", "hguided"};

static void estimate(const char *keys, uint32_t count, uint32_t in_flight)
{
    lab_fit_free(&fit);
    record(keys, some, count, in_flight);
    load();
    cr_assert(lab_fit_estimate(data, &fit, why, sizeof why), "%s", why);
}

#define SHAPE "'rows': 1080, 'granule': 8, 'frames': 400, "
#define DEVICES(more)                                                                    \
    "'devices': [{'name': 'a', 'fixed_us': 60, 'launch_us': 12, 'row_us': 18" more "}, " \
    "{'name': 'b', 'fixed_us': 250, 'launch_us': 30, 'row_us': 9" more "}]"
#define ENGINE(more) \
    ", 'engine': {'wake_us': 80, 'tail': {'probability': 0.15, 'median_us': 1200, 'p99_us': 2600}" more "}"
#define NOISY SHAPE DEVICES(", 'jitter': 0.04") ENGINE("")

static void assert_costs(double tolerance)
{
    cr_assert_eq(fit.device_count, 2);
    near(fit.devices[0].row_ns, 18000, tolerance, "row of a");
    near(fit.devices[1].row_ns, 9000, tolerance, "row of b");
}

Test(lab_fit, finds_costs_and_engine_of_the_recorded_machine)
{
    estimate(NOISY, SOME, 1);
    assert_costs(0.01);
    near(fit.devices[0].fixed_ns, 60e3, 0.1, "fixed of a");
    near(fit.devices[1].fixed_ns, 250e3, 0.1, "fixed of b");
    near(fit.devices[0].launch_ns, 12e3, 0.2, "launch of a");
    near(fit.devices[1].launch_ns, 30e3, 0.2, "launch of b");
    near(fit.devices[0].jitter, 0.04, 0.25, "noise of a");
    near(fit.devices[1].jitter, 0.04, 0.25, "noise of b");
    cr_assert(!fit.host_clock);
    near(fit.engine.ns, 80e3, 0.05, "wake");
    near(fit.engine.tail.probability, 0.15, 0.25, "probability of the tail");
    near(fit.engine.tail.median_ns, 1200e3, 0.3, "median of the tail");
    near(fit.engine.tail.p99_ns, 2600e3, 0.25, "p99 of the tail");
    cr_assert_eq(fit.devices[0].slower, 1);
    cr_assert_eq(fit.pause_frames, 0);
}

Test(lab_fit, finds_the_engine_in_bands_that_end_by_the_host_s_clock)
{
    estimate(SHAPE DEVICES("") ENGINE(", 'clock': 'host'"), SOME, 1);
    assert_costs(0.01);
    cr_assert(fit.host_clock);
    /* The fixed cost and the time to wake up cannot be told apart, so only their sum is known. */
    near(fit.devices[1].fixed_ns + fit.engine.ns, 330e3, 0.15, "fixed of b and wake");
    /* The engine often wakes up earlier, at the end of another band. */
    cr_assert_gt(fit.engine.tail.probability, 0.03);
    near(fit.engine.tail.median_ns, 1200e3, 0.3, "median of the tail");
}

Test(lab_fit, tells_wandering_levels_from_noise_and_jumps)
{
    estimate(SHAPE DEVICES(", 'level': {'change': 0.03, 'lag': 0.92}"), SOME, 1);
    for (int d = 0; d < 2; d++) {
        near(fit.devices[d].level_change, 0.03, 0.3, "change of the level");
        cr_assert_float_eq(fit.devices[d].level_lag, 0.92, 0.06, "lag %g", fit.devices[d].level_lag);
        cr_assert_eq(fit.devices[d].jump_frames, 0);
    }
    remove(path);
    estimate("'rows': 1080, 'granule': 8, 'frames': 2000, " DEVICES(
                 ", 'jitter': 0.01, 'jumps': {'frames': 25, 'sigma': 0.3}"),
             2, 1);
    for (int d = 0; d < 2; d++) {
        near(fit.devices[d].jump_frames, 25, 0.5, "frames between jumps");
        near(fit.devices[d].jump_sigma, 0.3, 0.3, "size of the jumps");
    }
}

Test(lab_fit, launches_that_hang_are_no_level)
{
    estimate(SHAPE DEVICES(", 'launch_tail': {'probability': 0.03, 'median_us': 6000, 'p99_us': 8000}"), 2, 1);
    for (int d = 0; d < 2; d++) {
        near(fit.devices[d].launch_tail.probability, 0.03, 0.5, "probability");
        near(fit.devices[d].launch_tail.median_ns, 6e6, 0.2, "median");
    }
    assert_costs(0.02);
}

/* Two GPUs whose launches cost more than a fifth of a band: their kernels alone do not tell the costs. */
#define GPUS(a, b)                                                                                          \
    "'rows': 2160, 'granule': 2, 'frames': 300, 'devices': [{'name': 'a', 'fixed_us': 150, 'row_us': 0.2, " \
    "'jitter': 0.02" a "}, {'name': 'b', 'fixed_us': 180, 'row_us': 0.25, 'jitter': 0.02" b "}]"
#define SUBMITS GPUS(", 'submit_us': 60", ", 'submit_us': 40")

Test(lab_fit, finds_what_submitting_a_band_costs_and_who_is_served_first)
{
    estimate(SUBMITS, 3, 1);
    near(fit.devices[1].submit_ns, 40e3, 0.05, "the one that is served first");
    cr_assert_gt(fit.devices[0].submit_ns, fit.devices[1].submit_ns, "nobody waits for the last one");
    near(fit.devices[0].fixed_ns, 150e3, 0.1, "fixed of a");
    near(fit.devices[0].row_ns, 200, 0.1, "row of a");
}

#define AHEAD ", 'ahead_us': 20, 'ahead_row_us': 0.08"
Test(lab_fit, finds_what_a_device_copies_while_it_works)
{
    estimate(GPUS(AHEAD, AHEAD) ", 'application': {'pause_frames': 8}", SOME, 2);
    for (int d = 0; d < 2; d++) {
        double saved_ns = fit.devices[d].ahead_ns + 1000 * fit.devices[d].ahead_row_ns;
        near(saved_ns, 100e3, 0.2, "saved by a band of 1000 rows");
        near(fit.devices[d].fixed_ns + 1000 * fit.devices[d].row_ns, d == 0 ? 350e3 : 430e3, 0.15, "the whole band");
    }
}

Test(lab_fit, finds_which_device_the_other_one_slows_down)
{
    /* The drift of `a` gives `b` bands of many sizes, without which size and slowdown are one. */
    estimate(SUBMITS ", 'contention': [{'slows': ['b'], 'slower': 1.3}], 'changes': [{'device': 'a', 'drift': 0.6, "
                     "'period': 100}]",
             2, 1);
    near(fit.devices[1].slower, 1.3, 0.06, "b beside a");
    fit.devices[0].slower = 1; /* a device that drifts seems to be slowed down */
    char *text = lab_fit_write(&fit, "fitted", "a test", LAB_FIT_UNCHANGED);
    scenario = lab_scenario_parse(text, strlen(text), "out.json", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    cr_assert_eq(scenario->contention_count, 1);
    cr_assert_eq(scenario->contentions[0].slows, 2);
    free(text);
}

Test(lab_fit, forecasts_do_not_count_the_time_between_frames)
{
    struct lab_fit_check checks[CHECKS_MAX];
    uint32_t count = 0;
    estimate(SUBMITS, 3, 1);
    fit.application.ns = 300e3;
    char *text = lab_fit_write(&fit, "fitted", "a test", LAB_FIT_UNCHANGED);
    cr_assert(lab_fit_check(data, &fit, text, 5, checks, CHECKS_MAX, &count, why, sizeof why), "%s", why);
    free(text);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_lt(lab_fit_error(&checks[i]), 0.05, "%s: %g", checks[i].name, lab_fit_error(&checks[i]));
}

Test(lab_fit, repeats_the_recorded_splits_of_a_policy_that_has_changed)
{
    struct lab_fit_check checks[CHECKS_MAX];
    uint32_t count = 0;
    estimate(SUBMITS, 3, 1);
    struct lab_replay_session *session = data->sessions;
    while (session->kind != LAB_REPLAY_POLICY || strcmp(session->policy, "last-frame") != 0)
        session++;
    session->changed = true;
    strcpy(session->policy, "single"); /* what the policy does today */
    lab_fit_free(&fit);
    cr_assert(lab_fit_estimate(data, &fit, why, sizeof why), "%s", why);
    char *text = lab_fit_write(&fit, "fitted", "a test", LAB_FIT_UNCHANGED);
    cr_assert(lab_fit_check(data, &fit, text, 5, checks, CHECKS_MAX, &count, why, sizeof why), "%s", why);
    free(text);
    struct lab_fit_check *check = checks;
    while (strcmp(check->name, "single") != 0)
        check++;
    cr_assert(check->changed);
    cr_assert_gt(check->forecast_ns, 1.3 * check->mean_ns, "one device is slower than the two that were recorded");
    near(check->own_ns, check->mean_ns, 0.03, "the recorded splits");
    cr_assert_lt(lab_fit_error(check), 0.03, "today's code does not count");

    text = lab_fit_write(&fit, "fitted", "a test", LAB_FIT_UNCHANGED);
    scenario = lab_scenario_parse(text, strlen(text), "out.json", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    cr_assert_eq(scenario->devices[0].trace_count, 2 * 300, "its levels are left out");
    free(text);
}

Test(lab_fit, forecasts_the_policies_that_were_recorded)
{
    char name[128];
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        struct lab_fit_check checks[CHECKS_MAX];
        uint32_t count = 0;
        estimate(SHAPE DEVICES(", 'jitter': 0.03, 'level': {'change': 0.02, 'lag': 0.95}") ENGINE(""), SOME, in_flight);
        for (int traces = 0; traces < 2; traces++) {
            char *text = lab_fit_write(&fit, "fitted", "a test", traces ? LAB_FIT_UNCHANGED : LAB_FIT_MODEL);
            cr_assert_not_null(text);
            cr_assert(lab_fit_check(data, &fit, text, 5, checks, CHECKS_MAX, &count, why, sizeof why), "%s", why);
            free(text);
            cr_assert_eq(count, SOME + 2, "the policies and each device alone");
            for (uint32_t i = 0; i < SOME; i++) {
                snprintf(name, sizeof name, "%.80s, %u in flight", checks[i].name, (unsigned)in_flight);
                cr_assert_eq(checks[i].simple, strcmp(checks[i].name, "hguided") != 0);
                /* A recorded simulation has no time between frames, although the engine may be late there, too. */
                near(checks[i].forecast_ns, checks[i].mean_ns, in_flight == 1 ? 0.06 : 0.04, name);
            }
        }
        remove(path);
    }
}

Test(lab_fit, what_it_writes_is_what_it_found)
{
    estimate(NOISY, SOME, 1);
    char *text = lab_fit_write(&fit, "fitted", "a \"test\"", LAB_FIT_MODEL);
    scenario = lab_scenario_parse(text, strlen(text), "out.json", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    cr_assert_str_eq(scenario->text, "a \"test\"");
    near(scenario->devices[1].fixed_ns, fit.devices[1].fixed_ns, 1e-6, "fixed");
    near(scenario->devices[0].jitter, fit.devices[0].jitter, 1e-3, "noise");
    near(scenario->engine.tail.p99_ns, fit.engine.tail.p99_ns, 1e-6, "p99");
    cr_assert_eq(scenario->frames, 400);
    cr_assert_eq(scenario->traced, 0);
    free(text);
    lab_scenario_free(&scenario);
    text = lab_fit_write(&fit, "fitted", "a test", LAB_FIT_UNCHANGED);
    scenario = lab_scenario_parse(text, strlen(text), "out.json", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    cr_assert_eq(scenario->devices[0].trace_count, SOME * 400);
    free(text);
}

Test(lab_fit, says_what_a_run_lacks)
{
    record("'rows': 100, 'frames': 5, " DEVICES(""), some, 1, 1);
    load();
    cr_assert(!lab_fit_estimate(data, &fit, why, sizeof why));
    cr_assert_not_null(strstr(why, "the run has fewer than 16 frames"), "%s", why);
}
