/* The choice of devices and rows for COX_OBJECTIVE_ENERGY: least energy per frame within the
 * deadline. There is no model of power. Candidates are run for a block of frames, and the meter
 * decides.
 *
 * A policy calls cox__energy_choose in each split. The answer is one of these:
 * - The policy's own split, made for the shortest time.
 * - The rows of another candidate that is a device set in balance.
 * - The rows of another candidate that is a set in which all devices but one are filled up to the
 *   deadline. The remaining device takes the rest.
 *
 * A candidate replaces another when the measured difference exceeds its error. A frame over the
 * deadline ends a candidate's turn at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_ENERGY_H
#define COX_ADAPTIVE_ENERGY_H

#include <coxswain/sched.h>

enum {
    /* frames whose candidate is remembered until they are observed; power of two */
    COX__ENERGY_RING = 64,
    COX__ENERGY_CANDIDATES = 4 * COX_DEVICES_MAX + 2,
};

/* A way to split. devices = 0: the caller's own split. */
struct cox__energy_candidate {
    uint32_t devices; /* bit d: device d takes part */
    /* 1 + the device that takes the rest, while the others are filled up; 0 = in balance */
    uint32_t rest;
};

/* Sums over the frames of one candidate. */
struct cox__energy_sums {
    double frames;
    double joules;
    double squares; /* of joules */
    double ns;
};

/* Zeroed, then cox__energy_init. */
struct cox__energy {
    double deadline_ns;         /* the shortest recent one, from submission to delivery; 0 = none */
    double bound_ns;            /* bound on the frame time that follows from the deadline */
    double before_ns, since_ns; /* shortest deadline of some frames, and of those since; 0 = none */
    uint32_t deadline_frames;   /* frames since then */
    double latency_ns, period_ns; /* recent means; 0 = not known */
    double share;                 /* period over latency; at most 1 */

    struct cox__energy_candidate kept, tried;
    bool trial; /* `tried` is being run */
    struct cox__energy_sums kept_sums, tried_sums;
    /* energy of a frame when the candidate was adopted or last reviewed; 0 = not known yet */
    double kept_joules;

    uint32_t cursor;      /* next candidate to look at */
    uint32_t looked;      /* candidates looked at since the search began */
    uint32_t pause;       /* frames between two trials */
    uint32_t wait;        /* frames until the next trial */
    uint32_t own_frames;  /* frames that still use the caller's own split after a missed deadline */
    uint32_t misses;      /* recent missed deadlines */
    uint32_t clean;       /* frames within the deadline since the last miss */
    bool settled;         /* every candidate has been looked at since the search began */
    uint32_t read_frames; /* frames with a reading, counted until the meter is trusted */
    uint32_t unread_frames; /* frames without a reading since the last one that had one */
    uint32_t zero_frames;   /* frames in a row that read zero */
    double zero_ns;         /* the time of these frames */
    double tick_ns;         /* the meter's tick: the longest row of zero readings so far */
    uint32_t usable;        /* devices at the last choice, a bit each */
    uint8_t pass[COX__ENERGY_CANDIDATES]; /* rounds that each candidate still sits out */

    struct cox__energy_candidate turn; /* the candidate whose turn it is */
    uint32_t serial;                   /* of the turn */
    uint32_t turn_frames;              /* frames split in this turn */
    bool has_rows;
    uint32_t rows[COX_DEVICES_MAX]; /* of the turn's last frame */
    struct {
        uint64_t frame_plus_1;
        uint32_t serial;
        bool counts; /* the frame is not among the first of its turn */
    } ring[COX__ENERGY_RING];
};

/* What the caller knows of its devices; arrays of view->device_count. */
struct cox__energy_costs {
    /* in the device set in use; `usable` is not read, because the view has it */
    const struct cox_cost *together;
    const struct cox_cost *alone; /* for sets of one device; NULL = as `together` */
    const double *noise;          /* relative standard deviation of a band's time; NULL = 5 % */
    double own_ns;                /* frame time expected of the caller's own split; 0 = unknown */
};

enum cox__energy_role {
    /* the split of the shortest time: the meter cannot decide, or no other meets the deadline */
    COX__ENERGY_OWN = 0,
    COX__ENERGY_LEAST = 1, /* COX_REASON_ENERGY */
    COX__ENERGY_TRIAL = 2, /* COX_REASON_TRIAL */
};

struct cox__energy_choice {
    enum cox__energy_role role;
    bool own; /* use the caller's own split, whatever the role; `rows` is all zero */
    /* Summing to view->rows, fit for cox__layout_bands; rows of equal cost are assumed. */
    uint32_t rows[COX_DEVICES_MAX];
    double predicted_ns; /* frame time, which is a frame's period; 0 = unknown (own) */
};

void cox__energy_init(struct cox__energy *energy);

/* Decide for frame view->frame. Called once for each frame, in order. Cost: at most five
 * water-fillings. */
void cox__energy_choose(struct cox__energy *energy, const struct cox_sched_view *view,
                        const struct cox__energy_costs *costs, struct cox__energy_choice *out);

/* Report that the frame of the last choice was not split as chosen (calibration, a probe, a device
 * that left). Its energy does not count. */
void cox__energy_forget(struct cox__energy *energy, uint64_t frame);

/* Learn from a frame, in the policy's observe_frame. Frames without a choice, or forgotten ones,
 * are ignored. */
void cox__energy_observe(struct cox__energy *energy, const struct cox_frame_measurement *frame);

#endif
