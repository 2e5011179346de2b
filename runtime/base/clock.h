/* The clock for all waits and measurements.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_CLOCK_H
#define COX_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the system's monotonic clock. Thread-safety: safe from any thread. */
static inline uint64_t cox__clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
