/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"
#include "common/plain_output.h"
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 8192 };

bool lab_fail(const char *format, ...)
{
    char text[LINE_BYTES], line[2 * LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    fputs("cox-lab: ", stderr);
    /* Line by line: a build log has several. */
    for (char *from = text, *end; from; from = end) {
        end = strchr(from, '\n');
        if (end)
            *end++ = '\0';
        fprintf(stderr, "%s\n", text_plain(from, line, sizeof line));
    }
    return false;
}

bool lab_output_written(void)
{
    const char *failure = plain_output_failure(stdout);
    return !failure || lab_fail("standard output: %s", failure);
}
