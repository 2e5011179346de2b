/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>

bool bench_fail(const char *format, ...)
{
    va_list args;

    char line[2048], plain[2 * sizeof line];

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);

    fprintf(stderr, "cox-bench: %s\n", text_plain(line, plain, sizeof plain));

    return false;
}

void bench_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    bench_fail("%s", line);
}

bool bench_good(cox_status status, const char *what)
{
    if (status == COX_OK)
        return true;
    if (!what)
        return bench_fail("%s", cox_status_text(status));
    return bench_fail("%s: %s", what, cox_status_text(status));
}
