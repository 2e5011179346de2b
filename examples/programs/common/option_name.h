/* Names of long options that people mistype, and values that several programs share.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OPTION_NAME_H
#define OPTION_NAME_H

#include <coxswain/runtime.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* The option of a getopt_long list (its last one has no name) whose name is nearest to `written`,
 * which has neither dashes nor a value; NULL if none is near. One step is a letter that is missing,
 * added, replaced, or swapped with its neighbour. An option is near if it is at most two steps
 * away, and fewer than half as many steps as `written` has letters. */
const char *option_name_nearest(const struct option *known, const char *written);

/* "'--repeat', '--reserve'": the options that begin with `written`. Returns how many. */
size_t option_name_list(const struct option *known, const char *written, char *text, size_t bytes);

/* "auto", "muladd" or "fma". */
bool option_arithmetic(const char *written, enum cox_arithmetic *arithmetic);

#endif
