/* What tests of the lab share: JSON that can be read in C, and scenarios of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAB_SUPPORT_H
#define COX_TESTS_LAB_SUPPORT_H

#include <stdio.h>
#include <string.h>

/* The text with " for each ', so that JSON needs no backslashes (static storage). */
static inline const char *lab_quoted(const char *text)
{
    static char json[16 << 10];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; (at = strchr(at, '\''));)
        *at = '"';
    return json;
}

#endif
