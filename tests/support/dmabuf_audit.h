/* DMA-BUFs for tests, and an audit of who touches them when. A DMA-BUF is a real one of /dev/udmabuf, or a memfd.
 *
 * The `ioctl` that this header defines takes the place of the C library's in the whole program. It checks each
 * DMA_BUF_IOCTL_SYNC on these descriptors: starts and ends balance, and their flags match. It passes the call on for a
 * real DMA-BUF, and answers for a memfd.
 *
 * Watched memory can be read only between start and end, and written only if the start was for writing. Any other
 * touch, by a device or by the library, ends the program with SIGSEGV. The test itself uses `own`, which is not
 * watched.
 *
 * One file of a program may include this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_DMABUF_AUDIT_H
#define COX_TESTS_DMABUF_AUDIT_H

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DMABUFS_MAX = 24, DMABUF_WATCHED_MAX = 8, DMABUF_PAGE = 4096 };

struct dmabuf {
    int fd;
    char *own; /* the test's mapping; all bytes are 0 at first */
    size_t bytes;
    ino_t inode;
    bool real;
    uint64_t open;     /* DMA_BUF_SYNC_READ and DMA_BUF_SYNC_WRITE that were started and not ended */
    uint32_t accesses; /* that are open; more than one only if they may nest */
    uint32_t starts, ends;
    uint32_t watched_count;
    struct {
        char *pages;
        size_t bytes;
    } watched[DMABUF_WATCHED_MAX];
};

static struct {
    pthread_mutex_t lock;
    uint32_t count;
    struct dmabuf list[DMABUFS_MAX];
    char wrong[200]; /* the first violation */
    bool may_nest;   /* each map of GStreamer's starts an access and each unmap ends one */
    /* The next `fail_times` calls with fail_moment (DMA_BUF_SYNC_START or DMA_BUF_SYNC_END) fail with fail_error. */
    uint64_t fail_moment;
    int fail_error;
    uint32_t fail_times;
} dmabufs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void dmabuf_protect(const struct dmabuf *dmabuf)
{
    int protection = PROT_NONE;
    if (dmabuf->open & DMA_BUF_SYNC_READ)
        protection |= PROT_READ;
    if (dmabuf->open & DMA_BUF_SYNC_WRITE)
        protection |= PROT_WRITE;
    for (uint32_t i = 0; i < dmabuf->watched_count; i++)
        mprotect(dmabuf->watched[i].pages, dmabuf->watched[i].bytes, protection);
}

static void dmabuf_complain(const char *what, uint64_t flags, uint64_t open)
{
    if (!dmabufs.wrong[0])
        snprintf(dmabufs.wrong, sizeof dmabufs.wrong, "%s: flags %#llx, open %#llx", what, (unsigned long long)flags,
                 (unsigned long long)open);
}

/* Returns 0 or an error number. Called with the lock held. */
static int dmabuf_sync(struct dmabuf *dmabuf, uint64_t flags)
{
    const uint64_t moment = flags & DMA_BUF_SYNC_END, ways = flags & DMA_BUF_SYNC_RW;
    if (!ways)
        return EINVAL; /* as the kernel does */
    if (dmabufs.fail_times && moment == dmabufs.fail_moment) {
        dmabufs.fail_times--;
        if (dmabufs.fail_error != EINTR && dmabufs.fail_error != EAGAIN && moment == DMA_BUF_SYNC_END) {
            dmabuf->open = 0; /* the access has ended, even so */
            dmabuf_protect(dmabuf);
        }
        return dmabufs.fail_error;
    }
    if (moment == DMA_BUF_SYNC_START && ways & dmabuf->open && !dmabufs.may_nest)
        dmabuf_complain("started twice", flags, dmabuf->open);
    if (moment == DMA_BUF_SYNC_START && dmabuf->open & DMA_BUF_SYNC_WRITE)
        dmabuf_complain("reading began during a write", flags, dmabuf->open);
    if (moment == DMA_BUF_SYNC_END && ways != dmabuf->open)
        dmabuf_complain("another end than what was started", flags, dmabuf->open);

    if (moment == DMA_BUF_SYNC_START) {
        dmabuf->starts++;
        dmabuf->accesses++;
        dmabuf->open |= ways;
    } else {
        dmabuf->ends++;
        dmabuf->accesses -= dmabuf->accesses > 0;
        if (!dmabufs.may_nest || !dmabuf->accesses)
            dmabuf->open = 0;
    }
    dmabuf_protect(dmabuf);
    return 0;
}

static struct dmabuf *dmabuf_of(int fd)
{
    struct stat about;
    if (fstat(fd, &about))
        return NULL;
    for (uint32_t i = 0; i < dmabufs.count; i++)
        if (dmabufs.list[i].inode == about.st_ino)
            return &dmabufs.list[i];
    return NULL;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);

    int error = 0;
    bool pass_on = true;
    if (request == DMA_BUF_IOCTL_SYNC) {
        pthread_mutex_lock(&dmabufs.lock);
        struct dmabuf *dmabuf = dmabuf_of(fd);
        if (dmabuf) {
            error = dmabuf_sync(dmabuf, ((const struct dma_buf_sync *)argument)->flags);
            pass_on = dmabuf->real && !error;
        }
        pthread_mutex_unlock(&dmabufs.lock);
    }
    if (pass_on)
        return (int)syscall(SYS_ioctl, fd, request, argument);
    errno = error;
    return error ? -1 : 0;
}

/* Whether this machine makes real DMA-BUFs. */
static inline bool dmabuf_can_be_real(void)
{
    return access("/dev/udmabuf", R_OK | W_OK) == 0;
}

static int dmabuf_make_real(int memfd, size_t bytes)
{
    const struct udmabuf_create create = {.memfd = (uint32_t)memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes};
    const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    const int fd = (int)syscall(SYS_ioctl, device, UDMABUF_CREATE, &create);
    close(device);
    close(memfd);
    return fd;
}

/* NULL if that is not possible. dmabufs_end releases it. */
static inline struct dmabuf *dmabuf_new(size_t bytes, bool real)
{
    struct dmabuf *dmabuf = &dmabufs.list[dmabufs.count];
    struct stat about;
    bytes = (bytes + DMABUF_PAGE - 1) / DMABUF_PAGE * DMABUF_PAGE;
    int fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (dmabufs.count == DMABUFS_MAX || fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
        return NULL;
    if (real)
        fd = dmabuf_make_real(fd, bytes);
    if (fd < 0 || fstat(fd, &about))
        return NULL;
    *dmabuf = (struct dmabuf){.fd = fd, .bytes = bytes, .inode = about.st_ino, .real = real};
    dmabuf->own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (dmabuf->own == MAP_FAILED)
        return NULL;
    dmabufs.count++;
    return dmabuf;
}

/* Watch memory that is a mapping of the DMA-BUF. */
static inline void dmabuf_watch(struct dmabuf *dmabuf, void *data, size_t bytes)
{
    const size_t lead = (uintptr_t)data % DMABUF_PAGE;
    pthread_mutex_lock(&dmabufs.lock);
    if (dmabuf->watched_count < DMABUF_WATCHED_MAX) {
        dmabuf->watched[dmabuf->watched_count].pages = (char *)data - lead;
        dmabuf->watched[dmabuf->watched_count++].bytes = bytes + lead;
    }
    dmabuf_protect(dmabuf);
    pthread_mutex_unlock(&dmabufs.lock);
}

/* The mappings are gone, or are not watched any more. */
static inline void dmabuf_unwatch(struct dmabuf *dmabuf)
{
    pthread_mutex_lock(&dmabufs.lock);
    dmabuf->watched_count = 0;
    pthread_mutex_unlock(&dmabufs.lock);
}

static inline void dmabufs_fail(uint64_t moment, int error, uint32_t times)
{
    pthread_mutex_lock(&dmabufs.lock);
    dmabufs.fail_moment = moment;
    dmabufs.fail_error = error;
    dmabufs.fail_times = times;
    pthread_mutex_unlock(&dmabufs.lock);
}

/* The first violation, also an access that was not ended; "" = none. */
static inline const char *dmabufs_wrong(void)
{
    pthread_mutex_lock(&dmabufs.lock);
    for (uint32_t i = 0; i < dmabufs.count; i++)
        if (dmabufs.list[i].open)
            dmabuf_complain("not ended", 0, dmabufs.list[i].open);
    pthread_mutex_unlock(&dmabufs.lock);
    return dmabufs.wrong;
}

static inline void dmabufs_end(void)
{
    for (uint32_t i = 0; i < dmabufs.count; i++) {
        munmap(dmabufs.list[i].own, dmabufs.list[i].bytes);
        close(dmabufs.list[i].fd);
    }
    dmabufs.count = 0;
}

#endif
