/* What cox-lab replay makes of a session database that somebody has made up: no crash, one sentence of complaint, and what is
 * accepted can be simulated and asked again.
 *
 * SQLite reads its files well enough; what is hostile here are the rows. A line is one row: the table's name and the values of
 * its columns in order, with '|' between. Digits are an integer, digits with a point or an exponent a real number, nothing is
 * NULL, anything else is text. CHECK constraints are off: a file can be changed behind SQLite's back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab_replay.h"
#include "lab_texts.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES_MAX = 32, COLUMNS_MAX = 32, BYTES_MAX = 8192, FRAMES_MAX = 12, ROWS_MAX = 128, SESSIONS_MAX = 4 };

#define CHECK(x)     \
    do {             \
        if (!(x))    \
            abort(); \
    } while (0)

static sqlite3 *db;
static struct {
    sqlite3_stmt *insert, *empty;
    char name[32];
    int columns;
    bool used;
} tables[TABLES_MAX];
static int table_count;

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
    return statement;
}

static int columns_of(const char *table)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    sqlite3_stmt *statement = prepare(sql);
    int count = sqlite3_column_count(statement);
    sqlite3_finalize(statement);
    return count;
}

static void add_table(const char *name)
{
    char sql[256];
    CHECK(table_count < TABLES_MAX && strlen(name) < sizeof tables->name);
    int t = table_count++, columns = columns_of(name);
    CHECK(columns <= COLUMNS_MAX);
    strcpy(tables[t].name, name);
    tables[t].columns = columns;
    int used = snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO %s VALUES(?", name);
    for (int c = 1; c < columns; c++)
        used += snprintf(sql + used, sizeof sql - (size_t)used, ",?");
    snprintf(sql + used, sizeof sql - (size_t)used, ")");
    tables[t].insert = prepare(sql);
    snprintf(sql, sizeof sql, "DELETE FROM %s", name);
    tables[t].empty = prepare(sql);
}

static void make_database(void)
{
    const struct lab_text *schema = lab_texts;
    while (schema->name && strcmp(schema->name, "lab_schema.sql") != 0)
        schema++;
    CHECK(schema->name && sqlite3_open(":memory:", &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, schema->text, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_stmt *names = prepare("SELECT name FROM sqlite_master WHERE type = 'table'");
    while (sqlite3_step(names) == SQLITE_ROW)
        add_table((const char *)sqlite3_column_text(names, 0));
    sqlite3_finalize(names);
}

static void bind_value(sqlite3_stmt *statement, int column, const char *value)
{
    size_t length = strlen(value), number = strspn(value, "+-.0123456789eE");
    char *end = NULL;
    double real = length && number == length ? strtod(value, &end) : 0;
    if (!length)
        sqlite3_bind_null(statement, column);
    else if (!end || *end || end == value)
        sqlite3_bind_text(statement, column, value, (int)length, SQLITE_TRANSIENT);
    else if (strpbrk(value, ".eE"))
        sqlite3_bind_double(statement, column, real);
    else
        sqlite3_bind_int64(statement, column, strtoll(value, NULL, 10));
}

static void insert_row(char *line)
{
    char *rest = strchr(line, '|');
    int t = 0;
    if (!rest)
        return;
    *rest++ = 0;
    while (t < table_count && strcmp(tables[t].name, line) != 0)
        t++;
    if (t == table_count)
        return;
    sqlite3_clear_bindings(tables[t].insert);
    for (int c = 1; c <= tables[t].columns && rest; c++) {
        char *next = strchr(rest, '|');
        if (next)
            *next++ = 0;
        bind_value(tables[t].insert, c, rest);
        rest = next;
    }
    (void)sqlite3_step(tables[t].insert);
    (void)sqlite3_reset(tables[t].insert);
    tables[t].used = true;
}

static void check_why(const char *why, size_t bytes)
{
    CHECK(*why && memchr(why, 0, bytes));
}

static void check_session(const struct lab_replay_data *data, const struct lab_replay_session *session)
{
    CHECK(memchr(session->policy, 0, sizeof session->policy));
    for (size_t f = 0; f < session->frame_count; f++) {
        const struct lab_replay_frame *frame = &session->frames[f];
        CHECK(f == 0 || frame->frame > session->frames[f - 1].frame);
        CHECK(frame->first_band <= session->band_count);
        CHECK(frame->band_count <= session->band_count - frame->first_band);
    }
    for (size_t b = 0; b < session->band_count; b++)
        CHECK(session->bands[b].device < data->device_count && session->bands[b].rows > 0);
    CHECK(session->options.ratio_count <= COX_DEVICES_MAX);
}

/* By the policy that was recorded, and by the oracle. */
static void simulate(const struct lab_replay_data *data, const struct lab_replay_session *session)
{
    struct lab_sim_frame frames[FRAMES_MAX];
    struct lab_sim_options options;
    struct lab_replay *replay;
    struct cox_policy policy;
    char why[400] = "";
    if (session->frame_count && session->frames[session->frame_count - 1].frame >= FRAMES_MAX)
        return;
    if (!lab_replay_create(data, session, &replay, why, sizeof why)) {
        CHECK(!replay);
        check_why(why, sizeof why);
        return;
    }
    bool small = true;
    for (uint64_t f = 0; f < replay->world.frames; f++)
        small = small && replay->rows[f] <= ROWS_MAX;
    lab_replay_options(replay, &options);
    bool known = lab_replay_policy(session->policy, &policy);
    for (int p = 0; p < 2 && small; p++)
        if (p == 0 || known)
            (void)lab_simulate(&replay->world, p ? &policy : NULL, &options, 0, frames, why, sizeof why);
    lab_replay_destroy(&replay);
}

static void ask_again(const struct lab_replay_session *session)
{
    struct lab_replay_decisions decisions;
    struct cox_policy policy;
    char why[400] = "";
    if (!lab_replay_policy(session->policy, &policy))
        return;
    if (!lab_replay_decide(db, session, &policy, &decisions, why, sizeof why))
        check_why(why, sizeof why);
    else
        CHECK(memchr(decisions.recorded, 0, sizeof decisions.recorded));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lab_replay_data *run;
    char text[BYTES_MAX + 1], why[400] = "";
    if (size > BYTES_MAX)
        return 0;
    if (!db)
        make_database();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    CHECK(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK);
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] != 0);
        line[length] = 0;
        insert_row(line);
        line = next;
    }
    CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    if (lab_replay_read(db, 0, &run, why, sizeof why)) {
        CHECK(run->device_count <= COX_DEVICES_MAX && run->rows >= 1 && run->granule >= 1);
        for (size_t s = 0; s < run->session_count; s++)
            check_session(run, &run->sessions[s]);
        for (size_t s = 0; s < run->session_count && s < SESSIONS_MAX; s++) {
            simulate(run, &run->sessions[s]);
            ask_again(&run->sessions[s]);
        }
        lab_replay_free(&run);
    } else {
        check_why(why, sizeof why);
    }
    CHECK(!run);
    for (int t = 0; t < table_count; t++) {
        if (!tables[t].used)
            continue;
        CHECK(sqlite3_step(tables[t].empty) == SQLITE_DONE);
        sqlite3_reset(tables[t].empty);
        tables[t].used = false;
    }
    return 0;
}
