/* Counts heap allocations by the object that makes them.
 *
 * This program's malloc, calloc, realloc and aligned functions replace the C library's for the
 * whole process. While counting, each call walks up the stack to the first frame outside this file,
 * the C library and the loader: that object is the caller. Calls from libcoxswain, libuv and hwloc
 * count as the library's. All other calls count as those of the OpenCL drivers and this program.
 * Calls of free are not counted, because nothing can free for long without allocating.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "heap.h"

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

enum { RANGES_MAX = 64, DEPTH = 24 };
enum owner { OWNER_PASSED_OVER, OWNER_LIBRARY };

/* Executable segments of known objects; written before counting starts, only read while it runs. */
static struct range {
    uintptr_t begin, end;
    enum owner owner;
} ranges[RANGES_MAX];
static unsigned range_count;

static atomic_bool counting;
static _Atomic uint64_t library_calls, other_calls;
static _Thread_local bool inside; /* the stack walk may allocate */

static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (slash)
        path = slash + 1;

    return strncmp(path, name, strlen(name)) == 0;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    const char *path = info->dlpi_name;
    enum owner owner;
    if (is_named(path, "libcoxswain") || is_named(path, "libuv") || is_named(path, "libhwloc"))
        owner = OWNER_LIBRARY;
    else if (is_named(path, "libc.") || is_named(path, "ld-linux") || is_named(path, "libpthread"))
        owner = OWNER_PASSED_OVER;
    else
        return 0;

    for (unsigned i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        uintptr_t begin = (uintptr_t)(info->dlpi_addr + header->p_vaddr);
        ranges[range_count++] = (struct range){begin, begin + header->p_memsz, owner};
    }

    return 0;
}

static const struct range *find_range(const void *address)
{
    for (unsigned i = 0; i < range_count; i++)
        if ((uintptr_t)address >= ranges[i].begin && (uintptr_t)address < ranges[i].end)
            return &ranges[i];
    return NULL;
}

__attribute__((noinline)) static void count_call(void)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed) || inside)
        return;
    inside = true;
    void *frames[DEPTH];
    int depth = backtrace(frames, DEPTH);
    const struct range *caller = NULL;

    /* Frames 0 and 1 are this function and the allocator's wrapper. */
    for (int i = 2; i < depth; i++) {
        caller = find_range(frames[i]);
        if (!caller || caller->owner == OWNER_LIBRARY)
            break;
    }

    if (caller && caller->owner == OWNER_LIBRARY)
        atomic_fetch_add(&library_calls, 1);
    else
        atomic_fetch_add(&other_calls, 1);

    inside = false;
}

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* Not inlined and without tail calls, so that the number of frames to skip is fixed. */
#define WRAPPER \
    __attribute__((visibility("default"), noinline, optimize("no-optimize-sibling-calls")))
#if defined(__clang__)
#undef WRAPPER
#define WRAPPER __attribute__((visibility("default"), noinline, disable_tail_calls))
#endif

WRAPPER void *malloc(size_t bytes)
{
    count_call();
    return __libc_malloc(bytes);
}

WRAPPER void *calloc(size_t count, size_t bytes)
{
    count_call();
    return __libc_calloc(count, bytes);
}

WRAPPER void *realloc(void *old, size_t bytes)
{
    count_call();
    return __libc_realloc(old, bytes);
}

WRAPPER void *memalign(size_t alignment, size_t bytes)
{
    count_call();
    return __libc_memalign(alignment, bytes);
}

WRAPPER void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_call();
    return __libc_memalign(alignment, bytes);
}

WRAPPER int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count_call();
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;

    void *made = __libc_memalign(alignment, bytes);
    if (!made)
        return ENOMEM;
    *out = made;

    return 0;
}

bool bench_heap_possible(void)
{
    return true;
}

void bench_heap_start(void)
{
    void *frame[1];

    backtrace(frame, 1); /* the first call loads the unwinder */
    range_count = 0;
    dl_iterate_phdr(add_object, NULL);
    atomic_store(&library_calls, 0);
    atomic_store(&other_calls, 0);
    atomic_store(&counting, true);
}

struct bench_heap_count bench_heap_stop(void)
{
    atomic_store(&counting, false);
    return (struct bench_heap_count){.library = atomic_load(&library_calls),
                                     .others = atomic_load(&other_calls)};
}

#else

bool bench_heap_possible(void)
{
    return false;
}

void bench_heap_start(void)
{
}

struct bench_heap_count bench_heap_stop(void)
{
    return (struct bench_heap_count){0};
}

#endif
