/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *guides_unit_name(enum guides_unit unit)
{
    static const char *const names[] = {"Mpixel/s", "Mvalue/s", "Mread/s", "GB/s", "µs", "ms"};

    return names[unit];
}

bool guides_unit_rate(enum guides_unit unit)
{
    return unit != GUIDES_US && unit != GUIDES_MS;
}

const char *guides_status_name(enum guides_status status)
{
    static const char *const names[] = {"measured", "wrong", "not offered", "failed"};

    return names[status];
}

const char *guides_number(double value, char *text, size_t bytes)
{
    int decimals = 3;

    for (double limit = 1; decimals > 0 && fabs(value) >= limit; limit *= 10)
        decimals--;

    snprintf(text, bytes, "%.*f", decimals, value);

    return text;
}

void guides_say(char *text, size_t bytes, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + length, bytes - length, format, args);
    va_end(args);
}

struct guides_quartiles guides_quartiles_of(double *values, uint32_t count)
{
    return (struct guides_quartiles){.low = quantile_of(values, count, 0.25),
                                     .median = quantile_of(values, count, 0.5),
                                     .high = quantile_of(values, count, 0.75)};
}
