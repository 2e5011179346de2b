/* CSV is that of RFC 4180: lines end with CR LF, text with commas, quotes or line ends is quoted. An
 * unknown value is an empty field there, and null in Parquet. Nothing in the database is trusted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"
#include "parquet.h"
#include "common/text.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

enum { COLUMNS_MAX = 40, SQL_MAX = 4096, TEXT_MAX = 4096 };

struct table {
    const char *name;
    const char *rows; /* FROM and what follows; ?1 is the run, ?2 the policy */
    const struct parquet_column *columns;
    const char *const *sources; /* the expression of each column */
    uint32_t count;
};

/* Both tables begin with these. Zeros that mean "not known" become nulls. */
#define COMMON_MAP(X)                                                                              \
    X(run, INT64, "s.run")                                                                         \
    X(source, TEXT, "r.source")                                                                    \
    X(host, TEXT, "r.host")                                                                        \
    X(kernel, TEXT, "r.kernel")                                                                    \
    X(columns, INT64, "r.columns")                                                                 \
    X(in_flight, INT64, "r.in_flight")                                                             \
    X(reserve, TEXT, "(SELECT value FROM setting WHERE setting.run = s.run AND name = 'reserve')") \
    X(session, INT64, "s.session")                                                                 \
    X(kind, TEXT, "s.kind")                                                                        \
    X(policy, TEXT, "s.policy")                                                                    \
    X(repeat, INT64, "s.repeat")                                                                   \
    X(phase, INT64, "f.phase")                                                                     \
    X(phase_text, TEXT, "p.text")                                                                  \
    X(frame, INT64, "f.frame")

#define FRAME_MAP(X)                                                            \
    COMMON_MAP(X)                                                               \
    X(rows, INT64, "f.rows")                                                    \
    X(start_ns, INT64, "f.start_ns")                                            \
    X(wall_ns, INT64, "f.wall_ns")                                              \
    X(period_ns, INT64, "f.period_ns")                                          \
    X(latency_ns, INT64, "f.latency_ns")                                        \
    X(deadline_ns, INT64, "nullif(f.deadline_ns, 0)")                           \
    X(predicted_ns, INT64, "nullif(f.predicted_ns, 0)")                         \
    X(alternative_ns, INT64, "nullif(f.alternative_ns, 0)")                     \
    X(reason, TEXT, "(SELECT text FROM reason WHERE reason.reason = f.reason)") \
    X(pool_rows, INT64, "f.pool_rows")                                          \
    X(joules, DOUBLE, "f.joules")                                               \
    X(status, INT64, "f.status")

#define BAND_MAP(X)                                                                             \
    COMMON_MAP(X)                                                                               \
    X(band, INT64, "b.band")                                                                    \
    X(pass, INT64, "b.pass")                                                                    \
    X(pass_name, TEXT, "(SELECT name FROM pass WHERE pass.run = s.run AND pass.pass = b.pass)") \
    X(device, INT64, "b.device")                                                                \
    X(device_name, TEXT, "d.name")                                                              \
    X(device_type, TEXT, "d.type")                                                              \
    X(first_row, INT64, "b.first_row")                                                          \
    X(rows, INT64, "b.rows")                                                                    \
    X(start_ns, INT64, "b.start_ns")                                                            \
    X(end_ns, INT64, "b.end_ns")                                                                \
    X(wall_ns, INT64, "b.wall_ns")                                                              \
    X(queue_ns, INT64, "b.queue_ns")                                                            \
    X(kernel_ns, INT64, "nullif(b.kernel_ns, 0)")                                               \
    X(predicted_ns, INT64, "nullif(b.predicted_ns, 0)")                                         \
    X(noticed_ns, INT64, "n.noticed_ns")                                                        \
    X(clock_error_ns, INT64, "n.clock_error_ns")                                                \
    X(on_demand, BOOLEAN, "b.on_demand")                                                        \
    X(attempt, INT64, "b.attempt")                                                              \
    X(status, INT64, "b.status")

#define COLUMN(name, type, source) {#name, PARQUET_##type},
#define SOURCE(name, type, source) source,
static const struct parquet_column frame_columns[] = {FRAME_MAP(COLUMN)},
                                   band_columns[] = {BAND_MAP(COLUMN)};
static const char *const frame_sources[] = {FRAME_MAP(SOURCE)}, *const band_sources[] = {
                                                                    BAND_MAP(SOURCE)};
#undef COLUMN
#undef SOURCE

#define OF_FRAMES                                  \
    " FROM session s JOIN frame f USING (session)" \
    " LEFT JOIN run r ON r.run = s.run"            \
    " LEFT JOIN phase p ON p.run = s.run AND p.phase = f.phase"
#define PICKED " WHERE (?1 = 0 OR s.run = ?1) AND (?2 IS NULL OR s.policy = ?2)"

static const struct table tables[TABLES_COUNT] = {
    [TABLES_FRAMES] = {.name = "frames",
                       .rows = OF_FRAMES PICKED " ORDER BY s.session, f.frame",
                       .columns = frame_columns,
                       .sources = frame_sources,
                       .count = sizeof frame_columns / sizeof frame_columns[0]},
    [TABLES_BANDS] = {.name = "bands",
                      .rows = OF_FRAMES
                      " JOIN band b ON b.session = f.session AND b.frame = f.frame"
                      " LEFT JOIN device d ON d.run = s.run AND d.device = b.device"
                      " LEFT JOIN notice n ON n.session = b.session AND n.frame = b.frame"
                      " AND n.band = b.band" PICKED " ORDER BY s.session, f.frame, b.band",
                      .columns = band_columns,
                      .sources = band_sources,
                      .count = sizeof band_columns / sizeof band_columns[0]},
};
_Static_assert(sizeof band_columns / sizeof band_columns[0] <= COLUMNS_MAX, "the wider table");

const char *tables_file_name(enum tables_kind kind, enum tables_format format)
{
    static const char *const names[TABLES_COUNT][2] = {{"frames.csv", "frames.parquet"},
                                                       {"bands.csv", "bands.parquet"}};
    return names[kind][format];
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* A query about the run and the policy; NULL with a reason. */
static sqlite3_stmt *query(sqlite3 *db, const char *sql, int64_t run, const char *policy, char *why,
                           size_t why_bytes)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(db));
        return NULL;
    }

    sqlite3_bind_int64(statement, 1, run);
    if (policy)
        sqlite3_bind_text(statement, 2, policy, -1, SQLITE_STATIC);
    return statement;
}

bool tables_check(struct sqlite3 *db, int64_t run, const char *policy, char *why, size_t why_bytes)
{
    static const char found[] = "SELECT EXISTS (SELECT 1 FROM run WHERE ?1 = 0 OR run = ?1),"
                                " EXISTS (SELECT 1 FROM session s WHERE (?1 = 0 OR s.run = ?1) AND"
                                " (?2 IS NULL OR s.policy = ?2))";
    sqlite3_stmt *statement = query(db, found, run, policy, why, why_bytes);
    bool good = false;

    if (!statement)
        return false;
    if (sqlite3_step(statement) != SQLITE_ROW)
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(db));
    else if (!sqlite3_column_int(statement, 0) && run)
        snprintf(why, why_bytes, "no run %" PRId64, run);
    else if (!sqlite3_column_int(statement, 0))
        snprintf(why, why_bytes, "no runs are recorded");
    else if (!sqlite3_column_int(statement, 1) && policy)
        snprintf(why, why_bytes, "no frames of that policy");
    else
        good = true;
    sqlite3_finalize(statement);

    return good;
}

static sqlite3_stmt *select_rows(sqlite3 *db, const struct table *table, int64_t run,
                                 const char *policy, char *why, size_t why_bytes)
{
    char sql[SQL_MAX] = "SELECT ";
    size_t used = strlen(sql);

    for (uint32_t i = 0; i < table->count; i++)
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s%s", i ? ", " : "",
                                 table->sources[i]);
    snprintf(sql + used, sizeof sql - used, "%s", table->rows);
    return query(db, sql, run, policy, why, why_bytes);
}

/* --- CSV -------------------------------------------------------------------------------------- */

static void put_csv_text(FILE *to, const char *text)
{
    /* An empty text is not a missing one. */
    if (*text && !strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }

    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void put_csv_value(FILE *to, enum parquet_type type, sqlite3_stmt *row, int column)
{
    char text[TEXT_MAX];

    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return;
    switch (type) {
    case PARQUET_BOOLEAN:
        fputs(sqlite3_column_int64(row, column) ? "true" : "false", to);
        break;
    case PARQUET_INT64:
        fprintf(to, "%" PRId64, (int64_t)sqlite3_column_int64(row, column));
        break;
    case PARQUET_DOUBLE:
        fprintf(to, "%.17g", sqlite3_column_double(row, column));
        break;
    case PARQUET_TEXT:
        put_csv_text(to,
                     text_plain((const char *)sqlite3_column_text(row, column), text, TEXT_MAX));
        break;
    }
}

static int write_csv(const struct table *table, sqlite3_stmt *row, FILE *to)
{
    int result;

    for (uint32_t i = 0; i < table->count; i++)
        fprintf(to, "%s%s", i ? "," : "", table->columns[i].name);
    fputs("\r\n", to);

    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        for (uint32_t i = 0; i < table->count; i++) {
            if (i > 0)
                fputc(',', to);
            put_csv_value(to, table->columns[i].type, row, (int)i);
        }
        fputs("\r\n", to);
    }

    return result;
}

/* --- Parquet ---------------------------------------------------------------------------------- */

static void put_parquet_value(struct parquet *file, enum parquet_type type, sqlite3_stmt *row,
                              int column)
{
    char text[TEXT_MAX];

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        parquet_null(file);
        return;
    }
    switch (type) {
    case PARQUET_BOOLEAN:
        parquet_boolean(file, sqlite3_column_int64(row, column) != 0);
        break;
    case PARQUET_INT64:
        parquet_int64(file, sqlite3_column_int64(row, column));
        break;
    case PARQUET_DOUBLE:
        parquet_double(file, sqlite3_column_double(row, column));
        break;
    case PARQUET_TEXT:
        parquet_text(file,
                     text_plain((const char *)sqlite3_column_text(row, column), text, TEXT_MAX));
        break;
    }
}

static int write_parquet(const struct table *table, sqlite3_stmt *row, FILE *to)
{
    struct parquet *file = parquet_begin(to, table->columns, table->count);
    int result = SQLITE_NOMEM;

    while (file && (result = sqlite3_step(row)) == SQLITE_ROW)
        for (uint32_t i = 0; i < table->count; i++)
            put_parquet_value(file, table->columns[i].type, row, (int)i);
    if (!parquet_end(&file) && result == SQLITE_DONE)
        result = SQLITE_NOMEM;

    return result;
}

bool tables_write(struct sqlite3 *db, int64_t run, const char *policy, enum tables_kind kind,
                  enum tables_format format, FILE *to, char *why, size_t why_bytes)
{
    const struct table *table = &tables[kind];
    sqlite3_stmt *rows = select_rows(db, table, run, policy, why, why_bytes);

    if (!rows)
        return false;

    const int result = format == TABLES_CSV ? write_csv(table, rows, to)
                                            : write_parquet(table, rows, to);
    if (result == SQLITE_NOMEM)
        snprintf(why, why_bytes, "out of memory");
    else if (result != SQLITE_DONE)
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(rows);

    return result == SQLITE_DONE;
}
