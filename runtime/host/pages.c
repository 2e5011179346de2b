/* Pages of host memory: from mmap if they fill a huge page, from malloc otherwise.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that fills no huge page comes from malloc, so that memory checkers see accesses past its
 * end. */
enum { HUGE_BYTES = COX__HUGE_BYTES, LARGE_BYTES = HUGE_BYTES };

/* Round up to whole pages of the system, which have 4, 16 or 64 KiB: only whole pages are mapped
 * and unmapped. */
static size_t mapped_bytes(size_t bytes)
{
    const long system_bytes = sysconf(_SC_PAGESIZE);
    const size_t page_bytes = system_bytes > 0 ? (size_t)system_bytes : COX__PAGE_BYTES;
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

void *cox__pages_create(size_t bytes)
{
    void *pages = NULL;
    if (bytes < LARGE_BYTES) {
        if (posix_memalign(&pages, COX__PAGE_BYTES, bytes))
            return NULL;
        return memset(pages, 0, bytes);
    }

    if (bytes > SIZE_MAX - 2 * (size_t)HUGE_BYTES)
        return NULL;

    /* Map one huge page more, and give back what is before and after the aligned part. */
    bytes = mapped_bytes(bytes);
    char *all = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
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
        munmap(pages, mapped_bytes(bytes));
}
