/* The heap of a fuzz target that is linked with --wrap (cox_fuzz_target in tests/CMakeLists.txt): allocations of the
 * library fail on demand, and blocks are counted. What the tests themselves allocate goes through must() and never
 * fails. Shared libraries are not seen.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_HEAP_H
#define COX_TESTS_FUZZ_HEAP_H

#include "support/fake_backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static volatile struct { /* compilers know what malloc does */
    bool on;             /* counts and may fail */
    int64_t blocks;      /* allocated and not freed */
    uint32_t skip;       /* allocations that succeed before */
    uint32_t fail;       /* this many fail */
    uint32_t failed;     /* so far */
} heap;

static bool heap_fails(void)
{
    if (!heap.on || fake_must_depth > 0 || heap.fail == 0)
        return false;
    if (heap.skip > 0) {
        heap.skip--;
        return false;
    }
    heap.fail--;
    heap.failed++;
    return true;
}

static void *heap_count(void *block)
{
    heap.blocks += heap.on && block;
    return block;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *block);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

void *__wrap_malloc(size_t bytes)
{
    return heap_fails() ? NULL : heap_count(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return heap_fails() ? NULL : heap_count(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (heap_fails())
        return NULL;
    void *moved = __real_realloc(block, bytes);
    if (!block)
        heap_count(moved);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return heap_count(__real_aligned_alloc(alignment, bytes));
}

char *__wrap_strdup(const char *text)
{
    return heap_fails() ? NULL : heap_count(__real_strdup(text));
}

void __wrap_free(void *block)
{
    heap.blocks -= heap.on && block;
    __real_free(block);
}

#endif
