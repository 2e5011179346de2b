/* What the rows of a frame cost relative to each other: piecewise constant over the frame, learned from the launches.
 *
 * Work is counted in rows of mean cost: the whole frame has as much work as rows. Positions are relative, so that a
 * frame of another size has the same profile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_PROFILE_H
#define COX_SCHED_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

enum { COX__SEGMENTS = 32 };

struct cox__profile {
    double cost[COX__SEGMENTS];       /* of a row, over the mean */
    double spread[COX__SEGMENTS];     /* variance of that */
    double last[COX__SEGMENTS];       /* normalised residual of the last launch there */
    double before[COX__SEGMENTS + 1]; /* sum of the costs before the segment */
    double drift;                     /* variance by which a cost moves in a frame */
    uint32_t rows;                    /* of the last frame, */
    double segments;                  /* and segments in a row of it */
};

/* Rows that cost alike. */
void cox__profile_init(struct cox__profile *profile);

/* A frame later, of so many rows. Returns by how much the mean cost has changed since (a factor for every device's cost
 * per row): the profile itself keeps a mean of 1. */
double cox__profile_age(struct cox__profile *profile, uint32_t rows);

/* Rows first_row .. first_row + count - 1 of a frame of `rows` rows. */
struct cox__span {
    double from, to; /* positions, 0 .. COX__SEGMENTS */
    int first, last; /* segments */
    double first_part, last_part;
};
void cox__profile_span(const struct cox__profile *profile, uint32_t rows, uint32_t first_row, uint32_t count,
                       struct cox__span *span);

/* How uncertain the work there is (relative variance), and how much it is. */
double cox__profile_variance(const struct cox__profile *profile, const struct cox__span *span);
double cox__profile_work(const struct cox__profile *profile, uint32_t rows, uint32_t first_row, uint32_t count);

/* The row, rounded to the nearest, up to which there is `work` in the frame. */
uint32_t cox__profile_row(const struct cox__profile *profile, uint32_t rows, double work);

/* A launch over these rows took longer by `residual` (relative) than predicted; `variance` of that was expected.
 * `deviations`: by how much it did so beyond the other launches of its device, in deviations. */
void cox__profile_learn(struct cox__profile *profile, const struct cox__span *span, double residual, double variance,
                        double deviations);

/* Another picture: what is known of these rows counts for little. */
void cox__profile_reopen(struct cox__profile *profile, const struct cox__span *span);

/* Whether the last launch over these rows was off by as much, the same way. */
bool cox__profile_again(const struct cox__profile *profile, const struct cox__span *span, double deviations);

#endif
