/* The formula: the time of each step, term by term. docs/reference/clusters.md explains it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "description.h"
#include "common/range_scheduler.h"

#include <math.h>

/* All machines of a step together. */
struct machines {
    double count;
    double fps;     /* the sum */
    double begin_s; /* of a range, the mean */
};

static struct machines machines_of(const struct cluster *cluster, uint64_t machines,
                                   enum cluster_step step)
{
    struct machines all = {.count = (double)machines};

    for (uint64_t m = 0; m < machines; m++) {
        const struct cluster_kind *kind = cluster_kind_of(cluster, m);
        all.fps += kind->fps[step];
        all.begin_s += kind->begin_s / all.count;
    }

    return all;
}

/* The ranges of a machine. */
struct ranges {
    double count, first_s, last_s;
    double apart_s; /* between the ends of machines with the same number of ranges, or one less */
};

static struct ranges ranges_of(const struct cluster *cluster, const struct cluster_way *way,
                               const struct machines *all)
{
    const double frames = (double)cluster->frames, each_s = frames / all->fps;
    struct ranges ranges;

    if (way->engine == CLUSTER_MPI) {
        const double first = fmin(frames / all->count / FIRST_RANGE_PART, FIRST_RANGE_FRAMES_MAX);
        ranges.first_s = fmax(1, first) * all->count / all->fps;
        ranges.last_s = fmin(RANGE_SECONDS_MIN, each_s);
        const double halved_s = fmin(each_s, 2 * RANGE_SECONDS_MAX);
        ranges.count = 2 + fmax(0, log2(halved_s / RANGE_SECONDS_MIN)) +
                       (each_s - halved_s) / RANGE_SECONDS_MAX;
        ranges.apart_s = ranges.last_s / 2;
    } else {
        const double pieces = fmin((double)way->pieces, frames), rounds = ceil(pieces / all->count);
        ranges.first_s = ranges.last_s = frames / pieces * all->count / all->fps;
        ranges.count = rounds;
        ranges.apart_s = (rounds - pieces / all->count) * ranges.last_s;
    }

    if (all->count < 2)
        ranges.apart_s = 0;
    return ranges;
}

/* Return the step's time, and add to the losses. */
static double step_s(const struct cluster *cluster, const struct cluster_way *way,
                     enum cluster_step step, struct cluster_losses *losses)
{
    const struct machines all = machines_of(cluster, way->machines, step);
    const struct ranges ranges = ranges_of(cluster, way, &all);
    const double frames = (double)cluster->frames, work = frames / all.fps;
    const double slowed = work /
                          (1 - cluster->slow_part + cluster->slow_part / cluster->slow_times);
    const double bytes = frames * cluster_step_bytes(cluster, step);
    double storage = 0;

    if (cluster->storage_bytes_per_s > 0)
        storage = bytes / cluster->storage_bytes_per_s;
    if (cluster->machine_bytes_per_s > 0)
        storage = fmax(storage, bytes / (all.count * cluster->machine_bytes_per_s));

    const double waits = fmax(0, storage - slowed);
    const double begins = ranges.count * all.begin_s;
    const double end = ranges.apart_s + ranges.last_s * cluster->spread * sqrt(2 * log(all.count));
    const bool mpi = way->engine == CLUSTER_MPI;
    double faults = slowed - work;

    /* A slow machine delays the end by its last range. In MPI this range is made for its speed;
     * only the first one, before its speed is known, may take longer than all others together. */
    const double slow = 1 - pow(1 - cluster->slow_part, all.count);
    if (mpi)
        faults += slow * fmax(0, ranges.first_s * cluster->slow_times - slowed);
    else
        faults += slow * ranges.last_s * (cluster->slow_times - 1) / 2;
    double total = slowed + waits + begins + end + (faults - (slowed - work));

    /* A death in MPI costs all machines half of their current ranges, which are a quarter of a
     * share in the mean, or the longest possible. In a queue it costs one machine half a piece. A
     * machine that is out does not die. */
    double deaths = cluster_death_rate(cluster, 1), half_s = ranges.last_s / 2;
    if (mpi) {
        deaths = cluster_death_rate(cluster, all.count);
        half_s = fmin(work / 8, RANGE_SECONDS_MAX / 2);
    }
    if (deaths > 0) {
        double more = HUGE_VAL;
        if (deaths * half_s < 1)
            more = total * deaths * (cluster->again_s + half_s) / (1 - deaths * half_s);
        faults += more;
        total += more;
    }

    losses->storage += waits;
    losses->ranges += begins;
    losses->end += end;
    losses->faults += faults;
    return total;
}

void cluster_model(const struct cluster *cluster, const struct cluster_way *way,
                   struct cluster_times *out, struct cluster_losses *losses)
{
    struct cluster_losses own, *sum = losses ? losses : &own;

    *sum = (struct cluster_losses){0};
    *out = cluster_serial_times(cluster, way->machines);
    sum->serial = out->begin + out->steer + out->join;
    out->total = sum->serial;

    for (int step = 0; step < CLUSTER_STEPS; step++)
        if (cluster->kinds[0].fps[step] > 0) {
            out->shared[step] = step_s(cluster, way, (enum cluster_step)step, sum);
            out->total += out->shared[step];
        }
}
