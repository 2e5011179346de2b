/* The values of options: text of the command line into fields of struct options.
 * Called by command_line.c for each option in turn.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_OPTION_VALUES_H
#define TONEMAP_OPTION_VALUES_H

#include "options.h"

/* Store the value `text` of the option `which` (OPTION_... in option_table.h), and set the option's
 * bit in `given`. If the option takes no value or has none, `text` is NULL. If the value is not
 * allowed, returns false, and *error says why. */
bool option_value_set(struct options *options, int which, const char *text,
                      struct options_error *error);

/* A finite number, and nothing after it. */
bool option_value_number(const char *text, double *value);

#endif
