/* Log lines show no control characters of drivers and devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "support/captured_log.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct cox__log logger = {.fn = on_log, .level = COX_LOG_DEBUG};

static void expect_line(const char *text, const char *line)
{
    logged[0] = '\0';
    cox__log(&logger, COX_LOG_WARN, "%s", text);
    cr_expect_str_eq(logged, line);
}

Test(log, escapes_what_is_not_printable)
{
    expect_line("a\tb \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x8e\xac", "a\tb \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x8e\xac\n");
    expect_line("\033[31m\x7f\r\n\001", "\\x1b[31m\\x7f\\x0d\\x0a\\x01\n");
    expect_line("\xc2\x9bm \xc2\xa0", "\\xc2\\x9bm \xc2\xa0\n");
    expect_line("\xff \x80 \xc3( \xe2\x82", "\\xff \\x80 \\xc3( \\xe2\\x82\n");
    expect_line("\xc0\xaf \xe0\x80\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xf5\x80\x80\x80",
                "\\xc0\\xaf \\xe0\\x80\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xf5\\x80\\x80\\x80\n");
}

Test(log, keeps_the_lines_of_a_long_text)
{
    logged[0] = '\0';
    cox__log_text(&logger, COX_LOG_ERROR, "compiler: ", "one\n\n\033two\n");
    cr_expect_str_eq(logged, "compiler: one\ncompiler: \\x1btwo\n");
}

Test(log, cuts_a_line_that_grows)
{
    char text[1000];
    memset(text, '\033', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    logged[0] = '\0';
    cox__log(&logger, COX_LOG_WARN, "%s", text);
    cr_expect_leq(strlen(logged), 1024);
    cr_expect_null(strchr(logged, '\033'));
}
