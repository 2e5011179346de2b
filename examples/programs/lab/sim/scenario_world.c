/* The world of a scenario: what its devices need for their work, frame by frame. The simulator
 * (simulate.c) calls it through the functions of a `lab_world`. Each pass of the scenario has one
 * such world.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"
#include "random.h"
#include "common/strict_fp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOMENTS = 2 * LAB_IN_FLIGHT_MAX, /* frames whose state is kept */
    /* The runtime's warm-up runs a frame as often on each device. The shortest time counts. */
    WARMUP_RUNS = 12,
};

/* Different uses of chance. The order is part of the result: append only. */
enum {
    STREAM_JITTER,
    STREAM_OUTLIER,
    STREAM_SHADOW,
    STREAM_SHADOW_OUTLIER,
    STREAM_SCENE,
    STREAM_LEVEL,
    STREAM_JUMP,
    STREAM_BURST,
    STREAM_WAKE,
    STREAM_SHADOW_WAKE,
    STREAM_HAND_OVER,
    STREAM_JITTER_TAIL,
    STREAM_SHADOW_JITTER_TAIL,
    STREAM_LAUNCH_TAIL,
    STREAM_SHADOW_LAUNCH_TAIL,
    STREAM_STALL,
    STREAM_TRACE,
    STREAM_CONTENT
};

struct segment {
    double begin_row;
    double factor;
};

/* The state of the machine in one frame. */
struct moment {
    uint32_t rows;
    double slower[COX_DEVICES_MAX];
    uint32_t contended; /* devices in a contention of this frame */
    uint32_t segment_count;
    struct segment segments[LAB_SEGMENTS_MAX + 1]; /* the last one begins at the frame's end */
    uint64_t condition;
};

/* Factors on a device's time in one frame. */
struct level {
    double noise; /* counts as chance */
    double jump;
    double late_ns; /* of the device's first launch */
};

/* The current burst, or the next one. */
struct stretch {
    uint64_t count; /* its number, from 1 */
    double begin_ns, end_ns;
};

struct lab_scenario_world {
    const struct lab_scenario *scenario;
    uint32_t pass;
    struct lab_scenario_pass shape; /* of the pass, with its devices */
    struct lab_scenario_world *next;
    struct lab_world next_world; /* functions of `next` */
    uint64_t seed;
    double heat[LAB_HEATS_MAX]; /* 0 = no load .. 1 = full load */
    bool hot[LAB_HEATS_MAX];    /* of a heat with two thresholds */
    struct moment moments[MOMENTS];
    struct level *levels; /* frame by frame, one for each device; NULL = all 1 */
    struct stretch bursts[LAB_BURSTS_MAX];
    double submit_ns[COX_DEVICES_MAX];
    double warm_up[COX_DEVICES_MAX]; /* the trace's factor there, over that of frame 0 */
};

static bool is_now(uint64_t frame, uint64_t from, uint64_t to)
{
    return frame >= from && frame < to;
}

/* A triangle wave: 0, 1 at a quarter of the period, 0, -1 at three quarters, 0. */
static double triangle(double periods)
{
    const double x = periods - floor(periods);

    if (x < 0.25)
        return 4 * x;
    if (x < 0.75)
        return 2 - 4 * x;
    return 4 * x - 4;
}

bool lab_scenario_is_alive(const struct lab_scenario *scenario, uint32_t device, uint64_t frame)
{
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (change->kind == LAB_GONE && change->device == device &&
            is_now(frame, change->from, change->to))
            return false;
    }

    return true;
}

bool lab_scenario_is_step(const struct lab_scenario *scenario, uint64_t frame)
{
    if (frame == 0)
        return false;

    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if ((change->kind == LAB_SLOWER || change->kind == LAB_ROWS) &&
            (change->from == frame || change->to == frame))
            return true;
    }

    for (uint32_t i = 0; i < scenario->contention_count; i++)
        if (scenario->contentions[i].from == frame || scenario->contentions[i].to == frame)
            return true;

    return false;
}

/* --- the cost of rows --- */

static double heavy_first(const struct lab_scenario_heavy *heavy, uint64_t frame)
{
    if (!(heavy->period > 0))
        return heavy->first;

    /* From the top to the bottom and back. The triangle moves it by (1 + triangle) / 2 of the
     * way. */
    return (1 - heavy->rows) * 0.5 *
           (1 + triangle((double)frame / heavy->period + heavy->first - 0.25));
}

static void make_heavy(const struct lab_scenario *scenario, uint64_t frame, struct moment *out)
{
    double edges[LAB_SEGMENTS_MAX] = {0};
    uint32_t count = 1;

    for (uint32_t i = 0; i < scenario->heavy_count; i++) {
        double first = heavy_first(&scenario->heavy[i], frame);
        const double two[2] = {first, first + scenario->heavy[i].rows};

        for (int e = 0; e < 2; e++) { /* insertion sort; the first edge is 0 */
            uint32_t at = count++;
            for (; edges[at - 1] > two[e]; at--)
                edges[at] = edges[at - 1];
            edges[at] = two[e];
        }
    }

    for (uint32_t s = 0; s < count; s++) {
        const double end = s + 1 < count ? edges[s + 1] : 1;
        const double middle = 0.5 * (edges[s] + end);
        double factor = 1;

        for (uint32_t i = 0; i < scenario->heavy_count; i++) {
            double first = heavy_first(&scenario->heavy[i], frame);
            if (middle > first && middle < first + scenario->heavy[i].rows)
                factor *= scenario->heavy[i].factor;
        }

        out->segments[s] = (struct segment){edges[s] * out->rows, factor};
    }

    out->segment_count = count;
}

static void make_scene(const struct lab_scenario_world *world, uint64_t frame, struct moment *out)
{
    const struct lab_scenario *scenario = world->scenario;
    const uint64_t scene = frame / scenario->scene_frames;

    out->segment_count = scenario->scene_segments;
    for (uint32_t s = 0; s < out->segment_count; s++) {
        const double u = lab_random_uniform(lab_random_bits(world->seed, STREAM_SCENE, scene, s,
                                                            0));
        out->segments[s] = (struct segment){(double)out->rows * s / out->segment_count, 1};
        if (u < scenario->scene_share)
            out->segments[s].factor = scenario->scene_factor;
    }
}

static void make_content(const struct lab_scenario_world *world, uint64_t frame, struct moment *out)
{
    const struct lab_scenario *scenario = world->scenario;
    const uint32_t first = (uint32_t)(lab_random_bits(world->seed, STREAM_CONTENT, 0, 0, 0) %
                                      scenario->content_pictures);
    const uint64_t picture = (first + frame / scenario->content_frames) %
                             scenario->content_pictures;
    const double *costs =
        &scenario->traces[scenario->content_first + picture * scenario->content_segments];

    out->segment_count = scenario->content_segments;
    for (uint32_t s = 0; s < out->segment_count; s++)
        out->segments[s] = (struct segment){(double)out->rows * s / out->segment_count, costs[s]};
}

static double cost_of_rows(const struct moment *moment, uint32_t first_row, uint32_t rows)
{
    if (moment->segment_count == 0)
        return rows;

    const double begin = first_row, end = begin + rows;
    double sum = 0;

    for (uint32_t s = 0; s < moment->segment_count; s++) {
        double from = fmax(begin, moment->segments[s].begin_row);
        double to = fmin(end, moment->segments[s + 1].begin_row);
        if (to > from)
            sum += (to - from) * moment->segments[s].factor;
    }

    return sum;
}

/* --- chance --- */

/* Each pass has its own chance. */
static uint32_t chance_of(const struct lab_scenario_world *world, uint32_t launch)
{
    return launch + world->pass * 4096;
}

static double uniform(const struct lab_scenario_world *world, uint32_t stream, uint64_t frame,
                      uint32_t device, uint32_t launch)
{
    return lab_random_uniform(lab_random_bits(world->seed, stream, frame, device, launch));
}

static double normal(const struct lab_scenario_world *world, uint32_t stream, uint64_t frame,
                     uint32_t device, uint32_t launch)
{
    return lab_random_normal(uniform(world, stream, frame, device, launch));
}

/* The standard normal quantile of 0.99. */
static const double Z99 = 2.3263478740408408;

/* A log-normal time with this median and 99th percentile. */
static double log_normal(const struct lab_scenario_tail *tail, double z)
{
    return tail->median_ns * lab_exp(z * lab_log(tail->p99_ns / tail->median_ns) / Z99);
}

/* A time of the tail, by its probability; else `otherwise`. */
static double draw(const struct lab_scenario_world *world, const struct lab_scenario_tail *tail,
                   uint32_t stream, uint64_t frame, uint32_t device, uint32_t launch,
                   double otherwise)
{
    if (uniform(world, stream, frame, device, 2 * launch) >= tail->probability)
        return otherwise;
    return log_normal(tail, normal(world, stream, frame, device, 2 * launch + 1));
}

static uint32_t stream_of(const struct lab_launch *launch, uint32_t stream, uint32_t shadow_stream)
{
    return launch->shadow ? shadow_stream : stream;
}

/* --- chance that lasts --- */

/* What the warm-up sees of a trace that begins at `first`: its least factor, over the first one. */
static double warm_up_factor(const struct lab_scenario *scenario,
                             const struct lab_scenario_device *device, uint64_t first)
{
    const double *trace = &scenario->traces[device->trace_first];
    double least = HUGE_VAL;

    for (uint64_t i = first; i < first + WARMUP_RUNS; i++)
        least = fmin(least, trace[i % device->trace_count]);

    return least / trace[first % device->trace_count];
}

/* Find the level of each device in each frame: it changes slowly, jumps, and follows a trace. */
static void find_levels(struct lab_scenario_world *world)
{
    const struct lab_scenario *scenario = world->scenario;

    for (uint32_t d = 0; d < scenario->device_count; d++) {
        const struct lab_scenario_device *device = &scenario->devices[d];

        /* The difference of two neighbours has 2 (1 - lag) times the variance of the level. */
        const double sigma = device->level_change / sqrt(2 * (1 - device->level_lag));
        const double step = sigma * sqrt(1 - device->level_lag * device->level_lag);
        double x = sigma * normal(world, STREAM_LEVEL, 0, d, 1);
        double jump = 1;

        /* All devices' traces begin at the same place. */
        uint64_t trace = 0;
        if ((device->trace_count > 0 || device->late_count > 0) && !scenario->traces_begin)
            trace = lab_random_bits(world->seed, STREAM_TRACE, 0, 0, 0);
        if (scenario->pause_frames > 0)
            trace -= trace % scenario->pause_frames;
        world->warm_up[d] = 1;
        if (device->trace_count > 0)
            world->warm_up[d] = warm_up_factor(scenario, device, trace);

        for (uint64_t f = 0; f < scenario->frames; f++) {
            if (f > 0)
                x = device->level_lag * x + step * normal(world, STREAM_LEVEL, f, d, 0);
            if (device->jump_frames > 0 &&
                uniform(world, STREAM_JUMP, f, d, 0) < 1 / device->jump_frames)
                jump = lab_exp(device->jump_sigma * normal(world, STREAM_JUMP, f, d, 1));

            struct level *level = &world->levels[f * scenario->device_count + d];
            *level = (struct level){lab_exp(x), jump, 0};
            if (device->trace_count > 0)
                level->jump *=
                    scenario->traces[device->trace_first + (trace + f) % device->trace_count];
            if (device->late_count > 0)
                level->late_ns =
                    scenario->traces[device->late_first + (trace + f) % device->late_count];
        }
    }
}

/* Find the next burst, from the end of the one before. */
static void next_burst(struct lab_scenario_world *world, uint32_t index)
{
    const struct lab_scenario_burst *burst = &world->scenario->bursts[index];
    struct stretch *stretch = &world->bursts[index];
    const uint64_t k = stretch->count++;

    if (k == LAB_BURSTS_IN_RUN_MAX) {
        stretch->begin_ns = stretch->end_ns = HUGE_VAL;
        return;
    }

    if (burst->period_ns > 0) {
        const double phase = uniform(world, STREAM_BURST, 0, index, 0);
        stretch->begin_ns = fmax(stretch->end_ns + 1, ((double)k + phase) * burst->period_ns);
    } else {
        const double gap_ns = -lab_log(uniform(world, STREAM_BURST, k, index, 0)) * burst->every_ns;
        stretch->begin_ns = stretch->end_ns + 1 + gap_ns;
    }
    stretch->end_ns = stretch->begin_ns + 1 +
                      log_normal(&burst->length, normal(world, STREAM_BURST, k, index, 1));
}

static double stolen(void *ctx, double now_ns, uint32_t *devices, bool *engine)
{
    struct lab_scenario_world *world = ctx;
    double until_ns = HUGE_VAL;

    *devices = 0;
    *engine = false;

    for (uint32_t i = 0; i < world->scenario->burst_count; i++) {
        struct stretch *stretch = &world->bursts[i];

        while (now_ns >= stretch->end_ns)
            next_burst(world, i);

        if (now_ns >= stretch->begin_ns) {
            *devices |= world->scenario->bursts[i].devices;
            *engine |= world->scenario->bursts[i].engine;
            until_ns = fmin(until_ns, stretch->end_ns);
        } else {
            until_ns = fmin(until_ns, stretch->begin_ns);
        }
    }

    return until_ns;
}

/* --- the engine --- */

static double wake_ns(void *ctx, const struct lab_launch *ended, uint32_t others)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_wake *wake = &world->scenario->engine;

    if (wake->beside != 0 && !(others & wake->beside))
        return wake->ns;
    return draw(world, &wake->tail, stream_of(ended, STREAM_WAKE, STREAM_SHADOW_WAKE), ended->frame,
                ended->device, chance_of(world, ended->launch), wake->ns);
}

static double stall_ns(void *ctx, uint64_t frame, uint32_t device, uint32_t given, bool handed_out,
                       uint32_t working)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_wake *engine = &world->scenario->engine;
    const struct lab_scenario_tail *tail = handed_out ? &engine->stall : &engine->submit;

    if (engine->beside != 0)
        working &= engine->beside;
    if (working == 0)
        return 0;
    return draw(world, tail, STREAM_STALL, frame, device, chance_of(world, given), 0);
}

static double hand_over_ns(void *ctx, uint64_t frame)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_wake *wake = &world->scenario->application;

    return draw(world, &wake->tail, STREAM_HAND_OVER, frame, 0, 0, wake->ns);
}

/* --- the world's functions --- */

static void begin_run(void *ctx, uint64_t seed)
{
    struct lab_scenario_world *world = ctx;

    world->seed = seed;
    memset(world->heat, 0, sizeof world->heat);
    memset(world->hot, 0, sizeof world->hot);
    memset(world->bursts, 0, sizeof world->bursts);

    if (world->levels)
        find_levels(world);
}

static struct moment *moment_of(struct lab_scenario_world *world, uint64_t frame)
{
    return &world->moments[frame % MOMENTS];
}

static uint64_t mixed(uint64_t hash, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return lab_random_bits(hash, 0, bits, 0, 0);
}

static uint64_t condition_of(const struct lab_scenario *scenario, const struct moment *moment,
                             uint64_t frame)
{
    uint64_t hash = mixed(1, moment->rows);

    if (scenario->heat_count > 0)
        return 0;

    for (uint32_t d = 0; d < scenario->device_count; d++) {
        const double slower = lab_scenario_is_alive(scenario, d, frame) ? moment->slower[d] : 0;
        if (slower != 1)
            hash = mixed(mixed(hash, d), slower);
    }

    for (uint32_t i = 0; i < scenario->contention_count; i++)
        if (is_now(frame, scenario->contentions[i].from, scenario->contentions[i].to))
            hash = mixed(hash, i);
    for (uint32_t s = 0; s < moment->segment_count; s++)
        hash = mixed(mixed(hash, moment->segments[s].begin_row), moment->segments[s].factor);

    return hash ? hash : 1;
}

/* How much slower the device is because of its heat. */
static double heat_factor(const struct lab_scenario_world *world, uint32_t device)
{
    double factor = 1;

    for (uint32_t h = 0; h < world->scenario->heat_count; h++) {
        const struct lab_scenario_heat *heat = &world->scenario->heats[h];
        if (!(heat->devices & 1u << device))
            continue;

        if (heat->hot > 0)
            factor *= world->hot[h] ? heat->factor : 1;
        else
            factor *= 1 + (heat->factor - 1) * world->heat[h];
    }

    return factor;
}

static void begin_frame(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *row_alignment,
                        bool *alive)
{
    struct lab_scenario_world *world = ctx;
    const struct lab_scenario *scenario = world->scenario;
    struct moment *moment = moment_of(world, frame);
    double periods;

    moment->rows = world->shape.rows;
    moment->contended = 0;

    for (uint32_t d = 0; d < scenario->device_count; d++) {
        alive[d] = lab_scenario_is_alive(scenario, d, frame);
        moment->slower[d] = heat_factor(world, d);
        if (world->levels)
            moment->slower[d] *= world->levels[frame * scenario->device_count + d].jump;
    }

    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (!is_now(frame, change->from, change->to))
            continue;

        switch (change->kind) {
        case LAB_ROWS:
            moment->rows = change->rows;
            break;
        case LAB_SLOWER:
            moment->slower[change->device] *= change->factor;
            break;
        case LAB_DRIFT:
            periods = (double)(frame - change->from) / change->period + change->phase;
            moment->slower[change->device] *= 1 + change->factor * triangle(periods);
            break;
        case LAB_GONE:
            break;
        }
    }

    for (uint32_t i = 0; i < scenario->contention_count; i++)
        if (is_now(frame, scenario->contentions[i].from, scenario->contentions[i].to))
            moment->contended |= scenario->contentions[i].slows;

    moment->segment_count = 0;
    if (scenario->heavy_count > 0)
        make_heavy(scenario, frame, moment);
    else if (scenario->scene_frames > 0)
        make_scene(world, frame, moment);
    else if (scenario->content_pictures > 0)
        make_content(world, frame, moment);
    moment->segments[moment->segment_count] = (struct segment){moment->rows, 1};

    *rows = moment->rows;
    *row_alignment = world->shape.row_alignment;
    moment->condition = condition_of(scenario, moment, frame);
}

static double compute_ns(struct lab_scenario_world *world, const struct lab_launch *launch)
{
    return world->shape.devices[launch->device].row_ns *
           cost_of_rows(moment_of(world, launch->frame), launch->first_row, launch->rows);
}

static double fixed_ns(const struct lab_scenario_world *world, const struct lab_launch *launch)
{
    const struct lab_scenario_device *device = &world->shape.devices[launch->device];

    if (launch->launch == 0 || launch->launch == LAB_LAUNCH_WARMUP)
        return device->fixed_ns;
    return device->launch_ns;
}

static double transfer_ns(const struct lab_scenario_world *world, const struct lab_launch *launch)
{
    return world->shape.devices[launch->device].transfer_ns * launch->rows;
}

/* The launch on a device that nothing slows down. */
static double work_ns(struct lab_scenario_world *world, const struct lab_launch *launch)
{
    const double rows_ns = compute_ns(world, launch), copy_ns = transfer_ns(world, launch);

    if (world->scenario->devices[launch->device].overlap)
        return fixed_ns(world, launch) + fmax(rows_ns, copy_ns);
    return fixed_ns(world, launch) + (rows_ns + copy_ns);
}

static double expected_ns(void *ctx, const struct lab_launch *launch)
{
    struct lab_scenario_world *world = ctx;

    return work_ns(world, launch) * moment_of(world, launch->frame)->slower[launch->device];
}

/* A log-normal factor with the mean 1. Some launches have a larger sigma. */
static double jitter(const struct lab_scenario_world *world, const struct lab_launch *launch)
{
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    const uint32_t chance = chance_of(world, launch->launch);
    const double sigma = device->jitter, p = device->jitter_tail_probability;
    const double z = normal(world, stream_of(launch, STREAM_JITTER, STREAM_SHADOW), launch->frame,
                            launch->device, chance);

    if (p <= 0)
        return lab_exp(sigma * (z - 0.5 * sigma));

    const double wide = sigma * device->jitter_tail_times;
    const double mean = (1 - p) * lab_exp(0.5 * sigma * sigma) + p * lab_exp(0.5 * wide * wide);
    const uint32_t stream = stream_of(launch, STREAM_JITTER_TAIL, STREAM_SHADOW_JITTER_TAIL);
    if (uniform(world, stream, launch->frame, launch->device, chance) < p)
        return lab_exp(wide * z) / mean;
    return lab_exp(sigma * z) / mean;
}

static double launch_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    const uint32_t d = launch->device, chance = chance_of(world, launch->launch);
    const bool warmup = launch->launch == LAB_LAUNCH_WARMUP;
    double ns = expected_ns(ctx, launch);

    if (device->jitter > 0)
        ns *= jitter(world, launch);
    if (device->outlier_probability > 0 && !warmup) {
        const uint32_t stream = stream_of(launch, STREAM_OUTLIER, STREAM_SHADOW_OUTLIER);
        if (uniform(world, stream, launch->frame, d, chance) < device->outlier_probability)
            ns *= device->outlier_factor;
    }
    if (world->levels) {
        const struct level *level =
            &world->levels[launch->frame * world->scenario->device_count + d];
        ns *= level->noise;
        if (warmup)
            ns *= world->warm_up[d];
        if (launch->launch == 0 && !launch->shadow)
            ns += level->late_ns;
    }
    if (device->launch_tail.probability > 0 && !warmup)
        ns += draw(world, &device->launch_tail,
                   stream_of(launch, STREAM_LAUNCH_TAIL, STREAM_SHADOW_LAUNCH_TAIL), launch->frame,
                   d, chance, 0);

    return ns;
}

static double ahead_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];

    return device->ahead_ns + device->ahead_row_ns * launch->rows;
}

static void copying(void *ctx, const struct lab_launch *launch, double ns, struct lab_link *out)
{
    struct lab_scenario_world *world = ctx;
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    const double all_ns = work_ns(world, launch);

    *out = (struct lab_link){.link = device->link};
    if (device->link == 0 || !(all_ns > 0))
        return;

    /* Chance lengthens all parts of the launch alike. */
    out->ns = ns * (transfer_ns(world, launch) / all_ns);
    if (device->overlap)
        out->beside_ns = ns * (compute_ns(world, launch) / all_ns);
}

static double slowdown(void *ctx, uint64_t frame, uint32_t device, uint32_t active)
{
    struct lab_scenario_world *world = ctx;
    double slower = 1;

    if (!(moment_of(world, frame)->contended & 1u << device))
        return 1;

    for (uint32_t i = 0; i < world->scenario->contention_count; i++) {
        const struct lab_scenario_contention *contention = &world->scenario->contentions[i];
        const uint32_t at_work = active & contention->devices;

        if (is_now(frame, contention->from, contention->to) && contention->slows & 1u << device &&
            (at_work & (at_work - 1)))
            slower *= contention->factor;
    }

    return slower;
}

static double kernel_part(void *ctx, const struct lab_launch *launch)
{
    struct lab_scenario_world *world = ctx;
    const double all_ns = expected_ns(ctx, launch);
    const double kernel_ns = compute_ns(world, launch) *
                             moment_of(world, launch->frame)->slower[launch->device];

    if (!(all_ns > 0))
        return 0;
    return fmin(1, kernel_ns / all_ns);
}

double lab_scenario_joules(const void *ctx, const double *busy_ns, double wall_ns)
{
    const struct lab_scenario *scenario = ctx;
    double joules = scenario->base_watts * wall_ns * 1e-9;
    bool metered = scenario->base_watts > 0;

    for (uint32_t d = 0; d < scenario->device_count; d++) {
        const struct lab_scenario_device *device = &scenario->devices[d];
        const double busy = fmin(busy_ns[d], wall_ns);

        metered |= device->watts > 0;
        joules += (device->watts * busy + device->idle_watts * (wall_ns - busy)) * 1e-9;
    }

    return metered ? joules : -1;
}

static double mean_load(uint32_t devices, const double *busy_ns, double wall_ns)
{
    double sum = 0, count = 0;

    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        if (devices & 1u << d) {
            sum += fmin(busy_ns[d], wall_ns) / wall_ns;
            count++;
        }

    return sum / count;
}

static double end_frame(void *ctx, uint64_t frame, const double *busy_ns, double wall_ns)
{
    (void)frame;
    struct lab_scenario_world *world = ctx;

    /* The heat moves towards the load, by the frame's share of the time constant. */
    for (uint32_t h = 0; h < world->scenario->heat_count && wall_ns > 0; h++) {
        const struct lab_scenario_heat *heat = &world->scenario->heats[h];
        const double load = mean_load(heat->devices, busy_ns, wall_ns);

        world->heat[h] += (load - world->heat[h]) * (wall_ns / (heat->ns + wall_ns));
        if (world->heat[h] >= heat->hot)
            world->hot[h] = true;
        else if (world->heat[h] <= heat->cool)
            world->hot[h] = false;
    }

    return lab_scenario_joules(world->scenario, busy_ns, wall_ns);
}

static uint64_t condition(void *ctx, uint64_t frame)
{
    return moment_of(ctx, frame)->condition;
}

static bool has_levels(const struct lab_scenario *scenario)
{
    for (uint32_t d = 0; d < scenario->device_count; d++)
        if (scenario->devices[d].level_change > 0 || scenario->devices[d].jump_frames > 0 ||
            scenario->devices[d].trace_count > 0 || scenario->devices[d].late_count > 0)
            return true;
    return false;
}

static bool copies_ahead(const struct lab_scenario *scenario)
{
    for (uint32_t d = 0; d < scenario->device_count; d++)
        if (scenario->devices[d].ahead_ns > 0 || scenario->devices[d].ahead_row_ns > 0)
            return true;
    return false;
}

/* Note what enqueueing costs. Returns whether it costs anything. */
static bool find_submits(struct lab_scenario_world *world)
{
    bool any = false;

    for (uint32_t d = 0; d < world->scenario->device_count; d++) {
        world->submit_ns[d] = world->scenario->devices[d].submit_ns;
        any |= world->submit_ns[d] > 0;
    }

    return any;
}

static bool has_links(const struct lab_scenario *scenario)
{
    for (uint32_t d = 0; d < scenario->device_count; d++)
        if (scenario->devices[d].link > 0)
            return true;
    return false;
}

static void find_pass(struct lab_scenario_world *world)
{
    const struct lab_scenario *scenario = world->scenario;

    if (world->pass < scenario->pass_count) {
        world->shape = scenario->passes[world->pass];
        return;
    }

    world->shape = (struct lab_scenario_pass){.rows = scenario->rows,
                                              .row_alignment = scenario->row_alignment};
    memcpy(world->shape.devices, scenario->devices, sizeof world->shape.devices);
}

static struct lab_scenario_world *create_pass(const struct lab_scenario *scenario, uint32_t pass,
                                              struct lab_world *world)
{
    struct lab_scenario_world *ctx = calloc(1, sizeof *ctx);

    if (!ctx)
        return NULL;

    ctx->scenario = scenario;
    ctx->pass = pass;
    find_pass(ctx);

    if (has_levels(scenario))
        ctx->levels = calloc((size_t)scenario->frames * scenario->device_count,
                             sizeof *ctx->levels);

    if (pass + 1 < scenario->pass_count)
        ctx->next = create_pass(scenario, pass + 1, &ctx->next_world);

    if ((has_levels(scenario) && !ctx->levels) || (pass + 1 < scenario->pass_count && !ctx->next)) {
        lab_scenario_world_destroy(&ctx);
        return NULL;
    }

    const struct lab_scenario_wake *engine = &scenario->engine;
    const struct lab_scenario_wake *application = &scenario->application;
    *world = (struct lab_world){.ctx = ctx,
                                .device_count = scenario->device_count,
                                .frames = scenario->frames,
                                .begin_run = begin_run,
                                .begin_frame = begin_frame,
                                .launch_ns = launch_ns,
                                .expected_ns = expected_ns,
                                .kernel_part = kernel_part,
                                .end_frame = end_frame,
                                .condition = condition,
                                .hand_over_idle_ns = scenario->hand_over_idle_ns,
                                .submit_period_ns = scenario->submit_period_ns,
                                .pause_frames = scenario->pause_frames,
                                .busy_ns = scenario->engine_busy_ns,
                                .host_clock = scenario->host_clock,
                                .before_ns = ctx->shape.before_ns,
                                .moved_row_ns = ctx->shape.moved_row_ns};

    /* Functions that would change nothing are left out: the simulator is faster without them. */
    if (scenario->contention_count > 0)
        world->slowdown = slowdown;
    if (has_links(scenario))
        world->copying = copying;
    if (copies_ahead(scenario))
        world->ahead_ns = ahead_ns;
    if (find_submits(ctx))
        world->submit_ns = ctx->submit_ns;
    if (engine->ns > 0 || engine->tail.probability > 0)
        world->wake_ns = wake_ns;
    if (application->ns > 0 || application->tail.probability > 0)
        world->hand_over_ns = hand_over_ns;
    if (scenario->burst_count > 0)
        world->stolen = stolen;
    if (engine->stall.probability > 0 || engine->submit.probability > 0)
        world->stall_ns = stall_ns;
    if (ctx->next)
        world->next_pass = &ctx->next_world;
    if (ctx->shape.name[0])
        world->name = ctx->shape.name;
    return ctx;
}

struct lab_scenario_world *lab_scenario_world_create(const struct lab_scenario *scenario,
                                                     struct lab_world *world)
{
    return create_pass(scenario, 0, world);
}

void lab_scenario_world_destroy(struct lab_scenario_world **world)
{
    if (!*world)
        return;
    lab_scenario_world_destroy(&(*world)->next);
    free((*world)->levels);
    free(*world);
    *world = NULL;
}
