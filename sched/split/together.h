/* Passes that share their split: the policy sees them as one pass.
 *
 * To the policy, a device's band takes as long as its bands of all these passes. The simulator,
 * which sees public headers only, does the same in examples/programs/lab/sim/simulate.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_TOGETHER_H
#define COX_SCHED_TOGETHER_H

#include <coxswain/sched.h>
#include <coxswain/session.h>

/* What a device has done of a frame until now. */
struct cox__together_part {
    uint64_t frame; /* 1 + its index; 0 = none */
    uint32_t pass;  /* of the last band, from 0 for the first that shares */
    uint32_t first_row;
    uint32_t rows;      /* of the first pass */
    uint32_t pass_rows; /* of `pass` */
    bool uneven;        /* not the same rows in each pass: it tells nothing */
    uint64_t wall_ns, queue_ns, kernel_ns;
};

/* All zeros is none yet. */
struct cox__pass_group {
    struct cox__together_part parts[COX_IN_FLIGHT_MAX + 1][COX_DEVICES_MAX];
};

/* The frame's first pass is split, perhaps once more: what was told of the frame does not count. */
void cox__together_begin(struct cox__pass_group *together, uint64_t frame);

/* A band has ended, of the pass with this number, from 0. The passes of a frame come in order. */
void cox__together_add(struct cox__pass_group *together, uint32_t pass,
                       const struct cox_measurement *measurement);

/* The last of so many passes of a frame is over: what a device took for all of them. False: it had
 * no rows, or not the same in each pass. */
bool cox__together_sum(const struct cox__pass_group *together, uint32_t passes, uint64_t frame,
                       uint32_t device, struct cox_measurement *out);

#endif
