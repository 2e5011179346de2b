/* 95 % intervals of means, quantiles and ratios of medians by a block bootstrap (H. R. Kuensch, The
 * jackknife and the bootstrap for general stationary observations, 1989). Consecutive frames are
 * similar, so whole blocks of them are drawn, with replacement, as many as there are. The random
 * numbers are fixed: the same frames give the same intervals.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BOOTSTRAP_H
#define COX_EXAMPLES_LAB_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAB_BOOTSTRAP_DRAWS = 1000 };

struct lab_interval {
    double low, high; /* NaN = unknown: fewer than two blocks */
};

/* A value and its block. */
struct lab_blocked {
    double value;
    uint32_t block;
};

/* Values in blocks. Initialise it with zeros. */
struct lab_blocks {
    struct lab_blocked *values;
    size_t count, room;
    uint32_t blocks;
    uint64_t last; /* number of the last block */
    bool failed;   /* out of memory */
};

/* Add the values of one block in a row. Its number differs from the previous block's. */
void lab_blocks_add(struct lab_blocks *blocks, double value, uint64_t block);
void lab_blocks_free(struct lab_blocks *blocks);

struct lab_intervals {
    struct lab_interval mean, p50, p99; /* quantiles by the nearest rank */
    struct lab_interval ratio;          /* of the median over that of `over` */
};

/* Sorts both. `over` may be NULL. False if out of memory. */
bool lab_bootstrap(struct lab_blocks *of, struct lab_blocks *over, struct lab_intervals *out);

#endif
