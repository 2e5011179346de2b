/* What the fuzz targets of command lines share: words from bytes, and silence.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_ARGS_H
#define COX_TESTS_FUZZ_ARGS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_ARGS_MAX = 64, FUZZ_ARGS_BYTES_MAX = 4096 };

#define FUZZ_CHECK(x) \
    do {              \
        if (!(x))     \
            abort();  \
    } while (0)

struct fuzz_args {
    char *text;
    int count;
    char *words[FUZZ_ARGS_MAX + 1];
};

/* Bytes up to a NUL or the end of a line are one word each. False: more than is worth while. */
static inline bool fuzz_args_make(struct fuzz_args *args, const uint8_t *data, size_t size)
{
    if (size > FUZZ_ARGS_BYTES_MAX)
        return false;
    /* Exactly as long as the words, so that reading beyond them is seen. */
    *args = (struct fuzz_args){.text = malloc(size + 1)};
    FUZZ_CHECK(args->text);
    if (size)
        memcpy(args->text, data, size);
    args->text[size] = 0;
    for (size_t at = 0; at < size && args->count < FUZZ_ARGS_MAX; at += strlen(args->text + at) + 1) {
        args->text[at + strcspn(args->text + at, "\n")] = 0;
        args->words[args->count++] = args->text + at;
    }
    return true;
}

/* Whether `word` is NULL or one of the words, or the end of one. */
static inline bool fuzz_args_hold(const struct fuzz_args *args, const char *word)
{
    for (int i = 0; word && i < args->count; i++)
        if (word >= args->words[i] && word <= args->words[i] + strlen(args->words[i]))
            return true;
    return !word;
}

/* Nothing that is said from here to fuzz_speak reaches the terminal; what the sanitizers say does, they use the
 * descriptor. glibc lets a program assign its streams. Also makes getopt begin anew. */
static FILE *fuzz_out, *fuzz_err;
static inline void fuzz_hush(void)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere);
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
