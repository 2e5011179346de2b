/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_source.h"
#include "common/least.h"
#include "video_rows.h"
#include "video_team.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most that an unprivileged process may ask for on most systems: the two ends of a pipe then
 * take turns less often. */
enum { PIPE_BYTES = 1 << 20 };

static bool fail_to_read(const struct video_source *source, int failure, struct error *error)
{
    return error_set(error, "cannot be read, at byte %llu: %s", (unsigned long long)source->offset,
                     strerror(failure));
}

bool video_source_open(struct video_source *source, const char *path, struct error *error)
{
    *source = (struct video_source){.fd = -1, .cancel_fd = -1};
    source->close_fd = strcmp(path, "-") != 0;
    source->fd = peek_open(path, source->kept, &source->ready_bytes);
    source->ready = source->kept;
    if (source->fd < 0)
        return error_set(error, "cannot be opened: %s", strerror(errno));
    struct stat about;
    if (fstat(source->fd, &about)) {
        error_set(error, "cannot be read: %s", strerror(errno));
        goto fail;
    }
    if (S_ISDIR(about.st_mode)) {
        error_set(error, "is a directory");
        goto fail;
    }

    /* Files of /proc claim to be empty and are not. */
    off_t from = lseek(source->fd, 0, SEEK_CUR);

    source->seekable = S_ISREG(about.st_mode) && about.st_size > 0 && from >= 0;
    if (source->seekable) {
        source->base = (uint64_t)from;
        source->team = video_team_create(video_team_best());
        (void)posix_fadvise(source->fd, from, 0, POSIX_FADV_SEQUENTIAL);
    } else {
        (void)fcntl(source->fd, F_SETPIPE_SZ, PIPE_BYTES);
        source->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (source->cancel_fd < 0) {
            error_set(error, "cannot be read: %s", strerror(errno));
            goto fail;
        }
    }

    return true;
fail:
    video_source_close(source);
    return false;
}

void video_source_open_memory(struct video_source *source, const void *data, size_t bytes)
{
    *source = (struct video_source){.ready = data, .ready_bytes = bytes, .fd = -1, .cancel_fd = -1};
}

void video_source_close(struct video_source *source)
{
    if (source->fd >= 0 && source->close_fd)
        close(source->fd);
    if (source->cancel_fd >= 0)
        close(source->cancel_fd);
    source->fd = source->cancel_fd = -1;
    mapped_file_close(&source->map);
    video_team_destroy(&source->team);
}

/* How much of `ready` has not been read. */
static size_t left_in_memory(const struct video_source *source)
{
    if (source->offset >= source->ready_bytes)
        return 0;
    return source->ready_bytes - (size_t)source->offset;
}

/* Wait until there is something to read, or the input is cancelled. */
static void wait_for_data(const struct video_source *source)
{
    struct pollfd on[2] = {{.fd = source->fd, .events = POLLIN},
                           {.fd = source->cancel_fd, .events = POLLIN}};
    (void)poll(on, 2, -1); /* if it fails, the read that follows waits or fails */
}

/* One step: some bytes, 0 at the end, -1 and errno. */
static ssize_t read_some(const struct video_source *source, const struct iovec *pieces,
                         size_t count)
{
    size_t there = left_in_memory(source);
    if (there) {
        const size_t bytes = (size_t)least(pieces->iov_len, there);
        memcpy(pieces->iov_base, source->ready + source->offset, bytes);
        return (ssize_t)bytes;
    }
    if (source->fd < 0)
        return 0;

    const int most = (int)least(count, VIDEO_PIECES);
    if (source->seekable)
        return video_team_read(source->team, source->fd, pieces, most,
                               (off_t)(source->base + source->offset));

    wait_for_data(source);
    if (atomic_load(&source->cancelled)) {
        errno = EINTR;
        return -1;
    }
    return readv(source->fd, pieces, most);
}

enum video_read video_source_read(struct video_source *source, struct iovec *pieces, size_t count,
                                  uint64_t *got, struct error *error)
{
    *got = 0;

    while (count) {
        if (atomic_load(&source->cancelled))
            return VIDEO_READ_CANCELLED;
        ssize_t bytes = read_some(source, pieces, count);
        if (bytes < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (bytes < 0) {
            fail_to_read(source, errno, error);
            return VIDEO_READ_ERROR;
        }
        if (!bytes)
            return VIDEO_READ_END;
        *got += (uint64_t)bytes;
        source->offset += (uint64_t)bytes;
        pieces = video_rows_advance(pieces, &count, (size_t)bytes);
    }

    return VIDEO_READ_FRAME;
}

bool video_source_map(struct video_source *source)
{
    struct error why;
    uint64_t bytes;
    if (source->seekable && !source->map && video_source_bytes(source, &bytes, &why))
        source->map = mapped_file_open(source->fd, source->base, bytes);
    return source->map != NULL;
}

bool video_source_bytes(const struct video_source *source, uint64_t *bytes, struct error *error)
{
    struct stat about;
    *bytes = source->fd < 0 ? source->ready_bytes : 0;
    if (!source->seekable)
        return true;

    if (fstat(source->fd, &about))
        return fail_to_read(source, errno, error);
    if ((uint64_t)about.st_size > source->base)
        *bytes = (uint64_t)about.st_size - source->base;
    return true;
}

enum video_read video_source_skip(struct video_source *source, uint64_t bytes, uint64_t *got,
                                  struct error *error)
{
    *got = 0;
    if (source->seekable || source->fd < 0) {
        uint64_t all;
        if (!video_source_bytes(source, &all, error))
            return VIDEO_READ_ERROR;
        *got = least(bytes, all - least(source->offset, all));
        source->offset += *got;
        return *got == bytes ? VIDEO_READ_FRAME : VIDEO_READ_END;
    }

    while (*got < bytes) {
        uint8_t dropped[1 << 16];
        uint64_t came;
        struct iovec piece = {dropped, (size_t)least(bytes - *got, sizeof dropped)};
        enum video_read result = video_source_read(source, &piece, 1, &came, error);
        *got += came;
        if (result != VIDEO_READ_FRAME)
            return result;
    }

    return VIDEO_READ_FRAME;
}

void video_source_ahead(const struct video_source *source, uint64_t bytes)
{
    if (source->seekable)
        (void)posix_fadvise(source->fd, (off_t)(source->base + source->offset + bytes),
                            (off_t)bytes, POSIX_FADV_WILLNEED);
}
