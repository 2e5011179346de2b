/* The state of `adaptive`, and the functions that its files call in each other.
 *
 * Calls go one way: policy.c calls learn.c, trials.c and next.c; these call state.c and the parts (estimator,
 * row_profile, fluid, tail_reserve, device_set, energy), which know nothing of each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_STATE_H
#define COX_ADAPTIVE_STATE_H

#include "device_set.h"
#include "energy.h"
#include "estimator.h"
#include "fluid.h"
#include "row_profile.h"
#include "tail_reserve.h"

#include <coxswain/sched.h>

enum { COX__FRAME_SLOTS = 16 }; /* frames in flight that are told apart; a power of two, at least COX_IN_FLIGHT_MAX */

/* What is known of one device. */
struct cox__adaptive_device {
    struct cox__estimate estimate;
    bool usable;         /* at the last split */
    bool timed;          /* the estimate is in nanoseconds, not in guesses from hints */
    bool measured;       /* the estimate has learned from a band */
    double solo_ns;      /* a whole frame on this device alone, as the view last told it; 0 = not known */
    double alone;        /* a whole frame alone over what the estimate says of it; 0 = not known */
    double lag_ns;       /* mean of what its further launches took longer than predicted */
    uint32_t out_frames; /* frames since the device was left out or probed */
    uint32_t pause;      /* frames until the next probe */
};

/* Bands and pool of one split, by device. */
struct cox__adaptive_split {
    bool valid;
    uint32_t rows, granule, least; /* the frame's rows, granule and least band that the split was made for */
    uint32_t devices;              /* devices that may take part, a bit each */
    uint32_t pool_first_row, pool_rows;
    uint32_t first_row[COX_DEVICES_MAX];
    uint32_t count[COX_DEVICES_MAX]; /* rows of the device's band; 0 = no band */
};

/* How a frame in flight was split, kept until the frame is observed. */
struct cox__frame_slot {
    uint64_t frame;
    bool used;
    bool trial;      /* the frame tries another device set */
    bool replayable; /* every band was planned with the same tail reserve: the frame teaches how large it should be */
    double tail_reserve; /* share of the frame's time that its bands were planned to end before the frame */
    uint32_t rows;
    uint32_t devices;                    /* that may take rows, a bit each */
    uint32_t launched;                   /* that have had rows of this frame */
    uint32_t declined;                   /* that have declined an offer */
    uint32_t cleared;                    /* suspected devices that were back in time: they have not become slow */
    double expected_ns[COX_DEVICES_MAX]; /* how long each device's band under way should take */
};

/* One launch of the frame that is being observed. */
struct cox__launch {
    uint32_t device, first_row, rows;
    uint32_t flags;
    double ns;
};

struct cox__adaptive {
    uint32_t device_count;
    uint32_t rows; /* of the last frame */
    bool profile_loaded;
    uint32_t loaded_devices; /* in use when the device profiles were saved, a bit each; 0 = none were loaded */
    bool energy;             /* the objective is energy */
    uint32_t changed;        /* devices that have changed since the last split, a bit each */
    struct cox__adaptive_split current;
    struct cox__frame_slot frame_slots[COX__FRAME_SLOTS];
    struct cox__row_profile row_profile;
    struct cox__tail_reserve tail_reserve;
    struct cox__device_sets device_sets;
    struct cox__energy chooser;
    uint64_t observed; /* the frame of `launches` */
    uint64_t over;     /* frames before this one are over */
    uint32_t launch_count;
    struct cox__launch launches[COX_BANDS_MAX];
    struct cox__adaptive_device devices[];
};

/* --- state.c --- */

/* The slot of a frame in flight; NULL = the frame is not known. */
struct cox__frame_slot *cox__adaptive_frame_slot(struct cox__adaptive *state, uint64_t frame);

/* The time of a whole frame on the device, by its estimate. */
double cox__adaptive_frame_ns(const struct cox__adaptive_device *device, uint32_t rows);

/* --- learn.c --- */

void cox__adaptive_observe(void *memory, const struct cox_measurement *measurement);
void cox__adaptive_observe_frame(void *memory, const struct cox_frame_measurement *frame);

/* Learn from the launches observed since the last call. */
void cox__adaptive_digest(struct cox__adaptive *state);

/* --- trials.c --- */

/* The device set for this frame: `state->device_sets.in_use`, unless the frame is a trial of another one. */
uint32_t cox__adaptive_device_set(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                                  bool changed, bool timed);

/* The factor by which each device is slower in the device set `devices` than its estimate says. */
void cox__adaptive_factors(const struct cox__adaptive *state, uint32_t devices, double *factors);

/* --- next.c --- */

void cox__adaptive_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out);

#endif
