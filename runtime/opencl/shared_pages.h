/* Pages of host memory with counted references: they stay while a memory object that cannot be
 * released lies on them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_PAGES_H
#define COX_OPENCL_PAGES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cox__cl_pages {
    _Atomic uint32_t refs;
    void *data;
    size_t bytes;
};

/* The pages are zeroed. `bytes` is a multiple of COX__PAGE_BYTES. NULL = out of memory. */
struct cox__cl_pages *cox__cl_shared_pages_new(size_t bytes);

/* Both accept NULL. The last reference frees the pages. */
struct cox__cl_pages *cox__cl_shared_pages_ref(struct cox__cl_pages *pages);
void cox__cl_shared_pages_unref(struct cox__cl_pages *pages);

#endif
