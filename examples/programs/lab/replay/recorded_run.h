/* A recorded run in memory.
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
    double
        begin_ns; /* since the frame's start, or its pass's where it has several: when the device could begin it */
    double queue_ns; /* before that: behind earlier bands in the device's queue */
    /* Before that: nothing to do, since the frame's start or the device's band before; 0 for first bands where several
     * frames are under way at once, and for rows that another band had before. */
    double gap_ns;
    double together; /* the part of its time that another device worked on this frame, 0 .. 1 */
};

/* From this frame on a device was, or was not, one that may get rows. */
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
    double pass_start_ns, pass_end_ns; /* since the frame's start; 0 where it has one pass */
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
    /* By their number, which may have holes. Those of a policy count from 0; references of a run on devices are turns
     * in one stream, and have its numbers: near numbers are near in time. */
    struct lab_replay_frame *frames;
    struct lab_replay_band *bands; /* of one frame in the order of their launches on each device */
    struct lab_replay_band *shadows;
    /* The rest is from the tape, where there is one. */
    bool taped;
    struct lab_replay_change *changes; /* in order */
    bool profile_loaded;               /* it began with `profiles` */
    bool no_pool, no_shadow;
    uint32_t min_band_rows;
    struct cox_policy_options options; /* its `ratios` point to the field `ratios` */
    double ratios[COX_DEVICES_MAX];
    double hints[COX_DEVICES_MAX];
    double solo_ns[COX_DEVICES_MAX]; /* a whole frame alone, as warm-up had it; 0 = unknown */
    struct cox_device_profile profiles[COX_PASSES_MAX][COX_DEVICES_MAX];
};

/* Of a frame's first pass: bands, shadows and what the tape tells of devices; the next ones' are in `next_pass`, of the
 * same sessions and frames. Frames' times are the whole frames'. */
struct lab_replay_data {
    struct lab_replay_data *next_pass; /* NULL = there is none */
    int64_t run;
    char kernel[128];
    uint32_t rows, granule, in_flight;
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

/* Read a run; `run` 0 = the last one. `*out` is NULL unless true is returned; else `why` says in one sentence, without
 * the database's name, what is missing or makes no sense. */
bool lab_replay_read(struct sqlite3 *db, int64_t run, struct lab_replay_data **out, char *why,
                     size_t why_bytes);

/* Whether frames have one pass, which a scenario can be fitted to; else false with a sentence in `why`. */
bool lab_replay_has_one_pass(const struct lab_replay_data *data, char *why, size_t why_bytes);

/* Sets to NULL; NULL is accepted. */
void lab_replay_free(struct lab_replay_data **data);

/* A sentence into `why`; returns false. */
__attribute__((format(printf, 3, 4))) bool lab_replay_refuse(char *why, size_t why_bytes,
                                                             const char *format, ...);

#endif
