/* `adaptive`, the default: models of what each device costs, the split that they make best, and a part of the frame kept
 * back for whoever turns out to be early.
 *
 *     estimator   t = fixed + b n for each device, with its noise, drift and changes (estimator.h)
 *     profile     what rows cost relative to each other (profile.h)
 *     reserve     how much to keep back (reserve.h)
 *     tail        bands that end a little early, the rest handed out on demand (tail.h)
 *     company     whether fewer devices are faster (company.h)
 *
 * docs/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "layout.h"
#include "policies.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double MOVE_GAIN = 0.004;  /* of the frame time */
static const double MOVE_ERRORS = 2.5;  /* standard errors of the predicted gain, where there is no pool */
static const double ALLOW_ERRORS = 3;   /* deviations that a band may be late */
static const double ALLOW_FREE = 0.2;   /* less what the runtime allows in any case */
static const double POOL_RATIO = 1.5;   /* between the pool there is and the one there should be */
static const double EARLY_ERRORS = 1.5; /* deviations of what is not known of a device, that its band ends early */
static const double EARLY_FIRST = 0.95; /* in the first frame: a first band that shows little but its fixed cost */
static const double EARLY_MOST = 0.7;
static const double GUESS = 0.1;      /* relative deviation of a guess from a device's time alone */
static const double GUESS_HINT = 0.6; /* and from another device's time and the hints */
static const double RECALL = 0.1;
static const double RETURN = 0.2; /* of a device that was away */
enum {
    SETTLED = 4,      /* frames after which a device's time alone is related to its time in company */
    SHADOW_PART = 16, /* a shadow is this part of the frame */
    PAUSE_MIN = 32,   /* frames between two probes of a device that is left out */
    PAUSE_MAX = 1024,
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
    cox__profile_init(&state->profile);
    cox__reserve_init(&state->reserve);
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

struct cox__slot *cox__adaptive_slot(struct cox__adaptive *state, uint64_t frame)
{
    struct cox__slot *slot = &state->slots[frame % COX__SLOTS];
    return slot->used && slot->frame == frame ? slot : NULL;
}

double cox__adaptive_frame_ns(const struct cox__adaptive_device *device, uint32_t rows)
{
    return cox__estimate_ns(&device->estimate, false, rows);
}

/* --- what is known --- */

/* Estimates for every usable device, be they guesses. Returns whether they are times. */
static bool estimates(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    double guess[COX_DEVICES_MAX];
    bool guessed = false;
    double scale = 0, speed = 0; /* of all that is known, frames per nanosecond */
    uint32_t known = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable && view->devices[d].solo_ns > 0)
            speed += 1 / (double)view->devices[d].solo_ns;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        uint64_t solo_ns = view->devices[d].solo_ns;
        if (!device->timed && solo_ns > 0) {
            cox__estimate_init(&device->estimate);
            cox__estimate_begin(&device->estimate, (double)solo_ns, view->rows, GUESS,
                                speed > 0 ? 1 / speed : (double)solo_ns);
            device->timed = true;
        }
        if (solo_ns > 0)
            device->solo_ns = (double)solo_ns;
        known += device->timed;
    }
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (state->devices[d].timed || !view->devices[d].usable)
            continue;
        if (!guessed) {
            for (uint32_t i = 0; i < view->device_count; i++) {
                double hint = view->devices[i].hint > 0 ? view->devices[i].hint : 1.0;
                guess[i] = 1e6 / cox__least(cox__most(hint, 1e-6), 1e6);
                if (state->devices[i].timed)
                    scale += cox__adaptive_frame_ns(&state->devices[i], view->rows) / view->rows / guess[i];
            }
            guessed = true;
        }
        double ns_per_row = known > 0 ? guess[d] * scale / known : guess[d];
        cox__estimate_init(&state->devices[d].estimate);
        cox__estimate_begin(&state->devices[d].estimate, ns_per_row * view->rows, view->rows, GUESS_HINT,
                            known > 0 && speed > 0 ? 1 / speed : ns_per_row * view->rows);
    }
    return known > 0;
}

static void fill_plan(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices,
                      const double *factors, struct cox__tail_device *plan)
{
    double share = cox__reserve_share(&state->reserve);
    double typical = (double)view->rows / view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        plan[d] = (struct cox__tail_device){.in = (devices >> d & 1) != 0 && view->devices[d].usable, .suspect = 1};
        if (!plan[d].in)
            continue;
        plan[d].first_ns = factors[d] * estimate->x[COX__FIRST];
        plan[d].launch_ns = factors[d] * (estimate->x[COX__LAUNCH] + device->lag_ns);
        plan[d].ns_per_row = factors[d] * estimate->x[COX__PER_ROW];
        if (estimate->suspect > 1)
            plan[d].suspect = estimate->suspect;
        double error = sqrt(cox__estimate_error(estimate, false, typical));
        plan[d].early = cox__most(share, cox__least(EARLY_MOST, EARLY_ERRORS * error));
    }
}

/* --- layout --- */

/* Bands of the planned work, in device order, with the pool in their middle: the launches of the pool show what the
 * rows cost that a move of the bands beside it would move. */
static void lay_out(const struct cox__adaptive *state, const struct cox_sched_view *view,
                    const struct cox__tail_device *plan, double pool_work, uint32_t least, struct cox__held *held)
{
    enum { POOL = COX_DEVICES_MAX };
    uint32_t parts[COX_DEVICES_MAX + 1], count = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        held->first_row[d] = held->count[d] = 0;
        if (plan[d].work > 0)
            parts[count++] = d;
    }
    for (uint32_t d = 0; count == 0 && d < view->device_count; d++)
        if (plan[d].in) /* costs beyond all measure: anybody */
            parts[count++] = d;
    if (pool_work > 0) {
        uint32_t at = (count + 1) / 2;
        for (uint32_t i = count++; i > at; i--)
            parts[i] = parts[i - 1];
        parts[at] = POOL;
    }

    held->pool_first_row = held->pool_rows = 0;
    uint32_t next = 0;
    uint32_t *before = NULL; /* rows of the part before */
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = parts[i];
        sum += d == POOL ? pool_work : plan[d].work;
        uint64_t end = cox__profile_row(&state->profile, view->rows, sum);
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
            held->pool_first_row = next;
            held->pool_rows = rows;
            before = &held->pool_rows;
        } else {
            held->first_row[d] = next;
            held->count[d] = rows;
            before = &held->count[d];
        }
        next = (uint32_t)end;
    }
    held->rows = view->rows;
    held->granule = view->granule;
    held->least = least;
    held->valid = true;
}

/* When the frame would be done with bands that are there, and when each device would be with its own. */
static double held_ns(const struct cox__adaptive *state, const struct cox_sched_view *view,
                      const struct cox__held *held, const struct cox__tail_device *plan, double *end_ns)
{
    struct cox__runner runners[COX_DEVICES_MAX];
    double latest = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        end_ns[d] = 0;
        runners[d].in = false;
        if (held->count[d] > 0) {
            double work = cox__profile_work(&state->profile, view->rows, held->first_row[d], held->count[d]);
            end_ns[d] = plan[d].first_ns + plan[d].ns_per_row * work;
            latest = cox__most(latest, end_ns[d]);
            runners[d] = (struct cox__runner){true, end_ns[d] + plan[d].launch_ns, 1 / plan[d].ns_per_row};
        } else if (plan[d].in) {
            runners[d] = (struct cox__runner){true, plan[d].first_ns, 1 / plan[d].ns_per_row};
        }
    }
    if (held->pool_rows == 0)
        return latest;
    double work = cox__profile_work(&state->profile, view->rows, held->pool_first_row, held->pool_rows);
    return cox__most(latest, cox__tail_level(runners, view->device_count, work));
}

/* Standard error of the predicted gain of a move. */
static double gain_error(const struct cox__adaptive *state, const struct cox__held *held)
{
    double sum = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (held->count[d] > 0)
            sum += cox__estimate_error(&state->devices[d].estimate, false, held->count[d]);
    return 0.5 * sqrt(sum);
}

/* Whether the split in use can stay. */
static bool stays(const struct cox__adaptive *state, const struct cox__held *next, double next_ns, double held_time)
{
    const struct cox__held *held = &state->held;
    double gain = held_time / next_ns - 1;
    if (next->pool_rows == 0 && held->pool_rows == 0)
        return gain <= cox__most(MOVE_GAIN, MOVE_ERRORS * gain_error(state, held));
    if (next->pool_rows > POOL_RATIO * held->pool_rows || held->pool_rows > POOL_RATIO * next->pool_rows)
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
            cox__estimate_scale(&device->estimate, 1.0, RETURN); /* it was away: who knows what it can do now */
            device->estimate.suspect = 0;
        }
        device->usable = view->devices[d].usable;
        usable |= device->usable ? 1u << d : 0;
    }
    return usable;
}

/* One device that is left out, to be measured. Returns whether a band was moved for it. */
static bool probe(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t set, struct cox_split *out)
{
    uint32_t due = view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        bool has = false;
        for (uint32_t i = 0; i < out->band_count; i++)
            has |= out->bands[i].device == d;
        if (has || !view->devices[d].usable || !(set >> d & 1)) {
            device->out = 0;
            if (has)
                device->pause = PAUSE_MIN;
            continue;
        }
        if (++device->out >= device->pause && due == view->device_count)
            due = d;
    }
    if (due == view->device_count)
        return false;
    uint32_t least = cox__adaptive_least(view);
    uint32_t rows = view->rows / SHADOW_PART / view->granule * view->granule;
    rows = rows < least ? least : rows;
    struct cox__adaptive_device *device = &state->devices[due];
    if (view->shadow) {
        out->shadow = (struct cox_band){.device = due, .first_row = 0, .rows = rows};
    } else {
        uint32_t largest = 0;
        for (uint32_t i = 1; i < out->band_count; i++)
            if (out->bands[i].rows > out->bands[largest].rows)
                largest = i;
        if (out->band_count == 0 || out->band_count >= COX_BANDS_MAX || out->bands[largest].rows < 2 * (uint64_t)least)
            return false;
        memmove(&out->bands[largest + 1], &out->bands[largest], (out->band_count - largest) * sizeof out->bands[0]);
        out->band_count++;
        out->bands[largest] = (struct cox_band){due, out->bands[largest + 1].first_row, least};
        out->bands[largest + 1].first_row += least;
        out->bands[largest + 1].rows -= least;
        out->reason = COX_REASON_PROBE;
    }
    device->out = 0;
    device->pause = device->pause * 2 > PAUSE_MAX ? PAUSE_MAX : device->pause * 2;
    return !view->shadow;
}

static void put_bands(const struct cox_sched_view *view, const struct cox__held *held, struct cox_split *out)
{
    out->band_count = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (held->count[d] > 0)
            out->bands[out->band_count++] = (struct cox_band){d, held->first_row[d], held->count[d]};
    for (uint32_t i = 1; i < out->band_count; i++) { /* by position */
        struct cox_band band = out->bands[i];
        uint32_t at = i;
        for (; at > 0 && out->bands[at - 1].first_row > band.first_row; at--)
            out->bands[at] = out->bands[at - 1];
        out->bands[at] = band;
    }
    out->pool_first_row = held->pool_first_row;
    out->pool_rows = held->pool_rows;
}

/* What a band may take longer than predicted before it is late, relative: nothing, where predictions are good. */
static double allowance(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t d,
                        const struct cox__held *held)
{
    if (held->count[d] == 0)
        return 0;
    struct cox__span span;
    cox__profile_span(&state->profile, view->rows, held->first_row[d], held->count[d], &span);
    double variance = state->devices[d].estimate.surprise + cox__profile_variance(&state->profile, &span);
    return cox__most(0, ALLOW_ERRORS * sqrt(variance) - ALLOW_FREE);
}

/* A frame later: what is known ages. Returns whether nothing was ever measured. */
static bool age(struct cox__adaptive *state, const struct cox_sched_view *view, bool shared)
{
    double mean = cox__profile_age(&state->profile, view->rows);
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
            device->alone = cox__most(0.1,
                                      cox__least(1.5, device->solo_ns / cox__adaptive_frame_ns(device, view->rows)));
    }
    return first;
}

/* What is being decided for a frame. */
struct decision {
    bool timed;   /* there are times, not only hints */
    bool first;   /* nothing was measured yet */
    bool changed; /* the set of usable devices */
    bool trial;   /* of another set of devices */
    bool suspect; /* a device that is to work may have become slow */
    uint32_t usable, set;
    uint32_t least; /* rows of a band */
    enum cox_reason reason;
    double ns, rival_ns; /* the frame's time, and that of the way not taken */
    struct cox__held split;
    struct cox__tail_device plan[COX_DEVICES_MAX];
    double end_ns[COX_DEVICES_MAX]; /* of each device's band */
};

/* Why a split is not the one before. */
static enum cox_reason reason_of(const struct cox__adaptive *state, const struct cox_sched_view *view,
                                 const struct decision *decision)
{
    if (decision->first)
        return state->recalled ? COX_REASON_RECALLED : decision->timed ? COX_REASON_CALIBRATION : COX_REASON_FIRST;
    if (decision->changed)
        return COX_REASON_DEVICES;
    if (decision->trial)
        return COX_REASON_TRIAL;
    if (state->changed || decision->suspect)
        return COX_REASON_CHANGED;
    if (decision->set != decision->usable)
        return COX_REASON_SUBSET;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (decision->plan[d].in && decision->split.count[d] == 0)
            return COX_REASON_DROPPED;
    return COX_REASON_BALANCED;
}

/* The split for the shortest time: the one planned, or the one in use while that is good enough. */
static void decide_time(struct cox__adaptive *state, const struct cox_sched_view *view, double pool_work,
                        struct decision *decision)
{
    struct cox__held *next = &decision->split;
    struct cox__held *held = &state->held;
    lay_out(state, view, decision->plan, pool_work, decision->least, next);
    next->devices = decision->set;
    decision->ns = held_ns(state, view, next, decision->plan, decision->end_ns);
    bool fits = held->valid && held->rows == view->rows && held->granule == view->granule &&
                held->least == decision->least && held->devices == decision->set &&
                (view->pool || held->pool_rows == 0);
    if (fits && !decision->trial && !decision->changed && !decision->suspect) {
        double end_ns[COX_DEVICES_MAX];
        decision->rival_ns = held_ns(state, view, held, decision->plan, end_ns);
        if (state->changed == 0 && stays(state, next, decision->ns, decision->rival_ns)) {
            double planned_ns = decision->ns;
            *next = *held;
            memcpy(decision->end_ns, end_ns, view->device_count * sizeof *end_ns);
            decision->ns = decision->rival_ns;
            decision->rival_ns = planned_ns;
            decision->reason = COX_REASON_KEPT;
            return;
        }
    }
    decision->reason = reason_of(state, view, decision);
    if (!decision->trial && !decision->suspect)
        *held = *next;
}

/* The split for the least energy; false = that is the one for the shortest time. */
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
    if (decision->suspect)
        cox__energy_forget(&state->chooser, view->frame);
    if (choice.own)
        return false;
    for (uint32_t d = 0; d < view->device_count; d++)
        decision->plan[d].work = choice.rows[d];
    lay_out(state, view, decision->plan, 0, decision->least, &decision->split);
    decision->ns = held_ns(state, view, &decision->split, decision->plan, decision->end_ns);
    decision->rival_ns = own_ns;
    decision->set = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        decision->set |= decision->split.count[d] > 0 ? 1u << d : 0;
    decision->reason = choice.role == COX__ENERGY_TRIAL ? COX_REASON_TRIAL : COX_REASON_ENERGY;
    state->held.valid = false;
    return true;
}

/* Remember how the frame was split until it is observed. */
static void open_slot(struct cox__adaptive *state, const struct cox_sched_view *view, const struct decision *decision,
                      const struct cox_split *split)
{
    double share = cox__reserve_share(&state->reserve);
    struct cox__slot *slot = &state->slots[view->frame % COX__SLOTS];
    *slot = (struct cox__slot){.frame = view->frame,
                               .used = true,
                               .trial = decision->trial,
                               .replay = split->pool_rows > 0 && !decision->suspect,
                               .early = share,
                               .rows = view->rows,
                               .devices = decision->set};
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!decision->plan[d].in || decision->plan[d].early <= share)
            continue;
        slot->early = cox__most(slot->early, decision->plan[d].early);
        slot->replay = false; /* the devices' bands were to end at different times */
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
    memset(&decision, 0, offsetof(struct decision, plan)); /* the rest is large, and filled in below */
    decision.usable = usable_devices(state, view, &decision.changed);
    if (decision.usable == 0)
        return COX_E_NO_DEVICE;
    if (state->launch_count > 0 && state->observed + (view->in_flight > 1 ? view->in_flight : 1) <= view->frame)
        cox__adaptive_digest(state); /* nobody said that the frame was over */
    state->rows = view->rows;
    decision.timed = estimates(state, view);
    decision.first = age(state, view, (decision.usable & (decision.usable - 1)) != 0);
    decision.least = cox__adaptive_least(view);
    decision.set = decision.usable;
    bool energy = state->energy && cox__energy_sees(&state->chooser); /* else the time is what counts */
    if (!energy || !decision.timed)
        decision.set = cox__adaptive_set(state, view, decision.usable, decision.changed, decision.timed);
    decision.trial = decision.set != state->company.in_use && !energy;

    double factors[COX_DEVICES_MAX], pool_work;
    cox__adaptive_factors(state, decision.set, factors);
    fill_plan(state, view, decision.set, factors, decision.plan);
    for (uint32_t d = 0; decision.first && !state->recalled && view->pool && d < view->device_count; d++)
        decision.plan[d].early = EARLY_FIRST;
    double own_ns = cox__tail_plan(decision.plan, view->device_count, view->rows, decision.least, view->pool,
                                   &pool_work);
    for (uint32_t d = 0; d < view->device_count; d++)
        decision.suspect |= decision.plan[d].suspect > 1 && decision.plan[d].work > 0;
    bool own = !decide_energy(state, view, own_ns, &decision);
    if (own)
        decide_time(state, view, pool_work, &decision);
    state->changed = 0;

    out->reason = decision.reason;
    put_bands(view, &decision.split, out);
    if (decision.timed) {
        out->predicted_ns = cox__layout_ns(decision.ns);
        out->rival_ns = cox__layout_ns(decision.rival_ns);
        for (uint32_t d = 0; d < view->device_count; d++)
            out->device_ns[d] = cox__layout_ns(decision.end_ns[d] * (1 + allowance(state, view, d, &decision.split)));
    }
    if (own && !decision.first && !decision.trial && probe(state, view, decision.set, out) && state->energy)
        cox__energy_forget(&state->chooser, view->frame);
    open_slot(state, view, &decision, out);
    return COX_OK;
}

/* --- memory --- */

static void adaptive_recall(void *memory, const struct cox_sched_view *view, const struct cox_device_model *models)
{
    struct cox__adaptive *state = memory;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_device_model *model = &models[d];
        struct cox__adaptive_device *device = &state->devices[d];
        if (!(model->frames > 0) || !(model->ns_per_row > 0))
            continue;
        cox__estimate_init(&device->estimate);
        cox__estimate_recall(&device->estimate, model->fixed_ns, model->launch_ns, model->ns_per_row, RECALL);
        device->timed = true;
        if (model->solo_ns > 0 && model->solo_ns < 1e19)
            device->solo_ns = model->solo_ns;
        state->recalled = true;
        if (model->share > 0)
            state->recalled_set |= 1u << d;
    }
}

static void adaptive_models(const void *memory, const struct cox_sched_view *view, struct cox_device_model *models)
{
    const struct cox__adaptive *state = memory;
    const struct cox__held *held = &state->held;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        models[d] = (struct cox_device_model){0};
        if (!device->measured)
            continue;
        models[d].frames = estimate->launches > 0 ? estimate->launches : 1;
        models[d].fixed_ns = estimate->x[COX__FIRST];
        models[d].launch_ns = estimate->x[COX__LAUNCH];
        models[d].ns_per_row = estimate->x[COX__PER_ROW];
        models[d].solo_ns = device->alone > 0 ? device->alone * cox__adaptive_frame_ns(device, state->rows)
                                              : device->solo_ns;
        models[d].share = held->valid ? (double)held->count[d] / held->rows : 0;
        if (state->company.in_use >> d & 1) /* if only with rows that were handed out */
            models[d].share = cox__most(models[d].share, 1e-6);
    }
}

const struct cox_policy cox__policy_adaptive = {.name = "adaptive",
                                                .state_bytes = adaptive_bytes,
                                                .init = adaptive_init,
                                                .split = adaptive_split,
                                                .observe = cox__adaptive_observe,
                                                .next = cox__adaptive_next,
                                                .observe_frame = cox__adaptive_observe_frame,
                                                .recall = adaptive_recall,
                                                .models = adaptive_models};
