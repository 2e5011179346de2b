/* Files of compiled kernels and of device profiles: one directory, one file per key, named by the
 * key in hexadecimal.
 *
 * File: 8 bytes magic and format number, 32 bytes key, 8 bytes payload length (little-endian), the
 * payload, and the SHA-256 of all that. The key inside shows if somebody has renamed an entry; the
 * digest shows if an entry was cut or changed.
 *
 * Compiled kernels are code that the process will run, so the directory must be private
 * (private_dir.h). The entries must be private too: regular files of this user, writable by nobody
 * else, with one name and no link. Any other entry reads as damaged.
 *
 * Several processes: a writer fills a file of a random name and renames it to the entry's name. So
 * a reader sees the old file, the new one or none, always whole. A reader that removes a damaged
 * entry, or a writer that removes the oldest one, may remove a good file that has just been
 * renamed. That costs one compilation, or one session's measurements.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cache.h"
#include "private_dir.h"
#include "base/digest.h"
#include <coxswain/sched.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    KEY_BYTES = COX__SHA256_BYTES,
    MAGIC_BYTES = 8,
    HEAD_BYTES = COX__CACHE_HEAD_BYTES,
    FRAME_BYTES = HEAD_BYTES + COX__SHA256_BYTES, /* an entry without its payload */
    SUFFIX_BYTES = sizeof((struct cox__cache_kind *)NULL)->suffix,
    NAME_BYTES = 2 * KEY_BYTES + SUFFIX_BYTES, /* hexadecimal, suffix, terminator */
    TEMPORARY_TRIES = 16,
    TEMPORARY_MAX_AGE_S = 3600, /* older: its writer has died */
};

const struct cox__cache_kind cox__cache_kernels = {.what = "kernel cache",
                                                   .magic = {'C', 'O', 'X', 'B', 'I', 'N', 0, 3},
                                                   .suffix = ".bin",
                                                   .bytes_max = PTRDIFF_MAX,
                                                   .write_failed = COX_LOG_WARN};

const struct cox__cache_kind cox__cache_profiles = {.what = "device profiles",
                                                    .magic = {'C', 'O', 'X', 'P', 'R', 'F', 0, 1},
                                                    .suffix = ".profile",
                                                    .bytes_max = COX_DEVICES_MAX *
                                                                 sizeof(struct cox_device_profile),
                                                    .files_max = 256,
                                                    .write_failed = COX_LOG_INFO};

const struct cox__cache_kind cox__cache_code = {.what = "compiled code",
                                                .magic = {'C', 'O', 'X', 'C', 'O', 'D', 0, 1},
                                                .bytes_max = PTRDIFF_MAX};

static const char temporary_prefix[] = "tmp-";

static void put_u64(unsigned char out[8], uint64_t value)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_u64(const unsigned char in[8])
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

void cox__cache_feed(struct cox__digest *sha, const void *data, size_t bytes)
{
    unsigned char length[8];
    put_u64(length, bytes);
    cox__digest_feed(sha, length, sizeof length);
    cox__digest_feed(sha, data, bytes);
}

static void entry_name(const struct cox__cache_kind *kind, const unsigned char key[KEY_BYTES],
                       char name[NAME_BYTES])
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < KEY_BYTES; i++) {
        name[2 * i] = digit[key[i] >> 4];
        name[2 * i + 1] = digit[key[i] & 15];
    }

    memcpy(name + 2 * KEY_BYTES, kind->suffix, SUFFIX_BYTES);
}

static bool is_entry_name(const struct cox__cache_kind *kind, const char *name)
{
    return strlen(name) == 2 * KEY_BYTES + strlen(kind->suffix) &&
           strcmp(name + 2 * KEY_BYTES, kind->suffix) == 0;
}

static void make_head(unsigned char head[HEAD_BYTES], const struct cox__cache_kind *kind,
                      const unsigned char key[KEY_BYTES], size_t bytes)
{
    memcpy(head, kind->magic, MAGIC_BYTES);
    memcpy(head + MAGIC_BYTES, key, KEY_BYTES);
    put_u64(head + MAGIC_BYTES + KEY_BYTES, bytes);
}

static void make_digest(unsigned char digest[COX__SHA256_BYTES],
                        const unsigned char head[HEAD_BYTES], const void *payload, size_t bytes)
{
    struct cox__digest sha;
    cox__digest_begin(&sha);
    cox__digest_feed(&sha, head, HEAD_BYTES);
    cox__digest_feed(&sha, payload, bytes);
    cox__digest_end(&sha, digest);
}

void cox__cache_frame(const struct cox__cache_kind *kind, const unsigned char key[32],
                      const void *data, size_t bytes, unsigned char head[HEAD_BYTES],
                      unsigned char digest[COX__SHA256_BYTES])
{
    make_head(head, kind, key, bytes);
    make_digest(digest, head, data, bytes);
}

enum cox__cache_match cox__cache_match(const void *data, size_t bytes,
                                       const struct cox__cache_kind *kind,
                                       const unsigned char key[KEY_BYTES], size_t *content)
{
    const unsigned char *entry = data;
    if (bytes < FRAME_BYTES || memcmp(entry, kind->magic, MAGIC_BYTES) != 0)
        return COX__CACHE_DAMAGED;

    const uint64_t length = get_u64(entry + MAGIC_BYTES + KEY_BYTES);
    if (length > bytes - FRAME_BYTES)
        return COX__CACHE_DAMAGED;

    *content = (size_t)length;
    if (memcmp(entry + MAGIC_BYTES, key, KEY_BYTES) != 0)
        return COX__CACHE_OTHER;

    unsigned char head[HEAD_BYTES], digest[COX__SHA256_BYTES];
    cox__cache_frame(kind, key, entry + HEAD_BYTES, *content, head, digest);
    if (memcmp(digest, entry + HEAD_BYTES + *content, sizeof digest) != 0)
        return COX__CACHE_DAMAGED;
    return COX__CACHE_FOUND;
}

/* A file with a second name, a hard link, might be read or replaced elsewhere. */
static bool is_private_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && cox__private_dir_is(st) && st->st_nlink <= 1;
}

/* Read exactly `bytes`. Returns false with errno 0 at an early end of the file. */
static bool read_all(int fd, void *data, size_t bytes)
{
    unsigned char *p = data;

    while (bytes > 0) {
        ssize_t got = read(fd, p, bytes);
        if (got < 0 && errno == EINTR)
            continue;

        if (got <= 0) {
            if (got == 0)
                errno = 0;
            return false;
        }

        p += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    while (bytes > 0) {
        ssize_t put = write(fd, p, bytes);
        if (put < 0 && errno == EINTR)
            continue;

        if (put < 0)
            return false;

        p += put;
        bytes -= (size_t)put;
    }
    return true;
}

void *cox__cache_read(int fd, uint64_t file_bytes, const struct cox__cache_kind *kind,
                      const unsigned char key[32], size_t *bytes, const char **damage)
{
    unsigned char wanted[HEAD_BYTES], head[HEAD_BYTES];
    unsigned char stored_digest[COX__SHA256_BYTES], digest[COX__SHA256_BYTES];
    unsigned char *payload = NULL;
    int error = 0;

    *bytes = 0;
    *damage = NULL;

    if (file_bytes < FRAME_BYTES) {
        *damage = "it is too short";
        return NULL;
    }
    if (file_bytes - FRAME_BYTES > kind->bytes_max) {
        *damage = "it is too long";
        return NULL;
    }

    /* Check the head before allocating memory: it must have the file's length. */
    size_t payload_bytes = (size_t)file_bytes - FRAME_BYTES;
    if (!read_all(fd, head, sizeof head))
        goto unreadable;

    make_head(wanted, kind, key, payload_bytes);
    if (memcmp(head, wanted, sizeof head) != 0) {
        *damage = "its head is wrong";
        if (get_u64(head + MAGIC_BYTES + KEY_BYTES) != payload_bytes)
            *damage = "its length is wrong";
        return NULL;
    }

    payload = malloc(payload_bytes > 0 ? payload_bytes : 1);
    if (!payload) {
        errno = ENOMEM;
        return NULL;
    }

    if (!read_all(fd, payload, payload_bytes) || !read_all(fd, stored_digest, sizeof stored_digest))
        goto unreadable;

    make_digest(digest, head, payload, payload_bytes);
    if (memcmp(digest, stored_digest, sizeof digest) != 0) {
        *damage = "its checksum is wrong";
        goto fail;
    }

    *bytes = payload_bytes;
    return payload;

unreadable:
    error = errno;
    if (error == 0)
        *damage = "it ends early";
fail:
    free(payload);
    errno = error;
    return NULL;
}

void *cox__cache_load(const char *dir, const struct cox__cache_kind *kind,
                      const unsigned char key[32], size_t *bytes, const struct cox__log *log)
{
    *bytes = 0;
    if (!dir)
        return NULL;

    int dir_fd = cox__private_dir_open(dir, false, kind->what, log);
    if (dir_fd < 0)
        return NULL;

    char name[NAME_BYTES];
    void *payload = NULL;
    const char *damage = NULL, *undone = NULL;
    struct stat st;

    entry_name(kind, key, name);
    /* O_NONBLOCK: a FIFO of that name must not block the process. */
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ELOOP)
            damage = "it is a link";
        else if (errno != ENOENT)
            undone = "open";
    } else if (fstat(fd, &st) != 0) {
        undone = "read";
    } else if (!is_private_file(&st)) {
        damage = "it is not a private file of this user";
    } else {
        payload = cox__cache_read(fd, (uint64_t)st.st_size, kind, key, bytes, &damage);
        if (!payload && !damage)
            undone = "read";
    }

    if (undone)
        cox__log(log, COX_LOG_WARN, "%s: cannot %s %s: %s", kind->what, undone, name,
                 strerror(errno));
    if (damage) {
        bool removed = unlinkat(dir_fd, name, 0) == 0;
        cox__log(log, COX_LOG_WARN, "%s: %s is damaged (%s) and was %s", kind->what, name, damage,
                 removed ? "removed" : "not removed");
    }

    if (fd >= 0)
        close(fd);
    close(dir_fd);
    return payload;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec;
    return a->tv_nsec < b->tv_nsec;
}

/* Remove what dead writers have left, and the oldest entry if `name` would be one too many of its
 * kind. */
static void tidy(int dir_fd, const struct cox__cache_kind *kind, const char *name)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    DIR *list = fdopendir(fd);
    if (!list) {
        close(fd);
        return;
    }

    time_t now = time(NULL);
    char oldest[NAME_BYTES] = "";
    struct timespec written = {0};
    uint32_t others = 0;

    for (struct dirent *entry; (entry = readdir(list));) {
        const char *found = entry->d_name;
        struct stat st;
        bool temporary = strncmp(found, temporary_prefix, sizeof temporary_prefix - 1) == 0;
        bool other = kind->files_max && is_entry_name(kind, found) && strcmp(found, name) != 0;
        if ((!temporary && !other) || fstatat(dir_fd, found, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;

        if (temporary) {
            if (now - st.st_mtime > TEMPORARY_MAX_AGE_S)
                (void)unlinkat(dir_fd, found, 0);
            continue;
        }

        if (others++ == 0 || is_before(&st.st_mtim, &written)) {
            memcpy(oldest, found, strlen(found) + 1);
            written = st.st_mtim;
        }
    }

    closedir(list);

    if (kind->files_max && others >= kind->files_max)
        (void)unlinkat(dir_fd, oldest, 0);
}

/* Create a file of a name that nobody else uses. Returns -1 with errno on failure. The process
 * number alone is not enough: processes in different containers may share the directory. */
static int create_temporary(int dir_fd, char *name, size_t name_bytes)
{
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number) {
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)getpid() ^ (uint64_t)(uintptr_t)name;
        }

        snprintf(name, name_bytes, "%s%016llx", temporary_prefix, (unsigned long long)number);
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

void cox__cache_store(const char *dir, const struct cox__cache_kind *kind,
                      const unsigned char key[32], const void *data, size_t bytes,
                      const struct cox__log *log)
{
    if (!dir)
        return;

    int dir_fd = cox__private_dir_open(dir, true, kind->what, log);
    if (dir_fd < 0)
        return;

    char name[NAME_BYTES];
    char temporary[sizeof temporary_prefix + 16];
    unsigned char head[HEAD_BYTES], digest[COX__SHA256_BYTES];
    entry_name(kind, key, name);
    cox__cache_frame(kind, key, data, bytes, head, digest);

    tidy(dir_fd, kind, name);
    int fd = create_temporary(dir_fd, temporary, sizeof temporary);
    if (fd < 0) {
        cox__log(log, kind->write_failed, "%s: cannot create a file in %s: %s", kind->what, dir,
                 strerror(errno));
        close(dir_fd);
        return;
    }

    /* No fsync: an entry cut by a power failure reads as damaged and is made again. */
    bool ok = write_all(fd, head, sizeof head) && write_all(fd, data, bytes) &&
              write_all(fd, digest, sizeof digest);
    int error = 0;
    if (!ok)
        error = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }

    if (ok && renameat(dir_fd, temporary, dir_fd, name) != 0) {
        ok = false;
        error = errno;
    }

    if (!ok) {
        (void)unlinkat(dir_fd, temporary, 0);
        cox__log(log, kind->write_failed, "%s: cannot write %s to %s: %s", kind->what, name, dir,
                 strerror(error));
    }

    close(dir_fd);
}
