/* Shared by the fuzz targets of command lines: words from bytes, and suppressed output.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_ARGS_H
#define COX_TESTS_FUZZ_ARGS_H

#include "fuzz.h"
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

enum { FUZZ_ARGS_MAX = 64, FUZZ_ARGS_BYTES_MAX = 4096 };

struct fuzz_args {
    char *text, *name;
    int count;
    char *words[FUZZ_ARGS_MAX + 1];
};

/* Make words of the bytes: each ends at a NUL or a line feed. `name`, if not NULL, is the first word. Returns false
 * if there are too many bytes. */
static inline bool fuzz_args_make(struct fuzz_args *args, const char *name, const uint8_t *data, size_t size)
{
    if (size > FUZZ_ARGS_BYTES_MAX)
        return false;
    *args = (struct fuzz_args){.text = fuzz_text(data, size), .name = name ? strdup(name) : NULL};
    if (name)
        args->words[args->count++] = args->name;
    for (size_t at = 0; at < size && args->count < FUZZ_ARGS_MAX; at += strlen(args->text + at) + 1) {
        args->text[at + strcspn(args->text + at, "\n")] = 0;
        args->words[args->count++] = args->text + at;
    }
    return true;
}

static inline void fuzz_args_free(struct fuzz_args *args)
{
    free(args->text);
    free(args->name);
}

/* Whether `word` is NULL, one of the words, or the end of one. */
static inline bool fuzz_args_hold(const struct fuzz_args *args, const char *word)
{
    for (int i = 0; word && i < args->count; i++)
        if (word >= args->words[i] && word <= args->words[i] + strlen(args->words[i]))
            return true;
    return !word;
}

/* Between fuzz_hush and fuzz_speak, the program prints nothing. Sanitizers still do, since they use the descriptor.
 * glibc lets a program assign its standard streams. fuzz_hush also restarts getopt. */
static FILE *fuzz_out, *fuzz_err;
static inline void fuzz_hush(void)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    CHECK(nowhere);
    fuzz_out = stdout;
    fuzz_err = stderr;
    stdout = stderr = nowhere;
    optind = 0;
}

static inline void fuzz_speak(void)
{
    stdout = fuzz_out;
    stderr = fuzz_err;
}

#endif
