/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "mapped_file.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapped_file {
    char *begin; /* of the mapping, at a page */
    size_t length;
    size_t before; /* bytes from there to offset 0 */
    size_t released;
    size_t page_bytes;
    struct sigaction others; /* what SIGBUS did before */
    _Atomic uint64_t torn;   /* 1 + the first missing page's place; 0 = none is missing */
    _Atomic uint32_t users;  /* hold the memory */
};

static struct mapped_file *_Atomic mapped;

/* Put zeros in the place of the missing page at `address`. False: it is not of the mapping. */
static bool replace_page(struct mapped_file *map, uintptr_t address)
{
    const uintptr_t begin = (uintptr_t)map->begin;
    if (address < begin || address - begin >= map->length)
        return false;
    const size_t place = (address - begin) / map->page_bytes * map->page_bytes;
    if (mmap(map->begin + place, map->page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;

    uint64_t first = atomic_load(&map->torn);
    while ((!first || 1 + place < first) &&
           !atomic_compare_exchange_weak(&map->torn, &first, 1 + place))
        ;
    return true;
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    struct mapped_file *map = atomic_load(&mapped);
    (void)context;
    if (map && replace_page(map, (uintptr_t)info->si_addr))
        return;

    /* Not ours: the access is repeated, with the handler that was there before. */
    static const struct sigaction otherwise = {.sa_handler = SIG_DFL};
    sigaction(signal, map ? &map->others : &otherwise, NULL);
}

struct mapped_file *mapped_file_open(int fd, uint64_t base, uint64_t bytes)
{
    struct mapped_file *none = NULL;
    if (!bytes)
        return NULL;
    struct mapped_file *map = calloc(1, sizeof *map);
    if (!map)
        return NULL;

    map->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    map->before = (size_t)(base % map->page_bytes);
    if (bytes > SIZE_MAX / 2 || !atomic_compare_exchange_strong(&mapped, &none, map))
        goto fail;
    map->length = map->before + (size_t)bytes;

    /* Writable: some drivers map for writing what kernels only read. Private: no write reaches the
     * file. */
    map->begin = mmap(NULL, map->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd,
                      (off_t)(base - map->before));
    if (map->begin == MAP_FAILED)
        goto fail_unmapped;
    (void)madvise(map->begin, map->length, MADV_SEQUENTIAL);

    const struct sigaction action = {.sa_sigaction = on_bus_error,
                                     .sa_flags = SA_SIGINFO | SA_RESTART};
    if (!sigaction(SIGBUS, &action, &map->others))
        return map;
    munmap(map->begin, map->length);

fail_unmapped:
    atomic_store(&mapped, NULL);
fail:
    free(map);
    return NULL;
}

void mapped_file_close(struct mapped_file **out)
{
    struct mapped_file *map = *out;
    *out = NULL;
    if (!map || atomic_load(&map->users))
        return; /* a device that hangs may still read it */

    sigaction(SIGBUS, &map->others, NULL);
    atomic_store(&mapped, NULL);
    munmap(map->begin, map->length);
    free(map);
}

void *mapped_file_at(struct mapped_file *map, uint64_t offset, uint64_t bytes)
{
    const size_t there = map->length - map->before;
    if (offset > there || bytes > there - offset)
        return NULL;
    return map->begin + map->before + offset;
}

void mapped_file_touch(const void *at, size_t bytes)
{
    /* One touch maps all cached pages around it, up to this many bytes. */
    enum { TOUCH_BYTES = 1 << 16 };
    for (size_t i = 0; i < bytes; i += TOUCH_BYTES)
        (void)*((const volatile char *)at + i);
}

uint64_t mapped_file_offset(const struct mapped_file *map, const void *at)
{
    return (uint64_t)((const char *)at - map->begin) - map->before;
}

void mapped_file_release(struct mapped_file *map, uint64_t offset)
{
    const size_t until = (map->before + (size_t)offset) / map->page_bytes * map->page_bytes;
    if (until <= map->released || until > map->length)
        return;
    (void)madvise(map->begin + map->released, until - map->released, MADV_DONTNEED);
    map->released = until;
}

void mapped_file_hold(struct mapped_file *map)
{
    atomic_fetch_add(&map->users, 1);
}

void mapped_file_let_go(void *map)
{
    atomic_fetch_sub(&((struct mapped_file *)map)->users, 1);
}

bool mapped_file_torn(const struct mapped_file *map, uint64_t *offset)
{
    const uint64_t torn = atomic_load(&map->torn);
    if (!torn)
        return false;

    *offset = 0;
    if (torn - 1 > map->before)
        *offset = torn - 1 - map->before;
    return true;
}
