/* Which frames the next rank gets: the largest ranges first, by how quick each rank has been, so that ranks of unlike
 * strength end together. Deterministic but for the times that it is told.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEAL_H
#define DEAL_H

#include <stdbool.h>
#include <stdint.h>

/* To begin a range costs a tenth of a second; a range is to take twenty times that. */
#define DEAL_LEAST_SECONDS 2.0

/* What a range takes is lost where a rank dies. */
#define DEAL_MOST_SECONDS 120.0

/* A rank that has not told its speed gets this part of an equal share, and no more than four seconds of film: it may be
 * a hundred times slower than others. */
enum { DEAL_FIRST_PART = 8, DEAL_FIRST_MOST = 96 };

struct deal_range {
    uint64_t first, count; /* `first` is where by_first looks for it */
};

/* What is left to do, and how quick the ranks are. */
struct deal {
    uint32_t rank_count;
    double *seconds_per_frame; /* of each rank; 0 = not known yet */
    struct deal_range *left;   /* rising */
    uint64_t left_count;
};

/* Frames 0 .. frames - 1 of which `done`, rising and apart, are done already. False: out of memory. */
bool deal_begin(struct deal *deal, uint32_t ranks, uint64_t frames, const struct deal_range *done,
                uint64_t done_count);
void deal_end(struct deal *deal);

/* How long a rank took for so many frames. */
void deal_note(struct deal *deal, uint32_t rank, uint64_t frames, double seconds);

/* The next range for a rank; a count of 0: there is nothing left. Half of its share of what is left, by the ranks'
 * speeds, no less than it does in DEAL_LEAST_SECONDS, which pays for beginning a range, and no more than in
 * DEAL_MOST_SECONDS; as long as a rank has not told its speed, no more than in the former. */
struct deal_range deal_next(struct deal *deal, uint32_t rank);

#endif
