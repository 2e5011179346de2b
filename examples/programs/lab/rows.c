/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "common/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void lab_rows_begin(struct lab_rows *rows, enum lab_format format)
{
    rows->format = format;
    rows->count = 0;
    if (format != LAB_JSON)
        return;

    json_begin(&rows->json, stdout);
    json_open_array(&rows->json, false);
}

void lab_rows_end(struct lab_rows *rows)
{
    if (rows->format != LAB_JSON)
        return;

    json_close_array(&rows->json);
    json_end(&rows->json);
}

void lab_rows_open(struct lab_rows *rows)
{
    rows->head[0] = rows->line[0] = '\0';
    if (rows->format == LAB_JSON)
        json_open_object(&rows->json, true);
}

void lab_rows_close(struct lab_rows *rows)
{
    if (rows->format == LAB_JSON)
        json_close_object(&rows->json);
    if (rows->format == LAB_CSV && rows->count == 0)
        puts(rows->head);
    if (rows->format == LAB_CSV)
        puts(rows->line);

    rows->count++;
}

static void add(char *line, const char *text)
{
    size_t length = strlen(line);

    snprintf(line + length, LAB_ROW_BYTES - length, "%s", text);
}

/* The key, and in CSV the value, which has no comma and no quote. */
static void put(struct lab_rows *rows, const char *key, const char *value)
{
    if (rows->format == LAB_JSON)
        json_key(&rows->json, key);
    if (rows->format != LAB_CSV)
        return;

    if (rows->head[0]) {
        add(rows->head, ",");
        add(rows->line, ",");
    }
    add(rows->head, key);
    add(rows->line, value);
}

static void add_quoted(char *line, const char *text)
{
    add(line, "\"");
    for (; *text; text++) {
        if (*text == '"')
            add(line, "\"");
        add(line, (const char[]){*text, '\0'});
    }
    add(line, "\"");
}

void lab_rows_text(struct lab_rows *rows, const char *key, const char *text)
{
    char plain[4096];

    put(rows, key, "");
    if (rows->format == LAB_TABLE)
        return;
    if (rows->format == LAB_JSON && !text) {
        json_null(&rows->json);
        return;
    }

    text_plain(text, plain, sizeof plain);
    if (rows->format == LAB_JSON)
        json_string(&rows->json, plain);
    else if (strpbrk(plain, ",\""))
        add_quoted(rows->line, plain);
    else
        add(rows->line, plain);
}

void lab_rows_number(struct lab_rows *rows, const char *key, double value)
{
    char text[400] = "";

    if (isfinite(value))
        snprintf(text, sizeof text, "%.6f", value);

    put(rows, key, text);
    if (rows->format == LAB_JSON)
        json_number(&rows->json, value);
}

void lab_rows_count(struct lab_rows *rows, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);

    put(rows, key, text);
    if (rows->format == LAB_JSON)
        json_unsigned(&rows->json, value);
}

void lab_rows_unknown(struct lab_rows *rows, const char *key)
{
    lab_rows_text(rows, key, NULL);
}
