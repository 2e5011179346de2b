/* Trials: find out by measuring frames, not by a model, whether another plan is faster.
 *
 * A plan is a set of devices and a mode. A trial measures three blocks of frames: with the plan in
 * use, with the other plan, and with the plan in use again. So slow drift of the machine cancels
 * out. The tried plan replaces the other if its frames took less time. A small difference
 * needs a second trial that agrees. A plan that lost is tried again after a pause that doubles. No
 * trial begins until the loss has become a small part of the time since.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_TRIALS_H
#define COX_ADAPTIVE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

enum { COX__TRIAL_PLANS = 24, COX__TRIAL_RING = 32, COX__TRIAL_BLOCK_MAX = 32 };

struct cox__trial_plan {
    uint32_t devices; /* a bit each; 0 = none */
    uint32_t mode;
};

/* IDLE -> BEFORE -> DURING -> AFTER -> IDLE; BEFORE -> IDLE if there is nothing to gain; DURING ->
 * IDLE if the plan is much slower. */
enum cox__trial_phase { COX__TRIAL_IDLE, COX__TRIAL_BEFORE, COX__TRIAL_DURING, COX__TRIAL_AFTER };

/* What the last frame meant for the trial. */
enum cox__trial_verdict { COX__TRIAL_GOES_ON, COX__TRIAL_WON, COX__TRIAL_LOST };

struct cox__trials {
    struct cox__trial_plan in_use, tried;
    enum cox__trial_phase phase;
    uint32_t serial;      /* of the trial */
    uint32_t block;       /* frames that each block measures */
    uint32_t split;       /* frames of the phase that have been split */
    double worth;         /* the trial ends after BEFORE if the mean time is at most this */
    uint32_t tried_split; /* frames that had the other plan */
    struct {
        uint32_t frames;
        double times[COX__TRIAL_BLOCK_MAX]; /* the shortest first */
    } blocks[3];                            /* of BEFORE, DURING and AFTER */
    uint64_t due;                           /* the first frame that may begin a trial */
    uint32_t next;                          /* the entry to replace next */
    struct {
        struct cox__trial_plan plan;
        uint32_t pause;
        uint64_t due;
    } plans[COX__TRIAL_PLANS];
    struct {
        uint64_t frame;
        uint32_t serial;
        enum cox__trial_phase phase;
        bool counts; /* in its block */
    } ring[COX__TRIAL_RING];
};

static inline bool cox__trials_same(struct cox__trial_plan a, struct cox__trial_plan b)
{
    return a.devices == b.devices && a.mode == b.mode;
}

void cox__trials_init(struct cox__trials *trials, struct cox__trial_plan plan);

/* Use another plan from now on, because devices have come or gone: a trial under way ends. */
void cox__trials_use(struct cox__trials *trials, struct cox__trial_plan plan);

/* Whether a trial of the plan may begin with this frame. */
bool cox__trials_due(const struct cox__trials *trials, struct cox__trial_plan plan, uint64_t frame);

/* Begin a trial. `block`: frames of each block, at least. The number doubles if a trial of the plan
 * has been counted before. The other plan is not tried after all if the block before takes no more
 * than `worth`. */
void cox__trials_begin(struct cox__trials *trials, struct cox__trial_plan plan, uint32_t block,
                       double worth);

/* The plan of a frame that is being split. Another `overlap` frames are under way at the same time.
 * After those, `settle` frames of the tried plan do not count, since the devices get used to it.
 * Called once for each frame, in order. */
struct cox__trial_plan cox__trials_plan(struct cox__trials *trials, uint64_t frame,
                                        uint32_t overlap, uint32_t settle);

/* Forget how plans with any of the devices did. */
void cox__trials_forget(struct cox__trials *trials, uint32_t devices);

/* Report the time of a frame, in order, in nanoseconds or whatever the caller counts in. */
enum cox__trial_verdict cox__trials_tell(struct cox__trials *trials, uint64_t frame, double time);

#endif
