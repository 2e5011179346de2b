/* The commands of cox-bench, for main.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#include "options.h"

/* A command sets `*met` if every bar is met. It returns false after a message on standard error. */
typedef bool bench_command(const struct bench_options *options, bool *met);

bench_command bench_overhead, bench_split, bench_stream, bench_kernels, bench_decide, bench_finish,
    bench_passes, bench_resize, bench_start, bench_frames, bench_suite, bench_resident;

/* This command has its own options (guides/command_line.c). `argv` begins with the command's name.
 * Returns the exit status. */
int bench_guides(int argc, char **argv);

#endif
