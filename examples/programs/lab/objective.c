/* SPDX-License-Identifier: Apache-2.0 */
#include "objective.h"

#include <string.h>

static const char *const names[] = {[COX_OBJECTIVE_THROUGHPUT] = "throughput",
                                    [COX_OBJECTIVE_ENERGY] = "energy",
                                    [COX_OBJECTIVE_LATENCY] = "latency"};

const char *lab_objective_name(enum cox_objective objective)
{
    return names[objective];
}

bool lab_objective_find(const char *name, enum cox_objective *objective)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *objective = (enum cox_objective)i;
            return true;
        }

    return false;
}
