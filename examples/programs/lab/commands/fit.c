/* cox-lab fit: a scenario like a recorded run, and how well policies are forecast in it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "lab/arguments.h"
#include "common/outfile.h"
#include "lab/commands.h"
#include "lab/fit/check.h"
#include "lab/fit/costs.h"
#include "lab/replay/world.h"
#include "lab/store/database.h"

#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { WHY_MAX = 640, SEEDS_DEFAULT = 20, SEEDS_MAX = 1000, CHECKS_MAX = 64 };

struct fit_options {
    const char *path;
    const char *out; /* NULL = no scenario is written */
    int64_t run;     /* 0 = the last */
    uint32_t seeds;
    bool model;
    bool check;
};

static void print_usage(FILE *to)
{
    fputs("Usage: cox-lab fit [options] SESSION.db\n"
          "\n"
          "Makes a scenario for cox-lab sim from a recorded run: costs of the devices, "
          "their variation, and\n"
          "delays of the engine and the application. Then forecasts the recorded "
          "policies with it.\n"
          "\n"
          "  -o FILE          write the scenario to FILE\n"
          "  --run N          run of the database (default: the last)\n"
          "  --model          draw random levels like the recorded ones, instead of "
          "repeating those\n"
          "  --seeds N        simulations of each policy (default: 20)\n"
          "  --check          exit with status 3 if a forecast is more than 10 % wrong,\n"
          "                   or if the simple policies come in different order\n"
          "  -h, --help       print this text\n",
          to);
}

enum { OPT_RUN = 256, OPT_SEEDS };

/* Returns an exit status to end with; negative = go on. */
static int parse(int argc, char **argv, struct fit_options *options)
{
    int model = 0, check = 0;
    const struct option known[] = {
        {"run", required_argument, NULL, OPT_RUN}, {"seeds", required_argument, NULL, OPT_SEEDS},
        {"model", no_argument, &model, 1},         {"check", no_argument, &check, 1},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    uint64_t seeds = SEEDS_DEFAULT;
    bool ok = true;

    optind = 0; /* getopt starts over */
    for (int c; ok && (c = getopt_long(argc, argv, "ho:", known, NULL)) != -1;) {
        switch (c) {
        case 0:
            break;
        case 'o':
            options->out = optarg;
            break;
        case OPT_RUN:
            ok = lab_read_run(optarg, &options->run);
            break;
        case OPT_SEEDS:
            ok = lab_read_whole("--seeds", optarg, 1, SEEDS_MAX, &seeds);
            break;
        case 'h':
            print_usage(stdout);
            return LAB_OK;
        default:
            ok = false;
        }
    }

    if (ok && optind == argc)
        ok = lab_fail("fit: missing session database");
    if (ok && optind + 1 < argc)
        ok = lab_fail("fit: only one session database is allowed");
    if (!ok)
        return lab_refer_to_help("fit");

    options->path = argv[optind];
    options->seeds = (uint32_t)seeds;
    options->model = model;
    options->check = check;

    return -1;
}

/* --- What was found --------------------------------------------------------------------------- */

static void print_tail(const char *what, const struct lab_scenario_tail *tail)
{
    if (tail->probability > 0)
        printf(", %s %.1f %% by %.0f us, p99 %.0f us", what, 100 * tail->probability,
               tail->median_ns / 1e3, tail->p99_ns / 1e3);
}

static void print_device(const struct lab_fit *fit, uint32_t d)
{
    const struct lab_fit_device *device = &fit->devices[d];

    printf("  device %" PRIu32 "  %s: ", d, fit->device_names[d]);
    if (device->bands == 0) {
        puts("not used, because it never had rows");
        return;
    }

    printf("%.1f us + %.3f us per row, %.1f us per further launch", device->fixed_ns / 1e3,
           device->row_ns / 1e3, device->launch_ns / 1e3);
    print_tail("late launches", &device->launch_tail);
    if (device->ahead_ns + device->ahead_row_ns > 0)
        printf("\n            up to %.1f us + %.3f us per row less if the band waited",
               device->ahead_ns / 1e3, device->ahead_row_ns / 1e3);
    if (device->slower > 1)
        printf("\n            %.2f times slower while other devices work", device->slower);
    if (device->submit_ns > 0)
        printf("\n            the engine needs %.1f us to submit a band", device->submit_ns / 1e3);
    printf("\n            noise %.1f %%, level changes by %.2f %% per frame, lag %.3f",
           100 * device->jitter, 100 * device->level_change, device->level_lag);
    if (device->jump_frames > 0)
        printf(", jumps every %.1f frames, sigma %.2f", device->jump_frames, device->jump_sigma);
    putchar('\n');
}

static void print_fit(const struct lab_fit *fit)
{
    for (uint32_t d = 0; d < fit->device_count; d++)
        print_device(fit, d);

    printf("  engine    %.1f us latency, %.1f us per operation", fit->engine.ns / 1e3,
           fit->busy_ns / 1e3);
    print_tail("late", &fit->engine.tail);
    print_tail("stalls before handing out rows", &fit->engine.stall);
    print_tail("before submitting bands", &fit->engine.submit);

    printf("\n            ends of bands by the %s's clock\n", fit->host_clock ? "host" : "device");
    printf("  application %.1f us from delivery to next frame", fit->application.ns / 1e3);
    print_tail("late", &fit->application.tail);
    if (fit->pause_frames > 0)
        printf(", pause every %" PRIu64 " frames", fit->pause_frames);
    puts("\n");
}

static void print_ratio(double forecast, double measured)
{
    if (forecast > 0)
        printf("%7.3f", forecast / measured);
    else
        printf("%7s", "-");
}

/* Say for which policies the scenario is no model. */
static void warn_of_errors(const struct lab_fit_check *checks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double error = lab_fit_error(&checks[i]);

        if (error > LAB_FIT_ERROR_MAX)
            printf("warning: the forecast of %s is %.0f %% off; do not judge it by this "
                   "scenario\n",
                   checks[i].name, 100 * error);
    }
}

static const char *order_text(const struct lab_fit_check *checks, uint32_t count, bool own)
{
    if (lab_fit_same_order(checks, count, own))
        return "the same";

    return "different";
}

/* What is to be said after the line of a policy. */
static const char *mark_of(const struct lab_fit_check *check)
{
    if (lab_fit_error(check) > LAB_FIT_ERROR_MAX)
        return check->changed ? " * changed" : " *";

    return check->changed ? " changed" : "";
}

/* Returns whether all policies are forecast well, and the simple ones in the recorded order. */
static bool print_checks(const struct lab_fit *fit, const struct lab_fit_check *checks,
                         uint32_t count)
{
    bool good = true, with_own = false, changed = false;

    printf("%" PRIu32 " frame%s in flight; forecast / measured\n", fit->in_flight,
           fit->in_flight == 1 ? "" : "s");
    printf("  %-20s %10s %10s %7s %7s %10s %10s %7s %7s\n", "policy", "mean ms", "forecast", "",
           "own", "p99 ms", "forecast", "", "own");

    for (uint32_t i = 0; i < count; i++) {
        const struct lab_fit_check *c = &checks[i];

        printf("  %-20s %10.3f %10.3f %7.3f ", c->name, c->mean_ns / 1e6, c->forecast_ns / 1e6,
               c->forecast_ns / c->mean_ns);
        print_ratio(c->own_ns, c->mean_ns);
        printf(" %10.3f %10.3f %7.3f ", c->p99_ns / 1e6, c->forecast_p99_ns / 1e6,
               c->forecast_p99_ns / c->p99_ns);
        print_ratio(c->own_p99_ns, c->p99_ns);
        puts(mark_of(c));
        good &= lab_fit_error(c) <= LAB_FIT_ERROR_MAX;
        changed |= c->changed;
        with_own |= c->own_ns > 0;
    }

    printf("order of the simple policies: %s", order_text(checks, count, false));
    if (with_own)
        printf("; with each policy's own levels: %s", order_text(checks, count, true));
    putchar('\n');
    if (changed)
        puts("changed: the policy decides otherwise than when it was recorded, so only 'own' "
             "counts. It repeats\n"
             "the recorded splits.");
    warn_of_errors(checks, count);

    return good && lab_fit_same_order(checks, count, true);
}

static bool write_file(const char *path, const char *text)
{
    struct outfile *file;
    struct error error;
    if (!outfile_open(&file, path, &error))
        return lab_fail("%s: %s", path, error.text);

    fputs(text, outfile_stream(file));
    return outfile_finish(&file, &error) || lab_fail("%s: %s", path, error.text);
}

/* Ask the policies again what they decide. A session without a tape is not asked. */
static void find_changed(sqlite3 *db, struct lab_replay_data *data)
{
    for (size_t s = 0; s < data->session_count; s++) {
        struct lab_replay_session *session = &data->sessions[s];
        struct lab_replay_decisions decisions = {0};
        struct cox_policy policy;
        char why[WHY_MAX];

        if (lab_fit_is_policy(session) && lab_replay_policy(session->policy, &policy) &&
            lab_replay_decide(db, session, &policy, &decisions, why, sizeof why))
            session->changed = decisions.different > 0;
    }
}

static int fit_run(const struct fit_options *options, const struct lab_replay_data *data,
                   struct lab_fit *fit)
{
    char why[WHY_MAX], text[LAB_TEXT_MAX], path[81], kernel[41];
    struct lab_fit_check checks[CHECKS_MAX];
    uint32_t count = 0;
    int result = LAB_BAD;

    snprintf(text, sizeof text, "like run %" PRId64 " of %s, %s, %" PRIu32 " in flight", data->run,
             text_plain(options->path, path, sizeof path),
             text_plain(data->kernel, kernel, sizeof kernel), fit->in_flight);
    char *scenario = lab_fit_write(fit, "fitted", text,
                                   options->model ? LAB_FIT_MODEL : LAB_FIT_UNCHANGED);
    if (!scenario) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    printf("run %" PRId64 " of %s\n", data->run, options->path);
    print_fit(fit);
    if (options->out && !write_file(options->out, scenario))
        goto end;

    if (!lab_fit_check(data, fit, scenario, options->seeds, checks, CHECKS_MAX, &count, why,
                       sizeof why)) {
        lab_fail("%s: %s", options->path, why);
        goto end;
    }
    result = LAB_OK;
    if (!print_checks(fit, checks, count) && options->check)
        result = LAB_MISSED;

end:
    free(scenario);

    return result;
}

int lab_fit_main(int argc, char **argv)
{
    struct fit_options options = {0};
    struct lab_replay_data *data = NULL;
    struct lab_fit fit;
    sqlite3 *db = NULL;
    char why[WHY_MAX];

    int result = parse(argc, argv, &options);
    if (result >= 0)
        return result;

    result = LAB_BAD;
    if (!lab_store_open_to_read(options.path, &db, why, sizeof why)) {
        lab_fail("%s", why);
    } else if (!lab_replay_read(db, options.run, &data, why, sizeof why)) {
        lab_fail("%s: %s", options.path, why);
    } else {
        find_changed(db, data);
        if (lab_fit_estimate(data, &fit, why, sizeof why)) {
            result = fit_run(&options, data, &fit);
            lab_fit_free(&fit);
        } else {
            lab_fail("%s: %s", options.path, why);
        }
    }
    lab_replay_free(&data);
    sqlite3_close(db);

    if (!lab_output_written())
        result = LAB_BAD;

    return result;
}
