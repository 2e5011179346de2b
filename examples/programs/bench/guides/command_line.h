/* The command line of cox-bench guides.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_COMMAND_LINE_H
#define BENCH_GUIDES_COMMAND_LINE_H

#include <stdbool.h>

struct guides_options {
    const char *devices, *page, *json, *only;
    double quiet_s;
    bool quick;
};

/* Returns -1 to go on, else the exit status, after a message on standard error. */
int guides_options_parse(int argc, char **argv, struct guides_options *options);

/* Whether an experiment is in the list `only`; NULL = all are. */
bool guides_wanted(const char *only, const char *key);

#endif
