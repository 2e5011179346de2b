/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

bool bench_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("cox-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);

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
