/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_ENDS_WITH_H
#define TONEMAP_ENDS_WITH_H

#include <stdbool.h>
#include <string.h>

/* Whether a file's name has an ending such as ".mkv", and is longer than it. */
static inline bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);
    return length > end_length && !strcmp(name + length - end_length, end);
}

#endif
