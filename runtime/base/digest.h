/* SHA-256 as FIPS 180-4 defines it, fed in pieces.
 * Thread-safety: a state belongs to one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_DIGEST_H
#define COX_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { COX__SHA256_BYTES = 32 };

struct cox__digest {
    uint32_t h[8];
    uint64_t total; /* bytes fed so far */
    unsigned char block[64];
    size_t filled; /* of block; < 64 between calls */
};

void cox__digest_begin(struct cox__digest *state);
/* `data` may be NULL when `bytes` is 0. */
void cox__digest_feed(struct cox__digest *state, const void *data, size_t bytes);
void cox__digest_end(struct cox__digest *state, unsigned char digest[COX__SHA256_BYTES]);

#endif
