/* Rows printed as CSV and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Two rows. The values of the second one are unknown. */
static const char *printed(enum lab_format format)
{
    static char text[1000];
    struct lab_rows *rows = malloc(sizeof *rows);
    char path[] = "/tmp/cox-rows-XXXXXX";
    int made = mkstemp(path);
    cr_assert_geq(made, 0);
    cr_assert_not_null(freopen(path, "w+", stdout));
    lab_rows_begin(rows, format);
    for (uint64_t i = 0; i < 2 && format != LAB_TABLE; i++) {
        lab_rows_open(rows);
        lab_rows_text(rows, "name", i ? NULL : "a \"b\", c\033");
        lab_rows_number(rows, "share", i ? NAN : 0.5);
        lab_rows_count(rows, "count", i);
        lab_rows_unknown(rows, "nothing");
        lab_rows_close(rows);
    }
    lab_rows_end(rows);
    fflush(stdout);
    rewind(stdout);
    size_t bytes = fread(text, 1, sizeof text - 1, stdout);
    text[bytes] = '\0';
    remove(path);
    free(rows);
    return text;
}

Test(lab_rows, csv_quotes_what_holds_commas_and_leaves_out_what_is_unknown)
{
    cr_assert_str_eq(printed(LAB_CSV), "name,share,count,nothing\n\"a \"\"b\"\", c\\x1b\",0.500000,0,\n,,1,\n");
}

Test(lab_rows, json_has_the_same_keys_and_null_for_what_is_unknown)
{
    cr_assert_str_eq(
        printed(LAB_JSON),
        "[\n  {\"name\": \"a \\\"b\\\", c\\\\x1b\", \"share\": 0.500000, \"count\": 0, \"nothing\": null},\n"
        "  {\"name\": null, \"share\": null, \"count\": 1, \"nothing\": null}\n]\n");
}

Test(lab_rows, nothing_is_printed_beside_a_table)
{
    cr_assert_str_eq(printed(LAB_TABLE), "");
}
