/* Divides the frames of a film among ranks of different speed, so that all end together. A rank
 * asks for a range, does it, reports its time and asks again. cox-tonemap-mpi hands out its ranges
 * with this, cox-lab cluster simulates it. The result depends only on the reported times.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANGE_SCHEDULER_H
#define RANGE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

/* To begin a range costs a tenth of a second. A range should take at least twenty times that. */
#define RANGE_SECONDS_MIN 2.0

/* A rank that dies loses the range it was doing. */
#define RANGE_SECONDS_MAX 120.0

/* A rank whose speed is unknown may be a hundred times slower than others. It gets this part of an
 * equal share, and at most four seconds of film. */
enum { FIRST_RANGE_PART = 8, FIRST_RANGE_FRAMES_MAX = 96 };

struct frame_range {
    uint64_t first, count; /* `first` comes first: by_first compares it */
};

struct range_scheduler {
    uint32_t rank_count;
    double *seconds_per_frame; /* of each rank; 0 = not known yet */
    struct frame_range *left;  /* not handed out yet, in rising order */
    uint64_t left_count;
};

/* Schedule frames 0 .. frames - 1, except the ranges in `done`: rising, without overlaps.
 * False if out of memory. */
bool range_scheduler_begin(struct range_scheduler *scheduler, uint32_t ranks, uint64_t frames,
                           const struct frame_range *done, uint64_t done_count);
void range_scheduler_end(struct range_scheduler *scheduler);

/* Report that a rank took `seconds` for `frames` frames. */
void range_scheduler_note(struct range_scheduler *scheduler, uint32_t rank, uint64_t frames,
                          double seconds);

/* The next range for a rank, from the largest that is left; its count is 0 if nothing is left.
 *
 * A range is half of the rank's share of what is left, by the ranks' speeds. It takes at least
 * RANGE_SECONDS_MIN and at most RANGE_SECONDS_MAX. Until all speeds are known, it takes
 * RANGE_SECONDS_MIN. */
struct frame_range range_scheduler_next(struct range_scheduler *scheduler, uint32_t rank);

#endif
