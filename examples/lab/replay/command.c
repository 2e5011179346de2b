/* cox-lab replay: a recorded session through other policies, and through its own again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "world.h"
#include "lab/store/database.h"
#include "common/figures.h"
#include "common/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLICIES_MAX = 32, WHY_MAX = 640 };

/* Beyond this a replay does not give back what was recorded. */
static const double UNFAITHFUL = 0.05;

enum format { TABLE, CSV, JSON };

struct replay_options {
    const char *path;
    int64_t run;      /* 0 = the last */
    const char *base; /* NULL = every recorded policy */
    uint32_t policy_count;
    struct cox_policy policies[POLICIES_MAX];
    enum format format;
    bool decisions;
};

static void print_usage(FILE *to)
{
    fputs(
        "Usage: cox-lab replay [options] SESSION.db\n\n"
        "What other policies would have done with a recorded session: its devices, its disturbances and its chance, frame\n"
        "by frame, in the simulator.\n\n"
        "  --run N          this run of the database (default: the last)\n"
        "  --base POLICY    with what the sessions of this policy met (default: those of every policy)\n"
        "  --policy LIST    replay these policies, with commas (default: all)\n"
        "  --decisions      instead: ask each recorded policy again with the very measurements that were recorded, and\n"
        "                   compare its splits; exit status 3 if one differs\n"
        "  --csv, --json    instead of the table\n"
        "  -h, --help\n",
        to);
}

/* --- Arguments ---------------------------------------------------------------------------------------------------- */

static bool add_policies(struct replay_options *options, char *list)
{
    for (char *name = list; name;) {
        char *comma = strchr(name, ',');
        if (comma)
            *comma = '\0';
        struct cox_policy policy;
        if (!lab_replay_policy(name, &policy))
            return lab_fail("there is no policy '%s'; cox-lab sim --list names those that there are", name);
        bool known = false;
        for (uint32_t p = 0; p < options->policy_count; p++)
            known = known || strcmp(options->policies[p].name, name) == 0;
        if (!known && options->policy_count < POLICIES_MAX)
            options->policies[options->policy_count++] = policy;
        name = comma ? comma + 1 : NULL;
    }
    return true;
}

static bool parse_run(const char *text, int64_t *run)
{
    char *end = NULL;
    errno = 0;
    *run = strtoll(text, &end, 10);
    return (!errno && end != text && !*end && *run > 0) ||
           lab_fail("--run must be the number of a run, from 1, not '%s'", text);
}

/* Returns an exit status to end with; negative = go on. */
static int parse(int argc, char **argv, struct replay_options *options)
{
    enum { OPT_RUN = 256, OPT_BASE, OPT_POLICY };
    int format = TABLE, decisions = 0;
    const struct option known[] = {{"run", required_argument, NULL, OPT_RUN},
                                   {"base", required_argument, NULL, OPT_BASE},
                                   {"policy", required_argument, NULL, OPT_POLICY},
                                   {"decisions", no_argument, &decisions, 1},
                                   {"csv", no_argument, &format, CSV},
                                   {"json", no_argument, &format, JSON},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    bool good = true;
    optind = 0; /* the words before were the program's own */
    for (int c; good && (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == 'h') {
            print_usage(stdout);
            return LAB_OK;
        }
        if (c == OPT_RUN)
            good = parse_run(optarg, &options->run);
        else if (c == OPT_BASE)
            options->base = optarg;
        else if (c == OPT_POLICY)
            good = add_policies(options, optarg);
        else
            good = c == 0;
    }
    if (good && argc - optind != 1)
        good = lab_fail("one session database is needed, not %d", argc - optind);
    if (!good) {
        fputs("cox-lab replay --help explains it.\n", stderr);
        return LAB_USAGE;
    }
    options->path = argv[optind];
    options->format = (enum format)format;
    options->decisions = decisions;
    return -1;
}

/* --- Replaying ---------------------------------------------------------------------------------------------------- */

/* Frame times of one policy. */
struct times {
    double *ns;
    size_t count;
};

struct figures {
    size_t frames;
    double mean_ns, p50_ns, p99_ns;
};

/* What became of one policy in all sessions of the base. */
struct outcome {
    struct cox_policy policy;
    struct figures replayed;
    double over_oracle;      /* mean over mean, in the replay */
    double own_ns;           /* sum of frame times, replayed in its own sessions */
    double own_recorded_ns;  /* sum of frame times, recorded in them */
    struct figures recorded; /* of its own sessions in the run; frames 0 = it was not recorded */
    uint64_t refused;
    char why[WHY_MAX]; /* not empty: it could not be replayed */
};

struct job {
    const struct replay_options *options;
    struct sqlite3 *db;
    struct lab_replay_data *data;
    size_t base_sessions;
    struct outcome outcomes[POLICIES_MAX];
    uint32_t outcome_count;
    const struct lab_replay *first; /* of the base's first session, for what is said of the devices */
};

static struct figures figures_of(const struct times *times)
{
    double sum = 0;
    for (size_t i = 0; i < times->count; i++)
        sum += times->ns[i];
    return (struct figures){
        .frames = times->count,
        .mean_ns = times->count ? sum / (double)times->count : 0,
        .p50_ns = figures_percentile(times->ns, times->count, 50),
        .p99_ns = figures_percentile(times->ns, times->count, 99),
    };
}

/* The oracle of a recorded simulation has no band times. */
static bool can_replay(const struct lab_replay_session *session)
{
    return session->kind == LAB_REPLAY_POLICY && session->frame_count && strcmp(session->policy, "oracle") != 0;
}

static bool is_base(const struct job *job, const struct lab_replay_session *session)
{
    return can_replay(session) && (!job->options->base || strcmp(session->policy, job->options->base) == 0);
}

/* Frames of all sessions of a policy as they were recorded. */
static void record_of(const struct job *job, const char *policy, struct times *times)
{
    times->count = 0;
    for (size_t s = 0; s < job->data->session_count; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        if (session->kind != LAB_REPLAY_POLICY || strcmp(session->policy, policy) != 0)
            continue;
        for (size_t f = 0; f < session->frame_count; f++)
            if (session->frames[f].good)
                times->ns[times->count++] = session->frames[f].period_ns;
    }
}

/* One policy through one session; adds to `times` if the session is one of the base. */
static bool replay_one(const struct job *job, const struct lab_replay *replay, struct outcome *outcome,
                       struct lab_sim_frame *frames, struct times *times, double *oracle_ns)
{
    bool base = is_base(job, replay->session);
    bool own = strcmp(outcome->policy.name, replay->session->policy) == 0;
    if (!base && !own)
        return true;
    struct lab_sim_options options;
    lab_replay_options(replay, &options);
    if (!own)
        options.profiles = NULL; /* the profiles that were loaded are of this policy */
    outcome->why[0] = '\0';
    cox_status status = lab_simulate(&replay->world, &outcome->policy, &options, 0, frames, outcome->why,
                                     sizeof outcome->why);
    if (status != COX_OK) {
        if (!outcome->why[0])
            snprintf(outcome->why, sizeof outcome->why, "%s", cox_status_text(status));
        return false;
    }
    outcome->why[0] = '\0';
    for (size_t f = 0; f < replay->session->frame_count; f++) {
        const struct lab_replay_frame *recorded = &replay->session->frames[f];
        if (!recorded->good)
            continue;
        const struct lab_sim_frame *frame = &frames[recorded->frame];
        double ns = frame->wall_ns + replay->overhead_ns[recorded->frame];
        if (own) {
            outcome->own_ns += ns;
            outcome->own_recorded_ns += recorded->period_ns;
        }
        if (!base)
            continue;
        times->ns[times->count++] = ns;
        *oracle_ns += frame->oracle_ns + replay->overhead_ns[recorded->frame];
        outcome->refused += frame->refused;
    }
    return true;
}

static size_t frames_of(const struct lab_replay_data *data)
{
    size_t frames = 1;
    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        size_t own = session->frame_count ? (size_t)session->frames[session->frame_count - 1].frame + 1 : 0;
        frames += own;
    }
    return frames;
}

/* All policies through all sessions of the base, and each through its own. `worlds` has room for all sessions. */
static bool replay_all(struct job *job, struct lab_replay **worlds, struct lab_sim_frame *frames, struct times *times,
                       char *why, size_t why_bytes)
{
    const struct lab_replay_data *data = job->data;
    size_t count = 0;
    for (size_t s = 0; s < data->session_count; s++) {
        if (!can_replay(&data->sessions[s]))
            continue;
        if (!lab_replay_create(data, &data->sessions[s], &worlds[count], why, why_bytes))
            return false;
        if (is_base(job, &data->sessions[s]) && job->base_sessions++ == 0)
            job->first = worlds[count];
        count++;
    }
    if (!job->first && job->options->base)
        return lab_replay_refuse(why, why_bytes, "run %" PRId64 " has no session of policy '%s' to be replayed",
                                 data->run, job->options->base);
    if (!job->first)
        return lab_replay_refuse(why, why_bytes, "run %" PRId64 " has no session of a policy", data->run);
    for (uint32_t p = 0; p < job->outcome_count; p++) {
        struct outcome *outcome = &job->outcomes[p];
        double oracle_ns = 0;
        bool good = true;
        times->count = 0;
        for (size_t w = 0; w < count && good; w++)
            good = replay_one(job, worlds[w], outcome, frames, times, &oracle_ns);
        if (!good)
            continue;
        outcome->replayed = figures_of(times);
        outcome->over_oracle = oracle_ns > 0 ? outcome->replayed.mean_ns * (double)times->count / oracle_ns : NAN;
        record_of(job, outcome->policy.name, times);
        outcome->recorded = figures_of(times);
    }
    return true;
}

/* The policies to replay: those that were asked for, else the library's and what else was recorded. */
static void choose_policies(struct job *job)
{
    const struct replay_options *options = job->options;
    for (uint32_t i = 0; i < options->policy_count; i++)
        job->outcomes[job->outcome_count++].policy = options->policies[i];
    if (options->policy_count)
        return;
    for (uint32_t i = 0; cox_policy_at(i) && job->outcome_count < POLICIES_MAX; i++)
        job->outcomes[job->outcome_count++].policy = *cox_policy_at(i);
    for (size_t s = 0; s < job->data->session_count && job->outcome_count < POLICIES_MAX; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        bool known = !can_replay(session);
        for (uint32_t p = 0; p < job->outcome_count; p++)
            known = known || strcmp(job->outcomes[p].policy.name, session->policy) == 0;
        if (!known && lab_replay_policy(session->policy, &job->outcomes[job->outcome_count].policy))
            job->outcome_count++;
    }
}

/* --- What comes out ----------------------------------------------------------------------------------------------- */

/* How well a replay of a policy in its own sessions gives back what was recorded. */
static double fidelity(const struct outcome *outcome)
{
    return outcome->own_recorded_ns > 0 ? outcome->own_ns / outcome->own_recorded_ns : NAN;
}

/* How well what other sessions say of it does. */
static double over_recorded(const struct outcome *outcome)
{
    return outcome->recorded.frames && outcome->replayed.frames ? outcome->replayed.mean_ns / outcome->recorded.mean_ns
                                                                : NAN;
}

static const char *base_name(const struct job *job)
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

static void print_device(const struct job *job, uint32_t device)
{
    const struct lab_replay_fit *fit = &job->first->fits[device];
    printf("  device %u  %s: ", (unsigned)device, job->data->device_names[device]);
    if (!fit->bands) {
        puts("never had rows; it takes no part");
        return;
    }
    printf("%.1f us + %.3f us a row", fit->fixed_ns / 1e3, fit->ns_per_row / 1e3);
    if (fit->launch_known)
        printf(", %.1f us a further launch", fit->launch_ns / 1e3);
    if (fit->slowdown_known)
        printf(", %.2f times slower beside the others", fit->slowdown);
    printf(fit->uncertain > 0.15 ? " (fixed cost unknown: its bands were all about as long)\n" : " (from %zu bands)\n",
           fit->bands);
}

static void print_ratio(double value, const char *after)
{
    if (isfinite(value))
        printf(" %9.3f%s", value, after);
    else
        printf(" %9s%s", "-", after);
}

static void print_table(const struct job *job)
{
    const struct lab_replay_data *data = job->data;
    printf("run %" PRId64 "%s, %s: what %zu session%s of %s%s met\n", data->run, data->finished ? "" : " (unfinished)",
           data->kernel, job->base_sessions, job->base_sessions == 1 ? "" : "s",
           job->options->base ? "" : "all policies", job->options->base ? job->options->base : "");
    for (uint32_t d = 0; d < data->device_count; d++)
        print_device(job, d);
    printf("  a frame    %.1f us beyond its longest device\n\n", overhead_of(job->first) / 1e3);
    if (data->objective == COX_OBJECTIVE_ENERGY)
        puts("a replay has no meter: policies make the time small, not the energy\n");
    printf("%-16s %9s %9s %9s %9s %9s %9s %9s\n", "policy", "mean ms", "p50 ms", "p99 ms", "/oracle", "recorded",
           "/recorded", "fidelity");
    bool unfaithful = false;
    for (uint32_t p = 0; p < job->outcome_count; p++) {
        const struct outcome *outcome = &job->outcomes[p];
        printf("%-16s", outcome->policy.name);
        if (outcome->why[0]) {
            printf(" %s\n", outcome->why);
            continue;
        }
        bool off = fabs(fidelity(outcome) - 1) > UNFAITHFUL;
        unfaithful = unfaithful || off;
        printf(" %9.3f %9.3f %9.3f", outcome->replayed.mean_ns / 1e6, outcome->replayed.p50_ns / 1e6,
               outcome->replayed.p99_ns / 1e6);
        print_ratio(outcome->over_oracle, "");
        print_ratio(outcome->recorded.frames ? outcome->recorded.mean_ns / 1e6 : NAN, "");
        print_ratio(over_recorded(outcome), "");
        print_ratio(fidelity(outcome), off ? "*" : "");
        if (outcome->refused)
            printf("  %" PRIu64 " splits refused", outcome->refused);
        putchar('\n');
    }
    puts("\nrecorded: the policy's own sessions. fidelity: it replayed in its own sessions, over these.");
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

static void print_csv(const struct job *job)
{
    puts("run,base,policy,frames,mean_us,p50_us,p99_us,over_oracle,recorded_mean_us,over_recorded,fidelity,refused");
    for (uint32_t p = 0; p < job->outcome_count; p++) {
        const struct outcome *outcome = &job->outcomes[p];
        bool good = !outcome->why[0];
        printf("%" PRId64 ",%s,%s,%zu", job->data->run, base_name(job), outcome->policy.name, outcome->replayed.frames);
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

static void json_device(struct json *json, const struct job *job, uint32_t device)
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

static void json_outcome(struct json *json, const struct outcome *outcome)
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
    json_pair(json, "over_oracle", good ? outcome->over_oracle : NAN);
    json_pair(json, "recorded_mean_us", outcome->recorded.frames ? outcome->recorded.mean_ns / 1e3 : NAN);
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

static void print_json(const struct job *job)
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

static int replay(struct job *job)
{
    const struct replay_options *options = job->options;
    char why[WHY_MAX] = "";
    choose_policies(job);
    size_t most = frames_of(job->data), sessions = job->data->session_count;
    struct lab_replay **worlds = calloc(sessions + 1, sizeof *worlds);
    struct lab_sim_frame *frames = calloc(most, sizeof *frames);
    struct times times = {.ns = malloc(most * sizeof *times.ns)};
    bool good = false;
    if (!worlds || !frames || !times.ns)
        lab_fail("out of memory");
    else if (!replay_all(job, worlds, frames, &times, why, sizeof why))
        lab_fail("%s: %s", options->path, why);
    else
        good = true;
    if (good && options->format == JSON)
        print_json(job);
    else if (good && options->format == CSV)
        print_csv(job);
    else if (good)
        print_table(job);
    for (size_t w = 0; worlds && w < sessions; w++)
        lab_replay_destroy(&worlds[w]);
    free(worlds);
    free(frames);
    free(times.ns);
    return good ? LAB_OK : LAB_BAD;
}

/* --- Decisions ---------------------------------------------------------------------------------------------------- */

static void print_decisions(const struct job *job, const struct lab_replay_session *session,
                            const struct lab_replay_decisions *decisions, struct json *json)
{
    if (job->options->format == JSON) {
        json_open_object(json, true);
        json_key(json, "session");
        json_unsigned(json, (uint64_t)session->session);
        json_key(json, "policy");
        json_string(json, session->policy);
        json_key(json, "taped");
        json_bool(json, decisions->taped);
        json_key(json, "complete");
        json_bool(json, decisions->complete);
        json_key(json, "splits");
        json_unsigned(json, decisions->splits);
        json_key(json, "grants");
        json_unsigned(json, decisions->grants);
        json_key(json, "different");
        json_unsigned(json, decisions->different);
        json_close_object(json);
        return;
    }
    if (job->options->format == CSV) {
        printf("%" PRId64 ",%s,%d,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", session->session, session->policy,
               decisions->taped, decisions->complete, decisions->splits, decisions->grants, decisions->different);
        return;
    }
    printf("session %" PRId64 ", %s: ", session->session, session->policy);
    if (!decisions->taped) {
        puts("its decisions were not recorded");
        return;
    }
    printf("%" PRIu64 " splits, %" PRIu64 " grants%s: ", decisions->splits, decisions->grants,
           decisions->complete ? "" : " up to where the tape has a hole");
    if (decisions->different == 0)
        puts("all the same");
    else
        printf("%" PRIu64 " different, first in frame %" PRIu64 "\n  recorded: %s\n  now:      %s\n",
               decisions->different, decisions->first_frame, decisions->recorded, decisions->answered);
}

static bool wanted(const struct job *job, const struct lab_replay_session *session)
{
    const struct replay_options *options = job->options;
    if (session->kind != LAB_REPLAY_POLICY || (options->base && strcmp(options->base, session->policy) != 0))
        return false;
    for (uint32_t p = 0; p < options->policy_count; p++)
        if (strcmp(options->policies[p].name, session->policy) == 0)
            return true;
    return options->policy_count == 0;
}

static int decide(const struct job *job)
{
    struct json json;
    uint64_t asked = 0, different = 0;
    bool good = true;
    if (job->options->format == CSV)
        puts("session,policy,taped,complete,splits,grants,different");
    if (job->options->format == JSON) {
        json_begin(&json, stdout);
        json_open_array(&json, false);
    }
    for (size_t s = 0; s < job->data->session_count && good; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        struct cox_policy policy;
        struct lab_replay_decisions decisions;
        char why[WHY_MAX];
        if (!wanted(job, session) || !lab_replay_policy(session->policy, &policy))
            continue;
        good = lab_replay_decide(job->db, session, &policy, &decisions, why, sizeof why);
        if (!good) {
            lab_fail("%s: %s", job->options->path, why);
            continue;
        }
        print_decisions(job, session, &decisions, &json);
        asked += decisions.splits;
        different += decisions.different;
    }
    if (job->options->format == JSON) {
        json_close_array(&json);
        json_end(&json);
    }
    if (good && asked == 0)
        good = lab_fail("%s: run %" PRId64 " has no recorded decision", job->options->path, job->data->run);
    return !good ? LAB_BAD : different ? LAB_MISSED : LAB_OK;
}

int lab_replay_main(int argc, char **argv)
{
    struct replay_options options = {0};
    int result = parse(argc, argv, &options);
    if (result >= 0)
        return result;
    struct job *job = calloc(1, sizeof *job);
    char why[WHY_MAX];
    if (!job) {
        lab_fail("out of memory");
        return LAB_BAD;
    }
    job->options = &options;
    result = LAB_BAD;
    if (!lab_store_open_to_read(options.path, &job->db, why, sizeof why))
        lab_fail("%s", why);
    else if (!lab_replay_read(job->db, options.run, &job->data, why, sizeof why))
        lab_fail("%s: %s", options.path, why);
    else
        result = options.decisions ? decide(job) : replay(job);
    lab_replay_free(&job->data);
    sqlite3_close(job->db);
    free(job);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        lab_fail("the output cannot be written");
        return LAB_BAD;
    }
    return result;
}
