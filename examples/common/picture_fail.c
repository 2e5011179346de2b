/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <stdarg.h>
#include <stdio.h>

bool picture_fail(struct picture_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    /* It may hold words of a file's, and goes to a terminal. */
    for (char *c = error->text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return false;
}
