/* Whole pages of host memory for frames, zeroed.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_PAGES_H
#define COX_HOST_PAGES_H

#include <stddef.h>

enum { COX__PAGE_BYTES = 4096, COX__HUGE_BYTES = 2 << 20 };

/* `bytes` is a multiple of COX__PAGE_BYTES. Large memory is aligned to huge pages and asks for
 * them: it has fewer faults when it is first written, and fewer TLB misses later. NULL if there is
 * no memory. */
void *cox__pages_create(size_t bytes);

/* `bytes` as at creation; NULL is accepted. */
void cox__pages_destroy(void *pages, size_t bytes);

#endif
