/* SPDX-License-Identifier: Apache-2.0 */
#include "type_name.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

uint32_t cox__type_name_bytes(const char *type)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } scalars[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},  {"int", 4},
                   {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8}};

    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        const size_t length = strlen(scalars[i].name);
        if (strncmp(type, scalars[i].name, length) != 0)
            continue;
        if (!type[length])
            return scalars[i].bytes;

        /* What follows the name must be a vector's width. */
        char *end = NULL;
        const unsigned long width = strtoul(type + length, &end, 10);
        if (*end)
            continue;
        if (width == 3)
            return 4 * scalars[i].bytes;
        if (width == 2 || width == 4 || width == 8 || width == 16)
            return (uint32_t)width * scalars[i].bytes;
    }
    return 0;
}
