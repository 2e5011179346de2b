/* Which core to reserve: a choice over a plain table, so that tests can cover machines of every
 * shape on any machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_CORES_H
#define COX_HOST_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A physical core, in the operating system's order. */
struct cox__core {
    /* the system's number of its first hardware thread that this process may use */
    uint32_t first_cpu;
    uint32_t cpu_count; /* hardware threads that this process may use */
    int kind; /* rank of its kind among the cores of the table, 0 = least powerful; -1 = unknown */
    uint32_t near_gpus; /* GPUs that the system lists as near this core */
};

/* Index of the core for the scheduler thread. The choice is among the cores of the least powerful
 * kind, or among all cores if their kinds are unknown or alike. The core near the most GPUs is
 * chosen. If there are several, the last one is chosen. The reason goes to `why` as a noun phrase
 * ("the last core"), always terminated. `count` >= 1. */
size_t cox__cores_choose(const struct cox__core *cores, size_t count, char *why, size_t why_bytes);

#endif
