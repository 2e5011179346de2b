/* Several values in one assertion of a Criterion test. A failure names each value that is wrong:
 *
 *     ASSERT_VALUES(IS(frame.rows, 100), NEAR(frame.joules, 0.25, 1e-9));
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_VALUES_H
#define COX_TESTS_VALUES_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

struct value {
    const char *what;
    double got, expected, tolerance;
};

#define IS(got, expected)                          \
    {                                              \
#got, (double)(got), (double)(expected), 0 \
    }
#define NEAR(got, expected, tolerance)                       \
    {                                                        \
#got, (double)(got), (double)(expected), (tolerance) \
    }

#define ASSERT_VALUES(...)                                                              \
    do {                                                                                \
        const struct value values_[] = {__VA_ARGS__};                                   \
        const char *wrong_ = values_wrong(values_, sizeof values_ / sizeof values_[0]); \
        cr_assert_str_empty(wrong_, "%s", wrong_);                                      \
    } while (0)

/* The wrong values as text; "" if none (static storage). */
static inline const char *values_wrong(const struct value *values, size_t count)
{
    static char text[2000];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const struct value *value = &values[i];
        const bool right = value->got == value->expected || fabs(value->got - value->expected) <= value->tolerance;
        if (!right && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s is %.12g instead of %.12g", at ? "; " : "",
                                   value->what, value->got, value->expected);
    }
    return text;
}

#endif
