/* `adaptive`: the speed of each device is followed (speed.c), and the frame is shared out by
 * water-filling, so that all devices finish together. Where frames tell more than a model would,
 * other plans are tried on blocks of frames (trials.c): fewer devices, whole frames.
 * adaptive/energy.c chooses the split where the objective is energy.
 *
 * With several frames in flight a device need not finish a frame together with the others: what it
 * is ahead, it spends on the next one. Only where a device is so far behind that the others would
 * run dry does the split make up for it.
 *
 * docs/internals/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "split/layout.h"
#include "policies/policies.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <string.h>

/* predicted gain, over the frame time, that is worth a new split, */
static const double MOVE_GAIN = 0.01;
/* and with several frames in flight, where only the mean counts */
static const double MOVE_OVERLAP = 0.005;
/* of the time of the frames in flight: a head start that they hide, */
static const double HEAD_FREE = 0.25;
/* of a frame: most of what is beyond that the split makes up for */
static const double HEAD_MOST = 0.6;
/* a device set's least possible time over the present one, to be tried */
static const double PROMISING = 0.95;
static const double SPARING = 0.92; /* time of whole frames over that of bands, to be tried */
/* a device's time alone over its co-running time, if that is not known */
static const double ALONE_UNKNOWN = 0.5;
enum {
    SHADOW_PART = 16, /* a shadow is this part of the frame */
    PAUSE_MIN = 32,   /* frames between two probes of a device that is left out, */
    PAUSE_MAX = 512,  /* and at most */
    /* frames of a block that tries another mode, and as many as are in flight twice, */
    MODE_BLOCK = 8,
    SET_BLOCK = 4,  /* and another device set */
    SET_SETTLE = 2, /* frames until speeds in another device set are known */
};

/* What is being decided for a frame. */
struct decision {
    bool timed;   /* the speeds are times, not only ratios */
    bool first;   /* nothing was measured yet */
    bool changed; /* the set of usable devices */
    bool trial;   /* `plan` is not the one in use */
    uint32_t usable;
    struct cox__trial_plan plan;
    enum cox_reason reason;
    double ns, rejected_ns; /* the frame's time, and that of the split not taken */
    uint32_t rows[COX_DEVICES_MAX];
    struct cox_cost costs[COX_DEVICES_MAX];
    /* With the part of a device's head start that the split makes up for. */
    struct cox_cost later[COX_DEVICES_MAX];
    /* Until the device is done with earlier frames, from when the first device is. */
    double head_ns[COX_DEVICES_MAX];
};

static size_t adaptive_bytes(uint32_t device_count)
{
    return sizeof(struct cox__adaptive) + device_count * sizeof(struct cox__adaptive_device);
}

static cox_status adaptive_init(void *memory, const struct cox_sched_view *view,
                                const struct cox_policy_options *options)
{
    struct cox__adaptive *state = memory;
    state->device_count = view->device_count;
    state->rows = view->rows;
    cox__trials_init(&state->trials, (struct cox__trial_plan){0});
    state->latency = options && options->objective == COX_OBJECTIVE_LATENCY;
    if (options && options->objective == COX_OBJECTIVE_ENERGY) {
        state->energy = true;
        cox__energy_init(&state->chooser);
    }
    for (uint32_t d = 0; d < view->device_count; d++)
        state->devices[d].pause = PAUSE_MIN;
    return COX_OK;
}

/* --- speeds --- */

/* The relative speed that a device's description suggests. */
static double hint_of(const struct cox_sched_device *device)
{
    return device->hint > 0 ? cox__clip(device->hint, 1e-6, 1e6) : 1;
}

/* Give every usable device a speed: by its time alone, else by the hints, scaled by the devices
 * that have times. Returns whether the speeds are times, not only ratios. */
static bool begin_speeds(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    double scale = 0;
    uint32_t timed = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        const double single_device_ns = (double)view->devices[d].single_device_ns;
        if (single_device_ns > 0)
            device->single_device_ns = single_device_ns;
        if (!device->timed && single_device_ns > 0) {
            cox__speed_begin(&device->speed, single_device_ns, view->rows);
            device->timed = true;
        }
        if (device->timed) {
            scale += cox__speed_level(&device->speed) * hint_of(&view->devices[d]);
            timed++;
        }
    }
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (device->timed || !view->devices[d].usable)
            continue;
        const double per_row = (timed ? scale / timed : 1e6) / hint_of(&view->devices[d]);
        device->speed = (struct cox__speed){0};
        cox__speed_begin(&device->speed, per_row * view->rows, view->rows);
    }
    return timed > 0;
}

static void note_devices(struct cox__adaptive *state, const struct cox_sched_view *view,
                         struct decision *decision)
{
    decision->first = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        decision->changed |= device->usable != view->devices[d].usable;
        device->usable = view->devices[d].usable;
        decision->usable |= device->usable ? UINT32_C(1) << d : 0;
        decision->first &= !device->measured;
    }
}

/* --- plans --- */

/* The least time that a frame can take on a device set: each device as fast as it is alone. */
static double least_ns(const struct cox__adaptive *state, uint32_t devices)
{
    double speed = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        if (!(devices >> d & 1))
            continue;
        const double ns = cox__speed_ns(&device->speed, 1, state->rows);
        speed += 1 / (device->alone > 0              ? device->alone * ns
                      : device->single_device_ns > 0 ? device->single_device_ns
                                                     : ALONE_UNKNOWN * ns);
    }
    return speed > 0 ? 1 / speed : 1e300;
}

/* Begin the trial of a device set that may be faster: one device alone, whose time is known best,
 * one less, or one more. */
static bool try_devices(struct cox__adaptive *state, const struct cox_sched_view *view,
                        uint32_t usable)
{
    struct cox__trials *trials = &state->trials;
    for (uint32_t i = 0; i < 2 * view->device_count; i++) {
        const uint32_t bit = UINT32_C(1) << i % view->device_count;
        struct cox__trial_plan plan = trials->in_use;
        plan.devices = i < view->device_count ? bit : plan.devices ^ bit;
        if (!(usable & bit) || !cox__trials_due(trials, plan, view->frame))
            continue;
        const double ns = least_ns(state, plan.devices);
        if (ns < PROMISING * state->usual_ns) {
            cox__trials_begin(trials, plan, SET_BLOCK, ns / PROMISING);
            return true;
        }
    }
    return false;
}

/* Whether whole frames may be faster: every device always has one and another queued behind it, and
 * by what launches they spare, as far as speeds tell. */
static bool spares_launches(const struct cox__adaptive *state, const struct cox_sched_view *view,
                            uint32_t devices)
{
    double work = view->rows, speed = 0, frames = 0;
    uint32_t count = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__speed *device = &state->devices[d].speed;
        if (!(devices >> d & 1))
            continue;
        count++;
        work += device->theta;
        speed += 1 / cox__speed_level(device);
        frames += 1 / cox__speed_ns(device, 1, view->rows);
    }
    return count > 1 && view->in_flight >= 2 * count && 1 / frames < SPARING * work / speed;
}

static void try_modes(struct cox__adaptive *state, const struct cox_sched_view *view,
                      uint32_t usable)
{
    struct cox__trial_plan plan = {usable, COX__MODE_WHOLE_FRAMES};
    if (state->trials.in_use.mode == COX__MODE_WHOLE_FRAMES)
        plan.mode = COX__MODE_BANDS;
    else if (state->latency || !spares_launches(state, view, usable))
        return;
    if (cox__trials_due(&state->trials, plan, view->frame))
        cox__trials_begin(&state->trials, plan, MODE_BLOCK + 2 * view->in_flight, 0);
}

/* Decide with which devices and how the frame is shared out. */
static void choose_plan(struct cox__adaptive *state, const struct cox_sched_view *view,
                        struct decision *decision)
{
    struct cox__trials *trials = &state->trials;
    if (decision->changed) {
        const uint32_t devices = decision->first && state->loaded_devices & decision->usable
                                     ? state->loaded_devices & decision->usable
                                     : decision->usable;
        cox__trials_use(trials, (struct cox__trial_plan){devices, trials->in_use.mode});
    } else if (trials->phase == COX__TRIAL_IDLE && decision->timed && !state->energy &&
               state->over > 0 && !try_devices(state, view, decision->usable)) {
        try_modes(state, view, decision->usable);
    }
    const uint32_t overlap = view->in_flight > 1 ? view->in_flight : 0;
    const bool of_devices = trials->tried.devices != trials->in_use.devices;
    const uint32_t settle = cox__adaptive_bunches(trials) ? overlap : of_devices ? SET_SETTLE : 0;
    decision->plan = cox__trials_plan(trials, view->frame, overlap, settle);
    decision->trial = trials->phase == COX__TRIAL_DURING;
    for (uint32_t d = 0; decision->trial && trials->split == 1 && d < view->device_count; d++)
        state->devices[d].tried = state->devices[d].speed;
}

/* --- rows --- */

/* When each device will be done with what is queued on it, counted from when the first device that
 * has rows will be. With one frame in flight, that is at once. Devices without rows are idle:
 * queued frames are no reason to give them rows. */
static void fill_heads(struct cox__adaptive *state, const struct cox_sched_view *view,
                       struct decision *decision)
{
    double least = 1e300;
    for (uint32_t d = 0; d < view->device_count; d++) {
        double queued_ns = 0;
        const uint64_t oldest = view->frame < COX__ADAPTIVE_SLOTS
                                    ? 0
                                    : view->frame - COX__ADAPTIVE_SLOTS + 1;
        for (uint64_t f = state->over > oldest ? state->over : oldest; f < view->frame; f++) {
            const struct cox__adaptive_slot *slot = cox__adaptive_frame_slot(state, f);
            queued_ns += slot ? slot->parts[d].expected_ns : 0;
        }
        decision->head_ns[d] = cox__max(0, queued_ns - state->devices[d].lead_ns);
        if (decision->plan.devices >> d & 1 && (!state->current_rows || state->current[d]))
            least = cox__min(least, decision->head_ns[d]);
    }
    for (uint32_t d = 0; d < view->device_count; d++)
        decision->head_ns[d] = cox__max(0, decision->head_ns[d] - least);
}

static double device_ns(const struct cox_cost *cost, uint32_t rows)
{
    return rows ? cost->fixed_ns + cost->ns_per_row * rows : 0;
}

static double frame_ns(const struct cox_sched_view *view, const struct cox_cost *costs,
                       const uint32_t *rows)
{
    double ns = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        ns = cox__max(ns, device_ns(&costs[d], rows[d]));
    return ns;
}

/* The device that would finish the whole frame first. */
static void give_whole(const struct cox_sched_view *view, struct decision *decision)
{
    uint32_t best = view->device_count;
    double best_ns = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        decision->rows[d] = 0;
        const double ns = decision->head_ns[d] + device_ns(&decision->costs[d], view->rows);
        if (decision->costs[d].usable && (best == view->device_count || ns < best_ns)) {
            best = d;
            best_ns = ns;
        }
    }
    decision->rows[best] = view->rows;
    decision->ns = device_ns(&decision->costs[best], view->rows);
}

/* Whether the split in use is good enough to stay. */
static bool stays(const struct cox__adaptive *state, const struct cox_sched_view *view,
                  struct decision *decision)
{
    if (decision->changed || decision->first || state->current_rows != view->rows)
        return false;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (state->current[d] && !decision->costs[d].usable)
            return false;
    decision->rejected_ns = frame_ns(view, decision->later, state->current);
    return decision->rejected_ns <=
           (1 + (view->in_flight > 1 ? MOVE_OVERLAP : MOVE_GAIN)) * decision->ns;
}

static void fill_costs(struct cox__adaptive *state, const struct cox_sched_view *view,
                       struct decision *decision)
{
    const double free_ns = HEAD_FREE * view->in_flight * state->usual_ns;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__speed *speed = cox__adaptive_speed(&state->devices[d], decision->trial);
        const double per_row = cox__layout_sane(cox__speed_level(speed));
        decision->costs[d] = (struct cox_cost){
            .usable = view->devices[d].usable && decision->plan.devices >> d & 1,
            .fixed_ns = cox__clip(per_row * speed->theta, 0, 1e18),
            .ns_per_row = per_row};
        decision->later[d] = decision->costs[d];
        if (state->latency)
            decision->later[d].fixed_ns += decision->head_ns[d];
        else if (view->in_flight > 1)
            decision->later[d].fixed_ns += cox__clip(decision->head_ns[d] - free_ns, 0,
                                                     HEAD_MOST * state->usual_ns);
    }
}

/* Choose the split of the shortest time. False: no device can be used. */
static bool decide_time(struct cox__adaptive *state, const struct cox_sched_view *view,
                        struct decision *decision)
{
    fill_heads(state, view, decision);
    fill_costs(state, view, decision);
    decision->reason = decision->first
                           ? (state->profile_loaded ? COX_REASON_PROFILE : COX_REASON_FIRST)
                       : decision->changed                          ? COX_REASON_DEVICES
                       : decision->trial                            ? COX_REASON_TRIAL
                       : decision->plan.devices != decision->usable ? COX_REASON_SUBSET
                                                                    : COX_REASON_BALANCED;
    if (decision->plan.mode == COX__MODE_WHOLE_FRAMES && view->in_flight > 1) {
        give_whole(view, decision);
        state->current_rows = 0;
        return true;
    }
    decision->ns = cox_waterfill(view->rows, view->row_alignment, view->min_band_rows,
                                 decision->later, view->device_count, decision->rows);
    if (decision->ns < 0)
        return false;
    const bool may_stay = decision->reason == COX_REASON_BALANCED ||
                          decision->reason == COX_REASON_SUBSET;
    if (may_stay && stays(state, view, decision)) {
        const double planned_ns = decision->ns;
        memcpy(decision->rows, state->current, view->device_count * sizeof *decision->rows);
        decision->ns = decision->rejected_ns;
        decision->rejected_ns = planned_ns;
        decision->reason = COX_REASON_KEPT;
    }
    memcpy(state->current, decision->rows, view->device_count * sizeof *decision->rows);
    state->current_rows = decision->trial ? 0 : view->rows;
    for (uint32_t d = 0; decision->reason == COX_REASON_BALANCED && d < view->device_count; d++)
        if (decision->costs[d].usable && !decision->rows[d])
            decision->reason = COX_REASON_DROPPED;
    return true;
}

/* Choose the split of the least energy; false = that is the split of the shortest time. */
static bool decide_energy(struct cox__adaptive *state, const struct cox_sched_view *view,
                          struct decision *decision)
{
    if (!state->energy || !decision->timed || decision->first)
        return false;
    struct cox_cost alone[COX_DEVICES_MAX];
    double noise[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const double factor = device->alone > 0 ? device->alone : 1;
        alone[d] = (struct cox_cost){true, factor * decision->costs[d].fixed_ns,
                                     factor * decision->costs[d].ns_per_row};
        noise[d] = cox__speed_noise(&device->speed);
    }
    struct cox__energy_costs costs = {decision->costs, alone, noise, decision->ns};
    struct cox__energy_choice choice;
    cox__energy_choose(&state->chooser, view, &costs, &choice);
    if (choice.own)
        return false;
    memcpy(decision->rows, choice.rows, view->device_count * sizeof *decision->rows);
    decision->rejected_ns = decision->ns;
    decision->ns = frame_ns(view, decision->costs, decision->rows);
    decision->reason = choice.role == COX__ENERGY_TRIAL ? COX_REASON_TRIAL : COX_REASON_ENERGY;
    state->current_rows = 0;
    return true;
}

/* --- probes --- */

/* Count the frame for every device that has no rows of it. Returns the first one whose pause is
 * over; view->device_count if there is none. */
static uint32_t due_for_probe(struct cox__adaptive *state, const struct cox_sched_view *view,
                              const struct decision *decision)
{
    uint32_t due = view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (decision->rows[d] || !view->devices[d].usable) {
            device->out_frames = 0;
            if (decision->rows[d] && !decision->trial)
                device->pause = PAUSE_MIN;
        } else if (++device->out_frames >= device->pause && due == view->device_count) {
            due = d;
        }
    }
    return due;
}

/* Measure a device that was left out for long enough, by a shadow or by a band taken from the
 * largest one. */
static void probe(struct cox__adaptive *state, const struct cox_sched_view *view,
                  const struct decision *decision, struct cox_split *out)
{
    const uint32_t due = due_for_probe(state, view, decision);
    if (due == view->device_count)
        return;
    const uint32_t least = cox__layout_least_band(view);
    const uint32_t rows = view->rows / SHADOW_PART / view->row_alignment * view->row_alignment;
    struct cox__adaptive_device *device = &state->devices[due];
    const bool shadow = view->shadow &&
                        !device->asked; /* the one asked for before may never come */
    if (shadow)
        out->shadow = (struct cox_band){
            .device = due, .first_row = 0, .rows = rows < least ? least : rows};
    else if (cox__layout_take_band(out, due, least))
        out->reason = COX_REASON_PROBE;
    else
        return;
    if (!shadow && state->energy)
        cox__energy_forget(&state->chooser, view->frame);
    device->asked = shadow;
    device->out_frames = 0;
    device->pause = device->pause * 2 > PAUSE_MAX ? PAUSE_MAX : device->pause * 2;
}

/* --- splitting --- */

/* Remember how the frame was split until it is learned from. */
static void open_slot(struct cox__adaptive *state, const struct cox_sched_view *view,
                      const struct decision *decision)
{
    struct cox__adaptive_slot *slot = &state->frame_slots[view->frame % COX__ADAPTIVE_SLOTS];
    slot->frame = view->frame;
    slot->used = true;
    slot->plan = decision->plan;
    slot->trial = decision->trial ? state->trials.serial : 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        slot->parts[d] = (struct cox__adaptive_part){
            .expected_ns = device_ns(&decision->costs[d], decision->rows[d])};
}

static cox_status adaptive_split(void *memory, const struct cox_sched_view *view,
                                 struct cox_split *out)
{
    struct cox__adaptive *state = memory;
    struct decision decision;
    memset(&decision, 0, sizeof decision);
    note_devices(state, view, &decision);
    if (!decision.usable)
        return COX_E_NO_DEVICE;
    if (state->rows != view->rows) { /* times before are of other frames */
        cox__trials_use(&state->trials, state->trials.in_use);
        state->usual_ns = 0;
    }
    state->rows = view->rows;
    state->in_flight = view->in_flight < 1                     ? 1
                       : view->in_flight > COX__ADAPTIVE_SLOTS ? COX__ADAPTIVE_SLOTS
                                                               : view->in_flight;
    decision.timed = begin_speeds(state, view);
    choose_plan(state, view, &decision);
    if (!decide_time(state, view, &decision))
        return COX_E_NO_DEVICE;
    (void)decide_energy(state, view, &decision);
    out->reason = decision.reason;
    cox__layout_bands(view, decision.rows, out);
    open_slot(state, view, &decision);
    const struct cox__adaptive_slot *slot = &state->frame_slots[view->frame % COX__ADAPTIVE_SLOTS];
    if (decision.timed) {
        out->predicted_ns = cox__layout_ns(decision.ns);
        out->rejected_ns = cox__layout_ns(decision.rejected_ns);
        for (uint32_t d = 0; d < view->device_count; d++)
            out->device_ns[d] = cox__layout_ns(slot->parts[d].expected_ns);
    }
    if (!decision.first)
        probe(state, view, &decision, out);
    return COX_OK;
}

/* --- device profiles --- */

static void adaptive_load_profile(void *memory, const struct cox_sched_view *view,
                                  const struct cox_device_profile *profiles)
{
    struct cox__adaptive *state = memory;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_device_profile *profile = &profiles[d];
        struct cox__adaptive_device *device = &state->devices[d];
        if (!(profile->frames > 0) || !(profile->ns_per_row > 0)) {
            state->loaded_devices |= UINT32_C(1) << d; /* nothing is known against it */
            continue;
        }
        cox__speed_load(&device->speed, profile->fixed_ns, profile->ns_per_row);
        device->timed = true;
        if (profile->single_device_ns > 0 && profile->single_device_ns < 1e19)
            device->single_device_ns = profile->single_device_ns;
        state->profile_loaded = true;
        if (profile->share > 0)
            state->loaded_devices |= UINT32_C(1) << d;
    }
}

static void adaptive_save_profile(const void *memory, const struct cox_sched_view *view,
                                  struct cox_device_profile *profiles)
{
    const struct cox__adaptive *state = memory;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        profiles[d] = (struct cox_device_profile){0};
        if (!device->measured)
            continue;
        const double per_row = cox__speed_level(&device->speed);
        profiles[d].frames = device->speed.frames ? device->speed.frames : 1;
        profiles[d].fixed_ns = per_row * device->speed.theta;
        profiles[d].launch_ns = profiles[d].fixed_ns;
        profiles[d].ns_per_row = per_row;
        profiles[d].single_device_ns = device->single_device_ns;
        profiles[d].share = state->current_rows ? (double)state->current[d] / state->current_rows
                                                : 0;
        if (state->trials.in_use.devices >> d & 1) /* whole frames in turn */
            profiles[d].share = cox__max(profiles[d].share, 1e-6);
    }
}

const struct cox_policy cox__policy_adaptive = {.name = "adaptive",
                                                .state_bytes = adaptive_bytes,
                                                .init = adaptive_init,
                                                .split = adaptive_split,
                                                .observe = cox__learn_band,
                                                .observe_frame = cox__learn_frame,
                                                .load_profile = adaptive_load_profile,
                                                .save_profile = adaptive_save_profile};
