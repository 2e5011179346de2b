/* Structs that grow: the application's may be older (shorter) or newer (longer) than the library's.
 *
 * Fields are only added behind the last one, in whole words of 8 bytes: the padding at a struct's old end is not zero
 * in older programs, and padding at its new end would look like a field in newer ones. Where a struct has grown since
 * 0.1, a size of 0 is to be replaced by offsetof(its type, the first new field) before it comes here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_SIZED_H
#define COX_SCHED_SIZED_H

#include <coxswain/status.h>
#include <stddef.h>
#include <string.h>

/* More is no struct's size, but memory that was not initialised. */
enum { COX__SIZED_MAX = 4096 };

/* Copy a struct of `from_bytes` (0 = `bytes`) into one of `bytes`, whose rest is zeroed. Errors: COX_E_UNSUPPORTED
 * (a field that is not known here is not zero; *to is filled nevertheless). */
static inline cox_status cox__sized_read(void *to, size_t bytes, const void *from,
                                         size_t from_bytes)
{
    if (!from_bytes)
        from_bytes = bytes;
    memset(to, 0, bytes);
    memcpy(to, from, from_bytes < bytes ? from_bytes : bytes);
    if (from_bytes > COX__SIZED_MAX)
        return COX_E_UNSUPPORTED;
    for (size_t i = bytes; i < from_bytes; i++)
        if (((const unsigned char *)from)[i])
            return COX_E_UNSUPPORTED;
    return COX_OK;
}

/* The same for a struct that begins with its size; `to` gets its own. */
#define COX__SIZED_READ(to, from) \
    cox__sized_read_whole((to), sizeof *(to), (from), (from)->struct_size)
static inline cox_status cox__sized_read_whole(void *to, size_t bytes, const void *from,
                                               size_t from_bytes)
{
    const cox_status status = cox__sized_read(to, bytes, from, from_bytes);
    memcpy(to, &bytes, sizeof bytes);
    return status;
}

/* Copy a struct to the application's of `to_bytes`, whose rest is zeroed. */
static inline void cox__sized_write(void *to, size_t to_bytes, const void *from, size_t bytes)
{
    memset(to, 0, to_bytes);
    memcpy(to, from, to_bytes < bytes ? to_bytes : bytes);
}

#endif
