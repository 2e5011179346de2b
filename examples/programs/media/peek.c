/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "peek.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As long as the shortest header of a video, and longer than any magic number. */
enum { LEAST = 16 };

/* The input that was peeked at and not opened yet. */
static struct {
    char *path; /* NULL = nothing */
    int fd;
    size_t count;
    uint8_t bytes[PEEK_BYTES];
} kept;

static bool standard(const char *path)
{
    return !strcmp(path, "-");
}

static int open_path(const char *path)
{
    if (standard(path))
        return STDIN_FILENO;
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static void close_path(const char *path, int fd)
{
    if (!standard(path))
        close(fd);
}

static bool is_kept(const char *path)
{
    return kept.path && !strcmp(kept.path, path);
}

static void forget(void)
{
    free(kept.path);
    kept.path = NULL;
    kept.count = 0;
}

/* Read at least LEAST bytes, at the offset `from` if that is not negative. */
static bool fill(int fd, off_t from, uint8_t bytes[PEEK_BYTES], size_t *count)
{
    *count = 0;
    while (*count < LEAST) {
        uint8_t *to = bytes + *count;
        const size_t room = PEEK_BYTES - *count;
        ssize_t got;
        if (from < 0)
            got = read(fd, to, room);
        else
            got = pread(fd, to, room, from + (off_t)*count);

        if (got < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLIN};
            (void)poll(&wait, 1, -1);
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        *count += (size_t)got;
    }

    return true;
}

/* Keep the descriptor and its first bytes for the open that follows. */
static bool keep(const char *path, int fd)
{
    if (kept.path)
        close_path(kept.path, kept.fd);
    forget();
    kept.path = strdup(path);
    if (!kept.path) {
        close_path(path, fd);
        errno = ENOMEM;
        return false;
    }

    kept.fd = fd;
    if (fill(fd, -1, kept.bytes, &kept.count))
        return true;

    /* The next look fails too, and does not find an empty file. */
    const int failure = errno;
    close_path(path, fd);
    forget();
    errno = failure;
    return false;
}

bool peek_look(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count)
{
    struct stat about;
    *count = 0;
    if (!is_kept(path)) {
        const int fd = open_path(path);
        if (fd < 0)
            return false;
        bool good = !fstat(fd, &about);
        off_t from = -1;
        if (good && S_ISDIR(about.st_mode)) {
            good = false;
            errno = EISDIR;
        }
        if (good && S_ISREG(about.st_mode)) {
            from = lseek(fd, 0, SEEK_CUR);
            good = from >= 0;
        }

        if (!good || from >= 0) {
            const bool filled = good && fill(fd, from, bytes, count);
            const int failure = errno;
            close_path(path, fd);
            errno = failure;
            return filled;
        }
        if (!keep(path, fd))
            return false;
    }

    *count = kept.count;
    memcpy(bytes, kept.bytes, kept.count);
    return true;
}

int peek_open(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count)
{
    *count = 0;
    if (!is_kept(path))
        return open_path(path);

    const int fd = kept.fd;
    *count = kept.count;
    memcpy(bytes, kept.bytes, kept.count);
    forget();
    return fd;
}
