/* SPDX-License-Identifier: Apache-2.0 */
#include "command_line.h"
#include "bench/message.h"
#include "bench/options.h"
#include "catalogue.h"
#include "common/outfile.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: cox-bench guides [options]\n"
    "\n"
    "Measures what vendors' OpenCL guides advise, compares it with predictions, and writes "
    "an HTML page.\n"
    "\n"
    "  --devices LIST   devices to use (default: all)\n"
    "  --only LIST      keys of the experiments to run, separated by commas (default: all)\n"
    "  --quick          small sizes and few rounds, to test that everything works\n"
    "  --quiet SECONDS  repeat disturbed rounds for up to SECONDS (default: 0, keep all)\n"
    "  -o FILE.html     the page; - is standard output (default: cox-guides.html)\n"
    "  --json FILE      also write the figures as JSON\n"
    "  -h, --help       print this text\n"
    "\n"
    "Exit status: 0 success; 1 something failed or an output is wrong; 2 wrong command line.\n";

/* The word after the one at `at` in a list with commas; NULL after the last one. */
static const char *next_word(const char *at)
{
    const char *comma = strchr(at, ',');

    if (!comma)
        return NULL;

    return comma + 1;
}

static bool is_word(const char *at, const char *key)
{
    const size_t length = strlen(key);

    return strcspn(at, ",") == length && strncmp(at, key, length) == 0;
}

bool guides_wanted(const char *only, const char *key)
{
    for (const char *at = only; at; at = next_word(at))
        if (is_word(at, key))
            return true;

    return !only;
}

/* Check that each word of the list is the key of an experiment. */
static bool check_only(const char *only)
{
    for (const char *at = only; at; at = next_word(at)) {
        uint32_t i = 0;

        while (guides_experiment_at(i) && !is_word(at, guides_experiment_at(i)->key))
            i++;
        if (guides_experiment_at(i))
            continue;

        bench_fail("there is no experiment '%.*s'; there are:", (int)strcspn(at, ","), at);
        for (i = 0; guides_experiment_at(i); i++)
            fprintf(stderr, "  %s\n", guides_experiment_at(i)->key);
        return false;
    }

    return true;
}

static bool read_seconds(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return (end != text && !*end && *value >= 0 && *value <= 86400) ||
           bench_fail("--quiet '%s': must be a number from 0 to 86400", text);
}

int guides_options_parse(int argc, char **argv, struct guides_options *options)
{
    enum { OPTION_DEVICES = 256, OPTION_ONLY, OPTION_QUICK, OPTION_QUIET, OPTION_JSON };
    static const struct option known[] = {{"devices", required_argument, NULL, OPTION_DEVICES},
                                          {"only", required_argument, NULL, OPTION_ONLY},
                                          {"quick", no_argument, NULL, OPTION_QUICK},
                                          {"quiet", required_argument, NULL, OPTION_QUIET},
                                          {"json", required_argument, NULL, OPTION_JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    *options = (struct guides_options){.page = "cox-guides.html"};

    for (int option; (option = getopt_long(argc, argv, "ho:", known, NULL)) != -1;) {
        switch (option) {
        case OPTION_DEVICES:
            options->devices = optarg;
            break;
        case OPTION_ONLY:
            options->only = optarg;
            break;
        case OPTION_QUICK:
            options->quick = true;
            break;
        case OPTION_QUIET:
            if (!read_seconds(optarg, &options->quiet_s))
                return BENCH_EXIT_USAGE;
            break;
        case OPTION_JSON:
            options->json = optarg;
            break;
        case 'o':
            options->page = optarg;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        default:
            fputs("Try 'cox-bench guides --help'.\n", stderr);
            return BENCH_EXIT_USAGE;
        }
    }

    if (optind < argc) {
        bench_fail("unexpected argument '%s'", argv[optind]);
        fputs("Try 'cox-bench guides --help'.\n", stderr);
        return BENCH_EXIT_USAGE;
    }

    if (options->json && outfile_same_place(options->page, options->json)) {
        bench_fail("-o and --json name the same file '%s'", options->json);
        return BENCH_EXIT_USAGE;
    }

    if (!check_only(options->only))
        return BENCH_EXIT_USAGE;

    return -1;
}
