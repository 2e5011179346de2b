/* cox-bench measures on this machine what the library costs and what its splits are worth.
 * docs/internals/scheduling.md explains the figures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/plain_output.h"
#include "message.h"
#include "session.h"

#include <getopt.h>
#include <string.h>

enum { EXIT_BAD = 1, EXIT_MISSED = 3 };

static const struct {
    const char *name;
    bench_command *run;
} commands[] = {
    {"overhead", bench_overhead}, {"split", bench_split},   {"stream", bench_stream},
    {"kernels", bench_kernels},   {"decide", bench_decide}, {"finish", bench_finish},
    {"passes", bench_passes},     {"resize", bench_resize}, {"start", bench_start},
    {"frames", bench_frames},     {"suite", bench_suite},   {"resident", bench_resident},
};

static bench_command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run;

    return NULL;
}

int main(int argc, char **argv)
{
    struct bench_options options = {.ratio = 3};
    bool check = false, met = false;

    bench_command *command = NULL;

    plain_output_begin();
    if (argc > 1 && strcmp(argv[1], "guides") == 0)
        return bench_guides(argc - 1, argv + 1);

    int status = bench_options_parse(argc, argv, &options, &check);
    if (status >= 0)
        return status;
    if (optind + 1 == argc)
        command = find_command(argv[optind]);
    if (!command) {
        bench_options_usage(stderr);
        return BENCH_EXIT_USAGE;
    }

    if (options.size_name && command != bench_suite) {
        bench_fail("--size '%s': must be WxH", options.size_name);
        return BENCH_EXIT_USAGE;
    }

    if (!command(&options, &met))
        return EXIT_BAD;
    const char *failure = plain_output_failure(stdout);
    if (failure) {
        bench_fail("standard output: %s", failure);
        return EXIT_BAD;
    }

    if (bench_session_any_missing())
        return EXIT_BAD;
    if (check && !met)
        return EXIT_MISSED;

    return 0;
}
