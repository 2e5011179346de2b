/* `ewma`: the split by which devices finish together at their averaged nanoseconds per row.
 *
 * Speed. Each device has an exponential average of its nanoseconds per row. The model t = b n has
 * no fixed cost. At the current split it is still right, because b comes from bands of that size,
 * and while the split moves it never overshoots. The gain of the average sinks to GAIN_MIN as long
 * as nothing changes. Residuals, in deviations and clipped, add up in a two-sided CUSUM: one
 * outlier does not raise the alarm, two in a row do. After an alarm the average begins again with
 * the last measurement.
 *
 * Split. Exact water-filling. The current split is kept unless the predicted gain of another one
 * exceeds 0.4 % and MOVE_ERRORS standard errors of that prediction. Bands that stay where they are
 * cost nothing to set up.
 *
 * One device alone. Devices slow each other down, so the best device alone may be faster than any
 * split. Its time is known from warm-up and from frames that it did alone. That device gets whole
 * frames if the split is predicted to be slower, or nearly as slow and the pause is over. The
 * device keeps them while it is faster. Every change doubles the pause before the next.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>

static const double GAIN_FIRST = 0.85; /* of the first measurement, against a guess */
static const double GAIN_AGAIN = 0.5;  /* of the one after that, and after a change */
static const double GAIN_MIN = 0.03;
/* Relative deviation that is assumed of a device that was never measured. */
static const double DEVIATION_FIRST = 0.10;
static const double DEVIATION_MIN = 0.01;
static const double CLIP = 4.0; /* deviations */
static const double CUSUM_SLACK = 1.0;
static const double CUSUM_ALARM = 5.0;
static const double MOVE_GAIN = 0.004; /* of the frame time */
static const double MOVE_ERRORS = 2.5; /* standard errors of the predicted gain */
/* One device gets whole frames if the split takes this many times as long as that device alone, */
static const double ALONE_LOSES = 1.03;
static const double ALONE_TRIES = 0.83; /* or this many times, after a pause; */
static const double ALONE_ENDS = 0.98;  /* below this, frames are split again. */

enum { STEADY_FRAMES = 8, ALONE_FRAMES = 8, ALONE_PAUSE_MIN = 32, ALONE_PAUSE_MAX = 1024 };

struct device {
    bool measured;
    double ns_per_row; /* 0 = nothing known */
    double gain;       /* of the next measurement */
    double variance;   /* of the relative residual */
    double up, down;   /* CUSUM */
    double alone_ns;   /* a whole frame on this device alone; 0 = unknown */
    bool alone_seen;   /* alone_ns was measured by a frame, not by warm-up */
    uint32_t rows;     /* in the current split */
};

struct state {
    struct history history;
    uint32_t frame_rows; /* of the last frame */
    /* rows of the frame that the current split was made for; 0 = there is no split */
    uint32_t split_rows;
    uint32_t usable;   /* devices at the last split, a bit each */
    bool alone;        /* whole frames go to one device */
    uint32_t alone_on; /* that device */
    uint32_t since;    /* frames since `alone` changed */
    uint32_t pause;    /* frames until the change back is tried */
    uint32_t steady;   /* frames since the split last moved */
    uint32_t losing;   /* frames in a row that predict the split to be slower than one device */
    struct device devices[COX_DEVICES_MAX];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

/* Expect a change: later measurements count more. */
static void reopen(struct device *device)
{
    device->gain = GAIN_AGAIN;
    device->up = device->down = 0;
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct state *state = memory;
    state->frame_rows = view->rows;
    state->pause = ALONE_PAUSE_MIN;

    for (uint32_t d = 0; d < view->device_count; d++) {
        reopen(&state->devices[d]);
        state->devices[d].variance = DEVIATION_FIRST * DEVIATION_FIRST;
    }

    return history_init(memory, view, options);
}

/* --- learning --- */

/* Average the measurement into the speed; begin again with it if the device has changed. */
static void average_speed(struct device *device, double ns_per_row)
{
    double residual = ns_per_row / device->ns_per_row - 1.0;
    double deviation = fmax(sqrt(device->variance), DEVIATION_MIN);
    double z = fmax(-CLIP, fmin(CLIP, residual / deviation));
    device->up = fmax(0, device->up + z - CUSUM_SLACK);
    device->down = fmax(0, device->down - z - CUSUM_SLACK);

    if (device->up > CUSUM_ALARM || device->down > CUSUM_ALARM) {
        /* The best guess of what the time alone would be now. */
        device->alone_ns *= ns_per_row / device->ns_per_row;
        device->ns_per_row = ns_per_row;
        reopen(device);
        return;
    }

    device->ns_per_row = layout_sane(device->ns_per_row * (1.0 + device->gain * z * deviation));
    device->variance += fmax(0.05, 0.2 * device->gain) *
                        (fmin(z * z, 9.0) * deviation * deviation - device->variance);
    device->gain = fmax(GAIN_MIN, device->gain / (1.0 + 0.7 * device->gain));
}

static void learn_speed(struct device *device, double ns_per_row)
{
    /* A probe is the most recent measurement there is. */
    if (device->measured && device->rows == 0) {
        device->ns_per_row = ns_per_row;
        reopen(device);
        return;
    }

    if (device->measured) {
        average_speed(device, ns_per_row);
        return;
    }

    /* Warm-up and hints say nothing about co-running: mostly believe the measurement. */
    if (device->ns_per_row > 0)
        device->ns_per_row += GAIN_FIRST * (ns_per_row - device->ns_per_row);
    else
        device->ns_per_row = ns_per_row;
    device->measured = true;
}

static void learn(struct state *state, const struct frame_sum *sum)
{
    struct device *device = &state->devices[sum->device];

    if (sum->rows >= state->frame_rows) {
        double gain = device->alone_seen ? 0.3 : 1.0;
        double before = device->alone_ns > 0 ? device->alone_ns : sum->wall_ns;
        device->alone_ns = before + gain * (sum->wall_ns - before);
        device->alone_seen = true;

        /* In a split it gets other rows, and its co-running speed is different. */
        if (device->rows != state->frame_rows)
            return;
    }

    learn_speed(device, layout_sane(sum->wall_ns / (double)sum->rows));
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct frame_sum sum;
    if (history_add(memory, measurement, &sum))
        learn(memory, &sum);
}

/* --- deciding --- */

/* Fill in the speeds of all devices, measured or guessed. Guesses from hints are ratios, which are
 * scaled by the devices that were measured. Returns whether the speeds are times. */
static bool fill_speeds(struct state *state, const struct cox_sched_view *view, double *ns_per_row)
{
    bool timed = layout_guess(view, ns_per_row);
    double scale = 0;
    uint32_t measured = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!state->devices[d].measured)
            continue;
        scale += state->devices[d].ns_per_row / ns_per_row[d];
        measured++;
    }

    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        if (device->measured)
            ns_per_row[d] = device->ns_per_row;
        else if (!timed && measured > 0)
            ns_per_row[d] = layout_sane(ns_per_row[d] * scale / measured);

        device->ns_per_row = 0;
        if (timed || measured > 0)
            device->ns_per_row = ns_per_row[d];
        if (device->alone_ns == 0)
            device->alone_ns = (double)view->devices[d].single_device_ns;
    }

    return timed || measured > 0;
}

/* Standard error of the predicted gain of a move: half of that of the difference between two
 * devices' times. An exponential average with gain g of values with variance v has variance v g /
 * (2 - g). */
static double gain_error(const struct state *state)
{
    double sum = 0;

    for (uint32_t d = 0; d < state->history.device_count; d++) {
        const struct device *device = &state->devices[d];
        if (device->rows > 0 && device->measured)
            sum += device->variance * device->gain / (2.0 - device->gain);
    }

    return 0.5 * sqrt(sum);
}

/* Note which devices are usable. One that is usable again may have another speed. Returns whether
 * the devices or the frame's rows have changed. */
static bool note_changes(struct state *state, const struct cox_sched_view *view)
{
    uint32_t before = state->usable;
    state->usable = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (view->devices[d].usable)
            state->usable |= 1u << d;
        if ((state->usable & ~before) >> d & 1 && state->devices[d].measured)
            reopen(&state->devices[d]);
    }

    return state->usable != before || state->split_rows != view->rows;
}

/* Choose the best split by the speeds, which becomes the current one, or keep the current one.
 * Returns the reason. */
static enum cox_reason balance(struct state *state, const struct cox_sched_view *view,
                               const double *ns_per_row)
{
    uint32_t current[COX_DEVICES_MAX], rows[COX_DEVICES_MAX];
    enum cox_reason reason = COX_REASON_BALANCED;

    if (state->split_rows == 0)
        reason = COX_REASON_FIRST;
    if (note_changes(state, view) && reason != COX_REASON_FIRST)
        reason = COX_REASON_DEVICES;

    for (uint32_t d = 0; d < view->device_count; d++)
        current[d] = state->devices[d].rows;

    double ns = layout_balance(view, ns_per_row, rows);
    if (reason == COX_REASON_BALANCED) {
        double gain = layout_predict(view, ns_per_row, current) / ns - 1.0;
        if (gain <= fmax(MOVE_GAIN, MOVE_ERRORS * gain_error(state)))
            return COX_REASON_KEPT;
    }

    state->split_rows = view->rows;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] == 0 && view->devices[d].usable && reason == COX_REASON_BALANCED)
            reason = COX_REASON_DROPPED;
        state->devices[d].rows = rows[d];
    }

    return reason;
}

/* Change between one device alone and a split; the pause before the next change doubles. */
static void set_alone(struct state *state, bool alone)
{
    state->alone = alone;
    state->since = state->steady = state->losing = 0;
    state->pause *= 2;
    if (state->pause > ALONE_PAUSE_MAX)
        state->pause = ALONE_PAUSE_MAX;
}

/* The expected time of the split. The last of several devices finishes later than their averages
 * say, by 0.56 deviations for two of equal times. */
static double with_jitter(const struct state *state, double split_ns)
{
    double variance = 0;
    uint32_t sharing = 0;

    for (uint32_t d = 0; d < state->history.device_count; d++) {
        if (state->devices[d].rows == 0)
            continue;
        variance += state->devices[d].variance;
        sharing++;
    }

    if (sharing > 1)
        return split_ns * (1.0 + 0.56 * sqrt(variance / sharing));
    return split_ns;
}

/* Whether the device that has whole frames should no longer have them. */
static bool alone_ends(const struct state *state, const struct cox_sched_view *view,
                       double split_ns, uint32_t sharing)
{
    const struct device *device = &state->devices[state->alone_on];
    bool slower = device->alone_seen && split_ns / device->alone_ns < ALONE_ENDS;

    return slower || sharing < 2 || !view->devices[state->alone_on].usable ||
           state->since >= state->pause;
}

/* Decide whether the frame goes to the best device alone. `split_ns` is the expected time of the
 * split. */
static void decide_alone(struct state *state, const struct cox_sched_view *view, double split_ns)
{
    struct device *best = NULL;
    uint32_t sharing = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        sharing += device->rows > 0;
        if (view->devices[d].usable && device->alone_ns > 0 &&
            (!best || device->alone_ns < best->alone_ns))
            best = device;
    }

    if (!best || (sharing < 2 && !state->alone)) {
        state->alone = false;
        return;
    }

    state->since++;
    if (state->alone) {
        if (alone_ends(state, view, split_ns, sharing))
            set_alone(state, false);
        return;
    }
    if (state->steady < STEADY_FRAMES) /* soon after a move the prediction is uncertain */
        return;

    /* A clear loss counts twice. */
    double ratio = split_ns / best->alone_ns;
    if (ratio > 1.2)
        state->losing += 2;
    else if (ratio > ALONE_LOSES)
        state->losing++;
    else
        state->losing = 0;

    if (state->losing >= ALONE_FRAMES || (ratio > ALONE_TRIES && state->since >= state->pause)) {
        set_alone(state, true);
        state->alone_on = (uint32_t)(best - state->devices);
        best->alone_seen = false; /* the first frame of this trial counts in full */
    }
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;

    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);
    state->frame_rows = view->rows;

    double ns_per_row[COX_DEVICES_MAX] = {0};
    bool timed = fill_speeds(state, view, ns_per_row);
    out->reason = balance(state, view, ns_per_row);
    if (out->reason == COX_REASON_KEPT)
        state->steady++;
    else
        state->steady = 0;

    uint32_t rows[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        rows[d] = state->devices[d].rows;

    double ns = layout_predict(view, ns_per_row, rows);
    if (timed)
        decide_alone(state, view, with_jitter(state, ns));

    if (state->alone) {
        out->bands[out->band_count++] = (struct cox_band){.device = state->alone_on,
                                                          .rows = view->rows};
        out->reason = COX_REASON_DROPPED;
        ns = state->devices[state->alone_on].alone_ns;
    } else {
        history_lay_out(&state->history, view, rows, out);
        ns = layout_predict(view, ns_per_row, rows);
    }

    if (timed)
        out->predicted_ns = layout_ns(ns);
    return COX_OK;
}

const struct cox_policy policy_ewma = {
    .name = "ewma", .state_bytes = state_bytes, .init = init, .split = split, .observe = observe};
