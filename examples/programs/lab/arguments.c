/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"
#include "fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool lab_read_whole(const char *option, const char *text, uint64_t low, uint64_t high,
                    uint64_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || text[0] < '0' || text[0] > '9' || value < low ||
        value > high)
        return lab_fail("%s '%s': must be a number from %" PRIu64 " to %" PRIu64, option, text, low,
                        high);

    *out = value;
    return true;
}

bool lab_read_run(const char *text, int64_t *run)
{
    uint64_t number = 0;

    if (!lab_read_whole("--run", text, 1, INT32_MAX, &number))
        return false;

    *run = (int64_t)number;
    return true;
}

int lab_refer_to_help(const char *command)
{
    fprintf(stderr, "Try 'cox-lab %s --help'.\n", command);
    return LAB_USAGE;
}
