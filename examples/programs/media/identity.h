/* A file's identity, whatever its name: its length, and a hash of its beginning, its end and 64
 * places between.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_identity {
    uint64_t bytes;
    uint64_t hash;
};

/* False, and `error` says why, if it is not a regular file or cannot be read. */
bool file_identify(const char *path, struct file_identity *out, struct error *error);

/* A file's attributes in its file system. They differ after each change, even if file_identify reads
 * the same samples. A copy has other ones. */
struct file_state {
    uint64_t device, inode, bytes;
    int64_t modified_ns, changed_ns; /* the content; the content or the attributes */
};

/* False if it is not a regular file. */
bool file_state_of(int fd, struct file_state *out);

/* FNV-1a, 64 bits. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes);

#endif
