/* Opens the runtime of a command.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPEN_RUNTIME_H
#define BENCH_OPEN_RUNTIME_H

#include "options.h"

/* A runtime on `options->devices`, whose log goes to standard error. False after a message. */
bool bench_open_runtime(const struct bench_options *options, enum cox_arithmetic arithmetic,
                        cox_runtime **runtime);

#endif
