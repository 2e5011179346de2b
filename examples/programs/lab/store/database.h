/* The session database: what `cox-lab run` and `cox-lab sim --record` measure, in SQLite. Others
 * may query it while it grows. schema.sql makes the tables; docs/reference/session-db.md describes
 * them.
 *
 * Recording must not disturb what it measures. The thread that reports a frame or a policy call
 * copies it into a bounded queue, which takes about a microsecond. The recording thread calls
 * lab_store_write between frames to write the queue. A transaction holds half a second or 64
 * frames. After its commit others can read it, even if this process dies.
 *
 * An error while recording, such as a full disk, does not stop a run. The store keeps the first
 * error and writes nothing after it; lab_store_close reports it, lab_store_error tells it earlier.
 *
 * Thread-safety: lab_session_frame, lab_store_values, lab_store_source_setting and the policies of
 * lab_session_tape may be called from any thread between lab_store_begin_session
 * (lab_store_begin_run, for telemetry) and lab_store_close. Everything else belongs to the
 * recording thread, which opened the store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STORE_H
#define COX_EXAMPLES_LAB_STORE_H

#include <coxswain/session.h>

struct lab_store;
struct sqlite3;

/* Open for recording: create the file, or append to a database of this program. `*out` is NULL
 * unless true is returned. False with one sentence in `why`, which begins with the path, for:
 *   - a symbolic link, or anything else that is not a regular file
 *   - a file of another format than SQLite's
 *   - a database of another program, or with another version of the schema
 *   - a damaged database
 *   - a file that cannot be written */
bool lab_store_open(const char *path, struct lab_store **out, char *why, size_t why_bytes);

/* The same while another process of this run has the file open for recording. The two take turns:
 * call nothing here while the other one has a transaction open, see lab_store_commit. */
bool lab_store_open_beside(const char *path, struct lab_store **out, char *why, size_t why_bytes);

/* Open for reading what lab_store_open would accept; a symbolic link is followed. The file may be
 * growing. The caller closes it with sqlite3_close. */
bool lab_store_open_to_read(const char *path, struct sqlite3 **out, char *why, size_t why_bytes);

/* Whether a file of that name would replace the database or a file that SQLite keeps next to it. */
bool lab_store_is_part(const char *database, const char *path);

/* The first error while recording; NULL = none. Belongs to the store. */
const char *lab_store_error(const struct lab_store *store);

/* Write the queue and close; sets to NULL, NULL is accepted. False with a sentence in `why` if
 * anything was not recorded; what was recorded before stays readable. A run without
 * lab_store_finish_run stays marked as unfinished. */
bool lab_store_close(struct lab_store **store, char *why, size_t why_bytes);

/* Write the queue; commit if it is time. Call it after each frame, if possible when no frame is
 * under way. */
void lab_store_write(struct lab_store *store);

/* Write the queue and commit: others may write then. */
void lab_store_commit(struct lab_store *store);

/* Whether the runs of the database `from` can be added to `to`, which need not exist yet. False
 * with one sentence in `why` that begins with a path. */
bool lab_store_may_merge(const char *from, const char *to, char *why, size_t why_bytes);

/* Append all runs of a database for which lab_store_may_merge returned true: all of them, or none.
 * Not while anything is being recorded. `*added` is their number. False: as above. */
bool lab_store_merge(struct lab_store *store, const char *from, int64_t *added, char *why,
                     size_t why_bytes);

/* --- A run ------------------------------------------------------------------------------------ */

/* Text that is NULL is stored as NULL. */
struct lab_store_run {
    const char *source;     /* "devices" or "simulation" */
    const char *started_at; /* ISO 8601, UTC; NULL = now. Set it if results must not differ */
    const char *host;       /* NULL = this machine's, as for `system` */
    const char *system;     /* operating system and processor */
    const char *command;
    const char *kernel; /* "tonemap", "video", "work" or a file's name; a simulation's scenario */
    uint32_t columns, rows;
    uint32_t row_alignment; /* 0 = lab_store_row_alignment sets it later */
    uint32_t in_flight;
    uint64_t frames; /* of each policy session, as planned */
    enum cox_objective objective;
    uint64_t deadline_ns; /* 0 = none */
    const char *meter;    /* what measures energy; NULL = nothing does */
};

/* What follows belongs to this run. Its frames have one pass of all rows, unless lab_store_pass
 * adds more. Returns its number in the database; 0 if it could not be recorded. */
int64_t lab_store_begin_run(struct lab_store *store, const struct lab_store_run *run);
void lab_store_row_alignment(struct lab_store *store, uint32_t row_alignment);

/* Another parameter of the run: "reserve", "ratio", "source", ... The last value of a name
 * counts. */
void lab_store_setting(struct lab_store *store, const char *name, const char *value);
void lab_store_device(struct lab_store *store, uint32_t device, const struct cox_device_info *info);

/* The run's frames have this pass; `name` NULL = it has none, `stages` 0 = unknown. */
void lab_store_pass(struct lab_store *store, uint32_t pass, const char *name, uint32_t rows,
                    uint32_t stages);

/* Frames first_frame .. end_frame - 1 of a policy session are of this phase. Before the first
 * session. */
void lab_store_phase(struct lab_store *store, uint32_t phase, uint64_t first_frame,
                     uint64_t end_frame, const char *text);

/* A disturbance of the run. The last call for a number counts.
 *   kind   "hog", "gpu-hog", "quota", "delay", ...
 *   text   as given on the command line
 *   real   false for the artificial delay
 *   note   what became of it ("no cgroup may be made here"), or NULL */
void lab_store_disturbance(struct lab_store *store, uint32_t disturbance, const char *kind,
                           const char *text, uint64_t first_frame, uint64_t end_frame, bool real,
                           const char *note);

enum { LAB_REFERENCE_ORACLE = -1 }; /* as `device` */

/* A reference of a phase: median frame time of one device alone, or of the swept oracle. The oracle
 * has ratios, one share for each device; otherwise NULL and 0. The last call for a device
 * counts. */
void lab_store_reference(struct lab_store *store, uint32_t phase, int32_t device, double median_ns,
                         uint64_t frames, const double *ratios, uint32_t ratio_count);

/* Its mean; call it after lab_store_reference. */
void lab_store_reference_mean(struct lab_store *store, uint32_t phase, int32_t device,
                              double mean_ns);

/* Its 90th percentile; call it after lab_store_reference. On devices even the oracle's frames leave
 * their median. */
void lab_store_reference_p90(struct lab_store *store, uint32_t phase, int32_t device,
                             double p90_ns);

/* The load of other programs while the run measured, in processors; negative = unknown, nothing is
 * stored. `busy`: the load is high enough to make the figures doubtful. */
void lab_store_load(struct lab_store *store, double processors, bool busy);

/* A telemetry source (lab/telemetry/), numbered from 0. Call it between lab_store_begin_run and the
 * first session, so that frames can be placed on the telemetry's clock. */
struct lab_store_source {
    const char *name, *kind, *part, *unit, *origin;
};
void lab_store_source(struct lab_store *store, uint32_t source,
                      const struct lab_store_source *about);

enum { LAB_SETTING_BYTES = 48 };

/* Values of sources 0 .. count - 1 at a time of CLOCK_MONOTONIC, NaN = none; and the text of a
 * setting from then on. Dropped if frames leave no room in the queue. From any thread, between
 * lab_store_begin_run and lab_store_close. */
void lab_store_values(struct lab_store *store, uint64_t at_ns, const double *values,
                      uint32_t count);
void lab_store_source_setting(struct lab_store *store, uint64_t at_ns, uint32_t source,
                              const char *text);

/* The run is complete. */
void lab_store_finish_run(struct lab_store *store);

/* --- A session -------------------------------------------------------------------------------- */

enum lab_session_kind { LAB_SESSION_POLICY = 0, LAB_SESSION_SOLO = 1, LAB_SESSION_SWEEP = 2 };

struct lab_store_session {
    enum lab_session_kind kind;
    const char *policy;
    uint32_t device;      /* LAB_SESSION_SOLO */
    const double *ratios; /* LAB_SESSION_SWEEP; NULL = none */
    uint32_t ratio_count;
    uint32_t repeat;
    uint32_t phase_plus_1; /* 1 + the phase of all frames; 0 = by each frame's index */
};

/* One stream of frames. Several may be recorded in turns. Belongs to the store. NULL if out of
 * memory, which is the store's error then; the functions below accept NULL. */
struct lab_session;
struct lab_session *lab_store_begin_session(struct lab_store *store,
                                            const struct lab_store_session *session);

/* A cox_report_fn whose `user` is the session. Ignores warm-up runs. */
void lab_session_frame(void *session, const struct cox_frame_report *report);

/* A policy that does what `policy` does and records each call and its answer, so that `cox-lab
 * replay --decisions` can ask again. Give it as cox_session_params.custom_policy. Create the
 * session before the next one is taped. The policy's interface passes no pointer of the caller's,
 * so a variable of tape.c hands the tape over. Valid until lab_store_close. Returns `policy` itself
 * if it cannot be taped. */
const struct cox_policy *lab_session_tape(struct lab_session *session,
                                          const struct cox_policy *policy);

/* A lab_tape_fn (tape.h) whose `user` is the session: for a caller that tapes a policy itself. */
struct lab_call;
void lab_session_call(void *session, const struct lab_call *call);

#endif
