/* `adaptive`, the default policy: it estimates what each device costs, plans the split that is best by these estimates,
 * and leaves a tail reserve in the pool for the devices that are free first.
 *
 *     estimator      t = fixed + b n for each device, with its noise, drift and changes
 *     row_profile    what rows cost relative to each other
 *     tail_reserve   how much of the frame the pool should hold
 *     fluid          the plan: bands that end before the frame, and the pool
 *     device_set     when fewer devices may be faster; trials.c tries them
 *     energy         the split of least energy, where that is the objective
 *
 * This file plans and chooses the split of a frame. learn.c learns from the frame's bands, next.c hands out the pool.
 *
 * docs/internals/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/layout.h"
#include "policies/policies.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double MOVE_GAIN = 0.004; /* predicted gain, over the frame time, that is worth a new split, */
static const double MOVE_ERRORS = 2.5; /* and, where there is no pool, in standard errors of that gain */
static const double ALLOW_ERRORS = 3;  /* deviations that a band may take longer than predicted, */
static const double ALLOW_FREE = 0.2;  /* less what the runtime allows every band */
static const double POOL_RATIO = 1.5;  /* between the current pool and the planned one, above which the split moves */
static const double RESERVE_ERRORS = 1.5; /* deviations of a device's estimate that its tail reserve covers at least */
static const double RESERVE_MOST = 0.7;   /* largest tail reserve for that reason */
static const double RESERVE_FIRST = 0.95; /* in the first frame: a first band that shows little but its fixed cost */
static const double GUESS = 0.1;          /* relative deviation of an estimate made from a device's time alone, */
static const double GUESS_HINT = 0.6;     /* from the hints and another device's time, */
static const double LOADED = 0.1;         /* from a device profile, */
static const double RETURN = 0.2;         /* and of a device that is usable again */
enum {
    SETTLED = 4,      /* frames after which a device's time alone is compared with its estimate */
    SHADOW_PART = 16, /* a shadow is this part of the frame */
    PAUSE_MIN = 32,   /* frames between two probes of a device that is left out */
    PAUSE_MAX = 1024,
};

/* While another frame is under way it hides what imbalance the pool would even out, and handing out costs more
 * launches. */
static bool has_pool(const struct cox__adaptive *state, const struct cox_sched_view *view)
{
    return view->pool && (view->in_flight <= 1 || state->over == view->frame);
}

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
    cox__row_profile_init(&state->row_profile);
    cox__tail_reserve_init(&state->tail_reserve);
    if (options && options->objective == COX_OBJECTIVE_ENERGY) {
        state->energy = true;
        cox__energy_init(&state->chooser, options->deadline_ns);
    }
    for (uint32_t d = 0; d < view->device_count; d++) {
        cox__estimate_init(&state->devices[d].estimate);
        state->devices[d].pause = PAUSE_MIN;
    }
    return COX_OK;
}

/* --- estimates --- */

/* Begin the estimates of devices that have a time alone and nothing else. Returns how many devices have times. */
static uint32_t begin_timed(struct cox__adaptive *state, const struct cox_sched_view *view, double speed)
{
    uint32_t timed = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        double solo_ns = (double)view->devices[d].solo_ns;
        if (!device->timed && solo_ns > 0) {
            cox__estimate_init(&device->estimate);
            cox__estimate_begin(&device->estimate, solo_ns, view->rows, GUESS, speed > 0 ? 1 / speed : solo_ns);
            device->timed = true;
        }
        if (solo_ns > 0)
            device->solo_ns = solo_ns;
        timed += device->timed;
    }
    return timed;
}

/* Nanoseconds per row by the hints, scaled by the `timed` devices that have times. */
static void guess_by_hints(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t timed,
                           double *ns_per_row)
{
    double scale = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        double hint = view->devices[d].hint > 0 ? view->devices[d].hint : 1.0;
        ns_per_row[d] = 1e6 / cox__min(cox__max(hint, 1e-6), 1e6);
        if (state->devices[d].timed)
            scale += cox__adaptive_frame_ns(&state->devices[d], view->rows) / view->rows / ns_per_row[d];
    }
    for (uint32_t d = 0; timed > 0 && d < view->device_count; d++)
        ns_per_row[d] = ns_per_row[d] * scale / timed;
}

/* Give every usable device an estimate, be it a guess. Returns whether the estimates are times, not only ratios. */
static bool begin_estimates(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    double guess[COX_DEVICES_MAX];
    bool guessed = false;
    double speed = 0; /* of all devices together, alone: frames per nanosecond */
    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable && view->devices[d].solo_ns > 0)
            speed += 1 / (double)view->devices[d].solo_ns;
    uint32_t timed = begin_timed(state, view, speed);
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (state->devices[d].timed || !view->devices[d].usable)
            continue;
        if (!guessed)
            guess_by_hints(state, view, timed, guess);
        guessed = true;
        double frame_ns = guess[d] * view->rows;
        cox__estimate_init(&state->devices[d].estimate);
        cox__estimate_begin(&state->devices[d].estimate, frame_ns, view->rows, GUESS_HINT,
                            timed > 0 && speed > 0 ? 1 / speed : frame_ns);
    }
    return timed > 0;
}

/* What the plan of the frame needs of each device. */
static void fill_plan(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices,
                      const double *factors, struct cox__planned_device *plan)
{
    double share = cox__tail_reserve_share(&state->tail_reserve);
    double typical = (double)view->rows / view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        plan[d] = (struct cox__planned_device){.in = (devices >> d & 1) != 0 && view->devices[d].usable,
                                               .suspected_change = 1};
        if (!plan[d].in)
            continue;
        plan[d].first_ns = factors[d] * estimate->x[COX__FIRST];
        plan[d].launch_ns = factors[d] * (estimate->x[COX__LAUNCH] + device->lag_ns);
        plan[d].ns_per_row = factors[d] * estimate->x[COX__PER_ROW];
        if (estimate->suspected_change > 1)
            plan[d].suspected_change = estimate->suspected_change;
        double error = sqrt(cox__estimate_error(estimate, false, typical));
        plan[d].tail_reserve = cox__max(share, cox__min(RESERVE_MOST, RESERVE_ERRORS * error));
    }
}

/* --- layout --- */

/* Lay out bands of the planned work, in device order, with the pool in their middle. There its launches measure the
 * rows that a move of the bands beside it would move. */
static void lay_out(const struct cox__adaptive *state, const struct cox_sched_view *view,
                    const struct cox__planned_device *plan, double pool_work, uint32_t least,
                    struct cox__adaptive_split *split)
{
    enum { POOL = COX_DEVICES_MAX };
    uint32_t parts[COX_DEVICES_MAX + 1], count = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        split->first_row[d] = split->count[d] = 0;
        if (plan[d].work > 0)
            parts[count++] = d;
    }
    for (uint32_t d = 0; count == 0 && d < view->device_count; d++)
        if (plan[d].in) /* costs are so large that no device was planned: any one that may get rows */
            parts[count++] = d;
    if (pool_work > 0) {
        uint32_t at = (count + 1) / 2;
        for (uint32_t i = count++; i > at; i--)
            parts[i] = parts[i - 1];
        parts[at] = POOL;
    }

    split->pool_first_row = split->pool_rows = 0;
    uint32_t next = 0;
    uint32_t *before = NULL; /* the rows of the part before this one */
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = parts[i];
        sum += d == POOL ? pool_work : plan[d].work;
        uint64_t end = cox__row_profile_row(&state->row_profile, view->rows, sum);
        end = (end + view->granule / 2) / view->granule * view->granule;
        if (end < (uint64_t)next + least)
            end = (uint64_t)next + least;
        if (end > view->rows || i + 1 == count)
            end = view->rows;
        uint32_t rows = (uint32_t)end - next;
        if (rows == 0)
            continue;
        if (before && rows < least) {
            *before += rows;
        } else if (d == POOL) {
            split->pool_first_row = next;
            split->pool_rows = rows;
            before = &split->pool_rows;
        } else {
            split->first_row[d] = next;
            split->count[d] = rows;
            before = &split->count[d];
        }
        next = (uint32_t)end;
    }
    split->rows = view->rows;
    split->granule = view->granule;
    split->least = least;
    split->valid = true;
}

/* The time of a frame split so, and in `end_ns` when each device finishes its band. */
static double split_ns(const struct cox__adaptive *state, const struct cox_sched_view *view,
                       const struct cox__adaptive_split *split, const struct cox__planned_device *plan, double *end_ns)
{
    struct cox__fluid_device fluid[COX_DEVICES_MAX];
    double latest = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        end_ns[d] = 0;
        fluid[d].in = false;
        if (split->count[d] > 0) {
            double work = cox__row_profile_work(&state->row_profile, view->rows, split->first_row[d], split->count[d]);
            end_ns[d] = plan[d].first_ns + plan[d].ns_per_row * work;
            latest = cox__max(latest, end_ns[d]);
            fluid[d] = (struct cox__fluid_device){true, end_ns[d] + plan[d].launch_ns, 1 / plan[d].ns_per_row};
        } else if (plan[d].in) {
            fluid[d] = (struct cox__fluid_device){true, plan[d].first_ns, 1 / plan[d].ns_per_row};
        }
    }
    if (split->pool_rows == 0)
        return latest;
    double work = cox__row_profile_work(&state->row_profile, view->rows, split->pool_first_row, split->pool_rows);
    return cox__max(latest, cox__fluid_level(fluid, view->device_count, work));
}

/* Standard error of the predicted gain of a move. */
static double gain_error(const struct cox__adaptive *state, const struct cox__adaptive_split *split)
{
    double sum = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (split->count[d] > 0)
            sum += cox__estimate_error(&state->devices[d].estimate, false, split->count[d]);
    return 0.5 * sqrt(sum);
}

/* Whether the current split can stay. */
static bool stays(const struct cox__adaptive *state, const struct cox__adaptive_split *next, double next_ns,
                  double current_ns)
{
    const struct cox__adaptive_split *current = &state->current;
    double gain = current_ns / next_ns - 1;
    if (next->pool_rows == 0 && current->pool_rows == 0)
        return gain <= cox__max(MOVE_GAIN, MOVE_ERRORS * gain_error(state, current));
    if (next->pool_rows > POOL_RATIO * current->pool_rows || current->pool_rows > POOL_RATIO * next->pool_rows)
        return false;
    return gain <= MOVE_GAIN;
}

/* --- splitting --- */

static uint32_t usable_devices(struct cox__adaptive *state, const struct cox_sched_view *view, bool *changed)
{
    uint32_t usable = 0;
    *changed = false;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (device->usable != view->devices[d].usable)
            *changed = true;
        if (view->devices[d].usable && !device->usable && device->measured) {
            cox__estimate_scale(&device->estimate, 1.0, RETURN); /* its speed may have changed meanwhile */
            device->estimate.suspected_change = 0;
        }
        device->usable = view->devices[d].usable;
        usable |= device->usable ? 1u << d : 0;
    }
    return usable;
}

/* Count the frame for every device that is left out. Returns the first one whose pause is over; view->device_count if
 * there is none. */
static uint32_t due_for_probe(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t device_set,
                              const struct cox_split *out)
{
    uint32_t due = view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        bool has = false;
        for (uint32_t i = 0; i < out->band_count; i++)
            has |= out->bands[i].device == d;
        if (has || !view->devices[d].usable || !(device_set >> d & 1)) {
            device->out_frames = 0;
            if (has)
                device->pause = PAUSE_MIN;
            continue;
        }
        if (++device->out_frames >= device->pause && due == view->device_count)
            due = d;
    }
    return due;
}

/* Give a device the first `least` rows of the largest band. False if that band is too short, or there are too many. */
static bool take_from_largest(struct cox_split *out, uint32_t device, uint32_t least)
{
    uint32_t largest = 0;
    for (uint32_t i = 1; i < out->band_count; i++)
        if (out->bands[i].rows > out->bands[largest].rows)
            largest = i;
    if (out->band_count == 0 || out->band_count >= COX_BANDS_MAX || out->bands[largest].rows < 2 * (uint64_t)least)
        return false;
    struct cox_band *band = &out->bands[largest];
    memmove(band + 1, band, (out->band_count - largest) * sizeof *band);
    out->band_count++;
    *band = (struct cox_band){device, band[1].first_row, least};
    band[1].first_row += least;
    band[1].rows -= least;
    return true;
}

/* Probe a device that was left out for long enough: by a shadow, or by a band taken from the largest one. Returns
 * whether a band was taken. */
static bool probe(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t device_set,
                  struct cox_split *out)
{
    uint32_t due = due_for_probe(state, view, device_set, out);
    if (due == view->device_count)
        return false;
    uint32_t least = cox__layout_least_band(view);
    uint32_t rows = view->rows / SHADOW_PART / view->granule * view->granule;
    if (view->shadow)
        out->shadow = (struct cox_band){.device = due, .first_row = 0, .rows = rows < least ? least : rows};
    else if (take_from_largest(out, due, least))
        out->reason = COX_REASON_PROBE;
    else
        return false;
    struct cox__adaptive_device *device = &state->devices[due];
    device->out_frames = 0;
    device->pause = device->pause * 2 > PAUSE_MAX ? PAUSE_MAX : device->pause * 2;
    return !view->shadow;
}

/* The bands of the split in the order of their rows, and its pool. */
static void put_bands(const struct cox_sched_view *view, const struct cox__adaptive_split *split, struct cox_split *out)
{
    out->band_count = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (split->count[d] > 0)
            out->bands[out->band_count++] = (struct cox_band){d, split->first_row[d], split->count[d]};
    for (uint32_t i = 1; i < out->band_count; i++) { /* by position */
        struct cox_band band = out->bands[i];
        uint32_t at = i;
        for (; at > 0 && out->bands[at - 1].first_row > band.first_row; at--)
            out->bands[at] = out->bands[at - 1];
        out->bands[at] = band;
    }
    out->pool_first_row = split->pool_first_row;
    out->pool_rows = split->pool_rows;
}

/* The share by which a device's band may take longer than predicted before it is late; 0 where predictions are good. */
static double allowance(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t d,
                        const struct cox__adaptive_split *split)
{
    if (split->count[d] == 0)
        return 0;
    struct cox__span span;
    cox__row_profile_span(&state->row_profile, view->rows, split->first_row[d], split->count[d], &span);
    double variance = state->devices[d].estimate.first_mean_square +
                      cox__row_profile_variance(&state->row_profile, &span);
    return cox__max(0, ALLOW_ERRORS * sqrt(variance) - ALLOW_FREE);
}

/* Age the row profile and the estimates by one frame. Returns whether no device was ever measured. */
static bool age(struct cox__adaptive *state, const struct cox_sched_view *view, bool shared)
{
    double mean = cox__row_profile_age(&state->row_profile, view->rows);
    bool first = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (!device->measured)
            continue;
        first = false;
        if (mean != 1)
            cox__estimate_stretch(&device->estimate, mean);
        cox__estimate_age(&device->estimate);
        if (!(device->alone > 0) && device->solo_ns > 0 && device->estimate.frames >= SETTLED && shared)
            device->alone = cox__max(0.1, cox__min(1.5, device->solo_ns / cox__adaptive_frame_ns(device, view->rows)));
    }
    return first;
}

/* What is being decided for a frame. */
struct decision {
    bool timed;            /* the estimates are times, not only ratios */
    bool first;            /* nothing was measured yet */
    bool changed;          /* the set of usable devices */
    bool trial;            /* of another set of devices */
    bool suspected_change; /* of a device that has a band */
    uint32_t usable, device_set;
    uint32_t least; /* rows of a band */
    enum cox_reason reason;
    double ns, alternative_ns; /* the frame's time, and that of the split not taken */
    struct cox__adaptive_split split;
    struct cox__planned_device plan[COX_DEVICES_MAX];
    double end_ns[COX_DEVICES_MAX]; /* of each device's band */
};

/* The reason of a split that is not the current one. */
static enum cox_reason reason_of(const struct cox__adaptive *state, const struct cox_sched_view *view,
                                 const struct decision *decision)
{
    if (decision->first)
        return state->profile_loaded ? COX_REASON_PROFILE : decision->timed ? COX_REASON_CALIBRATION : COX_REASON_FIRST;
    if (decision->changed)
        return COX_REASON_DEVICES;
    if (decision->trial)
        return COX_REASON_TRIAL;
    if (state->changed || decision->suspected_change)
        return COX_REASON_CHANGED;
    if (decision->device_set != decision->usable)
        return COX_REASON_SUBSET;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (decision->plan[d].in && decision->split.count[d] == 0)
            return COX_REASON_DROPPED;
    return COX_REASON_BALANCED;
}

/* Choose the split of the shortest time: the planned one, or the current one while that is good enough. */
static void decide_time(struct cox__adaptive *state, const struct cox_sched_view *view, double pool_work,
                        struct decision *decision)
{
    struct cox__adaptive_split *next = &decision->split;
    struct cox__adaptive_split *current = &state->current;
    lay_out(state, view, decision->plan, pool_work, decision->least, next);
    next->devices = decision->device_set;
    decision->ns = split_ns(state, view, next, decision->plan, decision->end_ns);
    bool fits = current->valid && current->rows == view->rows && current->granule == view->granule &&
                current->least == decision->least && current->devices == decision->device_set &&
                (has_pool(state, view) || current->pool_rows == 0);
    if (fits && !decision->trial && !decision->changed && !decision->suspected_change) {
        double end_ns[COX_DEVICES_MAX];
        decision->alternative_ns = split_ns(state, view, current, decision->plan, end_ns);
        if (state->changed == 0 && stays(state, next, decision->ns, decision->alternative_ns)) {
            double planned_ns = decision->ns;
            *next = *current;
            memcpy(decision->end_ns, end_ns, view->device_count * sizeof *end_ns);
            decision->ns = decision->alternative_ns;
            decision->alternative_ns = planned_ns;
            decision->reason = COX_REASON_KEPT;
            return;
        }
    }
    decision->reason = reason_of(state, view, decision);
    if (!decision->trial && !decision->suspected_change)
        *current = *next;
}

/* Choose the split of the least energy; false = that is the split of the shortest time. */
static bool decide_energy(struct cox__adaptive *state, const struct cox_sched_view *view, double own_ns,
                          struct decision *decision)
{
    if (!state->energy || !decision->timed || decision->first)
        return false;
    struct cox_cost together[COX_DEVICES_MAX], alone[COX_DEVICES_MAX];
    double noise[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        double factor = device->alone > 0 ? device->alone : 1;
        together[d] = (struct cox_cost){true, device->estimate.x[COX__FIRST], device->estimate.x[COX__PER_ROW]};
        alone[d] = (struct cox_cost){true, factor * together[d].fixed_ns, factor * together[d].ns_per_row};
        noise[d] = sqrt(device->estimate.variance);
    }
    struct cox__energy_costs costs = {together, alone, noise, own_ns};
    struct cox__energy_choice choice;
    cox__energy_choose(&state->chooser, view, &costs, &choice);
    if (decision->suspected_change)
        cox__energy_forget(&state->chooser, view->frame);
    if (choice.own)
        return false;
    for (uint32_t d = 0; d < view->device_count; d++)
        decision->plan[d].work = choice.rows[d];
    lay_out(state, view, decision->plan, 0, decision->least, &decision->split);
    decision->ns = split_ns(state, view, &decision->split, decision->plan, decision->end_ns);
    decision->alternative_ns = own_ns;
    decision->device_set = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        decision->device_set |= decision->split.count[d] > 0 ? 1u << d : 0;
    decision->reason = choice.role == COX__ENERGY_TRIAL ? COX_REASON_TRIAL : COX_REASON_ENERGY;
    state->current.valid = false;
    return true;
}

/* Remember how the frame was split until it is observed. */
static void open_slot(struct cox__adaptive *state, const struct cox_sched_view *view, const struct decision *decision,
                      const struct cox_split *split)
{
    double share = cox__tail_reserve_share(&state->tail_reserve);
    struct cox__frame_slot *slot = &state->frame_slots[view->frame % COX__FRAME_SLOTS];
    *slot = (struct cox__frame_slot){.frame = view->frame,
                                     .used = true,
                                     .trial = decision->trial,
                                     .replayable = split->pool_rows > 0 && !decision->suspected_change,
                                     .tail_reserve = share,
                                     .rows = view->rows,
                                     .devices = decision->device_set};
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!decision->plan[d].in || decision->plan[d].tail_reserve <= share)
            continue;
        slot->tail_reserve = cox__max(slot->tail_reserve, decision->plan[d].tail_reserve);
        slot->replayable = false; /* the bands were planned with different reserves */
    }
    for (uint32_t i = 0; i < split->band_count; i++) {
        uint32_t d = split->bands[i].device;
        slot->launched |= 1u << d;
        slot->expected_ns[d] = decision->end_ns[d];
    }
}

static cox_status adaptive_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct cox__adaptive *state = memory;
    struct decision decision;
    memset(&decision, 0,
           offsetof(struct decision, plan)); /* the fields from `plan` on are large, and filled in below */
    decision.usable = usable_devices(state, view, &decision.changed);
    if (decision.usable == 0)
        return COX_E_NO_DEVICE;
    if (state->launch_count > 0 && state->observed + (view->in_flight > 1 ? view->in_flight : 1) <= view->frame)
        cox__adaptive_digest(state); /* observe_frame was not called for the frame before */
    state->rows = view->rows;
    decision.timed = begin_estimates(state, view);
    decision.first = age(state, view, (decision.usable & (decision.usable - 1)) != 0);
    decision.least = cox__layout_least_band(view);
    decision.device_set = decision.usable;
    bool energy = state->energy && cox__energy_metered(&state->chooser);
    if (!energy || !decision.timed)
        decision.device_set = cox__adaptive_device_set(state, view, decision.usable, decision.changed, decision.timed);
    decision.trial = decision.device_set != state->device_sets.in_use && !energy;

    double factors[COX_DEVICES_MAX], pool_work;
    cox__adaptive_factors(state, decision.device_set, factors);
    fill_plan(state, view, decision.device_set, factors, decision.plan);
    for (uint32_t d = 0; decision.first && !state->profile_loaded && has_pool(state, view) && d < view->device_count;
         d++)
        decision.plan[d].tail_reserve = RESERVE_FIRST;
    double own_ns = cox__fluid_plan(decision.plan, view->device_count, view->rows, decision.least,
                                    has_pool(state, view), &pool_work);
    for (uint32_t d = 0; d < view->device_count; d++)
        decision.suspected_change |= decision.plan[d].suspected_change > 1 && decision.plan[d].work > 0;
    bool own = !decide_energy(state, view, own_ns, &decision);
    if (own)
        decide_time(state, view, pool_work, &decision);
    state->changed = 0;

    out->reason = decision.reason;
    put_bands(view, &decision.split, out);
    if (decision.timed) {
        out->predicted_ns = cox__layout_ns(decision.ns);
        out->alternative_ns = cox__layout_ns(decision.alternative_ns);
        for (uint32_t d = 0; d < view->device_count; d++)
            out->device_ns[d] = cox__layout_ns(decision.end_ns[d] * (1 + allowance(state, view, d, &decision.split)));
    }
    if (own && !decision.first && !decision.trial && probe(state, view, decision.device_set, out) && state->energy)
        cox__energy_forget(&state->chooser, view->frame);
    open_slot(state, view, &decision, out);
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
        if (!(profile->frames > 0) || !(profile->ns_per_row > 0))
            continue;
        cox__estimate_init(&device->estimate);
        cox__estimate_load(&device->estimate, profile->fixed_ns, profile->launch_ns, profile->ns_per_row, LOADED);
        device->timed = true;
        if (profile->solo_ns > 0 && profile->solo_ns < 1e19)
            device->solo_ns = profile->solo_ns;
        state->profile_loaded = true;
        if (profile->share > 0)
            state->loaded_devices |= 1u << d;
    }
}

static void adaptive_save_profile(const void *memory, const struct cox_sched_view *view,
                                  struct cox_device_profile *profiles)
{
    const struct cox__adaptive *state = memory;
    const struct cox__adaptive_split *current = &state->current;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        profiles[d] = (struct cox_device_profile){0};
        if (!device->measured)
            continue;
        profiles[d].frames = estimate->launches > 0 ? estimate->launches : 1;
        profiles[d].fixed_ns = estimate->x[COX__FIRST];
        profiles[d].launch_ns = estimate->x[COX__LAUNCH];
        profiles[d].ns_per_row = estimate->x[COX__PER_ROW];
        profiles[d].solo_ns = device->alone > 0 ? device->alone * cox__adaptive_frame_ns(device, state->rows)
                                                : device->solo_ns;
        profiles[d].share = current->valid ? (double)current->count[d] / current->rows : 0;
        if (state->device_sets.in_use >> d & 1) /* its rows may all have come from the pool */
            profiles[d].share = cox__max(profiles[d].share, 1e-6);
    }
}

const struct cox_policy cox__policy_adaptive = {.struct_size = sizeof(struct cox_policy),
                                                .name = "adaptive",
                                                .state_bytes = adaptive_bytes,
                                                .init = adaptive_init,
                                                .split = adaptive_split,
                                                .observe = cox__adaptive_observe,
                                                .next = cox__adaptive_next,
                                                .observe_frame = cox__adaptive_observe_frame,
                                                .load_profile = adaptive_load_profile,
                                                .save_profile = adaptive_save_profile};
