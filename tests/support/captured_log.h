/* Captures the library's log for a test: pass `on_log` as a runtime's `log`. There is one log per test program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CAPTURED_LOG_H
#define COX_TESTS_CAPTURED_LOG_H

#include <coxswain/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char logged[65536];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    pthread_mutex_lock(&log_lock);
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", line);
    pthread_mutex_unlock(&log_lock);
}

#endif
