/* Formats log lines; see log.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_BYTES = 1024,
    TEXT_MAX = 900, /* characters of a text's line, which leave room for the prefix */
    ESCAPED = 4,    /* \xNN */
};

/* Length of the UTF-8 character at `s`. 0 for invalid UTF-8 and control characters. Reads nothing
 * after the terminator. */
static size_t printable(const unsigned char *s)
{
    size_t length = 1;
    if (s[0] >= 0xF0 && s[0] < 0xF5)
        length = 4;
    else if (s[0] >= 0xE0)
        length = 3;
    else if (s[0] >= 0xC2)
        length = 2;
    if (s[0] >= 0xF5 || (s[0] >= 0x7F && s[0] < 0xC2) || (s[0] < ' ' && s[0] != '\t'))
        return 0;

    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;

    const bool control = s[0] == 0xC2 && s[1] < 0xA0; /* U+0080 to U+009F */
    const bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    const bool beyond = (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF4 && s[1] >= 0x90);
    return control || overlong || beyond ? 0 : length;
}

/* Drivers, devices and kernels choose parts of the line, and a terminal may show it. So each byte
 * that is not printable becomes \xNN. */
static void escape(const char *line, char plain[LINE_BYTES])
{
    size_t at = 0;

    for (const unsigned char *s = (const unsigned char *)line; *s && at + ESCAPED < LINE_BYTES;) {
        const size_t length = printable(s);
        if (length > 0) {
            memcpy(plain + at, s, length);
            at += length;
            s += length;
        } else {
            at += (size_t)snprintf(plain + at, ESCAPED + 1, "\\x%02x", (unsigned)*s++);
        }
    }
    plain[at] = '\0';
}

void cox__log(const struct cox__log *log, enum cox_log_level level, const char *format, ...)
{
    if (!log || !log->fn || level > log->level)
        return;

    char line[LINE_BYTES], plain[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);

    escape(line, plain);
    log->fn(log->user, level, plain);
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
