/* The oracle's split of a pass, and how far the policy's split is from it. simulate.c calls this
 * once for each pass of a frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session_state.h"
#include "oracle.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

enum { POOL_SEARCH_STEPS = 40 };

/* --- the policy's split --- */

static double expected_ns(const struct lab_sim *sim, const struct lab_run *run, uint32_t device,
                          uint32_t first_row, uint32_t rows, uint32_t launch)
{
    const struct lab_world *world = sim->sharing[run->pass].world;
    const struct lab_launch asked = {.frame = sim->view.frame,
                                     .device = device,
                                     .first_row = first_row,
                                     .rows = rows,
                                     .launch = launch,
                                     .pass = run->pass};
    const double moved_ns = lab_queue_moved_ns(sim, run->pass, sim->view.rows, &run->before, device,
                                               first_row, rows);

    return world->expected_ns(world->ctx, &asked) + moved_ns;
}

/* A device's part in working off a pool: its time is begin_ns + rows * row_ns, times `slower`. */
struct pool_cost {
    bool used;
    double begin_ns, row_ns, slower;
};

/* The time in which all devices together do `rows` rows. `high`: one device alone. */
static double pool_ns(const struct pool_cost *costs, uint32_t device_count, uint32_t rows,
                      double high)
{
    double low = 0;

    for (int step = 0; step < POOL_SEARCH_STEPS; step++) {
        const double middle = low + (high - low) / 2;
        double done = 0;

        for (uint32_t d = 0; d < device_count; d++)
            if (costs[d].used)
                done += fmax(0, (middle / costs[d].slower - costs[d].begin_ns) / costs[d].row_ns);
        if (done >= rows)
            high = middle;
        else
            low = middle;
    }

    return high;
}

double lab_pass_expected_ns(const struct lab_sim *sim, const struct lab_run *run)
{
    const struct cox_split *split = &sim->sharing[run->pass].split;
    const struct lab_world *world = sim->sharing[run->pass].world;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t launches[COX_DEVICES_MAX] = {0};

    for (uint32_t i = 0; i < split->band_count; i++) {
        const struct cox_band *band = &split->bands[i];
        if (!sim->workers[band->device].alive)
            return -1;
        work_ns[band->device] += expected_ns(sim, run, band->device, band->first_row, band->rows,
                                             launches[band->device]++);
    }

    const double bands_ns = lab_makespan(world, sim->view.frame, work_ns);
    if (split->pool_rows == 0)
        return bands_ns;

    uint32_t all = 0;
    for (uint32_t d = 0; d < world->device_count; d++)
        if (sim->workers[d].usable && sim->workers[d].alive)
            all |= 1u << d;

    /* Each device's cost is a line through the time of the whole pool and that of half of it. */
    struct pool_cost costs[COX_DEVICES_MAX] = {{false}};
    const uint32_t half = split->pool_rows / 2;
    double alone_ns = HUGE_VAL;

    for (uint32_t d = 0; d < world->device_count; d++) {
        struct pool_cost *cost = &costs[d];
        if (!(all & 1u << d))
            continue;

        const double whole_ns = expected_ns(sim, run, d, split->pool_first_row, split->pool_rows,
                                            launches[d]);
        double row_ns = whole_ns;
        if (half > 0)
            row_ns = (whole_ns -
                      expected_ns(sim, run, d, split->pool_first_row, half, launches[d])) /
                     (split->pool_rows - half);

        cost->used = true;
        cost->row_ns = fmax(row_ns, 1e-6);
        cost->begin_ns = work_ns[d] + fmax(0, whole_ns - cost->row_ns * split->pool_rows);
        cost->slower = lab_world_slowdown(world, sim->view.frame, d, all);
        alone_ns = fmin(alone_ns,
                        (cost->begin_ns + cost->row_ns * split->pool_rows) * cost->slower);
    }

    return fmax(bands_ns, pool_ns(costs, world->device_count, split->pool_rows, alone_ns));
}

/* --- the oracle's split --- */

/* The pass's world, plus the cost of rows that change device after the oracle's pass before. */
struct moving {
    const struct lab_sim *sim;
    const struct lab_run *run;
    const struct lab_world *world;
};

static double moving_expected_ns(void *ctx, const struct lab_launch *launch)
{
    const struct moving *moving = ctx;
    const struct lab_run *run = moving->run;

    return moving->world->expected_ns(moving->world->ctx, launch) +
           lab_queue_moved_ns(moving->sim, run->pass, moving->sim->view.rows, &run->oracle,
                              launch->device, launch->first_row, launch->rows);
}

static double moving_slowdown(void *ctx, uint64_t frame, uint32_t device, uint32_t active)
{
    const struct lab_world *world = ((const struct moving *)ctx)->world;
    return world->slowdown(world->ctx, frame, device, active);
}

static void find_oracle(const struct lab_sim *sim, const struct lab_run *run,
                        struct lab_oracle *oracle)
{
    bool alive[COX_DEVICES_MAX];
    struct moving moving = {sim, run, sim->sharing[run->pass].world};
    struct lab_world world = {.ctx = &moving,
                              .device_count = sim->view.device_count,
                              .frames = sim->world->frames,
                              .expected_ns = moving_expected_ns};
    if (moving.world->slowdown)
        world.slowdown = moving_slowdown;

    for (uint32_t d = 0; d < world.device_count; d++)
        alive[d] = sim->workers[d].alive;
    lab_oracle_find(&world, sim->view.frame, sim->view.rows, sim->view.row_alignment, alive,
                    oracle);
}

static bool same_done(const struct lab_done *a, const struct lab_done *b)
{
    return a->count == b->count && a->rows == b->rows &&
           memcmp(a->bands, b->bands, a->count * sizeof *a->bands) == 0;
}

const struct lab_oracle *lab_pass_oracle(struct lab_sim *sim, const struct lab_run *run)
{
    struct lab_sharing *sharing = &sim->sharing[run->pass];
    const struct lab_world *world = sharing->world;
    const uint64_t frame = sim->view.frame;
    const bool kept = sim->options->oracles && run->pass == 0;
    const bool same = run->pass == 0 || same_done(&sharing->scratch_before, &run->oracle);
    uint64_t condition = 0;
    struct lab_oracle *oracle = &sharing->scratch;

    if (world->condition)
        condition = world->condition(world->ctx, frame);
    if (kept)
        oracle = &sim->options->oracles[frame];
    if (condition != 0 && oracle->condition == condition && same)
        return oracle;

    /* While nothing changes, take what was found for the frame before. */
    const struct lab_oracle *before = &sharing->scratch;
    if (kept && frame > 0)
        before = oracle - 1;
    if (condition != 0 && before->condition == condition && same) {
        *oracle = *before;
        return oracle;
    }

    find_oracle(sim, run, oracle);
    oracle->condition = condition;
    if (run->pass > 0)
        sharing->scratch_before = run->oracle;
    return oracle;
}

void lab_pass_compare(const struct lab_sim *sim, const struct lab_run *run,
                      const struct lab_oracle *oracle)
{
    struct lab_sim_frame *out = run->out;
    const struct lab_world *world = sim->sharing[run->pass].world;
    const uint64_t frame = sim->view.frame;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t first_row = 0;

    for (uint32_t d = 0; d < world->device_count; d++) {
        const struct lab_launch launch = {.frame = frame,
                                          .device = d,
                                          .first_row = first_row,
                                          .rows = oracle->rows[d],
                                          .pass = run->pass};
        if (launch.rows > 0)
            work_ns[d] = world->launch_ns(world->ctx, &launch) +
                         lab_queue_moved_ns(sim, run->pass, sim->view.rows, &run->oracle, d,
                                            first_row, launch.rows);
        first_row += launch.rows;
        out->oracle_rows[d] += launch.rows;
    }

    const double pause_ns = run->pass > 0 ? world->before_ns : 0;
    out->oracle_ns += pause_ns + lab_makespan(world, frame, work_ns);
    out->oracle_expected_ns += pause_ns + oracle->expected_ns;

    const struct lab_launch solo = {
        .frame = frame, .device = oracle->solo, .rows = sim->view.rows, .pass = run->pass};
    const double slower = lab_world_slowdown(world, frame, solo.device, 1u << solo.device);
    out->single_device_ns += pause_ns + world->launch_ns(world->ctx, &solo) * slower;
}

struct cox_split lab_pass_oracle_split(const struct lab_sim *sim, const struct lab_oracle *oracle)
{
    struct cox_split split = {.reason = COX_REASON_GIVEN,
                              .predicted_ns = lab_whole(oracle->expected_ns)};
    uint32_t first_row = 0;

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        if (oracle->rows[d] == 0)
            continue;
        split.bands[split.band_count++] = (struct cox_band){
            .device = d, .first_row = first_row, .rows = oracle->rows[d]};
        first_row += oracle->rows[d];
    }

    return split;
}
