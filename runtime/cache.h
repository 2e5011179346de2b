/* Files of compiled kernels. Written under a temporary name and renamed, so that a reader never sees half a file; the
 * content carries its own checksum, so that a damaged file reads as absent. Knows nothing of OpenCL.
 * Thread-safety: safe from any thread and from several processes on one directory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_CACHE_H
#define COX_RUNTIME_CACHE_H

#include "log.h"

/* SHA-256 (FIPS 180-4) over several pieces; each piece's length goes in before it, so that ("ab","c") and ("a","bc")
 * differ. `digest` is 32 bytes. */
struct cox__cache_piece {
    const void *data;
    size_t bytes;
};
void cox__cache_key(const struct cox__cache_piece *pieces, size_t count, unsigned char digest[32]);

/* Read the entry of a key: a malloc'd block that the caller frees, or NULL if it is absent, damaged (logged, removed)
 * or unreadable. */
void *cox__cache_load(const char *dir, const unsigned char key[32], size_t *bytes, const struct cox__log *log);

/* What the above does with an open file of so many bytes: NULL with a few words in `*damage`, or with `*damage` NULL and errno
 * set where it cannot be read or there is no memory. */
void *cox__cache_read(int fd, uint64_t file_bytes, const unsigned char key[32], size_t *bytes, const char **damage);

/* Write an entry; a failure is a log line, never an error. The directory is created (mode 0700, parents too), files are
 * 0600. No link of another user is followed (private_dir.h). */
void cox__cache_store(const char *dir, const unsigned char key[32], const void *data, size_t bytes,
                      const struct cox__log *log);

#endif
