/* Passes that share their split: the policy sees them as one pass.
 *
 * For the policy, a device's band takes the time of its bands in all these passes. The simulator,
 * which includes public headers only, does the same in examples/programs/lab/sim/simulate.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_TOGETHER_H
#define COX_SCHED_TOGETHER_H

#include <coxswain/sched.h>
#include <coxswain/session.h>

/* What a device has done of a frame so far. */
struct cox__together_part {
    uint64_t frame; /* 1 + its index; 0 = none */
    uint32_t pass;  /* of the last band, from 0 for the first that shares */
    uint32_t first_row;
    uint32_t rows;      /* of the first pass */
    uint32_t pass_rows; /* of `pass` */
    bool uneven;        /* not the same rows in each pass, so that the sums mean nothing */
    uint64_t wall_ns, queue_ns, kernel_ns, late_ns;
};

/* All zero: no frame yet. */
struct cox__pass_group {
    struct cox__together_part parts[COX_IN_FLIGHT_MAX + 1][COX_DEVICES_MAX];
};

/* The frame's first pass is split, perhaps for the second time: forget what was added before. */
void cox__together_begin(struct cox__pass_group *together, uint64_t frame);

/* Add a band that has ended, of the pass with this number, from 0. The passes of a frame come in
 * order. */
void cox__together_add(struct cox__pass_group *together, uint32_t pass,
                       const struct cox_measurement *measurement);

/* After the last of `passes` passes: fill in the device's time for all of them. False: it had no
 * rows, or not the same rows in each pass. */
bool cox__together_sum(const struct cox__pass_group *together, uint32_t passes, uint64_t frame,
                       uint32_t device, struct cox_measurement *out);

#endif
