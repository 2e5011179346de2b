/* Gives rows to devices: bands of splits, rows of pools, and rows of devices that were lost.
 * simulate.c begins passes here and lets the thread dispatch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session_state.h"
#include "common/strict_fp.h"

#include <math.h>

/* A device that does not answer is given up this share of its prediction, and DEAD_NS, after the
 * prediction. */
static const double DEAD_SHARE = 0.25;
static const double DEAD_NS = 1e6;

/* Without a prediction: this many times the best device's time for a whole frame. */
static const double DEAD_TIMES = 10;

static bool has_next(const struct lab_sim *sim)
{
    return sim->policy && sim->policy->assign;
}

/* The device's next band from index `at` on; band_count after the last one. */
static uint32_t band_from(const struct lab_run *run, uint32_t device, uint32_t at)
{
    while (at < run->split.band_count && run->split.bands[at].device != device)
        at++;
    return at;
}

static bool has_band(const struct lab_run *run, uint32_t d)
{
    return band_from(run, d, run->bands_next[d]) < run->split.band_count;
}

/* What the device still has to do for the frame. */
static struct cox_progress progress_of(struct lab_sim *sim, const struct lab_run *run, uint32_t d)
{
    const struct lab_worker *worker = &sim->workers[d];
    struct cox_progress progress = {0};

    for (uint32_t i = 0; i < worker->task_count; i++) {
        const struct lab_task *task = &worker->tasks[i];
        if (task->kind == LAB_SHADOW || task->run != run)
            continue;

        if (progress.rows == 0) {
            progress.first_row = task->launch.first_row;
            if (task->begun)
                progress.since_ns = lab_whole(sim->now_ns - task->since_ns);
        }
        progress.rows += task->launch.rows;
    }

    uint32_t at = band_from(run, d, run->bands_next[d]);
    if (progress.rows == 0 && at < run->split.band_count)
        progress.first_row = run->split.bands[at].first_row;
    for (; at < run->split.band_count; at = band_from(run, d, at + 1))
        progress.rows += run->split.bands[at].rows;

    return progress;
}

/* Whether no other device works for the frame or will be asked. */
static bool is_last(const struct lab_sim *sim, const struct lab_run *run, uint32_t d)
{
    for (uint32_t i = 0; i < sim->view.device_count; i++)
        if (i != d && sim->workers[i].usable &&
            (run->asks[i] || run->queued[i] > 0 || has_band(run, i)))
            return false;

    return true;
}

/* Ask the policy. Returns how many rows of `range` it grants. */
static uint32_t ask(struct lab_sim *sim, const struct lab_run *run, uint32_t d,
                    const struct lab_range *range, uint64_t *predicted_ns)
{
    struct cox_progress progress[COX_DEVICES_MAX];
    struct cox_sched_view view = sim->view;

    view.frame = run->frame;
    view.rows = run->rows;
    view.row_alignment = run->row_alignment;
    view.waited_ns = lab_whole(sim->now_ns - run->submit_ns);
    view.deadline_ns = sim->options->policy.deadline_ns;
    for (uint32_t i = 0; i < view.device_count; i++)
        progress[i] = progress_of(sim, run, i);

    struct cox_chunk_request offer = {.device = d,
                                      .first_row = range->first_row,
                                      .rows = range->rows,
                                      .elapsed_ns = lab_whole(sim->now_ns - run->start_ns),
                                      .last = is_last(sim, run, d),
                                      .progress = progress};
    struct cox_chunk grant = {0};
    sim->policy->assign(sim->sharing[run->pass].state, &view, &offer, &grant);
    *predicted_ns = grant.predicted_ns;

    /* An invalid grant, or none to the last device: it gets all rows. */
    if (grant.rows > offer.rows ||
        (grant.rows % view.row_alignment != 0 && grant.rows != offer.rows) ||
        (grant.rows == 0 && offer.last)) {
        *predicted_ns = 0;
        return offer.rows;
    }
    if (grant.rows == 0)
        return 0;

    /* The rest of the frame must fit into the bands that it may still have. */
    uint32_t room = 1;
    if (run->launch_count < COX_BANDS_MAX)
        room = COX_BANDS_MAX - run->launch_count;
    uint64_t least = ((uint64_t)offer.rows + room - 1) / room;
    if (grant.rows < least) {
        *predicted_ns = 0;
        least = (least + view.row_alignment - 1) / view.row_alignment * view.row_alignment;
        return (uint32_t)(least < offer.rows ? least : offer.rows);
    }

    return grant.rows;
}

/* When a device that has rows since `from_ns` is taken out of use. */
static double lost_at(const struct lab_sim *sim, const struct lab_run *run, uint32_t device,
                      double from_ns, uint64_t predicted_ns)
{
    if (sim->workers[device].alive)
        return HUGE_VAL;
    if (predicted_ns > 0)
        return from_ns + ((double)predicted_ns * (1 + DEAD_SHARE) + DEAD_NS);

    const struct lab_sharing *sharing = &sim->sharing[run->pass];
    double best_ns = HUGE_VAL;

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable)
            best_ns = fmin(best_ns, sharing->single_device_ns[d]);
    return from_ns + best_ns * run->rows / sharing->solo_rows * DEAD_TIMES;
}

static double split_lost_at(const struct lab_sim *sim, const struct lab_run *run, uint32_t d,
                            double from_ns)
{
    const struct cox_split *split = &run->split;
    uint64_t predicted_ns = split->device_ns[d];

    if (predicted_ns == 0)
        predicted_ns = split->predicted_ns;
    return lost_at(sim, run, d, from_ns, predicted_ns);
}

/* Give the device the first rows of `range`. */
static void take(struct lab_sim *sim, struct lab_run *run, uint32_t d, struct lab_range *range,
                 uint32_t rows, uint64_t predicted_ns)
{
    lab_queue_add(sim, run, d, LAB_CHUNK, sim->now_ns, range->first_row, rows);
    run->launch_count++;
    range->first_row += rows;
    range->rows -= rows;

    sim->workers[d].lost_ns = fmin(sim->workers[d].lost_ns,
                                   lost_at(sim, run, d, sim->now_ns, predicted_ns));
}

uint32_t lab_handout_best(const struct lab_sim *sim, uint32_t pass)
{
    const double *single_device_ns = sim->sharing[pass].single_device_ns;
    uint32_t best = sim->view.device_count;

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable &&
            (best == sim->view.device_count || single_device_ns[d] < single_device_ns[best]))
            best = d;

    return best;
}

/* The first range of the pool that is not empty; NULL if the pool is empty. */
static struct lab_range *pool_of(struct lab_run *run)
{
    while (run->pool_next < run->pool_end && run->pool[run->pool_next].rows == 0)
        run->pool_next++;
    if (run->pool_next == run->pool_end)
        return NULL;
    return &run->pool[run->pool_next];
}

/* The devices (a bit each) that may take rows of the frame's pool. They get nothing of a later
 * frame while the pool is not empty: it would have to wait behind that frame. */
static uint32_t reserved_by(const struct lab_sim *sim, struct lab_run *run)
{
    uint32_t devices = 0;

    if (!pool_of(run))
        return 0;
    if (!has_next(sim)) {
        const uint32_t best = lab_handout_best(sim, run->pass);
        if (best < sim->view.device_count)
            devices = 1u << best;
        return devices;
    }

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable && run->asks[d] && !lab_queue_has_shadow(&sim->workers[d]))
            devices |= 1u << d;
    return devices;
}

/* Hold up the thread, once, before it gives the device its next band of the frame. */
static bool is_stalled(struct lab_sim *sim, struct lab_run *run, uint32_t d, bool handed_out)
{
    const struct lab_world *world = sim->sharing[run->pass].world;
    uint32_t given = run->launches[d] + run->queued[d], working = 0;

    if (!world->stall_ns || run->stalled[d] > given)
        return false;

    run->stalled[d] = given + 1;
    for (uint32_t i = 0; i < world->device_count; i++)
        if (lab_queue_running(&sim->workers[i]))
            working |= 1u << i;

    sim->stall_ns = world->stall_ns(world->ctx, run->frame, d, given, handed_out, working);
    return sim->stall_ns > 0;
}

static bool serve_band(struct lab_sim *sim, struct lab_run *run, uint32_t d, uint32_t at)
{
    const struct cox_band *band = &run->split.bands[at];

    if (is_stalled(sim, run, d, false))
        return true;
    run->bands_next[d] = at + 1;
    run->bands_left--;
    lab_queue_add(sim, run, d, LAB_BAND, run->eligible_ns[d], band->first_row, band->rows);
    return true;
}

/* Give the device a band of the frame or rows of its pool. Returns whether there was something. */
static bool serve(struct lab_sim *sim, struct lab_run *run, uint32_t d)
{
    if (run->eligible_ns[d] < 0)
        run->eligible_ns[d] = sim->now_ns;

    const uint32_t at = band_from(run, d, run->bands_next[d]);
    if (at < run->split.band_count)
        return serve_band(sim, run, d, at);

    struct lab_range *range = pool_of(run);
    if (!range || run->queued[d] > 0 || lab_queue_has_shadow(&sim->workers[d]))
        return false;
    if (!has_next(sim)) {
        if (d != lab_handout_best(sim, run->pass))
            return false;
        take(sim, run, d, range, range->rows, 0);
        return true;
    }

    if (!run->asks[d])
        return false;
    if (is_stalled(sim, run, d, true))
        return true;

    uint64_t predicted_ns = 0;
    const uint32_t rows = ask(sim, run, d, range, &predicted_ns);
    run->asks[d] = rows > 0;
    if (rows > 0)
        take(sim, run, d, range, rows, predicted_ns);
    return true;
}

bool lab_handout_dispatch(struct lab_sim *sim)
{
    uint32_t reserved = 0;

    for (uint64_t f = sim->delivered; f < sim->started; f++) {
        struct lab_run *run = lab_run_of(sim, f);
        const bool any = run->bands_left > 0 || pool_of(run);

        for (uint32_t i = 0; any && i < sim->view.device_count; i++) {
            const uint32_t d = sim->order[i];

            if (sim->workers[d].usable && !(reserved & 1u << d) &&
                lab_queue_has_room(&sim->workers[d]) && serve(sim, run, d))
                return true;
        }
        reserved |= reserved_by(sim, run);
    }

    return false;
}

/* --- lost devices --- */

static void add_to_pool(struct lab_run *run, uint32_t first_row, uint32_t rows)
{
    if (run->pool_end < LAB_RANGES_MAX && rows > 0)
        run->pool[run->pool_end++] = (struct lab_range){.first_row = first_row, .rows = rows};
}

void lab_handout_ask_all_if_none(struct lab_sim *sim)
{
    if (lab_handout_best(sim, 0) < sim->view.device_count)
        return;
    for (uint32_t d = 0; d < sim->view.device_count; d++)
        sim->workers[d].usable = sim->workers[d].alive;
}

void lab_handout_lose(struct lab_sim *sim, uint32_t d)
{
    struct lab_worker *worker = &sim->workers[d];

    for (uint32_t i = 0; i < worker->task_count;) {
        const struct lab_task *task = &worker->tasks[i];
        if (task->ended) {
            i++;
            continue;
        }

        if (task->kind != LAB_SHADOW) {
            if (task->begun)
                lab_queue_measure(sim, task, sim->now_ns, COX_MEASURED_UNFINISHED);
            add_to_pool(task->run, task->launch.first_row, task->launch.rows);
            task->run->queued[d]--;
        }
        lab_queue_remove(worker, i);
    }

    worker->usable = false;
    worker->lost_ns = HUGE_VAL;
    worker->ask_in = worker->ask_pause = 1;

    for (uint64_t f = sim->delivered; f < sim->started; f++) {
        struct lab_run *run = lab_run_of(sim, f);

        for (uint32_t at = band_from(run, d, run->bands_next[d]); at < run->split.band_count;
             at = band_from(run, d, at + 1)) {
            add_to_pool(run, run->split.bands[at].first_row, run->split.bands[at].rows);
            run->bands_left--;
        }
        run->bands_next[d] = run->split.band_count;
        for (uint32_t i = 0; i < sim->view.device_count; i++)
            run->asks[i] = true;
    }

    lab_handout_ask_all_if_none(sim);
    sim->asleep = false;
}

/* The oldest frame with a band that the device did not get yet, or NULL. */
static const struct lab_run *run_that_waits(struct lab_sim *sim, uint32_t d)
{
    for (uint64_t f = sim->delivered; f < sim->started; f++) {
        const struct lab_run *run = lab_run_of(sim, f);
        if (has_band(run, d))
            return run;
    }
    return NULL;
}

void lab_handout_set_alive(struct lab_sim *sim, uint32_t device, bool alive)
{
    struct lab_worker *worker = &sim->workers[device];
    const bool was = worker->alive;

    worker->alive = alive;
    if (alive) {
        worker->lost_ns = HUGE_VAL;
        return;
    }

    for (uint32_t i = 0; i < worker->task_count;) /* a shadow is lost with its device */
        if (worker->tasks[i].kind == LAB_SHADOW && !worker->tasks[i].ended)
            lab_queue_remove(worker, i);
        else
            i++;
    lab_queue_begin_next(sim, device);

    const struct lab_task *task = lab_queue_running(worker);
    const struct lab_run *run = task ? task->run : run_that_waits(sim, device);
    if (was && run)
        worker->lost_ns = split_lost_at(sim, run, device, sim->now_ns);
}

/* --- a frame begins --- */

void lab_handout_begin(struct lab_sim *sim, struct lab_run *run)
{
    const struct cox_split *split = &run->split;
    uint32_t reserved = 0;

    for (uint64_t f = sim->delivered; f < run->frame; f++)
        reserved |= reserved_by(sim, lab_run_of(sim, f));

    run->done_rows = run->done.count = 0;
    run->done.rows = run->rows;
    run->pool_next = run->pool_end = 0;
    run->launch_count = run->bands_left = split->band_count;
    add_to_pool(run, split->pool_first_row, split->pool_rows);

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        run->asks[d] = true;
        run->bands_next[d] = 0;
        run->queued[d] = 0;
        run->launches[d] = 0;
        run->stalled[d] = 0;
        run->eligible_ns[d] = run->start_ns;
        if (reserved & 1u << d)
            run->eligible_ns[d] = -1;
        if (has_band(run, d))
            sim->workers[d].lost_ns = fmin(sim->workers[d].lost_ns,
                                           split_lost_at(sim, run, d, run->start_ns));
    }

    const struct cox_band *shadow = &split->shadow;
    if (shadow->rows == 0 || reserved & 1u << shadow->device)
        return;
    const struct lab_worker *worker = &sim->workers[shadow->device];
    if (!lab_queue_has_shadow(worker) && worker->task_count < LAB_QUEUE_MAX)
        lab_queue_add(sim, run, shadow->device, LAB_SHADOW, sim->now_ns, shadow->first_row,
                      shadow->rows);
}
