/* `adaptive`: shares out each frame by water-filling over the measured speed of each device
 * (speed.c), so that all devices finish together. Where a model cannot decide, it tries other plans
 * on blocks of frames (trials.c): fewer devices, or whole frames. energy.c chooses the split if the
 * objective is energy.
 *
 * With several frames in flight, a device need not finish a frame together with the others: it
 * spends a head start on the next frame. The split makes up for a device that is behind only if the
 * others would run out of work.
 *
 * docs/internals/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/layout.h"
#include "policies/policies.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <string.h>

/* Least predicted gain, relative to the frame time, that moves the split. 0 is slower by 0.1 % with
 * six frames in flight, and as fast with fewer. */
static const double MOVE_GAIN = 0.01;
/* A head start up to this part of the time of the frames in flight is hidden by them. */
static const double HEAD_FREE = 0.25;
/* The split makes up for the rest of a head start, up to this part of a frame. */
static const double HEAD_MOST = 0.6;
/* A device set is tried if its least possible time is below this part of the present one. */
static const double PROMISING = 0.95;
/* Whole frames are tried if their time is below this part of that of bands. */
static const double SPARING = 0.92;
enum {
    SHADOW_PART = 16, /* a shadow is this part of the frame */
    PAUSE_MIN = 32,   /* least frames between two probes of a device that is left out */
    /* Most frames between them. A shadow slows down its neighbours: fewer than 1 % of the frames
     * have one. 64 finds devices that came back earlier: 0.08 % in the mean. */
    PAUSE_MAX = 128,
    MODE_BLOCK = 8, /* frames of a block that tries another mode; frames in flight count twice */
    SET_BLOCK = 4,  /* frames of a block that tries another device set */
    SET_SETTLE = 2, /* frames until speeds in another device set are known */
};

/* The decision for one frame. */
struct decision {
    bool timed;   /* the speeds are times, not only ratios */
    bool first;   /* nothing was measured yet */
    bool changed; /* the set of usable devices */
    bool trial;   /* `plan` is not the one in use */
    uint32_t usable;
    struct cox__trial_plan plan;
    enum cox_reason reason;
    double ns, rejected_ns; /* the frame's time, and that of the split that was not taken */
    uint32_t rows[COX_DEVICES_MAX];
    struct cox_cost costs[COX_DEVICES_MAX];
    /* The costs, plus the margin and the part of a head start that the split makes up for. */
    struct cox_cost later[COX_DEVICES_MAX];
    /* Time until the device has finished earlier frames, after the first device has. */
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
    if (device->hint > 0)
        return cox__clip(device->hint, 1e-6, 1e6);
    return 1;
}

/* Give every usable device a speed: by its time alone, else by the hints, scaled by the devices
 * that have times. Returns whether the speeds are times and not only ratios. */
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
    double guess_ns = 1e6; /* of a row, at a hint of 1 */
    if (timed)
        guess_ns = scale / timed;

    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (device->timed || !view->devices[d].usable)
            continue;

        const double per_row = guess_ns / hint_of(&view->devices[d]);
        device->speed = (struct cox__speed){0};
        cox__speed_begin(&device->speed, per_row * view->rows, view->rows);
    }

    return timed > 0;
}

/* Note which devices are usable, and whether any was measured. */
static void note_devices(struct cox__adaptive *state, const struct cox_sched_view *view,
                         struct decision *decision)
{
    decision->first = true;

    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        decision->changed |= device->usable != view->devices[d].usable;

        device->usable = view->devices[d].usable;
        if (device->usable)
            decision->usable |= UINT32_C(1) << d;
        decision->first &= !device->measured;
    }
}

/* --- plans --- */

/* Whether PAUSE_MAX frames save what it costs to move the rows there and back. */
static bool pays_for_moves(const struct cox__adaptive *state, const struct cox_sched_view *view,
                           double ns)
{
    return PAUSE_MAX * (state->usual_ns - ns) >= 2 * view->move_ns * view->rows;
}

/* Begin the trial of a device set that may be faster. First each device alone, whose time is known
 * best, then the set in use with one device less or more. */
static bool try_devices(struct cox__adaptive *state, const struct cox_sched_view *view,
                        uint32_t usable)
{
    struct cox__trials *trials = &state->trials;

    for (uint32_t i = 0; i < 2 * view->device_count; i++) {
        const uint32_t bit = UINT32_C(1) << i % view->device_count;
        struct cox__trial_plan plan = trials->in_use;
        if (i < view->device_count)
            plan.devices = bit;
        else
            plan.devices ^= bit;
        if (!(usable & bit) || !cox__trials_due(trials, plan, view->frame))
            continue;

        const double ns = cox__costs_least_ns(state, view, plan.devices);
        if (ns < PROMISING * state->usual_ns && pays_for_moves(state, view, ns)) {
            cox__trials_begin(trials, plan, SET_BLOCK, ns / PROMISING);
            return true;
        }
    }

    return false;
}

/* Whether whole frames may be faster. They need a second frame queued behind the first on every
 * device, and must save enough launches, as far as the speeds can tell. */
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

/* Begin the trial of the other mode: whole frames instead of bands, or bands again. */
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

/* The devices to use after the set of usable devices has changed. The first frame uses those of the
 * device profile, if any of them is usable. */
static uint32_t changed_devices(const struct cox__adaptive *state, const struct decision *decision)
{
    const uint32_t loaded = state->loaded_devices & decision->usable;

    if (decision->first && loaded)
        return loaded;
    return decision->usable;
}

/* Decide which devices share the frame, and how. */
static void choose_plan(struct cox__adaptive *state, const struct cox_sched_view *view,
                        struct decision *decision)
{
    struct cox__trials *trials = &state->trials;
    uint32_t enough = 0;

    if (!decision->changed)
        enough = cox__deadline_device(state, view);

    if (decision->changed) {
        const uint32_t devices = changed_devices(state, decision);
        cox__trials_use(trials, (struct cox__trial_plan){devices, trials->in_use.mode});
    } else if (enough != state->enough_alone) {
        const uint32_t devices = enough ? enough : decision->usable;
        cox__trials_use(trials, (struct cox__trial_plan){devices, COX__MODE_BANDS});
    } else if (!enough && trials->phase == COX__TRIAL_IDLE && decision->timed && !state->energy &&
               state->over > 0 && !try_devices(state, view, decision->usable)) {
        try_modes(state, view, decision->usable);
    }

    state->enough_alone = enough;

    /* After a change of mode, frames in flight of the old mode do not count. */
    uint32_t overlap = 0, settle = 0;
    if (view->in_flight > 1)
        overlap = view->in_flight;
    if (cox__adaptive_bunches(trials))
        settle = overlap;
    else if (trials->tried.devices != trials->in_use.devices)
        settle = SET_SETTLE;

    /* The first frames on another device set pay for the rows that move. */
    if (view->move_ns > 0) {
        overlap += settle;
        settle = 0;
    }

    decision->plan = cox__trials_plan(trials, view->frame, overlap, settle);
    decision->trial = trials->phase == COX__TRIAL_DURING;

    /* The first frame of the tried plan begins with the speeds of the plan in use. */
    for (uint32_t d = 0; decision->trial && trials->split == 1 && d < view->device_count; d++)
        state->devices[d].tried = state->devices[d].speed;
}

/* --- rows --- */

/* The expected time of the frames that are queued on a device and have not been learned from. */
static double queued_on(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t d)
{
    uint64_t first = state->over;
    if (view->frame >= COX__ADAPTIVE_SLOTS && first < view->frame - COX__ADAPTIVE_SLOTS + 1)
        first = view->frame - COX__ADAPTIVE_SLOTS + 1;

    double queued_ns = 0;
    for (uint64_t f = first; f < view->frame; f++) {
        const struct cox__adaptive_slot *slot = cox__adaptive_frame_slot(state, f);
        if (slot)
            queued_ns += slot->parts[d].expected_ns;
    }
    return queued_ns;
}

/* When each device will have finished its queued frames, counted from when the first device that
 * has rows will have. With one frame in flight, that is at once. Devices without rows are idle:
 * the frames queued on the others are no reason to give them rows. */
static void fill_heads(struct cox__adaptive *state, const struct cox_sched_view *view,
                       struct decision *decision)
{
    double least = 1e300;

    for (uint32_t d = 0; d < view->device_count; d++) {
        const double queued_ns = queued_on(state, view, d);
        decision->head_ns[d] = cox__max(0, queued_ns - state->devices[d].lead_ns);

        if (decision->plan.devices >> d & 1 && (!state->current_rows || state->current[d]))
            least = cox__min(least, decision->head_ns[d]);
    }

    for (uint32_t d = 0; d < view->device_count; d++)
        decision->head_ns[d] = cox__max(0, decision->head_ns[d] - least);
}

static double device_ns(const struct cox_cost *cost, uint32_t rows)
{
    if (rows == 0)
        return 0;
    return cost->fixed_ns + cost->ns_per_row * rows;
}

static double frame_ns(const struct cox_sched_view *view, const struct cox_cost *costs,
                       const uint32_t *rows)
{
    double ns = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        ns = cox__max(ns, device_ns(&costs[d], rows[d]));

    return ns;
}

/* Give the frame to the device that would finish it first. */
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

/* Rows that the devices must get from each other for a new split. */
static uint32_t moved_rows(const struct cox__adaptive *state, const struct cox_sched_view *view,
                           const uint32_t *rows)
{
    uint32_t kept = 0, old_first = 0, new_first = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        const uint32_t old_end = old_first + state->current[d], new_end = new_first + rows[d];
        const uint32_t first = cox__max_u32(old_first, new_first);
        const uint32_t end = cox__min_u32(old_end, new_end);

        if (first < end)
            kept += end - first;
        old_first = old_end;
        new_first = new_end;
    }

    return view->rows - kept;
}

/* Whether moving rows would cost more than the split in use has lost so far. So a split that loses
 * by chance stays, and one that keeps losing costs at most twice what it must. */
static bool move_costs_more(struct cox__adaptive *state, const struct cox_sched_view *view,
                            const struct decision *decision)
{
    state->lost_ns += decision->rejected_ns - decision->ns;
    return state->lost_ns < view->move_ns * moved_rows(state, view, decision->rows);
}

/* Whether the split in use is good enough to keep. Counts what it loses. */
static bool stays(struct cox__adaptive *state, const struct cox_sched_view *view,
                  struct decision *decision)
{
    if (decision->changed || decision->first || state->current_rows != view->rows)
        return false;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (state->current[d] && !decision->costs[d].usable)
            return false;

    decision->rejected_ns = frame_ns(view, decision->later, state->current);
    if (decision->rejected_ns <= (1 + MOVE_GAIN) * decision->ns) {
        state->lost_ns = 0;
        return true;
    }

    return move_costs_more(state, view, decision);
}

/* Fill in what each device costs in this frame, now and after its queued frames. */
static void fill_costs(struct cox__adaptive *state, const struct cox_sched_view *view,
                       struct decision *decision)
{
    const double free_ns = HEAD_FREE * view->in_flight * state->usual_ns;

    for (uint32_t d = 0; d < view->device_count; d++) {
        decision->costs[d] =
            cox__costs_launch(cox__adaptive_speed(&state->devices[d], decision->trial), 1,
                              view->devices[d].usable && decision->plan.devices >> d & 1);

        decision->later[d] = decision->costs[d];
        decision->later[d].fixed_ns += state->devices[d].margin_ns;
        if (state->latency)
            decision->later[d].fixed_ns += decision->head_ns[d];
        else if (view->in_flight > 1)
            decision->later[d].fixed_ns += cox__clip(decision->head_ns[d] - free_ns, 0,
                                                     HEAD_MOST * state->usual_ns);
    }
}

/* The reason for the frame's split, unless the split in use stays. */
static enum cox_reason reason_of(const struct cox__adaptive *state, const struct decision *decision)
{
    if (decision->first && state->profile_loaded)
        return COX_REASON_PROFILE;
    if (decision->first)
        return COX_REASON_FIRST;
    if (decision->changed)
        return COX_REASON_DEVICES;
    if (decision->trial)
        return COX_REASON_TRIAL;
    if (decision->plan.devices != decision->usable)
        return COX_REASON_SUBSET;
    return COX_REASON_BALANCED;
}

/* Choose the split of the shortest time. False: no device can be used. */
static bool decide_time(struct cox__adaptive *state, const struct cox_sched_view *view,
                        struct decision *decision)
{
    fill_heads(state, view, decision);
    fill_costs(state, view, decision);
    decision->reason = reason_of(state, decision);

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

    if (decision->reason != COX_REASON_KEPT)
        state->lost_ns = 0;
    memcpy(state->current, decision->rows, view->device_count * sizeof *decision->rows);
    state->current_rows = view->rows;
    if (decision->trial)
        state->current_rows = 0;

    for (uint32_t d = 0; decision->reason == COX_REASON_BALANCED && d < view->device_count; d++)
        if (decision->costs[d].usable && !decision->rows[d])
            decision->reason = COX_REASON_DROPPED;

    return true;
}

/* Choose the split of the least energy. False: that is the split of the shortest time. */
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
    decision->reason = COX_REASON_ENERGY;
    if (choice.role == COX__ENERGY_TRIAL)
        decision->reason = COX_REASON_TRIAL;

    state->current_rows = 0;
    return true;
}

/* --- probes --- */

/* Count the frame for every device that has no rows in it. Returns the first device whose pause is
 * over, or view->device_count if no device is due. */
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

/* Measure a device that was left out for long enough: by a shadow, or by a band taken from the
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

    /* If a shadow was asked for before and never came, do not wait for another. */
    const bool shadow = view->shadow && !device->asked;
    if (shadow)
        out->shadow = (struct cox_band){
            .device = due, .first_row = 0, .rows = cox__max_u32(rows, least)};
    else if (cox__layout_take_band(out, due, least))
        out->reason = COX_REASON_PROBE;
    else
        return;

    if (!shadow && state->energy)
        cox__energy_forget(&state->chooser, view->frame);
    device->asked = shadow;
    device->out_frames = 0;
    device->pause = cox__double_pause(device->pause, PAUSE_MAX);
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
    slot->trial = 0;
    if (decision->trial)
        slot->trial = state->trials.serial;

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

    /* Earlier times are of frames of another size. */
    if (state->rows != view->rows) {
        cox__trials_use(&state->trials, state->trials.in_use);
        state->usual_ns = 0;
    }
    state->rows = view->rows;
    state->rows_stay = view->move_ns > 0;
    state->in_flight = cox__min_u32(cox__max_u32(view->in_flight, 1), COX__ADAPTIVE_SLOTS);

    decision.timed = begin_speeds(state, view);
    choose_plan(state, view, &decision);
    if (!decide_time(state, view, &decision))
        return COX_E_NO_DEVICE;
    (void)decide_energy(state, view, &decision);

    out->reason = decision.reason;
    open_slot(state, view, &decision);
    struct cox__adaptive_slot *slot = &state->frame_slots[view->frame % COX__ADAPTIVE_SLOTS];
    slot->on_demand = cox__deadline_on_demand(state, view, decision.ns, decision.rows, out);
    if (!slot->on_demand)
        cox__layout_bands(view, decision.rows, out);

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
        /* Nothing speaks against a device without a profile. */
        if (!(profile->frames > 0) || !(profile->ns_per_row > 0)) {
            state->loaded_devices |= UINT32_C(1) << d;
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
        profiles[d].frames = cox__max_u32(device->speed.frames, 1);
        profiles[d].fixed_ns = per_row * device->speed.theta;
        profiles[d].launch_ns = profiles[d].fixed_ns;
        profiles[d].ns_per_row = per_row;
        profiles[d].single_device_ns = device->single_device_ns;

        profiles[d].share = 0;
        if (state->current_rows)
            profiles[d].share = (double)state->current[d] / state->current_rows;
        /* Devices that take whole frames in turn have no rows in the current split. */
        if (state->trials.in_use.devices >> d & 1)
            profiles[d].share = cox__max(profiles[d].share, 1e-6);
    }
}

const struct cox_policy cox__policy_adaptive = {.name = "adaptive",
                                                .state_bytes = adaptive_bytes,
                                                .init = adaptive_init,
                                                .split = adaptive_split,
                                                .observe = cox__learn_band,
                                                .assign = cox__deadline_assign,
                                                .observe_frame = cox__learn_frame,
                                                .load_profile = adaptive_load_profile,
                                                .save_profile = adaptive_save_profile};
