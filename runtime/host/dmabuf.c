/* SPDX-License-Identifier: Apache-2.0 */
#include "dmabuf.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The only call of ioctl. Tests define their own ioctl, which checks the flags. Returns 0 or the
 * error number. */
static int sync_call(int fd, uint64_t flags)
{
    struct dma_buf_sync sync = {.flags = flags};
    int result;

    do
        result = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
    while (result && (errno == EINTR || errno == EAGAIN));

    return result ? errno : 0;
}

/* A DMA-BUF refuses flags without a direction as invalid. Other files do not know the call. */
static bool is_dmabuf(int fd)
{
    return sync_call(fd, 0) == EINVAL;
}

cox_status cox__dmabuf_open(struct cox__dmabuf *dmabuf, int fd, const struct cox__log *log)
{
    struct stat about;
    if (fd < 0 || fstat(fd, &about) || !is_dmabuf(fd)) {
        cox__log(log, COX_LOG_ERROR, "descriptor %d is not a DMA-BUF", fd);
        return COX_E_INVALID;
    }

    dmabuf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    dmabuf->device = about.st_dev;
    dmabuf->inode = about.st_ino;
    if (dmabuf->fd >= 0)
        return COX_OK;

    cox__log(log, COX_LOG_ERROR, "descriptor %d cannot be duplicated: %s", fd, strerror(errno));
    return COX_E_SYSTEM;
}

void cox__dmabuf_close(struct cox__dmabuf *dmabuf)
{
    close(dmabuf->fd);
    dmabuf->fd = -1;
}

bool cox__dmabuf_is_writable(const struct cox__dmabuf *dmabuf)
{
    return (fcntl(dmabuf->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* Whether the DMA-BUF is shorter. Kernels before 3.12 do not tell its length. */
static bool is_shorter(const struct cox__dmabuf *dmabuf, size_t offset, size_t bytes)
{
    const off_t end = lseek(dmabuf->fd, 0, SEEK_END);

    return end >= 0 && (offset > (size_t)end || bytes > (size_t)end - offset);
}

cox_status cox__dmabuf_map(const struct cox__dmabuf *dmabuf, size_t offset, size_t bytes,
                           struct cox__dmabuf_part *part, const struct cox__log *log)
{
    if (is_shorter(dmabuf, offset, bytes)) {
        cox__log(log, COX_LOG_ERROR, "%zu bytes at offset %zu exceed the DMA-BUF", bytes, offset);
        return COX_E_INVALID;
    }

    int protection = PROT_READ;
    if (cox__dmabuf_is_writable(dmabuf))
        protection |= PROT_WRITE;

    const size_t skipped = offset % (size_t)sysconf(_SC_PAGESIZE);
    part->pages_bytes = bytes + skipped;
    part->pages = mmap(NULL, part->pages_bytes, protection, MAP_SHARED, dmabuf->fd,
                       (off_t)(offset - skipped));
    part->data = (char *)part->pages + skipped;
    if (part->pages != MAP_FAILED)
        return COX_OK;

    cox__log(log, COX_LOG_ERROR, "a DMA-BUF cannot be mapped: %s", strerror(errno));
    return errno == ENOMEM ? COX_E_NOMEM : COX_E_UNSUPPORTED;
}

void cox__dmabuf_unmap(const struct cox__dmabuf_part *part)
{
    munmap(part->pages, part->pages_bytes);
}

static cox_status sync_host(const struct cox__dmabuf *dmabuf, uint64_t moment, bool reads,
                            bool writes, const struct cox__log *log)
{
    uint64_t flags = moment;
    if (reads)
        flags |= DMA_BUF_SYNC_READ;
    if (writes)
        flags |= DMA_BUF_SYNC_WRITE;

    const int error = sync_call(dmabuf->fd, flags);
    if (!error)
        return COX_OK;

    cox__log(log, COX_LOG_ERROR, "DMA_BUF_IOCTL_SYNC (%s): %s",
             moment == DMA_BUF_SYNC_END ? "end" : "start", strerror(error));
    return COX_E_SYSTEM;
}

cox_status cox__dmabuf_begin(const struct cox__dmabuf *dmabuf, bool reads, bool writes,
                             const struct cox__log *log)
{
    return sync_host(dmabuf, DMA_BUF_SYNC_START, reads, writes, log);
}

cox_status cox__dmabuf_end(const struct cox__dmabuf *dmabuf, bool reads, bool writes,
                           const struct cox__log *log)
{
    return sync_host(dmabuf, DMA_BUF_SYNC_END, reads, writes, log);
}
