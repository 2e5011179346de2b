/* SHA-256 as FIPS 180-4 defines it, fed in pieces.
 * Thread-safety: a state belongs to one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_SHA256_H
#define COX_RUNTIME_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { COX__SHA256_BYTES = 32 };

struct cox__sha256 {
    uint32_t h[8];
    uint64_t total; /* bytes fed so far */
    unsigned char block[64];
    size_t filled; /* of block; < 64 between calls */
};

void cox__sha256_begin(struct cox__sha256 *state);
/* `data` may be NULL when `bytes` is 0. */
void cox__sha256_feed(struct cox__sha256 *state, const void *data, size_t bytes);
void cox__sha256_end(struct cox__sha256 *state, unsigned char digest[COX__SHA256_BYTES]);

#endif
