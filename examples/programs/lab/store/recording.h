/* The store's state while it records, and what its files share: connecting, statements, the queue.
 *
 * Two blocks of memory take turns: reporting threads fill one while the recording thread writes the
 * other. The mutex is held for a copy, never while SQLite works.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_RECORDING_H
#define COX_EXAMPLES_LAB_STORE_RECORDING_H

#include "database.h"
#include "lab/provenance.h"
#include "tape.h"

#include <pthread.h>
#include <sqlite3.h>

enum { LAB_STORE_VERSION = 1, LAB_STORE_APPLICATION = 0x434F584C };

/* Room for lab__store_ratios_text of as many devices as there can be. */
enum { LAB_RATIOS_BYTES = COX_DEVICES_MAX * 26 + 3 };

/* A connection that passed every check of lab_store_open. Unless `to_read`, an empty file gets the
 * schema. */
bool lab__store_connect(const char *path, bool to_read, sqlite3 **out, char *why, size_t why_bytes);

/* Bind the values and run the statement once. Returns SQLITE_DONE, or the error. Each letter of
 * `types` is the type of a value:
 *   i  int64_t
 *   k  int64_t, NULL if negative
 *   r  double, NULL if NaN
 *   t  const char *, NULL becomes NULL */
int lab__store_step(sqlite3_stmt *statement, const char *types, ...);

/* "[0.5,0.5]", to the last bit. */
void lab__store_ratios_text(const double *ratios, uint32_t count, char *text, size_t bytes);

/* --- Statements ------------------------------------------------------------------------------- */

/* All of them, prepared once. */
#define LAB_SQL_MAP(X)                                                                             \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(RUN, "INSERT INTO run VALUES (NULL, ?1, ifnull(?2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),"  \
           " ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, NULL, NULL, 0)")            \
    X(FINISH, "UPDATE run SET finished = 1 WHERE run = ?")                                         \
    X(GRANULE, "UPDATE run SET granule = ?2 WHERE run = ?1")                                       \
    X(LOAD, "UPDATE run SET foreign_load = ?2, busy = ?3 WHERE run = ?1")                          \
    X(SETTING, "INSERT OR REPLACE INTO setting VALUES (?,?,?)")                                    \
    X(DEVICE, "INSERT OR REPLACE INTO device VALUES (?,?,?,?,?,?,?)")                              \
    X(PASS, "INSERT OR REPLACE INTO pass VALUES (?,?,?,?,?)")                                      \
    X(PHASE, "INSERT OR REPLACE INTO phase VALUES (?,?,?,?,?)")                                    \
    X(DISTURBANCE, "INSERT OR REPLACE INTO disturbance VALUES (?,?,?,?,?,?,?,?)")                  \
    X(REFERENCE_AWAY,                                                                              \
      "DELETE FROM reference WHERE run = ? AND phase = ? AND kind = ? AND device IS ?")            \
    X(REFERENCE, "INSERT INTO reference VALUES (?,?,?,?,?,NULL,NULL,?,?)")                         \
    X(REFERENCE_MEAN,                                                                              \
      "UPDATE reference SET mean_ns = ?4 WHERE run = ?1 AND phase = ?2 AND device IS ?3")          \
    X(REFERENCE_P90,                                                                               \
      "UPDATE reference SET p90_ns = ?4 WHERE run = ?1 AND phase = ?2 AND device IS ?3")           \
    X(SESSION, "INSERT INTO session VALUES (NULL,?,?,?,?,?,?)")                                    \
    X(FRAME, "INSERT INTO frame VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                           \
    X(FRAME_PASS, "INSERT INTO frame_pass VALUES (?,?,?,?,?,?,?,?,?)")                             \
    X(BAND, "INSERT INTO band VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                           \
    X(NOTICE, "INSERT INTO notice VALUES (?,?,?,?,?)")                                             \
    X(SHADOW, "INSERT OR REPLACE INTO shadow VALUES (?,?,?,?,?,?,?)")                              \
    X(REASON, "INSERT OR REPLACE INTO reason VALUES (?,?)")                                        \
    X(SOURCE, "INSERT OR REPLACE INTO telemetry_source VALUES (?,?,?,?,?,?,?)")                    \
    X(VALUE, "INSERT OR REPLACE INTO telemetry VALUES (?,?,?,?)")                                  \
    X(SESSION_START, "INSERT OR REPLACE INTO telemetry_session VALUES (?,?)")                      \
    X(VIEW, "INSERT INTO call_view VALUES (?,?,?,?,?,?,?,?,?)")                                    \
    X(VIEW_DEVICE, "INSERT INTO call_device VALUES (?,?,?,?,?,?)")                                 \
    X(OPTIONS, "INSERT INTO call_options VALUES (?,?,?,?,?,?)")                                    \
    X(PROFILE, "INSERT INTO call_profile VALUES (?,?,?,?,?,?,?,?,?)")                              \
    X(CALL_INIT, "INSERT INTO call(session, call, pass, kind, answer) VALUES (?,?,?,'init',?)")    \
    X(CALL_LOAD_PROFILE,                                                                           \
      "INSERT INTO call(session, call, pass, kind) VALUES (?,?,?,'load_profile')")                 \
    X(CALL_SPLIT, "INSERT INTO call(session, call, pass, kind, frame, answer, waited_ns,"          \
                  " deadline_ns) VALUES (?,?,?,'split',?,?,?,?)")                                  \
    X(CALL_NEXT, "INSERT INTO call(session, call, pass, kind, frame, device, first_row, rows,"     \
                 " wall_ns, flags, progress, answer, waited_ns, deadline_ns)"                      \
                 " VALUES (?,?,?,'next',?,?,?,?,?,?,?,?,?,?)")                                     \
    X(CALL_OBSERVE, "INSERT INTO call(session, call, pass, kind, frame, device, first_row, rows,"  \
                    " wall_ns, queue_ns, kernel_ns, late_ns, flags)"                               \
                    " VALUES (?,?,?,'observe',?,?,?,?,?,?,?,?,?)")                                 \
    X(CALL_FRAME, "INSERT INTO call(session, call, pass, kind, frame, wall_ns, period_ns, joules," \
                  " latency_ns, deadline_ns) VALUES (?,?,?,'frame',?,?,?,?,?,?)")

enum lab_statement {
#define STATEMENT(name, text) LAB_SQL_##name,
    LAB_SQL_MAP(STATEMENT)
#undef STATEMENT
        LAB_STATEMENTS
};

/* --- The queue -------------------------------------------------------------------------------- */

/* Of each block: some hundred frames of several passes with their policy's calls. */
enum { LAB_QUEUE_BYTES = 1 << 24 };

enum lab_item_kind { LAB_ITEM_FRAME, LAB_ITEM_CALL, LAB_ITEM_TELEMETRY };

/* An item of the queue. Behind it is a frame's report with its bands and passes, a lab_queued_call
 * or a lab_queued_telemetry. */
struct lab_item {
    size_t bytes; /* with what follows */
    enum lab_item_kind kind;
    struct lab_session *session;
};

/* A call in the queue. Pointers of the copied structs are NULL; the arrays follow them here. */
struct lab_queued_call {
    uint64_t number;
    uint32_t pass;
    enum lab_call_kind kind;
    cox_status status;
    struct cox_sched_view view;
    struct cox_sched_device devices[COX_DEVICES_MAX];
    union {
        struct {
            struct cox_policy_options values;
            double ratios[COX_DEVICES_MAX];
        } options;
        struct cox_device_profile profiles[COX_DEVICES_MAX];
        struct cox_split split;
        struct {
            struct cox_chunk_request values;
            struct cox_chunk grant;
            struct cox_progress progress[COX_DEVICES_MAX];
        } next;
        struct cox_measurement measurement;
        struct cox_frame_measurement whole;
    };
};

/* Values, or one setting, in the queue. */
struct lab_queued_telemetry {
    int64_t at_ns;                   /* since the run began */
    uint32_t source;                 /* of the setting */
    char setting[LAB_SETTING_BYTES]; /* "" = there are values */
    uint32_t count;
    double values[]; /* of sources 0 .. count - 1; NaN = none */
};

/* --- The store -------------------------------------------------------------------------------- */

struct lab_store_phase {
    uint32_t phase;
    uint64_t first_frame, end_frame;
};

/* What was written last of a pass of a session's tape: only changes are written. */
struct lab_tape_last {
    bool known;
    struct cox_sched_view view;
    struct cox_sched_device devices[COX_DEVICES_MAX];
};

struct lab_session {
    struct lab_store *store;
    struct lab_session *next;
    int64_t number;
    uint32_t phase_plus_1;
    struct lab_store_phase *phases; /* of its run */
    uint32_t phase_count;
    bool started;       /* a frame was written */
    uint64_t origin_ns; /* the start of the first frame */
    uint64_t before_ns; /* the end of the latest frame */
    uint64_t calls;     /* under the store's mutex */
    struct lab_tape tape;
    struct lab_tape_last last[COX_PASSES_MAX];
};

struct lab_store {
    char *path;
    sqlite3 *db;
    int lock;    /* -1 = none */
    bool beside; /* another process of this run records too, and leaves WAL mode at its end */
    sqlite3_stmt *sql[LAB_STATEMENTS];
    char error[256];
    bool writing; /* a transaction is open, since `since_ns` */
    uint64_t since_ns;
    uint32_t frames;
    int64_t run_number;
    struct lab_provenance provenance; /* read when the first run begins */
    bool has_provenance;
    uint64_t run_ns; /* when it began */
    bool has_telemetry;
    struct lab_store_phase *phases;
    uint32_t phase_count;
    struct lab_session *sessions;
    unsigned char *writes; /* the block that is written */
    pthread_mutex_t mutex;
    /* Under the mutex: */
    unsigned char *fills;
    size_t filled;
    uint64_t lost;
};

/* Keep the first error; nothing is written after it. */
void lab__store_fail(struct lab_store *store, const char *what);
/* Fails unless `result` is SQLITE_DONE or SQLITE_OK. */
void lab__store_check(struct lab_store *store, int result);

/* Why SQLite returned `result`. */
const char *lab__store_text(sqlite3 *db, int result);

/* Begin the transaction of the next statements unless one is open. False after an error. */
bool lab__store_writing(struct lab_store *store);
/* lab__store_step in that transaction; its error becomes the store's. Does nothing after an
 * error. */
void lab__store_put(struct lab_store *store, enum lab_statement statement, const char *types, ...);
/* Commit the transaction. */
void lab__store_end(struct lab_store *store);

/* Leave one file without companions, if nobody else has it open. */
void lab__store_settle(struct lab_store *store);

void lab__store_free(struct lab_store *store);

/* tape_rows.c. Bytes of a lab_queued_call that this call uses, and their content. */
size_t lab__queued_call_bytes(const struct lab_call *call);
void lab__queued_call_fill(struct lab_queued_call *queued, const struct lab_call *call);

/* tape_rows.c */
void lab__tape_write(struct lab_store *store, struct lab_session *session,
                     const struct lab_queued_call *call);

#endif
