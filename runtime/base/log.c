/* Formats log lines; see log.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 900 }; /* characters of a text's line, which leave room for the prefix */

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
        const size_t length = strcspn(text, "\n");
        int shown = TEXT_MAX;
        if (length < TEXT_MAX)
            shown = (int)length;

        if (length)
            cox__log(log, level, "%s%.*s", prefix, shown, text);

        text += length + (text[length] == '\n');
    }
}
