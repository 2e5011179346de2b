/* Reading a session database: rows whose values are not believed, and what went wrong in one sentence.
 *
 * Thread-safety: one reader from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_READER_H
#define COX_EXAMPLES_LAB_REPORT_READER_H

#include "data.h"

enum { TEXT_BYTES_MAX = 4000 }; /* of a text, more is cut off */

struct sqlite3;
struct sqlite3_stmt;

struct reader {
    struct sqlite3 *db;
    const char *path;
    char *why; /* the sentence, beginning with the path */
    size_t why_bytes;
};

/* Each tells what is wrong and returns false. */
__attribute__((format(printf, 2, 3))) bool reader_refuse(struct reader *reader, const char *format,
                                                         ...);
bool reader_no_memory(struct reader *reader);
bool reader_refuse_sql(struct reader *reader);

bool reader_prepare(struct reader *reader, struct sqlite3_stmt **out, const char *sql);

/* The next row: 1; the end: 0; an error, which is then told: -1. */
int reader_next(struct reader *reader, struct sqlite3_stmt *statement);

/* NaN where there is no number, or none that can be meant. */
double reader_number(struct sqlite3_stmt *statement, int column);

/* NaN where the number is less than a nanosecond: zero stands for "not known". */
double reader_time(struct sqlite3_stmt *statement, int column);

/* Owned by the caller; NULL for NULL, a blob, and when there is no memory. */
char *reader_text(struct sqlite3_stmt *statement, int column);

/* The index of a device or phase by its number; their count where there is none. */
uint32_t reader_device(const struct report_run *run, int64_t number);
uint32_t reader_phase(const struct report_run *run, int64_t number);

/* The parts of frames.c. First the sessions, then frames and bands of each, at last what the oracle took for them. */
bool reader_sessions(struct reader *reader, struct report_run *run);
bool reader_frames(struct reader *reader, const struct report_run *run,
                   struct report_session *session);
bool reader_bands(struct reader *reader, struct report_run *run, struct report_session *session);
void reader_oracle(struct report_run *run);

/* gauges.c: the telemetry of the run, after its frames. None is no error. */
bool reader_gauges(struct reader *reader, struct report_run *run);
void report_gauges_free(struct report_run *run);

#endif
