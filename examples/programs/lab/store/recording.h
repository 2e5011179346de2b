/* The store's state while it records, for the files that write rows.
 *
 * Two blocks of memory take turns: reporting threads fill one while the recording thread writes the
 * other. The mutex is held for a copy, never while SQLite works.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_RECORDING_H
#define COX_EXAMPLES_LAB_STORE_RECORDING_H

#include "writers.h"

#include <pthread.h>

/* Of each block: some hundred frames of several passes with their policy's calls. */
enum { LAB_QUEUE_BYTES = 1 << 24 };

/* The statements, prepared once. */
enum lab_statement {
    LAB_SQL_BEGIN,
    LAB_SQL_COMMIT,
    LAB_SQL_RUN,
    LAB_SQL_FINISH,
    LAB_SQL_GRANULE,
    LAB_SQL_LOAD,
    LAB_SQL_SETTING,
    LAB_SQL_DEVICE,
    LAB_SQL_PASS,
    LAB_SQL_PHASE,
    LAB_SQL_DISTURBANCE,
    LAB_SQL_REFERENCE_AWAY,
    LAB_SQL_REFERENCE,
    LAB_SQL_REFERENCE_MEAN,
    LAB_SQL_REFERENCE_P90,
    LAB_SQL_SESSION,
    LAB_SQL_FRAME,
    LAB_SQL_FRAME_PASS,
    LAB_SQL_BAND,
    LAB_SQL_NOTICE,
    LAB_SQL_SHADOW,
    LAB_SQL_REASON,
    LAB_STATEMENTS
};

enum lab_item_kind { LAB_ITEM_FRAME, LAB_ITEM_CALL, LAB_ITEM_TELEMETRY };

/* An item of the queue. Behind it is a frame's report with its bands and passes, a lab_queued_call
 * or a lab_queued_telemetry. */
struct lab_item {
    size_t bytes; /* with what follows */
    enum lab_item_kind kind;
    struct lab_session *session;
};

struct lab_store_phase {
    uint32_t phase;
    uint64_t first_frame, end_frame;
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
    bool beside; /* another process of ours records too, and leaves WAL mode at its end */
    sqlite3_stmt *sql[LAB_STATEMENTS];
    struct lab_tape_writer tape;
    struct lab_telemetry_writer telemetry;
    char error[256];
    bool writing; /* a transaction is open, since `since_ns` */
    uint64_t since_ns;
    uint32_t frames;
    int64_t run_number;
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

/* Begin the transaction of the next statements unless one is open. False after an error. */
bool lab__store_writing(struct lab_store *store);
/* lab__store_step in that transaction; its error becomes the store's. Does nothing after an
 * error. */
void lab__store_put(struct lab_store *store, sqlite3_stmt *statement, const char *types, ...);
/* Commit the transaction. */
void lab__store_end(struct lab_store *store);

#endif
