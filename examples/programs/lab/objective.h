/* The names of objectives, on command lines, in scenarios and in the database.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_OBJECTIVE_H
#define COX_EXAMPLES_LAB_OBJECTIVE_H

#include <coxswain/sched.h>

#define LAB_OBJECTIVES "throughput, latency or energy"

const char *lab_objective_name(enum cox_objective objective);

/* False if no objective has that name. */
bool lab_objective_find(const char *name, enum cox_objective *objective);

#endif
