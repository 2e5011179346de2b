/* The clock of a simulated session, and the engine's thread. Between two events each working device
 * works at the rate 1 / slowdown, which depends on the devices that work at that moment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session_state.h"
#include "common/strict_fp.h"

#include <math.h>

/* --- the engine's thread --- */

/* Which devices, and whether the engine, are kept from work. Returns until when. */
static double stolen_now(const struct lab_sim *sim, uint32_t *devices, bool *engine)
{
    *devices = 0;
    *engine = false;

    if (!sim->world->stolen)
        return HUGE_VAL;

    const double until_ns = sim->world->stolen(sim->world->ctx, sim->base_ns + sim->now_ns, devices,
                                               engine) -
                            sim->base_ns;
    return fmax(until_ns, sim->now_ns + 1);
}

bool lab_time_may_start(const struct lab_sim *sim)
{
    const struct lab_world *world = sim->world;

    if (sim->started == world->frames || sim->started - sim->delivered == sim->run_count)
        return false;

    return world->pause_frames == 0 || sim->started % world->pause_frames != 0 ||
           sim->started == sim->delivered;
}

double lab_time_ready_ns(const struct lab_sim *sim)
{
    const struct lab_world *world = sim->world;

    if (!(world->submit_period_ns > 0))
        return sim->ready_ns;

    double ns = (double)sim->started * world->submit_period_ns - sim->base_ns;
    if (world->hand_over_ns)
        ns += world->hand_over_ns(world->ctx, sim->started);
    return ns;
}

void lab_time_note_idle(struct lab_sim *sim)
{
    const double idle_ns = sim->world->hand_over_idle_ns;

    if (!(idle_ns > 0) || sim->ready_ns <= sim->now_ns)
        return;

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable && !lab_queue_running(&sim->workers[d]))
            sim->ready_ns = fmin(sim->ready_ns, sim->now_ns + idle_ns);
}

/* When the thread has something to do next; HUGE_VAL = it has nothing to wait for. */
static double thread_ns(const struct lab_sim *sim)
{
    double ns = HUGE_VAL;

    if (!sim->asleep)
        return sim->free_ns;

    if (lab_time_may_start(sim))
        ns = lab_time_ready_ns(sim);

    for (uint64_t f = sim->delivered; f < sim->started && sim->pass_count > 1; f++)
        if (lab_run_of(sim, f)->between)
            ns = fmin(ns, lab_run_of(sim, f)->ready_ns);

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        for (uint32_t i = 0; i < sim->workers[d].task_count && sim->workers[d].tasks[i].ended; i++)
            ns = fmin(ns, sim->workers[d].tasks[i].known_ns);

    return fmax(ns, sim->free_ns);
}

bool lab_time_engine_awake(struct lab_sim *sim)
{
    uint32_t devices;
    bool kept;

    if (thread_ns(sim) > sim->now_ns)
        return false;
    stolen_now(sim, &devices, &kept);
    if (kept)
        return false;

    sim->asleep = false;
    return true;
}

bool lab_time_notice(struct lab_sim *sim)
{
    struct lab_worker *worker = NULL;

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_worker *other = &sim->workers[d];
        if (other->task_count > 0 && other->tasks[0].ended &&
            (!worker || other->tasks[0].ended_ns < worker->tasks[0].ended_ns))
            worker = other;
    }

    if (!worker)
        return false;

    const struct lab_task *task = &worker->tasks[0];
    struct lab_run *run = task->run;
    const bool host = sim->world->host_clock;

    if (host)
        lab_queue_measure(sim, task, sim->now_ns, 0);
    worker->known_ns = sim->now_ns;

    if (task->kind != LAB_SHADOW) {
        run->done_rows += task->launch.rows;
        if (sim->pass_count > 1 && run->done.count < LAB_RANGES_MAX)
            run->done.bands[run->done.count++] = (struct cox_band){
                task->launch.device, task->launch.first_row, task->launch.rows};
        run->queued[task->launch.device]--;
        run->end_ns = fmax(run->end_ns, host ? sim->now_ns : task->ended_ns);
    }

    lab_queue_remove(worker, 0);
    return true;
}

/* --- the clock --- */

static void complete(struct lab_sim *sim, uint32_t d, uint32_t others)
{
    struct lab_task *task = lab_queue_running(&sim->workers[d]);
    const struct lab_world *world = sim->sharing[task->launch.pass].world;

    task->ended = true;
    task->ended_ns = sim->now_ns;
    task->known_ns = sim->now_ns;
    if (world->wake_ns)
        task->known_ns += world->wake_ns(world->ctx, &task->launch, others);
    if (!sim->world->host_clock)
        lab_queue_measure(sim, task, sim->now_ns, 0);
    if (task->kind != LAB_SHADOW)
        task->run->out->rows[d] += task->launch.rows;

    lab_queue_begin_next(sim, d);
}

/* The speed of a working device until the next event. */
struct pace {
    double slower;
    double sharers;        /* devices that copy over its link */
    double ends_ns;        /* of its current part: computing alone, or the copy over the link */
    double beside_ends_ns; /* of computing while it copies */
};

/* When `left` is done; never if there is nothing left. */
static double end_of(double now_ns, double left, double slower)
{
    if (!(left > 0))
        return HUGE_VAL;
    return now_ns + left * slower;
}

static double reduced(double left, double ends_ns, double next_ns, double done)
{
    if (left <= 0 || ends_ns <= next_ns)
        return 0;

    return fmax(LAB_LEAST_NS, left - done);
}

/* Find the speed of each device in `active`. Returns when the first of them ends something. */
static double find_paces(struct lab_sim *sim, uint32_t active, uint32_t stolen, struct pace *paces)
{
    const struct lab_world *world = sim->world;
    uint32_t copying[COX_DEVICES_MAX + 1] = {0};
    double next_ns = HUGE_VAL;

    for (uint32_t d = 0; d < world->device_count && world->copying; d++) {
        if (!(active & ~stolen & 1u << d))
            continue;
        const struct lab_task *task = lab_queue_running(&sim->workers[d]);
        if (task->alone_ns <= 0 && task->link.ns > 0)
            copying[task->link.link]++;
    }

    for (uint32_t d = 0; d < world->device_count; d++) {
        if (!(active & 1u << d))
            continue;

        const struct lab_task *task = lab_queue_running(&sim->workers[d]);
        struct pace *pace = &paces[d];
        *pace = (struct pace){
            .slower = 1, .sharers = 1, .ends_ns = HUGE_VAL, .beside_ends_ns = HUGE_VAL};
        if (stolen & 1u << d)
            continue;

        const struct lab_world *world_of_pass = sim->sharing[task->launch.pass].world;
        pace->slower = lab_world_slowdown(world_of_pass, sim->view.frame, d, active);
        if (task->alone_ns > 0) {
            pace->ends_ns = end_of(sim->now_ns, task->alone_ns, pace->slower);
        } else {
            if (task->link.ns > 0)
                pace->sharers = copying[task->link.link];
            pace->ends_ns = end_of(sim->now_ns, task->link.ns, pace->slower * pace->sharers);
            pace->beside_ends_ns = end_of(sim->now_ns, task->link.beside_ns, pace->slower);
        }

        next_ns = fmin(next_ns, fmin(pace->ends_ns, pace->beside_ends_ns));
    }

    return next_ns;
}

/* Let the task of a working device go on for `step_ns`, up to now. */
static void work_off(struct lab_task *task, const struct pace *pace, double now_ns, double step_ns)
{
    const double done_ns = step_ns / pace->slower;

    if (task->alone_ns > 0) {
        task->alone_ns = reduced(task->alone_ns, pace->ends_ns, now_ns, done_ns);
        return;
    }
    task->link.ns = reduced(task->link.ns, pace->ends_ns, now_ns, done_ns / pace->sharers);
    task->link.beside_ns = reduced(task->link.beside_ns, pace->beside_ends_ns, now_ns, done_ns);
}

bool lab_time_advance(struct lab_sim *sim)
{
    uint32_t active = 0, stolen;
    bool kept;
    struct pace paces[COX_DEVICES_MAX];
    const double until_ns = stolen_now(sim, &stolen, &kept);

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].alive && lab_queue_running(&sim->workers[d]))
            active |= 1u << d;

    /* The next event: a device ends something, the thread acts, or a device is given up. */
    double engine_ns = thread_ns(sim);
    if (kept)
        engine_ns = fmax(engine_ns, until_ns);
    double next_ns = fmin(find_paces(sim, active, stolen, paces), engine_ns);
    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable)
            next_ns = fmin(next_ns, sim->workers[d].lost_ns);
    if (!(next_ns < HUGE_VAL) && !(stolen & active))
        return false;

    next_ns = fmin(next_ns, until_ns);
    const double step_ns = next_ns - sim->now_ns;
    sim->now_ns = next_ns;

    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        if (!(active & 1u << d))
            continue;
        struct lab_worker *worker = &sim->workers[d];
        struct lab_task *task = lab_queue_running(worker);

        worker->busy_ns += step_ns;
        if (stolen & 1u << d)
            continue;
        work_off(task, &paces[d], next_ns, step_ns);
        if (task->alone_ns <= 0 && task->link.ns <= 0 && task->link.beside_ns <= 0)
            complete(sim, d, active & ~(1u << d));
    }

    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable && sim->workers[d].lost_ns <= next_ns)
            lab_handout_lose(sim, d);

    lab_time_note_idle(sim);
    return true;
}
