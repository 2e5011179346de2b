/* The references of policies: each device alone, and the best static split, found by a sweep.
 * All of them run repeatedly between the policies' frames; this module keeps the samples.
 *
 * Not every split runs in every round, and rounds differ: the machine does other work, or gets
 * warm. So the effect of each round on all splits is estimated and removed (medians of rows and
 * columns in turn, Tukey's median polish, on logarithms). The minimum of many noisy medians is
 * lower than any split's true time. So one half of the samples chooses the split, with the
 * samples of its neighbours. The other half gives its time. Then the halves are swapped, and the
 * mean of both times is the oracle's time.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SWEEP_H
#define COX_EXAMPLES_LAB_SWEEP_H

#include <coxswain/sched.h>

enum { LAB_CANDIDATES_MAX = 160 };

/* A static split: the devices' bands in their order. Candidate d < device_count is device d
 * alone. */
struct lab_candidate {
    uint32_t rows[COX_DEVICES_MAX];
    double *ns;
    uint32_t *rounds; /* of each sample */
    size_t count, room;
    size_t marked; /* samples that lab_sweep_undo keeps */
};

struct lab_sweep {
    uint32_t device_count;
    uint32_t rows, row_alignment;
    uint32_t turn;    /* samples in a row */
    uint32_t kept;    /* the first candidates run in each round: devices alone, and the curve */
    uint32_t refined; /* times */
    uint32_t round;   /* under way; the first is 0 */
    uint32_t count;
    struct lab_candidate candidates[LAB_CANDIDATES_MAX];
};

/* --- Candidates: sweep.c ---------------------------------------------------------------------- */

/* The first candidates are each device alone. `turn` >= 1. */
void lab_sweep_begin(struct lab_sweep *sweep, uint32_t device_count, uint32_t rows,
                     uint32_t row_alignment, uint32_t turn);
void lab_sweep_end(struct lab_sweep *sweep);

/* The subset of all devices, a bit each. */
uint32_t lab_sweep_all(const struct lab_sweep *sweep);

/* Rows in proportion to `speed` for the devices in `subset`, in whole multiples of the row alignment; none for the
 * others. */
void lab_sweep_balance(const struct lab_sweep *sweep, const double *speed, uint32_t subset,
                       uint32_t *rows);

/* Add candidates over the whole range, in equal steps: a share of the rows on the first device, the
 * rest on the others by their speed. Call this before lab_sweep_spread. */
void lab_sweep_curve(struct lab_sweep *sweep, const double *speed, uint32_t steps);

/* Add candidates around balance, for all devices together and for smaller subsets. `speed`: rows
 * per time. */
void lab_sweep_spread(struct lab_sweep *sweep, const double *speed);

/* Add a policy's split of a frame, rounded to whole multiples of the row alignment. */
void lab_sweep_propose(struct lab_sweep *sweep, const uint32_t *rows);

/* Add candidates around the best one so far, at a distance that changes with each call. */
void lab_sweep_refine(struct lab_sweep *sweep);

/* False if out of memory. */
bool lab_sweep_add(struct lab_sweep *sweep, uint32_t candidate, double ns);

/* Begin the next round: keep the samples so far. */
void lab_sweep_mark(struct lab_sweep *sweep);

/* Drop the samples of this round, because other programs ran meanwhile. */
void lab_sweep_undo(struct lab_sweep *sweep);

/* --- Samples: sweep_judge.c ------------------------------------------------------------------- */

/* Order statistics of one candidate; all 0 without samples. */
struct lab_spread {
    double mean_ns, p50_ns, p90_ns, p99_ns, p999_ns;
    size_t count;
};
struct lab_spread lab_spread_of(const double *ns, size_t count);

/* The times of all candidates in a typical round. False if out of memory. */
bool lab_sweep_spreads(const struct lab_sweep *sweep,
                       struct lab_spread spreads[LAB_CANDIDATES_MAX]);

/* The candidate with the smallest median; UINT32_MAX if none has samples. */
uint32_t lab_sweep_best(const struct lab_spread *spreads, uint32_t count);

/* Whether more samples of a candidate can matter: it is kept, has few samples, or is so close to
 * the best that noise can explain the difference. */
bool lab_sweep_wanted(const struct lab_sweep *sweep, uint32_t candidate,
                      const struct lab_spread *spreads);

struct lab_swept {
    uint32_t candidate;       /* the best of all samples */
    struct lab_spread spread; /* p50 and mean by halves */
    uint32_t swept;           /* candidates with samples */
};

/* False if there are no samples or no memory. */
bool lab_sweep_oracle(const struct lab_sweep *sweep, struct lab_swept *out);

/* --- On devices: sweep.c ---------------------------------------------------------------------- */

/* A policy with the split of the last lab_sweep_choose, for all its sessions in this process: the
 * same shares in every pass. */
extern const struct cox_policy lab_sweep_policy;
void lab_sweep_choose(const uint32_t *rows, uint32_t device_count);

#endif
