/* How late the engine and the application are, from the gaps of a recorded run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "intermediate.h"

#include <math.h>
#include <stdlib.h>

/* A gap between frames of this number of median periods is a pause. */
static const double PAUSE_TIMES = 10;
/* The engine serves the cheapest device first. So a device that is served first more seldom than
 * another costs at least this many times as much. */
static const double COSTLIER = 1.01;
enum { SUBMITS_LEAST = 8, DEEDS = 4, ANY_DEVICE = 0xff };

/* What a launch costs whatever its rows. */
static double fixed_part(const struct lab_fit_device *device, const struct lab_replay_band *band)
{
    if (band->launch > 0)
        return device->launch_ns;

    return device->fixed_ns;
}

/* The time of bands beyond their kernels and their fixed part. */
static void sample_beyond(struct lab_fit_work *work)
{
    for (size_t s = 0; s < work->data->session_count; s++)
        for (size_t b = 0; b < work->data->sessions[s].band_count; b++) {
            const struct lab_replay_band *band = &work->data->sessions[s].bands[b];
            const struct lab_fit_device *device = &work->fit->devices[band->device];

            if (lab_fit_says_cost(band) && work->by_kernel[band->device] && band->kernel_ns > 0)
                lab_sample_add(&work->beyond,
                               fmax(0, band->wall_ns - band->kernel_ns - fixed_part(device, band)));
        }
}

/* The time from `from_ns` to the next end of a band on another device, which wakes the engine. */
static double next_end_ns(const struct lab_replay_session *session,
                          const struct lab_replay_frame *frame, uint32_t device, double from_ns)
{
    double next_ns = HUGE_VAL;

    for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
        const struct lab_replay_band *band = &session->bands[b];
        double end_ns = band->begin_ns + band->wall_ns;
        if (band->device != device && end_ns > from_ns)
            next_ns = fmin(next_ns, end_ns - from_ns);
    }

    return next_ns;
}

/* The gaps before rows that were handed out while the frame ran. */
static void visit_handed(struct lab_fit_work *work, const struct lab_replay_session *session,
                         const struct lab_replay_frame *frame)
{
    for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
        const struct lab_replay_band *band = &session->bands[b];
        if (!lab_fit_says_cost(band) || band->launch == 0 || band->queue_ns > 0)
            continue;

        lab_sample_add(&work->handed, band->gap_ns);
        double cut_ns = next_end_ns(session, frame, band->device, band->begin_ns - band->gap_ns);
        if (band->gap_ns > cut_ns)
            lab_sample_add(&work->delays, -cut_ns);
        else
            lab_sample_add(&work->delays, band->gap_ns);
    }
}

/* Whether a pause lies before the frame. `end_ns`: when all frames before it had been delivered. */
static bool is_pause(const struct lab_replay_frame *frame, double end_ns, double period_ns)
{
    return frame->start_ns - end_ns > PAUSE_TIMES * period_ns;
}

static double median_period(struct lab_fit_work *work, const struct lab_replay_session *session)
{
    struct lab_sample periods = {work->room, 0};
    for (size_t f = 0; f < session->frame_count; f++)
        lab_sample_add(&periods, session->frames[f].period_ns);
    return lab_sample_quantile(&periods, 0.5);
}

/* How late a frame's further first bands were given to their devices. */
static void visit_submits(struct lab_fit_work *work, const struct lab_replay_session *session,
                          const struct lab_replay_frame *frame)
{
    double first_ns = HUGE_VAL;

    for (int pass = 0; pass < 2; pass++)
        for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
            const struct lab_replay_band *band = &session->bands[b];
            double given_ns = band->begin_ns - band->queue_ns;
            if (!lab_fit_says_cost(band) || band->launch > 0)
                continue;
            if (pass == 0)
                first_ns = fmin(first_ns, given_ns);
            else if (given_ns > first_ns)
                lab_sample_add(&work->submitted, given_ns - first_ns);
        }
}

/* Whether rows were handed out in the frame: then first bands may be, too. */
static bool hands_out(const struct lab_replay_session *session,
                      const struct lab_replay_frame *frame)
{
    for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++)
        if (session->bands[b].launch > 0)
            return true;
    return false;
}

static void visit_session(struct lab_fit_work *work, const struct lab_replay_session *session,
                          uint64_t *pauses)
{
    enum { IN_FLIGHT = 64 };
    double period_ns = median_period(work, session);
    double ends[IN_FLIGHT] = {0}; /* when the frames before were delivered */
    uint32_t in_flight = work->fit->in_flight;
    size_t since = 0;

    for (size_t f = 0; f < session->frame_count; f++, since++) {
        const struct lab_replay_frame *frame = &session->frames[f];
        double before_ns = 0;

        if (f > 0)
            before_ns = ends[(f - 1) % IN_FLIGHT];
        if (f > 0 && is_pause(frame, before_ns, period_ns)) {
            if (since < LAB_FRAMES_MAX)
                pauses[since]++;
            since = 0;
        } else if (since >= in_flight && in_flight < IN_FLIGHT) {
            lab_sample_add(&work->handed_over,
                           fmax(0, frame->start_ns - ends[(f - in_flight) % IN_FLIGHT]));
        }

        visit_handed(work, session, frame);
        if (!hands_out(session, frame))
            visit_submits(work, session, frame);
        ends[f % IN_FLIGHT] = fmax(before_ns, frame->start_ns + frame->wall_ns);
    }
}

/* The frames between pauses: the most frequent number, if it is at least half of all. */
static uint64_t find_pause_frames(const uint64_t *pauses)
{
    uint64_t all = 0, most = 0, frames = 0;

    for (uint32_t n = 1; n < LAB_FRAMES_MAX; n++) {
        all += pauses[n];
        if (pauses[n] > most) {
            most = pauses[n];
            frames = n;
        }
    }

    if (2 * most < all || most < 3)
        return 0;

    return frames;
}

/* Samples of all gaps, and the frames between pauses. False if out of memory. */
static bool sample_gaps(struct lab_fit_work *work)
{
    uint64_t *pauses = calloc(LAB_FRAMES_MAX, sizeof *pauses);

    if (!pauses)
        return false;

    sample_beyond(work);
    for (size_t s = 0; s < work->data->session_count; s++)
        if (lab_fit_is_policy(&work->data->sessions[s]))
            visit_session(work, &work->data->sessions[s], pauses);
    work->fit->pause_frames = find_pause_frames(pauses);
    free(pauses);

    return true;
}

/* How late the engine notices ends, if the bands say so: better than by the gaps that follow. */
static void find_notices(struct lab_fit_work *work)
{
    struct lab_sample sample = {work->room, 0};

    for (size_t s = 0; s < work->data->session_count; s++) {
        const struct lab_replay_session *session = &work->data->sessions[s];
        for (size_t b = 0; b < session->band_count && lab_fit_is_policy(session); b++)
            if (lab_fit_says_cost(&session->bands[b]) && session->bands[b].notice_ns >= 0)
                lab_sample_add(&sample, session->bands[b].notice_ns);
    }

    if (sample.count >= LAB_FIT_BANDS_LEAST)
        lab_sample_tail(&sample, &work->fit->engine.ns, &work->fit->engine.tail);
}

/* When the idle device got its first band of the frame; HUGE_VAL if it got none. */
static double given_ns(const struct lab_replay_session *session,
                       const struct lab_replay_frame *frame, uint32_t device)
{
    double ns = HUGE_VAL;

    for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
        const struct lab_replay_band *band = &session->bands[b];
        if (band->device == device && lab_fit_says_cost(band) && band->launch == 0)
            ns = fmin(ns, band->begin_ns);
    }

    return ns;
}

/* Add how much later the next device got its first band. */
static void add_submit(const struct lab_fit_work *work, const struct lab_replay_session *session,
                       const struct lab_replay_frame *frame, uint32_t device,
                       struct lab_sample *sample)
{
    double at_ns = given_ns(session, frame, device), next_ns = HUGE_VAL;

    for (uint32_t d = 0; d < work->fit->device_count; d++) {
        double ns = given_ns(session, frame, d);
        if (ns > at_ns)
            next_ns = fmin(next_ns, ns);
    }

    if (next_ns < HUGE_VAL)
        lab_sample_add(sample, next_ns - at_ns);
}

/* How long the engine was busy with a device (or with any) before it served the next one. With
 * several frames in flight a band may wait for room in its device's queue, so only frames after
 * pauses tell. */
static struct lab_sample sample_submits(const struct lab_fit_work *work, uint32_t device)
{
    struct lab_sample sample = {work->room, 0};

    for (size_t s = 0; s < work->data->session_count; s++) {
        const struct lab_replay_session *session = &work->data->sessions[s];
        if (!lab_fit_is_policy(session))
            continue;

        for (size_t f = 0; f < session->frame_count; f++) {
            const struct lab_replay_frame *frame = &session->frames[f];
            bool turn = work->fit->pause_frames > 0 && f % work->fit->pause_frames == 0;
            if ((work->fit->in_flight > 1 && !turn) || hands_out(session, frame))
                continue;

            for (uint32_t d = 0; d < work->fit->device_count; d++)
                if (device == ANY_DEVICE || device == d)
                    add_submit(work, session, frame, d, &sample);
        }
    }

    return sample;
}

/* What submitting a band costs the engine's thread. By the host's clock that is part of its
 * actions. */
static void find_submits(struct lab_fit_work *work)
{
    struct lab_fit *fit = work->fit;
    double usual_ns, least_ns = 0;
    struct lab_scenario_tail tail;
    size_t firsts[COX_DEVICES_MAX];
    bool done[COX_DEVICES_MAX] = {false};

    struct lab_sample all = sample_submits(work, ANY_DEVICE);
    fit->engine.submit = (struct lab_scenario_tail){0};
    if (all.count < SUBMITS_LEAST)
        return;
    lab_sample_tail(&all, &usual_ns, &fit->engine.submit);

    for (uint32_t d = 0; d < fit->device_count; d++) {
        struct lab_sample sample = sample_submits(work, d);

        firsts[d] = sample.count;
        if (sample.count >= SUBMITS_LEAST)
            lab_sample_tail(&sample, &fit->devices[d].submit_ns, &tail);
    }

    /* From the device that is most often before another to the one that is most seldom. */
    for (uint32_t i = 0; i < fit->device_count; i++) {
        uint32_t next = fit->device_count;

        for (uint32_t d = 0; d < fit->device_count; d++)
            if (!done[d] && (next == fit->device_count || firsts[d] > firsts[next]))
                next = d;

        struct lab_fit_device *device = &fit->devices[next];
        device->submit_ns = fmax(device->submit_ns, least_ns);
        least_ns = COSTLIER * device->submit_ns;
        done[next] = true;
    }
}

bool lab_fit_find_delays(struct lab_fit_work *work)
{
    struct lab_fit *fit = work->fit;
    double late_ns, gap_ns, submit_ns;
    struct lab_scenario_tail late, gaps;

    if (!sample_gaps(work))
        return false;

    lab_sample_tail(&work->beyond, &late_ns, &late);
    lab_sample_tail(&work->handed, &gap_ns, &gaps);
    lab_sample_tail(&work->submitted, &submit_ns, &fit->engine.submit);
    lab_sample_tail(&work->handed_over, &fit->application.ns, &fit->application.tail);

    /* By the host's clock a band lasts until its end is noticed; by the device's clock the gap
     * after it is longer. */
    fit->host_clock = work->beyond.count >= LAB_FIT_BANDS_LEAST &&
                      (work->handed.count < LAB_FIT_BANDS_LEAST || late_ns > gap_ns);
    if (fit->host_clock) {
        double between_ns = submit_ns;

        if (fit->in_flight == 1)
            between_ns = fit->application.ns;
        if (gap_ns > 0)
            between_ns = fmin(between_ns, gap_ns);
        fit->busy_ns = between_ns / DEEDS;
        fit->engine.ns = late_ns;
        fit->engine.tail = late;
        fit->engine.stall = gaps;
        for (uint32_t d = 0; d < fit->device_count; d++)
            fit->devices[d].launch_ns += fmax(0, gap_ns - fit->busy_ns);
    } else {
        fit->engine.ns = gap_ns;
        lab_sample_cut_tail(&work->delays, gap_ns, &fit->engine.tail);
        find_notices(work);

        /* The frame after a delivery begins after the engine has noticed the end. */
        fit->application.ns = fmax(0, fit->application.ns - fit->engine.ns);
    }

    /* If frames wait and the application is late, the devices' own threads keep it from its
     * core. */
    /* If most frames begin late, they wait for the engine, which submits those before. */
    if (!fit->host_clock && fit->application.tail.probability > 0.5)
        fit->application.tail.probability = 0;

    if (fit->in_flight > 1 && fit->application.tail.probability > 0)
        fit->hand_over_idle_ns = fmax(1, fit->application.ns);
    if (fit->in_flight == 1)
        fit->application.ns = fmax(0, fit->application.ns - 2 * fit->busy_ns);
    if (!fit->host_clock)
        find_submits(work);

    return true;
}
