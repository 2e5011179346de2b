/* `ewma`: each device's nanoseconds per row, exponentially averaged, and the split that finishes together.
 *
 * Speed. The model behind the split is proportional, t = b n. At the split in use that is right whatever the fixed cost
 * is, because b comes from bands of that size; and since a proportional model never underestimates how much a move
 * changes, the way there does not oscillate. The gain of the average starts near 1 and sinks to GAIN_MIN as long as
 * nothing happens. Residuals, relative to the prediction and in units of their own deviation, feed a two-sided
 * CUSUM; each counts at most CLIP deviations, so that one outlier is no change but two in a row are. When it rings, the
 * average starts over from the last measurement.
 *
 * Split. Exact water-filling. The split in use is kept until moving is worth more than 0.4 % and more than what the
 * averages' own error could feign: bands that stay where they are cost nothing to set up.
 *
 * One device alone. Co-running is not free, so the best device alone may be faster than any split. Its time is known
 * from warm-up and from every frame it does alone. If the split's predicted time stays above it, or comes close and some
 * time has passed, the best device gets whole frames and keeps them while it wins. Each change of mind doubles the
 * pause before the next trial.
 *
 * A device that gets no rows keeps its average and is probed (probe.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "policies.h"
#include "probe.h"
#include "strict_fp.h"
#include "tally.h"

#include <math.h>
#include <string.h>

static const double GAIN_FIRST = 0.85; /* of the first measurement, against a guess */
static const double GAIN_AGAIN = 0.5;  /* of the one after that, and after a change */
static const double GAIN_MIN = 0.03;
static const double DEVIATION_FIRST = 0.10; /* relative; what is assumed of a device never measured */
static const double DEVIATION_MIN = 0.01;
static const double CLIP = 4.0; /* deviations */
static const double CUSUM_SLACK = 1.0;
static const double CUSUM_ALARM = 5.0;
static const double MOVE_GAIN = 0.004;  /* of the frame time */
static const double MOVE_ERRORS = 2.5;  /* standard errors of the predicted gain */
static const double ALONE_LOSES = 1.03; /* split over alone, above which a split is given up, */
static const double ALONE_TRIES = 0.83; /* above which alone is worth a trial, */
static const double ALONE_ENDS = 0.98;  /* below which one device alone is given up */
enum { STEADY_FRAMES = 8, ALONE_FRAMES = 8, ALONE_PAUSE_MIN = 32, ALONE_PAUSE_MAX = 1024 };

struct device {
    struct cox__tally tally;
    struct cox__probe probe;
    bool usable; /* at the last split */
    bool measured;
    double ns_per_row; /* 0 = nothing known */
    double gain;       /* of the next measurement */
    double variance;   /* of the relative residual */
    double up, down;   /* CUSUM */
    double alone_ns;   /* a whole frame on this device alone; 0 = unknown */
    bool alone_seen;   /* alone_ns was measured by a frame, not by warm-up */
    uint32_t rows;     /* the split in use */
};

struct state {
    uint32_t device_count;
    uint32_t frame_rows;
    bool split_made;
    uint32_t split_rows; /* of the frame it was made for */
    bool alone;          /* whole frames to the best device */
    uint32_t alone_on;   /* that device */
    uint32_t since;      /* frames since `alone` changed or was confirmed */
    uint32_t pause;      /* frames until the other way is tried */
    uint32_t steady;     /* frames since the split last moved */
    uint32_t losing;     /* evidence that the split is slower than one device alone */
    struct device devices[];
};

static size_t ewma_bytes(uint32_t device_count)
{
    return sizeof(struct state) + device_count * sizeof(struct device);
}

static void reopen(struct device *device)
{
    device->gain = GAIN_AGAIN;
    device->up = device->down = 0;
}

static cox_status ewma_init(void *memory, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    struct state *state = memory;
    state->device_count = view->device_count;
    state->frame_rows = view->rows;
    state->pause = ALONE_PAUSE_MIN;
    for (uint32_t d = 0; d < view->device_count; d++) {
        reopen(&state->devices[d]);
        state->devices[d].variance = DEVIATION_FIRST * DEVIATION_FIRST;
    }
    return COX_OK;
}

/* --- measuring --- */

static void learn_speed(struct device *device, double ns_per_row)
{
    if (device->measured && device->rows == 0) { /* a probe: nothing else is as recent */
        device->ns_per_row = ns_per_row;
        reopen(device);
        return;
    }
    if (!device->measured) {
        /* Warm-up and hints know nothing of the other devices' company: mostly believe the measurement. */
        bool guess = device->ns_per_row > 0;
        device->ns_per_row = guess ? device->ns_per_row + GAIN_FIRST * (ns_per_row - device->ns_per_row) : ns_per_row;
        device->measured = true;
        return;
    }
    double residual = ns_per_row / device->ns_per_row - 1.0;
    double deviation = fmax(sqrt(device->variance), DEVIATION_MIN);
    double z = fmax(-CLIP, fmin(CLIP, residual / deviation));
    device->up = fmax(0, device->up + z - CUSUM_SLACK);
    device->down = fmax(0, device->down - z - CUSUM_SLACK);
    if (device->up > CUSUM_ALARM || device->down > CUSUM_ALARM) {
        device->alone_ns *= ns_per_row / device->ns_per_row; /* the best guess of what it would be now */
        device->ns_per_row = ns_per_row;
        reopen(device);
        return;
    }
    device->ns_per_row = cox__layout_sane(device->ns_per_row * (1.0 + device->gain * z * deviation));
    device->variance += fmax(0.05, 0.2 * device->gain) * (fmin(z * z, 9.0) * deviation * deviation - device->variance);
    device->gain = fmax(GAIN_MIN, device->gain / (1.0 + 0.7 * device->gain));
}

static void learn(struct state *state, uint32_t index, const struct cox__tally *sample)
{
    struct device *device = &state->devices[index];
    if (sample->rows >= state->frame_rows) {
        double gain = device->alone_seen ? 0.3 : 1.0;
        double before = device->alone_ns > 0 ? device->alone_ns : sample->wall_ns;
        device->alone_ns = before + gain * (sample->wall_ns - before);
        device->alone_seen = true;
        if (device->rows != state->frame_rows) /* alone by trial: the speed in company is something else */
            return;
    }
    learn_speed(device, cox__layout_sane(sample->wall_ns / (double)sample->rows));
}

static void ewma_observe(void *memory, const struct cox_measurement *measurement)
{
    struct state *state = memory;
    if (measurement->device >= state->device_count)
        return;
    struct cox__tally closed;
    if (cox__tally_add(&state->devices[measurement->device].tally, measurement, &closed))
        learn(state, measurement->device, &closed);
}

/* --- deciding --- */

/* Speeds for every usable device, known or guessed. Returns whether they are times. */
static bool speeds(struct state *state, const struct cox_sched_view *view, double *ns_per_row)
{
    double guess[COX_DEVICES_MAX];
    bool timed = cox__layout_guess(view, guess);
    /* A guess from hints is a ratio: scale it by the devices that were measured. */
    double scale = 0;
    uint32_t measured = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!state->devices[d].measured)
            continue;
        scale += state->devices[d].ns_per_row / guess[d];
        measured++;
    }
    bool all = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        ns_per_row[d] = guess[d];
        if (device->measured)
            ns_per_row[d] = device->ns_per_row;
        else if (!timed && measured > 0)
            ns_per_row[d] = cox__layout_sane(guess[d] * scale / measured);
        device->ns_per_row = timed || measured > 0 ? ns_per_row[d] : 0;
        all &= device->measured || !view->devices[d].usable;
        if (device->alone_ns == 0)
            device->alone_ns = (double)view->devices[d].solo_ns;
    }
    return timed || all || measured > 0;
}

/* Standard error of the predicted gain of a move: half of that of the difference between two devices' times, and an
 * exponential average with gain g of values with variance v has variance v g / (2 - g). */
static double gain_error(const struct state *state, const uint32_t *rows)
{
    double sum = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        const struct device *device = &state->devices[d];
        if (rows[d] > 0 && device->measured)
            sum += device->variance * device->gain / (2.0 - device->gain);
    }
    return 0.5 * sqrt(sum);
}

/* The balanced split, or the one in use while that is good enough; leaves it in the devices' `rows`. */
static enum cox_reason balance(struct state *state, const struct cox_sched_view *view, const double *ns_per_row)
{
    uint32_t held[COX_DEVICES_MAX], rows[COX_DEVICES_MAX];
    bool changed = state->split_rows != view->rows;
    for (uint32_t d = 0; d < view->device_count; d++) {
        held[d] = state->devices[d].rows;
        changed |= state->devices[d].usable != view->devices[d].usable;
        if (view->devices[d].usable && !state->devices[d].usable && state->devices[d].measured)
            reopen(&state->devices[d]); /* it was away: who knows what it can do now */
        state->devices[d].usable = view->devices[d].usable;
    }
    double ns = cox__layout_balance(view, ns_per_row, rows);
    if (ns < 0)
        return COX_REASON_NONE;
    enum cox_reason reason = COX_REASON_BALANCED;
    if (!state->split_made)
        reason = COX_REASON_FIRST;
    else if (changed)
        reason = COX_REASON_DEVICES;
    else {
        double gain = cox__layout_predict(view, ns_per_row, held) / ns - 1.0;
        if (gain <= fmax(MOVE_GAIN, MOVE_ERRORS * gain_error(state, held)))
            return COX_REASON_KEPT;
    }
    state->split_made = true;
    state->split_rows = view->rows;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] == 0 && view->devices[d].usable && reason == COX_REASON_BALANCED)
            reason = COX_REASON_DROPPED;
        state->devices[d].rows = rows[d];
    }
    return reason;
}

static void set_alone(struct state *state, bool alone)
{
    state->alone = alone;
    state->since = 0;
    state->steady = 0;
    state->losing = 0;
    state->pause = state->pause * 2 > ALONE_PAUSE_MAX ? ALONE_PAUSE_MAX : state->pause * 2;
}

/* The last of several devices is later than their averages say: by 0.56 deviations for two of equal times. */
static double with_jitter(const struct state *state, double split_ns)
{
    double variance = 0;
    uint32_t sharing = 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        if (state->devices[d].rows == 0)
            continue;
        variance += state->devices[d].variance;
        sharing++;
    }
    return sharing > 1 ? split_ns * (1.0 + 0.56 * sqrt(variance / sharing)) : split_ns;
}

/* Decide whether the frame goes to the best device alone, given what the split would take. */
static void decide_alone(struct state *state, const struct cox_sched_view *view, double split_ns)
{
    uint32_t best = view->device_count;
    uint32_t sharing = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct device *device = &state->devices[d];
        sharing += device->rows > 0;
        if (view->devices[d].usable && device->alone_ns > 0 &&
            (best == view->device_count || device->alone_ns < state->devices[best].alone_ns))
            best = d;
    }
    if (best == view->device_count || (sharing < 2 && !state->alone)) {
        state->alone = false;
        return;
    }
    if (state->alone && (sharing < 2 || !view->devices[state->alone_on].usable)) {
        set_alone(state, false);
        return;
    }
    state->since++;
    double ratio = split_ns / state->devices[state->alone ? state->alone_on : best].alone_ns;
    if (!state->alone) {
        if (state->steady < STEADY_FRAMES) /* between two splits the prediction says little */
            return;
        if (ratio > ALONE_LOSES)
            state->losing += ratio > 1.2 ? 2 : 1;
        else
            state->losing = 0;
        if (state->losing >= ALONE_FRAMES || (ratio > ALONE_TRIES && state->since >= state->pause)) {
            set_alone(state, true);
            state->alone_on = best;
            state->devices[best].alone_seen = false; /* the first frame of this trial counts in full */
        }
    } else if ((state->devices[state->alone_on].alone_seen && ratio < ALONE_ENDS) || state->since >= state->pause) {
        set_alone(state, false);
    }
}

static cox_status ewma_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    uint32_t last = 0;
    if (cox__usable_count(view, &last) == 0)
        return COX_E_NO_DEVICE;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__tally closed;
        if (cox__tally_take(&state->devices[d].tally, &closed))
            learn(state, d, &closed);
    }
    state->frame_rows = view->rows;

    double ns_per_row[COX_DEVICES_MAX] = {0};
    bool timed = speeds(state, view, ns_per_row);
    out->reason = balance(state, view, ns_per_row);
    state->steady = out->reason == COX_REASON_KEPT ? state->steady + 1 : 0;
    uint32_t rows[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        rows[d] = state->devices[d].rows;
    double ns = cox__layout_predict(view, ns_per_row, rows);

    if (timed)
        decide_alone(state, view, with_jitter(state, ns));
    if (state->alone) {
        memset(rows, 0, sizeof rows);
        rows[state->alone_on] = view->rows;
        ns = state->devices[state->alone_on].alone_ns;
        out->reason = COX_REASON_DROPPED;
    } else {
        struct cox__probe probes[COX_DEVICES_MAX];
        for (uint32_t d = 0; d < view->device_count; d++)
            probes[d] = state->devices[d].probe;
        if (cox__probe_frame(probes, view, rows)) {
            out->reason = COX_REASON_PROBE;
            ns = cox__layout_predict(view, ns_per_row, rows);
        }
        for (uint32_t d = 0; d < view->device_count; d++)
            state->devices[d].probe = probes[d];
    }
    cox__layout_bands(view, rows, out);
    out->predicted_ns = timed ? cox__layout_ns(ns) : 0;
    return COX_OK;
}

const struct cox_policy cox__policy_ewma = {
    .name = "ewma", .state_bytes = ewma_bytes, .init = ewma_init, .split = ewma_split, .observe = ewma_observe};
