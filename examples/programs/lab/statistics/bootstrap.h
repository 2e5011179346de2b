/* 95 % intervals of means, quantiles and ratios by a block bootstrap (H. R. Kuensch, The jackknife
 * and the bootstrap for general stationary observations, 1989). Consecutive frames are similar, so
 * whole blocks of them are drawn, with replacement, as many as there are. For the same reason the
 * intervals of quantiles are not those of order statistics, which take frames for independent. The
 * random numbers are fixed: the same frames give the same intervals.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BOOTSTRAP_H
#define COX_EXAMPLES_LAB_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAB_BOOTSTRAP_DRAWS = 1000,

    /* Frames that `cox-lab run` gives a policy in a row, for each frame in flight. */
    LAB_BLOCK_FRAMES = 8
};

struct lab_interval {
    double low, high; /* NaN = unknown: fewer than two blocks */
};

/* A value and the place of its block. */
struct lab_blocked {
    double value;
    uint32_t block;
};

struct lab_block {
    uint64_t number;
    uint32_t stratum;
    uint32_t count;
    double sum;
};

/* Values in blocks. Initialise it with zeros. */
struct lab_blocks {
    struct lab_blocked *values;
    size_t count, room;
    struct lab_block *list;
    uint32_t blocks, block_room;
    bool sorted; /* the values, by size */
    bool failed; /* out of memory */

    /* Of the blocks to add. Each draw has as many blocks of a stratum, such as a phase, as there
     * are. Add all blocks of a stratum before the next one's. */
    uint32_t stratum;
};

/* Add the values of one block in a row. Its number differs from the previous block's. */
void lab_blocks_add(struct lab_blocks *blocks, double value, uint64_t block);
void lab_blocks_free(struct lab_blocks *blocks);

struct lab_intervals {
    struct lab_interval mean, p50, p99, p995, p999; /* quantiles by the nearest rank */
    struct lab_interval ratio;                      /* of the median over that of `over` */
};

/* Sorts both. `over` may be NULL; its blocks are drawn independently. False if out of memory. */
bool lab_bootstrap(struct lab_blocks *of, struct lab_blocks *over, struct lab_intervals *out);

/* The times of one policy over those of another. */
struct lab_pair {
    uint32_t blocks;  /* that both have */
    double mean, p99; /* over these blocks; NaN if there are none */
    struct lab_interval mean_interval, p99_interval;
};

extern const struct lab_pair lab_no_pair;

/* Pair the blocks of the same stratum and number: each draw has the same ones of both policies. So
 * what slows down both at once does not widen the intervals. The numbers must ascend in each
 * stratum. Sorts the values of both. False if out of memory. */
bool lab_bootstrap_pair(struct lab_blocks *of, struct lab_blocks *over, struct lab_pair *out);

#endif
