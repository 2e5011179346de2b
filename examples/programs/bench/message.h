/* Messages of cox-bench on standard error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

#include <coxswain/coxswain.h>
#include <stdbool.h>

/* Print one line; returns false, so that a function can `return bench_fail(...)`. */
bool bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the library's log lines; for `cox_runtime_params.log`. */
void bench_log(void *user, enum cox_log_level level, const char *line);

/* Whether `status` is COX_OK; prints "what: why" if not, or only why if `what` is NULL. */
bool bench_good(cox_status status, const char *what);

#endif
