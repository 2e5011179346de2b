/* Real runs, as cox-tonemap-mpi writes them to OUTPUT.pieces/times.csv: what each range took on each rank.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_CLUSTER_TIMES_H
#define COX_EXAMPLES_LAB_CLUSTER_TIMES_H

#include "cluster.h"

struct times_range {
    enum cluster_step step;
    uint32_t rank;
    double frames, start_s, seconds;
};

struct times {
    uint64_t frames; /* of the film */
    uint32_t ranks;
    double begin_s, steer_s, join_s;
    double total_s; /* from the beginning to the last end */
    double step_s[CLUSTER_STEPS];
    struct times_range *ranges;
    size_t count;
};

/* False with the reason, which begins with the path. times_free it. */
bool times_read(struct times *out, const char *path, char *why, size_t why_bytes);
void times_free(struct times *times);

/* Adds a kind of machine for each rank, named after the file and the rank, and sets the serial steps' speeds and the
 * spread. `frames` is the film's. False with the reason: ranks have too few ranges. */
bool times_fit(const struct times *times, const char *path, struct cluster *out, char *why,
               size_t why_bytes);

#endif
