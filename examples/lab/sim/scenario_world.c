/* What a scenario's devices need for their work, frame by frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"
#include "random.h"
#include "lab/strict_fp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_JITTER, STREAM_OUTLIER, STREAM_SHADOW, STREAM_SHADOW_OUTLIER, STREAM_SCENE };

struct segment {
    double begin_row;
    double factor;
};

struct lab_scenario_world {
    const struct lab_scenario *scenario;
    uint64_t seed;
    double heat[COX_DEVICES_MAX]; /* 0 = cold .. 1 = hot */

    /* The frame under way. */
    uint32_t rows;
    double slower[COX_DEVICES_MAX];
    uint32_t contended; /* devices in a contention of now */
    uint32_t segment_count;
    struct segment segments[LAB_SEGMENTS_MAX + 1]; /* and one that begins at the frame's end */
    uint64_t condition;
};

static bool is_now(uint64_t frame, uint64_t from, uint64_t to)
{
    return frame >= from && frame < to;
}

/* 0, 1 at a quarter, 0, -1 at three quarters, 0. */
static double triangle(double periods)
{
    double x = periods - floor(periods);
    return x < 0.25 ? 4 * x : x < 0.75 ? 2 - 4 * x : 4 * x - 4;
}

bool lab_scenario_is_alive(const struct lab_scenario *scenario, uint32_t device, uint64_t frame)
{
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (change->kind == LAB_GONE && change->device == device && is_now(frame, change->from, change->to))
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
        if ((change->kind == LAB_SLOWER || change->kind == LAB_ROWS) && (change->from == frame || change->to == frame))
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
    /* From the top to the bottom and back: the share of the way is (1 + triangle) / 2. */
    return (1 - heavy->rows) * 0.5 * (1 + triangle((double)frame / heavy->period + heavy->first - 0.25));
}

static void make_heavy(struct lab_scenario_world *world, uint64_t frame)
{
    const struct lab_scenario *scenario = world->scenario;
    double edges[LAB_SEGMENTS_MAX] = {0};
    uint32_t count = 1;
    for (uint32_t i = 0; i < scenario->heavy_count; i++) {
        double first = heavy_first(&scenario->heavy[i], frame);
        double two[2] = {first, first + scenario->heavy[i].rows};
        for (int e = 0; e < 2; e++) { /* insertion sort; the first edge is 0 */
            uint32_t at = count++;
            for (; edges[at - 1] > two[e]; at--)
                edges[at] = edges[at - 1];
            edges[at] = two[e];
        }
    }
    for (uint32_t s = 0; s < count; s++) {
        double middle = 0.5 * (edges[s] + (s + 1 < count ? edges[s + 1] : 1));
        double factor = 1;
        for (uint32_t i = 0; i < scenario->heavy_count; i++) {
            double first = heavy_first(&scenario->heavy[i], frame);
            if (middle > first && middle < first + scenario->heavy[i].rows)
                factor *= scenario->heavy[i].factor;
        }
        world->segments[s] = (struct segment){edges[s] * world->rows, factor};
    }
    world->segment_count = count;
}

static void make_scene(struct lab_scenario_world *world, uint64_t frame)
{
    const struct lab_scenario *scenario = world->scenario;
    uint64_t scene = frame / scenario->scene_frames;
    world->segment_count = scenario->scene_segments;
    for (uint32_t s = 0; s < world->segment_count; s++) {
        double u = lab_random_uniform(lab_random_bits(world->seed, STREAM_SCENE, scene, s, 0));
        world->segments[s] = (struct segment){(double)world->rows * s / world->segment_count,
                                              u < scenario->scene_share ? scenario->scene_factor : 1};
    }
}

static double cost_of_rows(const struct lab_scenario_world *world, uint32_t first_row, uint32_t rows)
{
    if (world->segment_count == 0)
        return rows;
    double begin = first_row, end = begin + rows;
    double sum = 0;
    for (uint32_t s = 0; s < world->segment_count; s++) {
        double from = fmax(begin, world->segments[s].begin_row);
        double to = fmin(end, world->segments[s + 1].begin_row);
        if (to > from)
            sum += (to - from) * world->segments[s].factor;
    }
    return sum;
}

/* --- the world's functions --- */

static void begin_run(void *ctx, uint64_t seed)
{
    struct lab_scenario_world *world = ctx;
    world->seed = seed;
    memset(world->heat, 0, sizeof world->heat);
}

static uint64_t mixed(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return lab_random_bits(hash, 0, bits, 0, 0);
}

static uint64_t condition_of(const struct lab_scenario_world *world, uint64_t frame)
{
    const struct lab_scenario *scenario = world->scenario;
    uint64_t hash = mixed(1, world->rows);
    for (uint32_t d = 0; d < scenario->device_count; d++) {
        if (scenario->devices[d].thermal_factor > 1)
            return 0;
        if (world->slower[d] != 1 || !lab_scenario_is_alive(scenario, d, frame))
            hash = mixed(mixed(hash, d), lab_scenario_is_alive(scenario, d, frame) ? world->slower[d] : 0);
    }
    for (uint32_t i = 0; i < scenario->contention_count; i++)
        if (is_now(frame, scenario->contentions[i].from, scenario->contentions[i].to))
            hash = mixed(hash, i);
    for (uint32_t s = 0; s < world->segment_count; s++)
        hash = mixed(mixed(hash, world->segments[s].begin_row), world->segments[s].factor);
    return hash ? hash : 1;
}

static void begin_frame(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *granule, bool *alive)
{
    struct lab_scenario_world *world = ctx;
    const struct lab_scenario *scenario = world->scenario;
    world->rows = scenario->rows;
    world->contended = 0;
    for (uint32_t d = 0; d < scenario->device_count; d++) {
        alive[d] = lab_scenario_is_alive(scenario, d, frame);
        world->slower[d] = 1 + (scenario->devices[d].thermal_factor - 1) * world->heat[d];
    }
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (!is_now(frame, change->from, change->to))
            continue;
        if (change->kind == LAB_ROWS)
            world->rows = change->rows;
        else if (change->kind == LAB_SLOWER)
            world->slower[change->device] *= change->factor;
        else if (change->kind == LAB_DRIFT)
            world->slower[change->device] *=
                1 + change->factor * triangle((double)(frame - change->from) / change->period + change->phase);
    }
    for (uint32_t i = 0; i < scenario->contention_count; i++)
        if (is_now(frame, scenario->contentions[i].from, scenario->contentions[i].to))
            world->contended |= scenario->contentions[i].devices;
    world->segment_count = 0;
    if (scenario->heavy_count > 0)
        make_heavy(world, frame);
    else if (scenario->scene_frames > 0)
        make_scene(world, frame);
    world->segments[world->segment_count] = (struct segment){world->rows, 1};
    *rows = world->rows;
    *granule = scenario->granule;
    world->condition = condition_of(world, frame);
}

static double compute_ns(const struct lab_scenario_world *world, const struct lab_launch *launch)
{
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    return device->row_ns * cost_of_rows(world, launch->first_row, launch->rows);
}

static double expected_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    bool first = launch->launch == 0 || launch->launch == LAB_LAUNCH_WARMUP;
    double transfer_ns = device->transfer_ns * launch->rows;
    double rows_ns = compute_ns(world, launch);
    rows_ns = device->overlap ? fmax(rows_ns, transfer_ns) : rows_ns + transfer_ns;
    return ((first ? device->fixed_ns : device->launch_ns) + rows_ns) * world->slower[launch->device];
}

static double launch_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_scenario_world *world = ctx;
    const struct lab_scenario_device *device = &world->scenario->devices[launch->device];
    double ns = expected_ns(ctx, launch);
    if (device->jitter > 0) {
        uint32_t stream = launch->shadow ? STREAM_SHADOW : STREAM_JITTER;
        uint64_t bits = lab_random_bits(world->seed, stream, launch->frame, launch->device, launch->launch);
        double z = lab_random_normal(lab_random_uniform(bits));
        ns *= lab_exp(device->jitter * (z - 0.5 * device->jitter)); /* its mean is 1 */
    }
    if (device->outlier_probability > 0 && launch->launch != LAB_LAUNCH_WARMUP) {
        uint32_t stream = launch->shadow ? STREAM_SHADOW_OUTLIER : STREAM_OUTLIER;
        uint64_t bits = lab_random_bits(world->seed, stream, launch->frame, launch->device, launch->launch);
        if (lab_random_uniform(bits) < device->outlier_probability)
            ns *= device->outlier_factor;
    }
    return ns;
}

static double slowdown(void *ctx, uint64_t frame, uint32_t device, uint32_t active)
{
    const struct lab_scenario_world *world = ctx;
    double slower = 1;
    if (!(world->contended & 1u << device))
        return 1;
    for (uint32_t i = 0; i < world->scenario->contention_count; i++) {
        const struct lab_scenario_contention *contention = &world->scenario->contentions[i];
        uint32_t at_work = active & contention->devices;
        if (is_now(frame, contention->from, contention->to) && at_work & 1u << device && (at_work & (at_work - 1)))
            slower *= contention->factor;
    }
    return slower;
}

static double kernel_part(void *ctx, const struct lab_launch *launch)
{
    const struct lab_scenario_world *world = ctx;
    double all_ns = expected_ns(ctx, launch);
    double kernel_ns = compute_ns(world, launch) * world->slower[launch->device];
    return all_ns > 0 ? fmin(1, kernel_ns / all_ns) : 0;
}

double lab_scenario_joules(const void *ctx, const double *busy_ns, double wall_ns)
{
    const struct lab_scenario *scenario = ctx;
    double joules = scenario->base_watts * wall_ns * 1e-9;
    bool metered = scenario->base_watts > 0;
    for (uint32_t d = 0; d < scenario->device_count; d++) {
        const struct lab_scenario_device *device = &scenario->devices[d];
        double busy = fmin(busy_ns[d], wall_ns);
        metered |= device->watts > 0;
        joules += (device->watts * busy + device->idle_watts * (wall_ns - busy)) * 1e-9;
    }
    return metered ? joules : -1;
}

static double end_frame(void *ctx, uint64_t frame, const double *busy_ns, double wall_ns)
{
    (void)frame;
    struct lab_scenario_world *world = ctx;
    for (uint32_t d = 0; d < world->scenario->device_count && wall_ns > 0; d++) {
        const struct lab_scenario_device *device = &world->scenario->devices[d];
        double load = fmin(busy_ns[d], wall_ns) / wall_ns;
        if (device->thermal_factor > 1) /* towards its load, by the share of the time constant */
            world->heat[d] += (load - world->heat[d]) * (wall_ns / (device->thermal_ns + wall_ns));
    }
    return lab_scenario_joules(world->scenario, busy_ns, wall_ns);
}

static uint64_t condition(void *ctx, uint64_t frame)
{
    (void)frame;
    return ((const struct lab_scenario_world *)ctx)->condition;
}

struct lab_scenario_world *lab_scenario_world_create(const struct lab_scenario *scenario, struct lab_world *world)
{
    struct lab_scenario_world *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NULL;
    ctx->scenario = scenario;
    *world = (struct lab_world){.ctx = ctx,
                                .device_count = scenario->device_count,
                                .frames = scenario->frames,
                                .begin_run = begin_run,
                                .begin_frame = begin_frame,
                                .launch_ns = launch_ns,
                                .expected_ns = expected_ns,
                                .slowdown = scenario->contention_count > 0 ? slowdown : NULL,
                                .kernel_part = kernel_part,
                                .end_frame = end_frame,
                                .condition = condition};
    return ctx;
}

void lab_scenario_world_destroy(struct lab_scenario_world **world)
{
    free(*world);
    *world = NULL;
}
