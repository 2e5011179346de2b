/* Which devices `adaptive` lets take part: all of them, unless fewer are faster.
 *
 * Warm-up tells what each device takes alone, the models what it takes in the company in use. So a set's frame time
 * has a lower bound, and only sets whose bound promises something are tried, for one frame (three, where frames
 * overlap). The trial shows how much slower each device is in that set, which gives the time of a balanced split,
 * whatever the trial's own split was worth. Where co-running costs nothing no set is ever tried: fewer devices cannot
 * be faster.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>

static const double TRIES_KNOWN = 0.985;   /* of the time in use: another set that is known to be faster is tried, */
static const double TRIES_UNKNOWN = 0.975; /* one that may be, */
static const double ADOPTS = 0.985;        /* and kept, if it is one device; */
static const double ADOPTS_SET = 0.98;     /* several are harder to judge */
static const double SETTLED = 4;           /* frames of each device before sets of several are tried */
static const double DOUBT = 1.15;          /* times the warm-up's time: a trial of one device to be doubted */
static const double ALONE_UNKNOWN = 0.5;   /* what a device may at best take alone, over its time in company */
static const double SLOWER_MOST = 100;
static const double SWITCH = 0.06; /* relative deviation of the models after a change of company */
enum { DOUBT_PAUSE = 4 };          /* frames until it is tried again */
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

/* A frame alone over what the model in use says of it: at most 1, unless the warm-up was disturbed. */
static double alone_of(const struct cox__adaptive *state, uint32_t d)
{
    const struct cox__adaptive_device *device = &state->devices[d];
    if (state->company.in_use == 1u << d)
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
    if (devices == state->company.in_use)
        return;
    const struct cox__set *set = cox__company_find(&state->company, devices);
    bool known = set && set->known;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (devices >> d & 1)
            factors[d] = alone_of(state, d) * (known ? set->slower[d] : 1);
}

/* When a frame would be done by these devices, each slower than its model says by a factor; negative = never. */
static double level_ns(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices,
                       const double *factors)
{
    struct cox__runner runners[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++) {
        const double *x = state->devices[d].estimate.x;
        runners[d].in = (devices >> d & 1) != 0 && view->devices[d].usable;
        if (!runners[d].in)
            continue;
        runners[d].start_ns = factors[d] * x[COX__FIRST];
        runners[d].speed = 1 / (factors[d] * x[COX__PER_ROW]);
    }
    return cox__tail_level(runners, view->device_count, view->rows);
}

/* As far as is known. */
static double set_ns(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices)
{
    double factors[COX_DEVICES_MAX];
    cox__adaptive_factors(state, devices, factors);
    return level_ns(state, view, devices, factors);
}

/* At the earliest: each device as fast as alone. */
static double set_least_ns(const struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices)
{
    double factors[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        factors[d] = alone_of(state, d);
    return level_ns(state, view, devices, factors);
}

/* Put another set in use: the models become those of its company. */
static void use_set(struct cox__adaptive *state, uint32_t devices)
{
    struct cox__company *company = &state->company;
    struct cox__set *before = cox__company_entry(company, company->in_use);
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
    company->in_use = devices;
}

/* Of a trial: where frames overlap, the last one must follow frames of its kind. */
static uint32_t trial_frames(const struct cox_sched_view *view)
{
    return view->in_flight > 1 ? view->in_flight + 1 : 1;
}

/* What became of the trial. */
static void end_trial(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    struct cox__company *company = &state->company;
    uint32_t frames = trial_frames(view);
    uint32_t devices = company->trial;
    company->trial = 0;
    struct cox__set *set = cox__company_entry(company, devices);
    for (uint32_t d = 0; d < state->device_count; d++) {
        if (!(devices >> d & 1))
            continue;
        bool seen = company->seen >> d & 1;
        double ratio = seen ? company->ns[d] / company->predicted[d] : 1;
        if (is_single(devices) && seen) {
            double ns = ratio * cox__adaptive_frame_ns(&state->devices[d], view->rows);
            if (state->devices[d].solo_ns > 0 && ns > DOUBT * state->devices[d].solo_ns && set->pause > DOUBT_PAUSE)
                set->pause = DOUBT_PAUSE; /* the trial was disturbed, or the warm-up was: soon again */
            else
                state->devices[d].alone = cox__clip(ratio, 1 / SLOWER_MOST, 1.5);
            company->ns[d] = ns;
            set->slower[d] = 1;
        } else {
            set->slower[d] = cox__clip(seen ? ratio / alone_of(state, d) : 1, 0.5, SLOWER_MOST);
        }
    }
    set->known = true;
    uint32_t before = company->in_use;
    double ns = is_single(devices) && company->seen ? company->ns[first_of(devices)] : set_ns(state, view, devices);
    double before_ns = set_ns(state, view, before);
    if (ns < (is_single(devices) ? ADOPTS : ADOPTS_SET) * before_ns) {
        use_set(state, devices);
        cox__company_lost(company, before, view->frame, frames, 0);
    } else {
        cox__company_lost(company, devices, view->frame, frames, ns / before_ns - 1);
    }
}

static uint32_t begin_trial(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t devices)
{
    struct cox__company *company = &state->company;
    company->trial = devices;
    company->left = trial_frames(view) - 1;
    company->trial_of = view->frame + company->left;
    company->seen = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        company->ns[d] = company->predicted[d] = 0;
    return devices;
}

/* Another set worth a trial; 0 = none. */
static uint32_t candidate(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable)
{
    struct cox__company *company = &state->company;
    double level = set_ns(state, view, company->in_use);
    uint32_t best = 0;
    double best_ns = TRIES_KNOWN * level;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox__adaptive_device *device = &state->devices[d];
        if (!(usable >> d & 1) || company->in_use == 1u << d)
            continue;
        bool known = device->solo_ns > 0 || device->alone > 0;
        if (!known && device->estimate.frames < SETTLED)
            continue;
        double ns = (known ? alone_of(state, d) : ALONE_UNKNOWN) * cox__adaptive_frame_ns(device, view->rows);
        if (!(ns < best_ns))
            continue;
        const struct cox__set *set = cox__company_find(company, 1u << d);
        if (!(set && view->frame < set->due)) {
            best_ns = ns;
            best = 1u << d;
        }
    }
    if (best || view->frame < company->due)
        return best;
    for (uint32_t d = 0; d < view->device_count; d++)
        if ((company->in_use >> d & 1) && state->devices[d].estimate.frames < SETTLED)
            return 0;
    for (uint32_t tries = 0; tries < CANDIDATES; tries++) {
        company->cursor = (company->cursor + 1) % view->device_count;
        uint32_t devices = (company->in_use ^ 1u << company->cursor) & usable;
        if (devices == 0 || is_single(devices) || devices == company->in_use)
            continue;
        const struct cox__set *set = cox__company_find(company, devices);
        if (set && view->frame < set->due)
            continue;
        /* What a trial showed is believed for as long as its pause: it may have been an accident. */
        double ns = set_least_ns(state, view, devices);
        if (ns > 0 && ns < TRIES_UNKNOWN * level)
            return devices;
    }
    return 0;
}

uint32_t cox__adaptive_set(struct cox__adaptive *state, const struct cox_sched_view *view, uint32_t usable,
                           bool changed, bool timed)
{
    struct cox__company *company = &state->company;
    if (company->in_use == 0 || changed) {
        bool again = state->recalled_set && (state->recalled_set & ~usable) == 0;
        company->in_use = again ? state->recalled_set : usable;
        if (company->in_use != usable)
            cox__company_lost(company, usable, view->frame, trial_frames(view), 0);
        state->recalled_set = 0;
        company->trial = 0;
    }
    if (company->trial) {
        if (company->left > 0) {
            company->left--;
            return company->trial;
        }
        if (company->seen == 0 && view->frame <= company->trial_of + COX__SLOTS)
            return company->in_use; /* not observed yet */
        end_trial(state, view);
    }
    if (!timed || is_single(usable))
        return company->in_use;
    for (uint32_t d = 0; d < view->device_count; d++)
        if ((company->in_use >> d & 1) && (!state->devices[d].measured || state->devices[d].estimate.suspect > 0))
            return company->in_use;
    uint32_t devices = candidate(state, view, usable);
    return devices ? begin_trial(state, view, devices) : company->in_use;
}
