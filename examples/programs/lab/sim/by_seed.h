/* How far a trial's figures depend on its seeds: 95 % intervals, and each policy against the first
 * one with the same seeds. A seed is one block of the bootstrap: within it, frames depend on each
 * other through levels, changes and the policy's own state.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_BY_SEED_H
#define COX_EXAMPLES_LAB_SIM_BY_SEED_H

#include "lab/statistics/bootstrap.h"

/* Of one ratio for each seed; NaN = not known. */
struct lab_seed_spread {
    double least, median, most;
};

struct lab_certainty {
    struct lab_intervals of; /* nanoseconds; NaN with one seed */

    /* Over the first policy; unknown for the first itself. */
    struct lab_pair over_first;
    struct lab_seed_spread mean_of_seeds, p99_of_seeds;
};

/* The periods of one policy by seeds. Initialise it with zeros. */
struct lab_by_seed {
    struct lab_blocks blocks;
    uint32_t seeds;
    double *mean_ns, *p99_ns; /* of each seed */
};

/* From periods[seeds * frames]. False if out of memory. */
bool lab_by_seed_fill(struct lab_by_seed *out, const double *periods, size_t frames,
                      uint32_t seeds);
void lab_by_seed_free(struct lab_by_seed *by_seed);

/* `first` may be `own`, or empty. Sorts the values of both. False if out of memory. */
bool lab_certainty_of(struct lab_by_seed *own, struct lab_by_seed *first,
                      struct lab_certainty *out);

#endif
