/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Libraries that work for us. What they call counts, and their callers must survive it. The first one is ours. */
static const char *const names[] = {"libcoxswain.so", "libuv.so",    "libsqlite3.so",
                                    "libjansson.so",  "libpng16.so", "libOpenEXRCore"};
enum { NAMES = sizeof names / sizeof *names };

static struct range {
    uintptr_t base, begin, end;
    unsigned module;
    bool own;  /* the program or our library */
    bool loop; /* libuv */
} ranges[64];
static unsigned range_count, module_count;

static struct sites *table;
static uint64_t strike_key, strike_at;
static char strike_how[16];

/* backtrace() may itself call what is counted here. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

static int add_module(struct dl_phdr_info *module, size_t bytes, void *first)
{
    const char *slash = strrchr(module->dlpi_name, '/'), *name = slash ? slash + 1 : module->dlpi_name;
    bool own = *(bool *)first, counts = own;
    (void)bytes;
    *(bool *)first = false;
    for (unsigned i = 0; i < NAMES && !counts; i++) {
        counts = !strncmp(name, names[i], strlen(names[i]));
        own = counts && i == 0;
    }
    if (!counts || module_count == SITE_MODULES)
        return 0;

    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || range_count == sizeof ranges / sizeof *ranges)
            continue;
        const uintptr_t begin = module->dlpi_addr + part->p_vaddr;
        ranges[range_count++] = (struct range){module->dlpi_addr, begin, begin + part->p_memsz,
                                               module_count,      own,   !strncmp(name, "libuv", 5)};
    }
    snprintf(table->modules[module_count++], sizeof table->modules[0], "%s", module->dlpi_name);
    return 0;
}

/* The table, in a file that all processes of the run share. Without it nothing is counted. */
static void open_table(const char *path)
{
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof *table))
        _exit(125);
    void *memory = (void *)syscall(SYS_mmap, NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        _exit(125);
    syscall(SYS_close, fd);
    table = memory;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("COX_CALLS_TABLE"), *strike = getenv("COX_CALLS_STRIKE");
    void *warm_up[4];
    bool first = true;
    if (!path)
        return;

    inside = true;
    backtrace(warm_up, 4); /* loads libgcc */
    open_table(path);
    dl_iterate_phdr(add_module, &first);
    if (strike && sscanf(strike, "%lx:%lu:%15s", &strike_key, &strike_at, strike_how) != 3)
        _exit(125);
    inside = false;
}

static const struct range *range_of(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    for (unsigned i = 0; i < range_count; i++)
        if (at >= ranges[i].begin && at < ranges[i].end)
            return &ranges[i];
    return NULL;
}

bool site_is_ours(const void *caller)
{
    return range_of(caller);
}

void site_kill(void)
{
    syscall(SYS_kill, (int)syscall(SYS_getpid), SIGKILL);
    for (;;)
        pause();
}

/* The caller, then the functions of our code that led to it. */
static unsigned frames_of(const void *caller, uint64_t frames[SITE_FRAMES])
{
    void *stack[48];
    unsigned found = 0;
    const int depth = backtrace(stack, sizeof stack / sizeof *stack);
    int i = 0;
    while (i < depth && stack[i] != caller)
        i++;
    if (i == depth) {
        stack[0] = (void *)caller; /* the stack cannot be followed */
        i = 0;
    }

    const int first = i;
    for (; i < depth && found < SITE_FRAMES; i++) {
        const struct range *range = range_of(stack[i]);
        if (range && (range->own || i == first))
            frames[found++] = (uint64_t)range->module << 48 | ((uintptr_t)stack[i] - range->base);
    }
    return found;
}

static uint64_t key_of(const char *call, const uint64_t *frames, unsigned count)
{
    uint64_t key = 14695981039346656037u;
    for (; *call; call++)
        key = (key ^ (unsigned char)*call) * 1099511628211u;
    for (unsigned i = 0; i < count; i++)
        for (unsigned byte = 0; byte < 8; byte++)
            key = (key ^ (frames[i] >> byte * 8 & 255)) * 1099511628211u;
    return key ? key : 1;
}

/* The site with this key, perhaps a new one; NULL if the table is full. */
static struct site *site_at(uint64_t key, const char *call, const uint64_t *frames, unsigned count)
{
    for (unsigned i = 0; i < SITES_MAX; i++) {
        struct site *site = &table->sites[(key + i) % SITES_MAX];
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&site->key, &there, key)) {
            snprintf(site->call, sizeof site->call, "%s", call);
            memcpy(site->frames, frames, count * sizeof *frames);
            return site;
        }
        if (there == key)
            return site;
    }
    return NULL;
}

static enum strike strikes(struct site *site, uint64_t key)
{
    const uint32_t number = atomic_fetch_add(&site->calls, 1) + 1;
    const bool ever = !strcmp(strike_how, "ever");
    if (key != strike_key || number < strike_at || (number > strike_at && !ever))
        return STRIKE_NONE;

    atomic_fetch_add(&site->struck, 1);
    switch (strike_how[0]) {
    case 'b':
        return STRIKE_BEFORE;
    case 'a':
        return STRIKE_AFTER;
    case 'h':
        return STRIKE_HALF;
    default:
        return STRIKE_FAIL;
    }
}

/* Calls after whose failure libuv ends the process, whatever its caller does. */
static bool ends_libuv(const char *call)
{
    return !strcmp(call, "read") || !strcmp(call, "write") || !strcmp(call, "pipe2") || !strcmp(call, "realloc");
}

enum strike site_pass(const char *call, void *caller)
{
    const struct range *range = range_of(caller);
    if (!table || inside || !range || (range->loop && ends_libuv(call)))
        return STRIKE_NONE;

    const int kept = errno;
    uint64_t frames[SITE_FRAMES] = {0};
    inside = true;
    const unsigned count = frames_of(caller, frames);
    inside = false;
    const uint64_t key = key_of(call, frames, count);
    struct site *site = site_at(key, call, frames, count);
    enum strike strike = site ? strikes(site, key) : STRIKE_NONE;

    if (strike == STRIKE_BEFORE)
        site_kill();
    errno = kept;
    return strike;
}
