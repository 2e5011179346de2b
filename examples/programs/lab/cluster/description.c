/* SPDX-License-Identifier: Apache-2.0 */
#include "description.h"

const char *cluster_engine_name(enum cluster_engine engine)
{
    static const char *const names[CLUSTER_ENGINES] = {"mpi", "queue"};
    return names[engine];
}

const char *cluster_step_name(enum cluster_step step)
{
    static const char *const names[CLUSTER_STEPS] = {"analyse", "map"};
    return names[step];
}

const struct cluster_kind *cluster_kind_of(const struct cluster *cluster, uint64_t machine)
{
    const struct cluster_kind *kind = cluster->kinds;
    uint64_t round = 0;

    for (uint32_t k = 0; k < cluster->kind_count; k++)
        round += cluster->kinds[k].count;

    machine %= round;
    while (machine >= kind->count)
        machine -= (kind++)->count;
    return kind;
}

double cluster_step_bytes(const struct cluster *cluster, enum cluster_step step)
{
    if (step == CLUSTER_MAP)
        return cluster->read_bytes + cluster->written_bytes;
    return cluster->read_bytes;
}

double cluster_death_rate(const struct cluster *cluster, double machines)
{
    static const double seconds_per_day = 86400;
    return cluster->deaths_per_day / seconds_per_day * machines;
}

double cluster_ideal_s(const struct cluster *cluster, uint64_t machines)
{
    double fps[CLUSTER_STEPS] = {0}, ideal = 0;

    for (uint64_t m = 0; m < machines; m++)
        for (int step = 0; step < CLUSTER_STEPS; step++)
            fps[step] += cluster_kind_of(cluster, m)->fps[step];

    for (int step = 0; step < CLUSTER_STEPS; step++)
        if (fps[step] > 0)
            ideal += (double)cluster->frames / fps[step];

    return ideal;
}

struct cluster_times cluster_serial_times(const struct cluster *cluster, uint64_t machines)
{
    struct cluster_times times = {.begin = cluster->begin_s +
                                           cluster->begin_machine_s * (double)machines};

    if (cluster->steer_fps > 0)
        times.steer = (double)cluster->frames / cluster->steer_fps;
    if (cluster->join_fps > 0)
        times.join = (double)cluster->frames / cluster->join_fps;
    return times;
}
