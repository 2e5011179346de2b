/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "command_line.h"
#include "common/option_name.h"
#include "option_checks.h"
#include "option_table.h"
#include "option_values.h"

#include <stdio.h>
#include <string.h>

/* A long option that is unknown or ambiguous. */
static bool refuse_unknown(const char *written, struct options_error *error)
{
    char name[64], several[256];
    const char *begin = written + strspn(written, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "="), begin);
    if (option_name_list(option_table, name, several, sizeof several) > 1)
        return options_refuse(error, "ambiguous option '--%s'; it could be %s", name, several);

    const char *nearest = option_name_nearest(option_table, name);
    if (nearest)
        return options_refuse(error, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    return options_refuse(error, "unknown option '--%s'; see cox-tonemap --help", name);
}

/* The option that getopt refused, as it was written. */
static bool refuse_option(bool lacks_value, char **argv, struct options_error *error)
{
    const char letter[3] = {'-', (char)optopt, 0};
    const char *written = argv[optind - 1];
    /* v, q and h are known letters: getopt refuses them only in --quiet=x. */
    const bool is_letter = optopt && optopt < OPTION_FIRST && !strchr("vqh", optopt);
    if (is_letter)
        written = letter;

    if (lacks_value)
        return options_refuse(error, "option %s needs a value", written);
    if (optopt && !is_letter)
        return options_refuse(error, "option %s takes no value", written);
    if (is_letter)
        return options_refuse(error, "unknown option '%s'; see cox-tonemap --help", written);
    return refuse_unknown(written, error);
}

/* The value of --verify is optional. Unlike getopt, take a number from the next argument, too. */
static char *verify_value(int argc, char **argv)
{
    double number;
    if (!optarg && optind < argc && option_value_number(argv[optind], &number))
        return argv[optind++];

    return optarg;
}

static enum options_parsed parse_all(struct options *options, int argc, char **argv,
                                     struct options_error *error)
{
    for (;;) {
        const int which = getopt_long(argc, argv, ":o:vqh", option_table, NULL);
        bool good = true;
        switch (which) {
        case -1:
            options->inputs = argv + optind;
            options->input_count = (uint32_t)(argc - optind);
            options->input = argv[optind]; /* NULL without inputs */
            return options_check(options, error) ? OPTIONS_RUN : OPTIONS_WRONG;
        case 'o':
            options->output = optarg;
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'q':
            options->quiet = true;
            break;
        case 'h':
            return OPTIONS_HELP;
        case OPTION_VERSION:
            return OPTIONS_VERSION;
        case OPTION_LIST_HW:
            return OPTIONS_HARDWARE;
        case OPTION_VERIFY:
            good = option_value_set(options, which, verify_value(argc, argv), error);
            break;
        case ':':
        case '?':
            good = refuse_option(which == ':', argv, error);
            break;
        default:
            if (which == OPTION_POLICY && !strcmp(optarg, "help"))
                return OPTIONS_POLICIES;
            good = option_value_set(options, which, optarg, error);
            break;
        }
        if (!good)
            return OPTIONS_WRONG;
    }
}

enum options_parsed options_parse(struct options *options, int argc, char **argv,
                                  struct options_error *error)
{
    *options = (struct options){.op = COX_OPERATOR_HABLE,
                                .peak_auto = true,
                                .in_flight = 2,
                                .repeat = 1,
                                .policy_options = {0}};
    error->text[0] = 0;
    if (argc > 1)
        options->step = options_find_step(argv[1]);
    if (options->step != FILM_WHOLE) {
        argc--;
        argv++;
    }

    opterr = 0;
    optind = 0; /* start again, even if the last parse ended in the middle */
    const enum options_parsed parsed = parse_all(options, argc, argv, error);
    optind = 0;
    return parsed;
}
