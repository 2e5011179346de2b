/* Strings in JSON show no control characters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static void expect_json(const char *text, const char *expected)
{
    char *written = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&written, &bytes);
    struct json json;
    cr_assert_not_null(stream);
    json_begin(&json, stream);
    json_string(&json, text);
    fclose(stream);
    cr_expect_str_eq(written, expected);
    free(written);
}

Test(json_text, escapes_what_is_not_presentable)
{
    expect_json("a\"\\ \xc3\xa9 \xf0\x9f\x8e\xac", "\"a\\\"\\\\ \xc3\xa9 \xf0\x9f\x8e\xac\"");
    expect_json("\033\n\x7f", "\"\\u001b\\u000a\\u007f\"");
    expect_json("\xc2\x9b \xe2\x80\xae \xf3\xa0\x80\x81", "\"\\u009b \\u202e \\udb40\\udc01\"");
    expect_json("\xff\xc3", "\"\\ufffd\\ufffd\"");
}
