/* SPDX-License-Identifier: Apache-2.0 */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>

bool lab_refuse(char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, why_bytes, format, args);
    va_end(args);
    return false;
}
