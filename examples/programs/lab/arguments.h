/* Parsing that several commands share.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ARGUMENTS_H
#define COX_EXAMPLES_LAB_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number in digits. Prints a line on stderr if it returns false: the text is no number, or
 * not from `low` to `high`. */
bool lab_read_whole(const char *option, const char *text, uint64_t low, uint64_t high,
                    uint64_t *out);

/* The value of --run: the number of a run in a database. */
bool lab_read_run(const char *text, int64_t *run);

/* Print "cox-lab COMMAND --help explains it." on stderr. Returns LAB_USAGE. */
int lab_refer_to_help(const char *command);

#endif
