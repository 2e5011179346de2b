/* What `adaptive` learns from a frame. The launches of a frame are looked at together, since what matters is whom to
 * blame:
 *
 *   - a device whose launches are all off by much, the same way, is not what it was;
 *   - launches of several devices, or some of a device's, that are off by much: it is the rows, another picture;
 *   - a band that is far too slow: an outlier or the beginning of a change. Nothing is learned; the device is under
 *     suspicion for a frame, and a second slow band in a row is a change. Nothing makes a device too fast by accident:
 *     that is a change at once;
 *   - all else is noise and drift, shared out between the device and the rows by how uncertain each is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>
#include <string.h>

static const double FAR = 6;          /* deviations that make a surprise of one launch, */
static const double FAR_LEAST = 0.35; /* and what it is at least, relative */
static const double OFF = 4;          /* the same where several launches agree */
static const double OFF_LEAST = 0.20;
static const double ALIKE = 1.35;           /* ratio of launches that are off alike */
static const double PART_LEAST = 0.05;      /* of a launch's time: the rows are blamed for no more than that allows */
static const double ALL_LEAST = 0.2;        /* relative, by which a whole frame must be off to count as that, */
static const double ALL_PART = 0.8;         /* and the part of it that is */
static const double ROWS_CHANGE = 5e-4;     /* drift of the profile from which on it is the picture that changes */
static const double UNFINISHED = 2.0;       /* what an unfinished launch is guessed to take, over what it took */
static const double LAG_GAIN = 0.05;        /* of one further launch, in the mean of what they are late by */
static const double LAG_MOST = 20;          /* times its prediction */
static const double UNFINISHED_LEAST = 1.2; /* of what was predicted, for it to say anything */
static const double GUESS = 0.3;            /* relative deviation of a guess from one launch */
static const double AGAIN = 0.08;           /* of the scale after a change, relative */
static const double AGAIN_UNFINISHED = 0.3;

/* A launch and how it compares. */
struct lesson {
    const struct cox__launch *launch;
    struct cox__sample sample;
    struct cox__surprise surprise;
    double part; /* of its time that depends on the rows */
    double deviations;
    struct cox__span span; /* if it is inside */
    bool inside;           /* of the frame; else the rows say nothing about the picture */
    bool off, far;
};

/* What the launches of one device have in common. */
struct common {
    uint32_t count, slow, fast; /* launches; those that are off */
    double least, most;         /* ratio */
    double deviations;          /* sum */
};

/* What was measured, and what was predicted of it. */
static void compare(struct cox__adaptive *state, const struct cox__launch *launch, uint32_t rows, struct lesson *lesson)
{
    struct cox__adaptive_device *device = &state->devices[launch->device];
    lesson->launch = launch;
    lesson->sample = (struct cox__sample){.further = (launch->flags & COX_MEASURED_CHUNK) != 0,
                                          .unfinished = (launch->flags & COX_MEASURED_UNFINISHED) != 0,
                                          .work = launch->rows,
                                          .ns = launch->ns};
    lesson->surprise = (struct cox__surprise){0};
    lesson->inside = (uint64_t)launch->first_row + launch->rows <= rows;
    struct cox__sample *sample = &lesson->sample;
    if (lesson->inside) {
        cox__profile_span(&state->profile, rows, launch->first_row, launch->rows, &lesson->span);
        sample->work = cox__profile_work(&state->profile, rows, launch->first_row, launch->rows);
    }
    if (!device->timed) {
        cox__estimate_init(&device->estimate);
        cox__estimate_begin(&device->estimate, sample->ns, sample->work, GUESS, sample->ns);
        device->timed = true;
    }
    device->measured = true;
    double rows_ns = device->estimate.x[COX__PER_ROW] * sample->work;
    lesson->part = cox__most(PART_LEAST, rows_ns / cox__estimate_ns(&device->estimate, sample->further, sample->work));
    if (lesson->inside)
        sample->work_variance = cox__profile_variance(&state->profile, &lesson->span) * lesson->part * lesson->part;
    cox__estimate_compare(&device->estimate, sample, &lesson->surprise);
    if (sample->unfinished) {
        sample->ns *= UNFINISHED;
        lesson->surprise.ratio *= UNFINISHED;
    }
}

/* By how much that is off. What is out of the ordinary is told by what was ordinary lately. */
static void judge(const struct cox__adaptive *state, struct lesson *lesson)
{
    const struct cox__estimate *estimate = &state->devices[lesson->launch->device].estimate;
    double ratio = lesson->surprise.ratio, deviation = sqrt(lesson->surprise.variance);
    lesson->deviations = (ratio - 1) / deviation;
    deviation *= sqrt(cox__most(1, estimate->unrest));
    double far = cox__most(FAR_LEAST, FAR * deviation), off = cox__most(OFF_LEAST, OFF * deviation);
    lesson->far = ratio > 1 + far || ratio * (1 + far) < 1;
    lesson->off = ratio > 1 + off || ratio * (1 + off) < 1;
}

/* By how much the whole frame took longer than predicted, if all of it did so alike: company, or a heavier picture. 1 = it did
 * not. */
static double common_factor(const struct cox__adaptive *state, const struct lesson *lessons, uint32_t count,
                            const struct common *common)
{
    double ns = 0, predicted = 0, variance = 0, alike = 0;
    for (uint32_t i = 0; i < count; i++) {
        ns += lessons[i].sample.ns;
        predicted += lessons[i].surprise.ns;
    }
    if (!(predicted > 0))
        return 1;
    double factor = ns / predicted;
    if (factor < 1 + ALL_LEAST && factor * (1 + ALL_LEAST) > 1)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__estimate *estimate = &state->devices[lessons[i].launch->device].estimate;
        double jitter_ns = sqrt(estimate->variance * cox__most(1, estimate->unrest)) * lessons[i].surprise.ns;
        variance += jitter_ns * jitter_ns;
    }
    double least = OFF * sqrt(variance) / predicted;
    if (factor < 1 + least && factor * (1 + least) > 1)
        return 1;
    uint32_t devices = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        devices += common[d].count > 0;
    for (uint32_t i = 0; i < count; i++)
        if (!lessons[i].sample.unfinished && lessons[i].surprise.ratio < ALIKE * factor &&
            lessons[i].surprise.ratio * ALIKE > factor)
            alike += lessons[i].surprise.ns;
    return devices > 1 && alike > ALL_PART * predicted ? factor : 1;
}

static bool is_alike(const struct common *common)
{
    return common->count >= 2 && (common->slow == common->count || common->fast == common->count) &&
           common->most <= ALIKE * common->least;
}

/* A launch too far off for its device to have been itself. */
static void suspect(struct cox__adaptive *state, const struct lesson *lesson)
{
    struct cox__estimate *estimate = &state->devices[lesson->launch->device].estimate;
    struct cox__sample sample = lesson->sample;
    double ratio = lesson->surprise.ratio;
    if (ratio > 1 && !(estimate->suspect > 0)) {
        if (!sample.further) {
            estimate->suspect = ratio;
            estimate->suspect_unfinished = sample.unfinished;
        }
        return;
    }
    if (ratio > 1 && !sample.unfinished && !estimate->suspect_unfinished && estimate->suspect < 2 * ratio)
        sample.ns = sqrt(ratio * estimate->suspect) * lesson->surprise.ns;
    cox__estimate_jump(estimate, &sample, sample.unfinished ? AGAIN_UNFINISHED : AGAIN);
    state->changed |= 1u << lesson->launch->device;
}

static void learn(struct cox__adaptive *state, const struct lesson *lesson, double deviations)
{
    const struct cox__launch *launch = lesson->launch;
    struct cox__estimate *estimate = &state->devices[launch->device].estimate;
    double part = lesson->part;
    double variance, residual = cox__estimate_learn(estimate, &lesson->sample, &variance);
    if (lesson->inside && !(launch->flags & COX_MEASURED_SHADOW))
        cox__profile_learn(&state->profile, &lesson->span, residual / part, variance / (part * part), deviations);
}

/* Another picture: what was known of these rows counts for little. */
static void learn_picture(struct cox__adaptive *state, struct lesson *lesson)
{
    if (lesson->inside && !(lesson->launch->flags & COX_MEASURED_SHADOW)) {
        cox__profile_reopen(&state->profile, &lesson->span);
        lesson->sample.work_variance = cox__profile_variance(&state->profile, &lesson->span) * lesson->part *
                                       lesson->part;
    }
    learn(state, lesson, 0);
}

/* What the frame would have taken with more or less kept back. */
static void learn_reserve(struct cox__adaptive *state, const struct cox__slot *slot, const struct lesson *lessons,
                          uint32_t count, bool picture)
{
    if (!slot || !slot->replay)
        return;
    double busy[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < state->device_count; d++)
        busy[d] = 0;
    double latest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__launch *launch = lessons[i].launch;
        if (launch->flags & COX_MEASURED_SHADOW)
            continue;
        if (!lessons[i].sample.further)
            latest = cox__most(latest, launch->ns);
        bool outlier = lessons[i].far && lessons[i].surprise.ratio > 1 && !picture;
        if (!lessons[i].sample.unfinished) /* else others did its rows again */
            busy[launch->device] += outlier ? lessons[i].surprise.ns : launch->ns;
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
        cox__reserve_learn(&state->reserve, slot->early, level / speed, latest, launch_ns / speed);
}

/* Compare all launches with their predictions; those that say nothing are left out. First all are compared, then all are
 * judged: square roots and divisions that wait for each other take most of the time. */
static uint32_t compare_all(struct cox__adaptive *state, uint32_t count, uint32_t rows, struct lesson *lessons,
                            struct common *common)
{
    memset(common, 0, state->device_count * sizeof *common);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct lesson *lesson = &lessons[kept];
        compare(state, &state->launches[i], rows, lesson);
        if (!lesson->sample.unfinished || lesson->surprise.ratio >= UNFINISHED * UNFINISHED_LEAST)
            kept++;
    }
    for (uint32_t i = 0; i < kept; i++) {
        struct lesson *lesson = &lessons[i];
        judge(state, lesson);
        struct common *mine = &common[lesson->launch->device];
        double ratio = lesson->surprise.ratio;
        mine->least = mine->count == 0 ? ratio : cox__least(mine->least, ratio);
        mine->most = cox__most(mine->most, ratio);
        mine->count++;
        mine->slow += lesson->off && ratio > 1;
        mine->fast += lesson->off && ratio < 1;
        mine->deviations += lesson->deviations;
    }
    return kept;
}

/* How devices do in a set on trial. */
static void learn_trial(struct cox__adaptive *state, uint32_t count, uint32_t rows)
{
    struct cox__company *company = &state->company;
    if (!company->trial || state->observed != company->trial_of)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox__launch *launch = &state->launches[i];
        const struct cox__adaptive_device *device = &state->devices[launch->device];
        if (!device->timed || (uint64_t)launch->first_row + launch->rows > rows)
            continue;
        double work = cox__profile_work(&state->profile, rows, launch->first_row, launch->rows);
        company->ns[launch->device] += launch->ns;
        company->predicted[launch->device] += cox__estimate_ns(&device->estimate,
                                                               (launch->flags & COX_MEASURED_CHUNK) != 0, work);
        company->seen |= 1u << launch->device;
    }
}

void cox__adaptive_digest(struct cox__adaptive *state)
{
    uint32_t count = state->launch_count;
    if (count == 0)
        return;
    state->launch_count = 0;
    const struct cox__slot *slot = cox__adaptive_slot(state, state->observed);
    uint32_t rows = slot ? slot->rows : state->rows;
    if (slot && slot->trial) { /* the models are those of another set */
        learn_trial(state, count, rows);
        return;
    }
    struct lesson lessons[COX_BANDS_MAX];
    struct common common[COX_DEVICES_MAX];
    uint32_t kept = compare_all(state, count, rows, lessons, common);
    double factor = common_factor(state, lessons, kept, common);
    if (factor != 1) {
        for (uint32_t d = 0; d < state->device_count; d++)
            if (state->devices[d].timed)
                cox__estimate_scale(&state->devices[d].estimate, factor, AGAIN);
        kept = compare_all(state, count, rows, lessons, common);
    }
    uint32_t off = 0, several = 0, alike = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        uint32_t mine = common[d].count > 0 ? common[d].slow + common[d].fast : 0;
        off += mine;
        several += mine > 0;
        alike += common[d].count > 0 && is_alike(&common[d]);
    }
    bool picture = off >= 2 && 4 * off >= kept && (several > 1 || alike == 0);
    learn_reserve(state, slot, lessons, kept, picture);

    for (uint32_t i = 0; i < kept; i++) {
        struct lesson *lesson = &lessons[i];
        uint32_t d = lesson->launch->device;
        struct cox__adaptive_device *device = &state->devices[d];
        if (lesson->sample.further && !lesson->sample.unfinished && !picture) {
            double late = cox__most(0, lesson->launch->ns - lesson->surprise.ns);
            device->lag_ns += LAG_GAIN * (cox__least(late, LAG_MOST * lesson->surprise.ns) - device->lag_ns);
        }
        struct common *mine = &common[d];
        if (!picture && is_alike(mine)) {
            if (!lesson->sample.further)
                suspect(state, lesson);
        } else if (picture) {
            device->estimate.suspect = 0;
            learn_picture(state, lesson);
            state->changed |= 1u << d;
        } else if (lesson->far) {
            if (mine->count == 1 || lesson->sample.unfinished)
                suspect(state, lesson);
            else if (lesson->inside && cox__profile_again(&state->profile, &lesson->span, lesson->deviations))
                learn_picture(state, lesson);
            else if (lesson->inside)
                cox__profile_learn(&state->profile, &lesson->span, 0, lesson->surprise.variance, lesson->deviations);
        } else {
            if (!lesson->sample.further || mine->count == 1)
                device->estimate.suspect = 0;
            double mean = mine->deviations / mine->count;
            learn(state, lesson, lesson->deviations - mean);
        }
    }
    for (uint32_t d = 0; d < state->device_count; d++)
        if (common[d].count > 0 && !picture && !is_alike(&common[d]) &&
            cox__estimate_trend(&state->devices[d].estimate, common[d].deviations / common[d].count,
                                state->profile.drift > ROWS_CHANGE))
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
}
