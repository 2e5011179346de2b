/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

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
    uint64_t round = 0;
    for (uint32_t k = 0; k < cluster->kind_count; k++)
        round += cluster->kinds[k].count;
    machine %= round;
    const struct cluster_kind *kind = cluster->kinds;
    while (machine >= kind->count)
        machine -= (kind++)->count;
    return kind;
}

double cluster_step_bytes(const struct cluster *cluster, enum cluster_step step)
{
    return cluster->read_bytes + (step == CLUSTER_MAP ? cluster->written_bytes : 0);
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
