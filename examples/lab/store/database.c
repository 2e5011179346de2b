/* Recording. Two blocks of memory take turns: one is filled by the thread that reports, the other written by the
 * recording thread; the mutex is held for a copy, never while SQLite works.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <coxswain/version.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
    QUEUE_BYTES = 1 << 21, /* of each block: some hundred frames with their policy's calls */
    ITEM_ALIGN = 16,
    COMMIT_FRAMES = 64,
    COMMIT_NS = 500000000,
    CHECKPOINT_PAGES = 4000, /* the write-ahead log goes into the file at the end of a run, or after so many pages */
};

/* The statements, prepared once. */
enum statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_RUN,
    SQL_FINISH,
    SQL_GRANULE,
    SQL_LOAD,
    SQL_DEVICE,
    SQL_PHASE,
    SQL_DISTURBANCE,
    SQL_REFERENCE_AWAY,
    SQL_REFERENCE,
    SQL_REFERENCE_MEAN,
    SQL_REFERENCE_P90,
    SQL_SESSION,
    SQL_FRAME,
    SQL_BAND,
    SQL_SHADOW,
    SQL_REASON,
    STATEMENTS
};

enum item_kind { ITEM_FRAME, ITEM_CALL };

/* What is in the queue: this, then a frame's report and bands or a lab_queued_call. */
struct item {
    size_t bytes; /* with what follows */
    enum item_kind kind;
    struct lab_session *session;
};

struct phase {
    uint32_t phase;
    uint64_t first_frame, end_frame;
};

struct lab_session {
    struct lab_store *store;
    struct lab_session *next;
    int64_t number;
    uint32_t phase_plus_1;
    struct phase *phases; /* of its run */
    uint32_t phase_count;
    bool started;       /* a frame was written */
    uint64_t origin_ns; /* the start of the first frame */
    uint64_t before_ns; /* the end of the latest frame */
    uint64_t calls;     /* under the store's mutex */
    struct lab_tape tape;
    struct lab_tape_last last;
};

struct lab_store {
    char *path;
    sqlite3 *db;
    int lock; /* -1 = none */
    sqlite3_stmt *sql[STATEMENTS];
    struct lab_tape_writer tape;
    char error[256];
    bool writing; /* a transaction is open, since `since_ns` */
    uint64_t since_ns;
    uint32_t frames;
    int64_t run_number;
    struct phase *phases;
    uint32_t phase_count;
    struct lab_session *sessions;
    unsigned char *writes; /* the block that is written */
    pthread_mutex_t mutex;
    /* Under the mutex: */
    unsigned char *fills;
    size_t filled;
    uint64_t lost;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int lab__store_step(sqlite3_stmt *statement, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    int result = SQLITE_OK;
    for (int i = 0; types[i] && result == SQLITE_OK; i++) {
        if (types[i] == 'i')
            result = sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
        else if (types[i] == 'r')
            result = sqlite3_bind_double(statement, i + 1, va_arg(args, double));
        else if (types[i] == 't')
            result = sqlite3_bind_text(statement, i + 1, va_arg(args, const char *), -1, SQLITE_STATIC);
        else
            result = sqlite3_bind_null(statement, i + 1);
    }
    va_end(args);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    int reset = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return reset == SQLITE_OK ? result : reset;
}

void lab__store_ratios_text(const double *ratios, uint32_t count, char *text, size_t bytes)
{
    size_t at = 0;
    for (uint32_t r = 0; r < count && at < bytes; r++) {
        int length = snprintf(text + at, bytes - at, "%c%.17g", r ? ',' : '[', ratios[r]);
        at += length > 0 ? (size_t)length : 0;
    }
    if (at < bytes)
        snprintf(text + at, bytes - at, "%s", count ? "]" : "[]");
}

/* Keep the first thing that goes wrong; nothing is written after it. */
static void fail(struct lab_store *store, const char *what)
{
    if (store->error[0])
        return;
    snprintf(store->error, sizeof store->error, "%s: %s", store->path, what);
    if (store->writing && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->writing = false;
}

static void check(struct lab_store *store, int result)
{
    if (result != SQLITE_DONE && result != SQLITE_OK) {
        bool busy = (result & 0xff) == SQLITE_BUSY;
        fail(store, busy ? "another process is writing it" : sqlite3_errmsg(store->db));
    }
}

/* Open the transaction that the next statements belong to. False if nothing can be written any more. */
static bool writing(struct lab_store *store)
{
    if (store->error[0])
        return false;
    if (!store->writing) {
        check(store, lab__store_step(store->sql[SQL_BEGIN], ""));
        store->writing = !store->error[0];
        store->since_ns = now_ns();
        store->frames = 0;
    }
    return store->writing;
}

static void commit(struct lab_store *store)
{
    if (store->error[0] || !store->writing)
        return;
    check(store, lab__store_step(store->sql[SQL_COMMIT], ""));
    store->writing = false;
}

static const char run_text[] =
    "INSERT INTO run VALUES (NULL, ?1, ifnull(?2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
    "?10, ?11, ?12, ?13, ?14, ?15, NULL, NULL, 0)";

static const char *const statement_texts[STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_RUN] = run_text,
    [SQL_FINISH] = "UPDATE run SET finished = 1 WHERE run = ?",
    [SQL_GRANULE] = "UPDATE run SET granule = ?2 WHERE run = ?1",
    [SQL_LOAD] = "UPDATE run SET foreign_load = ?2, busy = ?3 WHERE run = ?1",
    [SQL_DEVICE] = "INSERT OR REPLACE INTO device VALUES (?,?,?,?,?,?,?)",
    [SQL_PHASE] = "INSERT OR REPLACE INTO phase VALUES (?,?,?,?,?)",
    [SQL_DISTURBANCE] = "INSERT OR REPLACE INTO disturbance VALUES (?,?,?,?,?,?,?,?)",
    [SQL_REFERENCE_AWAY] = "DELETE FROM reference WHERE run = ? AND phase = ? AND kind = ? AND device IS ?",
    [SQL_REFERENCE] = "INSERT INTO reference VALUES (?,?,?,?,?,NULL,NULL,?,?)",
    [SQL_REFERENCE_MEAN] =
        "UPDATE reference SET mean_ns = ?4 WHERE run = ?1 AND phase = ?2 AND ifnull(device, -1) = ?3",
    [SQL_REFERENCE_P90] = "UPDATE reference SET p90_ns = ?4 WHERE run = ?1 AND phase = ?2 AND ifnull(device, -1) = ?3",
    [SQL_SESSION] = "INSERT INTO session VALUES (NULL,?,?,?,?,?,?)",
    [SQL_FRAME] = "INSERT INTO frame VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_BAND] = "INSERT INTO band VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_SHADOW] = "INSERT OR REPLACE INTO shadow VALUES (?,?,?,?,?,?)",
    [SQL_REASON] = "INSERT OR REPLACE INTO reason VALUES (?,?)",
};

static bool prepare(struct lab_store *store)
{
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(store->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT, &store->sql[i], NULL))
            return false;
    return lab__tape_writer_prepare(&store->tape, store->db);
}

static void finalize(struct lab_store *store)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(store->sql[i]);
        store->sql[i] = NULL;
    }
    lab__tape_writer_finalize(&store->tape);
}

static void write_reasons(struct lab_store *store)
{
    static const int reasons[] = {
#define REASON_VALUE(name, value, text) value,
        COX_REASON_MAP(REASON_VALUE)
#undef REASON_VALUE
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && writing(store); i++)
        check(store, lab__store_step(store->sql[SQL_REASON], "it", (int64_t)reasons[i],
                                     cox_reason_text((enum cox_reason)reasons[i])));
    commit(store);
}

/* One program records into a file at a time: two would wait for one another between their frames. The lock ends with
 * the process. Where the file system has none, SQLite's own locks must do. */
static bool lock(struct lab_store *store, char *why, size_t why_bytes)
{
    store->lock = open(store->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (store->lock < 0 || flock(store->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true;
    snprintf(why, why_bytes, "%s: another program is recording into it", store->path);
    return false;
}

static void destroy(struct lab_store *store)
{
    while (store->sessions) {
        struct lab_session *session = store->sessions;
        store->sessions = session->next;
        free(session->phases);
        free(session);
    }
    finalize(store);
    sqlite3_close(store->db);
    if (store->lock >= 0) /* after SQLite: to close a file gives up all locks that the process has on it */
        close(store->lock);
    pthread_mutex_destroy(&store->mutex);
    free(store->phases);
    free(store->fills);
    free(store->writes);
    free(store->path);
    free(store);
}

bool lab_store_open(const char *path, struct lab_store **out, char *why, size_t why_bytes)
{
    *out = NULL;
    struct lab_store *store = calloc(1, sizeof *store);
    if (!store) {
        snprintf(why, why_bytes, "%s: out of memory", path);
        return false;
    }
    pthread_mutex_init(&store->mutex, NULL);
    store->lock = -1;
    store->path = strdup(path);
    store->fills = malloc(QUEUE_BYTES);
    store->writes = malloc(QUEUE_BYTES);
    if (!store->path || !store->fills || !store->writes) {
        snprintf(why, why_bytes, "%s: out of memory", path);
        goto fail;
    }
    if (!lab__store_connect(path, false, &store->db, why, why_bytes) || !lock(store, why, why_bytes))
        goto fail;
    /* A commit is in the system's hands, which outlives this process; waiting for the disk would stop the recording
     * thread. */
    if (sqlite3_exec(store->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", NULL, NULL, NULL) ||
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
    destroy(store);
    return false;
}

const char *lab_store_error(const struct lab_store *store)
{
    return store->error[0] ? store->error : NULL;
}

bool lab_store_close(struct lab_store **closed, char *why, size_t why_bytes)
{
    struct lab_store *store = *closed;
    *closed = NULL;
    if (!store)
        return true;
    lab_store_write(store);
    commit(store);
    if (!store->error[0] && store->lost) {
        char what[128];
        snprintf(what, sizeof what,
                 "%llu frames or policy calls were not recorded: they came faster than they could be "
                 "written",
                 (unsigned long long)store->lost);
        fail(store, what);
    }
    bool good = !store->error[0];
    if (!good)
        snprintf(why, why_bytes, "%s", store->error);
    /* One file without companions, so that it can be copied and be read where nothing can be written. Fails, and may,
     * while somebody else has it open. */
    finalize(store);
    if (good)
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    destroy(store);
    return good;
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

/* "Linux 6.1.0 x86_64, Intel(R) Core(TM) ..." */
static void describe_system(const struct utsname *names, char *text, size_t bytes)
{
    char line[256], model[200] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !model[0] && fgets(line, sizeof line, file))
        sscanf(line, "model name : %199[^\n]", model);
    if (file)
        fclose(file);
    snprintf(text, bytes, "%s %s %s%s%s", names->sysname, names->release, names->machine, model[0] ? ", " : "", model);
}

int64_t lab_store_begin_run(struct lab_store *store, const struct lab_store_run *run)
{
    lab_store_write(store);
    struct utsname names;
    char system[1024] = "";
    if (uname(&names) == 0)
        describe_system(&names, system, sizeof system);
    else
        names.nodename[0] = '\0';
    store->run_number = 0;
    store->phase_count = 0;
    if (!writing(store))
        return 0;
    check(store, lab__store_step(store->sql[SQL_RUN], "tttttttiiiiitit", run->source, run->started_at, cox_version(),
                                 run->host ? run->host : names.nodename, run->system ? run->system : system,
                                 run->command, run->kernel, (int64_t)run->columns, (int64_t)run->rows,
                                 (int64_t)run->granule, (int64_t)run->in_flight, (int64_t)run->frames,
                                 run->objective == COX_OBJECTIVE_ENERGY ? "energy" : "time", (int64_t)run->deadline_ns,
                                 run->meter));
    if (!store->error[0])
        store->run_number = sqlite3_last_insert_rowid(store->db);
    commit(store);
    return store->error[0] ? 0 : store->run_number;
}

void lab_store_granule(struct lab_store *store, uint32_t granule)
{
    if (writing(store))
        check(store, lab__store_step(store->sql[SQL_GRANULE], "ii", store->run_number, (int64_t)granule));
}

void lab_store_device(struct lab_store *store, uint32_t device, const struct cox_device_info *info)
{
    if (writing(store))
        check(store, lab__store_step(store->sql[SQL_DEVICE], "iittttt", store->run_number, (int64_t)device, info->name,
                                     info->platform, info->driver, cox_device_type_name(info->type),
                                     cox_memory_mode_name(info->mode)));
}

void lab_store_phase(struct lab_store *store, uint32_t phase, uint64_t first_frame, uint64_t end_frame,
                     const char *text)
{
    struct phase *phases = realloc(store->phases, (store->phase_count + 1) * sizeof *phases);
    if (!phases) {
        fail(store, "out of memory");
        return;
    }
    store->phases = phases;
    phases[store->phase_count++] = (struct phase){phase, first_frame, end_frame};
    if (writing(store))
        check(store, lab__store_step(store->sql[SQL_PHASE], "iiiit", store->run_number, (int64_t)phase,
                                     (int64_t)first_frame, (int64_t)end_frame, text));
}

void lab_store_disturbance(struct lab_store *store, uint32_t disturbance, const char *kind, const char *text,
                           uint64_t first_frame, uint64_t end_frame, bool real, const char *note)
{
    if (writing(store))
        check(store, lab__store_step(store->sql[SQL_DISTURBANCE], "iittiiit", store->run_number, (int64_t)disturbance,
                                     kind, text, (int64_t)first_frame, (int64_t)end_frame, (int64_t)real, note));
}

void lab_store_reference(struct lab_store *store, uint32_t phase, int32_t device, double median_ns, uint64_t frames,
                         const double *ratios, uint32_t ratio_count)
{
    if (!writing(store))
        return;
    char text[COX_DEVICES_MAX * 26 + 3];
    if (ratio_count > COX_DEVICES_MAX)
        ratio_count = COX_DEVICES_MAX;
    lab__store_ratios_text(ratios, ratio_count, text, sizeof text);
    const char *kind = device < 0 ? "oracle" : "solo";
    const char *types[2] = {device < 0 ? "iitn" : "iiti", device < 0 ? "iitnrit" : "iitirit"};
    const char *shares = ratio_count ? text : NULL;
    if (device < 0) {
        check(store,
              lab__store_step(store->sql[SQL_REFERENCE_AWAY], types[0], store->run_number, (int64_t)phase, kind));
        check(store, lab__store_step(store->sql[SQL_REFERENCE], types[1], store->run_number, (int64_t)phase, kind,
                                     median_ns, (int64_t)frames, shares));
    } else {
        check(store, lab__store_step(store->sql[SQL_REFERENCE_AWAY], types[0], store->run_number, (int64_t)phase, kind,
                                     (int64_t)device));
        check(store, lab__store_step(store->sql[SQL_REFERENCE], types[1], store->run_number, (int64_t)phase, kind,
                                     (int64_t)device, median_ns, (int64_t)frames, shares));
    }
}

void lab_store_reference_mean(struct lab_store *store, uint32_t phase, int32_t device, double mean_ns)
{
    if (mean_ns > 0 && writing(store))
        check(store, lab__store_step(store->sql[SQL_REFERENCE_MEAN], "iiir", store->run_number, (int64_t)phase,
                                     (int64_t)(device < 0 ? -1 : device), mean_ns));
}

void lab_store_reference_p90(struct lab_store *store, uint32_t phase, int32_t device, double p90_ns)
{
    if (p90_ns > 0 && writing(store))
        check(store, lab__store_step(store->sql[SQL_REFERENCE_P90], "iiir", store->run_number, (int64_t)phase,
                                     (int64_t)(device < 0 ? -1 : device), p90_ns));
}

void lab_store_load(struct lab_store *store, double processors, bool busy)
{
    if (processors >= 0 && writing(store))
        check(store,
              lab__store_step(store->sql[SQL_LOAD], "iri", store->run_number, processors, (int64_t)(busy ? 1 : 0)));
}

void lab_store_finish_run(struct lab_store *store)
{
    lab_store_write(store);
    if (writing(store))
        check(store, lab__store_step(store->sql[SQL_FINISH], "i", store->run_number));
    commit(store);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

struct lab_session *lab_store_begin_session(struct lab_store *store, const struct lab_store_session *about)
{
    static const char *const kinds[] = {
        [LAB_SESSION_POLICY] = "policy", [LAB_SESSION_SOLO] = "solo", [LAB_SESSION_SWEEP] = "sweep"};
    struct lab_session *session = calloc(1, sizeof *session);
    struct phase *phases = malloc((store->phase_count + 1) * sizeof *phases);
    if (!session || !phases) {
        free(session);
        free(phases);
        fail(store, "out of memory");
        return NULL;
    }
    if (store->phase_count)
        memcpy(phases, store->phases, store->phase_count * sizeof *phases);
    session->phases = phases;
    session->phase_count = store->phase_count;
    session->phase_plus_1 = about->phase_plus_1;
    session->store = store;
    session->next = store->sessions;
    store->sessions = session;
    if (!writing(store))
        return session;
    char ratios[COX_DEVICES_MAX * 26 + 3];
    uint32_t count = !about->ratios ? 0 : about->ratio_count < COX_DEVICES_MAX ? about->ratio_count : COX_DEVICES_MAX;
    lab__store_ratios_text(about->ratios, count, ratios, sizeof ratios);
    const char *shares = count ? ratios : NULL, *kind = kinds[about->kind];
    if (about->kind == LAB_SESSION_SOLO)
        check(store, lab__store_step(store->sql[SQL_SESSION], "ittiti", store->run_number, kind, about->policy,
                                     (int64_t)about->device, shares, (int64_t)about->repeat));
    else
        check(store, lab__store_step(store->sql[SQL_SESSION], "ittnti", store->run_number, kind, about->policy, shares,
                                     (int64_t)about->repeat));
    session->number = sqlite3_last_insert_rowid(store->db);
    return session;
}

/* Room for an item with `bytes` bytes behind it, under the mutex; NULL if the queue is full. */
static void *take(struct lab_store *store, struct lab_session *session, enum item_kind kind, size_t bytes)
{
    size_t whole = (sizeof(struct item) + bytes + ITEM_ALIGN - 1) / ITEM_ALIGN * ITEM_ALIGN;
    if (whole > QUEUE_BYTES - store->filled) {
        store->lost++;
        return NULL;
    }
    struct item *item = (struct item *)(store->fills + store->filled);
    *item = (struct item){whole, kind, session};
    store->filled += whole;
    return item + 1;
}

void lab_session_frame(void *user, const struct cox_frame_report *report)
{
    struct lab_session *session = user;
    if (!session || report->warmup)
        return;
    struct lab_store *store = session->store;
    size_t band_bytes = report->band_count * sizeof *report->bands;
    pthread_mutex_lock(&store->mutex);
    struct cox_frame_report *copy = take(store, session, ITEM_FRAME, sizeof *report + band_bytes);
    if (copy) {
        *copy = *report;
        if (band_bytes)
            memcpy(copy + 1, report->bands, band_bytes);
    }
    pthread_mutex_unlock(&store->mutex);
}

void lab_session_call(void *user, const struct lab_call *call)
{
    struct lab_session *session = user;
    if (!session)
        return;
    struct lab_store *store = session->store;
    pthread_mutex_lock(&store->mutex);
    struct lab_queued_call *queued = take(store, session, ITEM_CALL, lab__queued_call_bytes(call));
    if (queued) {
        lab__queued_call_fill(queued, call);
        queued->number = session->calls;
    }
    session->calls++; /* a lost one leaves a hole, which replay sees */
    pthread_mutex_unlock(&store->mutex);
}

const struct cox_policy *lab_session_tape(struct lab_session *session, const struct cox_policy *policy)
{
    if (!session || session->tape.inner)
        return policy;
    lab_tape_begin(&session->tape, policy, lab_session_call, session);
    return &session->tape.policy;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static uint32_t phase_of(const struct lab_session *session, uint64_t frame)
{
    if (session->phase_plus_1)
        return session->phase_plus_1 - 1;
    uint32_t phase = 0;
    for (uint32_t p = 0; p < session->phase_count; p++)
        if (frame >= session->phases[p].first_frame && frame < session->phases[p].end_frame)
            phase = session->phases[p].phase;
    return phase;
}

static void write_bands(struct lab_store *store, const struct lab_session *session,
                        const struct cox_frame_report *frame, const struct cox_band_report *bands)
{
    for (uint32_t b = 0; b < frame->band_count && !store->error[0]; b++) {
        const struct cox_band_report *band = &bands[b];
        int result = lab__store_step(store->sql[SQL_BAND], "iiiiiiiiiiiiiii", session->number, (int64_t)frame->index,
                                     (int64_t)b, (int64_t)band->device, (int64_t)band->first_row, (int64_t)band->rows,
                                     (int64_t)(band->submit_ns - frame->start_ns),
                                     (int64_t)(band->end_ns - frame->start_ns), (int64_t)band->wall_ns,
                                     (int64_t)band->queue_ns, (int64_t)band->kernel_ns, (int64_t)band->predicted_ns,
                                     (int64_t)band->on_demand, (int64_t)band->attempt, (int64_t)band->status);
        check(store, result);
    }
}

static void write_shadow(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame, const struct cox_band_report *bands)
{
    for (uint32_t b = 0; b < frame->band_count && frame->status == COX_OK && !store->error[0]; b++)
        check(store, lab__store_step(store->sql[SQL_SHADOW], "iiiiii", session->number, (int64_t)frame->index,
                                     (int64_t)bands[b].device, (int64_t)bands[b].first_row, (int64_t)bands[b].rows,
                                     (int64_t)bands[b].wall_ns));
}

static void write_frame(struct lab_store *store, struct lab_session *session, const struct cox_frame_report *frame,
                        const struct cox_band_report *bands)
{
    if (frame->shadow) {
        write_shadow(store, session, frame, bands);
        return;
    }
    if (!session->started) {
        session->started = true;
        session->origin_ns = frame->start_ns;
        session->before_ns = frame->start_ns;
    }
    uint64_t from_ns = frame->start_ns > session->before_ns ? frame->start_ns : session->before_ns;
    uint64_t period_ns = frame->end_ns > from_ns ? frame->end_ns - from_ns : 0;
    if (frame->end_ns > session->before_ns)
        session->before_ns = frame->end_ns;
    uint32_t rows = 0;
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (bands[b].first_row + bands[b].rows > rows)
            rows = bands[b].first_row + bands[b].rows;
    bool metered = frame->joules >= 0;
    int result = lab__store_step(store->sql[SQL_FRAME], metered ? "iiiiiiiiiiiir" : "iiiiiiiiiiiin", session->number,
                                 (int64_t)frame->index, (int64_t)phase_of(session, frame->index), (int64_t)rows,
                                 (int64_t)(frame->start_ns - session->origin_ns),
                                 (int64_t)(frame->end_ns - frame->start_ns), (int64_t)period_ns,
                                 (int64_t)frame->predicted_ns, (int64_t)frame->alternative_ns, (int64_t)frame->reason,
                                 (int64_t)frame->pool_rows, (int64_t)frame->status, frame->joules);
    check(store, result);
    write_bands(store, session, frame, bands);
    store->frames++;
}

void lab_store_write(struct lab_store *store)
{
    pthread_mutex_lock(&store->mutex);
    unsigned char *block = store->fills;
    size_t filled = store->filled;
    if (filled) {
        store->fills = store->writes;
        store->filled = 0;
        store->writes = block;
    }
    pthread_mutex_unlock(&store->mutex);
    for (size_t at = 0; at < filled && writing(store);) {
        struct item *item = (struct item *)(block + at);
        at += item->bytes;
        if (item->kind == ITEM_FRAME) {
            const struct cox_frame_report *frame = (const struct cox_frame_report *)(item + 1);
            write_frame(store, item->session, frame, (const struct cox_band_report *)(frame + 1));
        } else {
            check(store, lab__tape_write(&store->tape, item->session->number, &item->session->last,
                                         (const struct lab_queued_call *)(item + 1)));
        }
    }
    if (store->writing && (store->frames >= COMMIT_FRAMES || now_ns() - store->since_ns >= COMMIT_NS))
        commit(store);
}
