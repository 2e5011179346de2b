/* Formats log lines; see log.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cox__log(const struct cox__log *log, enum cox_log_level level, const char *format, ...)
{
    if (!log || !log->fn || level > log->level)
        return;

    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->fn(log->user, level, line);
}

void cox__log_text(const struct cox__log *log, enum cox_log_level level, const char *prefix,
                   const char *text)
{
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        if (length)
            cox__log(log, level, "%s%.*s", prefix, (int)(length < 900 ? length : 900), text);
        text += length + (text[length] == '\n');
    }
}
