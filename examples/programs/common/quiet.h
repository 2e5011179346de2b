/* Whether other programs ran while something was measured: a round in which they used more than a tenth of a processor
 * is disturbed, whatever its figures are. While there is time, such rounds are done again; the output says how many.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef QUIET_H
#define QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct quiet {
    double budget_ns;      /* left for doing rounds again */
    const pid_t *children; /* processes that are ours too; may be NULL */
    size_t child_count;
    uint64_t begin_ns, busy_ns, own_ns;
    uint32_t kept, again;
    double kept_ns,
        others_ns; /* of the kept rounds: their length, processor time of other programs in it */
};

/* Waits until it is quiet, `seconds` at most. */
void quiet_start(struct quiet *quiet, double seconds);

void quiet_begin(struct quiet *quiet);

/* Returns false if the round is to be done again. */
bool quiet_keep(struct quiet *quiet);

/* Processors that other programs used since quiet_begin; 0 = unknown. */
double quiet_others_now(const struct quiet *quiet);

/* Processors that other programs used in the kept rounds; negative = unknown. */
double quiet_others(const struct quiet *quiet);

/* Whether that is so much that the figures say little. */
bool quiet_busy(const struct quiet *quiet);

#endif
