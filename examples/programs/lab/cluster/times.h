/* The times of real runs: what each range took on each rank. cox-tonemap-mpi writes them to
 * OUTPUT.pieces/times.csv.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_CLUSTER_TIMES_H
#define COX_EXAMPLES_LAB_CLUSTER_TIMES_H

#include "description.h"

struct times_range {
    enum cluster_step step;
    uint32_t rank;
    double frames, start_s, seconds;
};

struct times {
    uint64_t frames; /* of the film */
    uint32_t ranks;
    double begin_s, steer_s, join_s;
    double total_s; /* until the last range or step ended */
    double step_s[CLUSTER_STEPS];
    struct times_range *ranges;
    size_t count;
};

/* Read a file. False with the reason, which begins with the path. Free the result with
 * times_free. */
bool times_read(struct times *out, const char *path, char *why, size_t why_bytes);
void times_free(struct times *times);

/* Add a kind of machine for each rank, named after the file and the rank. Also set the film's
 * frames, the speeds of the serial steps and the spread. False with the reason if a rank has too
 * few ranges. */
bool times_fit(const struct times *times, const char *path, struct cluster *out, char *why,
               size_t why_bytes);

#endif
