/* What the rows of a frame cost relative to each other: piecewise constant over the frame, learned from the launches.
 *
 * Work is counted in rows of mean cost: the whole frame has as much work as rows. Positions are relative, so that a
 * frame of another size has the same profile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_ROW_PROFILE_H
#define COX_ADAPTIVE_ROW_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

enum { COX__SEGMENTS = 32 };

struct cox__row_profile {
    double cost[COX__SEGMENTS];       /* of a row, over the mean */
    double spread[COX__SEGMENTS];     /* variance of `cost` */
    double last[COX__SEGMENTS];       /* normalised residual of the last launch over the segment */
    double before[COX__SEGMENTS + 1]; /* sum of the costs before the segment */
    double drift;                     /* variance by which a cost moves in a frame */
    uint32_t rows;                    /* of the last frame, */
    double segments;                  /* and segments in a row of it */
};

/* A profile in which all rows cost alike. */
void cox__row_profile_init(struct cox__row_profile *profile);

/* Go on to the next frame, of `rows` rows: costs fade towards the mean and become less certain. Returns the factor by
 * which the mean cost has changed, which the caller applies to every device's cost per row: the profile keeps a mean
 * of 1. */
double cox__row_profile_age(struct cox__row_profile *profile, uint32_t rows);

/* The segments under a range of rows. */
struct cox__span {
    double from, to;              /* positions, 0 .. COX__SEGMENTS */
    int first, last;              /* segments */
    double first_part, last_part; /* share of these two segments that lies in the span */
};

/* The span of rows first_row .. first_row + count - 1 of a frame of `rows` rows. */
void cox__row_profile_span(const struct cox__row_profile *profile, uint32_t rows, uint32_t first_row, uint32_t count,
                           struct cox__span *span);

/* The relative variance of the work in a span. */
double cox__row_profile_variance(const struct cox__row_profile *profile, const struct cox__span *span);

/* The work in rows first_row .. first_row + count - 1. */
double cox__row_profile_work(const struct cox__row_profile *profile, uint32_t rows, uint32_t first_row, uint32_t count);

/* The row, rounded to the nearest, before which there is `work` in the frame. */
uint32_t cox__row_profile_row(const struct cox__row_profile *profile, uint32_t rows, double work);

/* Learn from a launch over the span that took longer than predicted by `residual` (relative, of expected variance
 * `variance`). `deviations`: its residual in deviations, less that of the device's other launches in the frame. */
void cox__row_profile_learn(struct cox__row_profile *profile, const struct cox__span *span, double residual,
                            double variance, double deviations);

/* Make the costs under the span uncertain: the content of the frame has changed. */
void cox__row_profile_reopen(struct cox__row_profile *profile, const struct cox__span *span);

/* Whether the launches before this one, over the same rows, had residuals as large and of the same sign. */
bool cox__row_profile_again(const struct cox__row_profile *profile, const struct cox__span *span, double deviations);

#endif
