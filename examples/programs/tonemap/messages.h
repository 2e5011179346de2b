/* The messages of cox-tonemap: results, errors, warnings, and the lines of the library.
 *
 * Results go to standard output, or to standard error if data goes to standard output. Errors and
 * warnings go to standard error, one line each.
 * Thread-safety: any function from any thread, except messages_begin and messages_finish, which the
 * main thread calls while no other thread runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_MESSAGES_H
#define TONEMAP_MESSAGES_H

#include "common/error.h"

#include <coxswain/runtime.h>
#include <stdio.h>

/* Where results go (NULL = nowhere), and which of the library's lines are shown. */
void messages_begin(FILE *results, enum cox_log_level shown);

/* Flush the results. Prints an error if they could not be written. */
bool messages_finish(void);

/* A result. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool say_wanted(void); /* results go somewhere */

/* The ending of a noun after a count: "" after 1, "s" after all others. */
const char *plural(uint64_t count);

/* Print an error. Returns false, so that a step can `return message_error(...)`. */
bool message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print an error about inputs that are incompatible with each other, so that a retry would not
 * help. The program then exits with EXIT_INCOMPATIBLE. Returns false. */
bool message_incompatible(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool messages_incompatible(void); /* whether message_incompatible was called */

/* Print a warning; nothing with --quiet. */
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print why the file `path` cannot be used. Returns false. */
bool message_file_error(const char *path, const struct error *error);

/* Print a warning about a file. This is `left_out` of struct muxed_params; `path` is its
 * `user`. */
void message_file_warning(void *path, const char *what);

/* Print that a call of the library failed: `what`, the status, and the library's own line. Several
 * lines of the library (a compiler's) come before it. Returns false. */
bool message_status_error(const char *what, cox_status status);

/* Print `what` and all error lines of the library, in one line. Returns false. */
bool message_library_errors(const char *what);

/* A cox_log_fn. It keeps the library's errors: if they end the program, message_status_error prints
 * them as the reason; if not, messages_show_warnings prints them as warnings. */
void messages_log(void *user, enum cox_log_level level, const char *line);

/* Show the errors that were kept as warnings. */
void messages_show_warnings(void);

#endif
