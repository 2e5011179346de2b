/* What `adaptive` learns from the launches of a frame.
 *
 * All launches of a frame are compared with their predictions first, because their residuals together tell what has
 * changed:
 *
 *   - all launches of one device are off by much, alike: the device has changed;
 *   - launches of several devices, or some launches of one, are off by much: the content of these rows has changed;
 *   - the whole frame took longer or less long, all devices alike: every device's estimate is scaled;
 *   - one first band took far too long: a suspected change. Nothing is learned from it, and the device gets a smaller
 *     band in the next frame. A second one in a row is a change; otherwise it was an outlier. A launch that is far too
 *     fast is a change at once, because outliers are slow;
 *   - all other residuals are noise and drift. They are shared out between the device's estimate and the row profile in
 *     proportion to their variances.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>
#include <string.h>

static const double FAR = 6;          /* deviations from which on the residual of one launch is far, */
static const double FAR_LEAST = 0.35; /* and the relative residual that it needs at least */
static const double OFF = 4;          /* the same for a residual that is off, which several launches must share */
static const double OFF_LEAST = 0.20;
static const double ALIKE = 1.35;       /* ratio up to which residuals are alike */
static const double PART_LEAST = 0.05;  /* least part of a launch's time that is taken to depend on the rows */
static const double ALL_LEAST = 0.2;    /* relative residual of the whole frame from which on estimates are scaled, */
static const double ALL_PART = 0.8;     /* if this part of the frame's time has that residual */
static const double ROWS_CHANGE = 5e-4; /* drift of the row profile from which on residuals are the rows' */
static const double UNFINISHED = 2.0;   /* time that an unfinished launch is guessed to need, over what it took */
static const double UNFINISHED_LEAST = 1.2; /* part of its prediction after which an unfinished launch is counted */
static const double LAG_GAIN = 0.05;        /* of one further launch, in the mean of the lags */
static const double LAG_MOST = 20;          /* predictions that one lag counts for at most */
static const double GUESS = 0.3;            /* relative deviation of an estimate made from one launch */
static const double AGAIN = 0.08;           /* relative deviation of the scale after a change, */
static const double AGAIN_UNFINISHED = 0.3; /* and after one that an unfinished launch has shown */

/* A launch and its residual. */
struct compared_launch {
    const struct cox__launch *launch;
    struct cox__sample sample;
    struct cox__residual residual;
    double part;           /* of its time that depends on the rows */
    double deviations;     /* the residual in standard deviations */
    struct cox__span span; /* set if `inside` */
    bool inside;           /* its rows lie in the frame */
    bool off, far;         /* the residual exceeds OFF, FAR */
};

/* What the launches of one device have in common. */
struct common {
    uint32_t count;      /* launches */
    uint32_t slow, fast; /* launches that are off, by sign */
    double least, most;  /* ratio */
    double deviations;   /* sum */
};

/* Compare a launch with the estimate of its device; a device that has none begins with this launch. */
static void compare(struct cox__adaptive *state, const struct cox__launch *launch, uint32_t rows,
                    struct compared_launch *compared)
{
    struct cox__adaptive_device *device = &state->devices[launch->device];
    compared->launch = launch;
    compared->sample = (struct cox__sample){.further = (launch->flags & COX_MEASURED_CHUNK) != 0,
                                            .unfinished = (launch->flags & COX_MEASURED_UNFINISHED) != 0,
                                            .work = launch->rows,
                                            .ns = launch->ns};
    compared->residual = (struct cox__residual){0};
    compared->inside = (uint64_t)launch->first_row + launch->rows <= rows;
    struct cox__sample *sample = &compared->sample;
    if (compared->inside) {
        cox__row_profile_span(&state->row_profile, rows, launch->first_row, launch->rows, &compared->span);
        sample->work = cox__row_profile_work(&state->row_profile, rows, launch->first_row, launch->rows);
    }
    if (!device->timed) {
        cox__estimate_init(&device->estimate);
        cox__estimate_begin(&device->estimate, sample->ns, sample->work, GUESS, sample->ns);
        device->timed = true;
    }
    device->measured = true;
    double rows_ns = device->estimate.x[COX__PER_ROW] * sample->work;
    compared->part = cox__max(PART_LEAST, rows_ns / cox__estimate_ns(&device->estimate, sample->further, sample->work));
    if (compared->inside)
        sample->work_variance = cox__row_profile_variance(&state->row_profile, &compared->span) * compared->part *
                                compared->part;
    cox__estimate_compare(&device->estimate, sample, &compared->residual);
    if (sample->unfinished) {
        sample->ns *= UNFINISHED;
        compared->residual.ratio *= UNFINISHED;
    }
}

/* Decide whether the residual is off or far. Its deviation is widened by what the normalised residuals were lately, so
 * that noise beyond the learned variance is not taken for a change. */
static void judge(const struct cox__adaptive *state, struct compared_launch *compared)
{
    const struct cox__estimate *estimate = &state->devices[compared->launch->device].estimate;
    double ratio = compared->residual.ratio, deviation = sqrt(compared->residual.variance);
    compared->deviations = (ratio - 1) / deviation;
    deviation *= sqrt(cox__max(1, estimate->normalised_mean_square));
    double far = cox__max(FAR_LEAST, FAR * deviation), off = cox__max(OFF_LEAST, OFF * deviation);
    compared->far = ratio > 1 + far || ratio * (1 + far) < 1;
    compared->off = ratio > 1 + off || ratio * (1 + off) < 1;
}

/* The factor by which the whole frame took longer than predicted, if its devices took longer alike; else 1. They do
 * where other programs slow all of them down, or where all rows have become dearer. */
static double common_factor(const struct cox__adaptive *state, const struct compared_launch *launches, uint32_t count,
                            const struct common *common)
{
    double ns = 0, predicted = 0, variance = 0, alike = 0;
    for (uint32_t i = 0; i < count; i++) {
        ns += launches[i].sample.ns;
        predicted += launches[i].residual.predicted_ns;
    }
    if (!(predicted > 0))
        return 1;
    double factor = ns / predicted;
    if (factor < 1 + ALL_LEAST && factor * (1 + ALL_LEAST) > 1)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__estimate *estimate = &state->devices[launches[i].launch->device].estimate;
        double jitter_ns = sqrt(estimate->variance * cox__max(1, estimate->normalised_mean_square)) *
                           launches[i].residual.predicted_ns;
        variance += jitter_ns * jitter_ns;
    }
    double least = OFF * sqrt(variance) / predicted;
    if (factor < 1 + least && factor * (1 + least) > 1)
        return 1;
    uint32_t devices = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        devices += common[d].count > 0;
    for (uint32_t i = 0; i < count; i++)
        if (!launches[i].sample.unfinished && launches[i].residual.ratio < ALIKE * factor &&
            launches[i].residual.ratio * ALIKE > factor)
            alike += launches[i].residual.predicted_ns;
    return devices > 1 && alike > ALL_PART * predicted ? factor : 1;
}

static bool is_alike(const struct common *common)
{
    return common->count >= 2 && (common->slow == common->count || common->fast == common->count) &&
           common->most <= ALIKE * common->least;
}

/* Handle a launch that shows a change of its device, or an outlier: the first slow one only suspects the device, a
 * second slow one or a fast one changes the estimate. */
static void suspect_change(struct cox__adaptive *state, const struct compared_launch *compared)
{
    struct cox__estimate *estimate = &state->devices[compared->launch->device].estimate;
    struct cox__sample sample = compared->sample;
    double ratio = compared->residual.ratio;
    if (ratio > 1 && !(estimate->suspected_change > 0)) {
        if (!sample.further) {
            estimate->suspected_change = ratio;
            estimate->suspected_unfinished = sample.unfinished;
        }
        return;
    }
    if (ratio > 1 && !sample.unfinished && !estimate->suspected_unfinished && estimate->suspected_change < 2 * ratio)
        sample.ns = sqrt(ratio * estimate->suspected_change) * compared->residual.predicted_ns;
    cox__estimate_jump(estimate, &sample, sample.unfinished ? AGAIN_UNFINISHED : AGAIN);
    state->changed |= 1u << compared->launch->device;
}

static void learn(struct cox__adaptive *state, const struct compared_launch *compared, double deviations)
{
    const struct cox__launch *launch = compared->launch;
    struct cox__estimate *estimate = &state->devices[launch->device].estimate;
    double part = compared->part;
    double variance, residual = cox__estimate_learn(estimate, &compared->sample, &variance);
    if (compared->inside && !(launch->flags & COX_MEASURED_SHADOW))
        cox__row_profile_learn(&state->row_profile, &compared->span, residual / part, variance / (part * part),
                               deviations);
}

/* Learn from a launch over rows whose content has changed: the row profile takes most of the residual. */
static void learn_content_change(struct cox__adaptive *state, struct compared_launch *compared)
{
    if (compared->inside && !(compared->launch->flags & COX_MEASURED_SHADOW)) {
        cox__row_profile_reopen(&state->row_profile, &compared->span);
        compared->sample.work_variance = cox__row_profile_variance(&state->row_profile, &compared->span) *
                                         compared->part * compared->part;
    }
    learn(state, compared, 0);
}

/* Tell the tail reserve what the frame would have taken with another share. */
static void learn_reserve(struct cox__adaptive *state, const struct cox__frame_slot *slot,
                          const struct compared_launch *launches, uint32_t count, bool content_change)
{
    if (!slot || !slot->replayable)
        return;
    double busy[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < state->device_count; d++)
        busy[d] = 0;
    double latest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__launch *launch = launches[i].launch;
        if (launch->flags & COX_MEASURED_SHADOW)
            continue;
        if (!launches[i].sample.further)
            latest = cox__max(latest, launch->ns);
        bool outlier = launches[i].far && launches[i].residual.ratio > 1 && !content_change;
        if (!launches[i]
                 .sample.unfinished) /* the rows of an unfinished launch are counted where they were done again */
            busy[launch->device] += outlier ? launches[i].residual.predicted_ns : launch->ns;
        else
            busy[launch->device] += 1;
    }
    double speed = 0, level = 0, launch_ns = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const struct cox__estimate *estimate = &state->devices[d].estimate;
        if (!(busy[d] > 0))
            continue;
        double s = 1 / estimate->x[COX__PER_ROW];
        speed += s;
        level += s * busy[d];
        launch_ns += s * estimate->x[COX__LAUNCH];
    }
    if (speed > 0)
        cox__tail_reserve_learn(&state->tail_reserve, slot->tail_reserve, level / speed, latest, launch_ns / speed);
}

/* Compare all launches with their predictions, leaving out unfinished ones that are still within theirs. Two loops, so
 * that square roots and divisions of different launches overlap: they are most of the work. Returns how many were
 * kept. */
static uint32_t compare_all(struct cox__adaptive *state, uint32_t count, uint32_t rows,
                            struct compared_launch *launches, struct common *common)
{
    memset(common, 0, state->device_count * sizeof *common);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct compared_launch *compared = &launches[kept];
        compare(state, &state->launches[i], rows, compared);
        if (!compared->sample.unfinished || compared->residual.ratio >= UNFINISHED * UNFINISHED_LEAST)
            kept++;
    }
    for (uint32_t i = 0; i < kept; i++) {
        struct compared_launch *compared = &launches[i];
        judge(state, compared);
        struct common *mine = &common[compared->launch->device];
        double ratio = compared->residual.ratio;
        mine->least = mine->count == 0 ? ratio : cox__min(mine->least, ratio);
        mine->most = cox__max(mine->most, ratio);
        mine->count++;
        mine->slow += compared->off && ratio > 1;
        mine->fast += compared->off && ratio < 1;
        mine->deviations += compared->deviations;
    }
    return kept;
}

/* Add up what the devices took in the frame that tries another device set. */
static void learn_trial(struct cox__adaptive *state, uint32_t count, uint32_t rows)
{
    struct cox__device_sets *sets = &state->device_sets;
    if (!sets->trial || state->observed != sets->trial_last)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__launch *launch = &state->launches[i];
        const struct cox__adaptive_device *device = &state->devices[launch->device];
        if (!device->timed || (uint64_t)launch->first_row + launch->rows > rows)
            continue;
        double work = cox__row_profile_work(&state->row_profile, rows, launch->first_row, launch->rows);
        sets->trial_ns[launch->device] += launch->ns;
        sets->trial_predicted_ns[launch->device] += cox__estimate_ns(&device->estimate,
                                                                     (launch->flags & COX_MEASURED_CHUNK) != 0, work);
        sets->trial_seen |= 1u << launch->device;
    }
}

/* Whether the residuals show that the frame's content has changed: a quarter of the launches are off, on several
 * devices or differently on one. */
static bool content_changed(const struct cox__adaptive *state, const struct common *common, uint32_t count)
{
    uint32_t off = 0, several = 0, alike = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        uint32_t mine = common[d].count > 0 ? common[d].slow + common[d].fast : 0;
        off += mine;
        several += mine > 0;
        alike += common[d].count > 0 && is_alike(&common[d]);
    }
    return off >= 2 && 4 * off >= count && (several > 1 || alike == 0);
}

static void learn_launch(struct cox__adaptive *state, struct compared_launch *compared, const struct common *mine,
                         bool content_change)
{
    uint32_t d = compared->launch->device;
    struct cox__adaptive_device *device = &state->devices[d];
    double predicted_ns = compared->residual.predicted_ns;
    if (compared->sample.further && !compared->sample.unfinished && !content_change) {
        double late = cox__max(0, compared->launch->ns - predicted_ns);
        device->lag_ns += LAG_GAIN * (cox__min(late, LAG_MOST * predicted_ns) - device->lag_ns);
    }
    if (content_change) {
        device->estimate.suspected_change = 0;
        learn_content_change(state, compared);
        state->changed |= 1u << d;
    } else if (is_alike(mine)) {
        if (!compared->sample.further)
            suspect_change(state, compared);
    } else if (!compared->far) {
        if (!compared->sample.further || mine->count == 1)
            device->estimate.suspected_change = 0;
        learn(state, compared, compared->deviations - mine->deviations / mine->count);
    } else if (mine->count == 1 || compared->sample.unfinished) {
        suspect_change(state, compared);
    } else if (compared->inside) {
        if (cox__row_profile_again(&state->row_profile, &compared->span, compared->deviations))
            learn_content_change(state, compared);
        else
            cox__row_profile_learn(&state->row_profile, &compared->span, 0, compared->residual.variance,
                                   compared->deviations);
    }
}

void cox__adaptive_digest(struct cox__adaptive *state)
{
    uint32_t count = state->launch_count;
    if (count == 0)
        return;
    state->launch_count = 0;
    const struct cox__frame_slot *slot = cox__adaptive_frame_slot(state, state->observed);
    uint32_t rows = slot ? slot->rows : state->rows;
    if (slot && slot->trial) { /* the estimates are those of the set in use */
        learn_trial(state, count, rows);
        return;
    }
    struct compared_launch launches[COX_BANDS_MAX];
    struct common common[COX_DEVICES_MAX];
    uint32_t kept = compare_all(state, count, rows, launches, common);
    double factor = common_factor(state, launches, kept, common);
    if (factor != 1) {
        for (uint32_t d = 0; d < state->device_count; d++)
            if (state->devices[d].timed)
                cox__estimate_scale(&state->devices[d].estimate, factor, AGAIN);
        kept = compare_all(state, count, rows, launches, common);
    }
    bool content_change = content_changed(state, common, kept);
    learn_reserve(state, slot, launches, kept, content_change);
    for (uint32_t i = 0; i < kept; i++)
        learn_launch(state, &launches[i], &common[launches[i].launch->device], content_change);
    for (uint32_t d = 0; d < state->device_count; d++)
        if (common[d].count > 0 && !content_change && !is_alike(&common[d]) &&
            cox__estimate_trend(&state->devices[d].estimate, common[d].deviations / common[d].count,
                                state->row_profile.drift > ROWS_CHANGE))
            state->changed |= 1u << d;
}

void cox__adaptive_observe(void *memory, const struct cox_measurement *m)
{
    struct cox__adaptive *state = memory;
    if (m->device >= state->device_count || m->rows == 0 || m->wall_ns == 0)
        return;
    if (state->launch_count > 0 && (state->observed != m->frame || state->launch_count == COX_BANDS_MAX))
        cox__adaptive_digest(state);
    state->observed = m->frame;
    state->launches[state->launch_count++] = (struct cox__launch){m->device, m->first_row, m->rows, m->flags,
                                                                  (double)m->wall_ns};
}

void cox__adaptive_observe_frame(void *memory, const struct cox_frame_measurement *frame)
{
    struct cox__adaptive *state = memory;
    if (state->energy)
        cox__energy_observe(&state->chooser, frame);
    cox__adaptive_digest(state);
    state->over = frame->frame + 1;
}
