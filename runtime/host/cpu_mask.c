/* Sets of processors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_*_S */
#endif
#include "cpu_mask.h"

#include <stdlib.h>
#include <string.h>

bool cox__cpu_mask_get(pid_t thread, struct cox__cpu_mask *mask)
{
    memset(mask, 0, sizeof *mask);
    return sched_getaffinity(thread, sizeof mask->set, mask->set) == 0;
}

bool cox__cpu_mask_set(pid_t thread, const struct cox__cpu_mask *mask)
{
    return sched_setaffinity(thread, sizeof mask->set, mask->set) == 0;
}

bool cox__cpu_mask_has(const struct cox__cpu_mask *mask, uint32_t cpu)
{
    return cpu < COX__CPUS_MAX && CPU_ISSET_S(cpu, sizeof mask->set, mask->set);
}

void cox__cpu_mask_add(struct cox__cpu_mask *mask, uint32_t cpu)
{
    if (cpu < COX__CPUS_MAX)
        CPU_SET_S(cpu, sizeof mask->set, mask->set);
}

uint32_t cox__cpu_mask_count(const struct cox__cpu_mask *mask)
{
    return (uint32_t)CPU_COUNT_S(sizeof mask->set, mask->set);
}

bool cox__cpu_mask_meets(const struct cox__cpu_mask *a, const struct cox__cpu_mask *b)
{
    struct cox__cpu_mask both;
    CPU_AND_S(sizeof both.set, both.set, a->set, b->set);
    return cox__cpu_mask_count(&both) > 0;
}

struct cox__cpu_mask cox__cpu_mask_without(const struct cox__cpu_mask *a,
                                           const struct cox__cpu_mask *b)
{
    struct cox__cpu_mask both, rest;
    CPU_AND_S(sizeof both.set, both.set, a->set, b->set);
    CPU_XOR_S(sizeof rest.set, rest.set, a->set, both.set);
    return rest;
}

void cox__cpu_mask_read(struct cox__cpu_mask *mask, const char *list)
{
    memset(mask, 0, sizeof *mask);
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);

        for (unsigned long cpu = first; cpu <= last && cpu < COX__CPUS_MAX; cpu++)
            cox__cpu_mask_add(mask, (uint32_t)cpu);

        list = end;
        if (*end == ',')
            list = end + 1;
    }
}
