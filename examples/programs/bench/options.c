/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "common/option_name.h"
#include "common/policies/registry.h"
#include "message.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: cox-bench overhead|split|stream|kernels|decide|finish|passes|resize|start|frames "
    "[options]\n"
    "       cox-bench guides ...\n"
    "\n"
    "Measures what the library costs and what its splits are worth, on this machine.\n"
    "\n"
    "overhead  one device: a frame through the library against the same frame in hand-written "
    "OpenCL\n"
    "split     two devices of unequal speed: how close the split comes to the best one there is\n"
    "stream    a stream of 4K frames: each device alone and all together, against "
    "hand-written OpenCL\n"
    "kernels   each kernel of the library on each device, against the device's ceilings; "
    "pictures on a CPU by\n"
    "          vectors, at least 1.5 times as fast as by scalars\n"
    "decide    what each policy costs a frame: processor time of its decisions, no device takes "
    "part\n"
    "finish    how soon buffers and cancelled sessions go while frames are under way\n"
    "passes    what a second pass costs; filters as one pass, as several, as sessions by hand; a "
    "device for each pass\n"
    "resize    what a change of the frames' size costs a stream: a new session, with and without "
    "warm_start\n"
    "start     how soon a session is created and its first frame delivered, compiled in the "
    "background or at once\n"
    "frames    what it costs that frames lie where an application has them: known memory, other "
    "memory, copies\n"
    "guides    what vendors' guides to OpenCL advise, measured: a page. Options: cox-bench guides "
    "--help\n"
    "\n"
    "  --devices LIST   overhead: each device of the list in turn (default: every device)\n"
    "                   split: the first two of the list (default: cpu:2x1)\n"
    "                   stream, kernels, finish, passes, resize, start, frames: these devices "
    "(default: every device)\n"
    "  --frames N       overhead: frames of each form (default 2000); split: frames of each split "
    "(default 200);\n"
    "                   stream: frames of each round (default 120); kernels: frames of each kernel "
    "(default 40);\n"
    "                   passes: frames of each turn (default 24); resize: frames of each size "
    "(default 30);\n"
    "                   frames: frames of each round (default 60)\n"
    "  --kernel KIND    stream: video (4:2:0, 10 bits to 8; the default) or pictures (RGBA "
    "half to RGBA8)\n"
    "  --in-flight N    stream: frames under way at once, 1 to 8 (default: 1, 2, 3 and 6, one "
    "after the other)\n"
    "  --arithmetic A   stream, kernels: auto (fma where all devices have it; the default), muladd "
    "or fma\n"
    "  --size WxH       stream, kernels: size of the frames (default 3840x2160); passes, start, "
    "frames (1920x1080)\n"
    "  --ratio R        split: work per row on the second device over that on the first, 1 to 64 "
    "(default 3)\n"
    "  --policy NAMES   policies to measure, with commas between: split: one (default: the "
    "library's), stream (default:\n"
    "                   the library's and ewma), decide (default: all)\n"
    "  --quiet SECONDS  spend up to so much on doing again what other programs disturbed (default "
    "0: keep all)\n"
    "  --calls          overhead, stream: each call of the OpenCL driver, how often for a frame "
    "and how long it takes\n"
    "  --check          exit status 3 if a bar is missed\n"
    "  --json           JSON instead of text\n"
    "  -h, --help       this text\n";

void bench_options_usage(FILE *to)
{
    fputs(usage_text, to);
}

static bool read_number(const char *option, const char *text, double low, double high, bool whole,
                        double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= low && *value <= high) ||
        (whole && *value != floor(*value)))
        return bench_fail("%s '%s': a %snumber from %g to %g is needed", option, text,
                          whole ? "whole " : "", low, high);

    return true;
}

static bool read_whole(const char *option, const char *text, uint32_t low, uint32_t high,
                       uint32_t *value)
{
    double number;

    if (!read_number(option, text, low, high, true, &number))
        return false;

    *value = (uint32_t)number;

    return true;
}

static bool read_arithmetic(const char *text, enum cox_arithmetic *arithmetic)
{
    return option_arithmetic(text, arithmetic) ||
           bench_fail("--arithmetic '%s': auto, muladd or fma is needed", text);
}

static bool read_size(const char *text, struct bench_options *options)
{
    int end = 0;

    if (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", &options->width, &options->height, &end) != 2 ||
        text[end] != '\0' || options->width < 16 || options->height < 16 ||
        options->width > 16384 || options->height > 16384)
        return bench_fail("--size '%s': WxH is needed, both from 16 to 16384", text);

    return true;
}

/* Splits `names` in place. */
static bool read_policies(char *names, const struct cox_policy **policies)
{
    int count = 0;

    for (char *next = names, *name; (name = strsep(&next, ","));) {
        const struct cox_policy *policy = program_policy_find(name);
        if (count == BENCH_POLICIES_MAX)
            return bench_fail("--policy: more than %d names", BENCH_POLICIES_MAX);
        if (!policy) {
            bench_fail("there is no policy '%s'; there are:", name);
            for (uint32_t i = 0; program_policy_at(i); i++)
                fprintf(stderr, "  %s\n", program_policy_at(i)->name);
            return false;
        }
        policies[count++] = policy;
    }

    return true;
}

static bool read_kernel(const char *name, bool *pictures)
{
    *pictures = strcmp(name, "pictures") == 0;
    return *pictures || strcmp(name, "video") == 0 ||
           bench_fail("--kernel '%s': video or pictures is needed", name);
}

enum {
    OPTION_DEVICES = 256,
    OPTION_FRAMES,
    OPTION_KERNEL,
    OPTION_IN_FLIGHT,
    OPTION_ARITHMETIC,
    OPTION_SIZE,
    OPTION_RATIO,
    OPTION_POLICY,
    OPTION_QUIET,
    OPTION_CALLS,
    OPTION_CHECK,
    OPTION_JSON
};

int bench_options_parse(int argc, char **argv, struct bench_options *options, bool *check)
{
    static const struct option known[] = {
        {"devices", required_argument, NULL, OPTION_DEVICES},
        {"frames", required_argument, NULL, OPTION_FRAMES},
        {"kernel", required_argument, NULL, OPTION_KERNEL},
        {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
        {"arithmetic", required_argument, NULL, OPTION_ARITHMETIC},
        {"size", required_argument, NULL, OPTION_SIZE},
        {"ratio", required_argument, NULL, OPTION_RATIO},
        {"policy", required_argument, NULL, OPTION_POLICY},
        {"quiet", required_argument, NULL, OPTION_QUIET},
        {"calls", no_argument, NULL, OPTION_CALLS},
        {"check", no_argument, NULL, OPTION_CHECK},
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},
        {0}};

    for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        bool good = true;

        switch (option) {
        case OPTION_DEVICES:
            options->devices = optarg;
            break;
        case OPTION_FRAMES:
            good = read_whole("--frames", optarg, 10, 10000000, &options->frames);
            break;
        case OPTION_KERNEL:
            good = read_kernel(optarg, &options->pictures);
            break;
        case OPTION_IN_FLIGHT:
            good = read_whole("--in-flight", optarg, 1, 8, &options->in_flight);
            break;
        case OPTION_ARITHMETIC:
            good = read_arithmetic(optarg, &options->arithmetic);
            break;
        case OPTION_SIZE:
            good = read_size(optarg, options);
            break;
        case OPTION_RATIO:
            good = read_number("--ratio", optarg, 1, 64, true, &options->ratio);
            break;
        case OPTION_POLICY:
            good = read_policies(optarg, options->policies);
            break;
        case OPTION_QUIET:
            good = read_number("--quiet", optarg, 0, 86400, false, &options->quiet_s);
            break;
        case OPTION_CALLS:
            options->calls = true;
            break;
        case OPTION_CHECK:
            *check = true;
            break;
        case OPTION_JSON:
            options->json = true;
            break;
        case 'h':
            bench_options_usage(stdout);
            return 0;
        default:
            fputs("Try 'cox-bench --help'.\n", stderr);
            good = false;
        }
        if (!good)
            return BENCH_EXIT_USAGE;
    }

    return -1;
}
