/* Files that the library keeps from run to run and can make again: compiled kernels, device
 * profiles. A file is written under a temporary name and renamed, so that a reader never sees half
 * a file. The content has its own checksum, so that a damaged file reads as absent. The cache does
 * not know what the content means.
 * Thread-safety: safe from any thread and from several processes on one directory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_CACHE_H
#define COX_RUNTIME_CACHE_H

#include "base/log.h"
#include "base/digest.h"

struct cox__cache_kind {
    const char *what;       /* its log lines begin with this */
    unsigned char magic[8]; /* the file's first bytes, with a number of the format */
    char suffix[12];        /* of the file's name */
    size_t bytes_max;       /* of the content; a longer one is damaged */
    uint32_t files_max;     /* beyond, the file that was written first is removed; 0 = any number */
    enum cox_log_level write_failed;
};

extern const struct cox__cache_kind cox__cache_kernels;
extern const struct cox__cache_kind cox__cache_profiles;
extern const struct cox__cache_kind cox__cache_code; /* entries of a file of the user (code.h) */

enum { COX__CACHE_HEAD_BYTES = 8 + COX__SHA256_BYTES + 8 }; /* magic, key, length */

/* Feed a piece of a key. Its length goes in before it, so that ("ab","c") and ("a","bc") differ. */
void cox__cache_feed(struct cox__digest *sha, const void *data, size_t bytes);

/* Read the entry of a key. Returns a malloc'd block that the caller frees, or NULL if the entry is
 * absent, damaged (logged, removed) or unreadable. */
void *cox__cache_load(const char *dir, const struct cox__cache_kind *kind,
                      const unsigned char key[32], size_t *bytes, const struct cox__log *log);

/* Read the entry from an open file of `file_bytes` bytes. If the file is damaged, returns NULL with
 * a few words in `*damage`. If it cannot be read or there is no memory, returns NULL with `*damage`
 * NULL and errno set. */
void *cox__cache_read(int fd, uint64_t file_bytes, const struct cox__cache_kind *kind,
                      const unsigned char key[32], size_t *bytes, const char **damage);

/* Write an entry; a failure is a log line, never an error. Creates the directory (mode 0700,
 * parents too); files have mode 0600. Follows no link of another user (private_dir.h). */
void cox__cache_store(const char *dir, const struct cox__cache_kind *kind,
                      const unsigned char key[32], const void *data, size_t bytes,
                      const struct cox__log *log);

/* The head and the checksum of an entry. A file has the head, the content, the checksum. */
void cox__cache_frame(const struct cox__cache_kind *kind, const unsigned char key[32],
                      const void *data, size_t bytes, unsigned char head[COX__CACHE_HEAD_BYTES],
                      unsigned char digest[COX__SHA256_BYTES]);

/* What the entry at the start of some memory is. */
enum cox__cache_match {
    COX__CACHE_FOUND = 0,   /* that of the key, and whole */
    COX__CACHE_OTHER = 1,   /* of another key; its checksum is not looked at */
    COX__CACHE_DAMAGED = 2, /* not an entry, or not a whole one, or its checksum is wrong */
};

/* `*content`: the bytes of the entry's content, unless it is damaged. */
enum cox__cache_match cox__cache_match(const void *data, size_t bytes,
                                       const struct cox__cache_kind *kind,
                                       const unsigned char key[32], size_t *content);

#endif
