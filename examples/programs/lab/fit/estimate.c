/* The parameters of a machine, from a recorded run: the devices' costs and how they wander.
 * SPDX-License-Identifier: Apache-2.0 */
#include "intermediate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the time beyond the kernels is at most this share of a band's, the kernels' profile gives the
 * cost of rows. */
static const double KERNEL_SHARE = 0.2;
static const double JUMP_TIMES = 8, JUMP_LEAST = 0.03;
static const double SMALL_SHARE = 0.5; /* of the median rows */
static const double SPIKE_TIMES = 1.5;
static const double SLOWDOWN_LEAST = 1.03;
/* The standard deviation of a normal variable over its median deviation. */
static const double DEVIATION = 1.4826;
enum { FRAMES_LEAST = 16 };

/* --- Devices ---------------------------------------------------------------------------------- */

/* The time that rows took, alone. */
static double rows_ns(const struct lab_fit_work *work, const struct lab_replay_band *band)
{
    return band->kernel_ns / (1 + (work->fit->devices[band->device].slower - 1) * band->together);
}

typedef void band_fn(struct lab_fit_work *work, const struct lab_replay_band *band, void *into);

static void each_band(struct lab_fit_work *work, band_fn *visit, void *into)
{
    for (size_t s = 0; s < work->data->session_count; s++) {
        const struct lab_replay_session *session = &work->data->sessions[s];
        for (size_t b = 0; b < session->band_count; b++)
            if (lab_fit_says_cost(&session->bands[b]))
                visit(work, &session->bands[b], into);
    }
}

/* Times of a device's bands that have a profile. */
struct wanted {
    uint32_t device;
    bool further; /* further launches of a frame; else the first ones */
    bool beyond;  /* the time beyond the kernels; else the whole */
    struct lab_sample sample;
};

static void collect(struct lab_fit_work *work, const struct lab_replay_band *band, void *into)
{
    struct wanted *wanted = into;
    double ns = band->wall_ns;

    (void)work;
    if (band->device != wanted->device || (band->launch > 0) != wanted->further ||
        band->kernel_ns <= 0)
        return;

    if (wanted->beyond)
        ns -= band->kernel_ns;
    lab_sample_add(&wanted->sample, ns);
}

static struct lab_sample beyond_kernels(struct lab_fit_work *work, uint32_t device, bool further)
{
    struct wanted wanted = {
        .device = device, .further = further, .beyond = true, .sample = {work->room, 0}};

    each_band(work, collect, &wanted);

    return wanted.sample;
}

/* The costs of a device whose kernels have no profile. */
static void find_costs(struct lab_fit_work *work, uint32_t d)
{
    struct lab_fit_device *device = &work->fit->devices[d];
    const struct lab_replay_fit *model = &work->models[d];
    struct lab_fit_costs *costs = &work->costs[d];

    *costs = (struct lab_fit_costs){
        .fixed_ns = model->fixed_ns, .row_ns = model->ns_per_row, .slower = device->slower};
    lab_fit_find_costs(work->data, d, work->room, costs);
    device->fixed_ns = costs->fixed_ns;
    device->ahead_ns = costs->ahead_ns;
    device->ahead_row_ns = costs->ahead_row_ns;
    device->slower = costs->slower;
    if (!model->launch_known)
        device->launch_ns = 0.5 * costs->fixed_ns;
}

static void find_launches(struct lab_fit_work *work, uint32_t d)
{
    struct lab_fit_device *device = &work->fit->devices[d];
    const struct lab_replay_fit *model = &work->models[d];
    struct wanted all = {.device = d, .sample = {work->room, 0}};

    each_band(work, collect, &all);
    double whole_ns = lab_sample_quantile(&all.sample, 0.5);
    struct lab_sample beyond = beyond_kernels(work, d, false);
    double beyond_ns = lab_sample_quantile(&beyond, 0.5);
    device->fixed_ns = model->fixed_ns;
    device->launch_ns = 0.5 * model->fixed_ns;
    if (model->launch_known)
        device->launch_ns = model->launch_ns;

    bool many = 2 * beyond.count >= model->bands || beyond.count >= LAB_FIT_BANDS_LEAST;
    work->by_kernel[d] = many && beyond_ns <= KERNEL_SHARE * whole_ns;
    if (!work->by_kernel[d]) {
        find_costs(work, d);
        return;
    }

    /* The rest of these times is the engine's. */
    device->fixed_ns = fmax(0, lab_sample_quantile(&beyond, 0.05));
    struct lab_sample further = beyond_kernels(work, d, true);
    device->launch_ns = 0.5 * device->fixed_ns;
    if (further.count >= LAB_FIT_BANDS_LEAST)
        device->launch_ns = fmax(0, lab_sample_quantile(&further, 0.05));
}

/* What the band should have taken: for a device with a profile its rows, so that the level is the
 * time of a row; else nanoseconds. */
static double expected_of(const struct lab_fit_work *work, const struct lab_replay_band *band)
{
    double launch_ns = work->fit->devices[band->device].launch_ns;
    const struct lab_fit_costs *costs = &work->costs[band->device];

    if (work->by_kernel[band->device])
        return band->rows;
    if (band->launch > 0)
        return launch_ns + costs->row_ns * band->rows;

    return lab_fit_cost(costs, band);
}

/* The device's level in each frame of a session, and what it is measured in (`expected_of`); 0
 * without rows. */
static void find_levels(const struct lab_fit_work *work, const struct lab_replay_session *session,
                        uint32_t device, double *levels, double *rows)
{
    bool by_kernel = work->by_kernel[device];

    for (size_t f = 0; f < session->frame_count; f++) {
        const struct lab_replay_frame *frame = &session->frames[f];
        double ns = 0;

        rows[f] = 0;
        for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
            const struct lab_replay_band *band = &session->bands[b];
            bool known = !by_kernel || band->kernel_ns > 0;

            if (band->device != device || !lab_fit_says_cost(band) || !known)
                continue;

            ns += by_kernel ? rows_ns(work, band) : band->wall_ns;
            rows[f] += expected_of(work, band);
        }

        levels[f] = 0;
        if (rows[f] > 0)
            levels[f] = ns / rows[f];
    }
}

/* A device's levels in all policies' sessions, one after the other. */
struct levels {
    double *values, *rows;
    size_t count;
};

static void find_all_levels(const struct lab_fit_work *work, uint32_t d, struct levels *levels)
{
    for (size_t s = 0; s < work->data->session_count; s++) {
        const struct lab_replay_session *session = &work->data->sessions[s];
        if (!lab_fit_is_policy(session))
            continue;

        find_levels(work, session, d, levels->values + levels->count, levels->rows + levels->count);
        levels->count += session->frame_count;
    }
}

/* Frames with few rows measure launches more than rows: they have no level. */
static void drop_small(struct levels *levels, double *room)
{
    struct lab_sample sample = {room, 0};

    for (size_t i = 0; i < levels->count; i++)
        if (levels->rows[i] > 0)
            lab_sample_add(&sample, levels->rows[i]);
    double least = SMALL_SHARE * lab_sample_quantile(&sample, 0.5);
    for (size_t i = 0; i < levels->count; i++)
        if (levels->rows[i] < least)
            levels->values[i] = 0;
}

/* If one frame takes longer than both of its neighbours, a launch was slow: that is no level.
 * `late_ns` gets by how much, for `late_count` frames. */
static void take_out_spikes(struct levels *levels, double *room, struct lab_scenario_tail *tail,
                            double *late_ns, size_t late_count)
{
    struct lab_sample spikes = {room, 0};
    size_t known = 0;
    double before = 0;

    for (size_t i = 0; i < levels->count; i++) {
        double value = levels->values[i], after = 0;

        if (!(value > 0))
            continue;

        known++;
        for (size_t n = i + 1; n < levels->count && !(after > 0); n++)
            after = levels->values[n];
        double near = fmax(before, after);
        if (before > 0 && value > SPIKE_TIMES * near) {
            double ns = (value - near) * levels->rows[i];
            lab_sample_add(&spikes, ns);
            if (i < late_count)
                late_ns[i] = ns;
            levels->values[i] = before;
        }
        before = levels->values[i];
    }

    if (spikes.count < 3)
        return;

    tail->probability = (double)spikes.count / (double)known;
    tail->median_ns = lab_sample_quantile(&spikes, 0.5);
    tail->p99_ns = fmax(tail->median_ns, lab_sample_quantile(&spikes, 0.99));
}

/* The level in each frame over their mean. Frames without rows get those of frames with rows, in
 * order: noise must not last for as long as the device had no rows. */
static void fill_trace(const struct levels *levels, double mean, double *trace, size_t count)
{
    size_t from = 0;

    for (size_t i = 0; i < count; i++) {
        double value = levels->values[i];

        while (!(value > 0)) {
            value = levels->values[from];
            from = (from + 1) % levels->count;
        }
        trace[i] = fmin(fmax(value / mean, 0.01), 100);
    }
}

/* The device's levels, and its costs at the mean level. False if out of memory. */
static bool find_trace(struct lab_fit_work *work, uint32_t d)
{
    struct lab_fit *fit = work->fit;
    struct lab_fit_device *device = &fit->devices[d];
    struct levels levels = {work->beyond.values, work->handed.values, 0};
    double sum = 0, count = 0;

    device->late_ns = calloc(fit->trace_count + 1, sizeof *device->late_ns);
    device->trace = malloc((fit->trace_count + 1) * sizeof *device->trace);
    if (!device->trace || !device->late_ns)
        return false;

    find_all_levels(work, d, &levels);
    if (work->by_kernel[d])
        drop_small(&levels, work->room);
    take_out_spikes(&levels, work->room, &device->launch_tail, device->late_ns, fit->trace_count);
    for (size_t i = 0; i < levels.count; i++) {
        sum += levels.values[i];
        count += levels.values[i] > 0;
    }
    if (!(count > 0)) {
        device->row_ns = work->models[d].ns_per_row;
        free(device->trace);
        device->trace = NULL;
        return true;
    }

    fill_trace(&levels, sum / count, device->trace, fit->trace_count);
    if (work->by_kernel[d]) {
        device->row_ns = sum / count;
        return true;
    }

    device->row_ns = work->costs[d].row_ns * (sum / count);
    device->fixed_ns *= sum / count;
    device->launch_ns *= sum / count;
    device->ahead_ns *= sum / count;
    device->ahead_row_ns *= sum / count;

    return true;
}

/* Differences of the logarithms of a trace between frames that are `apart`, within a session. */
static struct lab_sample differences(const struct lab_fit_work *work, uint32_t d, size_t apart)
{
    const double *trace = work->fit->devices[d].trace;
    struct lab_sample sample = {work->room, 0};
    size_t at = 0;

    for (size_t s = 0; s < work->data->session_count && at < work->fit->trace_count; s++) {
        const struct lab_replay_session *session = &work->data->sessions[s];
        if (!lab_fit_is_policy(session))
            continue;

        for (size_t f = apart; f < session->frame_count && at + f < work->fit->trace_count; f++) {
            double now = trace[at + f], before = trace[at + f - apart];

            if (now != before)
                lab_sample_add(&sample, fabs(log(now / before)));
        }

        at += session->frame_count;
    }

    return sample;
}

static double deviation(struct lab_sample *sample)
{
    return DEVIATION * lab_sample_quantile(sample, 0.5);
}

/* Noise between launches, wandering and jumps, from the differences between frames one and two
 * apart. */
static void find_noise(struct lab_fit_work *work, uint32_t d)
{
    struct lab_fit_device *device = &work->fit->devices[d];

    if (!device->trace)
        return;

    struct lab_sample one = differences(work, d, 1);
    if (one.count < FRAMES_LEAST)
        return;

    double near = deviation(&one), limit = fmax(JUMP_LEAST, JUMP_TIMES * near);
    size_t jumps = 0;
    for (size_t i = 0; i < one.count; i++)
        jumps += one.values[i] > limit;
    size_t frames = one.count;

    double sum = 0, squares = 0;
    for (size_t i = 0; i < work->fit->trace_count; i++) {
        double x = log(device->trace[i]);
        sum += x;
        squares += x * x;
    }

    double mean = sum / (double)work->fit->trace_count;
    double variance = fmax(0, squares / (double)work->fit->trace_count - mean * mean);
    if (jumps >= 3) {
        device->jump_frames = (double)frames / (double)jumps;
        device->jump_sigma = fmin(2, sqrt(variance));
    }

    struct lab_sample two = differences(work, d, 2);
    double further = deviation(&two);

    /* The variance of a difference: twice that of the noise, and what the level wandered. */
    double wandered = fmax(0, further * further - near * near);
    device->jitter = fmin(1, sqrt(fmax(0, near * near - wandered) / 2));
    if (wandered < 1e-6)
        return;

    double level = fmax(wandered, variance - device->jitter * device->jitter);
    if (jumps >= 3)
        level = 10 * wandered;
    device->level_lag = fmin(0.995, fmax(0.5, 1 - wandered / (2 * level)));
    device->level_change = fmin(0.5, sqrt(wandered));
}

/* By the devices' clocks the time of a launch beyond its kernels and its fixed part belongs to the
 * launch. */
static void find_launch_tails(struct lab_fit_work *work)
{
    for (uint32_t d = 0; d < work->fit->device_count; d++) {
        struct lab_fit_device *device = &work->fit->devices[d];
        struct lab_sample beyond = beyond_kernels(work, d, false);
        double usual;
        if (!work->by_kernel[d] || device->launch_tail.probability > 0)
            continue;

        lab_sample_tail(&beyond, &usual, &device->launch_tail);
        device->launch_tail.median_ns = fmax(0, device->launch_tail.median_ns - device->fixed_ns);
        if (!(device->launch_tail.median_ns > 0))
            device->launch_tail.probability = 0;
        device->launch_tail.p99_ns = fmax(device->launch_tail.median_ns,
                                          device->launch_tail.p99_ns - device->fixed_ns);
    }
}

/* --- The whole run ---------------------------------------------------------------------------- */

static void find_slowdown(struct lab_fit_work *work)
{
    double sum = 0, count = 0;

    for (uint32_t d = 0; d < work->fit->device_count; d++)
        if (work->models[d].bands > 0 && work->models[d].slowdown_known) {
            sum += work->models[d].slowdown;
            count++;
        }

    for (uint32_t d = 0; d < work->fit->device_count; d++) {
        work->fit->devices[d].slower = 1;
        if (count >= 2 && sum / count >= SLOWDOWN_LEAST)
            work->fit->devices[d].slower = sum / count;
    }
}

static void name_devices(const struct lab_replay_data *data, struct lab_fit *fit)
{
    for (uint32_t d = 0; d < fit->device_count; d++) {
        char *name = fit->device_names[d];
        int used = snprintf(name, LAB_NAME_MAX - 12, "%.*s", LAB_NAME_MAX - 13,
                            data->device_names[d]);
        for (char *c = name; *c; c++)
            if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
                *c = '?';
        bool again = used <= 0;
        for (uint32_t other = 0; other < d; other++)
            again |= strncmp(fit->device_names[other], name, strlen(name)) == 0;
        if (again)
            snprintf(name + strlen(name), 12, " %u", (unsigned)d % 100);
    }
}

/* Note the frames of changed policies. False if out of memory. */
static bool find_changed(const struct lab_replay_data *data, struct lab_fit *fit)
{
    size_t at = 0, changed = 0;

    fit->changed = calloc(fit->trace_count + 1, sizeof *fit->changed);
    if (!fit->changed)
        return false;

    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        for (size_t f = 0; lab_fit_is_policy(session) && f < session->frame_count; f++, at++)
            if (session->changed && at < fit->trace_count) {
                fit->changed[at] = true;
                changed++;
            }
    }

    if (changed == 0 || changed == fit->trace_count) {
        free(fit->changed);
        fit->changed = NULL;
    }

    return true;
}

/* The lengths of the longest session and of the traces. `*values`: room for a sample. False if
 * frames are too few. */
static bool count_all(const struct lab_replay_data *data, struct lab_fit *fit, size_t *values)
{
    size_t frames = 0, bands = 0, longest = 0;

    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        bands += session->band_count;
        if (session->frame_count > longest)
            longest = session->frame_count;
        if (!lab_fit_is_policy(session))
            continue;

        frames += session->frame_count;
        if (session->frame_count > fit->frames)
            fit->frames = session->frame_count;
    }

    if (fit->frames > LAB_FRAMES_MAX)
        fit->frames = LAB_FRAMES_MAX;
    fit->trace_count = LAB_TRACE_MAX / (2 * data->device_count); /* levels, and late launches */
    if (fit->trace_count > frames)
        fit->trace_count = frames;

    *values = bands + frames + longest + 1;

    return frames >= FRAMES_LEAST;
}

bool lab_fit_estimate(const struct lab_replay_data *data, struct lab_fit *out, char *why,
                      size_t why_bytes)
{
    struct lab_fit_work work = {.data = data, .fit = out};
    size_t values = 0;

    *out = (struct lab_fit){.rows = data->rows,
                            .row_alignment = data->row_alignment,
                            .in_flight = data->in_flight,
                            .device_count = data->device_count};
    if (out->row_alignment > out->rows)
        out->row_alignment = out->rows;
    if (out->in_flight == 0)
        out->in_flight = 1;

    if (!lab_replay_has_one_pass(data, why, why_bytes))
        return false;
    if (data->device_count == 0)
        return lab_replay_refuse(why, why_bytes, "the run has no devices");
    if (!count_all(data, out, &values))
        return lab_replay_refuse(why, why_bytes, "the run has fewer than %d frames of policies",
                                 FRAMES_LEAST);

    double *room = malloc(6 * values * sizeof *room);
    if (!room || !lab_replay_fit(data, 0, work.models)) {
        free(room);
        return lab_replay_refuse(why, why_bytes, "out of memory");
    }

    work.room = room;
    work.beyond.values = room + values;
    work.handed.values = room + 2 * values;
    work.submitted.values = room + 3 * values;
    work.handed_over.values = room + 4 * values;
    work.delays.values = room + 5 * values;

    name_devices(data, out);
    find_slowdown(&work);
    bool good = find_changed(data, out), any = false;
    for (uint32_t d = 0; d < out->device_count && good; d++) {
        out->devices[d].bands = work.models[d].bands;
        if (work.models[d].bands == 0)
            continue;

        any = true;
        find_launches(&work, d);
        good = find_trace(&work, d);
        if (good)
            find_noise(&work, d);
    }

    good = good && lab_fit_find_delays(&work);
    if (good && !out->host_clock)
        find_launch_tails(&work);
    free(room);
    if (good && any)
        return true;

    lab_fit_free(out);
    if (!good)
        return lab_replay_refuse(why, why_bytes, "out of memory");

    return lab_replay_refuse(why, why_bytes, "the run has no finished bands");
}

void lab_fit_free(struct lab_fit *fit)
{
    free(fit->changed);
    fit->changed = NULL;
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++) {
        free(fit->devices[d].trace);
        free(fit->devices[d].late_ns);
        fit->devices[d].trace = fit->devices[d].late_ns = NULL;
    }
}
