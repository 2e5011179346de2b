/* What the files of the session database share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_PARTS_H
#define COX_EXAMPLES_LAB_STORE_PARTS_H

#include "database.h"
#include "tape.h"

#include <sqlite3.h>

enum { LAB_STORE_VERSION = 1, LAB_STORE_APPLICATION = 0x434F584C };

/* A connection that has passed every check of lab_store_open; unless `to_read`, the schema is made where there is
 * none. */
bool lab__store_connect(const char *path, bool to_read, sqlite3 **out, char *why, size_t why_bytes);

/* The tape's statements: one of each, prepared once. */
struct lab_tape_writer {
    sqlite3_stmt *call, *view, *device, *options, *profile;
};

/* What was written of a pass of a session's tape last: only changes are written. */
struct lab_tape_last {
    bool known;
    struct cox_sched_view view;
    struct cox_sched_device devices[COX_DEVICES_MAX];
};

/* A call on its way to the file. */
struct lab_queued_call {
    uint64_t number;
    uint32_t pass;
    enum lab_call_kind kind;
    cox_status status;
    struct cox_sched_view view; /* its `devices` point nowhere; they are in the next field */
    struct cox_sched_device devices[COX_DEVICES_MAX];
    union {
        struct {
            struct cox_policy_options
                values; /* its `ratios` point nowhere; they are in the next field */
            double ratios[COX_DEVICES_MAX];
        } options;
        struct cox_device_profile profiles[COX_DEVICES_MAX];
        struct cox_split split;
        struct {
            struct cox_offer values; /* its `progress` points nowhere; it is below */
            struct cox_grant grant;
            struct cox_progress progress[COX_DEVICES_MAX];
        } next;
        struct cox_measurement measurement;
        struct cox_frame_measurement whole;
    };
};

/* Prepares the statements, or forgets them. */
bool lab__tape_writer_prepare(struct lab_tape_writer *writer, sqlite3 *db);
void lab__tape_writer_finalize(struct lab_tape_writer *writer);

/* How much of the union a call uses, in bytes. */
size_t lab__queued_call_bytes(const struct lab_call *call);
void lab__queued_call_fill(struct lab_queued_call *queued, const struct lab_call *call);

/* `last`: of the call's pass. Returns SQLITE_DONE, or what went wrong. */
int lab__tape_write(struct lab_tape_writer *writer, int64_t session, struct lab_tape_last *last,
                    const struct lab_queued_call *call);

/* The telemetry's statements, and what is on its way to the file: numbers, or one setting. */
struct lab_telemetry_writer {
    sqlite3_stmt *source, *value, *session;
};

struct lab_queued_telemetry {
    int64_t at_ns;                   /* since the run began */
    uint32_t source;                 /* of the setting */
    char setting[LAB_SETTING_BYTES]; /* "" = there are numbers */
    uint32_t count;
    double values[]; /* of sources 0 .. count - 1; NaN = none */
};

bool lab__telemetry_writer_prepare(struct lab_telemetry_writer *writer, sqlite3 *db);
void lab__telemetry_writer_finalize(struct lab_telemetry_writer *writer);

/* Returns SQLITE_DONE, or what went wrong. */
int lab__telemetry_write(struct lab_telemetry_writer *writer, int64_t run,
                         const struct lab_queued_telemetry *queued);

/* Bind the values and run the statement once. `types`, one letter for each: i int64_t, r double, t const char * (NULL =
 * NULL), n nothing (NULL). Returns SQLITE_DONE, or what went wrong. */
int lab__store_step(sqlite3_stmt *statement, const char *types, ...);

/* "[0.5,0.5]", to the last bit. */
void lab__store_ratios_text(const double *ratios, uint32_t count, char *text, size_t bytes);

#endif
