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
    "Usage: cox-bench COMMAND [options]\n"
    "       cox-bench guides [options]\n"
    "\n"
    "Measures the cost of the library and the quality of its splits on this machine.\n"
    "\n"
    "overhead  one device: the cost of a frame, compared with hand-written OpenCL\n"
    "split     two unequal devices: frame times, compared with the best fixed split\n"
    "stream    4K frames: each device alone and all together, compared with hand-written OpenCL\n"
    "kernels   each kernel on each device, compared with the limits of the device\n"
    "decide    processor time of each policy's decisions; uses no device\n"
    "finish    time to destroy buffers and cancelled sessions while frames are in flight\n"
    "passes    cost of a second pass; filters as one pass, as several passes, as separate sessions\n"
    "resize    cost of a new frame size: a new session, with and without warm_start\n"
    "start     time to create a session and to get its first frame; compiling in the "
    "background or not\n"
    "frames    cost of frames in known memory, in other memory, and of copies\n"
    "resident  frames that are made and used on one GPU, compared with hand-written OpenCL\n"
    "suite     kernels of benchmark suites: the library, compared with hand-written OpenCL, on one "
    "device and on all\n"
    "guides    tests the advice of OpenCL vendors' guides. Options: cox-bench guides --help\n"
    "\n"
    "  --devices LIST   devices to use (default: all); split uses the first two (default: cpu:2x1)\n"
    "  --frames N       frames of each variant; default: overhead 2000, split 200, stream 120,\n"
    "                   kernels 40, passes 24, resize 30, frames 60, resident 600\n"
    "  --kernel KIND    stream: video (4:2:0, 10 to 8 bits; default) or pictures (RGBA half "
    "to 8 bits)\n"
    "  --in-flight N    stream, resident: frames in flight, 1 to 8 (default: stream 1, 2, 3 and 6, "
    "one\n"
    "                   after the other, resident 3)\n"
    "  --arithmetic A   stream, kernels: auto (fma if all devices have it; the default), "
    "muladd or fma\n"
    "  --size WxH       frame size; default: stream, kernels, resident 3840x2160; passes, start, "
    "frames 1920x1080\n"
    "  --size NAME      suite: tiny (compares the results alone), small (default) or large\n"
    "  --case NAME      suite: one case only\n"
    "  --rounds N       suite: rounds in which all entrants take turns, 1 to 101 (default: 7)\n"
    "  --ratio R        split: cost of a row on device 1 relative to device 0, 1 to 64 (default: 3)\n"
    "  --policy NAMES   policies, separated by commas; default: split the library's (only "
    "one allowed),\n"
    "                   stream the library's and ewma, decide all\n"
    "  --quiet SECONDS  repeat disturbed measurements for up to SECONDS (default: 0, keep all)\n"
    "  --calls          overhead, stream: count and time the OpenCL calls of a frame\n"
    "  --check          exit with status 3 if a bar is missed\n"
    "  --json           print JSON instead of text\n"
    "  -h, --help       print this text\n";

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
        return bench_fail("%s '%s': must be a %snumber from %g to %g", option, text,
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
           bench_fail("--arithmetic '%s': must be auto, muladd or fma", text);
}

static bool read_size(const char *text, struct bench_options *options)
{
    int end = 0;

    if (strcmp(text, "tiny") == 0 || strcmp(text, "small") == 0 || strcmp(text, "large") == 0) {
        options->size_name = text;
        return true;
    }

    if (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", &options->width, &options->height, &end) != 2 ||
        text[end] != '\0' || options->width < 16 || options->height < 16 ||
        options->width > 16384 || options->height > 16384)
        return bench_fail(
            "--size '%s': must be WxH, both from 16 to 16384, or for suite tiny, small or large",
            text);

    return true;
}

/* Splits `names` in place. */
static bool read_policies(char *names, const struct cox_policy **policies)
{
    char known[256];
    int count = 0;

    for (char *next = names, *name; (name = strsep(&next, ","));) {
        const struct cox_policy *policy = program_policy_find(name);
        if (count == BENCH_POLICIES_MAX)
            return bench_fail("--policy: more than %d names", BENCH_POLICIES_MAX);
        if (!policy)
            return bench_fail("--policy: unknown policy '%s'; policies: %s", name,
                              program_policy_names(known, sizeof known));
        policies[count++] = policy;
    }

    return true;
}

static bool read_kernel(const char *name, bool *pictures)
{
    *pictures = strcmp(name, "pictures") == 0;
    return *pictures || strcmp(name, "video") == 0 ||
           bench_fail("--kernel '%s': must be video or pictures", name);
}

enum {
    OPTION_DEVICES = 256,
    OPTION_FRAMES,
    OPTION_KERNEL,
    OPTION_IN_FLIGHT,
    OPTION_ARITHMETIC,
    OPTION_SIZE,
    OPTION_CASE,
    OPTION_ROUNDS,
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
        {"case", required_argument, NULL, OPTION_CASE},
        {"rounds", required_argument, NULL, OPTION_ROUNDS},
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
        case OPTION_CASE:
            options->suite_case = optarg;
            break;
        case OPTION_ROUNDS:
            good = read_whole("--rounds", optarg, 1, 101, &options->rounds);
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
