/* One device's share of one frame, put together from its bands: a frame may give a device several (a re-run of
 * somebody else's rows, a policy of many bands), and what policies want to know is the time of all its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_TALLY_H
#define COX_SCHED_TALLY_H

#include <coxswain/sched.h>

/* Zeroed = empty. */
struct cox__tally {
    uint64_t frame;
    uint64_t rows; /* 0 = empty */
    double wall_ns;
    double kernel_ns; /* 0 = absent for one of the bands */
};

/* Add a band. If it belongs to another frame than the bands before, these come out through `*closed` and the tally starts
 * anew with the band. A measurement without rows or without time says nothing and is dropped, as are shadows and
 * bands that failed. Returns whether `*closed` was filled. */
bool cox__tally_add(struct cox__tally *tally, const struct cox_measurement *measurement, struct cox__tally *closed);

/* Take what is there, leaving the tally empty. Called when a decision is due; bands of the frame that come later count as
 * a sample of their own. Returns whether there was something. */
bool cox__tally_take(struct cox__tally *tally, struct cox__tally *closed);

#endif
