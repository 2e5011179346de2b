/* Pages of host memory that stay for as long as a memory object lies on them that cannot be
 * released.
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

/* Zeroed; `bytes` is a multiple of COX__PAGE_BYTES. NULL: there is no memory. */
struct cox__cl_pages *cox__cl_shared_pages_new(size_t bytes);
struct cox__cl_pages *cox__cl_shared_pages_ref(struct cox__cl_pages *pages); /* NULL is accepted */
void cox__cl_shared_pages_unref(struct cox__cl_pages
                                    *pages); /* NULL is accepted; the last one frees them */

#endif
