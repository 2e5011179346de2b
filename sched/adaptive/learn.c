/* What `adaptive` learns from a frame: each device's speed, and which plan is faster.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/strict_fp.h"

/* An unfinished launch is guessed to need its time until now times this. */
static const double UNFINISHED = 2;
static const double USUAL_GAIN = 0.1;
/* How far a frame moves the margins, relative to the spread. It is divided by the frames in flight,
 * because devices need not finish together then. Twice as much changes means by 0.1 %. */
static const double MARGIN_GAIN = 0.05;
enum { MARGIN_FRAMES = 3 }; /* with more in flight, margins only cost: 0.1 %, and 1 % of p99 */
/* Part of a frame in the mean spread, and most of a frame's spread over the mean. */
static const double SPREAD_GAIN = 0.1, SPREAD_MOST = 3;
/* Most of a device's time alone over its co-running time, with several frames in flight. */
static const double ALONE_STREAM = 0.9;
static const double ALONE_MOST = 1.5; /* the same with one frame in flight */
/* A device has become faster if a shadow takes this part of the expected time, or less. 0.85 is not
 * better. Without this, frames take 5 to 12 % longer when contention ends. */
static const double CHANGED = 0.75;
enum { SETTLED = 6 }; /* frames after which a device's time alone is compared with its speed */

/* Learn the speed from launches, in the plan in use or in the one that is tried. A device that had
 * only a guess begins with these launches. */
static void learn_speed(struct cox__adaptive_device *device, bool tried,
                        const struct cox__busy *busy)
{
    struct cox__speed *speed = cox__adaptive_speed(device, tried);
    if (!device->timed)
        cox__speed_begin(speed, busy->ns / busy->launches, busy->work / busy->launches);
    if (!device->timed && tried)
        device->speed = *speed;
    device->timed = device->measured = true;

    cox__speed_learn(speed, busy);
}

/* Whether speeds are learned from the frame: its plan is in use, or its trial is under way. */
static bool teaches(const struct cox__adaptive *state, const struct cox__adaptive_slot *slot,
                    bool in_use)
{
    if (slot->trial)
        return slot->trial == state->trials.serial;
    return in_use;
}

static bool is_last(double end_ns, double latest_ns)
{
    return !(end_ns < latest_ns);
}

/* Adjust the margins, so that each device finishes last as often as its share of the speed of all.
 * Then the chance to be last, times the time of a row, is the same for every device. So moving a
 * row does not change the mean of the last end (Ho and Cao 1983). With equal mean ends instead, a
 * noisy device would delay most of the frames. A device that begins late gets a margin, too.
 *
 * `end_ns`: negative = the device has no rows. */
static void learn_margins(struct cox__adaptive *state, const double *end_ns, double latest_ns)
{
    double first_ns = latest_ns, speed = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        if (end_ns[d] >= 0) {
            first_ns = cox__min(first_ns, end_ns[d]);
            speed += 1 / cox__speed_level(&state->devices[d].speed);
        }

    const double spread_ns = latest_ns - first_ns;
    if (state->spread_ns > 0)
        state->spread_ns += SPREAD_GAIN * (cox__min(spread_ns, SPREAD_MOST * state->spread_ns) -
                                           state->spread_ns);
    else
        state->spread_ns = spread_ns;

    const double gain = MARGIN_GAIN / state->in_flight;
    for (uint32_t d = 0; d < state->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        if (end_ns[d] < 0)
            continue;

        const double share = 1 / cox__speed_level(&device->speed) / speed;
        const double off = is_last(end_ns[d], latest_ns) - share;
        device->margin_ns = cox__clip(device->margin_ns + gain * state->spread_ns * off, 0,
                                      latest_ns);
    }
}

/* Learn from a frame after all its bands have been observed. */
static void learn_frame(struct cox__adaptive *state, const struct cox__adaptive_slot *slot)
{
    double end_ns[COX_DEVICES_MAX], latest_ns = 0;
    uint32_t sharing = 0;
    /* A trial may have ended since the frame was split. */
    const bool in_use = cox__trials_same(slot->plan, state->trials.in_use);

    for (uint32_t d = 0; d < state->device_count; d++) {
        const struct cox__adaptive_part *part = &slot->parts[d];
        end_ns[d] = -1;
        if (part->busy.launches)
            end_ns[d] = part->end_ns;
        latest_ns = cox__max(latest_ns, end_ns[d]);
        sharing += part->busy.launches > 0;
        if (part->busy.launches && teaches(state, slot, in_use))
            learn_speed(&state->devices[d], slot->trial > 0, &part->busy);
    }

    /* A split that stays for long would make the margins grow all the while. */
    if (!slot->trial && !slot->on_demand && in_use && sharing > 1 && !state->rows_stay &&
        state->in_flight <= MARGIN_FRAMES)
        learn_margins(state, end_ns, latest_ns);

    const double alone_most = state->in_flight > 1 ? ALONE_STREAM : ALONE_MOST;
    for (uint32_t d = 0; d < state->device_count; d++) {
        struct cox__adaptive_device *device = &state->devices[d];
        device->lead_ns = 0;
        if (!(end_ns[d] < 0) && !slot->on_demand)
            device->lead_ns = latest_ns - end_ns[d];

        if (end_ns[d] >= 0 && !slot->trial && in_use && !(device->alone > 0) &&
            device->single_device_ns > 0 && sharing > 1 && device->speed.frames >= SETTLED)
            device->alone = cox__clip(device->single_device_ns /
                                          cox__speed_ns(&device->speed, 1, state->rows),
                                      0.1, alone_most);
    }
}

void cox__learn_band(void *memory, const struct cox_measurement *measurement)
{
    struct cox__adaptive *state = memory;
    if (measurement->device >= state->device_count || measurement->rows == 0 ||
        measurement->wall_ns == 0)
        return;

    struct cox__adaptive_device *device = &state->devices[measurement->device];
    struct cox__busy busy = {1, measurement->rows, (double)measurement->wall_ns};

    if (measurement->flags & COX_MEASURED_SHADOW) {
        device->asked = false;
        if (device->timed) {
            const double expected_ns = cox__speed_ns(&device->speed, 1, busy.work);
            if (busy.ns < CHANGED * expected_ns)
                cox__trials_forget(&state->trials, UINT32_C(1) << measurement->device);
        }
        learn_speed(device, false, &busy);
        return;
    }

    struct cox__adaptive_slot *slot = cox__adaptive_frame_slot(state, measurement->frame);
    if (!slot)
        return;

    struct cox__speed *speed = cox__adaptive_speed(device, slot->trial > 0);
    if (measurement->flags & COX_MEASURED_UNFINISHED) {
        if (device->timed && busy.ns < cox__speed_ns(speed, 1, busy.work))
            return; /* it was within its time */
        busy.ns *= UNFINISHED;
    }

    if (device->timed)
        cox__speed_contrast(speed, busy.ns, busy.work);

    struct cox__adaptive_part *part = &slot->parts[measurement->device];
    part->busy.launches++;
    part->busy.work += busy.work;
    part->busy.ns += busy.ns;
    part->end_ns = cox__max(part->end_ns,
                            (double)measurement->queue_ns + (double)measurement->wall_ns);
}

/* The mean of the last periods. Whole frames are delivered in bunches, so a mean over the frames in
 * flight is needed. */
static double mean_period(const struct cox__adaptive *state, uint64_t frame)
{
    const uint32_t bunch = frame < state->in_flight ? (uint32_t)frame + 1 : state->in_flight;

    double sum = 0;
    for (uint32_t i = 0; i < bunch; i++)
        sum += state->periods[(frame - i) % COX__ADAPTIVE_SLOTS];

    return sum / bunch;
}

/* The time of a frame, for the trial under way. */
static double trial_time(const struct cox__adaptive *state,
                         const struct cox_frame_measurement *frame)
{
    if (state->latency)
        return (double)frame->latency_ns;
    if (cox__adaptive_bunches(&state->trials))
        return mean_period(state, frame->frame);
    return (double)frame->period_ns;
}

void cox__learn_frame(void *memory, const struct cox_frame_measurement *frame)
{
    struct cox__adaptive *state = memory;
    const struct cox__adaptive_slot *slot = cox__adaptive_frame_slot(state, frame->frame);
    state->periods[frame->frame % COX__ADAPTIVE_SLOTS] = (double)frame->period_ns;

    const double usual_ns = state->usual_ns, mean_ns = mean_period(state, frame->frame);
    if (usual_ns > 0)
        state->usual_ns = usual_ns + USUAL_GAIN * (cox__min(mean_ns, 3 * usual_ns) - usual_ns);
    else
        state->usual_ns = mean_ns;

    cox__deadline_learn(state, frame, USUAL_GAIN);
    if (slot)
        learn_frame(state, slot);

    if (cox__trials_tell(&state->trials, frame->frame, trial_time(state, frame)) == COX__TRIAL_WON)
        for (uint32_t d = 0; d < state->device_count; d++) {
            if (state->trials.in_use.devices >> d & 1)
                state->devices[d].speed = state->devices[d].tried;
            state->devices[d].alone = 0; /* it was relative to the speed before */
        }

    state->over = frame->frame + 1;
    if (state->energy)
        cox__energy_observe(&state->chooser, frame);
}
