/* Byte sequences that a test builds, and files of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BYTES_H
#define COX_TESTS_BYTES_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

struct bytes {
    uint8_t *data;
    size_t count, capacity;
};

static inline void put(struct bytes *b, const void *data, size_t count)
{
    if (!count)
        return; /* memcpy must not get NULL */
    if (b->count + count > b->capacity) {
        b->capacity = (b->count + count) * 2;
        b->data = realloc(b->data, b->capacity);
        if (!b->data)
            abort();
    }
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

static inline void put_text(struct bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static inline void put_times(struct bytes *b, const char *text, int times)
{
    while (times--)
        put_text(b, text);
}

/* The contents of a file. They stay valid until the file after the next one is loaded. */
static inline struct bytes *load_file(const char *path)
{
    static struct bytes both[2];
    static int turn;
    struct bytes *b = &both[turn++ % 2];
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s cannot be opened", path);
    uint8_t block[65536];
    size_t got;
    b->count = 0;
    while ((got = fread(block, 1, sizeof block, f)))
        put(b, block, got);
    fclose(f);
    return b;
}

#endif
