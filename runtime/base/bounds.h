/* Limits of unsigned numbers, and the time from one moment to another.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_BOUNDS_H
#define COX_BASE_BOUNDS_H

#include <stdint.h>

static inline uint32_t cox__min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t cox__max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint64_t cox__min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t cox__max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Nanoseconds from `begin_ns` to `end_ns`; 0 if the end comes first. */
static inline uint64_t cox__elapsed_ns(uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns <= begin_ns)
        return 0;

    return end_ns - begin_ns;
}

#endif
