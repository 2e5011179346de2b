/* `adaptive`, the default: models of what each device costs, the split that
 * they make best, and a part of the frame kept back for whoever turns out to be
 * early.
 *
 *     estimator   t = fixed + b n for each device, with its noise, drift and
 * changes (estimator.h) profile     what rows cost relative to each other
 * (profile.h) tail        bands that end a little early, the rest handed out on
 * demand (tail.h) company     whether fewer devices are faster (company.h)
 *
 * docs/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "layout.h"
#include "policies.h"
#include "strict_fp.h"

#include <math.h>
#include <string.h>

static const double MOVE_GAIN = 0.004;  /* of the frame time */
static const double MOVE_ERRORS = 2.5;  /* standard errors of the predicted gain, where there is no pool */
static const double ALLOW_ERRORS = 3;   /* deviations that a band may be late */
static const double ALLOW_FREE = 0.2;   /* less what the runtime allows in any case */
static const double POOL_RATIO = 1.5;   /* between the pool there is and the one there should be */
static const double EARLY_ERRORS = 1.5; /* deviations of what is not known of a
                                           device, that its band ends early */
static const double EARLY_FIRST = 0.95; /* in the first frame: a first band that shows little but its fixed cost */
static const double EARLY_MOST = 0.7;
static const double GUESS = 0.1;      /* relative deviation of a guess from a device's time alone */
static const double GUESS_HINT = 0.6; /* and from another device's time and the hints */
static const double RECALL = 0.1;
static const double RETURN = 0.2; /* of a device that was away */
enum {
    SETTLED = 4,      /* frames after which a device's time alone is related to its
                  time in company */
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

/* Estimates for every usable device, be they guesses. Returns whether they are
 * times. */
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
                guess[i] = 1e6 / fmin(fmax(hint, 1e-6), 1e6);
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
        plan[d].launch_ns = factors[d] * estimate->x[COX__LAUNCH];
        plan[d].ns_per_row = factors[d] * estimate->x[COX__PER_ROW];
        if (estimate->suspect > 1)
            plan[d].suspect = estimate->suspect;
        double error = sqrt(cox__estimate_error(estimate, false, typical));
        plan[d].early = fmax(share, fmin(EARLY_MOST, EARLY_ERRORS * error));
    }
}

/* --- layout --- */

/* Bands of the planned work, in device order, with the pool in their middle:
 * the launches of the pool show what the rows cost that a move of the bands
 * beside it would move. */
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

/* When the frame would be done with bands that are there, and when each device
 * would be with its own. */
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
            latest = fmax(latest, end_ns[d]);
            runners[d] = (struct cox__runner){true, end_ns[d] + plan[d].launch_ns, plan[d].ns_per_row};
        } else if (plan[d].in) {
            runners[d] = (struct cox__runner){true, plan[d].first_ns, plan[d].ns_per_row};
        }
    }
    if (held->pool_rows == 0)
        return latest;
    double work = cox__profile_work(&state->profile, view->rows, held->pool_first_row, held->pool_rows);
    return fmax(latest, cox__tail_level(runners, view->device_count, work));
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
        return gain <= fmax(MOVE_GAIN, MOVE_ERRORS * gain_error(state, held));
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

/* One device that is left out, to be measured. */
static void probe(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t set, struct cox_split *out)
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
        return;
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
            return;
        memmove(&out->bands[largest + 1], &out->bands[largest], (out->band_count - largest) * sizeof out->bands[0]);
        out->band_count++;
        out->bands[largest] = (struct cox_band){due, out->bands[largest + 1].first_row, least};
        out->bands[largest + 1].first_row += least;
        out->bands[largest + 1].rows -= least;
        out->reason = COX_REASON_PROBE;
    }
    device->out = 0;
    device->pause = device->pause * 2 > PAUSE_MAX ? PAUSE_MAX : device->pause * 2;
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
    double variance = state->devices[d].estimate.surprise +
                      cox__profile_variance(&state->profile, view->rows, held->first_row[d], held->count[d]);
    return fmax(0, ALLOW_ERRORS * sqrt(variance) - ALLOW_FREE);
}

/* --- energy --- */

/* What the chooser says of this frame. */
static void ask_chooser(struct cox__adaptive *state, const struct cox_sched_view *view,
                        struct cox__energy_choice *choice)
{
    struct cox_cost together[COX_DEVICES_MAX], alone[COX_DEVICES_MAX];
    double noise[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        double factor = device->alone > 0 ? device->alone : 1;
        together[d] = (struct cox_cost){.usable = view->devices[d].usable,
                                        .fixed_ns = estimate->x[COX__FIRST],
                                        .ns_per_row = estimate->x[COX__PER_ROW]};
        alone[d] = (struct cox_cost){.usable = view->devices[d].usable,
                                     .fixed_ns = factor * together[d].fixed_ns,
                                     .ns_per_row = factor * together[d].ns_per_row};
        noise[d] = sqrt(estimate->variance);
    }
    const struct cox__energy_costs costs = {.together = together, .alone = alone, .noise = noise};
    cox__energy_choose(&state->chooser, view, &costs, choice);
}

/* Split as the chooser says: bands of so much work, nothing kept back. */
static void split_frugally(struct cox__adaptive *state, const struct cox_sched_view *view,
                           const struct cox__energy_choice *choice, struct cox_split *out)
{
    struct cox__tail_device plan[COX_DEVICES_MAX];
    double factors[COX_DEVICES_MAX], end_ns[COX_DEVICES_MAX];
    struct cox__held next;
    uint32_t set = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        factors[d] = 1;
        set |= choice->rows[d] > 0 ? 1u << d : 0;
    }
    fill_plan(state, view, set, factors, plan);
    for (uint32_t d = 0; d < view->device_count; d++)
        plan[d].work = choice->rows[d];
    lay_out(state, view, plan, 0, cox__adaptive_least(view), &next);
    put_bands(view, &next, out);
    out->predicted_ns = cox__layout_ns(held_ns(state, view, &next, plan, end_ns));
    for (uint32_t d = 0; d < view->device_count; d++)
        out->device_ns[d] = cox__layout_ns(end_ns[d] * (1 + allowance(state, view, d, &next)));
    out->reason = choice->role == COX__ENERGY_TRIAL ? COX_REASON_TRIAL : COX_REASON_ENERGY;
    state->held.valid = false;
    struct cox__slot *slot = &state->slots[view->frame % COX__SLOTS];
    *slot = (struct cox__slot){.frame = view->frame, .used = true, .rows = view->rows, .devices = set, .launched = set};
}

static cox_status adaptive_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct cox__adaptive *state = memory;
    bool changed;
    uint32_t usable = usable_devices(state, view, &changed);
    if (usable == 0)
        return COX_E_NO_DEVICE;
    state->rows = view->rows;
    out->reason = COX_REASON_BALANCED;
    out->shadow = (struct cox_band){0};
    out->rival_ns = 0;
    out->pool_first_row = out->pool_rows = 0;

    bool timed = estimates(state, view);
    double mean = cox__profile_age(&state->profile);
    bool first = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        first &= !device->measured;
        if (!device->measured)
            continue;
        if (mean != 1)
            cox__estimate_stretch(&device->estimate, mean);
        cox__estimate_age(&device->estimate);
        if (!(device->alone > 0) && device->solo_ns > 0 && device->estimate.frames >= SETTLED &&
            (usable & (usable - 1)) != 0)
            device->alone = fmax(0.1, fmin(1.5, device->solo_ns / cox__adaptive_frame_ns(device, view->rows)));
    }

    struct cox__energy_choice choice = {.own = true};
    if (state->energy && timed && !first) {
        ask_chooser(state, view, &choice);
        if (!choice.own) {
            split_frugally(state, view, &choice, out);
            return COX_OK;
        }
    }

    uint32_t set = cox__adaptive_set(state, view, usable, changed, timed);
    bool trial = set != state->company.in_use;
    double factors[COX_DEVICES_MAX];
    cox__adaptive_factors(state, set, factors);
    struct cox__tail_device plan[COX_DEVICES_MAX];
    fill_plan(state, view, set, factors, plan);
    uint32_t least = cox__adaptive_least(view);
    for (uint32_t d = 0; first && view->pool && d < view->device_count; d++)
        plan[d].early = EARLY_FIRST;
    double pool_work;
    double level = cox__tail_plan(plan, view->device_count, view->rows, least, view->pool, &pool_work);

    struct cox__held next;
    lay_out(state, view, plan, pool_work, least, &next);
    next.devices = set;
    double next_end[COX_DEVICES_MAX], held_end[COX_DEVICES_MAX];
    double next_time = held_ns(state, view, &next, plan, next_end);
    double *end_ns = next_end;
    double time = next_time;
    const struct cox__held *held = &state->held;
    bool suspect = false;
    for (uint32_t d = 0; d < view->device_count; d++)
        suspect |= plan[d].suspect > 1 && plan[d].work > 0;
    if (held->valid && !trial && !changed && !suspect && held->rows == view->rows && held->granule == view->granule &&
        held->least == least && held->devices == set && (view->pool || held->pool_rows == 0)) {
        double held_time = held_ns(state, view, held, plan, held_end);
        out->rival_ns = cox__layout_ns(held_time);
        if (state->changed == 0 && stays(state, &next, next_time, held_time)) {
            out->reason = COX_REASON_KEPT;
            out->rival_ns = cox__layout_ns(next_time);
            next = *held;
            end_ns = held_end;
            time = held_time;
        }
    }
    if (out->reason != COX_REASON_KEPT) {
        bool left_out = false;
        for (uint32_t d = 0; d < view->device_count; d++)
            left_out |= plan[d].in && next.count[d] == 0;
        if (first)
            out->reason = state->recalled ? COX_REASON_RECALLED : timed ? COX_REASON_CALIBRATION : COX_REASON_FIRST;
        else if (changed)
            out->reason = COX_REASON_DEVICES;
        else if (trial)
            out->reason = COX_REASON_TRIAL;
        else if (state->changed || suspect)
            out->reason = COX_REASON_CHANGED;
        else if (set != usable)
            out->reason = COX_REASON_SUBSET;
        else if (left_out)
            out->reason = COX_REASON_DROPPED;
        if (!trial && !suspect)
            state->held = next;
    }
    state->changed = 0;
    put_bands(view, &next, out);
    for (uint32_t d = 0; d < view->device_count; d++)
        out->device_ns[d] = timed ? cox__layout_ns(end_ns[d] * (1 + allowance(state, view, d, &next))) : 0;
    out->predicted_ns = timed ? cox__layout_ns(time) : 0;
    if (!timed)
        out->rival_ns = 0;
    if (!first && !trial)
        probe(state, view, set, out);
    if (choice.role == COX__ENERGY_LEAST && !trial && out->reason == COX_REASON_KEPT)
        out->reason = COX_REASON_ENERGY;
    if (trial || out->reason == COX_REASON_PROBE)
        cox__energy_forget(&state->chooser, view->frame);
    (void)level;
    double early = cox__reserve_share(&state->reserve);
    bool even = true;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (plan[d].in && plan[d].early > early) {
            early = plan[d].early;
            even = false;
        }

    struct cox__slot *slot = &state->slots[view->frame % COX__SLOTS];
    *slot = (struct cox__slot){.frame = view->frame,
                               .used = true,
                               .trial = trial,
                               .replay = out->pool_rows > 0 && even && !suspect,
                               .early = early,
                               .rows = view->rows,
                               .devices = set};
    for (uint32_t i = 0; i < out->band_count; i++)
        slot->launched |= 1u << out->bands[i].device;
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
