/* cox-bench suite: kernels as benchmark suites have them, in the library and in hand-written OpenCL,
 * on the best device and on all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/commands.h"
#include "bench/json_members.h"
#include "bench/lines.h"
#include "bench/message.h"
#include "bench/open_runtime.h"
#include "table.h"

#include <string.h>

enum { ROUNDS_DEFAULT = 7 };

static const char *const size_names[] = {"tiny", "small", "large"};

struct command {
    const struct bench_options *options;
    struct suite_conditions conditions;
    struct suite_summary summary;
    struct quiet quiet;
    struct machine machine;
    struct json json;
};

static bool is_case(const char *name)
{
    for (const struct suite_case *c = suite_cases; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return true;

    return false;
}

static bool find_size(struct command *command)
{
    const char *name = command->options->size_name;

    command->conditions.size = SUITE_SMALL;
    if (command->options->width)
        return bench_fail("suite: --size must be tiny, small or large");
    for (int s = SUITE_TINY; name && s <= SUITE_LARGE; s++)
        if (strcmp(name, size_names[s]) == 0)
            command->conditions.size = (enum suite_size)s;

    return true;
}

static void print_head(struct command *command)
{
    const char *size = size_names[command->conditions.size];

    machine_read(&command->machine);
    if (command->options->json) {
        json_report_begin(&command->json, "suite", &command->machine);
        json_member_string(&command->json, "size", size);
        json_member_unsigned(&command->json, "rounds", command->conditions.rounds);
        json_member_array(&command->json, "cases", false);
        return;
    }

    bench_print_machine(&command->machine);
    for (uint32_t d = 0; d < cox_runtime_device_count(command->conditions.runtime); d++) {
        struct cox_device_info info;
        cox_runtime_device_info(command->conditions.runtime, d, &info);
        printf("device %u: %s, %s\n", d, info.name, cox_memory_mode_name(info.mode));
    }
    suite_table_head(size, command->conditions.rounds);
}

static void print_end(struct command *command)
{
    if (command->options->json) {
        json_close_array(&command->json);
        suite_json_end(&command->json, &command->summary, command->conditions.rounds);
        if (command->conditions.rounds)
            member_quiet(&command->json, "rounds_repeated", &command->quiet);
        json_report_end(&command->json);
        return;
    }

    suite_table_end(&command->summary, command->conditions.rounds);
    if (command->conditions.rounds)
        bench_print_quiet(&command->quiet, "rounds");
}

static bool run_cases(struct command *command)
{
    const char *only = command->options->suite_case;

    for (const struct suite_case *c = suite_cases; c->name; c++) {
        struct suite_figures figures;
        if (only && strcmp(only, c->name) != 0)
            continue;
        if (!suite_measure(c, &command->conditions, &figures))
            return bench_fail("suite: %s failed", c->name);
        suite_summary_add(&command->summary, &figures);
        if (command->options->json)
            suite_json_row(&command->json, &figures, command->conditions.rounds);
        else
            suite_table_row(&figures, command->conditions.rounds);
    }

    return true;
}

bool bench_suite(const struct bench_options *options, bool *met)
{
    struct command command = {.options = options};

    if (options->suite_case && !is_case(options->suite_case)) {
        bench_fail("suite: unknown case '%s'; cases:", options->suite_case);
        for (const struct suite_case *c = suite_cases; c->name; c++)
            fprintf(stderr, "  %-12s %s: %s\n", c->name, c->suite, c->what);
        return false;
    }
    if (!find_size(&command) ||
        !bench_open_runtime(options, COX_ARITHMETIC_AUTO, &command.conditions.runtime))
        return false;

    if (command.conditions.size != SUITE_TINY)
        command.conditions.rounds = bench_value(options->rounds, ROUNDS_DEFAULT);
    command.conditions.quiet = &command.quiet;
    quiet_start(&command.quiet, options->quiet_s);
    print_head(&command);

    const bool good = run_cases(&command);
    if (good) {
        print_end(&command);
        *met = suite_summary_met(&command.summary, command.conditions.rounds);
    }
    cox_runtime_destroy(&command.conditions.runtime);

    return good;
}
