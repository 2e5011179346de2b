/* The logger: formats a line and passes it to the application's callback. Without a callback it is
 * silent.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_LOG_H
#define COX_BASE_LOG_H

#include <coxswain/runtime.h>

struct cox__log {
    cox_log_fn *fn;
    void *user;
    enum cox_log_level level; /* most detailed level that is reported */
};

/* One line without a newline. Lines longer than 1 KiB are cut, except through cox__log_text. What
 * is not printable UTF-8 appears as \xNN. */
void cox__log(const struct cox__log *log, enum cox_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Log a long text, for example a compiler's output, line by line, each line after `prefix`. */
void cox__log_text(const struct cox__log *log, enum cox_log_level level, const char *prefix,
                   const char *text);

#endif
