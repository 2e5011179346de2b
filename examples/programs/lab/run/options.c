/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "common/policies/registry.h"
#include "lab/commands.h"
#include "lab/objective.h"
#include "lab/telemetry/sysfs.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: cox-lab run [options]\n"
    "\n"
    "Measures policies on the devices of this machine and records every frame in a database.\n"
    "The policies take turns with each device alone and with a sweep of static splits.\n"
    "\n"
    "What to measure:\n"
    "  --devices LIST       devices to use (default: all)\n"
    "  --policy NAMES       policies, separated by commas, or all (default: adaptive);\n"
    "                       NAME:no-pool: the policy must not hand out rows during a frame\n"
    "  --baseline starpu    also run StarPU 1.3 with its scheduler dmda; kernel work, whole devices\n"
    "  --kernel NAME        tonemap: HDR pictures; video: HDR10 frames; work: arithmetic;\n"
    "                       blur: a convolution in two passes (default: tonemap);\n"
    "                       FILE.cl: a kernel of your own, with FILE.json\n"
    "  --bindings FILE      JSON file of your own kernel (default: FILE.json)\n"
    "  --size WxH[,...]     frame sizes, one run each (default: 1920x1080; work: 128x480;\n"
    "                       your own kernel: as in its JSON file)\n"
    "  --ratio R[,...]      kernel work: cost of a row on device 1 relative to the others, 1 to 64,\n"
    "                       one run each (default: 3)\n"
    "  --frames N           frames of each policy (default: 400)\n"
    "  --repeats N          repeat with new sessions, 1 to 1000; prints 95 % intervals (default: 1)\n"
    "  --in-flight N        frames in flight, 1 to 16 (default: 1)\n"
    "  --objective NAME     what policies minimise: throughput: time between frames;\n"
    "                       latency: time from submission to delivery;\n"
    "                       energy: joules, by the processor's meter (default: throughput)\n"
    "  --deadline MS        deadline of each frame, after its submission (default: none)\n"
    "  --reserve WHICH      reserve a core for the scheduler thread: auto, off, on or both\n"
    "                       (both: measure with and without, in turns, and compare) (default: auto)\n"
    "\n"
    "Disturbances:\n"
    "  --disturb SPEC       disturb the frames A to B - 1; may be repeated:\n"
    "      hog@A:B              compute on the cores of the first CPU device, or on CPU 0\n"
    "      hog=CPUS@A:B         compute on these CPUs, for example 0,2-5\n"
    "      gpu-hog@A:B          run frames of another process on the first GPU\n"
    "      quota=PERCENT@A:B    limit this process to PERCENT of the processor time\n"
    "      delay=DEVICE,MICROSECONDS@A:B    artificial: add work to each launch on the device\n"
    "  --fallback-delay US  if a disturbance is impossible here, delay device 0 by US "
    "(default: fail)\n"
    "\n"
    "How to measure:\n"
    "  --check-kernels      first test the kernels for mistakes, with one frame; best on small frames\n"
    "  --rounds N           least number of rounds of the sweep in each phase (default: 8)\n"
    "  --curve STEPS        also sweep the first device's share from 0 to 1 in STEPS steps, 2 to 64\n"
    "  --soak SECONDS       first run each device alone, then all together, for SECONDS each\n"
    "  --quiet SECONDS      wait up to SECONDS for other programs to end; leave out "
    "disturbed rounds\n"
    "  --telemetry MS       interval of clock, temperature and power readings, 1 to 10000; 0: none\n"
    "                       (default: 20)\n"
    "  --sysfs DIR          read them from DIR instead of /sys\n"
    "\n"
    "Output:\n"
    "  -o FILE              the database; runs are added to it (default: session.db)\n"
    "  --anonymous          do not record the name of the machine\n"
    "  --csv, --json        print CSV or JSON instead of tables\n"
    "  --anova              also print an analysis of variance: policies, phases, sizes, ratios\n"
    "  --check              exit with status 3 if the first policy misses a bar\n"
    "  -h, --help           print this text\n";

/* --- Numbers and lists ------------------------------------------------------------------------ */

static bool read_number(const char *option, const char *text, double low, double high, bool whole,
                        double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= low && *value <= high) ||
        (whole && *value != floor(*value)))
        return lab_fail("--%s '%s': must be a %snumber from %g to %.10g", option, text,
                        whole ? "whole " : "", low, high);
    return true;
}

static bool read_count(const char *option, const char *text, double low, double high,
                       uint32_t *value)
{
    double number;

    if (!read_number(option, text, low, high, true, &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

typedef bool read_fn(const char *text, struct lab_run_options *options);

/* Call `entry` for each entry of a list with commas. */
static bool read_list(const char *list, read_fn *entry, struct lab_run_options *options)
{
    for (const char *at = list;; at++) {
        char text[64];
        size_t length = strcspn(at, ",");

        snprintf(text, sizeof text, "%.*s", (int)fmin((double)length, sizeof text - 1), at);
        if (!entry(text, options))
            return false;

        at += length;
        if (!*at)
            return true;
    }
}

/* --- Contestants ------------------------------------------------------------------------------ */

static bool add_policy(const char *name, struct lab_run_options *options)
{
    static const char no_pool[] = ":no-pool";
    struct lab_run_policy *added = &options->policies[options->policy_count];
    char base[sizeof added->name], known[256];

    snprintf(base, sizeof base, "%s", name);
    char *suffix = strstr(base, no_pool);
    bool without = suffix && strcmp(suffix, no_pool) == 0;
    if (without)
        *suffix = '\0';

    const struct cox_policy *policy = *base ? program_policy_find(base) : NULL;
    if (strcmp(base, "oracle") == 0)
        return lab_fail("--policy oracle: only possible in cox-lab sim; every run measures the "
                        "oracle by a sweep");
    if (!policy)
        return lab_fail("--policy: unknown policy '%s'; policies: %s", name,
                        program_policy_names(known, sizeof known));

    if (without && !policy->assign)
        return lab_fail("--policy %s: the policy %s never hands out rows during a frame; "
                        "omit :no-pool",
                        name, base);
    for (uint32_t i = 0; i < options->policy_count; i++)
        if (strcmp(options->policies[i].name, name) == 0)
            return lab_fail("--policy: '%s' is given twice", name);
    if (options->policy_count == LAB_RUN_POLICIES_MAX)
        return lab_fail("--policy: more than %d", LAB_RUN_POLICIES_MAX);

    snprintf(added->name, sizeof added->name, "%s", name);
    added->policy = *policy;
    added->policy.name = added->name;
    if (without)
        added->policy.assign = NULL;
    options->policy_count++;
    return true;
}

static bool read_policies(const char *names, struct lab_run_options *options)
{
    options->policy_count = 0;
    if (strcmp(names, "all") != 0)
        return read_list(names, add_policy, options);

    for (uint32_t i = 0; program_policy_at(i); i++)
        if (!add_policy(program_policy_at(i)->name, options))
            return false;
    return true;
}

static bool read_baseline(const char *name, struct lab_run_options *options)
{
    if (strcmp(name, "starpu") != 0)
        return lab_fail("--baseline '%s': must be starpu", name);
    if (!lab_run_has_starpu)
        return lab_fail("--baseline starpu: this cox-lab was built without StarPU; install StarPU "
                        "1.3 (Debian: libstarpu-dev) and build with cmake -D COX_STARPU=ON");

    options->baseline = true;
    return true;
}

/* Add the baseline as a further contestant, after all policies. */
static bool add_baseline(struct lab_run_options *options)
{
    if (options->kernel != LAB_KERNEL_WORK)
        return lab_fail("--baseline needs --kernel work");
    if (options->policy_count == LAB_RUN_POLICIES_MAX)
        return lab_fail("--policy: more than %d, including the baseline", LAB_RUN_POLICIES_MAX);

    struct lab_run_policy *added = &options->policies[options->policy_count++];
    *added = (struct lab_run_policy){.name = "starpu-dmda", .baseline = true};
    added->policy.name = added->name;
    return true;
}

/* --- The other options ------------------------------------------------------------------------ */

/* A kernel of this program, or a file. */
static bool read_kernel(const char *name, struct lab_run_options *options)
{
    size_t length = strlen(name);

    options->kernel_file = NULL;
    if (lab_kernel_find(name, &options->kernel))
        return true;

    options->kernel = LAB_KERNEL_USER;
    options->kernel_file = name;
    return (length > 3 && strcmp(name + length - 3, ".cl") == 0) || strchr(name, '/') ||
           lab_fail("--kernel '%s': must be tonemap, video, work, blur or FILE.cl", name);
}

static bool add_size(const char *text, struct lab_run_options *options)
{
    struct lab_size size;
    int end = 0;

    if (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", &size.columns, &size.rows, &end) != 2 ||
        text[end] != '\0' || size.columns < LAB_SIZE_MIN || size.rows < LAB_SIZE_MIN ||
        size.columns > LAB_SIZE_MAX || size.rows > LAB_SIZE_MAX)
        return lab_fail("--size '%s': must be WxH, both from %d to %d", text, LAB_SIZE_MIN,
                        LAB_SIZE_MAX);
    if (options->size_count == LAB_RUN_SIZES_MAX)
        return lab_fail("--size: more than %d sizes", LAB_RUN_SIZES_MAX);

    options->sizes[options->size_count++] = size;
    return true;
}

static bool read_sizes(const char *list, struct lab_run_options *options)
{
    options->size_count = 0;
    return read_list(list, add_size, options);
}

static bool add_ratio(const char *text, struct lab_run_options *options)
{
    if (options->ratio_count == LAB_RUN_RATIOS_MAX)
        return lab_fail("--ratio: more than %d ratios", LAB_RUN_RATIOS_MAX);
    return read_count("ratio", text, 1, 64, &options->ratios[options->ratio_count++]);
}

static bool read_ratios(const char *list, struct lab_run_options *options)
{
    options->ratio_count = 0;
    return read_list(list, add_ratio, options);
}

static bool read_frames(const char *text, struct lab_run_options *options)
{
    uint32_t count = 0;
    bool good = read_count("frames", text, 1, LAB_RUN_FRAMES_MAX, &count);

    options->frames = count;
    return good;
}

/* As enum lab_run_reserve. */
static const char *const reserve_names[] = {"auto", "off", "on", "both"};

const char *lab_run_reserve_name(enum lab_run_reserve reserve)
{
    return reserve_names[reserve];
}

static bool read_reserve(const char *name, struct lab_run_options *options)
{
    for (int i = LAB_RESERVE_AUTO; i <= LAB_RESERVE_BOTH; i++)
        if (strcmp(name, reserve_names[i]) == 0) {
            options->reserve = (enum lab_run_reserve)i;
            return true;
        }
    return lab_fail("--reserve '%s': must be auto, off, on or both", name);
}

static bool read_disturbance(const char *text, struct lab_run_options *options)
{
    char why[320];

    if (options->disturbance_count == LAB_DISTURBANCES_MAX)
        return lab_fail("--disturb '%s': more than %d disturbances", text, LAB_DISTURBANCES_MAX);
    return lab_disturbance_parse(text, &options->disturbances[options->disturbance_count++], why,
                                 sizeof why) ||
           lab_fail("--disturb %s", why);
}

static bool read_objective(const char *name, struct lab_run_options *options)
{
    return lab_objective_find(name, &options->objective) ||
           lab_fail("--objective '%s': must be " LAB_OBJECTIVES, name);
}

static bool read_deadline(const char *text, struct lab_run_options *options)
{
    double ms;

    if (!read_number("deadline", text, 0.001, 1e6, false, &ms))
        return false;
    options->deadline_ns = (uint64_t)(ms * 1e6 + 0.5);
    return true;
}

static bool read_telemetry(const char *text, struct lab_run_options *options)
{
    uint32_t ms;

    if (!read_count("telemetry", text, 0, 10000, &ms))
        return false;
    options->telemetry_ns = ms * UINT64_C(1000000);
    return true;
}

static bool read_sysfs(const char *folder, struct lab_run_options *options)
{
    options->sysfs = folder;
    return sysfs_is_folder(folder) || lab_fail("--sysfs '%s': not a folder", folder);
}

/* --- All of them ------------------------------------------------------------------------------ */

enum form {
    FLAG,   /* bool */
    FORMAT, /* `low` is the format */
    TEXT,   /* const char * */
    COUNT,  /* uint32_t from `low` to `high` */
    NUMBER, /* double from `low` to `high` */
    READ    /* by a function */
};

#define AT(member) offsetof(struct lab_run_options, member)

static const struct {
    const char *name;
    enum form form;
    size_t at; /* the member of struct lab_run_options */
    double low, high;
    read_fn *read;
} known[] = {{"devices", TEXT, AT(devices), 0, 0, NULL},
             {"policy", READ, 0, 0, 0, read_policies},
             {"baseline", READ, 0, 0, 0, read_baseline},
             {"kernel", READ, 0, 0, 0, read_kernel},
             {"bindings", TEXT, AT(bindings_file), 0, 0, NULL},
             {"size", READ, 0, 0, 0, read_sizes},
             {"ratio", READ, 0, 0, 0, read_ratios},
             {"frames", READ, 0, 0, 0, read_frames},
             {"repeats", COUNT, AT(repeats), 1, LAB_RUN_REPEATS_MAX, NULL},
             {"reserve", READ, 0, 0, 0, read_reserve},
             {"in-flight", COUNT, AT(in_flight), 1, COX_IN_FLIGHT_MAX, NULL},
             {"disturb", READ, 0, 0, 0, read_disturbance},
             {"fallback-delay", NUMBER, AT(fallback_us), 1, 1e6, NULL},
             {"objective", READ, 0, 0, 0, read_objective},
             {"deadline", READ, 0, 0, 0, read_deadline},
             {"rounds", COUNT, AT(rounds), 1, 100000, NULL},
             {"curve", COUNT, AT(curve), 2, 64, NULL},
             {"soak", NUMBER, AT(soak_s), 0.1, 3600, NULL},
             {"anonymous", FLAG, AT(anonymous), 0, 0, NULL},
             {"quiet", NUMBER, AT(quiet_s), 0, 86400, NULL},
             {"csv", FORMAT, 0, LAB_CSV, 0, NULL},
             {"json", FORMAT, 0, LAB_JSON, 0, NULL},
             {"check", FLAG, AT(check), 0, 0, NULL},
             {"anova", FLAG, AT(anova), 0, 0, NULL},
             {"check-kernels", FLAG, AT(check_kernels), 0, 0, NULL},
             {"powercap", TEXT, AT(powercap), 0, 0, NULL}, /* for tests */
             {"telemetry", READ, 0, 0, 0, read_telemetry},
             {"sysfs", READ, 0, 0, 0, read_sysfs}};

enum { KNOWN = sizeof known / sizeof *known, FIRST_VALUE = 256 };

static bool read_option(int index, const char *text, struct lab_run_options *options)
{
    void *member = (char *)options + known[index].at;
    const double low = known[index].low, high = known[index].high;

    switch (known[index].form) {
    case FLAG:
        *(bool *)member = true;
        return true;
    case FORMAT:
        options->format = (enum lab_format)low;
        return true;
    case TEXT:
        *(const char **)member = text;
        return true;
    case COUNT:
        return read_count(known[index].name, text, low, high, member);
    case NUMBER:
        return read_number(known[index].name, text, low, high, false, member);
    default:
        return known[index].read(text, options);
    }
}

/* Conditions on several options. */
static bool fits_together(const struct lab_run_options *options)
{
    if (options->ratio_count && options->kernel != LAB_KERNEL_WORK)
        return lab_fail("--ratio needs --kernel work");
    if (options->bindings_file && options->kernel != LAB_KERNEL_USER)
        return lab_fail("--bindings needs --kernel FILE.cl");
    if (options->frames * options->repeats > LAB_RUN_FRAMES_MAX)
        return lab_fail("--repeats: --frames times --repeats must be at most %d",
                        LAB_RUN_FRAMES_MAX);
    if (options->anova && (options->repeats < 2 || options->reserve == LAB_RESERVE_BOTH ||
                           options->format != LAB_TABLE))
        return lab_fail("--anova: needs --repeats of at least 2, and none of --reserve both, --csv "
                        "and --json");
    if (options->anova && options->policy_count < 2 && !options->disturbance_count &&
        options->size_count < 2 && options->ratio_count < 2)
        return lab_fail("--anova: needs two policies, sizes or ratios, or a disturbance");
    if (options->soak_s > 0 && options->reserve == LAB_RESERVE_BOTH)
        return lab_fail("--soak cannot be combined with --reserve both");

    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (options->disturbances[i].end_frame > options->frames)
            return lab_fail("--disturb %s: ends after the run, which has %" PRIu64 " frames",
                            options->disturbances[i].text, options->frames);
    return true;
}

bool lab_run_parse(int argc, char **argv, struct lab_run_options *options, int *exit_status)
{
    struct option names[KNOWN + 2] = {{0}};

    names[KNOWN] = (struct option){"help", no_argument, NULL, 'h'};
    for (int i = 0; i < KNOWN; i++) {
        bool alone = known[i].form == FLAG || known[i].form == FORMAT;
        names[i] = (struct option){known[i].name, alone ? no_argument : required_argument, NULL,
                                   FIRST_VALUE + i};
    }

    *options = (struct lab_run_options){.repeats = 1,
                                        .frames = 400,
                                        .in_flight = 1,
                                        .rounds = 8,
                                        .telemetry_ns = 20000000,
                                        .output = "session.db"};
    *exit_status = LAB_USAGE;
    add_policy(cox_policy_find(NULL)->name, options);

    for (int option; (option = getopt_long(argc, argv, "ho:", names, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            *exit_status = LAB_OK;
            return false;
        }
        if (option == '?') {
            fputs("Try 'cox-lab run --help'.\n", stderr);
            return false;
        }

        if (option == 'o')
            options->output = optarg;
        else if (!read_option(option - FIRST_VALUE, optarg, options))
            return false;
    }
    if (optind < argc)
        return lab_fail("unexpected argument '%s'", argv[optind]);
    if (!fits_together(options) || (options->baseline && !add_baseline(options)))
        return false;

    if (!options->size_count)
        options->size_count = 1; /* zeros: the default size */
    if (!options->ratio_count)
        options->ratios[options->ratio_count++] = 3;
    return true;
}
