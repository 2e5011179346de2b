/* The frames and bands of a session database as flat tables, for statistics programs: a row for each
 * frame or band, with all that identifies it.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TABLES_H
#define COX_EXAMPLES_LAB_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tables_format { TABLES_CSV, TABLES_PARQUET };
enum tables_kind { TABLES_FRAMES, TABLES_BANDS, TABLES_COUNT };

/* The name of a table's file: "frames.csv" and so on. */
const char *tables_file_name(enum tables_kind kind, enum tables_format format);

/* Check that the database has the run (0 = all) with sessions of the policy (NULL = all sessions).
 * False with one sentence in `why`, here and below. */
struct sqlite3;
bool tables_check(struct sqlite3 *db, int64_t run, const char *policy, char *why, size_t why_bytes);

/* Write a table. The caller checks the stream for errors at the end. */
bool tables_write(struct sqlite3 *db, int64_t run, const char *policy, enum tables_kind kind,
                  enum tables_format format, FILE *to, char *why, size_t why_bytes);

#endif
