/* The state of `adaptive`. adaptive.c decides the splits and learn.c learns from frames; adaptive.c
 * only names the functions of learn.c in its table. Both call deadline.c, costs.c and the parts
 * (speed, trials, energy). The parts do not depend on each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_STATE_H
#define COX_ADAPTIVE_STATE_H

#include "energy.h"
#include "speed.h"
#include "trials.h"

#include <coxswain/sched.h>

/* Frames whose state is kept at a time: a power of two, at least COX_IN_FLIGHT_MAX. */
enum { COX__ADAPTIVE_SLOTS = 16 };

/* How devices share a frame. */
enum cox__adaptive_mode {
    COX__MODE_BANDS,        /* each device gets a band */
    COX__MODE_WHOLE_FRAMES, /* one device gets the whole frame; with several frames in flight */
};

/* What is known about one device. */
struct cox__adaptive_device {
    struct cox__speed speed;
    /* learned in frames of the plan that is being tried, from which `speed` does not learn */
    struct cox__speed tried;
    bool usable;   /* at the last split */
    bool timed;    /* the speed is in nanoseconds, not a guess from hints */
    bool measured; /* the speed has learned from a band */
    bool asked;    /* a shadow was asked for and has not been measured yet */
    /* a whole frame on this device alone, as the last view gave it; 0 = not known */
    double single_device_ns;
    double alone;        /* single_device_ns over the time that `speed` predicts; 0 = not known */
    double lead_ns;      /* in the frame learned from last, how long before its end it finished */
    double margin_ns;    /* how much earlier than the others it is to finish */
    uint32_t out_frames; /* frames since the device was left out or probed */
    uint32_t pause;      /* frames until the next probe */
};

/* What a device does for a frame. */
struct cox__adaptive_part {
    double expected_ns;    /* predicted time of its work */
    struct cox__busy busy; /* measured work */
    double end_ns;         /* end of its last launch, from the frame's start */
};

/* A frame in flight, from its split until it is learned from. */
struct cox__adaptive_slot {
    uint64_t frame;
    bool used;
    bool on_demand; /* a part of the rows */
    struct cox__trial_plan plan;
    /* the serial of the trial whose other plan this is; 0 = it was the plan in use */
    uint32_t trial;
    struct cox__adaptive_part parts[COX_DEVICES_MAX];
};

struct cox__adaptive {
    uint32_t device_count;
    uint32_t rows, in_flight; /* of the last frame */
    bool rows_stay;           /* a new split costs time, because rows move between devices */
    bool profile_loaded;
    /* the devices in use when the device profiles were saved, a bit each; 0 = none were loaded */
    uint32_t loaded_devices;
    bool energy, latency;  /* the objective; else throughput */
    double usual_ns;       /* recent mean time of the frames, including those of trials */
    double latency_ns;     /* recent mean time from submission to delivery; 0 = not known */
    uint32_t enough_alone; /* the device that meets the deadline alone, as a bit; 0 = none */
    uint32_t agreed;       /* frames since another device was enough */
    uint64_t helped_until; /* no device works alone before this frame */
    double spread_ns;      /* recent mean time from the first device's end to the last one's */
    uint64_t over;         /* frames before this one have been learned from */
    double periods[COX__ADAPTIVE_SLOTS]; /* of the last frames, at frame % COX__ADAPTIVE_SLOTS */
    uint32_t current[COX_DEVICES_MAX];   /* rows of each device's band, in the split in use */
    uint32_t current_rows;               /* of the frame it was made for; 0 = none */
    double lost_ns;                      /* by it, since another was faster in every frame */
    struct cox__adaptive_slot frame_slots[COX__ADAPTIVE_SLOTS];
    struct cox__trials trials;
    struct cox__energy chooser;
    struct cox__adaptive_device devices[];
};

/* The slot of a frame in flight; NULL = the frame is not known. */
static inline struct cox__adaptive_slot *cox__adaptive_frame_slot(struct cox__adaptive *state,
                                                                  uint64_t frame)
{
    struct cox__adaptive_slot *slot = &state->frame_slots[frame % COX__ADAPTIVE_SLOTS];
    if (slot->used && slot->frame == frame)
        return slot;
    return NULL;
}

/* The speed to use for frames of the plan in use, or of the plan that is tried. */
static inline struct cox__speed *cox__adaptive_speed(struct cox__adaptive_device *device,
                                                     bool trial)
{
    if (trial)
        return &device->tried;
    return &device->speed;
}

/* Whether a plan of the trial under way hands out whole frames, which are delivered in bunches. */
static inline bool cox__adaptive_bunches(const struct cox__trials *trials)
{
    return trials->tried.mode == COX__MODE_WHOLE_FRAMES ||
           trials->in_use.mode == COX__MODE_WHOLE_FRAMES;
}

/* --- costs.c --- */

/* What a launch costs on the device, times a factor. */
struct cox_cost cox__costs_launch(const struct cox__speed *speed, double factor, bool usable);

/* The least time that a frame can take on a device set. Negative: it cannot be split so. */
double cox__costs_least_ns(const struct cox__adaptive *state, const struct cox_sched_view *view,
                           uint32_t devices);

/* --- deadline.c --- */

/* The device that meets the frame's deadline alone, as a bit; 0 = none. Called once per frame. */
uint32_t cox__deadline_device(struct cox__adaptive *state, const struct cox_sched_view *view);

/* Learn the latency. `gain`: the frame's part in the mean. */
void cox__deadline_learn(struct cox__adaptive *state, const struct cox_frame_measurement *frame,
                         double gain);

/* Leave a part of the rows to cox__deadline_assign, if a deadline asks for that. `rows`: of each
 * device. Returns whether it filled in the bands and the pool. */
bool cox__deadline_on_demand(const struct cox__adaptive *state, const struct cox_sched_view *view,
                             double frame_ns, const uint32_t *rows, struct cox_split *out);

void cox__deadline_assign(void *memory, const struct cox_sched_view *view,
                          const struct cox_chunk_request *request, struct cox_chunk *out);

/* --- learn.c --- */

void cox__learn_band(void *memory, const struct cox_measurement *measurement);
void cox__learn_frame(void *memory, const struct cox_frame_measurement *frame);

#endif
