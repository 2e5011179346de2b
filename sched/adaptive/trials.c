/* The device set of each frame: all usable devices, unless a trial has shown that fewer are faster.
 *
 * Warm-up tells what each device takes alone, the estimates what it takes in the set in use. So the frame time of any
 * other set has a lower bound: each device as fast as alone. Only sets whose bound promises a gain are tried, for one
 * frame (where frames overlap, for as many as are in flight and one). The trial shows how much slower each device is in
 * that set; from this follows the time of a balanced split, whatever the trial's own split took. Where co-running costs
 * nothing no set is ever tried: fewer devices cannot be faster.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>

/* Of the time of the set in use: */
static const double TRIES_KNOWN = 0.985;   /* a single device is tried if its time alone is below this, */
static const double TRIES_UNKNOWN = 0.975; /* a set of several if its lower bound is below this; */
static const double ADOPTS = 0.985;        /* a single device is adopted after a trial below this, */
static const double ADOPTS_SET = 0.98;     /* a set of several, which is harder to judge, below this */
static const double SETTLED = 4;           /* frames of each device before sets of several are tried */
static const double DOUBT = 1.15;          /* warm-up times: a single device that took longer is tried again soon */
static const double ALONE_UNKNOWN = 0.5;   /* time alone over the estimate, assumed without a warm-up */
static const double SLOWER_MOST = 100;
static const double SWITCH = 0.06; /* relative deviation of the estimates after a change of the set in use */
enum { DOUBT_PAUSE = 4 };          /* frames until the trial that was in doubt is made again */
enum { CANDIDATES = 4 };           /* sets looked at in a frame */

static bool is_single(uint32_t devices)
{
    return (devices & (devices - 1)) == 0;
}

static uint32_t first_of(uint32_t devices)
{
    uint32_t d = 0;
    while (!(devices >> d & 1))
        d++;
    return d;
}

/* A whole frame alone over what the estimate says of it: at most 1, unless the warm-up was disturbed. */
static double alone_of(const struct cox__adaptive *state, uint32_t d)
{
    const struct cox__adaptive_device *device = &state->devices[d];
    if (state->device_sets.in_use == 1u << d)
        return 1;
    if (device->alone > 0)
        return device->alone;
    if (device->solo_ns > 0 && device->timed)
        return cox__clip(device->solo_ns / cox__adaptive_frame_ns(device, state->rows), 0.05, 1.5);
    return 1;
}

void cox__adaptive_factors(const struct cox__adaptive *state, uint32_t devices, double *factors)
{
    for (uint32_t d = 0; d < state->device_count; d++)
        factors[d] = 1;
    if (devices == state->device_sets.in_use)
        return;
    const struct cox__device_set *set = cox__device_sets_find(&state->device_sets, devices);
    bool known = set && set->known;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (devices >> d & 1)
            factors[d] = alone_of(state, d) * (known ? set->slower[d] : 1);
}

/* The time of a frame on these devices, each slower by a factor than its estimate says; negative if none is usable. */
static double level_ns(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices,
                       const double *factors)
{
    struct cox__fluid_device fluid[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++) {
        const double *x = state->devices[d].estimate.x;
        fluid[d].in = (devices >> d & 1) != 0 && view->devices[d].usable;
        if (!fluid[d].in)
            continue;
        fluid[d].start_ns = factors[d] * x[COX__FIRST];
        fluid[d].speed = 1 / (factors[d] * x[COX__PER_ROW]);
    }
    return cox__fluid_level(fluid, view->device_count, view->rows);
}

/* The time of a frame on a device set, by what its last trial has shown. */
static double device_set_ns(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices)
{
    double factors[COX_DEVICES_MAX];
    cox__adaptive_factors(state, devices, factors);
    return level_ns(state, view, devices, factors);
}

/* The lower bound of that time: each device as fast as alone. */
static double device_set_least_ns(const struct cox__adaptive *state, const struct cox_sched_view *view,
                                  uint32_t devices)
{
    double factors[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        factors[d] = alone_of(state, d);
    return level_ns(state, view, devices, factors);
}

/* Put another set in use: the estimates become those of devices in that set. */
static void use_device_set(struct cox__adaptive *state, uint32_t devices)
{
    struct cox__device_sets *sets = &state->device_sets;
    struct cox__device_set *before = cox__device_sets_entry(sets, sets->in_use);
    before->known = true;
    double alone[COX_DEVICES_MAX], factors[COX_DEVICES_MAX] = {0};
    for (uint32_t d = 0; d < state->device_count; d++) {
        alone[d] = alone_of(state, d);
        before->slower[d] = 1 / alone[d];
    }
    cox__adaptive_factors(state, devices, factors);
    for (uint32_t d = 0; d < state->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (!(devices >> d & 1) || !device->timed)
            continue;
        cox__estimate_scale(&device->estimate, factors[d], SWITCH);
        device->alone = cox__clip(alone[d] / factors[d], 1 / SLOWER_MOST, 1.5);
    }
    sets->in_use = devices;
}

/* Frames of a trial. Where frames overlap, the one that is measured must follow frames that are split alike. */
static uint32_t trial_frames(const struct cox_sched_view *view)
{
    return view->in_flight > 1 ? view->in_flight + 1 : 1;
}

/* Judge the trial, and adopt its set if that is faster. */
static void end_trial(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    struct cox__device_sets *sets = &state->device_sets;
    uint32_t frames = trial_frames(view);
    uint32_t devices = sets->trial;
    sets->trial = 0;
    struct cox__device_set *set = cox__device_sets_entry(sets, devices);
    for (uint32_t d = 0; d < state->device_count; d++) {
        if (!(devices >> d & 1))
            continue;
        bool seen = sets->trial_seen >> d & 1;
        double ratio = seen ? sets->trial_ns[d] / sets->trial_predicted_ns[d] : 1;
        if (is_single(devices) && seen) {
            double ns = ratio * cox__adaptive_frame_ns(&state->devices[d], view->rows);
            if (state->devices[d].solo_ns > 0 && ns > DOUBT * state->devices[d].solo_ns && set->pause > DOUBT_PAUSE)
                set->pause = DOUBT_PAUSE; /* the trial or the warm-up was disturbed: try soon again */
            else
                state->devices[d].alone = cox__clip(ratio, 1 / SLOWER_MOST, 1.5);
            sets->trial_ns[d] = ns;
            set->slower[d] = 1;
        } else {
            set->slower[d] = cox__clip(seen ? ratio / alone_of(state, d) : 1, 0.5, SLOWER_MOST);
        }
    }
    set->known = true;
    uint32_t before = sets->in_use;
    double ns = is_single(devices) && sets->trial_seen ? sets->trial_ns[first_of(devices)]
                                                       : device_set_ns(state, view, devices);
    double before_ns = device_set_ns(state, view, before);
    if (ns < (is_single(devices) ? ADOPTS : ADOPTS_SET) * before_ns) {
        use_device_set(state, devices);
        cox__device_sets_lost(sets, before, view->frame, frames, 0);
    } else {
        cox__device_sets_lost(sets, devices, view->frame, frames, ns / before_ns - 1);
    }
}

static uint32_t begin_trial(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices)
{
    struct cox__device_sets *sets = &state->device_sets;
    sets->trial = devices;
    sets->trial_left = trial_frames(view) - 1;
    sets->trial_last = view->frame + sets->trial_left;
    sets->trial_seen = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        sets->trial_ns[d] = sets->trial_predicted_ns[d] = 0;
    return devices;
}

/* The single device that is worth a trial most; 0 = none. `in_use_ns` is the frame time of the set in use. */
static uint32_t single_candidate(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                                 double in_use_ns)
{
    const struct cox__device_sets *sets = &state->device_sets;
    uint32_t best = 0;
    double best_ns = TRIES_KNOWN * in_use_ns;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        if (!(usable >> d & 1) || sets->in_use == 1u << d)
            continue;
        bool known = device->solo_ns > 0 || device->alone > 0;
        if (!known && device->estimate.frames < SETTLED)
            continue;
        double ns = (known ? alone_of(state, d) : ALONE_UNKNOWN) * cox__adaptive_frame_ns(device, view->rows);
        if (!(ns < best_ns))
            continue;
        const struct cox__device_set *set = cox__device_sets_find(sets, 1u << d);
        if (!(set && view->frame < set->due)) {
            best_ns = ns;
            best = 1u << d;
        }
    }
    return best;
}

/* A set of several devices, one more or less than in use, that is worth a trial; 0 = none. */
static uint32_t set_candidate(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                              double in_use_ns)
{
    struct cox__device_sets *sets = &state->device_sets;
    if (view->frame < sets->due)
        return 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if ((sets->in_use >> d & 1) && state->devices[d].estimate.frames < SETTLED)
            return 0;
    for (uint32_t tries = 0; tries < CANDIDATES; tries++) {
        sets->cursor = (sets->cursor + 1) % view->device_count;
        uint32_t devices = (sets->in_use ^ 1u << sets->cursor) & usable;
        if (devices == 0 || is_single(devices) || devices == sets->in_use)
            continue;
        const struct cox__device_set *set = cox__device_sets_find(sets, devices);
        if (set && view->frame < set->due)
            continue;
        /* The pause is over, so what an earlier trial has shown is not used: it may have been disturbed. */
        double ns = device_set_least_ns(state, view, devices);
        if (ns > 0 && ns < TRIES_UNKNOWN * in_use_ns)
            return devices;
    }
    return 0;
}

uint32_t cox__adaptive_device_set(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                                  bool changed, bool timed)
{
    struct cox__device_sets *sets = &state->device_sets;
    if (sets->in_use == 0 || changed) {
        bool again = state->loaded_devices && (state->loaded_devices & ~usable) == 0;
        sets->in_use = again ? state->loaded_devices : usable;
        if (sets->in_use != usable)
            cox__device_sets_lost(sets, usable, view->frame, trial_frames(view), 0);
        state->loaded_devices = 0;
        sets->trial = 0;
    }
    if (sets->trial) {
        if (sets->trial_left > 0) {
            sets->trial_left--;
            return sets->trial;
        }
        if (sets->trial_seen == 0 && view->frame <= sets->trial_last + COX__FRAME_SLOTS)
            return sets->in_use; /* the trial is not observed yet */
        end_trial(state, view);
    }
    if (!timed || is_single(usable))
        return sets->in_use;
    for (uint32_t d = 0; d < view->device_count; d++)
        if ((sets->in_use >> d & 1) && (!state->devices[d].measured || state->devices[d].estimate.suspected_change > 0))
            return sets->in_use;
    double in_use_ns = device_set_ns(state, view, sets->in_use);
    uint32_t devices = single_candidate(state, view, usable, in_use_ns);
    if (devices == 0)
        devices = set_candidate(state, view, usable, in_use_ns);
    return devices ? begin_trial(state, view, devices) : sets->in_use;
}
