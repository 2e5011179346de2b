/* The command line of cox-tonemap.
 *
 * The parser only reads: it prints nothing, never exits, and keeps nothing but `options`, which
 * points into argv.
 * Thread-safety: one thread at a time, because getopt has global state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_COMMAND_LINE_H
#define TONEMAP_COMMAND_LINE_H

#include "options.h"

enum options_parsed {
    OPTIONS_WRONG = -1, /* *error says why */
    OPTIONS_RUN = 0,
    OPTIONS_HELP, /* this and the next three: print it, and exit */
    OPTIONS_VERSION,
    OPTIONS_POLICIES,
    OPTIONS_HARDWARE,
};

/* Set every field of `options`, and check them (options_check). May reorder argv, as getopt
 * does. */
enum options_parsed options_parse(struct options *options, int argc, char **argv,
                                  struct options_error *error);

#endif
