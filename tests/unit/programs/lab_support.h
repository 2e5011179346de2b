/* JSON in a form that is readable in C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAB_SUPPORT_H
#define COX_TESTS_LAB_SUPPORT_H

#include <stdio.h>
#include <string.h>

static inline char *lab_replace(char *text, char from, char to)
{
    for (char *at = text; (at = strchr(at, from));)
        *at = to;
    return text;
}

/* The object with these keys, with each ' replaced by " (static storage). */
static inline const char *lab_object(const char *keys)
{
    static char json[16 << 10];
    snprintf(json, sizeof json, "{%s}", keys);
    return lab_replace(json, '\'', '"');
}

#endif
