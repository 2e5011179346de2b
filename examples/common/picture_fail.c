/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <stdarg.h>
#include <stdio.h>

void picture_printable(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

bool picture_fail(struct picture_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    picture_printable(error->text);
    return false;
}
