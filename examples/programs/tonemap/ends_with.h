/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENDS_WITH_H
#define ENDS_WITH_H

#include <stdbool.h>
#include <string.h>

/* Whether a file's name ends so, ".mkv" for one, and is longer than that. */
static inline bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), most = strlen(end);
    return length > most && !strcmp(name + length - most, end);
}

#endif
