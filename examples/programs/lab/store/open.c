/* Opening a session database: which files are refused, and with which sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"
#include "lab/texts.h"
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LENGTH_MAX: our rows and texts are far shorter; those of a hostile file may not be. */
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
    va_list args;

    int length = snprintf(refusal->why, refusal->bytes, "%s: ", refusal->path);
    if (length < 0 || (size_t)length >= refusal->bytes)
        return false;

    va_start(args, format);
    vsnprintf(refusal->why + length, refusal->bytes - (size_t)length, format, args);
    va_end(args);

    return false;
}

const char *lab__store_text(sqlite3 *db, int result)
{
    if ((sqlite3_errcode(db) & 0xff) == (result & 0xff))
        return sqlite3_errmsg(db);
    return sqlite3_errstr(result); /* a later call has replaced the message */
}

static bool refuse_because(const struct refusal *refusal, sqlite3 *db, int result)
{
    switch (result & 0xff) {
    case SQLITE_NOTADB:
        return refuse(refusal, "not an SQLite database");
    case SQLITE_CORRUPT:
        return refuse(refusal, "the database is damaged (%s)", sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return refuse(refusal, "another process is writing to it");
    case SQLITE_READONLY:
        return refuse(refusal, "cannot be written");
    case SQLITE_CANTOPEN:
        if (sqlite3_system_errno(db))
            return refuse(refusal, "cannot open: %s", strerror(sqlite3_system_errno(db)));

        return refuse(refusal, "cannot open");
    default:
        return refuse(refusal, "%s", lab__store_text(db, result));
    }
}

/* Run a query that answers one integer. */
static int query_number(sqlite3 *db, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement = NULL;

    *number = 0;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result != SQLITE_OK)
        return result;

    if (sqlite3_step(statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);

    return sqlite3_finalize(statement); /* with the error of the step */
}

/* Whether the table, index or view of the row `wanted` is in the database as it should be. `found`
 * looks it up. */
static bool check_object(sqlite3 *db, sqlite3_stmt *wanted, sqlite3_stmt *found,
                         const struct refusal *refusal)
{
    const char *fault = NULL;

    for (int column = 0; column < 3; column++)
        sqlite3_bind_value(found, column + 1, sqlite3_column_value(wanted, column));
    int step = sqlite3_step(found);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return refuse_because(refusal, db, step);

    if (step == SQLITE_DONE)
        fault = "missing";
    else if (!sqlite3_column_int(found, 0))
        fault = "different from schema.sql";
    sqlite3_reset(found);
    if (fault)
        return refuse(refusal, "the database is damaged (%s '%s' is %s)",
                      sqlite3_column_text(wanted, 0), sqlite3_column_text(wanted, 1), fault);

    return true;
}

/* Whether the database has every table, index and view of schema.sql, with the same text. There may
 * be others: people add views. */
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

    good = true;
    while (good && (result = sqlite3_step(wanted)) == SQLITE_ROW)
        good = check_object(db, wanted, found, refusal);
    if (good && result != SQLITE_DONE)
        good = refuse(refusal, "%s", sqlite3_errmsg(model));

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
        if (!text)
            text = "quick_check failed";
        if (!good)
            refuse(refusal, "the database is damaged (%.100s)", text);
    }

    sqlite3_finalize(statement);

    return good;
}

/* Make the schema in an empty file. If another process does the same, the first one wins. */
static bool make_schema(sqlite3 *db, const struct refusal *refusal)
{
    int64_t objects = 0;

    /* Readers of a growing file need the write-ahead log. Recording works without it, as on a
     * network's file system, so its failure does not matter. It cannot be changed inside a
     * transaction. */
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

    if (application == 0 && version == 0 && objects == 0) {
        if (to_read)
            return refuse(refusal, "nothing is recorded");

        return make_schema(db, refusal);
    }

    if (application != LAB_STORE_APPLICATION)
        return refuse(refusal, "is the database of another program");
    if (version != LAB_STORE_VERSION)
        return refuse(refusal,
                      "has session database version %lld; this program supports version %d",
                      (long long)version, LAB_STORE_VERSION);

    return true;
}

/* The path with its folder's links resolved; its last part is not resolved. NULL with errno
 * set. */
static char *resolve_folder(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = path;
    char *given = NULL, *whole = NULL;

    if (slash) {
        name = slash + 1;
        given = strndup(path, (size_t)(name - path)); /* with the slash: it may be the root */
    } else {
        given = strdup(".");
    }

    if (!given)
        return NULL;

    char *folder = realpath(given, NULL);
    if (folder && asprintf(&whole, "%s/%s", folder, name) < 0)
        whole = NULL;

    int error = errno;
    free(folder);
    free(given);
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
        return refuse(refusal, "is a symbolic link; use the file that it points to");
    if (S_ISDIR(about.st_mode))
        return refuse(refusal, "is a directory");
    if (!S_ISREG(about.st_mode))
        return refuse(refusal, "not a regular file");

    /* SQLite takes a file below its smallest page for an empty database, and would overwrite it. */
    if (about.st_size > 0 && about.st_size < SMALLEST_PAGE)
        return refuse(refusal, "not an SQLite database");

    return true;
}

/* A journal of a transaction over several databases ends with the name of a file, which SQLite
 * deletes after it has rolled the journal back. We leave no such journal. One that came with a
 * database from elsewhere may name any file of this user. */
static bool check_journal(const char *whole, const struct refusal *refusal)
{
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof mark] = {0};
    char *journal = NULL;
    struct stat about;

    if (asprintf(&journal, "%s-journal", whole) < 0)
        return refuse(refusal, "out of memory");

    int file = open(journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool none = file < 0 && errno == ENOENT;
    free(journal);
    if (none)
        return true;

    bool regular = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    if (regular && about.st_size >= (off_t)sizeof end)
        (void)!pread(file, end, sizeof end, about.st_size - (off_t)sizeof end);
    if (file >= 0)
        close(file);
    if (!regular)
        return refuse(refusal, "its journal is not a regular file, or cannot be read");
    if (memcmp(end, mark, sizeof end) == 0)
        return refuse(refusal, "its journal names another file");

    return true;
}

/* SQLite keeps a log next to the file, so the folder must be writable too. */
static bool check_folder(const char *whole, const struct refusal *refusal)
{
    char *folder = strdup(whole);

    if (!folder)
        return refuse(refusal, "out of memory");

    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';
    bool writable = euidaccess(folder, W_OK | X_OK) == 0;
    if (!writable)
        refuse(refusal, "cannot write to its folder: %s", strerror(errno));
    free(folder);

    return writable;
}

/* The path without links: SQLite's own refusal of links looks at every part of the path, so all but
 * the last are resolved first, and all of them to read. NULL after a refusal. */
static char *resolve(const char *path, bool to_read, const struct refusal *refusal)
{
    char *whole = NULL;

    if (to_read)
        whole = realpath(path, NULL);
    else
        whole = resolve_folder(path);
    if (!whole) {
        refuse(refusal, "%s", strerror(errno));
        return NULL;
    }

    if (!to_read && (!check_folder(whole, refusal) || !check_journal(whole, refusal))) {
        free(whole);
        return NULL;
    }

    return whole;
}

/* What a file from elsewhere may not do. */
static void restrict_connection(sqlite3 *db)
{
    sqlite3_busy_timeout(db, BUSY_MS);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
}

bool lab__store_connect(const char *path, bool to_read, sqlite3 **out, char *why, size_t why_bytes)
{
    const struct refusal refusal = {path, why, why_bytes};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
    sqlite3 *db = NULL;
    bool good = false;

    *out = NULL;
    if (to_read)
        flags = SQLITE_OPEN_READONLY;
    if (!*path)
        return refuse(&refusal, "the file name is empty");
    if (!check_file(path, to_read, &refusal))
        return false;

    char *whole = resolve(path, to_read, &refusal);
    if (!whole)
        return false;

    int result = sqlite3_open_v2(whole, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    free(whole);
    if (result != SQLITE_OK) {
        refuse_because(&refusal, db, result);
    } else {
        restrict_connection(db);
        if (!to_read && sqlite3_db_readonly(db, "main"))
            refuse(&refusal, "cannot be written");
        else
            good = check_identity(db, to_read, &refusal) && check_pages(db, &refusal) &&
                   check_schema(db, &refusal);
    }

    if (good)
        *out = db;
    else
        sqlite3_close(db);

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
