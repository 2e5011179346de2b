/* Appends the runs of one database to another: every row of each table, with the numbers of runs
 * and sessions moved behind those that are there. For `cox-lab merge`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES = 4096 };

/* How far the numbers of runs and sessions move. */
struct shift {
    int64_t runs, sessions;
};

static bool run_sql(const struct lab_store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The number that a query answers; -1 if it fails. */
static int64_t number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);

    return number;
}

static int64_t shift_of(const struct shift *shift, const char *column)
{
    if (strcmp(column, "run") == 0)
        return shift->runs;
    if (strcmp(column, "session") == 0)
        return shift->sessions;

    return 0;
}

/* "INSERT INTO main.TABLE(...) SELECT ..." with the numbers moved. */
static bool make_insert(const struct lab_store *store, const char *table, const struct shift *shift,
                        char sql[SQL_BYTES])
{
    char names[SQL_BYTES / 4] = "", values[SQL_BYTES / 2] = "", ask[256];
    size_t named = 0, valued = 0;
    sqlite3_stmt *columns = NULL;
    const char *comma = "", *ignore = "";

    snprintf(ask, sizeof ask, "SELECT name FROM pragma_table_info('%s', 'main')", table);
    if (sqlite3_prepare_v2(store->db, ask, -1, &columns, NULL) != SQLITE_OK)
        return false;

    while (sqlite3_step(columns) == SQLITE_ROW && named < sizeof names && valued < sizeof values) {
        const char *name = (const char *)sqlite3_column_text(columns, 0);

        named += (size_t)snprintf(names + named, sizeof names - named, "%s\"%s\"", comma, name);
        valued += (size_t)snprintf(values + valued, sizeof values - valued, "%s\"%s\"", comma,
                                   name);
        comma = ", ";
        if (shift_of(shift, name) && valued < sizeof values)
            valued += (size_t)snprintf(values + valued, sizeof values - valued, " + %lld",
                                       (long long)shift_of(shift, name));
    }

    sqlite3_finalize(columns);

    /* Both databases have the same reasons. */
    if (strcmp(table, "reason") == 0)
        ignore = "OR IGNORE ";
    snprintf(sql, SQL_BYTES, "INSERT %sINTO main.\"%s\"(%s) SELECT %s FROM other.\"%s\"", ignore,
             table, names, values, table);

    return named && named < sizeof names && valued < sizeof values;
}

static bool copy_tables(const struct lab_store *store, const struct shift *shift)
{
    static const char both[] =
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "AND name IN (SELECT name FROM other.sqlite_master WHERE type = 'table')";
    char sql[SQL_BYTES];
    sqlite3_stmt *tables = NULL;

    bool good = sqlite3_prepare_v2(store->db, both, -1, &tables, NULL) == SQLITE_OK;
    while (good && sqlite3_step(tables) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);

        good = make_insert(store, table, shift, sql) && run_sql(store, sql);
    }

    sqlite3_finalize(tables);

    return good;
}

static bool attach(const struct lab_store *store, const char *path)
{
    sqlite3_stmt *statement = NULL;

    int result = sqlite3_prepare_v2(store->db, "ATTACH ? AS other", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = lab__store_step(statement, "t", path);
    sqlite3_finalize(statement);

    return result == SQLITE_DONE;
}

/* With `other` attached: all of it, or nothing. */
static bool copy_all(const struct lab_store *store, int64_t *added)
{
    const struct shift shift = {
        .runs = number_of(store->db, "SELECT ifnull(max(run), 0) FROM main.run"),
        .sessions = number_of(store->db, "SELECT ifnull(max(session), 0) FROM main.session"),
    };

    *added = number_of(store->db, "SELECT count(*) FROM other.run");
    if (shift.runs < 0 || shift.sessions < 0 || *added < 0)
        return false;

    return run_sql(store, "BEGIN IMMEDIATE") && copy_tables(store, &shift) &&
           run_sql(store, "COMMIT");
}

/* Rows of a run or session that does not exist would later belong to another one of its number. */
static bool check_owners(sqlite3 *db, const char *from, char *why, size_t why_bytes)
{
    sqlite3_stmt *orphans = NULL;

    int result = sqlite3_prepare_v2(db, "PRAGMA foreign_key_check", -1, &orphans, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(orphans);
    if (result == SQLITE_ROW)
        snprintf(why, why_bytes, "%s: the database is damaged (rows of '%s' without their '%s')",
                 from, (const char *)sqlite3_column_text(orphans, 0),
                 (const char *)sqlite3_column_text(orphans, 2));
    else if (result != SQLITE_DONE)
        snprintf(why, why_bytes, "%s: %s", from, sqlite3_errmsg(db));
    sqlite3_finalize(orphans);

    return result == SQLITE_DONE;
}

bool lab_store_may_merge(const char *from, const char *to, char *why, size_t why_bytes)
{
    sqlite3 *db;

    if (!lab_store_open_to_read(from, &db, why, why_bytes))
        return false;

    const bool good = check_owners(db, from, why, why_bytes);
    sqlite3_close(db);
    if (!good)
        return false;

    if (lab_store_is_part(to, from)) {
        snprintf(why, why_bytes, "%s: is both an input and the output of the merge", from);
        return false;
    }

    return true;
}

bool lab_store_merge(struct lab_store *store, const char *from, int64_t *added, char *why,
                     size_t why_bytes)
{
    char path[PATH_MAX];

    /* SQLite has names that mean no file, and the connection follows no links. */
    if (!realpath(from, path)) {
        snprintf(why, why_bytes, "%s: cannot open: %s", from, strerror(errno));
        return false;
    }

    const bool attached = attach(store, path);
    const bool good = attached && copy_all(store, added);
    if (!good)
        snprintf(why, why_bytes, "%s: %s", from, sqlite3_errmsg(store->db));
    if (!sqlite3_get_autocommit(store->db))
        run_sql(store, "ROLLBACK");
    if (attached)
        run_sql(store, "DETACH other");

    return good;
}
