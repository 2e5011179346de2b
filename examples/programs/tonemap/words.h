/* What cox-tonemap says: results, complaints, what the library has to say; and signals that end it early.
 * Results go to standard output unless data goes there, complaints to standard error, one line each.
 * Thread-safety: any function from any thread, except words_begin, words_finish and catch_signals, which the main
 * thread calls while no other one runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_WORDS_H
#define TONEMAP_WORDS_H

#include "media/identity.h" /* hash_bytes */
#include "common/now.h"
#include "media/picture.h" /* struct error */

#include <coxswain/runtime.h>
#include <stdio.h>

struct video_input;

/* Where results go (NULL = nowhere) and how much of the library's lines is shown. */
void words_begin(FILE *results, enum cox_log_level shown);

/* Flush the results; complains if they could not be written. */
bool words_finish(void);

/* A result. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool say_wanted(void); /* results go somewhere */

/* One line on standard error. Returns false, so that a step can `return complain(...)`. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same where what is given does not go together, so that another try would not help: the program's exit status then
 * is 3. */
bool misfit(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool words_misfit(void); /* whether `misfit` was called */

/* One line on standard error about what does not end the program; nothing with --quiet. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A file cannot be used: `path` and why. */
bool complain_about(const char *path, const struct error *error);

/* Warns about a file; left_out of struct muxed_params, whose `user` is the file's path. */
void warn_about(void *path, const char *what);

/* A call of the library failed: `what` could not be done; the library's own line says why. A reason of many lines (a
 * compiler's) comes before. */
bool complain_status(const char *what, cox_status status);

/* `what`, and then every line that the library had to say about it: what it did not find, and what there is. */
bool complain_reasons(const char *what);

/* A cox_log_fn. The library's errors are kept until it is known whether they end the program: then they are the reason
 * in the one line that tells of it; else they are warnings. */
void words_log(void *user, enum cox_log_level level, const char *line);

/* The errors so far have not ended the program: show them as warnings. */
void words_warn(void);

/* --- Interruption --- */

/* From now on SIGINT, SIGTERM and SIGHUP are only noted. One that comes half a second or more after the first ends the
 * program at once; sooner, it counts as the first. Files that are not whole are removed however the program ends. */
void catch_signals(void);

/* The same of steps that wait for no device: the first such signal ends the program. */
void catch_signals_at_once(void);

/* The number of the signal that came; 0 = none. */
int interrupted(void);

/* The input whose reads end when a signal comes; NULL = none (any more). */
void interruption_cancels(struct video_input *input);

#endif
