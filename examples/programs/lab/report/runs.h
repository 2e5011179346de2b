/* What a report needs of a session database. It is read in one transaction, so a database that is
 * still growing is seen as it was at one moment.
 *
 * Nothing in the database is trusted: numbers may be missing, of the wrong type or not finite,
 * texts may be anything.
 * Thread-safety: one report_source from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_RUNS_H
#define COX_EXAMPLES_LAB_REPORT_RUNS_H

#include <coxswain/session.h>

enum {
    REPORT_PHASES_MAX = 64,
    REPORT_POLICIES_MAX = 64,
    REPORT_FEW_DEVICES = 8,         /* a chart can tell them apart */
    REPORT_SESSIONS_MAX = 1024,     /* of one run, of policies */
    REPORT_REASONS = 64,            /* reasons 0 .. 62; the last is for all others */
    REPORT_FRAMES_MAX = 4000000,    /* of one session */
    REPORT_CELLS_MAX = 100000000,   /* frames times devices of one run */
    REPORT_GAUGES_MAX = 64,         /* of one run */
    REPORT_READINGS_MAX = 10000000, /* of one gauge */
    REPORT_SHARES = 21,             /* 0, 5, ... 100 per cent */
};

struct report_device {
    int64_t number;
    /* With many devices, those whose names differ only in the number at the end share a group. With
     * few devices, each is alone in its group. */
    uint32_t group;
    char *name, *platform, *driver, *type, *mode; /* may be NULL, as every text below */
};

struct report_phase {
    int64_t number;
    double first_frame, end_frame;
    char *text;
    bool disturbed;
    /* Frame times of the best static split and of each device alone: medians and means. NaN = not
     * measured, as for every number below that may be missing. */
    double oracle_ns, oracle_mean_ns;
    double oracle_p90_ns; /* nine of ten of the oracle's frames took no longer */
    char *oracle_ratios;
    double single_device_ns[COX_DEVICES_MAX], solo_mean_ns[COX_DEVICES_MAX];
    double best_ns, best_mean_ns; /* the least of them */
    double ideal_ns; /* all devices together without loss: 1 / sum of 1 / single_device_ns */
};

/* Least, mean and most of the values in a bin; count 0 = an empty bin. */
struct report_bin {
    double least, mean, most;
    size_t count;
};

/* The readings of one source of telemetry during the run. */
struct report_gauge {
    double number;
    char *name, *kind, *part, *unit, *origin;
    struct report_bin all; /* its readings */
    char *settings;        /* its texts, one after the other; NULL = it has numbers */
    /* Mean over each frame of the run, those of the references too, by the first device's share of
     * the frame's rows, rounded. */
    struct report_bin by_share[REPORT_SHARES];
};

struct report_disturbance {
    char *kind, *text, *note;
    double first_frame, end_frame;
    bool real;
};

struct report_frame {
    double frame;
    uint32_t phase; /* index into the run's phases; phase_count = in none of them */
    uint32_t reason;
    bool failed;
    bool moved;     /* its bands differ from those of the frame before */
    double late;    /* 1 = it missed its deadline; NaN = no deadline, or latency not known */
    double time_ns; /* wall time while no earlier frame was under way; NaN for a failed frame */
    double predicted_ns;
    double rejected_ns;
    double joules;
    double oracle_ns; /* the oracle's time for this frame, or its mean in the phase */
};

struct report_session {
    int64_t number;
    uint32_t policy; /* index into the run's policies */
    int64_t repeat;
    size_t frame_count;
    struct report_frame *frames; /* ascending */
    uint32_t *rows;              /* rows done: frame_count times pass_count times device_count */
    float *finish_ns; /* from the frame's start to the end of a device's last band, 0 = it had no
                         band: frame_count times device_count */
    double pass_ns[COX_PASSES_MAX]; /* mean of each pass over the good frames; NaN = no frame */
    /* mean while the frame ran: frame_count times gauge_count; NULL = no telemetry */
    float *gauges;
};

struct report_run {
    int64_t number;
    char *source, *started_at, *version, *host, *system, *command, *kernel, *objective, *meter;
    double columns, rows, row_alignment, in_flight, frames, deadline_ns;
    double foreign_load; /* processors that other programs used during the run */
    bool busy;           /* other programs used so much that the figures are unreliable */
    bool finished;
    char *reserve, *reserved_core, *ratio; /* settings of a run on devices */

    /* What it was measured with; NULL in databases of earlier versions. */
    char *commit, *build_type, *compiler, *build_flags;
    char *program_sha256, *library_sha256, *kernel_sha256, *scenario_sha256;
    uint32_t device_count, group_count, phase_count, policy_count;
    uint32_t pass_count; /* of a frame; at least 1 */
    char *passes[COX_PASSES_MAX];
    struct report_device devices[COX_DEVICES_MAX];
    struct report_phase phases[REPORT_PHASES_MAX];
    size_t disturbance_count;
    struct report_disturbance *disturbances;
    char *policies[REPORT_POLICIES_MAX]; /* in the order of their first sessions */
    size_t session_count;
    struct report_session *sessions;
    bool oracle_by_frame; /* the oracle's frames were recorded, as a session of policy "oracle" */
    double frame_end;     /* one past the last frame of any session */
    size_t solo_sessions, sweep_sessions;
    uint32_t gauge_count;
    struct report_gauge *gauges;
    bool gauges_left_out; /* there is telemetry, but of too many frames to gather it */
    size_t foreign_bands; /* bands of devices that the run does not have */
};

struct report_source {
    size_t run_count;
    struct report_run *runs;
    char *reasons[REPORT_REASONS]; /* NULL = the database has no text for it */
};

/* Read everything, or only the run of this number if `run` > 0. Returns false with one sentence in
 * `why` that begins with the path; then there is nothing to free. */
bool report_read(const char *path, int64_t run, struct report_source *out, char *why,
                 size_t why_bytes);
void report_free(struct report_source *source);

/* How many characters the names of the device's group have in common; all of the name if it is
 * alone. */
size_t report_group_letters(const struct report_run *run, uint32_t device);

/* The text of a reason from the database or, if it has no text, from this program. */
const char *report_reason(const struct report_source *source, uint32_t reason);

#endif
