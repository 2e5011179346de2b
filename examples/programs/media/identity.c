/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "identity.h"
#include "common/least.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAMPLES = 64, SAMPLE_BYTES = 4096, END_BYTES = 65536 };

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool hash_piece(int fd, uint64_t offset, size_t bytes, uint64_t *hash)
{
    char piece[END_BYTES];
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(fd, piece + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }

    *hash = hash_bytes(*hash, piece, bytes);
    return true;
}

static bool hash_file(int fd, struct file_identity *out)
{
    const size_t end = (size_t)least(out->bytes, END_BYTES);
    out->hash = HASH_START;
    bool read = hash_piece(fd, 0, end, &out->hash) &&
                hash_piece(fd, out->bytes - end, end, &out->hash);
    if (out->bytes <= SAMPLES * SAMPLE_BYTES)
        return read;

    for (uint64_t i = 0; read && i < SAMPLES; i++)
        read = hash_piece(fd, (out->bytes - SAMPLE_BYTES) / SAMPLES * i, SAMPLE_BYTES, &out->hash);
    return read;
}

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool file_state_of(int fd, struct file_state *out)
{
    struct stat about;
    if (fd < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode))
        return false;

    *out = (struct file_state){.device = about.st_dev,
                               .inode = about.st_ino,
                               .bytes = (uint64_t)about.st_size,
                               .modified_ns = ns_of(about.st_mtim),
                               .changed_ns = ns_of(about.st_ctim)};
    return true;
}

bool file_identify(const char *path, struct file_identity *out, struct error *error)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return error_set(error, "cannot be opened: %s", strerror(errno));

    *out = (struct file_identity){.bytes = 0};
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) {
        close(fd);
        return error_set(error, "not a regular file, which a film in pieces must be");
    }
    out->bytes = (uint64_t)about.st_size;
    const bool read = hash_file(fd, out);
    const int why = errno;
    close(fd);
    return read || error_set(error, "cannot be read: %s", strerror(why));
}
