/* What a policy is held against: each device alone, and the best static split there is, found by sweeping. All of them
 * are run again and again between the policies' frames; the samples come here.
 *
 * Not every split is run in every round, and the rounds differ: the machine has other work, or gets warm. So each
 * round's effect on all splits is estimated (medians of rows and columns in turn, Tukey's median polish, on logarithms)
 * and taken out. The least of many noisy medians is lower than any split's true time. So one half of the samples
 * chooses the split, with what its neighbours say of it, and the other half says what it takes, both ways, and the mean
 * of the two is the oracle's time.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SWEEP_H
#define COX_EXAMPLES_LAB_SWEEP_H

#include <coxswain/sched.h>

enum { LAB_CANDIDATES_MAX = 160 };

/* A static split: the devices' bands in their order. Candidate d < device_count is device d alone. */
struct lab_candidate {
    uint32_t rows[COX_DEVICES_MAX];
    double *ns;
    uint32_t *rounds; /* of each sample */
    size_t count, room;
    size_t marked; /* samples that stay whatever comes */
};

struct lab_sweep {
    uint32_t device_count;
    uint32_t rows, granule;
    uint32_t turn; /* samples that follow one another at once */
    uint32_t
        kept; /* the first so many candidates have a turn in each round: devices alone, and the curve */
    uint32_t refined; /* times */
    uint32_t round;   /* under way; the first is 0 */
    uint32_t count;
    struct lab_candidate candidates[LAB_CANDIDATES_MAX];
};

/* Begins with each device alone. `turn` >= 1. */
void lab_sweep_begin(struct lab_sweep *sweep, uint32_t device_count, uint32_t rows,
                     uint32_t granule, uint32_t turn);
void lab_sweep_end(struct lab_sweep *sweep);

/* Rows in proportion to `speed` for the devices in `subset` (a bit each), in whole granules; none for the others. */
void lab_sweep_balance(const struct lab_sweep *sweep, const double *speed, uint32_t subset,
                       uint32_t *rows);

/* Candidates from one end to the other, in so many steps: a share of the rows on the first device, the rest on the
 * others by their speed. Before lab_sweep_spread. */
void lab_sweep_curve(struct lab_sweep *sweep, const double *speed, uint32_t steps);

/* Candidates around balance, for all devices together and for smaller sets of them. `speed`: rows per time. */
void lab_sweep_spread(struct lab_sweep *sweep, const double *speed);

/* A candidate from elsewhere: what a policy made of the frame, rounded to whole granules. */
void lab_sweep_propose(struct lab_sweep *sweep, const uint32_t *rows);

/* More candidates around the best one so far: from time to time farther away, mostly closer. */
void lab_sweep_refine(struct lab_sweep *sweep);

/* False: out of memory. */
bool lab_sweep_add(struct lab_sweep *sweep, uint32_t candidate, double ns);

/* The next round begins: what was sampled stays. */
void lab_sweep_mark(struct lab_sweep *sweep);
/* The samples of the round under way go: other programs ran meanwhile. */
void lab_sweep_undo(struct lab_sweep *sweep);

/* Order statistics of one candidate; all 0 without samples. */
struct lab_spread {
    double mean_ns, p50_ns, p90_ns, p99_ns;
    size_t count;
};
struct lab_spread lab_spread_of(const double *ns, size_t count);

/* All candidates by what they take in a round like most. False: no memory. */
bool lab_sweep_spreads(const struct lab_sweep *sweep,
                       struct lab_spread spreads[LAB_CANDIDATES_MAX]);

/* The one with the least median; UINT32_MAX = none has samples. */
uint32_t lab_sweep_best(const struct lab_spread *spreads, uint32_t count);

/* Whether more samples of it can matter: it is kept, has few yet, or is not so far behind the best that noise
 * cannot explain it. */
bool lab_sweep_wanted(const struct lab_sweep *sweep, uint32_t candidate,
                      const struct lab_spread *spreads);

struct lab_swept {
    uint32_t candidate;       /* the best of all samples */
    struct lab_spread spread; /* p50 and mean by halves */
    uint32_t swept;           /* candidates with samples */
};

/* False: there are no samples, or no memory. */
bool lab_sweep_oracle(const struct lab_sweep *sweep, struct lab_swept *out);

/* --- on devices --- */

/* A policy whose split is what lab_sweep_choose said last, for the sessions of this process that have it: the same
 * shares in every pass. */
extern const struct cox_policy lab_sweep_policy;
void lab_sweep_choose(const uint32_t *rows, uint32_t device_count);

#endif
