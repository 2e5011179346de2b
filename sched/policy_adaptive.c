/* `adaptive`, the default: models of what each device costs, the split that they make best, and a part of the frame kept back
 * for whoever turns out to be early.
 *
 *     estimator   t = fixed + b n for each device, with its noise, drift and changes (estimator.h)
 *     profile     what rows cost relative to each other (profile.h)
 *     tail        bands that end a little early, the rest handed out on demand (tail.h)
 *     company     whether fewer devices are faster (company.h)
 *
 * docs/scheduling.md has the mathematics, the constants and the limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "company.h"
#include "energy.h"
#include "estimator.h"
#include "layout.h"
#include "policies.h"
#include "profile.h"
#include "strict_fp.h"
#include "tail.h"

#include <math.h>
#include <string.h>

static const double MOVE_GAIN = 0.004; /* of the frame time */
static const double MOVE_ERRORS = 2.5; /* standard errors of the predicted gain, where there is no pool */
static const double GUESS = 0.3;       /* relative deviation of a guess from a device's time alone */
static const double GUESS_HINT = 0.6;  /* and from another device's time and the hints */
static const double RECALL = 0.1;
static const double RETURN = 0.2;         /* of a device that was away */
static const double LATE = 1.25;          /* times its prediction: something has happened to that band */
static const double BACKUP = 3.0;         /* a copy may take so many times what the late band has taken */
static const double TRIES_KNOWN = 0.985;  /* of the time in use: another set that is known to be faster is tried, */
static const double TRIES_UNKNOWN = 0.95; /* one that may be, */
static const double ADOPTS = 0.98;        /* and kept */
enum {
    SLOTS = 16,       /* frames under way that are told apart; a power of two, at least COX_IN_FLIGHT_MAX */
    CALIBRATION = 1,  /* frames before it counts what devices do */
    SETTLED = 4,      /* frames after which a device's time alone is related to its time in company */
    CANDIDATES = 4,   /* sets looked at in a frame */
    SHADOW_PART = 16, /* a shadow is this part of the frame */
    PAUSE_MIN = 32,   /* frames between two probes of a device that is left out */
    PAUSE_MAX = 1024,
    GRID = 16, /* chunks end on this part of the pool, so that they recur */
};

struct device {
    struct cox__estimate estimate;
    bool usable;    /* at the last split */
    bool timed;     /* the estimate is in nanoseconds, not in guesses from hints */
    bool measured;  /* by a band */
    double solo_ns; /* as last told by the view */
    double alone;   /* a frame alone over what the estimate says of it; 0 = not known */
    uint32_t out;   /* frames since it was left out or probed */
    uint32_t pause;
};

/* A split in use. */
struct held {
    bool valid;
    uint32_t rows, granule, least; /* of the frame it was made for */
    uint32_t devices;              /* that could take part */
    uint32_t pool_first_row;
    uint32_t first_row[COX_DEVICES_MAX];
    uint32_t count[COX_DEVICES_MAX]; /* rows; 0 = no band */
};

/* A frame under way. */
struct slot {
    uint64_t frame;
    bool used;
    bool trial;
    uint32_t rows;
    uint32_t devices;  /* that may take rows */
    uint32_t launched; /* that have had some */
    uint32_t declined;
};

struct state {
    uint32_t device_count;
    uint32_t rows; /* of the last frame */
    bool recalled;
    bool energy;
    uint32_t cursor;  /* next set to look at */
    uint32_t lessons; /* changes seen since the last split, a bit for each device */
    struct held held;
    struct slot slots[SLOTS];
    struct cox__profile profile;
    struct cox__company company;
    struct cox__energy chooser;
    struct device devices[];
};

static size_t adaptive_bytes(uint32_t device_count)
{
    return sizeof(struct state) + device_count * sizeof(struct device);
}

static cox_status adaptive_init(void *memory, const struct cox_sched_view *view,
                                const struct cox_policy_options *options)
{
    struct state *state = memory;
    state->device_count = view->device_count;
    state->rows = view->rows;
    cox__profile_init(&state->profile);
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

static struct slot *slot_of(struct state *state, uint64_t frame)
{
    return &state->slots[frame % SLOTS];
}

/* --- learning --- */

/* Time of a whole frame, by the model. */
static double frame_ns(const struct device *device, uint32_t rows)
{
    return cox__estimate_ns(&device->estimate, false, rows);
}

static void adaptive_observe(void *memory, const struct cox_measurement *m)
{
    struct state *state = memory;
    if (m->device >= state->device_count || m->rows == 0 || m->wall_ns == 0)
        return;
    struct device *device = &state->devices[m->device];
    const struct slot *slot = slot_of(state, m->frame);
    bool known = slot->used && slot->frame == m->frame;
    uint32_t rows = known ? slot->rows : state->rows;
    bool inside = (uint64_t)m->first_row + m->rows <= rows;
    struct cox__sample sample = {.further = (m->flags & COX_MEASURED_CHUNK) != 0,
                                 .unfinished = (m->flags & COX_MEASURED_UNFINISHED) != 0,
                                 .work = m->rows,
                                 .ns = (double)m->wall_ns};
    if (inside) {
        sample.work = cox__profile_work(&state->profile, rows, m->first_row, m->rows);
        sample.work_variance = cox__profile_variance(&state->profile, rows, m->first_row, m->rows);
    }
    if (known && slot->trial) { /* the models are those of another set */
        if (m->rows == rows && !sample.unfinished && device->timed)
            device->alone = sample.ns / frame_ns(device, rows);
        return;
    }
    if (!device->timed) {
        cox__estimate_init(&device->estimate);
        cox__estimate_begin(&device->estimate, sample.ns / sample.work * rows, rows, GUESS);
        device->timed = true;
    }
    double residual, variance;
    enum cox__lesson lesson = cox__estimate_learn(&device->estimate, &sample, &residual, &variance);
    device->measured = true;
    if (lesson == COX__CHANGED)
        state->lessons |= 1u << m->device;
    if (inside && variance > 0 && !(m->flags & COX_MEASURED_SHADOW))
        cox__profile_learn(&state->profile, rows, m->first_row, m->rows, residual, variance);
}

static void adaptive_observe_frame(void *memory, const struct cox_frame_measurement *frame)
{
    struct state *state = memory;
    if (state->energy)
        cox__energy_observe(&state->chooser, frame);
    const struct slot *slot = slot_of(state, frame->frame);
    struct cox__company *company = &state->company;
    if (!slot->used || slot->frame != frame->frame || !slot->trial || company->pending == 0)
        return;
    if (--company->pending == 0) { /* the last one: it follows a frame of its kind */
        company->ns = (double)frame->period_ns;
        company->measured++;
    }
}

/* --- what is known --- */

/* Estimates for every usable device, be they guesses. Returns whether they are times. */
static bool estimates(struct state *state, const struct cox_sched_view *view)
{
    double guess[COX_DEVICES_MAX];
    bool guessed = false;
    double scale = 0;
    uint32_t known = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        uint64_t solo_ns = view->devices[d].solo_ns;
        if (!device->timed && solo_ns > 0) {
            cox__estimate_init(&device->estimate);
            cox__estimate_begin(&device->estimate, (double)solo_ns, view->rows, GUESS);
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
                    scale += frame_ns(&state->devices[i], view->rows) / view->rows / guess[i];
            }
            guessed = true;
        }
        double ns_per_row = known > 0 ? guess[d] * scale / known : guess[d];
        cox__estimate_init(&state->devices[d].estimate);
        cox__estimate_begin(&state->devices[d].estimate, ns_per_row * view->rows, view->rows, GUESS_HINT);
    }
    return known > 0;
}

/* Standard deviation of a band's time against its prediction, relative. */
static double noise_of(const struct device *device, double work)
{
    const struct cox__estimate *estimate = &device->estimate;
    double variance = estimate->variance + cox__estimate_error(estimate, false, work);
    return sqrt(fmax(variance, estimate->surprise));
}

static void fill_plan(const struct state *state, const struct cox_sched_view *view, uint32_t devices, double factor,
                      struct cox__tail_device *plan)
{
    double least_ns = HUGE_VAL;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        plan[d] = (struct cox__tail_device){.in = (devices >> d & 1) != 0 && view->devices[d].usable, .suspect = 1};
        if (!plan[d].in)
            continue;
        plan[d].first_ns = factor * estimate->x[COX__FIRST];
        plan[d].launch_ns = factor * estimate->x[COX__LAUNCH];
        plan[d].ns_per_row = factor * estimate->x[COX__PER_ROW];
        if (estimate->suspect > 1)
            plan[d].suspect = estimate->suspect;
        least_ns = fmin(least_ns, plan[d].ns_per_row);
    }
    double typical = (double)view->rows / view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (plan[d].in)
            plan[d].noise = noise_of(&state->devices[d], typical);
}

/* --- company --- */

/* When a frame would be done by these devices; negative = never. */
static double set_ns(const struct state *state, const struct cox_sched_view *view, uint32_t devices, double factor)
{
    struct cox__runner runners[COX_DEVICES_MAX];
    uint32_t count = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!(devices >> d & 1) || !view->devices[d].usable)
            continue;
        const struct device *device = &state->devices[d];
        if (devices == 1u << d) {
            if (device->alone > 0)
                return device->alone * frame_ns(device, view->rows);
            return device->solo_ns > 0 ? device->solo_ns : factor * frame_ns(device, view->rows);
        }
        const double *x = device->estimate.x;
        runners[count++] = (struct cox__runner){true, factor * x[COX__FIRST], factor * x[COX__PER_ROW]};
    }
    return cox__tail_level(runners, count, view->rows);
}

/* By how much the devices of the set in use are slower than alone. */
static double factor_in_use(const struct state *state)
{
    const struct cox__company *company = &state->company;
    const struct cox__set *set = cox__company_find(company, company->in_use);
    if (set && set->factor > 0)
        return set->factor;
    if ((company->in_use & (company->in_use - 1)) == 0)
        return 1;
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const struct device *device = &state->devices[d];
        if (!(company->in_use >> d & 1))
            continue;
        double alone = device->alone > 0                         ? device->alone
                       : device->solo_ns > 0 && device->measured ? device->solo_ns / frame_ns(device, state->rows)
                                                                 : 0;
        if (!(alone > 0))
            continue;
        sum += 1 / alone;
        count++;
    }
    return count > 0 ? fmax(1, fmin(sum / count, 16)) : 1;
}

/* Put another set in use: the models become those of its company. */
static void use_set(struct state *state, uint32_t devices, double factor)
{
    struct cox__company *company = &state->company;
    double before = factor_in_use(state);
    cox__company_entry(company, company->in_use)->factor = before;
    company->in_use = devices;
    struct cox__set *set = cox__company_entry(company, devices);
    set->factor = factor;
    double ratio = factor / before;
    for (uint32_t d = 0; d < state->device_count; d++) {
        struct device *device = &state->devices[d];
        if (!device->timed)
            continue;
        if (devices == 1u << d && device->alone > 0)
            cox__estimate_scale(&device->estimate, device->alone, 0.05);
        else
            cox__estimate_scale(&device->estimate, ratio, 0.1);
        device->alone = devices == 1u << d ? 1 : device->alone / ratio;
    }
}

/* What became of the trial. */
static void end_trial(struct state *state, const struct cox_sched_view *view, double level)
{
    struct cox__company *company = &state->company;
    uint32_t devices = company->trial;
    company->trial = 0;
    if (company->measured == 0 || !(company->ns > 0))
        return;
    double assumed = cox__company_factor(company, devices);
    double factor = assumed * company->ns / company->predicted;
    if ((devices & (devices - 1)) == 0)
        factor = 1;
    cox__company_entry(company, devices)->factor = fmax(1, fmin(factor, 1e3));
    if (company->ns < ADOPTS * level) {
        uint32_t before = company->in_use;
        use_set(state, devices, fmax(1, fmin(factor, 1e3)));
        cox__company_lost(company, before, view->frame);
    } else {
        cox__company_lost(company, devices, view->frame);
    }
}

/* The set of devices for this frame. */
static uint32_t choose_set(struct state *state, const struct cox_sched_view *view, uint32_t usable, bool changed,
                           bool timed)
{
    struct cox__company *company = &state->company;
    if (company->in_use == 0 || changed) {
        company->in_use = usable;
        company->trial = 0;
    }
    double level = set_ns(state, view, company->in_use, 1);
    if (company->trial) {
        if (company->trial & ~usable)
            company->trial = 0;
        else if (company->left > 0) {
            company->left--;
            return company->trial;
        } else if (company->pending == 0)
            end_trial(state, view, level);
        else
            return company->in_use;
        level = set_ns(state, view, company->in_use, 1);
    }
    if (!timed || (usable & (usable - 1)) == 0 || view->frame < company->due)
        return company->in_use;
    for (uint32_t d = 0; d < view->device_count; d++)
        if ((company->in_use >> d & 1) && (!state->devices[d].measured || state->devices[d].estimate.suspect > 0))
            return company->in_use;

    double now = factor_in_use(state);
    for (uint32_t tries = 0; tries < CANDIDATES; tries++) {
        state->cursor = (state->cursor + 1) % (2 * view->device_count);
        uint32_t bit = 1u << state->cursor / 2;
        uint32_t devices = state->cursor % 2 ? bit : company->in_use ^ bit;
        devices &= usable;
        if (devices == 0 || devices == company->in_use)
            continue;
        const struct cox__set *set = cox__company_find(company, devices);
        if (set && view->frame < set->due)
            continue;
        bool single = (devices & (devices - 1)) == 0;
        bool known = single || (set && set->factor > 0);
        double factor = cox__company_factor(company, devices);
        double ns = set_ns(state, view, devices, factor / now);
        if (!(ns > 0) || ns >= (known ? TRIES_KNOWN : TRIES_UNKNOWN) * level)
            continue;
        company->trial = devices;
        company->left = view->in_flight > 1 ? 2 : 0;
        company->pending = company->left + 1;
        company->measured = 0;
        company->predicted = ns;
        return devices;
    }
    return company->in_use;
}

/* --- layout --- */

static uint32_t least_rows(const struct cox_sched_view *view)
{
    uint64_t least = view->min_band_rows > view->granule ? view->min_band_rows : view->granule;
    least = (least + view->granule - 1) / view->granule * view->granule;
    return least > view->rows ? view->rows : (uint32_t)least;
}

/* Bands of the planned work, in device order; what is left at the end is the pool. */
static void lay_out(const struct state *state, const struct cox_sched_view *view, const struct cox__tail_device *plan,
                    bool pool, uint32_t least, struct held *held)
{
    uint32_t next = 0;
    uint32_t last = view->device_count;
    double sum = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        held->first_row[d] = held->count[d] = 0;
        if (!(plan[d].work > 0))
            continue;
        uint32_t left = view->rows - next;
        if (left == 0 || (last < view->device_count && left < least))
            continue;
        sum += plan[d].work;
        uint64_t end = cox__profile_row(&state->profile, view->rows, sum);
        end = (end + view->granule / 2) / view->granule * view->granule;
        if (end < (uint64_t)next + least)
            end = (uint64_t)next + least;
        if (end > view->rows)
            end = view->rows;
        held->first_row[d] = next;
        held->count[d] = (uint32_t)end - next;
        next = (uint32_t)end;
        last = d;
    }
    if (last == view->device_count) /* costs beyond all measure: anybody */
        for (last = 0; !plan[last].in && last + 1 < view->device_count;)
            last++;
    uint32_t left = view->rows - next;
    if (left > 0 && (!pool || left < least)) {
        held->count[last] += left;
        next = view->rows;
    }
    held->pool_first_row = next;
    held->rows = view->rows;
    held->granule = view->granule;
    held->least = least;
    held->valid = true;
}

/* When the frame would be done with bands that are there, and when each device would be with its own. */
static double held_ns(const struct state *state, const struct cox_sched_view *view, const struct held *held,
                      const struct cox__tail_device *plan, double *end_ns)
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
    uint32_t pool = view->rows - held->pool_first_row;
    if (pool == 0)
        return latest;
    double work = cox__profile_work(&state->profile, view->rows, held->pool_first_row, pool);
    return fmax(latest, cox__tail_level(runners, view->device_count, work));
}

/* Standard error of the predicted gain of a move. */
static double gain_error(const struct state *state, const struct held *held)
{
    double sum = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (held->count[d] > 0)
            sum += cox__estimate_error(&state->devices[d].estimate, false, held->count[d]);
    return 0.5 * sqrt(sum);
}

/* Whether the split in use can stay. */
static bool stays(const struct state *state, const struct cox_sched_view *view, const struct held *next, double next_ns,
                  double held_time)
{
    const struct held *held = &state->held;
    double gain = held_time / next_ns - 1;
    uint32_t pool = view->rows - held->pool_first_row, wanted = view->rows - next->pool_first_row;
    if (wanted == 0 && pool == 0)
        return gain <= fmax(MOVE_GAIN, MOVE_ERRORS * gain_error(state, held));
    if (wanted > 2 * pool || pool > 2 * wanted)
        return false;
    return gain <= MOVE_GAIN;
}

/* --- splitting --- */

static uint32_t usable_devices(struct state *state, const struct cox_sched_view *view, bool *changed)
{
    uint32_t usable = 0;
    *changed = false;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
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
static void probe(struct state *state, const struct cox_sched_view *view, uint32_t set, struct cox_split *out)
{
    uint32_t due = view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
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
    uint32_t least = least_rows(view);
    uint32_t rows = view->rows / SHADOW_PART / view->granule * view->granule;
    rows = rows < least ? least : rows;
    struct device *device = &state->devices[due];
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

static void put_bands(const struct cox_sched_view *view, const struct held *held, struct cox_split *out)
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
    out->pool_rows = view->rows - held->pool_first_row;
    if (out->pool_rows == 0)
        out->pool_first_row = 0;
}

static cox_status adaptive_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
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
        struct device *device = &state->devices[d];
        first &= !device->measured;
        if (!device->measured)
            continue;
        if (mean != 1)
            cox__estimate_stretch(&device->estimate, mean);
        cox__estimate_age(&device->estimate);
        if (!(device->alone > 0) && device->solo_ns > 0 && device->estimate.frames >= SETTLED &&
            (usable & (usable - 1)) != 0)
            device->alone = fmax(0.1, fmin(1.5, device->solo_ns / frame_ns(device, view->rows)));
    }

    uint32_t set = choose_set(state, view, usable, changed, timed);
    bool trial = set != state->company.in_use;
    double factor = trial ? cox__company_factor(&state->company, set) / factor_in_use(state) : 1;
    struct cox__tail_device plan[COX_DEVICES_MAX];
    fill_plan(state, view, set, factor, plan);
    uint32_t least = least_rows(view);
    double pool_work;
    double level = cox__tail_plan(plan, view->device_count, view->rows, least, view->pool, &pool_work);

    struct held next;
    lay_out(state, view, plan, view->pool && pool_work > 0, least, &next);
    next.devices = set;
    double next_end[COX_DEVICES_MAX], held_end[COX_DEVICES_MAX];
    double next_time = held_ns(state, view, &next, plan, next_end);
    double *end_ns = next_end;
    double time = next_time;
    const struct held *held = &state->held;
    bool suspect = false;
    for (uint32_t d = 0; d < view->device_count; d++)
        suspect |= plan[d].suspect > 1 && plan[d].work > 0;
    if (held->valid && !trial && !changed && !suspect && held->rows == view->rows && held->granule == view->granule &&
        held->least == least && held->devices == set && (view->pool || held->pool_first_row == view->rows)) {
        double held_time = held_ns(state, view, held, plan, held_end);
        out->rival_ns = cox__layout_ns(held_time);
        if (state->lessons == 0 && stays(state, view, &next, next_time, held_time)) {
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
        else if (state->lessons || suspect)
            out->reason = COX_REASON_CHANGED;
        else if (set != usable)
            out->reason = COX_REASON_SUBSET;
        else if (left_out)
            out->reason = COX_REASON_DROPPED;
        if (!trial && !suspect)
            state->held = next;
    }
    state->lessons = 0;
    put_bands(view, &next, out);
    for (uint32_t d = 0; d < view->device_count; d++)
        out->device_ns[d] = timed ? cox__layout_ns(end_ns[d]) : 0;
    out->predicted_ns = timed ? cox__layout_ns(time) : 0;
    if (!timed)
        out->rival_ns = 0;
    if (!first && !trial)
        probe(state, view, set, out);
    (void)level;

    struct slot *slot = slot_of(state, view->frame);
    *slot = (struct slot){.frame = view->frame, .used = true, .trial = trial, .rows = view->rows, .devices = set};
    for (uint32_t i = 0; i < out->band_count; i++)
        slot->launched |= 1u << out->bands[i].device;
    return COX_OK;
}

/* --- handing out --- */

/* How long a device will be at what it has. */
static double rest_ns(const struct state *state, const struct cox_sched_view *view, uint32_t d,
                      const struct cox_progress *progress)
{
    const struct device *device = &state->devices[d];
    bool further = progress->first_row != state->held.first_row[d];
    double work = progress->rows;
    if ((uint64_t)progress->first_row + progress->rows <= view->rows)
        work = cox__profile_work(&state->profile, view->rows, progress->first_row, progress->rows);
    double ns = cox__estimate_ns(&device->estimate, further, work) * fmax(1, device->estimate.suspect);
    double since = (double)progress->since_ns;
    if (since > LATE * ns)
        return since;
    return fmax(ns - since, 0.3 * sqrt(device->estimate.variance) * ns);
}

static void adaptive_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                          struct cox_grant *out)
{
    struct state *state = memory;
    *out = (struct cox_grant){0};
    struct slot *slot = slot_of(state, view->frame);
    if (!slot->used || slot->frame != view->frame || offer->device >= view->device_count) {
        out->rows = offer->rows;
        return;
    }
    uint32_t self = offer->device;
    uint32_t bit = 1u << self;
    uint32_t may = offer->backup ? UINT32_MAX : slot->devices;
    struct cox__runner runners[COX_DEVICES_MAX];
    double speed = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_progress *progress = &offer->progress[d];
        const struct device *device = &state->devices[d];
        runners[d].in = d == self || (view->devices[d].usable && (may >> d & 1) && !(slot->declined >> d & 1) &&
                                      !(offer->backup && d == offer->late));
        if (!runners[d].in)
            continue;
        double start = device->estimate.x[slot->launched >> d & 1 ? COX__LAUNCH : COX__FIRST];
        if (d != self && progress->rows > 0)
            start += rest_ns(state, view, d, progress);
        runners[d].start_ns = start;
        runners[d].ns_per_row = device->estimate.x[COX__PER_ROW];
        speed += 1 / runners[d].ns_per_row;
    }
    double work = cox__profile_work(&state->profile, view->rows, offer->first_row, offer->rows);
    double level = cox__tail_level(runners, view->device_count, work);
    const struct cox__runner *own = &runners[self];
    double share_ns = level - own->start_ns;
    double unit = work / offer->rows * view->granule * own->ns_per_row; /* of one granule, about */
    bool takes = (may & bit) != 0 && share_ns > 0.5 * unit;
    if (takes && offer->backup && own->start_ns + share_ns > BACKUP * (double)offer->progress[offer->late].since_ns)
        takes = false;
    if (!takes && !offer->last) {
        slot->declined |= bit;
        return;
    }

    const struct device *device = &state->devices[self];
    double part = offer->backup ? 1
                                : cox__tail_part(share_ns, own->start_ns, noise_of(device, 0.2 * view->rows),
                                                 1 / (own->ns_per_row * speed));
    double wanted = part * fmax(share_ns, unit) / own->ns_per_row;
    double before = cox__profile_work(&state->profile, view->rows, 0, offer->first_row);
    uint64_t end = view->rows;
    if (wanted < work)
        end = cox__profile_row(&state->profile, view->rows, before + wanted);
    uint64_t grid = (uint64_t)view->granule;
    end = (end + grid / 2) / grid * grid;
    uint32_t least = least_rows(view);
    if (end < (uint64_t)offer->first_row + least)
        end = (uint64_t)offer->first_row + least;
    uint64_t limit = (uint64_t)offer->first_row + offer->rows;
    if (end + least > limit)
        end = limit;
    out->rows = (uint32_t)(end - offer->first_row);
    double given = cox__profile_work(&state->profile, view->rows, offer->first_row, out->rows);
    bool timed = device->timed;
    out->predicted_ns = timed ? cox__layout_ns(own->start_ns + own->ns_per_row * given) : 0;
    slot->launched |= bit;
}

/* --- memory --- */

static void adaptive_recall(void *memory, const struct cox_sched_view *view, const struct cox_device_model *models)
{
    struct state *state = memory;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_device_model *model = &models[d];
        struct device *device = &state->devices[d];
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
    const struct state *state = memory;
    const struct held *held = &state->held;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct device *device = &state->devices[d];
        const struct cox__estimate *estimate = &device->estimate;
        models[d] = (struct cox_device_model){0};
        if (!device->measured)
            continue;
        models[d].frames = estimate->launches > 0 ? estimate->launches : 1;
        models[d].fixed_ns = estimate->x[COX__FIRST];
        models[d].launch_ns = estimate->x[COX__LAUNCH];
        models[d].ns_per_row = estimate->x[COX__PER_ROW];
        models[d].solo_ns = device->alone > 0 ? device->alone * frame_ns(device, state->rows) : device->solo_ns;
        models[d].share = held->valid ? (double)held->count[d] / held->rows : 0;
    }
}

const struct cox_policy cox__policy_adaptive = {.name = "adaptive",
                                                .state_bytes = adaptive_bytes,
                                                .init = adaptive_init,
                                                .split = adaptive_split,
                                                .observe = adaptive_observe,
                                                .next = adaptive_next,
                                                .observe_frame = adaptive_observe_frame,
                                                .recall = adaptive_recall,
                                                .models = adaptive_models};
