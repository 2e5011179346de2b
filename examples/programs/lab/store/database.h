/* The session database: what `cox-lab run` and `cox-lab sim --record` measured, in SQLite, to be queried while it
 * grows. docs/reference/session-db.md describes every table; schema.sql is what makes them.
 *
 * How recording keeps out of the way of what it measures: frames and policy calls are copied into a queue of bounded
 * size by the thread that reports them (about a microsecond), and written by lab_store_write, which the recording
 * thread calls where it hurts least: between frames. One transaction holds what came in half a second or in 64 frames;
 * it is in the file, and readable by others, once it is committed, whatever becomes of the process.
 *
 * Errors while recording (a full disk) do not interrupt a run: the first one is kept, nothing is written from then on,
 * and lab_store_close tells. lab_store_error asks earlier.
 *
 * Thread-safety: lab_session_frame, lab_store_values, lab_store_source_setting and the policies of lab_session_tape
 * from any thread, at any time between lab_store_begin_session (lab_store_begin_run, for telemetry) and
 * lab_store_close; all others from the recording thread, the one that opened the store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_H
#define COX_EXAMPLES_LAB_STORE_H

#include <coxswain/session.h>

struct lab_store;
struct sqlite3;

/* Open for recording: creates the file, or appends to a database of this program. Everything else is refused with one
 * sentence in `why`, beginning with the path: no regular file, a symbolic link, no SQLite database, a database of
 * another program or of another schema version, a damaged one, one that cannot be written. `*out` is NULL unless
 * true is returned. */
bool lab_store_open(const char *path, struct lab_store **out, char *why, size_t why_bytes);

/* As the one above, beside a process that has it open for recording and takes turns with this one: nothing may be
 * written here while that one has a transaction open, see lab_store_commit. */
bool lab_store_open_beside(const char *path, struct lab_store **out, char *why, size_t why_bytes);

/* Open for reading what lab_store_open would accept (a link is followed). The caller closes it with sqlite3_close. May
 * be one that is being recorded. */
bool lab_store_open_to_read(const char *path, struct sqlite3 **out, char *why, size_t why_bytes);

/* Whether a file of that name would replace the database, or what SQLite keeps beside it. */
bool lab_store_is_part(const char *database, const char *path);

/* The first thing that went wrong while recording; NULL = nothing. Belongs to the store. */
const char *lab_store_error(const struct lab_store *store);

/* Write what is queued and close; sets to NULL, NULL is accepted. False if anything was not recorded, with a sentence
 * in `why`; what was recorded before stays readable. A run that lab_store_finish_run did not end stays marked as
 * unfinished. */
bool lab_store_close(struct lab_store **store, char *why, size_t why_bytes);

/* Write what is queued; commit if it is time. Call it after each frame, when none is under way where possible. */
void lab_store_write(struct lab_store *store);

/* Write what is queued and commit: others may write then. */
void lab_store_commit(struct lab_store *store);

/* Whether the runs of the database `from` can be added to those of the database `to`, which need not be there yet:
 * every table of `from` is looked at. False: `why` says it in one sentence that begins with a path. */
bool lab_store_may_merge(const char *from, const char *to, char *why, size_t why_bytes);

/* Add all runs of a database for which lab_store_may_merge has returned true, behind those that are there: all, or
 * none. Not while anything is being recorded. `*added` is how many. False: as above. */
bool lab_store_merge(struct lab_store *store, const char *from, int64_t *added, char *why,
                     size_t why_bytes);

/* Text that is NULL is stored as NULL. */
struct lab_store_run {
    const char *source; /* "devices" or "simulation" */
    const char *
        started_at; /* ISO 8601, UTC; NULL = now. For results that must not differ from run to run */
    const char *host;   /* NULL = of this machine, as for `system` */
    const char *system; /* operating system and processor */
    const char *command;
    const char
        *kernel; /* "tonemap", "video", "work", a file's name; of a simulation the scenario */
    uint32_t columns, rows;
    uint32_t granule; /* 0 = told later by lab_store_granule */
    uint32_t in_flight;
    uint64_t frames; /* of each policy session, as planned */
    enum cox_objective objective;
    uint64_t deadline_ns; /* 0 = none */
    const char *meter;    /* what measures energy; NULL = nothing does */
};

/* From now on everything belongs to this run. Its frames have one pass of all rows, unless lab_store_pass says more.
 * Returns its number in the database; 0 if it could not be recorded. */
int64_t lab_store_begin_run(struct lab_store *store, const struct lab_store_run *run);
void lab_store_granule(struct lab_store *store, uint32_t granule);

/* What else a run was told, by name: "reserve", "ratio", "source", ... The last of one name counts. */
void lab_store_setting(struct lab_store *store, const char *name, const char *value);
void lab_store_device(struct lab_store *store, uint32_t device, const struct cox_device_info *info);

/* The run's frames have this pass; `name` NULL = it has none, `stages` 0 = unknown. */
void lab_store_pass(struct lab_store *store, uint32_t pass, const char *name, uint32_t rows,
                    uint32_t stages);

/* Frames first_frame .. end_frame - 1 of a policy session are of this phase. Before the first session. */
void lab_store_phase(struct lab_store *store, uint32_t phase, uint64_t first_frame,
                     uint64_t end_frame, const char *text);

/* `kind`: "hog", "gpu-hog", "quota", "delay", ...; `text`: as given on the command line; `real`: not the artificial
 * delay; `note`: what became of it ("no cgroup may be made here"), or NULL. May be told again for the same number:
 * the last one counts. */
void lab_store_disturbance(struct lab_store *store, uint32_t disturbance, const char *kind,
                           const char *text, uint64_t first_frame, uint64_t end_frame, bool real,
                           const char *note);

enum { LAB_REFERENCE_ORACLE = -1 }; /* as `device` */

/* The best there is in a phase: median frame time of one device alone, or of the swept oracle (then with its ratios,
 * one share for each device; else NULL and 0). Told again: the last one counts. */
void lab_store_reference(struct lab_store *store, uint32_t phase, int32_t device, double median_ns,
                         uint64_t frames, const double *ratios, uint32_t ratio_count);

/* Its mean, after it. */
void lab_store_reference_mean(struct lab_store *store, uint32_t phase, int32_t device,
                              double mean_ns);

/* The time that nine of ten of its frames kept to, after it: on devices not even all of the oracle's frames stay
 * near their median. */
void lab_store_reference_p90(struct lab_store *store, uint32_t phase, int32_t device,
                             double p90_ns);

/* What other programs used of the machine while the run measured, in processors (negative = unknown: nothing is
 * stored), and whether that is so much that the figures say little. */
void lab_store_load(struct lab_store *store, double processors, bool busy);

/* What is read of the machine meanwhile, a number for each from 0 (lab/telemetry/): to be told after the run has begun
 * and before its first session, so that frames can be found by the telemetry's clock. */
struct lab_store_source {
    const char *name, *kind, *part, *unit, *origin;
};
void lab_store_source(struct lab_store *store, uint32_t source,
                      const struct lab_store_source *about);

enum { LAB_SETTING_BYTES = 48 };

/* Values of sources 0 .. count - 1 at a time of CLOCK_MONOTONIC, NaN = none, and a setting's text from then on. Where
 * frames leave no room in the queue they are dropped. From any thread, between lab_store_begin_run and
 * lab_store_close. */
void lab_store_values(struct lab_store *store, uint64_t at_ns, const double *values,
                      uint32_t count);
void lab_store_source_setting(struct lab_store *store, uint64_t at_ns, uint32_t source,
                              const char *text);

/* The run came to its end. */
void lab_store_finish_run(struct lab_store *store);

enum lab_session_kind { LAB_SESSION_POLICY = 0, LAB_SESSION_SOLO = 1, LAB_SESSION_SWEEP = 2 };

struct lab_store_session {
    enum lab_session_kind kind;
    const char *policy;
    uint32_t device;      /* LAB_SESSION_SOLO */
    const double *ratios; /* LAB_SESSION_SWEEP; NULL = none */
    uint32_t ratio_count;
    uint32_t repeat;
    uint32_t
        phase_plus_1; /* 0 = each frame's phase is found by its index in the run's phases; else 1 + the phase of all */
};

/* One stream of frames. Several may be recorded in turns. Belongs to the store; NULL if out of memory (kept as the
 * store's error), which the functions below accept. */
struct lab_session;
struct lab_session *lab_store_begin_session(struct lab_store *store,
                                            const struct lab_store_session *session);

/* A cox_report_fn whose `user` is the session. Warm-up runs are passed over. */
void lab_session_frame(void *session, const struct cox_frame_report *report);

/* A policy that does what `policy` does and records each call and its answer, so that `cox-lab replay --decisions` can
 * ask again. Give it as cox_session_params.custom_policy and create the session before the next one is taped: the
 * policy's interface has no place for a pointer of the caller's, so it is handed over in a variable of this file.
 * Valid until lab_store_close, or `policy` itself if it cannot be taped. */
const struct cox_policy *lab_session_tape(struct lab_session *session,
                                          const struct cox_policy *policy);

/* A lab_tape_fn (tape.h) whose `user` is the session: for a caller that tapes a policy itself. */
struct lab_call;
void lab_session_call(void *session, const struct lab_call *call);

#endif
