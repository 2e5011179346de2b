/* `cox-lab sim`: runs policies in scenarios, several at a time, prints their figures, checks the
 * scenarios' bars and records runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "lab/anova.h"
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/provenance.h"
#include "lab/sim/trial.h"
#include "lab/sim/trial_output.h"
#include "lab/sim/record_simulation.h"
#include "lab/texts.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SCENARIOS_MAX = 128,
    POLICIES_MAX = 32,
    IN_FLIGHT_LIST_MAX = 8,
    IN_FLIGHT_MAX = 16,
    JOBS_MAX = 64,
    SEEDS_DEFAULT = 20,
    FRAMES_IN_ALL_MAX = 20000000 /* of a scenario, over all seeds */
};

struct sim_options {
    uint32_t scenario_count;
    const char *scenarios[SCENARIOS_MAX];
    char names[SCENARIOS_MAX][LAB_NAME_MAX]; /* of built-in scenarios */
    uint32_t policy_count;
    const struct cox_policy *policies[POLICIES_MAX]; /* NULL = the oracle */
    uint64_t seeds, first_seed;
    uint64_t frames;            /* 0 = the scenario's */
    struct lab_sim_options sim; /* without in_flight */
    uint32_t in_flight_count;
    uint32_t in_flight[IN_FLIGHT_LIST_MAX];
    uint64_t jobs;
    bool summary;
    bool anova;
    enum lab_format format;
    bool check;
    bool list;
    const char *record; /* NULL = none */
    struct lab_store *store;
};

static void print_usage(FILE *to)
{
    fputs(
        "Usage: cox-lab sim [options]\n"
        "\n"
        "Simulates load-balancing policies in scenarios and compares them with the best fixed split.\n"
        "\n"
        "What to simulate:\n"
        "  --scenario LIST    built-in scenarios, or files whose names contain '/' or end in .json\n"
        "                     (default: all built-in scenarios)\n"
        "  --policy LIST      policies, separated by commas (default: all except oracle and hindsight)\n"
        "  --seeds N          runs of each policy in each scenario, each with its own seed "
        "(default: 20)\n"
        "  --first-seed S     seed of the first run (default: 1)\n"
        "  --frames N         frames of each run (default: as in the scenario)\n"
        "  --in-flight LIST   numbers of frames in flight, simulated separately (default: 1)\n"
        "  --no-pool          policies must not hand out rows during a frame\n"
        "  --no-shadow        no shadow runs\n"
        "  --jobs N           scenarios to simulate at the same time (default: one for each processor)\n"
        "\n"
        "Output:\n"
        "  --csv, --json      print CSV or JSON instead of tables\n"
        "  --summary          print only the means over all scenarios\n"
        "  --anova            print only an analysis of variance: policies, scenarios, frames in flight\n"
        "  --record DB        record the first seed of each scenario, for cox-lab report and replay\n"
        "  --check            exit with status 3 if a bar of a scenario is missed\n"
        "  --list             list the scenarios and policies\n"
        "  -h, --help         print this text\n",
        to);
}

/* --- arguments --- */

static bool add_policy(struct sim_options *options, const char *name)
{
    const struct cox_policy *policy;
    char known[256];

    if (!lab_policy_find(name, &policy))
        return lab_fail("--policy: unknown policy '%s'; policies: %s, oracle, hindsight", name,
                        program_policy_names(known, sizeof known));
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (options->policies[i] == policy)
            return lab_fail("--policy: '%s' is given twice", name);

    if (options->policy_count == POLICIES_MAX)
        return lab_fail("--policy: more than %d policies", POLICIES_MAX);
    options->policies[options->policy_count++] = policy;
    return true;
}

static bool add_scenario(struct sim_options *options, const char *name)
{
    if (options->scenario_count == SCENARIOS_MAX)
        return lab_fail("--scenario: more than %d scenarios", SCENARIOS_MAX);
    if (!lab_scenario_is_name(name))
        return lab_fail("unknown scenario '%s'; cox-lab sim --list lists them", name);
    options->scenarios[options->scenario_count++] = name;
    return true;
}

static bool add_in_flight(struct sim_options *options, const char *text)
{
    uint64_t value = 0;

    if (!lab_read_whole("--in-flight", text, 1, IN_FLIGHT_MAX, &value))
        return false;
    for (uint32_t i = 0; i < options->in_flight_count; i++)
        if (options->in_flight[i] == value)
            return lab_fail("--in-flight: '%s' is given twice", text);

    if (options->in_flight_count == IN_FLIGHT_LIST_MAX)
        return lab_fail("--in-flight: more than %d numbers", IN_FLIGHT_LIST_MAX);
    options->in_flight[options->in_flight_count++] = (uint32_t)value;
    return true;
}

/* Cut `list` at its commas, and add each name. */
static bool each_name(struct sim_options *options, const char *option, char *list,
                      bool (*add)(struct sim_options *options, const char *name))
{
    for (char *name = list; name;) {
        char *comma = strchr(name, ',');

        if (comma)
            *comma = '\0';
        if (!*name)
            return lab_fail("%s: the list has an empty entry", option);
        if (!add(options, name))
            return false;
        name = comma ? comma + 1 : NULL;
    }

    return true;
}

/* What runs without --scenario, --policy and --in-flight. */
static void set_defaults(struct sim_options *options)
{
    if (options->in_flight_count == 0)
        options->in_flight[options->in_flight_count++] = 1;

    if (options->policy_count == 0)
        for (uint32_t i = 0; program_policy_at(i); i++)
            options->policies[options->policy_count++] = program_policy_at(i);

    if (options->scenario_count == 0)
        for (uint32_t i = 0; i < SCENARIOS_MAX; i++) {
            if (!lab_scenario_name(i, options->names[i], sizeof options->names[i]))
                break;
            options->scenarios[options->scenario_count++] = options->names[i];
        }
}

/* Whether the options are a design for --anova. */
static bool is_factorial(const struct sim_options *options)
{
    if (options->seeds < 2)
        return lab_fail("--anova: needs --seeds of at least 2");
    if (options->policy_count < 2 && options->scenario_count < 2 && options->in_flight_count < 2)
        return lab_fail("--anova: needs two policies, scenarios or numbers of --in-flight");
    return true;
}

enum {
    OPT_SCENARIO = 256,
    OPT_POLICY,
    OPT_SEEDS,
    OPT_FIRST,
    OPT_FRAMES,
    OPT_IN_FLIGHT,
    OPT_JOBS,
    OPT_RECORD
};

/* Returns an exit status to end with, or a negative number to go on. */
static int parse(int argc, char **argv, struct sim_options *options)
{
    int format = LAB_TABLE, check = 0, list = 0, summary = 0, anova = 0, no_pool = 0, no_shadow = 0;
    const struct option known[] = {{"scenario", required_argument, NULL, OPT_SCENARIO},
                                   {"policy", required_argument, NULL, OPT_POLICY},
                                   {"seeds", required_argument, NULL, OPT_SEEDS},
                                   {"first-seed", required_argument, NULL, OPT_FIRST},
                                   {"frames", required_argument, NULL, OPT_FRAMES},
                                   {"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
                                   {"no-pool", no_argument, &no_pool, 1},
                                   {"no-shadow", no_argument, &no_shadow, 1},
                                   {"csv", no_argument, &format, LAB_CSV},
                                   {"json", no_argument, &format, LAB_JSON},
                                   {"summary", no_argument, &summary, 1},
                                   {"anova", no_argument, &anova, 1},
                                   {"jobs", required_argument, NULL, OPT_JOBS},
                                   {"check", no_argument, &check, 1},
                                   {"record", required_argument, NULL, OPT_RECORD},
                                   {"list", no_argument, &list, 1},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    bool ok = true;

    optind = 0; /* a process may parse several command lines */
    for (int c; ok && (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        switch (c) {
        case 0:
            break;
        case OPT_SCENARIO:
            ok = each_name(options, "--scenario", optarg, add_scenario);
            break;
        case OPT_POLICY:
            ok = each_name(options, "--policy", optarg, add_policy);
            break;
        case OPT_SEEDS:
            ok = lab_read_whole("--seeds", optarg, 1, LAB_SEEDS_MAX, &options->seeds);
            break;
        case OPT_FIRST:
            ok = lab_read_whole("--first-seed", optarg, 0, UINT64_MAX / 2, &options->first_seed);
            break;
        case OPT_FRAMES:
            ok = lab_read_whole("--frames", optarg, 1, LAB_FRAMES_MAX, &options->frames);
            break;
        case OPT_IN_FLIGHT:
            ok = each_name(options, "--in-flight", optarg, add_in_flight);
            break;
        case OPT_JOBS:
            ok = lab_read_whole("--jobs", optarg, 1, JOBS_MAX, &options->jobs);
            break;
        case OPT_RECORD:
            options->record = optarg;
            break;
        case 'h':
            print_usage(stdout);
            return LAB_OK;
        default:
            ok = false;
        }
    }

    if (ok && optind < argc)
        ok = lab_fail("sim: unexpected argument '%s'", argv[optind]);
    if (!ok)
        return lab_refer_to_help("sim");

    options->format = (enum lab_format)format;
    options->summary = summary;
    options->anova = anova;
    options->check = check;
    options->list = list;
    options->sim = (struct lab_sim_options){.no_pool = no_pool, .no_shadow = no_shadow};
    set_defaults(options);
    if (anova && !is_factorial(options))
        return LAB_USAGE;
    return -1;
}

/* --- bars --- */

struct out {
    const struct sim_options *options;
    struct lab_output output;
    bool missed;
    uint32_t absent_count;
    const char *absent[POLICIES_MAX]; /* policies of bars that did not run: reported once */
};

/* The figures for a bar. If the policy was not run: NULL, with a message the first time. */
static const struct lab_figures *figures_for_bar(struct out *out, const struct lab_figures *figures,
                                                 const char *policy)
{
    const struct sim_options *options = out->options;

    for (uint32_t i = 0; i < options->policy_count; i++)
        if (strcmp(lab_policy_name(options->policies[i]), policy) == 0)
            return &figures[i];

    for (uint32_t i = 0; i < out->absent_count; i++)
        if (strcmp(out->absent[i], policy) == 0)
            return NULL;

    if (out->absent_count < POLICIES_MAX)
        out->absent[out->absent_count++] = policy;
    lab_fail("--check: the bars for '%s' are not checked, because this policy is not run", policy);
    return NULL;
}

/* Report each figure above its bar. */
static void check_bars(struct out *out, const struct lab_scenario *scenario,
                       const struct lab_figures *figures)
{
    for (uint32_t i = 0; i < scenario->bars_count; i++) {
        const struct lab_scenario_bars *bars = &scenario->bars[i];
        const struct lab_figures *found = figures_for_bar(out, figures, bars->policy);
        if (!found)
            continue;

        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            if (bars->most[f] < 0 || found->value[f] <= bars->most[f])
                continue;
            lab_fail("%s: %s: %s is %.4f, the bar is %g", scenario->name, bars->policy,
                     lab_figure_keys[f], found->value[f], bars->most[f]);
            out->missed = true;
        }

        const struct lab_figures *other = NULL;
        if (bars->p99_of[0])
            other = figures_for_bar(out, figures, bars->p99_of);
        if (other && found->value[LAB_FIGURE_P99] > other->value[LAB_FIGURE_P99]) {
            lab_fail("%s: %s: p99 is %.4f, that of %s is %.4f", scenario->name, bars->policy,
                     found->value[LAB_FIGURE_P99], bars->p99_of, other->value[LAB_FIGURE_P99]);
            out->missed = true;
        }
    }
}

/* Load all scenarios before the first one runs, which may take minutes. False if one is invalid. */
static bool load_all(const struct sim_options *options, struct lab_scenario **scenarios)
{
    for (uint32_t i = 0; i < options->scenario_count; i++) {
        char why[LAB_WHY_MAX];

        scenarios[i] = lab_scenario_load(options->scenarios[i], why, sizeof why);
        if (!scenarios[i])
            return lab_fail("%s", why);

        if (options->frames > 0)
            scenarios[i]->frames = options->frames;
        if (scenarios[i]->frames * options->seeds > FRAMES_IN_ALL_MAX)
            return lab_fail("%s: --seeds times frames must be at most %d", options->scenarios[i],
                            FRAMES_IN_ALL_MAX);
    }

    return true;
}

/* --- trials --- */

/* A scenario with one number of frames in flight. */
struct trial {
    const struct lab_scenario *scenario;
    const char *source; /* its name, or its file */
    struct lab_sim_options sim;
    struct lab_figures *figures; /* of each policy */
    double *seed_ns;             /* as of lab_trial */
    cox_status status;
    uint32_t failed; /* index of the policy */
    bool done;
};

struct trials {
    const struct sim_options *options;
    uint32_t count;
    struct trial *list;
    pthread_mutex_t lock;
    pthread_cond_t any_done;
    uint32_t next;
    bool stop;
};

static void run_trial(const struct sim_options *options, struct trial *trial)
{
    struct lab_trial about = {.scenario = trial->scenario,
                              .options = &trial->sim,
                              .first_seed = options->first_seed,
                              .seeds = (uint32_t)options->seeds,
                              .policy_count = options->policy_count,
                              .policies = options->policies};

    trial->figures = calloc(options->policy_count, sizeof *trial->figures);
    if (options->anova)
        about.seed_ns = trial->seed_ns = calloc(options->policy_count * options->seeds,
                                                sizeof *trial->seed_ns);
    trial->failed = options->policy_count;
    trial->status = COX_E_NOMEM;
    if (trial->figures && (trial->seed_ns || !options->anova))
        trial->status = lab_trial_run(&about, trial->figures, &trial->failed);
}

/* A thread that runs trials until none is left. */
static void *work(void *user)
{
    struct trials *trials = user;

    pthread_mutex_lock(&trials->lock);
    while (trials->next < trials->count && !trials->stop) {
        struct trial *trial = &trials->list[trials->next++];

        pthread_mutex_unlock(&trials->lock);
        run_trial(trials->options, trial);
        pthread_mutex_lock(&trials->lock);
        trial->done = true;
        pthread_cond_broadcast(&trials->any_done);
    }
    pthread_mutex_unlock(&trials->lock);
    return NULL;
}

static void report_failure(const struct sim_options *options, const struct trial *trial)
{
    const char *scenario = trial->scenario->name, *what = cox_status_text(trial->status);

    if (trial->failed >= options->policy_count) {
        lab_fail("%s: %s", scenario, what);
        return;
    }
    if (trial->figures[trial->failed].why[0])
        what = trial->figures[trial->failed].why;
    lab_fail("%s: %s: %s", scenario, lab_policy_name(options->policies[trial->failed]), what);
}

/* The hash of the scenario's file, as an addition to the run that was recorded last. */
static void record_hash(struct lab_store *store, const char *name)
{
    const size_t length = strlen(name);
    char file[LAB_NAME_MAX + 8], hash[SHA256_TEXT_BYTES];

    if (strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0)) {
        sha256_of_file(name, hash);
    } else {
        snprintf(file, sizeof file, "%s.json", name);
        sha256_of(lab_text(file), strlen(lab_text(file)), hash);
    }

    lab_store_setting(store, "scenario_sha256", hash[0] ? hash : NULL);
}

/* Print, check and record a trial. Returns an exit status. */
static int finish_trial(struct out *out, const struct trial *trial)
{
    const struct sim_options *options = out->options;
    const struct lab_scenario *scenario = trial->scenario;
    const struct lab_figures *figures = trial->figures;
    char why[LAB_WHY_MAX];

    if (trial->status) {
        report_failure(options, trial);
        return LAB_BAD;
    }

    for (uint32_t i = 0; i < options->policy_count; i++)
        if (figures[i].refused > 0)
            lab_fail("%s: %" PRIu64 " splits were invalid, first: %s", scenario->name,
                     figures[i].refused, figures[i].why);

    if (!options->anova)
        lab_output_scenario(&out->output, scenario, trial->sim.in_flight, figures);
    if (options->check)
        check_bars(out, scenario, figures);
    if (options->store &&
        !lab_record_scenario(options->store, scenario, options->policies, options->policy_count,
                             &trial->sim, options->first_seed, why, sizeof why)) {
        lab_fail("%s: %s", scenario->name, why);
        return LAB_BAD;
    }
    if (options->store)
        record_hash(options->store, trial->source);

    return LAB_OK;
}

static uint32_t start_threads(struct trials *trials, pthread_t *threads)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t wanted = trials->options->jobs;
    uint32_t count = 0;

    if (wanted == 0)
        wanted = processors > 0 ? (uint64_t)processors : 1;
    while (count < wanted && count < JOBS_MAX && count < trials->count &&
           pthread_create(&threads[count], NULL, work, trials) == 0)
        count++;
    return count;
}

/* Run all trials on threads, and finish them in the order of the list. */
static int run_trials(struct out *out, struct trials *trials)
{
    pthread_t threads[JOBS_MAX];
    uint32_t thread_count = start_threads(trials, threads);
    int result = LAB_OK;

    if (thread_count == 0)
        work(trials);

    for (uint32_t i = 0; i < trials->count && result == LAB_OK; i++) {
        struct trial *trial = &trials->list[i];

        pthread_mutex_lock(&trials->lock);
        while (!trial->done)
            pthread_cond_wait(&trials->any_done, &trials->lock);
        pthread_mutex_unlock(&trials->lock);
        result = finish_trial(out, trial);
    }

    pthread_mutex_lock(&trials->lock);
    trials->stop = true;
    pthread_mutex_unlock(&trials->lock);
    for (uint32_t t = 0; t < thread_count; t++)
        pthread_join(threads[t], NULL);
    return result;
}

static void print_summaries(struct out *out, const struct trials *trials)
{
    const struct sim_options *options = out->options;
    const struct lab_figures *figures[SCENARIOS_MAX];

    lab_output_begin_summary(&out->output);
    for (uint32_t n = 0; n < options->in_flight_count; n++) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < trials->count; i++)
            if (trials->list[i].sim.in_flight == options->in_flight[n])
                figures[count++] = trials->list[i].figures;
        lab_output_summary(&out->output, options->in_flight[n], figures, count);
    }
}

/* Print the analysis of variance. The trials are in the order of in_flight, then scenarios. */
static int analyse(const struct sim_options *options, const struct trials *trials)
{
    const char *policies[POLICIES_MAX], *scenarios[SCENARIOS_MAX], *in_flight[IN_FLIGHT_LIST_MAX];
    char numbers[IN_FLIGHT_LIST_MAX][12], why[LAB_WHY_MAX] = "out of memory";
    const uint32_t counts[] = {options->policy_count, options->scenario_count,
                               options->in_flight_count};
    const size_t seeds = options->seeds;
    double *times = malloc(counts[0] * trials->count * seeds * sizeof *times);
    const struct anova_design design = {.factor_count = 3,
                                        .factors = {{"policy", counts[0], policies},
                                                    {"scenario", counts[1], scenarios},
                                                    {"in flight", counts[2], in_flight}},
                                        .replicates = (uint32_t)seeds,
                                        .block_name = "seed",
                                        .block_within = 1,
                                        .times = times};

    for (uint32_t p = 0; p < counts[0]; p++) {
        policies[p] = lab_policy_name(options->policies[p]);
        for (uint32_t t = 0; t < trials->count && times; t++) {
            const uint32_t n = t / counts[1], s = t % counts[1];

            scenarios[s] = trials->list[t].scenario->name;
            snprintf(numbers[n], sizeof numbers[n], "%" PRIu32, options->in_flight[n]);
            in_flight[n] = numbers[n];
            memcpy(times + ((p * counts[1] + s) * counts[2] + n) * seeds,
                   trials->list[t].seed_ns + p * seeds, seeds * sizeof *times);
        }
    }

    const bool good = times && anova_print(&design, options->format, why, sizeof why);
    free(times);
    if (!good)
        lab_fail("--anova: %s", why);
    return good ? LAB_OK : LAB_BAD;
}

static int list(const struct sim_options *options)
{
    int result = LAB_OK;

    puts("scenarios:");
    for (uint32_t i = 0; i < options->scenario_count; i++) {
        char why[LAB_WHY_MAX];
        struct lab_scenario *scenario = lab_scenario_load(options->scenarios[i], why, sizeof why);

        if (scenario) {
            printf("  %-20s %s\n", options->scenarios[i], scenario->text);
        } else {
            lab_fail("%s", why);
            result = LAB_BAD;
        }
        lab_scenario_free(&scenario);
    }

    puts("policies:");
    for (uint32_t i = 0; program_policy_at(i); i++)
        printf("  %s\n", program_policy_at(i)->name);
    printf("  oracle\n  %s\n", lab_hindsight.name);
    return result;
}

static int run_all(const struct sim_options *options, struct lab_scenario *const *scenarios)
{
    struct out out = {.options = options,
                      .output = {.format = options->format,
                                 .summary_only = options->summary,
                                 .policy_count = options->policy_count,
                                 .policies = options->policies,
                                 .seeds = options->seeds,
                                 .first_seed = options->first_seed}};
    struct trials trials = {
        .options = options,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .any_done = PTHREAD_COND_INITIALIZER,
        .list = calloc((size_t)options->scenario_count * options->in_flight_count,
                       sizeof *trials.list)};

    if (!trials.list) {
        lab_fail("out of memory");
        return LAB_BAD;
    }
    for (uint32_t n = 0; n < options->in_flight_count; n++)
        for (uint32_t i = 0; scenarios[i]; i++) {
            struct trial *trial = &trials.list[trials.count++];

            trial->scenario = scenarios[i];
            trial->source = options->scenarios[i];
            trial->sim = options->sim;
            trial->sim.in_flight = options->in_flight[n];
        }

    if (!options->anova)
        lab_output_begin(&out.output);
    int result = run_trials(&out, &trials);
    if (result == LAB_OK && options->anova)
        result = analyse(options, &trials);
    else if (result == LAB_OK)
        print_summaries(&out, &trials);
    if (!options->anova)
        lab_output_end(&out.output);

    for (uint32_t i = 0; i < trials.count; i++) {
        free(trials.list[i].figures);
        free(trials.list[i].seed_ns);
    }
    free(trials.list);
    if (result == LAB_OK && out.missed)
        return LAB_MISSED;
    return result;
}

int lab_sim_main(int argc, char **argv)
{
    struct sim_options options = {.seeds = SEEDS_DEFAULT, .first_seed = 1};
    struct lab_scenario *scenarios[SCENARIOS_MAX + 1] = {NULL}; /* ends with NULL */
    char why[LAB_WHY_MAX];
    int result = parse(argc, argv, &options);

    if (result >= 0)
        return result;
    if (options.list)
        return list(&options);

    result = LAB_BAD;
    if (!load_all(&options, scenarios))
        goto end;
    if (options.record && !lab_store_open(options.record, &options.store, why, sizeof why)) {
        lab_fail("%s", why);
        goto end;
    }

    result = run_all(&options, scenarios);
    if (!lab_store_close(&options.store, why, sizeof why)) {
        lab_fail("%s", why);
        result = LAB_BAD;
    }
    if (!lab_output_written())
        result = LAB_BAD;
end:
    for (uint32_t i = 0; scenarios[i]; i++)
        lab_scenario_free(&scenarios[i]);
    return result;
}
