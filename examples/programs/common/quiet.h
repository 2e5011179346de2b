/* Whether other programs ran during a measurement. A round in which they used more than a tenth of
 * a processor is disturbed, and is repeated while there is time. The output says how many were.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef QUIET_H
#define QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct quiet {
    double budget_ns;      /* left for repeating rounds */
    const pid_t *children; /* processes that are ours too; may be NULL */
    size_t child_count;
    uint64_t begin_ns, busy_ns, own_ns;
    uint32_t kept, again;
    double kept_ns, others_ns; /* length of the kept rounds; others' processor time in them */
};

/* Wait until it is quiet. `seconds` is the budget for waiting and repeating. */
void quiet_start(struct quiet *quiet, double seconds);

void quiet_begin(struct quiet *quiet);

/* End a round. False: it was disturbed, repeat it. */
bool quiet_keep(struct quiet *quiet);

/* Processors that other programs used since quiet_begin; 0 = unknown. */
double quiet_others_now(const struct quiet *quiet);

/* Processors that other programs used in the kept rounds; negative = unknown. */
double quiet_others(const struct quiet *quiet);

/* Whether that is too much for the figures to mean anything. */
bool quiet_busy(const struct quiet *quiet);

#endif
