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
    cr_assert_eq(fit.slowdown, 1);
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

Test(lab_fit, forecasts_the_policies_that_were_recorded)
{
    char name[128];
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        struct lab_fit_check checks[CHECKS_MAX];
        uint32_t count = 0;
        estimate(SHAPE DEVICES(", 'jitter': 0.03, 'level': {'change': 0.02, 'lag': 0.95}") ENGINE(""), SOME, in_flight);
        for (int traces = 0; traces < 2; traces++) {
            char *text = lab_fit_write(&fit, "fitted", "a test", traces);
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
    char *text = lab_fit_write(&fit, "fitted", "a \"test\"", false);
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
    text = lab_fit_write(&fit, "fitted", "a test", true);
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
