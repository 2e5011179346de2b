/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

bool error_set(struct error *error, const char *format, ...)
{
    char text[sizeof error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    text_plain(text, error->text, sizeof error->text);
    return false;
}
