/* Random splits, the same for the same seed on every machine, and checks that they are what ran.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RANDOM_SPLITS_H
#define COX_TESTS_RANDOM_SPLITS_H

#include <coxswain/session.h>

/* The next number of a sequence, whose state is `seed`. */
uint64_t random_next(uint64_t *seed);
uint32_t random_below(uint64_t *seed, uint32_t bound);

/* A sequence with a small state: a number of 24 bits, and one below a bound. */
uint32_t random_short(uint32_t *seed);
uint32_t random_short_below(uint32_t *seed, uint32_t bound);

/* Which pairs of values of these choices have occurred together. Zero-initialise it. */
enum { RANDOM_PAIRS_CHOICES = 17, RANDOM_PAIRS_VALUES = 16 };
struct random_pairs {
    bool seen[RANDOM_PAIRS_CHOICES][RANDOM_PAIRS_VALUES][RANDOM_PAIRS_CHOICES][RANDOM_PAIRS_VALUES];
};

/* How many pairs of these values are new. With `keep` they are recorded. */
uint32_t random_pairs_new(struct random_pairs *pairs, const uint8_t values[RANDOM_PAIRS_CHOICES], bool keep);

/* Draw split number `number` of a frame, legal for any number of devices. Four kinds alternate:
 *   - one band for each device, in any order
 *   - some devices without rows
 *   - several bands for each device
 *   - many bands of one row alignment, each for any device */
void random_splits_draw(uint32_t number, uint32_t rows, uint32_t row_alignment, uint32_t devices,
                        struct cox_split *out);

/* Set what to draw for the next session. Call this before the session is created. Its policy and its reports read
 * it.
 *
 * Cuts are drawn on `row_alignment` and then moved to the session's row alignment. Sessions of different row
 * alignments thus get about the same splits. 0 = the session's row alignment. */
void random_splits_begin(uint32_t first_number, uint32_t row_alignment);

extern const struct cox_policy random_splits_policy;

/* Sums over the reports of sessions. */
struct random_tally {
    uint64_t frames;
    uint64_t wrong; /* frames that were not split as drawn */
    uint64_t idle;  /* frames in which a device had no rows */
    uint32_t bands_most;
    uint32_t bands_most_of_one; /* of one device in one frame */
    uint64_t rows[COX_DEVICES_MAX];
};

/* random_tally_report adds a report of a session with this policy. random_tally_add adds a session's tally to
 * another one. */
void random_tally_report(struct random_tally *tally, const struct cox_frame_report *report, uint32_t rows,
                         uint32_t row_alignment, uint32_t devices);
void random_tally_add(struct random_tally *to, const struct random_tally *from);

/* Print a line "splits ...". Returns how many of the devices never got a row. */
uint32_t random_tally_print(const struct random_tally *tally, uint32_t devices);

#endif
