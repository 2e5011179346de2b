/* Opening a session database: what is refused, and with which words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "writers.h"

#include "common/outfile.h"
#include "lab/texts.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A row or a text of ours is far below this; a file made to do harm may hold larger ones. */
enum { LENGTH_MAX = 1 << 24, BUSY_MS = 5000, SMALLEST_PAGE = 512 };

/* Why a path cannot be opened. */
struct refusal {
    const char *path;
    char *why;
    size_t bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct refusal *refusal,
                                                         const char *format, ...)
{
    int length = snprintf(refusal->why, refusal->bytes, "%s: ", refusal->path);
    if (length < 0 || (size_t)length >= refusal->bytes)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(refusal->why + length, refusal->bytes - (size_t)length, format, args);
    va_end(args);
    return false;
}

static bool refuse_because(const struct refusal *refusal, sqlite3 *db, int result)
{
    switch (result & 0xff) {
    case SQLITE_NOTADB:
        return refuse(refusal, "it is no SQLite database");
    case SQLITE_CORRUPT:
        return refuse(refusal, "the database is damaged (%s)", sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return refuse(refusal, "another process is writing it");
    case SQLITE_READONLY:
        return refuse(refusal, "it cannot be written");
    case SQLITE_CANTOPEN: {
        int system = db ? sqlite3_system_errno(db) : 0;
        return refuse(refusal, "it cannot be opened%s%s", system ? ": " : "",
                      system ? strerror(system) : "");
    }
    default:
        return refuse(refusal, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(result));
    }
}

/* Run a query whose answer is one integer. */
static int query_number(sqlite3 *db, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
        *number = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
        if (result == SQLITE_ROW || result == SQLITE_DONE)
            result = SQLITE_OK;
    }
    int end = sqlite3_finalize(statement);
    return result == SQLITE_OK ? end : result;
}

/* Whether every table, index and view of ours is there as schema.sql says. Others may be there too: people
 * add views. */
static bool check_schema(sqlite3 *db, const struct refusal *refusal)
{
    sqlite3 *model = NULL;
    sqlite3_stmt *wanted = NULL, *found = NULL;
    bool good = false;
    if (sqlite3_open(":memory:", &model) != SQLITE_OK ||
        sqlite3_exec(model, lab_text("schema.sql"), NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(model, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
                           -1, &wanted, NULL)) {
        refuse(refusal, "%s", sqlite3_errmsg(model));
        goto end;
    }
    int result =
        sqlite3_prepare_v2(db, "SELECT sql = ?3 FROM sqlite_master WHERE type = ?1 AND name = ?2",
                           -1, &found, NULL);
    if (result != SQLITE_OK) {
        refuse_because(refusal, db, result);
        goto end;
    }
    while ((result = sqlite3_step(wanted)) == SQLITE_ROW) {
        for (int column = 0; column < 3; column++)
            sqlite3_bind_value(found, column + 1, sqlite3_column_value(wanted, column));
        int step = sqlite3_step(found);
        if (step != SQLITE_ROW && step != SQLITE_DONE) {
            refuse_because(refusal, db, step);
            goto end;
        }
        if (step == SQLITE_DONE || !sqlite3_column_int(found, 0)) {
            refuse(refusal, "the database is damaged (%s '%s' is %s)",
                   sqlite3_column_text(wanted, 0), sqlite3_column_text(wanted, 1),
                   step == SQLITE_DONE ? "missing" : "not what it should be");
            goto end;
        }
        sqlite3_reset(found);
    }
    good = result == SQLITE_DONE || refuse(refusal, "%s", sqlite3_errmsg(model));
end:
    sqlite3_finalize(wanted);
    sqlite3_finalize(found);
    sqlite3_close(model);
    return good;
}

static bool check_pages(sqlite3 *db, const struct refusal *refusal)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    bool good = false;
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result != SQLITE_ROW) {
        refuse_because(refusal, db, result);
    } else {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        good = text && strcmp(text, "ok") == 0;
        if (!good)
            refuse(refusal, "the database is damaged (%.100s)",
                   text ? text : "no answer to quick_check");
    }
    sqlite3_finalize(statement);
    return good;
}

/* Make the schema in an empty file. Another process may be at it too: the first one does it. */
static bool make_schema(sqlite3 *db, const struct refusal *refusal)
{
    int64_t objects = 0;
    /* A reader of a file that grows needs the write-ahead log; where it cannot be (a network's file system) the file
     * can still be recorded, so the answer does not matter. It cannot be changed inside a transaction. */
    int result = sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = query_number(db, "SELECT count(*) FROM sqlite_master", &objects);
    if (result == SQLITE_OK && objects == 0)
        result = sqlite3_exec(db, lab_text("schema.sql"), NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return result == SQLITE_OK || refuse_because(refusal, db, result);
}

/* Whose database it is. An empty file gets our schema. */
static bool check_identity(sqlite3 *db, bool to_read, const struct refusal *refusal)
{
    int64_t application = 0, version = 0, objects = 0;

    int result = query_number(db, "PRAGMA application_id", &application);
    if (result == SQLITE_OK)
        result = query_number(db, "PRAGMA user_version", &version);
    if (result == SQLITE_OK)
        result = query_number(db, "SELECT count(*) FROM sqlite_master", &objects);
    if (result != SQLITE_OK)
        return refuse_because(refusal, db, result);

    if (application == 0 && version == 0 && objects == 0)
        return to_read ? refuse(refusal, "nothing is recorded in it") : make_schema(db, refusal);
    if (application != LAB_STORE_APPLICATION)
        return refuse(refusal, "it is the database of another program");
    if (version != LAB_STORE_VERSION)
        return refuse(refusal,
                      "it is a session database of version %lld, this program knows version %d",
                      (long long)version, LAB_STORE_VERSION);

    return true;
}

/* The path with its folder's links resolved; its last part is left as it is. NULL with errno set. */
static char *resolve_folder(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return NULL;
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    if (slash)
        *slash = '\0';
    char *folder = realpath(!slash ? "." : *copy ? copy : "/", NULL);
    char *whole = NULL;
    if (folder) {
        size_t bytes = strlen(folder) + strlen(name) + 2;
        whole = malloc(bytes);
        if (whole)
            snprintf(whole, bytes, "%s/%s", folder, name);
    }
    int error = errno;
    free(folder);
    free(copy);
    errno = error;
    return whole;
}

static bool check_file(const char *path, bool to_read, const struct refusal *refusal)
{
    struct stat about;
    if ((to_read ? stat : lstat)(path, &about) != 0) {
        if (errno == ENOENT && !to_read)
            return true;
        return refuse(refusal, "%s", strerror(errno));
    }
    if (S_ISLNK(about.st_mode))
        return refuse(refusal, "it is a symbolic link; give the file that it points to");
    if (S_ISDIR(about.st_mode))
        return refuse(refusal, "it is a directory");
    if (!S_ISREG(about.st_mode))
        return refuse(refusal, "it is no regular file");
    /* SQLite takes less than its smallest page for an empty database, and would write over it. */
    if (about.st_size > 0 && about.st_size < SMALLEST_PAGE)
        return refuse(refusal, "it is no SQLite database");
    return true;
}

/* A journal left by a transaction over several databases ends with the name of a file, which SQLite deletes once it has
 * rolled the journal back. Nothing of ours leaves such a one; one that came along with a database from elsewhere may
 * name any file of this user. */
static bool check_journal(const char *whole, const struct refusal *refusal)
{
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof mark] = {0};
    char *journal = NULL;
    struct stat about;
    if (asprintf(&journal, "%s-journal", whole) < 0)
        return refuse(refusal, "out of memory");
    int file = open(journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool regular = file >= 0 ? fstat(file, &about) == 0 && S_ISREG(about.st_mode) : errno == ENOENT;
    free(journal);
    if (file >= 0) {
        if (regular && about.st_size >= (off_t)sizeof end)
            (void)!pread(file, end, sizeof end, about.st_size - (off_t)sizeof end);
        close(file);
    }
    if (!regular)
        return refuse(refusal, "the journal beside it is no regular file, or cannot be read");
    return memcmp(end, mark, sizeof end) != 0 ||
           refuse(refusal, "the journal beside it names another file");
}

/* SQLite keeps a log beside the file, so the folder must be writable too. */
static bool check_folder(const char *whole, const struct refusal *refusal)
{
    char *folder = strdup(whole);
    if (!folder)
        return refuse(refusal, "out of memory");
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';
    bool writable = euidaccess(folder, W_OK | X_OK) == 0;
    if (!writable)
        refuse(refusal, "its folder cannot be written: %s", strerror(errno));
    free(folder);
    return writable;
}

bool lab__store_connect(const char *path, bool to_read, sqlite3 **out, char *why, size_t why_bytes)
{
    struct refusal refusal = {path, why, why_bytes};
    *out = NULL;
    if (!*path)
        return refuse(&refusal, "a file's name is needed");
    if (!check_file(path, to_read, &refusal))
        return false;
    /* SQLite's own refusal of links is about every part of the path: resolve all but the last. */
    char *whole = to_read ? realpath(path, NULL) : resolve_folder(path);
    if (!whole)
        return refuse(&refusal, "%s", strerror(errno));
    if (!to_read && (!check_folder(whole, &refusal) || !check_journal(whole, &refusal))) {
        free(whole);
        return false;
    }
    sqlite3 *db = NULL;
    int flags = to_read ? SQLITE_OPEN_READONLY
                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
    int result = sqlite3_open_v2(whole, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    free(whole);
    bool good = false;
    if (result != SQLITE_OK) {
        refuse_because(&refusal, db, result);
        goto end;
    }
    sqlite3_busy_timeout(db, BUSY_MS);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (!to_read && sqlite3_db_readonly(db, "main")) {
        refuse(&refusal, "it cannot be written");
        goto end;
    }
    good = check_identity(db, to_read, &refusal) && check_pages(db, &refusal) &&
           check_schema(db, &refusal);
end:
    if (!good) {
        sqlite3_close(db);
        db = NULL;
    }
    *out = db;
    return good;
}

bool lab_store_open_to_read(const char *path, struct sqlite3 **out, char *why, size_t why_bytes)
{
    return lab__store_connect(path, true, out, why, why_bytes);
}

bool lab_store_is_part(const char *database, const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char beside[PATH_MAX + 16];
        snprintf(beside, sizeof beside, "%s%s", database, endings[i]);
        if (outfile_same_place(beside, path))
            return true;
    }
    return false;
}
