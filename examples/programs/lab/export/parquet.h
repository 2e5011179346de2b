/* Writes a Parquet file: a flat table of optional columns, in row groups of one page for each
 * column. Values are PLAIN and not compressed, so every reader takes them.
 *
 * Facts: Apache Parquet's format (parquet.thrift, Encodings.md) and Thrift's compact protocol.
 * Thread-safety: one file from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_PARQUET_H
#define COX_EXAMPLES_LAB_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The values are those of the file format. */
enum parquet_type {
    PARQUET_BOOLEAN = 0,
    PARQUET_INT64 = 2,
    PARQUET_DOUBLE = 5,
    PARQUET_TEXT = 6 /* UTF-8 */
};

struct parquet_column {
    const char *name;
    enum parquet_type type;
};

struct parquet;

/* Begin a file on the stream, which need not be seekable. The columns must outlive the file. NULL
 * if out of memory. The caller checks the stream for errors at the end. */
struct parquet *parquet_begin(FILE *to, const struct parquet_column *columns, uint32_t count);

/* The value of the row's next column. A row ends with its last column. */
void parquet_null(struct parquet *file);
void parquet_boolean(struct parquet *file, bool value);
void parquet_int64(struct parquet *file, int64_t value);
void parquet_double(struct parquet *file, double value);
void parquet_text(struct parquet *file, const char *text);

/* Write the rest and free the file, in the middle of a row too. False if memory ran out: then the
 * file is not whole. */
bool parquet_end(struct parquet **file);

#endif
