/* How certain the figures of a report are: 95 % intervals, and each policy against the first. They
 * come from the same blocks of frames as those of `cox-lab run`, so both give the same intervals.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_CERTAINTY_H
#define COX_EXAMPLES_LAB_REPORT_CERTAINTY_H

#include "lab/statistics/bootstrap.h"
#include "policy_figures.h"

/* All sessions of a policy together, in one phase or in all. */
struct report_certainty {
    uint32_t blocks; /* that the intervals come from */
    struct lab_intervals of;
    struct lab_pair over_first; /* unknown for the first policy */
};

/* The policy that the others are compared with: the first one of the run that is not the oracle.
 * policy_count = no such policy. */
uint32_t report_first_policy(const struct report_run *run);

/* `phase` may be REPORT_ALL_PHASES: then each draw has as many blocks of each phase as there are.
 * False if out of memory. */
bool report_certainty(const struct report_run *run, uint32_t policy, uint32_t phase,
                      struct report_certainty *out);

#endif
