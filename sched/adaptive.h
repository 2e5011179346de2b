/* The state of `adaptive`, and what its files share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_ADAPTIVE_H
#define COX_SCHED_ADAPTIVE_H

#include "company.h"
#include "energy.h"
#include "estimator.h"
#include "profile.h"
#include "reserve.h"
#include "tail.h"

#include <coxswain/sched.h>

enum { COX__SLOTS = 16 }; /* frames under way that are told apart; a power of two, at least COX_IN_FLIGHT_MAX */

struct cox__adaptive_device {
    struct cox__estimate estimate;
    bool usable;    /* at the last split */
    bool timed;     /* the estimate is in nanoseconds, not in guesses from hints */
    bool measured;  /* by a band */
    double solo_ns; /* as last told by the view */
    double alone;   /* a frame alone over what the estimate says of it; 0 = not known */
    double lag_ns;  /* mean of what its further launches took beyond their prediction */
    uint32_t out;   /* frames since it was left out or probed */
    uint32_t pause;
};

/* A split in use. */
struct cox__held {
    bool valid;
    uint32_t rows, granule, least; /* of the frame it was made for */
    uint32_t devices;              /* that could take part */
    uint32_t pool_first_row, pool_rows;
    uint32_t first_row[COX_DEVICES_MAX];
    uint32_t count[COX_DEVICES_MAX]; /* rows; 0 = no band */
};

/* A frame under way. */
struct cox__slot {
    uint64_t frame;
    bool used;
    bool trial;
    bool replay;  /* its bands were to end early by the reserve's share, all alike */
    double early; /* share of its time that bands were to end early */
    uint32_t rows;
    uint32_t devices;  /* that may take rows */
    uint32_t launched; /* that have had some */
    uint32_t declined;
    uint32_t cleared;                    /* of suspicion, by how quickly they were back */
    double expected_ns[COX_DEVICES_MAX]; /* of what each device has under way */
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
    bool recalled;
    uint32_t recalled_set; /* devices that were in use when the models were kept; 0 = not recalled */
    bool energy;
    uint32_t changed; /* devices that are not what they were at the last split, a bit for each */
    struct cox__held held;
    struct cox__slot slots[COX__SLOTS];
    struct cox__profile profile;
    struct cox__reserve reserve;
    struct cox__company company;
    struct cox__energy chooser;
    uint64_t observed; /* the frame of `launches` */
    uint32_t launch_count;
    struct cox__launch launches[COX_BANDS_MAX];
    struct cox__adaptive_device devices[];
};

/* The frame under way of this index; NULL = it is not known. */
struct cox__slot *cox__adaptive_slot(struct cox__adaptive *state, uint64_t frame);

/* Time of a whole frame, by the model. */
double cox__adaptive_frame_ns(const struct cox__adaptive_device *device, uint32_t rows);

/* adaptive_learn.c */
void cox__adaptive_observe(void *memory, const struct cox_measurement *measurement);
void cox__adaptive_observe_frame(void *memory, const struct cox_frame_measurement *frame);
/* Learn from the launches that were observed since. */
void cox__adaptive_digest(struct cox__adaptive *state);

/* adaptive_company.c: the set of devices for this frame; `state->company.in_use` unless it is a trial. */
uint32_t cox__adaptive_set(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                           bool changed, bool timed);
/* By how much each device of a set is slower, or faster, in it than its model in the set in use. */
void cox__adaptive_factors(const struct cox__adaptive *state, uint32_t devices, double *factors);

/* adaptive_next.c */
void cox__adaptive_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out);
/* The least rows of a band. */
uint32_t cox__adaptive_least(const struct cox_sched_view *view);

#endif
