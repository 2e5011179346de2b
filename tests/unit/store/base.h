/* A fresh directory for each test, and the last line of the log: pass `make_base` and `remove_base` as .init and .fini.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BASE_H
#define COX_TESTS_BASE_H

#include "api/log.h"
#include "support/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char base[64];
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
    strcpy(base, "/tmp/cox-test-store-XXXXXX");
    cr_assert_not_null(mkdtemp(base));
}

static inline void remove_base(void)
{
    scratch_remove(base);
}

/* Something in the directory; the path stays until the fourth call from here. */
static inline const char *in_base(const char *name)
{
    static char paths[4][160];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

/* A skipped test goes without its .fini. */
#define skip_unless(condition, why)                \
    do {                                           \
        if (!(condition)) {                        \
            remove_base();                         \
            cr_skip_test("skipped, because " why); \
        }                                          \
    } while (0)

#endif
