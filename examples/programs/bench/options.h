/* cox-bench's command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "shared.h"

#include <stdio.h>

enum { BENCH_EXIT_USAGE = 2 };

/* Reads the options into `options`, which holds the defaults; `optind` is at the command afterwards. Returns -1 to go
 * on, else the exit status, after saying why on standard error. */
int bench_options_parse(int argc, char **argv, struct bench_options *options, bool *check);

void bench_options_usage(FILE *to);

#endif
