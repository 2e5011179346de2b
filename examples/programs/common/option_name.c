/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "option_name.h"
#include "least.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LETTERS = 31, STEPS_MAX = 2 };

/* Damerau and Levenshtein's distance in which no letter changes twice (optimal string alignment).
 * Three rows of its table are enough. */
static size_t steps_between(const char *a, const char *b)
{
    const size_t a_letters = strlen(a), b_letters = strlen(b);
    size_t rows[3][NAME_MAX_LETTERS + 1];

    if (a_letters > NAME_MAX_LETTERS || b_letters > NAME_MAX_LETTERS)
        return NAME_MAX_LETTERS;

    for (size_t j = 0; j <= b_letters; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_letters; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_letters; j++) {
            now[j] = least(before[j - 1] + (a[i - 1] != b[j - 1]),
                           least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], two_before[j - 2] + 1);
        }
    }

    return rows[a_letters % 3][b_letters];
}

const char *option_name_nearest(const struct option *known, const char *written)
{
    const char *nearest = NULL;
    size_t fewest = (size_t)least(STEPS_MAX + 1, (strlen(written) + 1) / 2);

    for (const struct option *option = known; option->name; option++) {
        const size_t steps = steps_between(written, option->name);
        if (steps < fewest) {
            fewest = steps;
            nearest = option->name;
        }
    }
    return nearest;
}

size_t option_name_list(const struct option *known, const char *written, char *text, size_t bytes)
{
    size_t count = 0, used = 0, letters = strlen(written);
    text[0] = 0;

    for (const struct option *option = known; option->name; option++) {
        if (strncmp(option->name, written, letters))
            continue;
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s'--%s'", count ? ", " : "",
                                     option->name);
        count++;
    }

    return count;
}

bool option_arithmetic(const char *written, enum cox_arithmetic *arithmetic)
{
    for (enum cox_arithmetic a = COX_ARITHMETIC_AUTO; a <= COX_ARITHMETIC_FMA; a++)
        if (strcmp(written, cox_arithmetic_name(a)) == 0) {
            *arithmetic = a;
            return true;
        }
    return false;
}
