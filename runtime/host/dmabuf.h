/* DMA-BUFs: host mappings of memory that hardware shares, and the calls that keep both in step.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_DMABUF_H
#define COX_HOST_DMABUF_H

#include <coxswain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cox__log;

/* One DMA-BUF. Every descriptor of it has the same two numbers. */
struct cox__dmabuf {
    int fd; /* a duplicate, which this owns */
    dev_t device;
    ino_t inode;
};

/* Duplicate a descriptor. On success cox__dmabuf_close must follow.
 * Errors (logged): COX_E_INVALID (it is no DMA-BUF), COX_E_SYSTEM. */
cox_status cox__dmabuf_open(struct cox__dmabuf *dmabuf, int fd, const struct cox__log *log);
void cox__dmabuf_close(struct cox__dmabuf *dmabuf);

/* Whether the descriptor allows writing. */
bool cox__dmabuf_is_writable(const struct cox__dmabuf *dmabuf);

/* A part of a DMA-BUF in this process's memory. */
struct cox__dmabuf_part {
    void *data; /* at the offset that was asked for */
    void *pages;
    size_t pages_bytes;
};

/* Map a part; for reading only, unless the descriptor allows writing. `bytes` is at most
 * SIZE_MAX / 2.
 * Errors (logged): COX_E_INVALID (the part exceeds the DMA-BUF), COX_E_UNSUPPORTED (its driver
 * allows no mapping), COX_E_NOMEM. */
cox_status cox__dmabuf_map(const struct cox__dmabuf *dmabuf, size_t offset, size_t bytes,
                           struct cox__dmabuf_part *part, const struct cox__log *log);
void cox__dmabuf_unmap(const struct cox__dmabuf_part *part);

/* Begin to read or write the memory on the host, or end it (DMA_BUF_IOCTL_SYNC). To begin may wait
 * for other hardware, for as long as that works on the memory.
 * Errors: COX_E_SYSTEM (logged). */
cox_status cox__dmabuf_begin(const struct cox__dmabuf *dmabuf, bool reads, bool writes,
                             const struct cox__log *log);
cox_status cox__dmabuf_end(const struct cox__dmabuf *dmabuf, bool reads, bool writes,
                           const struct cox__log *log);

#endif
