/* Read a session database without trusting its values, and say in one sentence what went wrong.
 *
 * A query is read by reader_each, or by reader_ask, reader_next until it returns no row, and
 * reader_end.
 * Thread-safety: one reader from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_READER_H
#define COX_EXAMPLES_LAB_REPORT_READER_H

#include "runs.h"

enum { TEXT_BYTES_MAX = 4000 }; /* longer texts are cut */

struct sqlite3;
struct sqlite3_stmt;

struct reader {
    struct sqlite3 *db;
    const char *path;
    char *why; /* the sentence, beginning with the path */
    size_t why_bytes;
    bool lost_text; /* there was no memory for a text */
};

/* Each sets the reason and returns false. */
__attribute__((format(printf, 2, 3))) bool reader_refuse(struct reader *reader, const char *format,
                                                         ...);
bool reader_no_memory(struct reader *reader);
bool reader_refuse_sql(struct reader *reader);

bool reader_prepare(struct reader *reader, struct sqlite3_stmt **out, const char *sql);

/* Prepare a query and bind `number` to ?1. */
bool reader_ask(struct reader *reader, struct sqlite3_stmt **out, const char *sql, int64_t number);

/* 1 for a row, 0 at the end, -1 after an error, whose reason is then set. */
int reader_next(struct reader *reader, struct sqlite3_stmt *statement);

/* Finalize. `more` is the last result of reader_next, or -1 after another error. Returns whether
 * the end was reached. */
bool reader_end(struct sqlite3_stmt *statement, int more);

/* Called for each row; false after it has set the reason. */
typedef bool reader_row_fn(struct reader *reader, struct sqlite3_stmt *row, void *into);

/* Read all rows of a query. */
bool reader_each(struct reader *reader, const char *sql, int64_t number, reader_row_fn *each,
                 void *into);

/* The number in the only row of a query, 0 if it has none. */
bool reader_count(struct reader *reader, const char *sql, int64_t number, double *out);

/* NaN if there is no number, or one out of every sensible range. */
double reader_number(struct sqlite3_stmt *statement, int column);

/* NaN if the number is less than a nanosecond: zero means "not known". */
double reader_time(struct sqlite3_stmt *statement, int column);

/* Owned by the caller; NULL for NULL and a blob. Also if out of memory, which `lost_text` says. */
char *reader_text(struct reader *reader, struct sqlite3_stmt *statement, int column);

/* The index of a device or phase by its number; their count if the run has no such number. */
uint32_t reader_device(const struct report_run *run, int64_t number);
uint32_t reader_phase(const struct report_run *run, int64_t number);

/* read_frames.c. First the sessions, then frames and bands of each, at last the oracle's time of
 * each frame. */
bool reader_sessions(struct reader *reader, struct report_run *run);
bool reader_frames(struct reader *reader, const struct report_run *run,
                   struct report_session *session);
bool reader_bands(struct reader *reader, struct report_run *run, struct report_session *session);
void reader_oracle(struct report_run *run);

/* read_gauges.c: the telemetry of the run, after its frames. A database without telemetry is no
 * error. */
bool reader_gauges(struct reader *reader, struct report_run *run);
void report_gauges_free(struct report_run *run);

#endif
