/* Sessions whose devices must all take part. If one is missing, others do its rows, and what is
 * measured is not what the command line says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <coxswain/coxswain.h>
#include <coxswain/stream.h>
#include <stdbool.h>

/* As the library's functions. They print a line if a device is missing. */
cox_status bench_session_create(cox_runtime *runtime, const struct cox_session_params *params,
                                cox_session **session);
void bench_session_destroy(cox_session **session);
void bench_session_destroy_stream(cox_video_stream **stream);

/* Whether a device of any session was missing: the command must fail. */
bool bench_session_any_missing(void);

#endif
