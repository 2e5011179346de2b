/* Rows of keys and values, as CSV or as JSON with the same keys. Every row of a command has the
 * same keys in the same order; an unknown value is an empty field, or null.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ROWS_H
#define COX_EXAMPLES_LAB_ROWS_H

#include "common/json.h"

#include <stddef.h>

enum lab_format { LAB_TABLE, LAB_CSV, LAB_JSON };

enum { LAB_ROW_BYTES = 16384 };

/* Plain memory: two processes that map the same one may use it in turn. */
struct lab_rows {
    enum lab_format format;
    struct json json;
    uint64_t count;           /* of closed rows */
    char head[LAB_ROW_BYTES]; /* CSV: the keys and values of the open row */
    char line[LAB_ROW_BYTES];
};

/* Writes to standard output. With LAB_TABLE all of these do nothing. */
void lab_rows_begin(struct lab_rows *rows, enum lab_format format);
void lab_rows_end(struct lab_rows *rows);

void lab_rows_open(struct lab_rows *rows);
void lab_rows_close(struct lab_rows *rows);

/* The text is made printable for a terminal; NULL = not known, as is a number that is not
 * finite. */
void lab_rows_text(struct lab_rows *rows, const char *key, const char *text);
void lab_rows_number(struct lab_rows *rows, const char *key, double value);
void lab_rows_count(struct lab_rows *rows, const char *key, uint64_t value);
void lab_rows_unknown(struct lab_rows *rows, const char *key);

#endif
