/* Counted references to host memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shared_pages.h"
#include "host/pages.h"

#include <stdlib.h>

struct cox__cl_pages *cox__cl_shared_pages_new(size_t bytes)
{
    struct cox__cl_pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return NULL;

    pages->data = cox__pages_create(bytes);
    if (!pages->data) {
        free(pages);
        return NULL;
    }

    pages->bytes = bytes;
    atomic_init(&pages->refs, 1);
    return pages;
}

struct cox__cl_pages *cox__cl_shared_pages_ref(struct cox__cl_pages *pages)
{
    if (pages)
        atomic_fetch_add(&pages->refs, 1);
    return pages;
}

void cox__cl_shared_pages_unref(struct cox__cl_pages *pages)
{
    if (!pages || atomic_fetch_sub(&pages->refs, 1) > 1)
        return;
    cox__pages_destroy(pages->data, pages->bytes);
    free(pages);
}
