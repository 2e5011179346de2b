/* cox-lab run: its command line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "measure.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: cox-lab run [options]\n"
    "\n"
    "Runs policies on the devices of this machine, in turns with each device alone and a sweep of static splits, and\n"
    "records everything in a database.\n"
    "\n"
    "  --devices LIST       these devices (default: every device)\n"
    "  --policy NAMES       policies, with commas between, or all; NAME:no-pool may not hand out rows while a frame\n"
    "                       runs (default: adaptive)\n"
    "  --kernel NAME        tonemap: HDR pictures; video: HDR10 frames; work: arithmetic (default: tonemap)\n"
    "  --size WxH           of the frames (default: 1920x1080; work: 128x480)\n"
    "  --ratio R            work: work per row on device 1 over that on the others, 1 to 64 (default: 3)\n"
    "  --frames N           of each policy (default: 400)\n"
    "  --in-flight N        frames under way at once, 1 to 16 (default: 1)\n"
    "  --disturb SPEC       for the frames A to B - 1; may be given more than once:\n"
    "      hog@A:B              a process that computes on the cores of the first CPU device, else on\n"
    "                           CPU 0\n"
    "      hog=CPUS@A:B         on these CPUs, as in 0,2-5\n"
    "      gpu-hog@A:B          a process with frames of its own on the first GPU\n"
    "      quota=PERCENT@A:B    PERCENT of the processor time that this process may use, by a control group\n"
    "      delay=DEVICE,MICROSECONDS@A:B    artificial: more work in each launch on the device\n"
    "  --fallback-delay US  where a disturbance cannot be made here, delay device 0 instead (default: refuse)\n"
    "  --objective NAME     time, or energy: joules, by the processor's meter (default: time)\n"
    "  --deadline MS        energy: no frame is to take longer (default: none)\n"
    "  --rounds N           of the sweep in each phase, at least (default: 8)\n"
    "  --quiet SECONDS      spend up to so much on waiting for other programs to end; what they disturbed is left out\n"
    "  -o FILE              the database, made or added to (default: session.db)\n"
    "  --check              exit status 3 if the first policy misses a bar\n"
    "  -h, --help           this text\n";

enum {
    OPTION_DEVICES = 256,
    OPTION_POLICY,
    OPTION_KERNEL,
    OPTION_SIZE,
    OPTION_RATIO,
    OPTION_FRAMES,
    OPTION_IN_FLIGHT,
    OPTION_DISTURB,
    OPTION_FALLBACK,
    OPTION_OBJECTIVE,
    OPTION_DEADLINE,
    OPTION_ROUNDS,
    OPTION_QUIET,
    OPTION_CHECK,
    OPTION_POWERCAP
};

static bool read_number(const char *option, const char *text, double low, double high, bool whole, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= low && *value <= high) || (whole && *value != floor(*value)))
        return lab_fail("%s '%s': a %snumber from %g to %.10g is needed", option, text, whole ? "whole " : "", low,
                        high);
    return true;
}

static bool read_count(const char *option, const char *text, double low, double high, uint32_t *value)
{
    double number;
    if (!read_number(option, text, low, high, true, &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

static bool read_size(const char *text, struct lab_run_options *options)
{
    int end = 0;
    if (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", &options->columns, &options->rows, &end) != 2 ||
        text[end] != '\0' || options->columns < LAB_SIZE_MIN || options->rows < LAB_SIZE_MIN ||
        options->columns > LAB_SIZE_MAX || options->rows > LAB_SIZE_MAX)
        return lab_fail("--size '%s': WxH is needed, both from %d to %d", text, LAB_SIZE_MIN, LAB_SIZE_MAX);
    return true;
}

static bool add_policy(const char *name, struct lab_run_options *options)
{
    static const char no_pool[] = ":no-pool";
    struct lab_run_policy *added = &options->policies[options->policy_count];
    char base[sizeof added->name];
    snprintf(base, sizeof base, "%s", name);
    char *suffix = strstr(base, no_pool);
    bool without = suffix && strcmp(suffix, no_pool) == 0;
    if (without)
        *suffix = '\0';
    const struct cox_policy *policy = *base ? cox_policy_find(base) : NULL;
    if (strcmp(base, "oracle") == 0)
        return lab_fail("--policy oracle: on devices the oracle is found by sweeping, in every run");
    if (!policy) {
        lab_fail("there is no policy '%s'; there are:", name);
        for (uint32_t i = 0; cox_policy_at(i); i++)
            fprintf(stderr, "  %s\n", cox_policy_at(i)->name);
        return false;
    }
    if (without && !policy->next)
        return lab_fail("--policy %s: %s hands out no rows while a frame runs anyway", name, base);
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (strcmp(options->policies[i].name, name) == 0)
            return lab_fail("--policy: %s is named twice", name);
    if (options->policy_count == LAB_RUN_POLICIES_MAX)
        return lab_fail("--policy: more than %d", LAB_RUN_POLICIES_MAX);
    snprintf(added->name, sizeof added->name, "%s", name);
    added->policy = *policy;
    added->policy.name = added->name;
    if (without)
        added->policy.next = NULL;
    options->policy_count++;
    return true;
}

static bool add_every_policy(struct lab_run_options *options)
{
    for (uint32_t i = 0; cox_policy_at(i); i++)
        if (!add_policy(cox_policy_at(i)->name, options))
            return false;
    return true;
}

static bool read_policies(const char *names, struct lab_run_options *options)
{
    options->policy_count = 0;
    if (strcmp(names, "all") == 0)
        return add_every_policy(options);
    for (const char *at = names;; at++) {
        char name[sizeof options->policies[0].name];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), at);
        if (!add_policy(name, options))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

static bool read_disturbance(const char *text, struct lab_run_options *options)
{
    char why[320];
    if (options->disturbance_count == LAB_DISTURBANCES_MAX)
        return lab_fail("--disturb '%s': more than %d", text, LAB_DISTURBANCES_MAX);
    return lab_disturbance_parse(text, &options->disturbances[options->disturbance_count++], why, sizeof why) ||
           lab_fail("--disturb %s", why);
}

static bool read_objective(const char *name, enum cox_objective *objective)
{
    *objective = strcmp(name, "energy") == 0 ? COX_OBJECTIVE_ENERGY : COX_OBJECTIVE_TIME;
    return *objective == COX_OBJECTIVE_ENERGY || strcmp(name, "time") == 0 ||
           lab_fail("--objective '%s': time or energy is needed", name);
}

static bool read_option(int option, struct lab_run_options *options, bool *ratio_given)
{
    double number;
    uint32_t count;
    switch (option) {
    case OPTION_DEVICES:
        options->devices = optarg;
        return true;
    case OPTION_POLICY:
        return read_policies(optarg, options);
    case OPTION_KERNEL:
        return lab_kernel_find(optarg, &options->kernel) ||
               lab_fail("there is no kernel '%s'; there are tonemap, video and work", optarg);
    case OPTION_SIZE:
        return read_size(optarg, options);
    case OPTION_RATIO:
        *ratio_given = true;
        return read_count("--ratio", optarg, 1, 64, &options->ratio);
    case OPTION_FRAMES:
        if (!read_count("--frames", optarg, 1, LAB_RUN_FRAMES_MAX, &count))
            return false;
        options->frames = count;
        return true;
    case OPTION_IN_FLIGHT:
        return read_count("--in-flight", optarg, 1, COX_IN_FLIGHT_MAX, &options->in_flight);
    case OPTION_DISTURB:
        return read_disturbance(optarg, options);
    case OPTION_FALLBACK:
        return read_number("--fallback-delay", optarg, 1, 1e6, false, &options->fallback_us);
    case OPTION_OBJECTIVE:
        return read_objective(optarg, &options->objective);
    case OPTION_DEADLINE:
        if (!read_number("--deadline", optarg, 0.001, 1e6, false, &number))
            return false;
        options->deadline_ns = (uint64_t)(number * 1e6 + 0.5);
        return true;
    case OPTION_ROUNDS:
        return read_count("--rounds", optarg, 1, 100000, &options->rounds);
    case OPTION_QUIET:
        return read_number("--quiet", optarg, 0, 86400, false, &options->quiet_s);
    case OPTION_CHECK:
        options->check = true;
        return true;
    case OPTION_POWERCAP:
        options->powercap = optarg;
        return true;
    case 'o':
        options->output = optarg;
        return true;
    default:
        fputs("Try 'cox-lab run --help'.\n", stderr);
        return false;
    }
}

/* What only shows when everything has been read. */
static bool fits_together(const struct lab_run_options *options, bool ratio_given)
{
    if (ratio_given && options->kernel != LAB_KERNEL_WORK)
        return lab_fail("--ratio is for --kernel work");
    if (options->deadline_ns && options->objective != COX_OBJECTIVE_ENERGY)
        return lab_fail("--deadline is for --objective energy");
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (options->disturbances[i].end_frame > options->frames)
            return lab_fail("--disturb %s: the run has %" PRIu64 " frames", options->disturbances[i].text,
                            options->frames);
    return true;
}

bool lab_run_parse(int argc, char **argv, struct lab_run_options *options, int *exit_status)
{
    static const struct option known[] = {{"devices", required_argument, NULL, OPTION_DEVICES},
                                          {"policy", required_argument, NULL, OPTION_POLICY},
                                          {"kernel", required_argument, NULL, OPTION_KERNEL},
                                          {"size", required_argument, NULL, OPTION_SIZE},
                                          {"ratio", required_argument, NULL, OPTION_RATIO},
                                          {"frames", required_argument, NULL, OPTION_FRAMES},
                                          {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
                                          {"disturb", required_argument, NULL, OPTION_DISTURB},
                                          {"fallback-delay", required_argument, NULL, OPTION_FALLBACK},
                                          {"objective", required_argument, NULL, OPTION_OBJECTIVE},
                                          {"deadline", required_argument, NULL, OPTION_DEADLINE},
                                          {"rounds", required_argument, NULL, OPTION_ROUNDS},
                                          {"quiet", required_argument, NULL, OPTION_QUIET},
                                          {"check", no_argument, NULL, OPTION_CHECK},
                                          {"powercap", required_argument, NULL, OPTION_POWERCAP}, /* for tests */
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    bool ratio_given = false;
    *options = (struct lab_run_options){
        .policy_count = 1, .ratio = 3, .frames = 400, .in_flight = 1, .rounds = 8, .output = "session.db"};
    snprintf(options->policies[0].name, sizeof options->policies[0].name, "%s", cox_policy_find(NULL)->name);
    options->policies[0].policy = *cox_policy_find(NULL);
    *exit_status = LAB_USAGE;
    for (int option; (option = getopt_long(argc, argv, "ho:", known, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            *exit_status = LAB_OK;
            return false;
        }
        if (!read_option(option, options, &ratio_given))
            return false;
    }
    if (optind < argc)
        return lab_fail("'%s': not an option", argv[optind]);
    return fits_together(options, ratio_given);
}

int lab_run_main(int argc, char **argv)
{
    struct lab_run_options options;
    char command[1024] = "cox-lab";
    int status;
    for (int i = 0; i < argc; i++) {
        size_t length = strlen(command);
        snprintf(command + length, sizeof command - length, " %s", argv[i]);
    }
    if (!lab_run_parse(argc, argv, &options, &status))
        return status;
    options.command = command;
    return lab_run(&options);
}
