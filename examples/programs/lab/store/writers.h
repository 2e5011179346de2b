/* How the store's files write: connecting, binding and running statements, and the statements of
 * the tape and of telemetry with what waits in the queue for them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_WRITERS_H
#define COX_EXAMPLES_LAB_STORE_WRITERS_H

#include "database.h"
#include "tape.h"

#include <sqlite3.h>
#include <stdarg.h>

enum { LAB_STORE_VERSION = 1, LAB_STORE_APPLICATION = 0x434F584C };

/* Room for lab__store_ratios_text of as many devices as there can be. */
enum { LAB_RATIOS_BYTES = COX_DEVICES_MAX * 26 + 3 };

/* A connection that passed every check of lab_store_open. Unless `to_read`, an empty file gets the
 * schema. */
bool lab__store_connect(const char *path, bool to_read, sqlite3 **out, char *why, size_t why_bytes);

/* Bind the values and run the statement once. `types` has one letter for each value:
 *   i  int64_t
 *   k  int64_t, a negative one becomes NULL
 *   r  double, NaN becomes NULL
 *   t  const char *, NULL becomes NULL
 *   n  NULL, without a value
 * Returns SQLITE_DONE, or the error. */
int lab__store_step(sqlite3_stmt *statement, const char *types, ...);
int lab__store_vstep(sqlite3_stmt *statement, const char *types, va_list values);

/* "[0.5,0.5]", to the last bit. */
void lab__store_ratios_text(const double *ratios, uint32_t count, char *text, size_t bytes);

/* --- tape_rows.c ------------------------------------------------------------------------------ */

/* The tape's statements, prepared once. */
struct lab_tape_writer {
    sqlite3_stmt *call, *view, *device, *options, *profile;
};

/* What was written last of a pass of a session's tape: only changes are written. */
struct lab_tape_last {
    bool known;
    struct cox_sched_view view;
    struct cox_sched_device devices[COX_DEVICES_MAX];
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
            struct cox_offer values;
            struct cox_grant grant;
            struct cox_progress progress[COX_DEVICES_MAX];
        } next;
        struct cox_measurement measurement;
        struct cox_frame_measurement whole;
    };
};

bool lab__tape_writer_prepare(struct lab_tape_writer *writer, sqlite3 *db);
void lab__tape_writer_finalize(struct lab_tape_writer *writer);

/* Bytes of a lab_queued_call that this call uses. */
size_t lab__queued_call_bytes(const struct lab_call *call);
void lab__queued_call_fill(struct lab_queued_call *queued, const struct lab_call *call);

/* `last`: of the call's pass. Returns SQLITE_DONE, or the error. */
int lab__tape_write(struct lab_tape_writer *writer, int64_t session, struct lab_tape_last *last,
                    const struct lab_queued_call *call);

/* --- telemetry_rows.c ------------------------------------------------------------------------- */

/* The telemetry's statements, prepared once. */
struct lab_telemetry_writer {
    sqlite3_stmt *source, *value, *session;
};

/* Values, or one setting, in the queue. */
struct lab_queued_telemetry {
    int64_t at_ns;                   /* since the run began */
    uint32_t source;                 /* of the setting */
    char setting[LAB_SETTING_BYTES]; /* "" = there are values */
    uint32_t count;
    double values[]; /* of sources 0 .. count - 1; NaN = none */
};

bool lab__telemetry_writer_prepare(struct lab_telemetry_writer *writer, sqlite3 *db);
void lab__telemetry_writer_finalize(struct lab_telemetry_writer *writer);

/* Returns SQLITE_DONE, or the error. */
int lab__telemetry_write(struct lab_telemetry_writer *writer, int64_t run,
                         const struct lab_queued_telemetry *queued);

#endif
