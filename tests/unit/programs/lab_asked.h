/* The test's own database, and queries of its contents.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAB_ASKED_H
#define COX_TESTS_LAB_ASKED_H

#include "lab/store/database.h"
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>

static char path[128];
static char why[640];

static inline sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;
    cr_assert(lab_store_open_to_read(path, &db, why, sizeof why), "%s", why);
    return db;
}

/* The answer to a query that returns one row, with '|' between the columns (static storage). */
static inline const char *ask(const char *sql)
{
    static char answer[1024];
    sqlite3 *db = open_db();
    sqlite3_stmt *statement = NULL;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    size_t at = 0;
    answer[0] = '\0';
    if (sqlite3_step(statement) == SQLITE_ROW)
        for (int c = 0; c < sqlite3_column_count(statement); c++) {
            const char *text = (const char *)sqlite3_column_text(statement, c);
            at += (size_t)snprintf(answer + at, sizeof answer - at, "%s%s", c ? "|" : "", text ? text : "NULL");
        }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

static inline void answers(const char *sql, const char *expected)
{
    const char *answer = ask(sql);
    cr_assert_str_eq(answer, expected, "%s: '%s' instead of '%s'", sql, answer, expected);
}

static inline void run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &error), SQLITE_OK, "%s: %s", sql, error);
    sqlite3_close(db);
}

static inline struct lab_store *open_store(void)
{
    struct lab_store *store = NULL;
    cr_assert(lab_store_open(path, &store, why, sizeof why), "%s", why);
    return store;
}

static inline void close_store(struct lab_store *store)
{
    cr_assert(lab_store_close(&store, why, sizeof why), "%s", why);
    cr_assert_null(store);
}

#endif
