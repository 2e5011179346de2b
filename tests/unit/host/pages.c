/* Pages of host memory on systems with pages of 16 or 64 KiB, as on arm64. This file replaces the system's calls.
 * While a page size is set, it refuses addresses and ends that are not on a page boundary.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host/pages.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAP_MAX_BYTES = 16 << 20 };

static size_t page_bytes; /* 0: the system's */
static intptr_t mapped_bytes;

static size_t whole(size_t bytes)
{
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

long sysconf(int name)
{
    if (name == _SC_PAGESIZE && page_bytes)
        return (long)page_bytes;
    long (*next)(int) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return next ? next(name) : -1;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (!page_bytes)
        return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    /* Maps from the test's own memory, starting at a page that does not begin a huge page. */
    static char memory[2 * MAP_MAX_BYTES];
    cr_assert_leq(bytes, MAP_MAX_BYTES);
    mapped_bytes += (intptr_t)whole(bytes);
    return (char *)((uintptr_t)(memory + (2 << 20)) / (2 << 20) * (2 << 20) + page_bytes);
}

int munmap(void *at, size_t bytes)
{
    if (!page_bytes)
        return (int)syscall(SYS_munmap, at, bytes);
    if ((uintptr_t)at % page_bytes) {
        errno = EINVAL;
        return -1;
    }
    mapped_bytes -= (intptr_t)whole(bytes);
    return 0;
}

static void in_pages_of(size_t system_bytes)
{
    const size_t bytes = (3 << 20) + COX__PAGE_BYTES;
    page_bytes = system_bytes;
    void *pages = cox__pages_create(bytes);
    const intptr_t during = mapped_bytes, needed = (intptr_t)whole(bytes);
    cox__pages_destroy(pages, bytes);
    page_bytes = 0;
    cr_assert_not_null(pages);
    cr_expect_eq((uintptr_t)pages % (2 << 20), 0);
    cr_expect_eq(during, needed);
    cr_expect_eq(mapped_bytes, 0);
}

Test(pages, no_part_of_large_memory_stays_mapped)
{
    in_pages_of(4096);
    in_pages_of(16384);
    in_pages_of(65536);
}
