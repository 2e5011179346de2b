/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_limit.h"

/* An 8K picture of floats fits into the least limit, with its output. Compressed pictures of usual
 * content need less than 40 bytes for each byte of their file. */
#define LIMIT_LEAST (UINT64_C(640) << 20)
enum { LIMIT_PER_BYTE = 100 };

uint64_t memory_limit(uint64_t file_bytes, uint64_t asked)
{
    if (asked)
        return asked;
    if (!file_bytes || file_bytes > UINT64_MAX / LIMIT_PER_BYTE)
        return UINT64_MAX;

    const uint64_t bytes = file_bytes * LIMIT_PER_BYTE;
    return bytes > LIMIT_LEAST ? bytes : LIMIT_LEAST;
}
