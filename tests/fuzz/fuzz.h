/* Shared by the fuzz targets: their entry point, assertions, and inputs as text.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_H
#define COX_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)     \
    do {             \
        if (!(x))    \
            abort(); \
    } while (0)

/* Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes and a NUL, in memory of exactly that size, so that a sanitizer detects reads beyond it. The caller
 * frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

/* Check a parser's error message: one line, within its memory, that begins with the name of the input. */
static inline void fuzz_complaint(const char *why, size_t bytes)
{
    CHECK(memchr(why, 0, bytes) && !strncmp(why, "input:", 6) && !strchr(why, '\n'));
}

#endif
