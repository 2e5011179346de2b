/* SPDX-License-Identifier: Apache-2.0 */
#include "lab.h"

#include <stdarg.h>
#include <stdio.h>

bool lab_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("cox-lab: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}
