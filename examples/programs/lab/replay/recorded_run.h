/* A recorded run in memory, read from a session database: for replay and fit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPLAY_DATA_H
#define COX_EXAMPLES_LAB_REPLAY_DATA_H

#include <coxswain/session.h>

struct sqlite3;

/* What one launch took. */
struct lab_replay_band {
    uint64_t frame;
    uint32_t device;
    uint32_t first_row, rows;
    uint32_t launch;  /* 0 = the device's first of this frame */
    bool good;        /* it ended */
    bool again;       /* rows that another band had before */
    double wall_ns;   /* > 0 */
    double kernel_ns; /* 0 = unknown */
    double begin_ns;  /* when the device could begin it; since the start of the pass */
    double queue_ns;  /* before that: behind earlier bands in the device's queue */
    /* Before that: the device was idle, since the frame's start or since its band before. Always 0
     * for first bands if several frames are in flight. Also 0 for rows that another band had
     * before. */
    double gap_ns;
    double notice_ns; /* how late the engine noticed its end; negative = unknown */
    double together; /* the part of its time in which another device worked on this frame, 0 .. 1 */
};

/* From this frame on the policy could, or could not, give rows to a device. */
struct lab_replay_change {
    uint64_t frame;
    uint32_t device;
    bool usable;
};

struct lab_replay_frame {
    uint64_t frame;
    uint32_t phase;
    uint32_t rows; /* of the pass */
    bool good;
    double start_ns; /* since the session's first frame began */
    double wall_ns;
    double period_ns;
    double pass_start_ns, pass_end_ns; /* since the frame's start; 0 if it has one pass */
    uint32_t reason;
    size_t first_band, band_count; /* in the session's bands */
};

enum lab_replay_kind { LAB_REPLAY_POLICY, LAB_REPLAY_SOLO, LAB_REPLAY_SWEEP };

struct lab_replay_session {
    int64_t session;
    enum lab_replay_kind kind;
    char policy[64];
    uint32_t repeat;
    size_t frame_count, band_count, shadow_count, change_count;
    /* In the order of their numbers, which may have holes. A policy's frames count from 0.
     * References of a run on devices take turns in one stream and have its numbers: near numbers
     * are near in time. */
    struct lab_replay_frame *frames;
    struct lab_replay_band *bands; /* of one frame in the order of their launches on each device */
    struct lab_replay_band *shadows;
    /* Today's code of the policy decides otherwise than the recording: `cox-lab fit` sets it. */
    bool changed;
    /* The rest is from the tape, if there is one. */
    bool taped;
    struct lab_replay_change *changes; /* in order */
    bool profile_loaded;               /* it began with `profiles` */
    bool no_pool, no_shadow;
    uint32_t min_band_rows;
    struct cox_policy_options options; /* its `ratios` point to the field `ratios` */
    double ratios[COX_DEVICES_MAX];
    double hints[COX_DEVICES_MAX];
    double single_device_ns
        [COX_DEVICES_MAX]; /* a whole frame alone, measured by warm-up; 0 = unknown */
    struct cox_device_profile profiles[COX_PASSES_MAX][COX_DEVICES_MAX];
};

/* A run, for the first pass of its frames. Bands, shadows and the devices of the tape belong to
 * that pass. The next pass, with the same sessions and frames, is in `next_pass`. Times of frames
 * are those of whole frames. */
struct lab_replay_data {
    struct lab_replay_data *next_pass; /* NULL = no more */
    int64_t run;
    char kernel[128];
    uint32_t rows, row_alignment, in_flight;
    uint32_t pass_count; /* of a frame */
    char pass_name[64];  /* of this one; "" = none */
    bool finished;
    enum cox_objective objective;
    uint64_t deadline_ns;
    uint32_t device_count;
    char device_names[COX_DEVICES_MAX][128];
    size_t session_count;
    struct lab_replay_session *sessions;
};

/* Read a run; `run` 0 = the last one. False with one sentence in `why`, without the database's
 * name, if something is missing or makes no sense; `*out` is NULL then. */
bool lab_replay_read(struct sqlite3 *db, int64_t run, struct lab_replay_data **out, char *why,
                     size_t why_bytes);

/* Whether frames have one pass, so that a scenario can be fitted; else false with a sentence in
 * `why`. */
bool lab_replay_has_one_pass(const struct lab_replay_data *data, char *why, size_t why_bytes);

/* Sets to NULL; NULL is accepted. */
void lab_replay_free(struct lab_replay_data **data);

/* A sentence into `why`; returns false. */
__attribute__((format(printf, 3, 4))) bool lab_replay_refuse(char *why, size_t why_bytes,
                                                             const char *format, ...);

#endif
