/* What a report needs of a session database, read in one transaction, so that a database which grows meanwhile is seen
 * as it was at one moment.
 *
 * Nothing of what is in there is believed: numbers may be missing, of the wrong type or not finite, texts may be
 * anything.
 * Thread-safety: one report_source from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_DATA_H
#define COX_EXAMPLES_LAB_REPORT_DATA_H

#include <coxswain/session.h>

enum {
    REPORT_PHASES_MAX = 64,
    REPORT_POLICIES_MAX = 64,
    REPORT_FEW_DEVICES = 8,         /* that a chart can tell apart */
    REPORT_SESSIONS_MAX = 1024,     /* of one run, of policies */
    REPORT_REASONS = 64,            /* reasons 0 .. 62; the last stands for all others */
    REPORT_FRAMES_MAX = 4000000,    /* of one session */
    REPORT_CELLS_MAX = 100000000,   /* frames times devices of one run */
    REPORT_GAUGES_MAX = 64,         /* of one run */
    REPORT_READINGS_MAX = 10000000, /* of one gauge */
    REPORT_SHARES = 21,             /* 0, 5, ... 100 per cent */
};

struct report_device {
    int64_t number;
    uint32_t
        group; /* devices of one kind, where there are many: those whose names differ in the number at the end only.
                       Where there are few, each is a group of its own */
    char *name, *platform, *driver, *type, *mode; /* may be NULL, as every text below */
};

struct report_phase {
    int64_t number;
    double first_frame, end_frame;
    char *text;
    bool disturbed;
    /* Frame times of the best static split and of each device alone: medians and means. NaN = not measured, as every
     * number below that may be missing. */
    double oracle_ns, oracle_mean_ns;
    double oracle_p90_ns; /* what nine of ten of the oracle's frames kept to */
    char *oracle_ratios;
    double solo_ns[COX_DEVICES_MAX], solo_mean_ns[COX_DEVICES_MAX];
    double best_ns, best_mean_ns; /* the least of them */
    double ideal_ns; /* what all devices would take together without loss: 1 / sum of 1 / solo_ns */
};

/* Least, mean and most of what fell into a bin; count 0 = nothing did. */
struct report_bin {
    double least, mean, most;
    size_t count;
};

/* What was read of the machine meanwhile from one source of telemetry. */
struct report_gauge {
    double number;
    char *name, *kind, *part, *unit, *origin;
    struct report_bin all; /* its readings */
    char *settings;        /* its texts, one after the other; NULL = it has numbers */
    /* Mean over each frame of the run, those of the references too, by the first device's share of the frame's rows,
     * rounded. */
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
    bool moved;  /* other bands than those of the frame before */
    double late; /* 1 = it missed its deadline; NaN = it has none, or its latency is not known */
    double
        time_ns; /* the part of its wall time in which no earlier frame was under way; NaN for a failed frame */
    double predicted_ns;
    double alternative_ns;
    double joules;
    double oracle_ns; /* what the oracle took for this frame, or takes in its phase in the mean */
};

struct report_session {
    int64_t number;
    uint32_t policy; /* index into the run's policies */
    int64_t repeat;
    size_t frame_count;
    struct report_frame *frames; /* ascending */
    uint32_t *rows;              /* rows done: frame_count times pass_count times device_count */
    float *
        finish_ns; /* when a device's last band was done, from the frame's start: frame_count times device_count; 0 =
                         it had none */
    double pass_ns
        [COX_PASSES_MAX]; /* mean of each pass over the good frames; NaN = none of them has it */
    float
        *gauges; /* frame_count times gauge_count: mean while the frame ran; NULL = no telemetry */
};

struct report_run {
    int64_t number;
    char *source, *started_at, *version, *host, *system, *command, *kernel, *objective, *meter;
    double columns, rows, granule, in_flight, frames, deadline_ns;
    double foreign_load; /* processors that other programs used meanwhile */
    bool busy;           /* so much that the figures say little */
    bool finished;
    char *reserve, *reserved_core, *ratio; /* settings of a run on devices */
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
    bool
        oracle_by_frame; /* the oracle's frames were recorded too, as a session of policy "oracle" */
    double frame_end;    /* one past the last frame of any session */
    size_t solo_sessions, sweep_sessions;
    uint32_t gauge_count;
    struct report_gauge *gauges;
    bool gauges_left_out; /* telemetry is there, of too many frames to be gathered */
    size_t foreign_bands; /* bands of devices that the run does not have */
};

struct report_source {
    size_t run_count;
    struct report_run *runs;
    char *reasons[REPORT_REASONS]; /* NULL = the database has no text for it */
};

/* Read everything; `run` > 0: that run only. Returns false with one sentence in `why` that begins with the path;
 * nothing is owned by the caller then. */
bool report_read(const char *path, int64_t run, struct report_source *out, char *why,
                 size_t why_bytes);
void report_free(struct report_source *source);

/* Characters of the device's name that its group has in common; all of them where it is alone. */
size_t report_group_letters(const struct report_run *run, uint32_t device);

/* The text of a reason, by the database or, if it has none, by this program. */
const char *report_reason(const struct report_source *source, uint32_t reason);

#endif
