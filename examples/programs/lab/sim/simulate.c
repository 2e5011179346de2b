/* One session, simulated: what the policy is asked and told. machine.c does the work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "oracle.h"
#include "lab/strict_fp.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ASK_PAUSE_MAX = 8, /* frames between two questions to a device that does not answer */
    BANDS_TEXT = 400
};

const struct cox_policy lab_hindsight = {.name = "hindsight"};

bool lab_policy_find(const char *name, const struct cox_policy **policy)
{
    bool oracle = strcmp(name, "oracle") == 0;
    *policy = oracle                                  ? NULL
              : strcmp(name, lab_hindsight.name) == 0 ? &lab_hindsight
                                                      : cox_policy_find(name);
    return oracle || *policy;
}

/* A pass of a frame that is to be split. */
struct asked {
    const struct lab_world *world;
    struct lab_sharing *sharing;
    const struct lab_run *run;
    uint32_t pass;
};

/* Whether the pass of a frame has the split of the one before it, as in the runtime. */
static bool shares(const struct lab_sim *sim, const struct lab_run *run, uint32_t pass)
{
    return pass > 0 && sim->policy && sim->policy != &lab_hindsight && !sim->policy->next &&
           !sim->options->split_each_pass && run->shapes[pass].rows == run->shapes[pass - 1].rows &&
           run->shapes[pass].granule == run->shapes[pass - 1].granule;
}

/* The first of the passes that share a split with this one, and how many they are. */
static uint32_t lead_of(const struct lab_sim *sim, const struct lab_run *run, uint32_t pass,
                        uint32_t *count)
{
    uint32_t lead = pass, end = pass + 1;
    while (shares(sim, run, lead))
        lead--;
    while (end < sim->pass_count && shares(sim, run, end))
        end++;
    *count = end - lead;
    return lead;
}

static struct asked asked_of(struct lab_sim *sim, const struct lab_run *run)
{
    struct lab_sharing *sharing = &sim->sharing[run->pass];
    return (struct asked){sharing->world, sharing, run, run->pass};
}

static double expected(const struct lab_sim *sim, const struct asked *of, uint32_t d,
                       uint32_t first_row, uint32_t rows, uint32_t launch)
{
    struct lab_launch asked = {.frame = sim->view.frame,
                               .device = d,
                               .first_row = first_row,
                               .rows = rows,
                               .launch = launch,
                               .pass = of->pass};
    return of->world->expected_ns(of->world->ctx, &asked) +
           lab_queue_moved_ns(sim, of->pass, sim->view.rows, &of->run->before, d, first_row, rows);
}

/* The pass's time if the pool is shared out so that all end together; negative if a band is on a device that does not
 * answer. */
static double expected_frame(const struct lab_sim *sim, const struct asked *of)
{
    const struct cox_split *split = &of->sharing->split;
    const struct lab_world *world = of->world;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t launches[COX_DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < split->band_count; i++) {
        const struct cox_band *band = &split->bands[i];
        if (!sim->workers[band->device].alive)
            return -1;
        work_ns[band->device] += expected(sim, of, band->device, band->first_row, band->rows,
                                          launches[band->device]++);
    }
    double ns = lab_makespan(world, sim->view.frame, work_ns);
    if (split->pool_rows == 0)
        return ns;

    double begin_ns[COX_DEVICES_MAX], row_ns[COX_DEVICES_MAX], slower[COX_DEVICES_MAX];
    uint32_t all = 0;
    for (uint32_t d = 0; d < world->device_count; d++)
        if (sim->workers[d].usable && sim->workers[d].alive)
            all |= 1u << d;
    double high = HUGE_VAL;
    for (uint32_t d = 0; d < world->device_count; d++) {
        if (!(all & 1u << d))
            continue;
        double whole_ns = expected(sim, of, d, split->pool_first_row, split->pool_rows,
                                   launches[d]);
        uint32_t half = split->pool_rows / 2;
        row_ns[d] = half == 0 ? whole_ns
                              : (whole_ns -
                                 expected(sim, of, d, split->pool_first_row, half, launches[d])) /
                                    (split->pool_rows - half);
        row_ns[d] = fmax(row_ns[d], 1e-6);
        begin_ns[d] = work_ns[d] + fmax(0, whole_ns - row_ns[d] * split->pool_rows);
        slower[d] = world->slowdown ? world->slowdown(world->ctx, sim->view.frame, d, all) : 1;
        high = fmin(high, (begin_ns[d] + row_ns[d] * split->pool_rows) * slower[d]);
    }
    double low = 0;
    for (int step = 0; step < 40; step++) {
        double middle = low + (high - low) / 2;
        double rows = 0;
        for (uint32_t d = 0; d < world->device_count; d++)
            if (all & 1u << d)
                rows += fmax(0, (middle / slower[d] - begin_ns[d]) / row_ns[d]);
        if (rows >= split->pool_rows)
            high = middle;
        else
            low = middle;
    }
    return fmax(ns, high);
}

/* --- the session --- */

/* Policy, frame, what is wrong, and the bands, once a run. */
static void describe_refusal(struct lab_sim *sim, const struct cox_split *split, const char *what)
{
    if (!sim->why || sim->why_bytes == 0 || sim->why[0])
        return;
    char bands[BANDS_TEXT] = "";
    size_t used = 0;
    uint32_t count = split->band_count < COX_BANDS_MAX ? split->band_count : COX_BANDS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox_band *band = &split->bands[i];
        int more = snprintf(bands + used, sizeof bands - used, "%s%" PRIu32 ":%" PRIu32 "+%" PRIu32,
                            i ? " " : "", band->device, band->first_row, band->rows);
        if (more < 0 || (size_t)more >= sizeof bands - used) {
            memcpy(bands + sizeof bands - 4, "...", 4);
            break;
        }
        used += (size_t)more;
    }
    char pool[64] = "";
    if (split->pool_rows > 0)
        snprintf(pool, sizeof pool, ", pool %" PRIu32 "+%" PRIu32, split->pool_first_row,
                 split->pool_rows);
    snprintf(sim->why, sim->why_bytes,
             "policy '%s', frame %" PRIu64 ": %s (device:first row+rows: %s%s)", sim->policy->name,
             sim->view.frame, what, bands, pool);
}

static void whole_frame(const struct lab_sim *sim, uint32_t pass, struct cox_split *split)
{
    *split = (struct cox_split){.band_count = 1, .reason = COX_REASON_SINGLE};
    split->bands[0] = (struct cox_band){.device = lab_machine_best(sim, pass),
                                        .rows = sim->view.rows};
}

static struct cox_split split_of_oracle(const struct lab_sim *sim, const struct lab_oracle *oracle)
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

/* The oracle and hindsight. */
static void decide_by_oracle(struct lab_sim *sim, struct lab_sharing *sharing,
                             const struct lab_oracle *oracle)
{
    sharing->split = split_of_oracle(sim, sim->policy ? &sharing->before : oracle);
    if (cox_split_check(&sharing->split, &sim->view, NULL, 0))
        sharing->split = split_of_oracle(sim, oracle);
    sharing->before = *oracle;
}

static cox_status decide(struct lab_sim *sim, const struct asked *of, struct lab_sim_frame *out)
{
    struct lab_sharing *sharing = of->sharing;
    struct cox_split split = {0};
    char what[160] = "";
    cox_status status = sim->policy->split(sharing->state, &sim->view, &split);
    if (status)
        snprintf(what, sizeof what, "no split: %s", cox_status_text(status));
    else
        status = cox_split_check(&split, &sim->view, what, sizeof what);
    if (status == COX_OK && split.pool_rows > 0 && !sim->policy->next) {
        snprintf(what, sizeof what,
                 "rows are left in a pool, and the policy has no function that hands them out");
        status = COX_E_POLICY;
    }
    if (status == COX_OK) {
        sharing->split = split;
        sharing->split_made = true;
        return COX_OK;
    }
    describe_refusal(sim, &split, what);
    out->refused = 1;
    if (!sharing->split_made)
        return COX_E_POLICY;
    sharing->split.shadow.rows = 0;
    if (cox_split_check(&sharing->split, &sim->view, NULL, 0))
        whole_frame(sim, of->pass, &sharing->split);
    return COX_OK;
}

/* The split of the pass before; without a device that is gone. */
static void decide_as_before(struct lab_sim *sim, const struct asked *of)
{
    struct cox_split *split = &of->sharing->split;
    *split = of->run->split;
    split->reason = COX_REASON_SHARED;
    split->predicted_ns = split->alternative_ns = 0;
    memset(split->device_ns, 0, sizeof split->device_ns);
    if (cox_split_check(split, &sim->view, NULL, 0))
        whole_frame(sim, of->pass, split);
}

/* What a device took for passes that share a split. False: it had no rows, or not the same in each. */
static bool sum_passes(const struct lab_run *run, uint32_t lead, uint32_t count, uint32_t device,
                       struct cox_measurement *sum)
{
    uint32_t rows[COX_PASSES_MAX] = {0};
    bool even = true;
    *sum = (struct cox_measurement){.frame = run->frame, .device = device};
    for (uint32_t i = 0; i < run->measured_count; i++) {
        const struct cox_measurement *band = &run->measured[i];
        if (band->device != device || run->measured_passes[i] < lead ||
            run->measured_passes[i] >= lead + count)
            continue;
        even = even && !band->flags;
        sum->kernel_ns = band->kernel_ns && (!sum->wall_ns || sum->kernel_ns)
                             ? sum->kernel_ns + band->kernel_ns
                             : 0;
        sum->wall_ns += band->wall_ns;
        sum->queue_ns += band->queue_ns;
        if (run->measured_passes[i] == lead && (!sum->rows || band->first_row < sum->first_row))
            sum->first_row = band->first_row;
        rows[run->measured_passes[i]] += band->rows;
        sum->rows = rows[lead];
    }
    for (uint32_t p = lead; p < lead + count; p++)
        even = even && rows[p] == sum->rows;
    return even && sum->rows > 0;
}

/* Tell the policy of the bands of the pass under way; of passes that share a split together, at the end of the last. */
static void observe_bands(struct lab_sim *sim, struct lab_run *run, uint32_t lead, uint32_t count)
{
    const bool last = run->pass + 1 == lead + count, told = sim->policy && sim->policy->observe;
    for (uint32_t i = 0; told && last && i < run->measured_count; i++) {
        const uint32_t pass = run->measured_passes[i];
        const bool together = count > 1 && pass >= lead &&
                              pass < lead + count; /* else: a shadow of another pass */
        if (!together || run->measured[i].flags & COX_MEASURED_UNFINISHED)
            sim->policy->observe(sim->sharing[together ? lead : pass].state, &run->measured[i]);
    }
    for (uint32_t d = 0; told && last && count > 1 && d < sim->view.device_count; d++) {
        struct cox_measurement sum;
        if (sum_passes(run, lead, count, d, &sum))
            sim->policy->observe(sim->sharing[lead].state, &sum);
    }
    if (last)
        run->measured_count = 0;
}

/* Tell the policy what the pass under way cost: between two passes, and, of the last one, at the frame's delivery. */
static void observe_pass(struct lab_sim *sim, struct lab_run *run, double joules)
{
    uint32_t count;
    const uint32_t lead = lead_of(sim, run, run->pass, &count);
    struct lab_sharing *sharing = &sim->sharing[lead];
    observe_bands(sim, run, lead, count);
    if (run->pass + 1 < lead + count)
        return;
    double begin_ns = fmax(run->split_ns, sharing->ended_ns);
    struct cox_frame_measurement whole = {.frame = run->frame,
                                          .wall_ns = lab_whole(run->end_ns - run->split_ns),
                                          .period_ns = lab_whole(run->end_ns - begin_ns),
                                          .joules = joules,
                                          .latency_ns = lab_whole(sim->now_ns - run->submit_ns),
                                          .deadline_ns = sim->options->policy.deadline_ns};
    if (sim->policy && sim->policy->observe_frame)
        sim->policy->observe_frame(sharing->state, &whole);
    sharing->ended_ns = fmax(sharing->ended_ns, run->end_ns);
}

/* Joules of the frame, by the first pass's world: they are the machine's. */
static double end_frame(const struct lab_sim *sim, uint64_t frame, const double *busy_ns,
                        double wall_ns)
{
    double joules = -1;
    for (uint32_t p = sim->pass_count; p-- > 0;) {
        const struct lab_world *world = sim->sharing[p].world;
        if (world->end_frame)
            joules = world->end_frame(world->ctx, frame, busy_ns, wall_ns);
    }
    return joules;
}

/* The oldest frame under way is done. */
static void deliver(struct lab_sim *sim)
{
    const struct lab_world *world = sim->world;
    struct lab_run *run = &sim->runs[sim->delivered % sim->run_count];
    struct lab_sim_frame *out = run->out;
    double busy_ns[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < world->device_count; d++) {
        busy_ns[d] = sim->workers[d].busy_ns;
        sim->workers[d].busy_ns = 0;
    }
    out->wall_ns = run->end_ns - run->began_ns;
    out->latency_ns = sim->now_ns - run->submit_ns;
    out->period_ns = sim->now_ns - sim->delivered_ns;
    if (out->expected_ns < 0)
        out->expected_ns = out->wall_ns;
    if (world->end_frame)
        out->joules = end_frame(sim, run->frame, busy_ns, out->period_ns);
    observe_pass(sim, run, sim->pass_count == 1 ? out->joules : -1); /* no pass's alone are known */
    sim->delivered_ns = sim->now_ns;
    sim->ready_ns = sim->now_ns;
    if (world->hand_over_ns && sim->started < world->frames)
        sim->ready_ns += world->hand_over_ns(world->ctx, sim->started);
    lab_machine_note_idle(sim);
    run->open = false;
    sim->delivered++;
}

static bool knows_all(const struct lab_sim *sim)
{
    return !sim->policy || sim->policy == &lab_hindsight;
}

/* Each pass's rows and granule, and which devices answer. */
static bool find_shapes(struct lab_sim *sim, uint64_t frame, struct lab_shape *shapes, bool *alive)
{
    bool good = true;
    for (uint32_t p = sim->pass_count; p-- > 0;) {
        const struct lab_world *world = sim->sharing[p].world;
        struct lab_shape *shape = &shapes[p];
        *shape = (struct lab_shape){0};
        world->begin_frame(world->ctx, frame, &shape->rows, &shape->granule, alive);
        good = good && shape->rows > 0 && shape->granule > 0 && shape->rows <= INT32_MAX &&
               shape->granule <= shape->rows;
    }
    return good;
}

static bool begin_frame(struct lab_sim *sim, struct lab_run *run, uint64_t frame)
{
    bool alive[COX_DEVICES_MAX] = {false};
    bool any = false;
    bool good = find_shapes(sim, frame, run->shapes, alive);
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_worker *worker = &sim->workers[d];
        any |= alive[d];
        lab_machine_set_alive(sim, d, alive[d]);
        if (frame == 0) {
            worker->usable = worker->alive;
            worker->ask_in = worker->ask_pause = 1;
        }
        if (knows_all(sim))
            worker->ask_in = 1;
        if (worker->usable || --worker->ask_in > 0)
            continue;
        worker->usable = worker->alive;
        worker->ask_pause = 2 * worker->ask_pause < ASK_PAUSE_MAX ? 2 * worker->ask_pause
                                                                  : ASK_PAUSE_MAX;
        worker->ask_in = worker->ask_pause;
    }
    lab_machine_ask_all_if_none(sim);
    return any && good;
}

/* What is asked from now on is about this pass of the frame. */
static void look_at(struct lab_sim *sim, uint64_t frame, const struct lab_shape *shape)
{
    sim->view.frame = frame;
    sim->view.rows = shape->rows;
    sim->view.granule = shape->granule;
}

/* What the policy may know of the devices, for so many passes that share a split. */
static void show_devices(struct lab_sim *sim, const struct lab_sharing *sharing, uint32_t count,
                         bool warmed_up)
{
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct cox_sched_device *device = &sim->devices[d];
        device->usable = sim->workers[d].usable;
        device->hint = sim->world->hints ? sim->world->hints[d] : 1;
        bool known = warmed_up && sim->warmed[d] && !sim->options->no_solo;
        double solo_ns = 0;
        for (uint32_t p = 0; p < count; p++)
            solo_ns += sharing[p].solo_ns[d] * sim->view.rows / sharing[p].solo_rows;
        device->solo_ns = known ? lab_whole(solo_ns) : 0;
    }
}

static void warm_up(struct lab_sim *sim, uint32_t pass, const struct lab_shape *shape)
{
    struct lab_sharing *sharing = &sim->sharing[pass];
    sharing->solo_rows = shape->rows;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_launch launch = {
            .device = d, .rows = shape->rows, .launch = LAB_LAUNCH_WARMUP, .pass = pass};
        sharing->solo_ns[d] = sharing->world->launch_ns(sharing->world->ctx, &launch);
        sim->warmed[d] = sim->workers[d].alive;
    }
}

/* As in the runtime, before the warm-up. */
static cox_status init_policy(struct lab_sim *sim, uint32_t pass)
{
    struct lab_sharing *sharing = &sim->sharing[pass];
    show_devices(sim, sharing, 1, false);
    cox_status status = COX_OK;
    if (sim->policy->init)
        status = sim->policy->init(sharing->state, &sim->view, &sim->options->policy);
    if (status == COX_OK && sim->options->profiles && sim->policy->load_profile && pass == 0)
        sim->policy->load_profile(sharing->state, &sim->view, sim->options->profiles);
    return status;
}

/* Before the first frame: every pass's. */
static cox_status begin_passes(struct lab_sim *sim, const struct lab_shape *shapes)
{
    cox_status status = COX_OK;
    for (uint32_t p = 0; p < sim->pass_count && status == COX_OK; p++) {
        look_at(sim, 0, &shapes[p]);
        warm_up(sim, p, &shapes[p]);
        if (sim->policy)
            status = init_policy(sim, p);
    }
    return status;
}

/* A pass's world with what rows cost that move after the oracle's pass before. */
struct moving {
    const struct lab_sim *sim;
    const struct asked *of;
};

static double moving_expected_ns(void *ctx, const struct lab_launch *launch)
{
    const struct moving *moving = ctx;
    const struct asked *of = moving->of;
    return of->world->expected_ns(of->world->ctx, launch) +
           lab_queue_moved_ns(moving->sim, of->pass, moving->sim->view.rows, &of->run->oracle,
                              launch->device, launch->first_row, launch->rows);
}

static double moving_slowdown(void *ctx, uint64_t frame, uint32_t device, uint32_t active)
{
    const struct lab_world *world = ((const struct moving *)ctx)->of->world;
    return world->slowdown(world->ctx, frame, device, active);
}

static void find_oracle(struct lab_sim *sim, const struct asked *of, uint64_t frame,
                        struct lab_oracle *oracle)
{
    bool alive[COX_DEVICES_MAX];
    struct moving moving = {sim, of};
    const struct lab_world world = {.ctx = &moving,
                                    .device_count = sim->view.device_count,
                                    .frames = sim->world->frames,
                                    .expected_ns = moving_expected_ns,
                                    .slowdown = of->world->slowdown ? moving_slowdown : NULL};
    for (uint32_t d = 0; d < world.device_count; d++)
        alive[d] = sim->workers[d].alive;
    lab_oracle_find(&world, frame, sim->view.rows, sim->view.granule, alive, oracle);
}

static bool same_done(const struct lab_done *a, const struct lab_done *b)
{
    return a->count == b->count && a->rows == b->rows &&
           memcmp(a->bands, b->bands, a->count * sizeof *a->bands) == 0;
}

static const struct lab_oracle *oracle_of(struct lab_sim *sim, const struct asked *of,
                                          uint64_t frame)
{
    struct lab_sharing *sharing = of->sharing;
    const struct lab_world *world = of->world;
    const bool kept = sim->options->oracles && of->pass == 0;
    uint64_t condition = world->condition ? world->condition(world->ctx, frame) : 0;
    struct lab_oracle *oracle = kept ? &sim->options->oracles[frame] : &sharing->scratch;
    const bool same = of->pass == 0 || same_done(&sharing->scratch_before, &of->run->oracle);
    if (condition != 0 && oracle->condition == condition && same)
        return oracle;
    /* Constant stretches: what the frame before found. */
    const struct lab_oracle *before = kept && frame > 0 ? oracle - 1 : &sharing->scratch;
    if (condition != 0 && before->condition == condition && same) {
        *oracle = *before;
        return oracle;
    }
    find_oracle(sim, of, frame, oracle);
    oracle->condition = condition;
    if (of->pass > 0)
        sharing->scratch_before = of->run->oracle;
    return oracle;
}

/* What oracle and best device would have needed for this pass, with the chance of this frame. */
static void compare(struct lab_sim *sim, const struct asked *of, const struct lab_oracle *oracle,
                    struct lab_sim_frame *out)
{
    const struct lab_world *world = of->world;
    uint64_t frame = sim->view.frame;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t first_row = 0;
    for (uint32_t d = 0; d < world->device_count; d++) {
        struct lab_launch launch = {.frame = frame,
                                    .device = d,
                                    .first_row = first_row,
                                    .rows = oracle->rows[d],
                                    .pass = of->pass};
        if (launch.rows > 0)
            work_ns[d] = world->launch_ns(world->ctx, &launch) +
                         lab_queue_moved_ns(sim, of->pass, sim->view.rows, &of->run->oracle, d,
                                            first_row, launch.rows);
        first_row += launch.rows;
        out->oracle_rows[d] += launch.rows;
    }
    const double pause_ns = of->pass > 0 ? world->before_ns : 0;
    out->oracle_ns += pause_ns + lab_makespan(world, frame, work_ns);
    out->oracle_expected_ns += pause_ns + oracle->expected_ns;
    struct lab_launch solo = {
        .frame = frame, .device = oracle->solo, .rows = sim->view.rows, .pass = of->pass};
    double slower = world->slowdown
                        ? world->slowdown(world->ctx, frame, solo.device, 1u << solo.device)
                        : 1;
    out->solo_ns += pause_ns + world->launch_ns(world->ctx, &solo) * slower;
}

static bool same_bands(const struct cox_split *a, const struct cox_split *b)
{
    return a->band_count == b->band_count && a->pool_rows == b->pool_rows &&
           (a->pool_rows == 0 || a->pool_first_row == b->pool_first_row) &&
           memcmp(a->bands, b->bands, a->band_count * sizeof a->bands[0]) == 0;
}

/* With no frame under way the clock begins anew: what a frame takes does not depend on how many there were before. */
static void set_clock_back(struct lab_sim *sim)
{
    double by_ns = sim->now_ns;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_worker *worker = &sim->workers[d];
        worker->known_ns -= by_ns;
        for (uint32_t i = 0; i < worker->task_count; i++) {
            worker->tasks[i].queued_ns -= by_ns;
            worker->tasks[i].since_ns -= by_ns;
            worker->tasks[i].ended_ns -= by_ns;
            worker->tasks[i].known_ns -= by_ns;
        }
    }
    sim->delivered_ns -= by_ns;
    for (uint32_t p = 0; p < sim->pass_count; p++)
        sim->sharing[p].ended_ns -= by_ns;
    sim->ready_ns -= by_ns;
    sim->free_ns -= by_ns;
    sim->base_ns += by_ns;
    sim->now_ns = 0;
}

/* What the split of a pass says of the frame. */
static void note_split(const struct lab_sim *sim, const struct asked *of, bool moved,
                       struct lab_sim_frame *out)
{
    const struct cox_split *split = &of->sharing->split;
    out->moved |= moved;
    if (of->pass == 0)
        out->reason = split->reason;
    out->predicted_ns += (double)split->predicted_ns;
    out->alternative_ns += (double)split->alternative_ns;
    if (sim->options->no_oracle)
        return;
    const double ns = expected_frame(sim, of);
    out->expected_ns = ns < 0 || out->expected_ns < 0 ? -1 : out->expected_ns + ns;
    if (of->pass > 0 && out->expected_ns >= 0)
        out->expected_ns += of->world->before_ns;
}

/* Which rows are whose in the oracle's split of the pass, for the next one. */
static void keep_oracle(const struct lab_sim *sim, const struct lab_oracle *oracle,
                        struct lab_done *out)
{
    uint32_t first_row = 0;
    *out = (struct lab_done){.rows = sim->view.rows};
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        if (oracle->rows[d] > 0)
            out->bands[out->count++] = (struct cox_band){d, first_row, oracle->rows[d]};
        first_row += oracle->rows[d];
    }
}

/* Split the pass that the run is at, and begin it. */
static cox_status begin_pass(struct lab_sim *sim, struct lab_run *run)
{
    const struct asked of = asked_of(sim, run);
    struct lab_sim_frame *out = run->out;
    look_at(sim, run->frame, &run->shapes[run->pass]);
    uint32_t count;
    const uint32_t lead = lead_of(sim, run, run->pass, &count);
    show_devices(sim, &sim->sharing[lead], count, true);
    sim->view.shadow = !sim->options->no_shadow && count == 1;
    sim->view.waited_ns = lab_whole(sim->now_ns - run->submit_ns);
    sim->view.deadline_ns = sim->options->policy.deadline_ns;
    const bool asks = knows_all(sim);
    const struct lab_oracle *oracle = asks || !sim->options->no_oracle
                                          ? oracle_of(sim, &of, run->frame)
                                          : NULL;
    if (!sim->options->no_oracle)
        compare(sim, &of, oracle, out);
    const struct cox_split before = of.sharing->split;
    if (asks)
        decide_by_oracle(sim, of.sharing, oracle);
    cox_status status = COX_OK;
    if (!asks && lead != run->pass)
        decide_as_before(sim, &of);
    else if (!asks)
        status = decide(sim, &of, out);
    if (status)
        return status;
    if (oracle && sim->pass_count > 1)
        keep_oracle(sim, oracle, &run->oracle);
    note_split(sim, &of, run->frame > 0 && !same_bands(&before, &of.sharing->split), out);
    run->between = false;
    run->rows = sim->view.rows;
    run->granule = sim->view.granule;
    run->split = of.sharing->split;
    run->start_ns = run->end_ns = sim->now_ns;
    if (lead == run->pass)
        run->split_ns = run->start_ns;
    return COX_OK;
}

/* The frame's next pass, whose turn it is. */
static cox_status begin_next_pass(struct lab_sim *sim, struct lab_run *run)
{
    const uint64_t latest = sim->view.frame;
    const cox_status status = begin_pass(sim, run);
    sim->view.frame = latest;
    if (status == COX_OK)
        lab_machine_begin(sim, run);
    return status;
}

/* Split the next frame. */
static cox_status start_frame(struct lab_sim *sim)
{
    uint64_t frame = sim->started;
    struct lab_run *run = &sim->runs[frame % sim->run_count];
    struct lab_sim_frame *out = &sim->out[frame];
    *out = (struct lab_sim_frame){.joules = -1};
    if (sim->started == sim->delivered)
        set_clock_back(sim);
    if (!begin_frame(sim, run, frame))
        return COX_E_INVALID;
    cox_status status = frame == 0 ? begin_passes(sim, run->shapes) : COX_OK;
    if (status)
        return status;
    run->submit_ns = fmin(sim->ready_ns, sim->now_ns);
    run->frame = frame;
    run->pass = 0;
    run->out = out;
    run->measured_count = 0;
    status = begin_pass(sim, run);
    if (status)
        return status;
    run->open = true;
    run->began_ns = run->start_ns;
    sim->started++;
    lab_machine_begin(sim, run);
    return COX_OK;
}

/* A frame goes from one pass to the next. Returns whether one did. */
static bool advance_passes(struct lab_sim *sim, cox_status *status)
{
    for (uint64_t f = sim->delivered; f < sim->started && sim->pass_count > 1; f++) {
        struct lab_run *run = lab_run_of(sim, f);
        if (run->between && run->ready_ns <= sim->now_ns) {
            *status = begin_next_pass(sim, run);
            return true;
        }
        if (run->between || run->done_rows < run->rows || run->pass + 1 == sim->pass_count)
            continue;
        observe_pass(sim, run, -1);
        run->before = run->done;
        run->pass++;
        run->between = true;
        run->ready_ns = sim->now_ns + sim->sharing[run->pass].world->before_ns;
        return true;
    }
    return false;
}

/* One deed of the engine's thread; false if there is nothing to do. */
static bool act(struct lab_sim *sim, cox_status *status)
{
    const struct lab_run *oldest = &sim->runs[sim->delivered % sim->run_count];
    if (lab_machine_notice(sim))
        return true;
    if (advance_passes(sim, status))
        return true;
    if (oldest->open && !oldest->between && oldest->done_rows == oldest->rows) {
        deliver(sim);
        return true;
    }
    if (lab_machine_may_start(sim) && sim->ready_ns <= sim->now_ns) {
        *status = start_frame(sim);
        return true;
    }
    return lab_machine_dispatch(sim);
}

static cox_status run(struct lab_sim *sim)
{
    cox_status status = COX_OK;
    while (sim->delivered < sim->world->frames && status == COX_OK) {
        if (!lab_machine_awake(sim)) {
            if (!lab_machine_advance(sim))
                return COX_E_INVALID;
        } else if (act(sim, &status)) {
            sim->free_ns = sim->now_ns + (sim->stall_ns > 0 ? sim->stall_ns : sim->world->busy_ns);
            sim->stall_ns = 0;
        } else {
            sim->asleep = true;
        }
    }
    return status;
}

/* False if out of memory. */
static bool make_passes(struct lab_sim *sim)
{
    const struct cox_policy *policy = sim->policy;
    const size_t bytes = policy && policy->state_bytes ? policy->state_bytes(sim->view.device_count)
                                                       : 0;
    for (const struct lab_world *world = sim->world; world && sim->pass_count < COX_PASSES_MAX;
         world = world->next_pass) {
        struct lab_sharing *sharing = &sim->sharing[sim->pass_count++];
        sharing->world = world;
        sharing->state = calloc(1, bytes ? bytes : 1);
        if (!sharing->state)
            return false;
    }
    return true;
}

cox_status lab_simulate(const struct lab_world *world, const struct cox_policy *policy,
                        const struct lab_sim_options *options, uint64_t seed,
                        struct lab_sim_frame *out, char *why, size_t why_bytes)
{
    static const struct lab_sim_options defaults;
    options = options ? options : &defaults;
    if (why && why_bytes > 0)
        why[0] = '\0';
    if (world->device_count == 0 || world->device_count > COX_DEVICES_MAX || world->frames == 0)
        return COX_E_INVALID;
    uint32_t in_flight = options->in_flight ? options->in_flight : 1;
    if (in_flight > LAB_IN_FLIGHT_MAX)
        return COX_E_INVALID;
    struct lab_sim *sim = calloc(1, sizeof *sim);
    cox_status status = COX_E_NOMEM;
    if (!sim)
        return status;
    *sim = (struct lab_sim){.world = world,
                            .policy = policy,
                            .options = options,
                            .why = why,
                            .why_bytes = why_bytes,
                            .run_count = in_flight,
                            .out = out,
                            .view = {.device_count = world->device_count,
                                     .devices = sim->devices,
                                     .min_band_rows = options->min_band_rows,
                                     .in_flight = in_flight,
                                     .pool = policy && policy->next && !options->no_pool,
                                     .shadow = !options->no_shadow}};
    sim->runs = calloc(in_flight, sizeof *sim->runs);
    if (sim->runs && make_passes(sim)) {
        for (uint32_t p = 0; p < sim->pass_count; p++)
            sim->sharing[p].world->begin_run(sim->sharing[p].world->ctx, seed);
        status = run(sim);
    }
    for (uint32_t p = 0; p < sim->pass_count; p++)
        free(sim->sharing[p].state);
    free(sim->runs);
    free(sim);
    return status;
}
