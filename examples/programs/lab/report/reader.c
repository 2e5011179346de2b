/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Above it a double no longer holds every integer; as nanoseconds, a hundred days. */
static const double number_max = 9007199254740992.0;

bool reader_refuse(struct reader *reader, const char *format, ...)
{
    int used = snprintf(reader->why, reader->why_bytes, "%s: ", reader->path);
    if (used < 0 || (size_t)used >= reader->why_bytes)
        return false;

    va_list args;
    va_start(args, format);
    vsnprintf(reader->why + used, reader->why_bytes - (size_t)used, format, args);
    va_end(args);
    return false;
}

bool reader_no_memory(struct reader *reader)
{
    return reader_refuse(reader, "out of memory");
}

bool reader_refuse_sql(struct reader *reader)
{
    int code = sqlite3_errcode(reader->db) & 0xFF;

    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return reader_refuse(reader, "is damaged: %s", sqlite3_errmsg(reader->db));
    return reader_refuse(reader, "cannot read: %s", sqlite3_errmsg(reader->db));
}

bool reader_prepare(struct reader *reader, sqlite3_stmt **out, const char *sql)
{
    return sqlite3_prepare_v2(reader->db, sql, -1, out, NULL) == SQLITE_OK ||
           reader_refuse_sql(reader);
}

bool reader_ask(struct reader *reader, sqlite3_stmt **out, const char *sql, int64_t number)
{
    if (!reader_prepare(reader, out, sql))
        return false;

    sqlite3_bind_int64(*out, 1, number);
    return true;
}

int reader_next(struct reader *reader, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    if (code == SQLITE_DONE)
        return 0;

    reader_refuse_sql(reader);
    return -1;
}

bool reader_end(sqlite3_stmt *statement, int more)
{
    sqlite3_finalize(statement);
    return more == 0;
}

bool reader_each(struct reader *reader, const char *sql, int64_t number, reader_row_fn *each,
                 void *into)
{
    sqlite3_stmt *statement;
    int more;

    if (!reader_ask(reader, &statement, sql, number))
        return false;

    do {
        more = reader_next(reader, statement);
        if (more > 0 && !each(reader, statement, into))
            more = -1;
    } while (more > 0);
    return reader_end(statement, more);
}

bool reader_count(struct reader *reader, const char *sql, int64_t number, double *out)
{
    sqlite3_stmt *statement;

    *out = 0;
    if (!reader_ask(reader, &statement, sql, number))
        return false;

    int more = reader_next(reader, statement);
    if (more > 0)
        *out = reader_number(statement, 0);

    sqlite3_finalize(statement);
    return more >= 0;
}

double reader_number(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return NAN;

    double value = sqlite3_column_double(statement, column);
    if (!isfinite(value) || fabs(value) > number_max)
        return NAN;
    return value;
}

double reader_time(sqlite3_stmt *statement, int column)
{
    double value = reader_number(statement, column);

    if (!(value >= 1))
        return NAN;
    return value;
}

char *reader_text(struct reader *reader, sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_NULL || type == SQLITE_BLOB)
        return NULL;

    const char *text = (const char *)sqlite3_column_text(statement, column);
    char *copy = text ? strndup(text, TEXT_BYTES_MAX) : NULL;
    reader->lost_text |= !copy;
    return copy;
}

uint32_t reader_device(const struct report_run *run, int64_t number)
{
    uint32_t device = 0;

    while (device < run->device_count && run->devices[device].number != number)
        device++;
    return device;
}

uint32_t reader_phase(const struct report_run *run, int64_t number)
{
    uint32_t phase = 0;

    while (phase < run->phase_count && run->phases[phase].number != number)
        phase++;
    return phase;
}
