/* Clocks in nanoseconds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NOW_H
#define NOW_H

#include <stdint.h>
#include <time.h>

/* 0 = the clock cannot be read. */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now))
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The monotonic clock. */
static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
