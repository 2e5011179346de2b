/* Pages of host memory from malloc or, where they fill huge pages, from mmap.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Memory that fills no huge page comes from malloc, where memory checkers see what goes past the end. */
enum { HUGE_BYTES = 2 << 20, LARGE_BYTES = HUGE_BYTES };

void *cox__pages_create(size_t bytes)
{
    void *pages = NULL;
    if (bytes < LARGE_BYTES) {
        if (posix_memalign(&pages, COX__PAGE_BYTES, bytes))
            return NULL;
        return memset(pages, 0, bytes);
    }
    if (bytes > SIZE_MAX - HUGE_BYTES)
        return NULL;
    char *all = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    if (before)
        munmap(all, before);
    if (HUGE_BYTES - before)
        munmap(all + before + bytes, HUGE_BYTES - before);
    madvise(all + before, bytes, MADV_HUGEPAGE); /* only a hint: a failure does no harm */
    return all + before;
}

void cox__pages_destroy(void *pages, size_t bytes)
{
    if (bytes < LARGE_BYTES)
        free(pages);
    else if (pages)
        munmap(pages, bytes);
}
