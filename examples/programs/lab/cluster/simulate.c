/* A run, event by event. Machines work on ranges of frames at full speed unless storage cannot keep up: then its bytes
 * go to the machines in equal parts, none more than it wants (max-min fair), as parallel file systems and switches
 * come near to.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"
#include "common/by_first.h"
#include "common/deal.h"
#include "lab/sim/random.h"

#include <math.h>
#include <stdlib.h>

enum { CHANCE_SLOW = 1, CHANCE_RANGE, CHANCE_DEATH, CHANCE_DEAD };
enum { DEATHS_MOST = 2000 }; /* without a range that ends meanwhile; more is no run that ends */

enum machine_state { IDLE, WORKING, OUT, ENDED };

struct machine {
    enum machine_state state;
    double fps, begin_s;
    struct deal_range range;
    double took_s; /* the range, without waiting for storage */
    double left_s; /* of that */
    double wants;  /* bytes per second */
    double rate;   /* of what it would do without waiting */
    double since_s, back_s;
};

/* One of the shared steps. */
struct run {
    const struct cluster *cluster;
    const struct cluster_way *way;
    enum cluster_step step;
    uint64_t seed, drawn; /* numbers drawn so far */
    double now_s, death_s;
    struct machine *machines;
    struct deal deal;        /* of MPI */
    struct deal_range *done; /* of MPI, in no order */
    uint64_t done_count, done_room;
    struct deal_range *again; /* of a queue: pieces that were lost */
    uint64_t again_count, piece;
    uint64_t deaths,
        drawn_deaths; /* `drawn`: since a range ended; those of machines that are out count, too */
};

static double uniform(struct run *run, uint32_t stream, uint32_t machine)
{
    return lab_random_uniform(lab_random_bits(run->seed, stream, run->drawn++, machine,
                                              (uint32_t)run->step));
}

/* When the next machine dies; all are alike in that. */
static double next_death(struct run *run)
{
    const double rate = cluster_death_rate(run->cluster, (double)run->way->machines);
    return rate > 0 ? run->now_s - lab_log(uniform(run, CHANCE_DEATH, 0)) / rate : HUGE_VAL;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static struct deal_range next_range(struct run *run, uint32_t machine)
{
    if (run->way->engine == CLUSTER_MPI)
        return deal_next(&run->deal, machine);
    if (run->again_count)
        return run->again[--run->again_count];
    struct deal_range range = {0, 0};
    while (!range.count &&
           run->piece < run->way->pieces) { /* there may be more pieces than frames */
        range.first = run->cluster->frames * run->piece / run->way->pieces;
        range.count = run->cluster->frames * (run->piece + 1) / run->way->pieces - range.first;
        run->piece++;
    }
    return range;
}

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

static bool keep_done(struct run *run, struct deal_range range)
{
    if (run->done_count == run->done_room) {
        const uint64_t room = run->done_room ? 2 * run->done_room : 1024;
        struct deal_range *more = realloc(run->done, room * sizeof *more);
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
    deal_note(&run->deal, m, machine->range.count, run->now_s - machine->since_s);
    return keep_done(run, machine->range);
}

/* --- Deaths ------------------------------------------------------------------------------------------------------- */

/* All end, and begin again with what is not done. */
static bool begin_again(struct run *run)
{
    deal_end(&run->deal);
    if (run->done_count)
        qsort(run->done, run->done_count, sizeof *run->done, by_first);
    for (uint64_t m = 0; m < run->way->machines; m++) {
        run->machines[m].state = OUT;
        run->machines[m].back_s = run->now_s + run->cluster->again_s;
    }
    return deal_begin(&run->deal, (uint32_t)run->way->machines, run->cluster->frames, run->done,
                      run->done_count);
}

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
        run->death_s += run->cluster->again_s; /* until then there is nothing that could die */
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

/* --- Time --------------------------------------------------------------------------------------------------------- */

/* How fast each machine works: its bytes within its link, and all of them within what storage gives. */
static void share_storage(struct run *run)
{
    const double link = run->cluster->machine_bytes_per_s > 0 ? run->cluster->machine_bytes_per_s
                                                              : HUGE_VAL;
    const double all = run->cluster->storage_bytes_per_s > 0 ? run->cluster->storage_bytes_per_s
                                                             : HUGE_VAL;
    double sum = 0, level = 0;
    uint64_t open = 0;
    for (uint64_t m = 0; m < run->way->machines; m++)
        if (run->machines[m].state == WORKING) {
            sum += fmin(run->machines[m].wants, link);
            open++;
        }
    /* Machines that want less than an equal part get what they want; the others share what is left, until no more of
     * them want less than their part. */
    for (double next = sum > all ? all / (double)open : HUGE_VAL; next > level * (1 + 1e-12);) {
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
        next = others ? left / (double)others : level;
    }
    for (uint64_t m = 0; m < run->way->machines; m++) {
        struct machine *machine = &run->machines[m];
        machine->rate = machine->wants > 0 ? fmin(1, fmin(link, level) / machine->wants) : 1;
    }
}

/* The time of the next event, and whether there is one. */
static bool next_event(const struct run *run, double *at_s)
{
    *at_s = HUGE_VAL;
    bool any = false;
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

static bool advance(struct run *run, double to_s)
{
    const double passed = to_s - run->now_s;
    run->now_s = to_s;
    for (uint64_t m = 0; m < run->way->machines; m++) {
        struct machine *machine = &run->machines[m];
        if (machine->state == WORKING) {
            machine->left_s -= passed * machine->rate;
            /* What is left may be too little to move the time on. */
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
                deal_begin(&run.deal, (uint32_t)way->machines, cluster->frames, NULL, 0);
    for (uint64_t m = 0; good && m < way->machines; m++) {
        const struct cluster_kind *kind = cluster_kind_of(cluster, m);
        const double chance = lab_random_uniform(lab_random_bits(seed, CHANCE_SLOW, 0, (uint32_t)m,
                                                                 0));
        run.machines[m].fps = kind->fps[step] /
                              (chance < cluster->slow_part ? cluster->slow_times : 1);
        run.machines[m].begin_s = kind->begin_s;
    }
    run.death_s = good ? next_death(&run) : 0;
    good = good && play(&run);
    out->shared[step] = run.now_s;
    out->deaths += (double)run.deaths;
    deal_end(&run.deal);
    free(run.machines);
    free(run.again);
    free(run.done);
    return good;
}

bool cluster_simulate(const struct cluster *cluster, const struct cluster_way *way, uint64_t seed,
                      struct cluster_times *out)
{
    *out = (struct cluster_times){.begin = cluster->begin_s +
                                           cluster->begin_machine_s * (double)way->machines};
    out->total = out->begin;
    for (int step = 0; step < CLUSTER_STEPS; step++) {
        if (!(cluster->kinds[0].fps[step] > 0))
            continue;
        if (!simulate_step(cluster, way, (enum cluster_step)step, seed, out))
            return false;
        out->total += out->shared[step];
    }
    out->steer = cluster->steer_fps > 0 ? (double)cluster->frames / cluster->steer_fps : 0;
    out->join = cluster->join_fps > 0 ? (double)cluster->frames / cluster->join_fps : 0;
    out->total += out->steer + out->join;
    return true;
}
