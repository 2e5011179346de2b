/* Simulates a film on many machines, event by event. Machines work on ranges of frames at full
 * speed unless storage cannot keep up. Then they share its bytes equally, but none gets more than
 * it needs (max-min fair), which is close to what parallel file systems and switches do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "description.h"
#include "common/by_first.h"
#include "common/range_scheduler.h"
#include "lab/sim/random.h"

#include <math.h>
#include <stdlib.h>

enum { CHANCE_SLOW = 1, CHANCE_RANGE, CHANCE_DEATH, CHANCE_DEAD };
enum { DEATHS_MOST = 2000 }; /* while no range ends; after more the run would never end */

enum machine_state { IDLE, WORKING, OUT, ENDED };

struct machine {
    enum machine_state state;
    double fps, begin_s;
    struct frame_range range;
    double took_s;  /* time of the range without waiting for storage */
    double left_s;  /* of that time */
    double wants;   /* bytes per second */
    double rate;    /* its speed over that without waiting */
    double since_s; /* start of the range */
    double back_s;  /* end of its time out */
};

/* A run of one of the shared steps. */
struct run {
    const struct cluster *cluster;
    const struct cluster_way *way;
    enum cluster_step step;
    uint64_t seed, drawn;  /* random numbers so far */
    double now_s, death_s; /* the next death */
    struct machine *machines;
    struct range_scheduler scheduler; /* of MPI */
    struct frame_range *done;         /* of MPI, in no order */
    uint64_t done_count, done_room;
    struct frame_range *again; /* of a queue: pieces to be repeated */
    uint64_t again_count, piece;
    uint64_t deaths;
    uint64_t drawn_deaths; /* since a range ended; those of machines that are out count, too */
};

static double uniform(struct run *run, uint32_t stream, uint32_t machine)
{
    return lab_random_uniform(lab_random_bits(run->seed, stream, run->drawn++, machine,
                                              (uint32_t)run->step));
}

/* When the next machine dies. All die equally often. */
static double next_death(struct run *run)
{
    const double rate = cluster_death_rate(run->cluster, (double)run->way->machines);

    if (!(rate > 0))
        return HUGE_VAL;
    return run->now_s - lab_log(uniform(run, CHANCE_DEATH, 0)) / rate;
}

/* --- ranges --- */

static struct frame_range next_range(struct run *run, uint32_t machine)
{
    if (run->way->engine == CLUSTER_MPI)
        return range_scheduler_next(&run->scheduler, machine);
    if (run->again_count)
        return run->again[--run->again_count];

    /* With more pieces than frames some are empty. */
    struct frame_range range = {0, 0};
    while (!range.count && run->piece < run->way->pieces) {
        range.first = run->cluster->frames * run->piece / run->way->pieces;
        range.count = run->cluster->frames * (run->piece + 1) / run->way->pieces - range.first;
        run->piece++;
    }

    return range;
}

/* Give a machine its next range. */
static void give(struct run *run, uint32_t m)
{
    struct machine *machine = &run->machines[m];

    machine->range = next_range(run, m);
    if (!machine->range.count) {
        machine->state = ENDED;
        return;
    }

    const double chance = lab_random_normal(uniform(run, CHANCE_RANGE, m)) * run->cluster->spread;
    const double factor = fmax(0.2, 1 + chance);
    machine->took_s = machine->left_s =
        (machine->begin_s + (double)machine->range.count / machine->fps) * factor;
    machine->wants = (double)machine->range.count * cluster_step_bytes(run->cluster, run->step) /
                     machine->took_s;
    machine->state = WORKING;
    machine->since_s = run->now_s;
}

static bool keep_done(struct run *run, struct frame_range range)
{
    if (run->done_count == run->done_room) {
        const uint64_t room = run->done_room ? 2 * run->done_room : 1024;
        struct frame_range *more = realloc(run->done, room * sizeof *more);
        if (!more)
            return false;
        run->done = more;
        run->done_room = room;
    }

    run->done[run->done_count++] = range;
    return true;
}

static bool finish(struct run *run, uint32_t m)
{
    struct machine *machine = &run->machines[m];

    machine->state = IDLE;
    run->drawn_deaths = 0;
    if (run->way->engine != CLUSTER_MPI)
        return true;

    range_scheduler_note(&run->scheduler, m, machine->range.count, run->now_s - machine->since_s);
    return keep_done(run, machine->range);
}

/* --- deaths --- */

/* All machines end, and begin again with what is not done. */
static bool begin_again(struct run *run)
{
    range_scheduler_end(&run->scheduler);
    if (run->done_count)
        qsort(run->done, run->done_count, sizeof *run->done, by_first);
    for (uint64_t m = 0; m < run->way->machines; m++) {
        run->machines[m].state = OUT;
        run->machines[m].back_s = run->now_s + run->cluster->again_s;
    }

    return range_scheduler_begin(&run->scheduler, (uint32_t)run->way->machines,
                                 run->cluster->frames, run->done, run->done_count);
}

/* A machine dies. False if machines die faster than they work, or if out of memory. */
static bool die(struct run *run)
{
    const uint32_t m = (uint32_t)(uniform(run, CHANCE_DEAD, 0) * (double)run->way->machines);
    struct machine *machine = &run->machines[m];

    run->death_s = next_death(run);
    if (++run->drawn_deaths > DEATHS_MOST)
        return false;
    if (machine->state == OUT)
        return true;

    run->deaths++;
    if (run->way->engine == CLUSTER_MPI) {
        run->death_s += run->cluster->again_s; /* until then no machine can die */
        return begin_again(run);
    }

    if (machine->state == WORKING)
        run->again[run->again_count++] = machine->range;
    machine->state = OUT;
    machine->back_s = run->now_s + run->cluster->again_s;

    for (uint64_t other = 0; other < run->way->machines; other++) /* the queue has work again */
        if (run->machines[other].state == ENDED)
            run->machines[other].state = IDLE;
    return true;
}

/* --- time --- */

/* 0 bytes per second: no limit. */
static double limit_of(double bytes_per_s)
{
    return bytes_per_s > 0 ? bytes_per_s : HUGE_VAL;
}

/* Set each machine's rate, so that no link and not the storage is overloaded. */
static void share_storage(struct run *run)
{
    const double link = limit_of(run->cluster->machine_bytes_per_s);
    const double all = limit_of(run->cluster->storage_bytes_per_s);
    double sum = 0, level = 0;
    uint64_t working = 0;

    for (uint64_t m = 0; m < run->way->machines; m++)
        if (run->machines[m].state == WORKING) {
            sum += fmin(run->machines[m].wants, link);
            working++;
        }

    /* Machines that want less than an equal share get what they want. The others share the rest,
     * until none of them wants less than its share. */
    double next = HUGE_VAL;
    if (sum > all)
        next = all / (double)working;
    while (next > level * (1 + 1e-12)) {
        double left = all;
        uint64_t others = 0;

        level = next;
        for (uint64_t m = 0; m < run->way->machines && level < HUGE_VAL; m++) {
            const double wants = fmin(run->machines[m].wants, link);
            if (run->machines[m].state == WORKING && wants < level)
                left -= wants;
            else
                others += run->machines[m].state == WORKING;
        }
        if (others)
            next = left / (double)others;
    }

    for (uint64_t m = 0; m < run->way->machines; m++) {
        struct machine *machine = &run->machines[m];
        machine->rate = 1;
        if (machine->wants > 0)
            machine->rate = fmin(1, fmin(link, level) / machine->wants);
    }
}

/* Find the time of the next event. Returns whether there is still work to come. */
static bool next_event(const struct run *run, double *at_s)
{
    bool any = false;

    *at_s = HUGE_VAL;
    for (uint64_t m = 0; m < run->way->machines; m++) {
        const struct machine *machine = &run->machines[m];
        if (machine->state == WORKING)
            *at_s = fmin(*at_s, run->now_s + machine->left_s / machine->rate);
        else if (machine->state == OUT)
            *at_s = fmin(*at_s, machine->back_s);
        any |= machine->state == WORKING ||
               (machine->state == OUT && run->way->engine == CLUSTER_MPI) || run->again_count;
    }

    *at_s = fmin(*at_s, run->death_s);
    return any;
}

/* Move on to the next event. False if the run cannot end, or if out of memory. */
static bool advance(struct run *run, double to_s)
{
    const double passed = to_s - run->now_s;

    run->now_s = to_s;
    for (uint64_t m = 0; m < run->way->machines; m++) {
        struct machine *machine = &run->machines[m];

        if (machine->state == WORKING) {
            machine->left_s -= passed * machine->rate;
            /* The rest may be too short to change the time. */
            const bool done = machine->left_s <= 1e-9 * machine->took_s ||
                              to_s + machine->left_s / machine->rate <= to_s;
            if (done && !finish(run, (uint32_t)m))
                return false;
        } else if (machine->state == OUT && machine->back_s <= to_s) {
            machine->state = IDLE;
        }
    }

    return to_s < run->death_s || die(run);
}

static bool play(struct run *run)
{
    for (double at_s;;) {
        for (uint64_t m = 0; m < run->way->machines; m++)
            if (run->machines[m].state == IDLE)
                give(run, (uint32_t)m);

        share_storage(run);
        if (!next_event(run, &at_s))
            return true;
        if (!advance(run, at_s))
            return false;
    }
}

static bool simulate_step(const struct cluster *cluster, const struct cluster_way *way,
                          enum cluster_step step, uint64_t seed, struct cluster_times *out)
{
    struct run run = {.cluster = cluster, .way = way, .step = step, .seed = seed};

    run.machines = calloc(way->machines, sizeof *run.machines);
    run.again = calloc(way->machines + 1, sizeof *run.again);
    bool good = run.machines && run.again &&
                range_scheduler_begin(&run.scheduler, (uint32_t)way->machines, cluster->frames,
                                      NULL, 0);
    for (uint64_t m = 0; good && m < way->machines; m++) {
        const struct cluster_kind *kind = cluster_kind_of(cluster, m);
        const double chance = lab_random_uniform(lab_random_bits(seed, CHANCE_SLOW, 0, (uint32_t)m,
                                                                 0));

        run.machines[m].fps = kind->fps[step];
        if (chance < cluster->slow_part)
            run.machines[m].fps /= cluster->slow_times;
        run.machines[m].begin_s = kind->begin_s;
    }
    if (good) {
        run.death_s = next_death(&run);
        good = play(&run);
    }

    out->shared[step] = run.now_s;
    out->deaths += (double)run.deaths;
    range_scheduler_end(&run.scheduler);
    free(run.machines);
    free(run.again);
    free(run.done);
    return good;
}

bool cluster_simulate(const struct cluster *cluster, const struct cluster_way *way, uint64_t seed,
                      struct cluster_times *out)
{
    *out = cluster_serial_times(cluster, way->machines);
    out->total = out->begin;

    for (int step = 0; step < CLUSTER_STEPS; step++) {
        if (!(cluster->kinds[0].fps[step] > 0))
            continue;
        if (!simulate_step(cluster, way, (enum cluster_step)step, seed, out))
            return false;
        out->total += out->shared[step];
    }

    out->total += out->steer + out->join;
    return true;
}
