/* cox-bench: what the library costs and what its splits are worth, measured on this machine.
 * docs/internals/scheduling.md says what the figures mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_BAD = 1, EXIT_MISSED = 3 };

bool bench_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("cox-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

void bench_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    bench_fail("%s", line);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "guides") == 0)
        return bench_guides(argc - 1, argv + 1);
    struct bench_options options = {.ratio = 3};
    bool check = false, met = false, good;
    int status = bench_options_parse(argc, argv, &options, &check);
    if (status >= 0)
        return status;
    const char *command = optind + 1 == argc ? argv[optind] : "";
    if (strcmp(command, "overhead") == 0) {
        good = bench_overhead(&options, &met);
    } else if (strcmp(command, "split") == 0) {
        good = bench_split(&options, &met);
    } else if (strcmp(command, "stream") == 0) {
        good = bench_stream(&options, &met);
    } else if (strcmp(command, "kernels") == 0) {
        good = bench_kernels(&options, &met);
    } else if (strcmp(command, "decide") == 0) {
        good = bench_decide(&options, &met);
    } else if (strcmp(command, "finish") == 0) {
        good = bench_finish(&options, &met);
    } else if (strcmp(command, "passes") == 0) {
        good = bench_passes(&options, &met);
    } else if (strcmp(command, "resize") == 0) {
        good = bench_resize(&options, &met);
    } else if (strcmp(command, "start") == 0) {
        good = bench_start(&options, &met);
    } else if (strcmp(command, "frames") == 0) {
        good = bench_frames(&options, &met);
    } else {
        bench_options_usage(stderr);
        return BENCH_EXIT_USAGE;
    }
    if (good && (fflush(stdout) != 0 || ferror(stdout)))
        good = bench_fail("standard output: %s", strerror(errno));
    if (!good)
        return EXIT_BAD;
    return check && !met ? EXIT_MISSED : 0;
}
