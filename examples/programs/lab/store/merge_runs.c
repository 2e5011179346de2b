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

/* Why the merge fails: the first error. Later calls replace SQLite's. */
struct reason {
    char text[256];
};

static bool fail(const struct lab_store *store, int result, struct reason *reason)
{
    if (!reason->text[0])
        snprintf(reason->text, sizeof reason->text, "%s", lab__store_text(store->db, result));
    return false;
}

static bool run_sql(const struct lab_store *store, const char *sql, struct reason *reason)
{
    const int result = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return result == SQLITE_OK || fail(store, result, reason);
}

/* Set `number` to what a query answers. */
static bool ask_number(const struct lab_store *store, const char *sql, int64_t *number,
                       struct reason *reason)
{
    sqlite3_stmt *statement = NULL;

    int result = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    else
        fail(store, result, reason);
    sqlite3_finalize(statement);

    return result == SQLITE_ROW;
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
                        char sql[SQL_BYTES], struct reason *reason)
{
    char names[SQL_BYTES / 4] = "", values[SQL_BYTES / 2] = "", ask[256];
    size_t named = 0, valued = 0;
    sqlite3_stmt *columns = NULL;
    const char *comma = "", *ignore = "";

    snprintf(ask, sizeof ask, "SELECT name FROM pragma_table_info('%s', 'main')", table);
    int result = sqlite3_prepare_v2(store->db, ask, -1, &columns, NULL);
    if (result != SQLITE_OK)
        return fail(store, result, reason);

    while ((result = sqlite3_step(columns)) == SQLITE_ROW && named < sizeof names &&
           valued < sizeof values) {
        const char *name = (const char *)sqlite3_column_text(columns, 0);

        named += (size_t)snprintf(names + named, sizeof names - named, "%s\"%s\"", comma, name);
        valued += (size_t)snprintf(values + valued, sizeof values - valued, "%s\"%s\"", comma,
                                   name);
        comma = ", ";
        if (shift_of(shift, name) && valued < sizeof values)
            valued += (size_t)snprintf(values + valued, sizeof values - valued, " + %lld",
                                       (long long)shift_of(shift, name));
    }

    if (result != SQLITE_DONE && result != SQLITE_ROW)
        fail(store, result, reason);
    sqlite3_finalize(columns);
    if (result == SQLITE_ROW || !named)
        snprintf(reason->text, sizeof reason->text, "the columns of table %.100s are unknown",
                 table);

    /* Both databases have the same reasons. */
    if (strcmp(table, "reason") == 0)
        ignore = "OR IGNORE ";
    snprintf(sql, SQL_BYTES, "INSERT %sINTO main.\"%s\"(%s) SELECT %s FROM other.\"%s\"", ignore,
             table, names, values, table);

    return !reason->text[0];
}

static bool copy_tables(const struct lab_store *store, const struct shift *shift,
                        struct reason *reason)
{
    static const char both[] =
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "AND name IN (SELECT name FROM other.sqlite_master WHERE type = 'table')";
    char sql[SQL_BYTES];
    sqlite3_stmt *tables = NULL;

    bool good = true;
    int result = sqlite3_prepare_v2(store->db, both, -1, &tables, NULL);
    while (good && tables && (result = sqlite3_step(tables)) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);

        good = make_insert(store, table, shift, sql, reason) && run_sql(store, sql, reason);
    }

    if (good && result != SQLITE_DONE)
        good = fail(store, result, reason);
    sqlite3_finalize(tables);

    return good;
}

static bool attach(const struct lab_store *store, const char *path, struct reason *reason)
{
    sqlite3_stmt *statement = NULL;

    int result = sqlite3_prepare_v2(store->db, "ATTACH ? AS other", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = lab__store_step(statement, "t", path);
    if (result != SQLITE_DONE)
        fail(store, result, reason);
    sqlite3_finalize(statement);

    return result == SQLITE_DONE;
}

/* With `other` attached: all of it, or nothing. */
static bool copy_all(const struct lab_store *store, int64_t *added, struct reason *reason)
{
    static const char runs[] = "SELECT ifnull(max(run), 0) FROM main.run";
    static const char sessions[] = "SELECT ifnull(max(session), 0) FROM main.session";
    struct shift shift;

    return ask_number(store, runs, &shift.runs, reason) &&
           ask_number(store, sessions, &shift.sessions, reason) &&
           ask_number(store, "SELECT count(*) FROM other.run", added, reason) &&
           run_sql(store, "BEGIN IMMEDIATE", reason) && copy_tables(store, &shift, reason) &&
           run_sql(store, "COMMIT", reason);
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
    struct reason reason = {""}, ignored = {""};

    /* SQLite has names that mean no file, and the connection follows no links. */
    if (!realpath(from, path)) {
        snprintf(why, why_bytes, "%s: cannot open: %s", from, strerror(errno));
        return false;
    }

    const bool attached = attach(store, path, &reason);
    const bool good = attached && copy_all(store, added, &reason);
    if (!good)
        snprintf(why, why_bytes, "%s: %s", from, reason.text);
    if (!sqlite3_get_autocommit(store->db))
        run_sql(store, "ROLLBACK", &ignored);
    if (attached)
        run_sql(store, "DETACH other", &ignored);

    return good;
}
