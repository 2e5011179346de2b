/* An array that grows by one element at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ARRAY_H
#define COX_EXAMPLES_LAB_ARRAY_H

#include <stdlib.h>

/* Room for one element more than `count`; the room doubles at each power of two. Returns the
 * array, which may have moved, or NULL if out of memory; then `all` is unchanged and still the
 * caller's. */
static inline void *array_room(void *all, size_t count, size_t bytes)
{
    if (count & (count - 1))
        return all;

    return realloc(all, (count ? 2 * count : 1) * bytes);
}

#endif
