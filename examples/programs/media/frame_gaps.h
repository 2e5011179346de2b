/* Gaps in the times of a film's frames: where frames are missing, and times that do not grow.
 *
 * A gap is an interval of at least one and a half times the nominal one. A film whose intervals are
 * often that long has a variable frame rate; its gaps are not counted.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAME_GAPS_H
#define FRAME_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_GAPS_NO_TIME INT64_MIN

struct frame_gaps {
    double interval; /* nominal, in ticks; 0 = the first one counts */
    int64_t before;  /* the last time; FRAME_GAPS_NO_TIME = unknown */
    uint64_t intervals;
    uint64_t gaps, missing; /* intervals that are too long, and the frames that fit into them */
    uint64_t first;         /* the frame after the first gap */
    uint64_t backwards;     /* times that do not grow */
    uint64_t first_backwards;
};

/* Begin with the nominal interval in ticks; 0 = unknown. */
void frame_gaps_begin(struct frame_gaps *gaps, double interval);

/* The time of frame number `frame`, the one after the last one. FRAME_GAPS_NO_TIME: unknown. */
void frame_gaps_add(struct frame_gaps *gaps, uint64_t frame, int64_t time);

/* How many frames fit between the last time and the film's end, in ticks; 0 = none. */
uint64_t frame_gaps_until(const struct frame_gaps *gaps, int64_t end);

/* Whether the gaps are worth telling: there are some, and the frame rate does not explain them. */
bool frame_gaps_found(const struct frame_gaps *gaps);

#endif
