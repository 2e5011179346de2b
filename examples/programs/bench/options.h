/* The command line of cox-bench.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { BENCH_EXIT_USAGE = 2, BENCH_POLICIES_MAX = 8 };

struct bench_options {
    const char *devices;            /* NULL = the command's default */
    uint32_t frames;                /* 0 = the command's default */
    uint32_t width, height;         /* 0 = the command's default */
    const char *size_name;          /* suite: "tiny", "small" or "large"; NULL = the default */
    const char *suite_case;         /* suite: NULL = all */
    uint32_t rounds;                /* suite: 0 = the default */
    bool pictures;                  /* stream: pictures instead of video */
    uint32_t in_flight;             /* stream: 0 = 1, 2, 3 and 6, one after the other */
    enum cox_arithmetic arithmetic; /* stream, kernels */
    double ratio;                   /* split: work per row, second device over first */
    /* split, stream, decide: NULL ends the list; an empty list = the command's default */
    const struct cox_policy *policies[BENCH_POLICIES_MAX];
    bool calls;     /* overhead, stream: list the driver calls */
    double quiet_s; /* time for repeating disturbed rounds; 0 = keep all */
    bool json;
};

/* Read the options into `options`, which holds the defaults; `optind` is then at the command.
 * Returns -1 to go on, else the exit status, after a message on standard error. */
int bench_options_parse(int argc, char **argv, struct bench_options *options, bool *check);

void bench_options_usage(FILE *to);

/* The value of an option, or the command's default if the option was not given. */
static inline uint32_t bench_value(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

#endif
