/* Values of one kind: quantiles, and how often and how far values lie beyond the usual ones.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_SAMPLE_H
#define COX_EXAMPLES_LAB_FIT_SAMPLE_H

#include "lab/sim/scenario.h"

struct lab_sample {
    double *values; /* the caller's, with room */
    size_t count;
};

/* 0 for no values. Sorts. */
double lab_sample_quantile(struct lab_sample *sample, double q);

void lab_sample_add(struct lab_sample *sample, double value);

/* Values beyond 0.2 ms and six medians are the tail; `*usual` is the median of the others.
 * Sorts. */
void lab_sample_tail(struct lab_sample *sample, double *usual, struct lab_scenario_tail *tail);

/* The tail beyond 0.2 ms and six times `usual` of delays. Some delays were cut short: they are
 * negative, or less than half of `usual`. Sorts. */
void lab_sample_cut_tail(struct lab_sample *sample, double usual, struct lab_scenario_tail *tail);

#endif
