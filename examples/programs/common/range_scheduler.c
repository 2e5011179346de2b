/* SPDX-License-Identifier: Apache-2.0 */
#include "range_scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool range_scheduler_begin(struct range_scheduler *scheduler, uint32_t ranks, uint64_t frames,
                           const struct frame_range *done, uint64_t done_count)
{
    uint64_t at = 0;

    *scheduler = (struct range_scheduler){.rank_count = ranks};
    scheduler->seconds_per_frame = calloc(ranks, sizeof *scheduler->seconds_per_frame);
    scheduler->left = calloc(done_count + 1, sizeof *scheduler->left);
    if (!scheduler->seconds_per_frame || !scheduler->left) {
        range_scheduler_end(scheduler);
        return false;
    }

    /* The gaps between ranges that are done, and what follows the last one. */
    for (uint64_t i = 0; i <= done_count; i++) {
        const uint64_t end = i < done_count ? done[i].first : frames;
        if (end > at)
            scheduler->left[scheduler->left_count++] = (struct frame_range){at, end - at};
        if (i < done_count)
            at = done[i].first + done[i].count;
    }

    return true;
}

void range_scheduler_end(struct range_scheduler *scheduler)
{
    free(scheduler->seconds_per_frame);
    free(scheduler->left);
    memset(scheduler, 0, sizeof *scheduler);
}

void range_scheduler_note(struct range_scheduler *scheduler, uint32_t rank, uint64_t frames,
                          double seconds)
{
    if (rank >= scheduler->rank_count || !frames || !(seconds > 0))
        return;

    const double now = seconds / (double)frames;
    double *kept = &scheduler->seconds_per_frame[rank];

    if (*kept > 0)
        *kept = (*kept + now) / 2;
    else
        *kept = now;
}

/* The mean frames per second of the ranks whose speed is known; 0 if none is.
 * `all_known`: whether all are. */
static double mean_speed(const struct range_scheduler *scheduler, bool *all_known)
{
    double sum = 0;
    uint32_t known = 0;

    for (uint32_t r = 0; r < scheduler->rank_count; r++)
        if (scheduler->seconds_per_frame[r] > 0) {
            sum += 1 / scheduler->seconds_per_frame[r];
            known++;
        }

    *all_known = known == scheduler->rank_count;
    if (known == 0)
        return 0;
    return sum / known;
}

/* Frames of the next range of a rank with known speed, of `left` frames. */
static double share(const struct range_scheduler *scheduler, double speed, double mean,
                    bool all_known, double left)
{
    double wanted = 0;

    /* Without all speeds a share would be wrong: the others may be much faster than the mean of the
     * first that report. */
    if (all_known)
        wanted = left * speed / (mean * scheduler->rank_count) / 2;
    wanted = fmin(wanted, speed * RANGE_SECONDS_MAX);
    return fmax(wanted, speed * RANGE_SECONDS_MIN);
}

struct frame_range range_scheduler_next(struct range_scheduler *scheduler, uint32_t rank)
{
    uint64_t left = 0, largest = 0;

    for (uint64_t i = 0; i < scheduler->left_count; i++) {
        left += scheduler->left[i].count;
        if (scheduler->left[i].count > scheduler->left[largest].count)
            largest = i;
    }
    if (!left || rank >= scheduler->rank_count)
        return (struct frame_range){0, 0};

    bool all_known;
    const double mean = mean_speed(scheduler, &all_known);
    const double own_s = scheduler->seconds_per_frame[rank];
    double speed = mean, wanted;

    if (own_s > 0) {
        speed = 1 / own_s;
        wanted = share(scheduler, speed, mean, all_known, (double)left);
    } else {
        wanted = fmin((double)left / scheduler->rank_count / FIRST_RANGE_PART,
                      FIRST_RANGE_FRAMES_MAX);
    }

    struct frame_range *from = &scheduler->left[largest];
    uint64_t count = left;
    if (wanted <= (double)left)
        count = (uint64_t)fmax(wanted, 1);

    /* Take all of the range if the rest would not be worth a beginning. */
    if (count > from->count ||
        (speed > 0 && (double)(from->count - count) < speed * RANGE_SECONDS_MIN / 4))
        count = from->count;

    const struct frame_range range = {from->first, count};
    from->first += count;
    from->count -= count;
    return range;
}
