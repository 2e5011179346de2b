/* Rows of keys and values, as CSV or as JSON: the keys are the same. Every row of a command has the
 * same keys in the same order; what is not known is an empty field, or null.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ROWS_H
#define COX_EXAMPLES_LAB_ROWS_H

#include "common/json.h"

#include <stddef.h>

enum lab_format { LAB_TABLE, LAB_CSV, LAB_JSON };

enum { LAB_ROW_BYTES = 16384 };

/* Plain memory: two processes may take turns with one that both have mapped. */
struct lab_rows {
    enum lab_format format;
    struct json json;
    uint64_t count;           /* of rows that are closed */
    char head[LAB_ROW_BYTES]; /* CSV: the keys and values of the row that is open */
    char line[LAB_ROW_BYTES];
};

/* To standard output. With LAB_TABLE all of these do nothing. */
void lab_rows_begin(struct lab_rows *rows, enum lab_format format);
void lab_rows_end(struct lab_rows *rows);

void lab_rows_open(struct lab_rows *rows);
void lab_rows_close(struct lab_rows *rows);

/* The text is made fit for a terminal; NULL = not known, as a number is that is not finite. */
void lab_rows_text(struct lab_rows *rows, const char *key, const char *text);
void lab_rows_number(struct lab_rows *rows, const char *key, double value);
void lab_rows_count(struct lab_rows *rows, const char *key, uint64_t value);
void lab_rows_unknown(struct lab_rows *rows, const char *key);

#endif
