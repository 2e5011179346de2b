/* What a replay came to: as a table, as CSV, as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Beyond this a replay does not give back what was recorded. */
static const double UNFAITHFUL = 0.05;

/* How well a replay of a policy in its own sessions gives back what was recorded. */
static double fidelity(const struct replay_outcome *outcome)
{
    return outcome->own_recorded_ns > 0 ? outcome->own_ns / outcome->own_recorded_ns : NAN;
}

/* How well what other sessions say of it does. */
static double over_recorded(const struct replay_outcome *outcome)
{
    return outcome->recorded.frames && outcome->replayed.frames
               ? outcome->replayed.mean_ns / outcome->recorded.mean_ns
               : NAN;
}

static const char *base_name(const struct replay_job *job)
{
    return job->options->base ? job->options->base : "all";
}

/* Mean of what frames took beyond their longest device. */
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
        puts("never had rows; it takes no part");
        return;
    }
    printf("%.1f us + %.3f us a row", fit->fixed_ns / 1e3, fit->ns_per_row / 1e3);
    if (fit->launch_known)
        printf(", %.1f us a further launch", fit->launch_ns / 1e3);
    if (fit->slowdown_known)
        printf(", %.2f times slower beside the others", fit->slowdown);
    printf(fit->uncertain > 0.15 ? " (fixed cost unknown: its bands were all about as long)\n"
                                 : " (from %zu bands)\n",
           fit->bands);
}

static void print_pass(const struct lab_replay *replay, uint32_t pass)
{
    const struct lab_replay_data *data = replay->data;
    printf("  pass %" PRIu32 "%s%s, %" PRIu32 " rows", pass, data->pass_name[0] ? ", " : "",
           data->pass_name, data->rows);
    if (pass > 0)
        printf(", %.1f us after the one before", replay->world.before_ns / 1e3);
    putchar('\n');
}

static void print_ratio(double value, const char *after)
{
    if (isfinite(value))
        printf(" %9.3f%s", value, after);
    else
        printf(" %9s%s", "-", after);
}

static void print_table(const struct replay_job *job)
{
    const struct lab_replay_data *data = job->data;
    printf("run %" PRId64 "%s, %s: what %zu session%s of %s%s met\n", data->run,
           data->finished ? "" : " (unfinished)", data->kernel, job->base_sessions,
           job->base_sessions == 1 ? "" : "s", job->options->base ? "" : "all policies",
           job->options->base ? job->options->base : "");
    uint32_t pass = 0;
    for (const struct lab_replay *of = job->first; of; of = of->next_pass, pass++) {
        if (data->pass_count > 1)
            print_pass(of, pass);
        for (uint32_t d = 0; d < of->data->device_count; d++)
            print_device(of, d);
    }
    printf("  a frame    %.1f us beyond its longest device\n\n", overhead_of(job->first) / 1e3);
    if (data->objective == COX_OBJECTIVE_ENERGY)
        puts("a replay has no meter: policies make the time small, not the energy\n");
    printf("%-16s %9s %9s %9s %9s %9s %9s %9s\n", "policy", "mean ms", "p50 ms", "p99 ms",
           "/oracle", "recorded", "/recorded", "fidelity");
    bool unfaithful = false;
    for (uint32_t p = 0; p < job->outcome_count; p++) {
        const struct replay_outcome *outcome = &job->outcomes[p];
        printf("%-16s", outcome->policy.name);
        if (outcome->why[0]) {
            printf(" %s\n", outcome->why);
            continue;
        }
        bool off = fabs(fidelity(outcome) - 1) > UNFAITHFUL;
        unfaithful = unfaithful || off;
        printf(" %9.3f %9.3f %9.3f", outcome->replayed.mean_ns / 1e6,
               outcome->replayed.p50_ns / 1e6, outcome->replayed.p99_ns / 1e6);
        print_ratio(outcome->over_oracle, "");
        print_ratio(outcome->recorded.frames ? outcome->recorded.mean_ns / 1e6 : NAN, "");
        print_ratio(over_recorded(outcome), "");
        print_ratio(fidelity(outcome), off ? "*" : "");
        if (outcome->refused)
            printf("  %" PRIu64 " splits refused", outcome->refused);
        putchar('\n');
    }
    puts(
        "\nrecorded: the policy's own sessions. fidelity: it replayed in its own sessions, over these.");
    if (unfaithful)
        puts(
            "* something was at work that a replay cannot know: what is said of this policy is not to be relied upon.");
}

static void csv_number(double value, double scale)
{
    if (isfinite(value))
        printf(",%.6f", value * scale);
    else
        putchar(',');
}

static void print_csv(const struct replay_job *job)
{
    puts(
        "run,base,policy,frames,mean_us,p50_us,p99_us,mean_over_oracle,recorded_mean_us,over_recorded,fidelity,refused");
    for (uint32_t p = 0; p < job->outcome_count; p++) {
        const struct replay_outcome *outcome = &job->outcomes[p];
        bool good = !outcome->why[0];
        printf("%" PRId64 ",%s,%s,%zu", job->data->run, base_name(job), outcome->policy.name,
               outcome->replayed.frames);
        csv_number(good ? outcome->replayed.mean_ns : NAN, 1e-3);
        csv_number(good ? outcome->replayed.p50_ns : NAN, 1e-3);
        csv_number(good ? outcome->replayed.p99_ns : NAN, 1e-3);
        csv_number(good ? outcome->over_oracle : NAN, 1);
        csv_number(outcome->recorded.frames ? outcome->recorded.mean_ns : NAN, 1e-3);
        csv_number(over_recorded(outcome), 1);
        csv_number(fidelity(outcome), 1);
        printf(",%" PRIu64 "\n", outcome->refused);
    }
}

static void json_pair(struct json *json, const char *key, double value)
{
    json_key(json, key);
    json_number(json, value);
}

static void json_device(struct json *json, const struct replay_job *job, uint32_t device)
{
    const struct lab_replay_fit *fit = &job->first->fits[device];
    json_open_object(json, true);
    json_key(json, "name");
    json_string(json, job->data->device_names[device]);
    json_key(json, "bands");
    json_unsigned(json, fit->bands);
    json_pair(json, "fixed_us", fit->fixed_known ? fit->fixed_ns / 1e3 : NAN);
    json_pair(json, "row_us", fit->bands ? fit->ns_per_row / 1e3 : NAN);
    json_pair(json, "launch_us", fit->launch_known ? fit->launch_ns / 1e3 : NAN);
    json_pair(json, "slowdown", fit->slowdown_known ? fit->slowdown : NAN);
    json_close_object(json);
}

static void json_outcome(struct json *json, const struct replay_outcome *outcome)
{
    bool good = !outcome->why[0];
    json_open_object(json, true);
    json_key(json, "policy");
    json_string(json, outcome->policy.name);
    json_key(json, "frames");
    json_unsigned(json, outcome->replayed.frames);
    json_pair(json, "mean_us", good ? outcome->replayed.mean_ns / 1e3 : NAN);
    json_pair(json, "p50_us", good ? outcome->replayed.p50_ns / 1e3 : NAN);
    json_pair(json, "p99_us", good ? outcome->replayed.p99_ns / 1e3 : NAN);
    json_pair(json, "mean_over_oracle", good ? outcome->over_oracle : NAN);
    json_pair(json, "recorded_mean_us",
              outcome->recorded.frames ? outcome->recorded.mean_ns / 1e3 : NAN);
    json_pair(json, "over_recorded", over_recorded(outcome));
    json_pair(json, "fidelity", fidelity(outcome));
    json_key(json, "refused");
    json_unsigned(json, outcome->refused);
    json_key(json, "error");
    if (good)
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
    json_key(&json, "run");
    json_unsigned(&json, (uint64_t)job->data->run);
    json_key(&json, "base");
    json_string(&json, base_name(job));
    json_key(&json, "sessions");
    json_unsigned(&json, job->base_sessions);
    json_pair(&json, "overhead_us", overhead_of(job->first) / 1e3);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t d = 0; d < job->data->device_count; d++)
        json_device(&json, job, d);
    json_close_array(&json);
    json_key(&json, "policies");
    json_open_array(&json, false);
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
