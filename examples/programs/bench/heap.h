/* Counts heap allocations of the library and of everyone else.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct bench_heap_count {
    uint64_t library; /* by libcoxswain, libuv or hwloc, directly or through the C library */
    uint64_t others;  /* by the OpenCL drivers and this program */
};

/* False for builds with sanitizers, which replace the allocator. */
bool bench_heap_possible(void);
void bench_heap_start(void);
struct bench_heap_count bench_heap_stop(void);

#endif
