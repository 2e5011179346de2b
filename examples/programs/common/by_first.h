/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BY_FIRST_H
#define BY_FIRST_H

#include <stdint.h>

/* For qsort, of structs whose first field is the number of their first frame, a uint64_t. */
static inline int by_first(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

#endif
