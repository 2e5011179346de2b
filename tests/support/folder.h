/* A temporary folder in /tmp for a test, and commands in it. Pass `make_folder` and `remove_folder` as .init and
 * .fini.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FOLDER_H
#define COX_TESTS_FOLDER_H

#include "scratch.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/coxswain-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

static inline void remove_folder(void)
{
    scratch_remove(folder);
}

/* The path of a file in the folder. It is valid until the fourth call after this one. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL, "%s", path);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    cr_assert_eq(fclose(file), 0);
}

/* Run a shell command in the folder. Returns whether it succeeded. */
__attribute__((format(printf, 1, 2))) static inline bool shell(const char *format, ...)
{
    char command[2000];
    const int length = snprintf(command, sizeof command, "cd '%s' && exec >/dev/null 2>&1 && ", folder);
    va_list args;
    va_start(args, format);
    vsnprintf(command + length, sizeof command - (size_t)length, format, args);
    va_end(args);
    return system(command) == 0;
}

#define FFMPEG "ffmpeg -nostdin -v error -y "

/* Removes the folder too, since .fini does not run for a skipped test. */
#define skip_unless(condition, ...)                        \
    do {                                                   \
        if (!(condition)) {                                \
            remove_folder();                               \
            cr_skip_test("skipped, because " __VA_ARGS__); \
        }                                                  \
    } while (0)

#endif
