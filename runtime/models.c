/* What sessions measured of their devices, kept from run to run.
 *
 * Each call opens the database, does one transaction and closes it: nothing is held between sessions, so any number of
 * threads and processes may come and go. A reader opens the file for reading only, so that a directory that cannot be
 * written (a read-only medium, a home that is shared) serves as well. The journal is SQLite's ordinary one: write-ahead
 * logging would need to write for reading.
 *
 * The file is never opened but by SQLite, whose locks a close() in the same process would drop; that is why it is
 * created with mknod.
 *
 * A reader meets a hot journal where a writer died half-way; it then finds nothing, and the next writer rolls it back.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "models.h"
#include "private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool in_range(double value, double least, double most)
{
    return value >= least && value <= most; /* false for NaN */
}

bool cox__models_plausible(const struct cox_device_model *models, uint32_t count)
{
    static const double a_day_ns = 86400e9;
    double shares = 0;
    bool any = false;
    for (uint32_t d = 0; d < count; d++) {
        const struct cox_device_model *model = &models[d];
        if (!in_range(model->share, 0, 1))
            return false;
        shares += model->share;
        if (model->frames == 0)
            continue;
        if (!in_range(model->frames, 0, 1e15) || !in_range(model->fixed_ns, 0, a_day_ns) ||
            !in_range(model->launch_ns, 0, a_day_ns) || !in_range(model->ns_per_row, 1e-6, a_day_ns) ||
            !in_range(model->solo_ns, 0, a_day_ns))
            return false;
        any = true;
    }
    return any && shares <= 1.01; /* less than 1: the others were handed out on demand */
}

#ifdef COX_HAVE_SQLITE

#include <sqlite3.h>

enum {
    APPLICATION_ID = 0x434F584D, /* "COXM" */
    SCHEMA_VERSION = 1,
    FILE_BYTES_MAX = 16 << 20, /* a full one has a few hundred KiB */
    FRAMES_ENOUGH = 64,        /* as many measured frames replace what was there */
    STEPS_A_TIME = 1000,       /* of SQLite's virtual machine */
    STEPS_MAX = 4000000,       /* in one call; a full file with 32 devices an entry takes a fifteenth */
};

/* As SQLite keeps it; a file in which it reads otherwise is not used. */
static const struct {
    const char *name, *sql;
} tables[] = {
    {"entry", "CREATE TABLE entry("
              " key BLOB PRIMARY KEY CHECK(length(key) = 32)," /* SHA-256 of all that makes sessions of one kind */
              " written_at INTEGER NOT NULL,"                  /* seconds since 1970 */
              " policy TEXT NOT NULL,"
              " kernels TEXT NOT NULL,"
              " rows INTEGER NOT NULL,"
              " columns INTEGER NOT NULL)"},
    {"model", "CREATE TABLE model("
              " key BLOB NOT NULL REFERENCES entry(key),"
              " place INTEGER NOT NULL," /* of the device among those of the entry */
              " device TEXT NOT NULL,"
              " driver TEXT NOT NULL,"
              " compute_units INTEGER NOT NULL,"
              " frames REAL NOT NULL,"
              " fixed_ns REAL NOT NULL,"
              " launch_ns REAL NOT NULL,"
              " ns_per_row REAL NOT NULL,"
              " solo_ns REAL NOT NULL,"
              " share REAL NOT NULL,"
              " PRIMARY KEY(key, place)) WITHOUT ROWID"},
};

enum { TABLES = sizeof tables / sizeof *tables };

/* The database during one call. */
struct file {
    const struct cox__log *log;
    char *path;
    sqlite3 *db;
    sqlite3_stmt *statement; /* under way */
    bool logged;             /* one line a call */
    bool opened;
    bool passing; /* what failed may work another time: the file is none the worse */
    int steps;
};

static void complain(struct file *file, const char *what)
{
    if (!file->logged)
        cox__log(file->log, COX_LOG_WARN, "device models: %s %s; nothing is recalled or kept. Remove it to begin anew",
                 file->path, what);
    file->logged = true;
}

static void postpone(struct file *file, const char *why)
{
    if (!file->logged)
        cox__log(file->log, COX_LOG_INFO, "device models: %s is left for another time: %s", file->path, why);
    file->logged = true;
    file->passing = true;
}

/* What SQLite said, if it failed. Returns whether it did not. */
static bool check(struct file *file, int code)
{
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
        return true;
    const char *text = file->db ? sqlite3_errmsg(file->db) : sqlite3_errstr(code);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY: /* a journal to be rolled back, or a medium that cannot be written */
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
        postpone(file, text);
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        if (file->opened) /* the journal cannot */
            postpone(file, text);
        else
            complain(file, "cannot be opened");
        break;
    case SQLITE_INTERRUPT:
        complain(file, "holds more than sessions keep");
        break;
    case SQLITE_NOTADB:
        complain(file, "is no database");
        break;
    default:
        complain(file, "is damaged");
    }
    return false;
}

static bool run(struct file *file, const char *sql)
{
    return check(file, sqlite3_exec(file->db, sql, NULL, NULL, NULL));
}

__attribute__((format(printf, 2, 0))) static bool run_with(struct file *file, const char *format, int number)
{
    char sql[256];
    snprintf(sql, sizeof sql, format, number);
    return run(file, sql);
}

static bool prepare(struct file *file, const char *sql)
{
    return check(file, sqlite3_prepare_v2(file->db, sql, -1, &file->statement, NULL));
}

/* The next row, if there is one. */
static bool step(struct file *file, bool *row)
{
    int code = sqlite3_step(file->statement);
    *row = code == SQLITE_ROW;
    return check(file, code);
}

static void finish(struct file *file)
{
    sqlite3_finalize(file->statement);
    file->statement = NULL;
}

static bool query_number(struct file *file, const char *sql, int64_t *number)
{
    bool row = false;
    bool ok = prepare(file, sql) && step(file, &row);
    *number = row ? sqlite3_column_int64(file->statement, 0) : 0;
    finish(file);
    return ok;
}

/* ---- opening ---- */

static void close_file(struct file *file)
{
    finish(file);
    sqlite3_close(file->db);
    free(file->path);
}

/* What keeps a file from being opened, or NULL. */
static const char *fault_of(const struct stat *st)
{
    return S_ISLNK(st->st_mode)                ? "is a link"
           : !S_ISREG(st->st_mode)             ? "is no file"
           : st->st_uid != geteuid()           ? "belongs to another user"
           : st->st_mode & (S_IWGRP | S_IWOTH) ? "can be written by other users"
           : st->st_nlink > 1                  ? "has a second name (a hard link)"
           : st->st_size > FILE_BYTES_MAX      ? "is too large"
                                               : NULL;
}

/* Whether a journal ends with the name of another file. One of ours never does, since nothing is attached; SQLite would
 * delete that file once it has rolled the journal back, whatever it is. Journals have no locks that closing could drop. */
static bool names_another_file(int directory, const char *journal)
{
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof mark] = {0};
    struct stat st;
    int fd = openat(directory, journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof end)
        (void)!pread(fd, end, sizeof end, st.st_size - (off_t)sizeof end);
    close(fd);
    return memcmp(end, mark, sizeof end) == 0;
}

/* Look at the file without opening it. False: it is not to be opened, with a log line unless it is not there. */
static bool inspect(struct file *file, int directory, bool create)
{
    /* SQLite opens these of its own accord, and would wait for a FIFO's writer. */
    static const char *const beside[] = {COX__MODELS_FILE "-journal", COX__MODELS_FILE "-wal", COX__MODELS_FILE "-shm"};
    struct stat st;
    bool made = create && mknodat(directory, COX__MODELS_FILE, S_IFREG | 0600, 0) == 0;
    if (create && !made && errno != EEXIST) {
        cox__log(file->log, COX_LOG_INFO, "device models: %s cannot be created: %s", file->path, strerror(errno));
        return false;
    }
    if (fstatat(directory, COX__MODELS_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT)
            complain(file, "cannot be examined");
        return false;
    }
    const char *wrong = fault_of(&st);
    for (size_t i = 0; !wrong && i < sizeof beside / sizeof *beside; i++)
        if (fstatat(directory, beside[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && fault_of(&st))
            wrong = "has a journal beside it that is none";
    if (!wrong && names_another_file(directory, beside[0]))
        wrong = "has a journal beside it that names another file";
    if (wrong)
        complain(file, wrong);
    return !wrong;
}

/* Nonzero interrupts the statement. */
static int count_steps(void *context)
{
    struct file *file = context;
    file->steps += STEPS_A_TIME;
    return file->steps > STEPS_MAX;
}

/* Whoever wrote the file may have put anything into it: nothing of it is to be carried out, and what is read is bounded. */
static void be_careful(struct file *file)
{
    static const int limits[][2] = {{SQLITE_LIMIT_LENGTH, 1 << 20},    {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
                                    {SQLITE_LIMIT_COLUMN, 100},        {SQLITE_LIMIT_EXPR_DEPTH, 50},
                                    {SQLITE_LIMIT_COMPOUND_SELECT, 3}, {SQLITE_LIMIT_FUNCTION_ARG, 10},
                                    {SQLITE_LIMIT_ATTACHED, 0},        {SQLITE_LIMIT_TRIGGER_DEPTH, 1}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(file->db, limits[i][0], limits[i][1]);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_progress_handler(file->db, STEPS_A_TIME, count_steps, file);
}

/* Open the file of the directory; on false everything is closed. */
static bool open_file(struct file *file, const char *dir, bool write, const struct cox__log *log)
{
    *file = (struct file){.log = log};
    if (sqlite3_threadsafe() == 0) {
        cox__log(log, COX_LOG_DEBUG, "device models: this SQLite is not made for threads");
        return false;
    }
    int directory = cox__private_dir_open(dir, write, "device models", log);
    if (directory < 0) {
        struct stat st;
        file->logged = lstat(dir, &st) == 0 || errno != ENOENT;
        return false;
    }
    /* SQLITE_OPEN_NOFOLLOW refuses links on the whole way, and a home may well be behind one. */
    char *real = realpath(dir, NULL);
    bool ok = real && asprintf(&file->path, "%s/" COX__MODELS_FILE, real) > 0;
    if (!ok)
        file->path = NULL;
    free(real);
    ok = ok && inspect(file, directory, write);
    close(directory);
    if (ok) {
        int flags = (write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOFOLLOW |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
        ok = check(file, sqlite3_open_v2(file->path, &file->db, flags, NULL));
        file->opened = ok;
    }
    if (ok) {
        sqlite3_busy_timeout(file->db, write ? COX__MODELS_STORE_WAIT_MS : COX__MODELS_LOAD_WAIT_MS);
        be_careful(file);
        ok = run(file, "PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY");
    }
    if (!ok)
        close_file(file);
    return ok;
}

static bool column_is(const struct file *file, int index, const char *text)
{
    const char *found = (const char *)sqlite3_column_text(file->statement, index);
    return found && strcmp(found, text) == 0;
}

/* The table of this row of the schema; TABLES = the index that comes with a primary key; negative = nothing of ours. */
static int object_of(const struct file *file)
{
    bool table = column_is(file, 0, "table");
    for (int t = 0; table && t < TABLES; t++)
        if (column_is(file, 1, tables[t].name) && column_is(file, 2, tables[t].sql))
            return t;
    bool index = column_is(file, 0, "index") && column_is(file, 1, "sqlite_autoindex_entry_1");
    return index && sqlite3_column_type(file->statement, 2) == SQLITE_NULL ? TABLES : -1;
}

/* Whether all of ours is there, each once, and nothing else: a view, a virtual table, a computed column could run on and
 * on. It stops at the first that is not ours. */
static bool look_at_schema(struct file *file, bool *empty, bool *ours)
{
    int count[TABLES + 1] = {0}, object = 0;
    bool row = false;
    bool ok = prepare(file, "SELECT type, name, sql FROM sqlite_master");
    *empty = true;
    while (ok && object >= 0 && (ok = step(file, &row)) && row) {
        *empty = false;
        object = object_of(file);
        if (object >= 0)
            count[object]++;
    }
    finish(file);
    *ours = object >= 0;
    for (int t = 0; t <= TABLES; t++)
        *ours = *ours && count[t] == 1;
    return ok;
}

/* Whether the database is ours, inside a transaction. `*empty`: it is nobody's yet. */
static bool identify(struct file *file, bool *empty)
{
    int64_t id, version;
    bool ours = false;
    *empty = false;
    if (!query_number(file, "PRAGMA application_id", &id) || !query_number(file, "PRAGMA user_version", &version) ||
        !look_at_schema(file, empty, &ours))
        return false;
    *empty = *empty && id == 0 && version == 0;
    if (*empty)
        return true;
    if (id != APPLICATION_ID)
        complain(file, "is another program's database");
    else if (version != SCHEMA_VERSION)
        complain(file, "was written by another version of Coxswain");
    else if (!ours)
        complain(file, "has tables, views or indices that sessions do not make");
    return id == APPLICATION_ID && version == SCHEMA_VERSION && ours;
}

/* ---- entries ---- */

/* A number of the row, or NaN. */
static double column(const struct file *file, int index)
{
    int type = sqlite3_column_type(file->statement, index);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(file->statement, index) : NAN;
}

/* Read the entry; *found unless it is absent or of no use. Inside a transaction. */
static bool read_entry(struct file *file, const struct cox__models_entry *entry, struct cox_device_model *models,
                       bool *found)
{
    uint32_t count = 0;
    bool row = true, fits = true;
    bool ok = prepare(file, "SELECT place, frames, fixed_ns, launch_ns, ns_per_row, solo_ns, share FROM model"
                            " WHERE key = ? ORDER BY place") &&
              check(file, sqlite3_bind_blob(file->statement, 1, entry->key, sizeof entry->key, SQLITE_STATIC));
    while (ok && fits && (ok = step(file, &row)) && row) {
        fits = count < entry->device_count && column(file, 0) == count;
        if (!fits)
            break;
        models[count++] = (struct cox_device_model){.frames = column(file, 1),
                                                    .fixed_ns = column(file, 2),
                                                    .launch_ns = column(file, 3),
                                                    .ns_per_row = column(file, 4),
                                                    .solo_ns = column(file, 5),
                                                    .share = column(file, 6)};
    }
    finish(file);
    *found = ok && fits && count == entry->device_count && cox__models_plausible(models, count);
    if (ok && !*found && count > 0)
        cox__log(file->log, COX_LOG_INFO, "device models: an entry of %s holds no usable figures", file->path);
    return ok;
}

enum cox__models_found cox__models_load(const char *dir, const struct cox__models_entry *entry,
                                        struct cox_device_model *models, const struct cox__log *log)
{
    struct file file;
    bool empty, found = false;
    if (!dir)
        return COX__MODELS_NONE;
    if (!open_file(&file, dir, false, log))
        return file.logged && !file.passing ? COX__MODELS_UNUSABLE : COX__MODELS_NONE;
    bool ok = run(&file, "BEGIN") && identify(&file, &empty) && (empty || read_entry(&file, entry, models, &found));
    bool unusable = !ok && !file.passing;
    close_file(&file);
    return unusable ? COX__MODELS_UNUSABLE : ok && found ? COX__MODELS_FOUND : COX__MODELS_NONE;
}

/* What is to be written where `before` stood. Of few frames the costs are mixed with those known before; those of a device
 * that this session never used stay. The split in use is taken as it is now. */
static struct cox_device_model mix(const struct cox_device_model *before, const struct cox_device_model *now,
                                   uint64_t frames)
{
    double weight = frames < FRAMES_ENOUGH ? (double)frames / FRAMES_ENOUGH : 1;
    struct cox_device_model model = *now;
    if (before->frames == 0)
        return model;
    if (now->frames == 0) {
        model = *before;
    } else if (weight < 1) {
        model.frames = fmax(before->frames, now->frames);
        model.fixed_ns = before->fixed_ns + weight * (now->fixed_ns - before->fixed_ns);
        model.launch_ns = before->launch_ns + weight * (now->launch_ns - before->launch_ns);
        model.ns_per_row = before->ns_per_row + weight * (now->ns_per_row - before->ns_per_row);
        if (now->solo_ns == 0)
            model.solo_ns = before->solo_ns;
        else if (before->solo_ns > 0)
            model.solo_ns = before->solo_ns + weight * (now->solo_ns - before->solo_ns);
    }
    model.share = now->share;
    return model;
}

static bool done(struct file *file)
{
    bool row;
    bool ok = step(file, &row);
    finish(file);
    return ok;
}

static bool write_model(struct file *file, const struct cox__models_entry *entry, uint32_t place,
                        const struct cox_device_model *model)
{
    const struct cox__models_device *device = &entry->devices[place];
    if (!prepare(file, "INSERT INTO model VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"))
        return false;
    sqlite3_stmt *statement = file->statement;
    int code = sqlite3_bind_blob(statement, 1, entry->key, sizeof entry->key, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, place);
    code |= sqlite3_bind_text(statement, 3, device->id, -1, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 4, device->driver, -1, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 5, device->compute_units);
    const double values[] = {model->frames,     model->fixed_ns, model->launch_ns,
                             model->ns_per_row, model->solo_ns,  model->share};
    for (int i = 0; i < 6; i++)
        code |= sqlite3_bind_double(statement, 6 + i, values[i]);
    return check(file, code ? SQLITE_NOMEM : SQLITE_OK) && done(file);
}

static bool write_entry(struct file *file, const struct cox__models_entry *entry)
{
    if (!prepare(file, "DELETE FROM model WHERE key = ?") ||
        !check(file, sqlite3_bind_blob(file->statement, 1, entry->key, sizeof entry->key, SQLITE_STATIC)) ||
        !done(file) || !prepare(file, "REPLACE INTO entry VALUES(?, ?, ?, ?, ?, ?)"))
        return false;
    sqlite3_stmt *statement = file->statement;
    int code = sqlite3_bind_blob(statement, 1, entry->key, sizeof entry->key, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)time(NULL));
    code |= sqlite3_bind_text(statement, 3, entry->policy, -1, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 4, entry->kernels, -1, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 5, entry->rows);
    code |= sqlite3_bind_int64(statement, 6, entry->columns);
    return check(file, code ? SQLITE_NOMEM : SQLITE_OK) && done(file);
}

/* A damaged file would only be damaged further. */
static bool is_sound(struct file *file)
{
    bool row = false;
    bool ok = prepare(file, "PRAGMA quick_check(1)") && step(file, &row);
    if (ok) {
        const char *text = row ? (const char *)sqlite3_column_text(file->statement, 0) : NULL;
        ok = text && strcmp(text, "ok") == 0;
        if (!ok)
            complain(file, "is damaged");
    }
    finish(file);
    return ok;
}

static bool make_schema(struct file *file)
{
    for (int t = 0; t < TABLES; t++)
        if (!run(file, tables[t].sql))
            return false;
    return run_with(file, "PRAGMA application_id = %d", APPLICATION_ID) &&
           run_with(file, "PRAGMA user_version = %d", SCHEMA_VERSION);
}

/* In a transaction that locks other writers out. */
static bool write_all(struct file *file, const struct cox__models_entry *entry, uint64_t frames,
                      const struct cox_device_model *models)
{
    struct cox_device_model before[COX_DEVICES_MAX];
    bool empty, found = false;
    if (!identify(file, &empty))
        return false;
    if (empty ? !make_schema(file) : !is_sound(file) || !read_entry(file, entry, before, &found))
        return false;
    if (!write_entry(file, entry))
        return false;
    for (uint32_t d = 0; d < entry->device_count; d++) {
        struct cox_device_model model = found ? mix(&before[d], &models[d], frames) : models[d];
        if (!write_model(file, entry, d, &model))
            return false;
    }
    return run_with(file,
                    "DELETE FROM entry WHERE rowid NOT IN"
                    " (SELECT rowid FROM entry ORDER BY written_at DESC, rowid DESC LIMIT %d);"
                    "DELETE FROM model WHERE key NOT IN (SELECT key FROM entry)",
                    COX__MODELS_ENTRIES_MAX);
}

void cox__models_store(const char *dir, const struct cox__models_entry *entry, uint64_t frames,
                       const struct cox_device_model *models, const struct cox__log *log)
{
    struct file file;
    if (!dir || entry->device_count > COX_DEVICES_MAX)
        return;
    if (!cox__models_plausible(models, entry->device_count)) {
        cox__log(log, COX_LOG_DEBUG, "device models: nothing worth keeping was measured");
        return;
    }
    if (!open_file(&file, dir, true, log))
        return;
    if (run(&file, "BEGIN IMMEDIATE") && write_all(&file, entry, frames, models) && run(&file, "COMMIT"))
        cox__log(log, COX_LOG_DEBUG, "device models: kept in %s", file.path);
    close_file(&file); /* rolls back what was not committed */
}

#else /* without SQLite */

enum cox__models_found cox__models_load(const char *dir, const struct cox__models_entry *entry,
                                        struct cox_device_model *models, const struct cox__log *log)
{
    (void)entry, (void)models;
    if (dir)
        cox__log(log, COX_LOG_DEBUG, "device models: built without SQLite, nothing is recalled or kept");
    return COX__MODELS_NONE;
}

void cox__models_store(const char *dir, const struct cox__models_entry *entry, uint64_t frames,
                       const struct cox_device_model *models, const struct cox__log *log)
{
    (void)dir, (void)entry, (void)frames, (void)models, (void)log;
}

#endif
