/* The processor of this machine, as a table that is read once, when a runtime is created. Include
 * with _GNU_SOURCE defined.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_MACHINE_H
#define COX_HOST_MACHINE_H

#include "cpu_mask.h"

#include <coxswain/runtime.h>

struct cox__machine {
    uint32_t cpus; /* hardware threads that this process may use */
    uint32_t core_count;
    uint32_t kind_count;
    uint32_t kind_cores[COX_CORE_KINDS_MAX];
    char kind_name[COX_CORE_KINDS_MAX][32];

    /* The core to reserve. */
    uint32_t chosen_cpu;
    uint32_t chosen_cpu_count;
    char chosen_why[48];
    struct cox__cpu_mask core;  /* its hardware threads that this process may use */
    struct cox__cpu_mask whole; /* all its hardware threads */
};

/* Fill in the counts, and choose the core to reserve: the core of `*wanted_cpu`, or
 * cox__cores_choose's if that is NULL. `machine` is zeroed. Returns false if no core can be chosen,
 * with the reason in `why`; the counts may be filled in even so. */
bool cox__machine_read(struct cox__machine *machine, const struct cox__cpu_mask *allowed,
                       const uint32_t *wanted_cpu, char *why, size_t why_bytes);

#endif
