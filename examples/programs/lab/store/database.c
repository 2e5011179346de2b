/* The database while it is recorded: opening, closing and transactions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The write-ahead log goes into the file at the end of a run, or after this number of pages. */
enum { CHECKPOINT_PAGES = 4000 };

static int bind_known(sqlite3_stmt *statement, int place, int64_t value)
{
    if (value < 0)
        return sqlite3_bind_null(statement, place);

    return sqlite3_bind_int64(statement, place, value);
}

static int vstep(sqlite3_stmt *statement, const char *types, va_list values)
{
    int result = SQLITE_OK;

    for (int place = 1; *types && result == SQLITE_OK; types++, place++) {
        switch (*types) {
        case 'i':
            result = sqlite3_bind_int64(statement, place, va_arg(values, int64_t));
            break;
        case 'k':
            result = bind_known(statement, place, va_arg(values, int64_t));
            break;
        case 'r': /* SQLite makes NULL of NaN */
            result = sqlite3_bind_double(statement, place, va_arg(values, double));
            break;
        default: /* 't' */
            result = sqlite3_bind_text(statement, place, va_arg(values, const char *), -1,
                                       SQLITE_STATIC);
            break;
        }
    }

    if (result == SQLITE_OK)
        result = sqlite3_step(statement);

    int reset = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (reset != SQLITE_OK)
        return reset;

    return result;
}

int lab__store_step(sqlite3_stmt *statement, const char *types, ...)
{
    va_list values;

    va_start(values, types);
    int result = vstep(statement, types, values);
    va_end(values);

    return result;
}

void lab__store_ratios_text(const double *ratios, uint32_t count, char *text, size_t bytes)
{
    size_t at = 1;

    snprintf(text, bytes, "[");
    if (count > COX_DEVICES_MAX)
        count = COX_DEVICES_MAX;
    for (uint32_t r = 0; r < count && at < bytes; r++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%.17g", r ? "," : "", ratios[r]);

    if (at < bytes)
        snprintf(text + at, bytes - at, "]");
}

void lab__store_fail(struct lab_store *store, const char *what)
{
    if (store->error[0])
        return;

    snprintf(store->error, sizeof store->error, "%s: %s", store->path, what);
    if (store->writing && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->writing = false;
}

void lab__store_check(struct lab_store *store, int result)
{
    if (result == SQLITE_DONE || result == SQLITE_OK)
        return;

    if ((result & 0xff) == SQLITE_BUSY)
        lab__store_fail(store, "another process is writing to it");
    else
        lab__store_fail(store, lab__store_text(store->db, result));
}

bool lab__store_writing(struct lab_store *store)
{
    if (store->error[0])
        return false;
    if (!store->writing) {
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_BEGIN], ""));

        store->writing = !store->error[0];
        store->since_ns = now_ns();
        store->frames = 0;
    }

    return store->writing;
}

void lab__store_put(struct lab_store *store, enum lab_statement statement, const char *types, ...)
{
    va_list values;

    if (!lab__store_writing(store))
        return;

    va_start(values, types);
    lab__store_check(store, vstep(store->sql[statement], types, values));
    va_end(values);
}

void lab__store_end(struct lab_store *store)
{
    if (store->error[0] || !store->writing)
        return;
    lab__store_check(store, lab__store_step(store->sql[LAB_SQL_COMMIT], ""));
    store->writing = false;
}

static bool prepare(struct lab_store *store)
{
    static const char *const texts[] = {
#define TEXT(name, text) (text),
        LAB_SQL_MAP(TEXT)
#undef TEXT
    };

    for (int i = 0; i < LAB_STATEMENTS; i++)
        if (sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &store->sql[i],
                               NULL))
            return false;

    return true;
}

static void finalize(struct lab_store *store)
{
    for (int i = 0; i < LAB_STATEMENTS; i++) {
        sqlite3_finalize(store->sql[i]);
        store->sql[i] = NULL;
    }
}

static void write_reasons(struct lab_store *store)
{
    static const int reasons[] = {
#define REASON_VALUE(name, value, text) value,
        COX_REASON_MAP(REASON_VALUE)
#undef REASON_VALUE
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        lab__store_put(store, LAB_SQL_REASON, "it", (int64_t)reasons[i],
                       cox_reason_text((enum cox_reason)reasons[i]));
    lab__store_end(store);
}

/* One program records into a file at a time: two would wait for each other between their frames.
 * The lock ends with the process. If the file system has no locks, SQLite's own must do. */
static bool lock(struct lab_store *store, char *why, size_t why_bytes)
{
    store->lock = open(store->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (store->lock < 0 || flock(store->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true;
    snprintf(why, why_bytes, "%s: another process is recording to it; use another -o", store->path);
    return false;
}

void lab__store_free(struct lab_store *store)
{
    while (store->sessions) {
        struct lab_session *session = store->sessions;
        store->sessions = session->next;
        free(session->phases);
        free(session);
    }

    finalize(store);
    sqlite3_close(store->db);
    /* After SQLite: closing a file gives up all locks that the process has on it. */
    if (store->lock >= 0)
        close(store->lock);

    pthread_mutex_destroy(&store->mutex);
    free(store->phases);
    free(store->fills);
    free(store->writes);
    free(store->path);
    free(store);
}

static bool open_store(const char *path, bool alone, struct lab_store **out, char *why,
                       size_t why_bytes)
{
    *out = NULL;
    struct lab_store *store = calloc(1, sizeof *store);
    if (!store) {
        snprintf(why, why_bytes, "%s: out of memory", path);
        return false;
    }

    pthread_mutex_init(&store->mutex, NULL);
    store->lock = -1;
    store->beside = !alone;
    store->path = strdup(path);
    store->fills = malloc(LAB_QUEUE_BYTES);
    store->writes = malloc(LAB_QUEUE_BYTES);
    if (!store->path || !store->fills || !store->writes) {
        snprintf(why, why_bytes, "%s: out of memory", path);
        goto fail;
    }

    if (!lab__store_connect(path, false, &store->db, why, why_bytes) ||
        (alone && !lock(store, why, why_bytes)))
        goto fail;

    /* A commit hands the data to the system, which outlives this process. Waiting for the disk
     * would stop the recording thread. */
    if (sqlite3_exec(store->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", NULL,
                     NULL, NULL) ||
        sqlite3_wal_autocheckpoint(store->db, CHECKPOINT_PAGES) || !prepare(store)) {
        snprintf(why, why_bytes, "%s: %s", path, sqlite3_errmsg(store->db));
        goto fail;
    }

    write_reasons(store);
    if (store->error[0]) {
        snprintf(why, why_bytes, "%s", store->error);
        goto fail;
    }

    *out = store;
    return true;

fail:
    lab__store_free(store);

    return false;
}

bool lab_store_open(const char *path, struct lab_store **out, char *why, size_t why_bytes)
{
    return open_store(path, true, out, why, why_bytes);
}

bool lab_store_open_beside(const char *path, struct lab_store **out, char *why, size_t why_bytes)
{
    return open_store(path, false, out, why, why_bytes);
}

const char *lab_store_error(const struct lab_store *store)
{
    if (!store->error[0])
        return NULL;

    return store->error;
}

void lab__store_settle(struct lab_store *store)
{
    /* One file without companions can be copied, and read where nothing can be written. This fails
     * while others have it open, which does not matter. */
    finalize(store);
    if (store->error[0] || store->beside)
        return;

    const int result = sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    if ((result & 0xff) != SQLITE_BUSY && (result & 0xff) != SQLITE_LOCKED)
        lab__store_check(store, result);
}
