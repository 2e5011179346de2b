/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOW_H
#define NOW_H

#include <stdint.h>
#include <time.h>

/* The monotonic clock. */
static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
