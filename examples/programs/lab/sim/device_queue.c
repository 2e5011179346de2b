/* The queues of the devices, and the measurements of what ended in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session_state.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

/* --- queues --- */

struct lab_task *lab_queue_running(struct lab_worker *worker)
{
    for (uint32_t i = 0; i < worker->task_count; i++)
        if (!worker->tasks[i].ended)
            return &worker->tasks[i];
    return NULL;
}

bool lab_queue_has_shadow(const struct lab_worker *worker)
{
    for (uint32_t i = 0; i < worker->task_count; i++)
        if (worker->tasks[i].kind == LAB_SHADOW && !worker->tasks[i].ended)
            return true;
    return false;
}

bool lab_queue_has_room(const struct lab_worker *worker)
{
    uint32_t bands = 0;

    for (uint32_t i = 0; i < worker->task_count; i++)
        bands += worker->tasks[i].kind != LAB_SHADOW;

    return bands < LAB_QUEUE_BANDS;
}

void lab_queue_remove(struct lab_worker *worker, uint32_t at)
{
    worker->task_count--;
    memmove(&worker->tasks[at], &worker->tasks[at + 1],
            (worker->task_count - at) * sizeof worker->tasks[0]);
}

double lab_queue_moved_ns(const struct lab_sim *sim, uint32_t pass, uint32_t pass_rows,
                          const struct lab_done *before, uint32_t device, uint32_t first_row,
                          uint32_t rows)
{
    const double row_ns = sim->sharing[pass].world->moved_row_ns;
    double moved = 0;

    if (pass == 0 || !(row_ns > 0))
        return 0;

    /* Of passes with different rows, the same part of the frame. */
    const double scale = (double)pass_rows / before->rows;

    for (uint32_t b = 0; b < before->count; b++) {
        const struct cox_band *band = &before->bands[b];

        const double from = fmax(first_row, band->first_row * scale);
        const double to = fmin((double)first_row + rows,
                               ((double)band->first_row + band->rows) * scale);
        if (band->device != device && to > from)
            moved += to - from;
    }

    return moved * row_ns;
}

void lab_queue_begin_next(struct lab_sim *sim, uint32_t d)
{
    struct lab_task *task = lab_queue_running(&sim->workers[d]);

    if (!task || task->begun)
        return;

    const struct lab_world *world = sim->sharing[task->launch.pass].world;

    task->begun = true;
    task->since_ns = sim->now_ns;

    if (task->kind != LAB_SHADOW) {
        task->launch.launch = task->run->launches[d]++;
        task->run->out->launches++;
    }

    task->alone_ns = world->launch_ns(world->ctx, &task->launch);
    if (world->ahead_ns)
        task->alone_ns -= fmin(world->ahead_ns(world->ctx, &task->launch),
                               task->since_ns - task->given_ns);
    task->alone_ns = fmax(LAB_LEAST_NS, task->alone_ns);
    if (task->kind != LAB_SHADOW) /* a shadow finds copies of its rows on its device */
        task->alone_ns += lab_queue_moved_ns(sim, task->launch.pass, task->run->rows,
                                             &task->run->before, d, task->launch.first_row,
                                             task->launch.rows);

    if (!world->copying)
        return;

    world->copying(world->ctx, &task->launch, task->alone_ns, &task->link);
    if (task->link.link > 0)
        task->alone_ns = fmax(0, task->alone_ns - fmax(task->link.ns, task->link.beside_ns));
}

void lab_queue_add(struct lab_sim *sim, struct lab_run *run, uint32_t d, enum lab_kind kind,
                   double queued_ns, uint32_t first_row, uint32_t rows)
{
    struct lab_worker *worker = &sim->workers[d];

    worker->tasks[worker->task_count++] = (struct lab_task){
        .kind = kind,
        .run = run,
        .queued_ns = queued_ns,
        .given_ns = sim->now_ns,
        .launch = {.frame = run->frame,
                   .device = d,
                   .first_row = first_row,
                   .rows = rows,
                   .pass = run->pass,
                   .shadow = kind == LAB_SHADOW}};

    if (kind != LAB_SHADOW)
        run->queued[d]++;
    if (sim->world->submit_ns)
        sim->enqueue_ns = sim->world->submit_ns[d];
    lab_queue_begin_next(sim, d);
}

/* --- measurements --- */

void lab_queue_measure(struct lab_sim *sim, const struct lab_task *task, double end_ns,
                       uint32_t flags)
{
    const struct lab_launch *launch = &task->launch;
    const struct lab_world *world = sim->sharing[launch->pass].world;
    const bool shadow = task->kind == LAB_SHADOW;
    struct lab_run *run = task->run;
    double since_ns = task->since_ns;

    if (task->kind == LAB_CHUNK && launch->launch > 0)
        flags |= COX_MEASURED_CHUNK;
    if (shadow) {
        flags |= COX_MEASURED_SHADOW;
        run = NULL;
        if (sim->delivered < sim->started)
            run = lab_run_of(sim, sim->delivered);
    } else if (sim->world->host_clock) {
        since_ns = fmax(task->queued_ns, sim->workers[launch->device].known_ns);
    }

    const double wall_ns = end_ns - since_ns;
    struct cox_measurement measured = {.frame = launch->frame,
                                       .device = launch->device,
                                       .first_row = launch->first_row,
                                       .rows = launch->rows,
                                       .wall_ns = lab_whole(wall_ns),
                                       .flags = flags};
    if (!shadow)
        measured.queue_ns = lab_whole(since_ns - task->queued_ns);
    if (task->ended && !sim->world->host_clock)
        measured.late_ns = lab_whole(task->known_ns - task->ended_ns);
    if (world->kernel_part && !(flags & COX_MEASURED_UNFINISHED)) {
        const double busy_ns = task->ended ? task->ended_ns - task->since_ns : wall_ns;
        measured.kernel_ns = lab_whole(busy_ns * world->kernel_part(world->ctx, launch));
    }

    if (run && run->measured_count < LAB_MEASURED_MAX) {
        run->measured_passes[run->measured_count] = launch->pass;
        run->measured[run->measured_count++] = measured;
    } else if (!run && sim->policy && sim->policy->observe) {
        sim->policy->observe(sim->sharing[launch->pass].state, &measured);
    }
}
