/* cox-lab sim: every policy in every scenario, as a table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "figures.h"
#include "record.h"
#include "common/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCENARIOS_MAX = 128, POLICIES_MAX = 32, SEEDS_DEFAULT = 20, FRAMES_IN_ALL_MAX = 20000000 };

enum format { TABLE, CSV, JSON };

struct sim_options {
    uint32_t scenario_count;
    const char *scenarios[SCENARIOS_MAX];
    char names[SCENARIOS_MAX][LAB_NAME_MAX]; /* of the built-in ones */
    uint32_t policy_count;
    const struct cox_policy *policies[POLICIES_MAX]; /* NULL = the oracle */
    uint64_t seeds, first_seed;
    uint64_t frames; /* 0 = the scenario's */
    struct lab_sim_options sim;
    enum format format;
    bool check;
    bool list;
    const char *record;      /* NULL = no */
    struct lab_store *store; /* of `record` */
};

static const char *name_of(const struct cox_policy *policy)
{
    return policy ? policy->name : "oracle";
}

static void print_usage(FILE *to)
{
    fputs(
        "Usage: cox-lab sim [options]\n\n"
        "Runs load-balancing policies in simulated scenarios and compares them with the best fixed split there is.\n\n"
        "  --scenario LIST    names of built-in scenarios or paths of files (a '/' or .json in them), with commas;\n"
        "                     default: all built-in ones\n"
        "  --policy LIST      names of policies, with commas; default: all but the simulator's own, \"oracle\"\n"
        "                     and \"hindsight\"\n"
        "  --seeds N          runs of each (default 20)\n"
        "  --first-seed S     their seeds are S, S + 1, ... (default 1)\n"
        "  --frames N         instead of the scenario's\n"
        "  --in-flight N      frames that are split before the first of them is measured (default 1)\n"
        "  --no-pool          no rows on demand\n"
        "  --no-shadow        no shadow probes\n"
        "  --csv, --json      instead of the table\n"
        "  --check            exit status 3 if a bar of a scenario is missed\n"
        "  --record DB        record the first seed's run of each scenario in a session database, for cox-lab report\n"
        "                     and cox-lab replay\n"
        "  --list             name the scenarios and policies, and end\n"
        "  -h, --help\n",
        to);
}

/* --- arguments --- */

static bool parse_count(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || text[0] < '0' || text[0] > '9' || value < low || value > high)
        return lab_fail("%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option, low, high, text);
    *out = value;
    return true;
}

static bool add_policy(struct sim_options *options, const char *name)
{
    const struct cox_policy *policy;
    if (!lab_policy_find(name, &policy))
        return lab_fail("there is no policy '%s'; cox-lab sim --list names those that there are", name);
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (options->policies[i] == policy)
            return lab_fail("--policy: %s is named twice", name);
    if (options->policy_count == POLICIES_MAX)
        return lab_fail("more than %d policies", POLICIES_MAX);
    options->policies[options->policy_count++] = policy;
    return true;
}

static bool add_scenario(struct sim_options *options, const char *name)
{
    if (options->scenario_count == SCENARIOS_MAX)
        return lab_fail("more than %d scenarios", SCENARIOS_MAX);
    if (!lab_scenario_is_name(name))
        return lab_fail("there is no scenario '%s'; cox-lab sim --list names those that there are", name);
    options->scenarios[options->scenario_count++] = name;
    return true;
}

/* Cuts `list` at its commas. */
static bool each_name(struct sim_options *options, const char *option, char *list,
                      bool (*add)(struct sim_options *options, const char *name))
{
    for (char *name = list; name;) {
        char *comma = strchr(name, ',');
        if (comma)
            *comma = '\0';
        if (!*name)
            return lab_fail("%s has an empty name", option);
        if (!add(options, name))
            return false;
        name = comma ? comma + 1 : NULL;
    }
    return true;
}

enum { OPT_SCENARIO = 256, OPT_POLICY, OPT_SEEDS, OPT_FIRST, OPT_FRAMES, OPT_IN_FLIGHT, OPT_RECORD };

/* Returns an exit status to end with; negative = go on. */
static int parse(int argc, char **argv, struct sim_options *options)
{
    int format = TABLE, check = 0, list = 0, no_pool = 0, no_shadow = 0;
    const struct option known[] = {{"scenario", required_argument, NULL, OPT_SCENARIO},
                                   {"policy", required_argument, NULL, OPT_POLICY},
                                   {"seeds", required_argument, NULL, OPT_SEEDS},
                                   {"first-seed", required_argument, NULL, OPT_FIRST},
                                   {"frames", required_argument, NULL, OPT_FRAMES},
                                   {"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
                                   {"no-pool", no_argument, &no_pool, 1},
                                   {"no-shadow", no_argument, &no_shadow, 1},
                                   {"csv", no_argument, &format, CSV},
                                   {"json", no_argument, &format, JSON},
                                   {"check", no_argument, &check, 1},
                                   {"record", required_argument, NULL, OPT_RECORD},
                                   {"list", no_argument, &list, 1},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    uint64_t in_flight = 1;
    bool ok = true;
    optind = 0; /* the words before were the program's own */
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
            ok = parse_count("--seeds", optarg, 1, LAB_SEEDS_MAX, &options->seeds);
            break;
        case OPT_FIRST:
            ok = parse_count("--first-seed", optarg, 0, UINT64_MAX / 2, &options->first_seed);
            break;
        case OPT_FRAMES:
            ok = parse_count("--frames", optarg, 1, LAB_FRAMES_MAX, &options->frames);
            break;
        case OPT_IN_FLIGHT:
            ok = parse_count("--in-flight", optarg, 1, 16, &in_flight);
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
        ok = lab_fail("sim takes no '%s'", argv[optind]);
    if (!ok) {
        fputs("cox-lab sim --help explains it.\n", stderr);
        return LAB_USAGE;
    }
    options->format = (enum format)format;
    options->check = check;
    options->list = list;
    options->sim = (struct lab_sim_options){
        .in_flight = (uint32_t)in_flight, .no_pool = no_pool, .no_shadow = no_shadow};
    for (uint32_t i = 0; options->policy_count == 0 || (i > 0 && options->policy_count == i); i++)
        if (cox_policy_at(i))
            options->policies[options->policy_count++] = cox_policy_at(i);
    for (uint32_t i = 0; options->scenario_count == i && i < SCENARIOS_MAX; i++)
        if (lab_scenario_name(i, options->names[i], sizeof options->names[i]))
            options->scenarios[options->scenario_count++] = options->names[i];
    return -1;
}

/* --- what comes out --- */

struct out {
    const struct sim_options *options;
    struct json json;
    bool missed;
    uint32_t absent_count;
    const char *absent[POLICIES_MAX]; /* policies of bars that were not run, and were told of */
};

static void print_table(const struct out *out, const struct lab_scenario *scenario, const struct lab_figures *figures)
{
    const struct sim_options *options = out->options;
    bool shown[LAB_FIGURE_COUNT] = {false};
    for (uint32_t i = 0; i < options->policy_count; i++)
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            shown[f] |= figures[i].value[f] >= 0 && f != LAB_FIGURE_BEATEN;
    printf("%s: %s\n", scenario->name, scenario->text);
    printf("  %-12s %10s", "policy", "ms");
    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        if (shown[f])
            printf(" %*s", (int)strlen(lab_figure_headings[f]) < 8 ? 8 : (int)strlen(lab_figure_headings[f]),
                   lab_figure_headings[f]);
    putchar('\n');
    for (uint32_t i = 0; i < options->policy_count; i++) {
        printf("  %-12s %10.3f", name_of(options->policies[i]), figures[i].mean_ns / 1e6);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            int width = (int)strlen(lab_figure_headings[f]) < 8 ? 8 : (int)strlen(lab_figure_headings[f]);
            bool coarse = f == LAB_FIGURE_CHANGES || f == LAB_FIGURE_RECONVERGED || f == LAB_FIGURE_BACK;
            if (shown[f] && figures[i].value[f] >= 0)
                printf(" %*.*f", width, coarse ? 1 : 3, figures[i].value[f]);
            else if (shown[f])
                printf(" %*s", width, "-");
        }
        putchar('\n');
    }
    putchar('\n');
}

static void print_csv_head(void)
{
    printf("scenario,policy,seeds,first_seed,frames,frame_us,oracle_us,joules");
    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        printf(",%s", lab_figure_keys[f]);
    printf(",reconverged_worst,refused\n");
}

static void print_csv_number(double value)
{
    if (value >= 0)
        printf(",%.6f", value);
    else
        putchar(',');
}

/* A name may hold commas and quotes where it comes from a file. */
static void print_csv_text(const char *text)
{
    if (!strpbrk(text, ",\"")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const struct out *out, const struct lab_scenario *scenario, const struct lab_figures *figures)
{
    const struct sim_options *options = out->options;
    for (uint32_t i = 0; i < options->policy_count; i++) {
        print_csv_text(scenario->name);
        printf(",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, name_of(options->policies[i]), options->seeds,
               options->first_seed, scenario->frames);
        print_csv_number(figures[i].mean_ns / 1e3);
        print_csv_number(figures[i].oracle_ns / 1e3);
        print_csv_number(figures[i].joules);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            print_csv_number(figures[i].value[f]);
        print_csv_number(figures[i].reconverged_worst);
        printf(",%" PRIu64 "\n", figures[i].refused);
    }
}

static void json_figure(struct json *json, const char *key, double value)
{
    json_key(json, key);
    if (value >= 0)
        json_number(json, value);
    else
        json_null(json);
}

static void print_json(struct out *out, const struct lab_scenario *scenario, const struct lab_figures *figures)
{
    const struct sim_options *options = out->options;
    struct json *json = &out->json;
    json_open_object(json, false);
    json_key(json, "scenario");
    json_string(json, scenario->name);
    json_key(json, "text");
    json_string(json, scenario->text);
    json_key(json, "devices");
    json_unsigned(json, scenario->device_count);
    json_key(json, "frames");
    json_unsigned(json, scenario->frames);
    json_key(json, "policies");
    json_open_array(json, false);
    for (uint32_t i = 0; i < options->policy_count; i++) {
        json_open_object(json, true);
        json_key(json, "policy");
        json_string(json, name_of(options->policies[i]));
        json_figure(json, "frame_us", figures[i].mean_ns / 1e3);
        json_figure(json, "oracle_us", figures[i].oracle_ns / 1e3);
        json_figure(json, "joules", figures[i].joules);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            json_figure(json, lab_figure_keys[f], figures[i].value[f]);
        json_figure(json, "reconverged_worst", figures[i].reconverged_worst);
        json_key(json, "refused");
        json_unsigned(json, figures[i].refused);
        json_close_object(json);
    }
    json_close_array(json);
    json_close_object(json);
}

static const struct lab_figures *figures_of(const struct sim_options *options, const struct lab_figures *figures,
                                            const char *policy)
{
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (strcmp(name_of(options->policies[i]), policy) == 0)
            return &figures[i];
    return NULL;
}

/* The figures for a bar. Those of a policy that was not run are missed once. */
static const struct lab_figures *figures_for_bar(struct out *out, const struct lab_figures *figures, const char *policy)
{
    const struct lab_figures *found = figures_of(out->options, figures, policy);
    if (found)
        return found;
    for (uint32_t i = 0; i < out->absent_count; i++)
        if (strcmp(out->absent[i], policy) == 0)
            return NULL;
    if (out->absent_count < POLICIES_MAX)
        out->absent[out->absent_count++] = policy;
    lab_fail("--check leaves out the bars for '%s', which is not among the policies run", policy);
    return NULL;
}

static void check_bars(struct out *out, const struct lab_scenario *scenario, const struct lab_figures *figures)
{
    for (uint32_t i = 0; i < scenario->bars_count; i++) {
        const struct lab_scenario_bars *bars = &scenario->bars[i];
        const struct lab_figures *found = figures_for_bar(out, figures, bars->policy);
        if (!found)
            continue;
        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            if (bars->most[f] < 0 || found->value[f] <= bars->most[f])
                continue;
            lab_fail("%s: %s: %s is %.4f, the bar is %g", scenario->name, bars->policy, lab_figure_keys[f],
                     found->value[f], bars->most[f]);
            out->missed = true;
        }
        const struct lab_figures *other = bars->p99_of[0] ? figures_for_bar(out, figures, bars->p99_of) : NULL;
        if (other && found->value[LAB_FIGURE_P99] > other->value[LAB_FIGURE_P99]) {
            lab_fail("%s: %s: p99 is %.4f, that of %s is %.4f", scenario->name, bars->policy,
                     found->value[LAB_FIGURE_P99], bars->p99_of, other->value[LAB_FIGURE_P99]);
            out->missed = true;
        }
    }
}

/* All of them, before the first is run, which may take minutes. False: one is not as it should be. */
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
            return lab_fail("%s: seeds times frames must be at most %d", options->scenarios[i], FRAMES_IN_ALL_MAX);
    }
    return true;
}

static int run_scenario(struct out *out, const struct lab_scenario *scenario)
{
    const struct sim_options *options = out->options;
    struct lab_figures figures[POLICIES_MAX];
    const struct lab_trial trial = {.scenario = scenario,
                                    .options = &options->sim,
                                    .first_seed = options->first_seed,
                                    .seeds = (uint32_t)options->seeds,
                                    .policy_count = options->policy_count,
                                    .policies = options->policies};
    uint32_t failed = 0;
    cox_status status = lab_trial_run(&trial, figures, &failed);
    if (status) {
        bool known = failed < options->policy_count;
        lab_fail("%s: %s%s%s%s", scenario->name, known ? name_of(options->policies[failed]) : "", known ? ": " : "",
                 known && figures[failed].why[0] ? figures[failed].why : cox_status_text(status), "");
        return LAB_BAD;
    }
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (figures[i].refused > 0)
            lab_fail("%s: %" PRIu64 " splits were refused, first: %s", scenario->name, figures[i].refused,
                     figures[i].why);
    if (options->format == JSON)
        print_json(out, scenario, figures);
    else if (options->format == CSV)
        print_csv(out, scenario, figures);
    else
        print_table(out, scenario, figures);
    if (options->check)
        check_bars(out, scenario, figures);
    char why[LAB_WHY_MAX];
    if (options->store && !lab_record_scenario(options->store, scenario, options->policies, options->policy_count,
                                               &options->sim, options->first_seed, why, sizeof why)) {
        lab_fail("%s: %s", scenario->name, why);
        return LAB_BAD;
    }
    return LAB_OK;
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
    for (uint32_t i = 0; cox_policy_at(i); i++)
        printf("  %s\n", cox_policy_at(i)->name);
    printf("  oracle\n  %s\n", lab_hindsight.name);
    return result;
}

static int run_all(const struct sim_options *options, struct lab_scenario *const *scenarios)
{
    struct out out = {.options = options};
    int result = LAB_OK;
    if (options->format == CSV)
        print_csv_head();
    if (options->format == TABLE)
        printf("seeds %" PRIu64 " to %" PRIu64 "; times over those of the best fixed split, with the same chance\n\n",
               options->first_seed, options->first_seed + options->seeds - 1);
    if (options->format == JSON) {
        json_begin(&out.json, stdout);
        json_open_object(&out.json, false);
        json_key(&out.json, "first_seed");
        json_unsigned(&out.json, options->first_seed);
        json_key(&out.json, "seeds");
        json_unsigned(&out.json, options->seeds);
        json_key(&out.json, "scenarios");
        json_open_array(&out.json, false);
    }
    for (uint32_t i = 0; scenarios[i] && result == LAB_OK; i++)
        result = run_scenario(&out, scenarios[i]);
    if (options->format == JSON) {
        json_close_array(&out.json);
        json_close_object(&out.json);
        json_end(&out.json);
    }
    return result == LAB_OK && out.missed ? LAB_MISSED : result;
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
    if (fflush(stdout) != 0 || ferror(stdout)) {
        lab_fail("the output cannot be written");
        result = LAB_BAD;
    }
end:
    for (uint32_t i = 0; scenarios[i]; i++)
        lab_scenario_free(&scenarios[i]);
    return result;
}
