/* One simulated session: calls the policy as the runtime would, starts frames and passes, and
 * delivers frames. virtual_time.c says when, handout.c does the rest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session_state.h"
#include "common/policies/registry.h"
#include "common/strict_fp.h"

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
    *policy = NULL;
    if (strcmp(name, "oracle") == 0)
        return true;

    if (strcmp(name, lab_hindsight.name) == 0)
        *policy = &lab_hindsight;
    else
        *policy = program_policy_find(name);
    return *policy;
}

/* Oracle and hindsight: no policy's functions are called. */
static bool knows_all(const struct lab_sim *sim)
{
    return !sim->policy || sim->policy == &lab_hindsight;
}

/* --- passes that share a split --- */

/* Whether the policy gives each pass rows on demand, as in the runtime. */
static bool needs_pool(const struct cox_policy *policy)
{
    return policy->assign && policy != cox_policy_find("adaptive");
}

/* Whether this pass of a frame uses the split of the pass before, as in the runtime. */
static bool shares(const struct lab_sim *sim, const struct lab_run *run, uint32_t pass)
{
    return pass > 0 && !knows_all(sim) && !needs_pool(sim->policy) &&
           !sim->options->split_each_pass && run->shapes[pass].rows == run->shapes[pass - 1].rows &&
           run->shapes[pass].row_alignment == run->shapes[pass - 1].row_alignment;
}

/* The first of the passes that share a split with this one, and their number. */
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

/* --- splits --- */

/* Describe the first refused split of a run: policy, frame, fault, bands. */
static void describe_refusal(struct lab_sim *sim, const struct cox_split *split, const char *what)
{
    char bands[BANDS_TEXT] = "", pool[64] = "";
    size_t used = 0;

    if (!sim->why || sim->why_bytes == 0 || sim->why[0])
        return;

    for (uint32_t i = 0; i < split->band_count && i < COX_BANDS_MAX; i++) {
        const struct cox_band *band = &split->bands[i];
        const int more = snprintf(bands + used, sizeof bands - used,
                                  "%s%" PRIu32 ":%" PRIu32 "+%" PRIu32, i ? " " : "", band->device,
                                  band->first_row, band->rows);
        if (more < 0 || (size_t)more >= sizeof bands - used) {
            memcpy(bands + sizeof bands - 4, "...", 4);
            break;
        }
        used += (size_t)more;
    }

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
    split->bands[0] = (struct cox_band){.device = lab_handout_best(sim, pass),
                                        .rows = sim->view.rows};
}

/* The split of the oracle or of hindsight. */
static void decide_by_oracle(struct lab_sim *sim, struct lab_sharing *sharing,
                             const struct lab_oracle *oracle)
{
    const struct lab_oracle *from = oracle;
    if (sim->policy == &lab_hindsight)
        from = &sharing->before;

    sharing->split = lab_pass_oracle_split(sim, from);
    if (cox_split_check(&sharing->split, &sim->view, NULL, 0))
        sharing->split = lab_pass_oracle_split(sim, oracle);
    sharing->before = *oracle;
}

static cox_status decide(struct lab_sim *sim, const struct lab_run *run)
{
    struct lab_sharing *sharing = &sim->sharing[run->pass];
    struct cox_split split = {0};
    char what[160] = "";
    cox_status status = COX_OK;

    if (sim->options->splits)
        split = sim->options->splits[run->frame];
    else
        status = sim->policy->split(sharing->state, &sim->view, &split);

    if (status)
        snprintf(what, sizeof what, "no split: %s", cox_status_text(status));
    else
        status = cox_split_check(&split, &sim->view, what, sizeof what);
    if (status == COX_OK && split.pool_rows > 0 && !sim->policy->assign) {
        snprintf(what, sizeof what,
                 "rows are left in the pool, but the policy cannot hand them out");
        status = COX_E_POLICY;
    }

    if (status == COX_OK) {
        sharing->split = split;
        sharing->split_made = true;
        return COX_OK;
    }

    /* A refused split: use the last good one, or one device alone. */
    describe_refusal(sim, &split, what);
    run->out->refused = 1;
    if (!sharing->split_made)
        return COX_E_POLICY;
    sharing->split.shadow.rows = 0;
    if (cox_split_check(&sharing->split, &sim->view, NULL, 0))
        whole_frame(sim, run->pass, &sharing->split);
    return COX_OK;
}

/* Use the split of the pass before, or one device alone if a device of it is gone. */
static void decide_as_before(struct lab_sim *sim, const struct lab_run *run)
{
    struct cox_split *split = &sim->sharing[run->pass].split;

    *split = run->split;
    split->reason = COX_REASON_SHARED;
    split->predicted_ns = split->rejected_ns = 0;
    memset(split->device_ns, 0, sizeof split->device_ns);
    if (cox_split_check(split, &sim->view, NULL, 0))
        whole_frame(sim, run->pass, split);
}

/* --- measurements --- */

/* Add up the times of a device in passes that share a split. False if it had no rows, or not as
 * many in each pass. */
static bool sum_passes(const struct lab_run *run, uint32_t lead, uint32_t count, uint32_t device,
                       struct cox_measurement *sum)
{
    uint32_t rows[COX_PASSES_MAX] = {0};
    bool even = true, all_kernels = true;

    *sum = (struct cox_measurement){.frame = run->frame, .device = device};
    for (uint32_t i = 0; i < run->measured_count; i++) {
        const struct cox_measurement *band = &run->measured[i];
        const uint32_t pass = run->measured_passes[i];
        if (band->device != device || pass < lead || pass >= lead + count)
            continue;

        even = even && !band->flags;
        all_kernels = all_kernels && band->kernel_ns;
        sum->kernel_ns += band->kernel_ns;
        sum->wall_ns += band->wall_ns;
        sum->queue_ns += band->queue_ns;
        sum->late_ns += band->late_ns;
        if (pass == lead && (!sum->rows || band->first_row < sum->first_row))
            sum->first_row = band->first_row;
        rows[pass] += band->rows;
        sum->rows = rows[lead];
    }

    if (!all_kernels)
        sum->kernel_ns = 0;
    for (uint32_t p = lead; p < lead + count; p++)
        even = even && rows[p] == sum->rows;
    return even && sum->rows > 0;
}

/* Pass the measured bands to the policy. Passes that share a split are one measurement, at the end
 * of the last pass. */
static void observe_bands(struct lab_sim *sim, struct lab_run *run, uint32_t lead, uint32_t count)
{
    const bool observes = sim->policy && sim->policy->observe;

    if (run->pass + 1 < lead + count)
        return;

    for (uint32_t i = 0; observes && i < run->measured_count; i++) {
        const struct cox_measurement *band = &run->measured[i];
        const uint32_t pass = run->measured_passes[i];

        /* Outside of the shared passes: a shadow of another pass. */
        if (count == 1 || pass < lead || pass >= lead + count)
            sim->policy->observe(sim->sharing[pass].state, band);
        else if (band->flags & COX_MEASURED_UNFINISHED)
            sim->policy->observe(sim->sharing[lead].state, band);
    }

    for (uint32_t d = 0; observes && count > 1 && d < sim->view.device_count; d++) {
        struct cox_measurement sum;
        if (sum_passes(run, lead, count, d, &sum))
            sim->policy->observe(sim->sharing[lead].state, &sum);
    }
    run->measured_count = 0;
}

/* Report the current pass to the policy: between two passes, and at delivery for the last one. */
static void observe_pass(struct lab_sim *sim, struct lab_run *run, double joules)
{
    uint32_t count;
    const uint32_t lead = lead_of(sim, run, run->pass, &count);
    struct lab_sharing *sharing = &sim->sharing[lead];

    observe_bands(sim, run, lead, count);
    if (run->pass + 1 < lead + count)
        return;

    const double begin_ns = fmax(run->split_ns, sharing->ended_ns);
    const struct cox_frame_measurement whole = {
        .frame = run->frame,
        .wall_ns = lab_whole(run->end_ns - run->split_ns),
        .period_ns = lab_whole(run->end_ns - begin_ns),
        .joules = joules,
        .latency_ns = lab_whole(sim->now_ns - run->submit_ns),
        .deadline_ns = sim->options->policy.deadline_ns};
    if (sim->policy && sim->policy->observe_frame)
        sim->policy->observe_frame(sharing->state, &whole);
    sharing->ended_ns = fmax(sharing->ended_ns, run->end_ns);
}

/* End the frame in each pass's world. The first one gives the joules of the machine. */
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

/* Deliver the oldest frame under way. */
static void deliver(struct lab_sim *sim)
{
    const struct lab_world *world = sim->world;
    struct lab_run *run = lab_run_of(sim, sim->delivered);
    struct lab_sim_frame *out = run->out;
    double busy_ns[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < world->device_count; d++) {
        busy_ns[d] = sim->workers[d].busy_ns;
        sim->workers[d].busy_ns = 0;
    }

    out->wall_ns = run->end_ns - run->began_ns;
    out->latency_ns = sim->now_ns - run->submit_ns;
    out->period_ns = sim->now_ns - sim->delivered_ns;
    out->exposed_ns = fmax(0, run->end_ns - fmax(run->began_ns, sim->ended_ns));
    sim->ended_ns = fmax(sim->ended_ns, run->end_ns);
    if (out->expected_ns < 0)
        out->expected_ns = out->wall_ns;
    if (world->end_frame)
        out->joules = end_frame(sim, run->frame, busy_ns, out->period_ns);

    /* The joules of one pass among several are not known. */
    observe_pass(sim, run, sim->pass_count == 1 ? out->joules : -1);

    sim->delivered_ns = sim->now_ns;
    sim->ready_ns = sim->now_ns;
    if (world->hand_over_ns && sim->started < world->frames)
        sim->ready_ns += world->hand_over_ns(world->ctx, sim->started);
    lab_time_note_idle(sim);
    run->open = false;
    sim->delivered++;
}

/* --- the view of the policy --- */

/* From now on the policy is asked about this pass of the frame. */
static void look_at(struct lab_sim *sim, uint64_t frame, const struct lab_shape *shape)
{
    sim->view.frame = frame;
    sim->view.rows = shape->rows;
    sim->view.row_alignment = shape->row_alignment;
}

/* What the policy may know of the devices, for `count` passes that share a split. */
static void show_devices(struct lab_sim *sim, const struct lab_sharing *sharing, uint32_t count,
                         bool warmed_up)
{
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct cox_sched_device *device = &sim->devices[d];
        double single_device_ns = 0;

        device->usable = sim->workers[d].usable;
        device->hint = sim->world->hints ? sim->world->hints[d] : 1;
        device->single_device_ns = 0;
        if (!warmed_up || !sim->warmed[d])
            continue;

        for (uint32_t p = 0; p < count; p++)
            single_device_ns += sharing[p].single_device_ns[d] * sim->view.rows /
                                sharing[p].solo_rows;
        device->single_device_ns = lab_whole(single_device_ns);
    }
}

/* --- frames --- */

/* Find each pass's rows and row alignment, and the devices that answer. False if a shape is invalid. */
static bool find_shapes(struct lab_sim *sim, uint64_t frame, struct lab_shape *shapes, bool *alive)
{
    bool good = true;

    for (uint32_t p = sim->pass_count; p-- > 0;) {
        const struct lab_world *world = sim->sharing[p].world;
        struct lab_shape *shape = &shapes[p];

        *shape = (struct lab_shape){0};
        world->begin_frame(world->ctx, frame, &shape->rows, &shape->row_alignment, alive);
        good = good && shape->rows > 0 && shape->row_alignment > 0 && shape->rows <= INT32_MAX &&
               shape->row_alignment <= shape->rows;
    }

    return good;
}

/* Begin the frame in the world, and ask lost devices whose turn it is. */
static bool begin_frame(struct lab_sim *sim, struct lab_run *run, uint64_t frame)
{
    bool alive[COX_DEVICES_MAX] = {false};
    bool any = false;
    const bool good = find_shapes(sim, frame, run->shapes, alive);

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_worker *worker = &sim->workers[d];

        any |= alive[d];
        lab_handout_set_alive(sim, d, alive[d]);
        if (frame == 0) {
            worker->usable = worker->alive;
            worker->ask_in = worker->ask_pause = 1;
        }
        if (knows_all(sim))
            worker->ask_in = 1;
        if (worker->usable || --worker->ask_in > 0)
            continue;

        worker->usable = worker->alive;
        worker->ask_pause *= 2;
        if (worker->ask_pause > ASK_PAUSE_MAX)
            worker->ask_pause = ASK_PAUSE_MAX;
        worker->ask_in = worker->ask_pause;
    }

    lab_handout_ask_all_if_none(sim);
    return any && good;
}

static void warm_up(struct lab_sim *sim, uint32_t pass, const struct lab_shape *shape)
{
    struct lab_sharing *sharing = &sim->sharing[pass];

    sharing->solo_rows = shape->rows;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        const struct lab_launch launch = {
            .device = d, .rows = shape->rows, .launch = LAB_LAUNCH_WARMUP, .pass = pass};
        sharing->single_device_ns[d] = sharing->world->launch_ns(sharing->world->ctx, &launch);
        sim->warmed[d] = sim->workers[d].alive;
    }
}

/* As in the runtime, a policy begins without solo times. */
static cox_status init_policy(struct lab_sim *sim, uint32_t pass)
{
    struct lab_sharing *sharing = &sim->sharing[pass];
    cox_status status = COX_OK;

    show_devices(sim, sharing, 1, false);
    if (sim->policy->init)
        status = sim->policy->init(sharing->state, &sim->view, &sim->options->policy);
    if (status == COX_OK && sim->options->profiles && sim->policy->load_profile && pass == 0)
        sim->policy->load_profile(sharing->state, &sim->view, sim->options->profiles);
    return status;
}

/* Before the first frame: warm up, and begin a policy for each pass. */
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

static bool same_bands(const struct cox_split *a, const struct cox_split *b)
{
    return a->band_count == b->band_count && a->pool_rows == b->pool_rows &&
           (a->pool_rows == 0 || a->pool_first_row == b->pool_first_row) &&
           memcmp(a->bands, b->bands, a->band_count * sizeof a->bands[0]) == 0;
}

/* With no frame under way the clock restarts at 0: the time of a frame must not depend on how many
 * frames there were before. */
static void set_clock_back(struct lab_sim *sim)
{
    const double by_ns = sim->now_ns;

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_worker *worker = &sim->workers[d];
        worker->known_ns -= by_ns;
        for (uint32_t i = 0; i < worker->task_count; i++) {
            worker->tasks[i].queued_ns -= by_ns;
            worker->tasks[i].given_ns -= by_ns;
            worker->tasks[i].since_ns -= by_ns;
            worker->tasks[i].ended_ns -= by_ns;
            worker->tasks[i].known_ns -= by_ns;
        }
    }
    for (uint32_t p = 0; p < sim->pass_count; p++)
        sim->sharing[p].ended_ns -= by_ns;

    sim->delivered_ns -= by_ns;
    sim->ended_ns -= by_ns;
    sim->ready_ns -= by_ns;
    sim->free_ns -= by_ns;
    sim->base_ns += by_ns;
    sim->now_ns = 0;
}

/* Add to the frame's figures what follows from the split of a pass. */
static void note_split(const struct lab_sim *sim, const struct lab_run *run, bool moved)
{
    const struct lab_sharing *sharing = &sim->sharing[run->pass];
    const struct cox_split *split = &sharing->split;
    struct lab_sim_frame *out = run->out;

    out->moved |= moved;
    if (run->pass == 0)
        out->reason = split->reason;
    out->predicted_ns += (double)split->predicted_ns;
    out->rejected_ns += (double)split->rejected_ns;
    if (sim->options->no_oracle)
        return;

    const double ns = lab_pass_expected_ns(sim, run);
    if (ns < 0 || out->expected_ns < 0) {
        out->expected_ns = -1;
        return;
    }
    out->expected_ns += ns;
    if (run->pass > 0)
        out->expected_ns += sharing->world->before_ns;
}

/* Split the run's current pass. */
static cox_status split_pass(struct lab_sim *sim, struct lab_run *run)
{
    struct lab_sharing *sharing = &sim->sharing[run->pass];
    const struct cox_split before = sharing->split;
    const struct lab_oracle *oracle = NULL;
    cox_status status = COX_OK;
    uint32_t count;
    const uint32_t lead = lead_of(sim, run, run->pass, &count);

    look_at(sim, run->frame, &run->shapes[run->pass]);
    show_devices(sim, &sim->sharing[lead], count, true);
    sim->view.pool = sim->policy && sim->policy->assign && !sim->options->no_pool && count == 1;
    sim->view.shadow = !sim->options->no_shadow && count == 1;
    sim->view.waited_ns = lab_whole(sim->now_ns - run->submit_ns);
    sim->view.deadline_ns = sim->options->policy.deadline_ns;

    if (knows_all(sim) || !sim->options->no_oracle)
        oracle = lab_pass_oracle(sim, run);
    if (!sim->options->no_oracle)
        lab_pass_compare(sim, run, oracle);

    if (knows_all(sim))
        decide_by_oracle(sim, sharing, oracle);
    else if (lead != run->pass)
        decide_as_before(sim, run);
    else
        status = decide(sim, run);
    if (status)
        return status;

    /* The oracle's next pass begins with these rows on these devices. */
    if (oracle && sim->pass_count > 1) {
        const struct cox_split split = lab_pass_oracle_split(sim, oracle);
        run->oracle = (struct lab_done){.count = split.band_count, .rows = sim->view.rows};
        memcpy(run->oracle.bands, split.bands, split.band_count * sizeof *split.bands);
    }

    note_split(sim, run, run->frame > 0 && !same_bands(&before, &sharing->split));
    run->between = false;
    run->rows = sim->view.rows;
    run->row_alignment = sim->view.row_alignment;
    run->split = sharing->split;
    run->start_ns = run->end_ns = sim->now_ns;
    if (lead == run->pass)
        run->split_ns = run->start_ns;
    return COX_OK;
}

/* Begin the frame's next pass. */
static cox_status begin_next_pass(struct lab_sim *sim, struct lab_run *run)
{
    const uint64_t latest = sim->view.frame;
    const cox_status status = split_pass(sim, run);

    sim->view.frame = latest;
    if (status == COX_OK)
        lab_handout_begin(sim, run);
    return status;
}

/* Start the next frame. */
static cox_status start_frame(struct lab_sim *sim)
{
    const uint64_t frame = sim->started;
    struct lab_run *run = lab_run_of(sim, frame);
    struct lab_sim_frame *out = &sim->out[frame];
    cox_status status = COX_OK;

    *out = (struct lab_sim_frame){.joules = -1};
    if (sim->started == sim->delivered)
        set_clock_back(sim);
    if (!begin_frame(sim, run, frame))
        return COX_E_INVALID;
    if (frame == 0)
        status = begin_passes(sim, run->shapes);
    if (status)
        return status;

    run->submit_ns = fmin(lab_time_ready_ns(sim), sim->now_ns);
    run->frame = frame;
    run->pass = 0;
    run->out = out;
    run->measured_count = 0;
    status = split_pass(sim, run);
    if (status)
        return status;

    run->open = true;
    run->began_ns = run->start_ns;
    sim->started++;
    lab_handout_begin(sim, run);
    return COX_OK;
}

/* Move a frame on from one pass to the next. Returns whether there was one. */
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

/* --- the engine's thread --- */

/* One action of the thread. False if there is nothing to do. */
static bool act(struct lab_sim *sim, cox_status *status)
{
    const struct lab_run *oldest = lab_run_of(sim, sim->delivered);

    if (lab_time_notice(sim))
        return true;
    if (advance_passes(sim, status))
        return true;
    if (oldest->open && !oldest->between && oldest->done_rows == oldest->rows) {
        deliver(sim);
        return true;
    }
    if (lab_time_may_start(sim) && lab_time_ready_ns(sim) <= sim->now_ns) {
        *status = start_frame(sim);
        return true;
    }
    return lab_handout_dispatch(sim);
}

static cox_status run_all(struct lab_sim *sim)
{
    cox_status status = COX_OK;

    while (sim->delivered < sim->world->frames && status == COX_OK) {
        if (!lab_time_engine_awake(sim)) {
            if (!lab_time_advance(sim))
                return COX_E_INVALID;
        } else if (act(sim, &status)) {
            sim->free_ns = sim->now_ns + sim->enqueue_ns +
                           (sim->stall_ns > 0 ? sim->stall_ns : sim->world->busy_ns);
            sim->stall_ns = sim->enqueue_ns = 0;
        } else {
            sim->asleep = true;
        }
    }

    return status;
}

/* Devices in the order of what enqueueing a band on them costs, as the engine serves them. */
static void order_devices(struct lab_sim *sim)
{
    const double *submit_ns = sim->world->submit_ns;

    for (uint32_t d = 0; d < sim->world->device_count; d++) {
        uint32_t at = d;

        for (; submit_ns && at > 0 && submit_ns[sim->order[at - 1]] > submit_ns[d]; at--)
            sim->order[at] = sim->order[at - 1];
        sim->order[at] = d;
    }
}

/* False if out of memory. */
static bool make_passes(struct lab_sim *sim)
{
    const struct cox_policy *policy = sim->policy;
    size_t bytes = 0;

    if (policy && policy->state_bytes)
        bytes = policy->state_bytes(sim->view.device_count);

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
    cox_status status = COX_E_NOMEM;

    if (!options)
        options = &defaults;
    if (why && why_bytes > 0)
        why[0] = '\0';

    const uint32_t in_flight = options->in_flight ? options->in_flight : 1;
    if (world->device_count == 0 || world->device_count > COX_DEVICES_MAX || world->frames == 0 ||
        in_flight > LAB_IN_FLIGHT_MAX)
        return COX_E_INVALID;

    struct lab_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return COX_E_NOMEM;
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
                                     .pool = policy && policy->assign && !options->no_pool,
                                     .shadow = !options->no_shadow}};
    sim->runs = calloc(in_flight, sizeof *sim->runs);
    order_devices(sim);

    if (sim->runs && make_passes(sim)) {
        for (uint32_t p = 0; p < sim->pass_count; p++)
            sim->sharing[p].world->begin_run(sim->sharing[p].world->ctx, seed);
        status = run_all(sim);
    }

    for (uint32_t p = 0; p < sim->pass_count; p++)
        free(sim->sharing[p].state);
    free(sim->runs);
    free(sim);
    return status;
}
