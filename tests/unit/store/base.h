/* Shared by the tests of stored files: a temporary folder, and the last line of the log.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BASE_H
#define COX_TESTS_BASE_H

#include "base/log.h"
#include "support/folder.h"

#include <sys/stat.h>

static char last_line[1200];
static int lines;

static inline void take_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static const struct cox__log logger = {.fn = take_line, .level = COX_LOG_DEBUG};

static inline void make_base(void)
{
    umask(022);
    make_folder();
}

#endif
