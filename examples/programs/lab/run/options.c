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
    "Runs policies on the devices of this machine, in turns with each device alone and a sweep of "
    "static splits, and\n"
    "records everything in a database.\n"
    "\n"
    "  --devices LIST       these devices (default: every device)\n"
    "  --policy NAMES       policies, with commas between, or all; NAME:no-pool may not hand out "
    "rows while a frame\n"
    "                       runs (default: adaptive)\n"
    "  --baseline starpu    also StarPU 1.3 with its scheduler dmda, on whole devices, as a "
    "further policy\n"
    "  --kernel NAME        tonemap: HDR pictures; video: HDR10 frames; work: arithmetic; blur: a "
    "convolution in two\n"
    "                       passes (default: tonemap); FILE.cl: a kernel of your own, with "
    "FILE.json\n"
    "  --bindings FILE      the JSON of a kernel of your own (default: beside it)\n"
    "  --size WxH[,...]     of the frames, one run of each (default: 1920x1080; work: 128x480; "
    "else as the JSON says)\n"
    "  --ratio R[,...]      work: work per row on device 1 over that on the others, 1 to 64, "
    "one run of each (default: 3)\n"
    "  --frames N           of each policy (default: 400)\n"
    "  --repeats N          do it all so many times, 1 to 1000, with new sessions, and tell 95 % "
    "intervals (default: 1)\n"
    "  --reserve WHICH      keep a core for feeding the devices: auto, off, on; both: one side "
    "with and one without, in\n"
    "                       turns, compared (default: auto)\n"
    "  --in-flight N        frames under way at once, 1 to 16 (default: 1)\n"
    "  --disturb SPEC       for the frames A to B - 1; may be given more than once:\n"
    "      hog@A:B              a process that computes on the cores of the first CPU device, "
    "else on\n"
    "                           CPU 0\n"
    "      hog=CPUS@A:B         on these CPUs, as in 0,2-5\n"
    "      gpu-hog@A:B          a process with frames of its own on the first GPU\n"
    "      quota=PERCENT@A:B    PERCENT of the processor time that this process may use, by a "
    "control group\n"
    "      delay=DEVICE,MICROSECONDS@A:B    artificial: more work in each launch on the device\n"
    "  --fallback-delay US  where a disturbance cannot be made here, delay device 0 instead "
    "(default: refuse)\n"
    "  --objective NAME     what the policies make small: throughput: the time between frames; "
    "latency: the time from\n"
    "                       a frame's submission to its delivery; energy: joules, by the "
    "processor's meter\n"
    "                       (default: throughput)\n"
    "  --deadline MS        of each frame, from its submission to its delivery (default: none)\n"
    "  --rounds N           of the sweep in each phase, at least (default: 8)\n"
    "  --curve STEPS        also sweep the whole range of the first device's share, in so many "
    "steps, 2 to 64\n"
    "  --soak SECONDS       at first, each device alone, then all together, without a pause, so "
    "long each, after rests\n"
    "  --quiet SECONDS      spend up to so much on waiting for other programs to end; what they "
    "disturbed is left out\n"
    "  --telemetry MS       read the machine's clocks, temperatures and power every MS "
    "milliseconds, 1 to 10000;\n"
    "                       0: not at all (default: 20)\n"
    "  --sysfs DIR          read them in DIR, in the place of /sys\n"
    "  -o FILE              the database, made or added to (default: session.db)\n"
    "  --anonymous          do not record the machine's name\n"
    "  --csv, --json        instead of the tables\n"
    "  --check              exit status 3 if the first policy misses a bar\n"
    "  -h, --help           this text\n";

/* --- Numbers and lists ------------------------------------------------------------------------ */

static bool read_number(const char *option, const char *text, double low, double high, bool whole,
                        double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= low && *value <= high) ||
        (whole && *value != floor(*value)))
        return lab_fail("--%s '%s': a %snumber from %g to %.10g is needed", option, text,
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
    char base[sizeof added->name];

    snprintf(base, sizeof base, "%s", name);
    char *suffix = strstr(base, no_pool);
    bool without = suffix && strcmp(suffix, no_pool) == 0;
    if (without)
        *suffix = '\0';

    const struct cox_policy *policy = *base ? program_policy_find(base) : NULL;
    if (strcmp(base, "oracle") == 0)
        return lab_fail(
            "--policy oracle: on devices the oracle is found by sweeping, in every run");
    if (!policy) {
        lab_fail("there is no policy '%s'; there are:", name);
        for (uint32_t i = 0; program_policy_at(i); i++)
            fprintf(stderr, "  %s\n", program_policy_at(i)->name);
        return false;
    }

    if (without && !policy->assign)
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
        return lab_fail("--baseline '%s': starpu is needed", name);
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
        return lab_fail("--baseline is for the kernel work");
    if (options->policy_count == LAB_RUN_POLICIES_MAX)
        return lab_fail("--policy: more than %d with the baseline", LAB_RUN_POLICIES_MAX);

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
           lab_fail(
               "there is no kernel '%s'; there are tonemap, video, work and blur, or a file .cl",
               name);
}

static bool add_size(const char *text, struct lab_run_options *options)
{
    struct lab_size size;
    int end = 0;

    if (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", &size.columns, &size.rows, &end) != 2 ||
        text[end] != '\0' || size.columns < LAB_SIZE_MIN || size.rows < LAB_SIZE_MIN ||
        size.columns > LAB_SIZE_MAX || size.rows > LAB_SIZE_MAX)
        return lab_fail("--size '%s': WxH is needed, both from %d to %d", text, LAB_SIZE_MIN,
                        LAB_SIZE_MAX);
    if (options->size_count == LAB_RUN_SIZES_MAX)
        return lab_fail("--size: more than %d", LAB_RUN_SIZES_MAX);

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
        return lab_fail("--ratio: more than %d", LAB_RUN_RATIOS_MAX);
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
    return lab_fail("--reserve '%s': auto, off, on or both is needed", name);
}

static bool read_disturbance(const char *text, struct lab_run_options *options)
{
    char why[320];

    if (options->disturbance_count == LAB_DISTURBANCES_MAX)
        return lab_fail("--disturb '%s': more than %d", text, LAB_DISTURBANCES_MAX);
    return lab_disturbance_parse(text, &options->disturbances[options->disturbance_count++], why,
                                 sizeof why) ||
           lab_fail("--disturb %s", why);
}

static bool read_objective(const char *name, struct lab_run_options *options)
{
    return lab_objective_find(name, &options->objective) ||
           lab_fail("--objective '%s': " LAB_OBJECTIVES " is needed", name);
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
    return sysfs_is_folder(folder) || lab_fail("--sysfs '%s': it is no folder", folder);
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
        return lab_fail("--ratio is for --kernel work");
    if (options->bindings_file && options->kernel != LAB_KERNEL_USER)
        return lab_fail("--bindings is for --kernel FILE.cl");
    if (options->frames * options->repeats > LAB_RUN_FRAMES_MAX)
        return lab_fail("--repeats: more than %d frames of each policy in all", LAB_RUN_FRAMES_MAX);
    if (options->soak_s > 0 && options->reserve == LAB_RESERVE_BOTH)
        return lab_fail("--soak is for one side: not with --reserve both");

    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (options->disturbances[i].end_frame > options->frames)
            return lab_fail("--disturb %s: the run has %" PRIu64 " frames",
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
        return lab_fail("'%s': not an option", argv[optind]);
    if (!fits_together(options) || (options->baseline && !add_baseline(options)))
        return false;

    if (!options->size_count)
        options->size_count = 1; /* zeros: the default size */
    if (!options->ratio_count)
        options->ratios[options->ratio_count++] = 3;
    return true;
}
