/* Prints the results of a replay as a table, CSV or JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A replay whose times are off by more does not reproduce the recording. */
static const double UNFAITHFUL = 0.05;

/* The value, or NaN unless it is known. */
static double if_known(bool known, double value)
{
    if (known)
        return value;

    return NAN;
}

static bool was_replayed(const struct replay_outcome *outcome)
{
    return !outcome->why[0];
}

/* The replay of a policy in its own sessions over the recording. */
static double fidelity(const struct replay_outcome *outcome)
{
    return if_known(outcome->own_recorded_ns > 0, outcome->own_ns / outcome->own_recorded_ns);
}

/* The replay in the sessions of the base over the recording. */
static double over_recorded(const struct replay_outcome *outcome)
{
    return if_known(outcome->recorded.frames && outcome->replayed.frames,
                    outcome->replayed.mean_ns / outcome->recorded.mean_ns);
}

static double recorded_mean_ns(const struct replay_outcome *outcome)
{
    return if_known(outcome->recorded.frames, outcome->recorded.mean_ns);
}

static const char *base_name(const struct replay_job *job)
{
    if (!job->options->base)
        return "all";

    return job->options->base;
}

/* Mean time of frames beyond their longest device. */
static double overhead_of(const struct lab_replay *replay)
{
    double sum = 0;
    for (uint64_t f = 0; f < replay->world.frames; f++)
        sum += replay->overhead_ns[f];
    return sum / (double)replay->world.frames;
}

static void print_device(const struct lab_replay *replay, uint32_t device)
{
    const struct lab_replay_fit *fit = &replay->fits[device];

    printf("  device %u  %s: ", (unsigned)device, replay->data->device_names[device]);
    if (!fit->bands) {
        puts("not used, because it never had rows");
        return;
    }
    printf("%.1f us + %.3f us per row", fit->fixed_ns / 1e3, fit->ns_per_row / 1e3);
    if (fit->launch_known)
        printf(", %.1f us per further launch", fit->launch_ns / 1e3);
    if (fit->slowdown_known)
        printf(", %.2f times slower while the others work", fit->slowdown);
    if (fit->fixed_known)
        printf(" (from %zu bands)\n", fit->bands);
    else
        puts(" (fixed cost unknown: its bands have similar lengths)");
}

static void print_pass(const struct lab_replay *replay, uint32_t pass)
{
    const struct lab_replay_data *data = replay->data;

    printf("  pass %" PRIu32, pass);
    if (data->pass_name[0])
        printf(", %s", data->pass_name);
    printf(", %" PRIu32 " rows", data->rows);
    if (pass > 0)
        printf(", %.1f us after the previous pass", replay->world.before_ns / 1e3);
    putchar('\n');
}

static void print_ratio(double value, const char *after)
{
    if (isfinite(value))
        printf(" %9.3f%s", value, after);
    else
        printf(" %9s%s", "-", after);
}

/* The run and its devices. */
static void print_head(const struct replay_job *job)
{
    const struct lab_replay_data *data = job->data;
    const char *base = "all policies";
    uint32_t pass = 0;

    if (job->options->base)
        base = job->options->base;
    printf("run %" PRId64 "%s, %s: conditions of %zu session%s of %s\n", data->run,
           data->finished ? "" : " (unfinished)", data->kernel, job->base_sessions,
           job->base_sessions == 1 ? "" : "s", base);

    for (const struct lab_replay *of = job->first; of; of = of->next_pass, pass++) {
        if (data->pass_count > 1)
            print_pass(of, pass);
        for (uint32_t d = 0; d < of->data->device_count; d++)
            print_device(of, d);
    }

    printf("  a frame takes %.1f us longer than its slowest device\n\n",
           overhead_of(job->first) / 1e3);
    if (data->objective == COX_OBJECTIVE_ENERGY)
        puts("a replay has no energy meter: policies minimise time, not energy\n");
}

/* Returns whether the replay reproduces the recording of the policy. */
static bool print_row(const struct replay_outcome *outcome)
{
    const char *mark = "";

    printf("%-16s", outcome->policy.name);
    if (!was_replayed(outcome)) {
        printf(" %s\n", outcome->why);
        return true;
    }

    if (fabs(fidelity(outcome) - 1) > UNFAITHFUL)
        mark = "*";
    printf(" %9.3f %9.3f %9.3f", outcome->replayed.mean_ns / 1e6, outcome->replayed.p50_ns / 1e6,
           outcome->replayed.p99_ns / 1e6);
    print_ratio(outcome->over_oracle, "");
    print_ratio(recorded_mean_ns(outcome) / 1e6, "");
    print_ratio(over_recorded(outcome), "");
    print_ratio(fidelity(outcome), mark);
    if (outcome->refused)
        printf("  %" PRIu64 " splits invalid", outcome->refused);
    putchar('\n');

    return !*mark;
}

static void print_table(const struct replay_job *job)
{
    bool faithful = true;

    print_head(job);
    printf("%-16s %9s %9s %9s %9s %9s %9s %9s\n", "policy", "mean ms", "p50 ms", "p99 ms",
           "/oracle", "recorded", "/recorded", "fidelity");
    for (uint32_t p = 0; p < job->outcome_count; p++)
        faithful &= print_row(&job->outcomes[p]);

    puts("\nrecorded: mean of the policy's own sessions. fidelity: the policy replayed in "
         "its own sessions / recorded.");
    if (!faithful)
        puts("* the replay differs from the recording by more than 5 %: this row is unreliable.");
}

/* The figures of a policy in CSV and JSON; NaN = unknown. */
enum { FIGURES = 7 };
static const char *const figure_keys[FIGURES] = {
    "mean_us",          "p50_us",        "p99_us",  "mean_over_oracle",
    "recorded_mean_us", "over_recorded", "fidelity"};

static void figures_of(const struct replay_outcome *outcome, double figures[FIGURES])
{
    const bool good = was_replayed(outcome);

    figures[0] = if_known(good, outcome->replayed.mean_ns / 1e3);
    figures[1] = if_known(good, outcome->replayed.p50_ns / 1e3);
    figures[2] = if_known(good, outcome->replayed.p99_ns / 1e3);
    figures[3] = if_known(good, outcome->over_oracle);
    figures[4] = recorded_mean_ns(outcome) / 1e3;
    figures[5] = over_recorded(outcome);
    figures[6] = fidelity(outcome);
}

static void print_csv(const struct replay_job *job)
{
    fputs("run,base,policy,frames", stdout);
    for (int i = 0; i < FIGURES; i++)
        printf(",%s", figure_keys[i]);
    puts(",refused");

    for (uint32_t p = 0; p < job->outcome_count; p++) {
        const struct replay_outcome *outcome = &job->outcomes[p];
        double figures[FIGURES];

        figures_of(outcome, figures);
        printf("%" PRId64 ",%s,%s,%zu", job->data->run, base_name(job), outcome->policy.name,
               outcome->replayed.frames);
        for (int i = 0; i < FIGURES; i++) {
            putchar(',');
            if (isfinite(figures[i]))
                printf("%.6f", figures[i]);
        }
        printf(",%" PRIu64 "\n", outcome->refused);
    }
}

static void json_device(struct json *json, const struct replay_job *job, uint32_t device)
{
    const struct lab_replay_fit *fit = &job->first->fits[device];

    json_open_object(json, true);
    json_member_string(json, "name", job->data->device_names[device]);
    json_member_unsigned(json, "bands", fit->bands);
    json_member_number(json, "fixed_us", if_known(fit->fixed_known, fit->fixed_ns / 1e3));
    json_member_number(json, "row_us", if_known(fit->bands, fit->ns_per_row / 1e3));
    json_member_number(json, "launch_us", if_known(fit->launch_known, fit->launch_ns / 1e3));
    json_member_number(json, "slowdown", if_known(fit->slowdown_known, fit->slowdown));
    json_close_object(json);
}

static void json_outcome(struct json *json, const struct replay_outcome *outcome)
{
    double figures[FIGURES];

    figures_of(outcome, figures);
    json_open_object(json, true);
    json_member_string(json, "policy", outcome->policy.name);
    json_member_unsigned(json, "frames", outcome->replayed.frames);
    for (int i = 0; i < FIGURES; i++)
        json_member_number(json, figure_keys[i], figures[i]);
    json_member_unsigned(json, "refused", outcome->refused);

    json_key(json, "error");
    if (was_replayed(outcome))
        json_null(json);
    else
        json_string(json, outcome->why);
    json_close_object(json);
}

static void print_json(const struct replay_job *job)
{
    struct json json;

    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_unsigned(&json, "run", (uint64_t)job->data->run);
    json_member_string(&json, "base", base_name(job));
    json_member_unsigned(&json, "sessions", job->base_sessions);
    json_member_number(&json, "overhead_us", overhead_of(job->first) / 1e3);

    json_member_array(&json, "devices", false);
    for (uint32_t d = 0; d < job->data->device_count; d++)
        json_device(&json, job, d);
    json_close_array(&json);

    json_member_array(&json, "policies", false);
    for (uint32_t p = 0; p < job->outcome_count; p++)
        json_outcome(&json, &job->outcomes[p]);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}

void lab__replay_print(const struct replay_job *job)
{
    if (job->options->format == REPLAY_JSON)
        print_json(job);
    else if (job->options->format == REPLAY_CSV)
        print_csv(job);
    else
        print_table(job);
}
