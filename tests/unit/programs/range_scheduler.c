/* Ranges of frames for ranks of different speed: each frame is done once, and all ranks end at the same time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/range_scheduler.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(range_scheduler, .timeout = 300);

enum { BEGIN_MS = 100 }; /* cost of a range in addition to its frames */

static uint64_t random_of(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Simulate ranks with these frames per second. All frames cost the same, except for `noise`. Returns the time
 * divided by the ideal one, at which all speeds add up. Checks that every frame is handed out once. */
static double simulate(const double *speeds, uint32_t ranks, uint64_t frames, double noise,
                       const struct frame_range *done, uint64_t done_count)
{
    struct range_scheduler scheduler;
    struct rank {
        double free_at;
        struct frame_range range;
        double took;
        bool ended;
    } *all = calloc(ranks, sizeof *all);
    unsigned char *given = calloc(frames, 1);
    uint64_t state = 7, todo = frames;
    double sum = 0, last = 0;
    cr_assert(all && given && range_scheduler_begin(&scheduler, ranks, frames, done, done_count));
    for (uint64_t i = 0; i < done_count; i++) {
        memset(given + done[i].first, 1, done[i].count);
        todo -= done[i].count;
    }
    for (uint32_t r = 0; r < ranks; r++)
        sum += speeds[r];
    for (uint32_t ended = 0; ended < ranks;) {
        uint32_t next = ranks;
        for (uint32_t r = 0; r < ranks; r++)
            if (!all[r].ended && (next == ranks || all[r].free_at < all[next].free_at))
                next = r;
        struct rank *rank = &all[next];
        if (rank->range.count)
            range_scheduler_note(&scheduler, next, rank->range.count, rank->took);
        if (rank->free_at > last)
            last = rank->free_at;
        rank->range = range_scheduler_next(&scheduler, next);
        rank->ended = !rank->range.count;
        ended += rank->ended;
        for (uint64_t f = 0; f < rank->range.count; f++) {
            cr_assert_lt(rank->range.first + f, frames);
            cr_assert_eq(given[rank->range.first + f]++, 0, "frame %llu twice",
                         (unsigned long long)(rank->range.first + f));
        }
        const double off = 1 + noise * ((double)(random_of(&state) % 2001) / 1000 - 1);
        rank->took = BEGIN_MS / 1e3 + (double)rank->range.count / speeds[next] * off;
        rank->free_at += rank->took;
    }
    for (uint64_t f = 0; f < frames; f++)
        cr_assert_eq(given[f], 1, "frame %llu", (unsigned long long)f);
    range_scheduler_end(&scheduler);
    free(all);
    free(given);
    return last / ((double)todo / sum);
}

static void expect_near(const double *speeds, uint32_t ranks, uint64_t frames, double noise, double most)
{
    const double over = simulate(speeds, ranks, frames, noise, NULL, 0);
    printf("%u ranks, %llu frames: %.3f of the ideal time\n", ranks, (unsigned long long)frames, over);
    cr_expect_leq(over, most, "%u ranks, %llu frames: %g", ranks, (unsigned long long)frames, over);
}

Test(range_scheduler, different_ranks_end_together)
{
    static const double two[] = {20, 6}, five[] = {400, 50, 50, 45, 10}, one[] = {30};
    double many[1000];
    uint64_t state = 3;
    for (int r = 0; r < 1000; r++)
        many[r] = 10 + (double)(random_of(&state) % 90);
    expect_near(one, 1, 5000, 0, 1.02);
    expect_near(two, 2, 5000, 0.05, 1.04);
    expect_near(five, 5, 100000, 0.05, 1.05);
    expect_near(many, 100, 170000, 0.1, 1.15);
    expect_near(many, 1000, 1700000, 0.1, 1.2);
}

Test(range_scheduler, frames_that_are_done_are_not_handed_out)
{
    static const double speeds[] = {3, 10, 5};
    static const struct frame_range done[] = {{0, 10}, {50, 1}, {51, 9}, {990, 10}};
    simulate(speeds, 3, 1000, 0.2, done, 4);
    static const struct frame_range all[] = {{0, 1000}};
    struct range_scheduler scheduler;
    cr_assert(range_scheduler_begin(&scheduler, 2, 1000, all, 1));
    cr_expect_eq(range_scheduler_next(&scheduler, 0).count, 0);
    range_scheduler_end(&scheduler);
}

Test(range_scheduler, few_frames_and_many_ranks)
{
    double speeds[64];
    for (int r = 0; r < 64; r++)
        speeds[r] = 5;
    for (uint64_t frames = 1; frames < 70; frames++)
        simulate(speeds, 64, frames, 0, NULL, 0);
}

Test(range_scheduler, ranges_are_short_until_all_speeds_are_known)
{
    struct range_scheduler scheduler;
    cr_assert(range_scheduler_begin(&scheduler, 2, 20000, NULL, 0));
    range_scheduler_next(&scheduler, 0);
    const struct frame_range first = range_scheduler_next(&scheduler, 1);
    range_scheduler_note(&scheduler, 1, first.count, 0.15); /* the other rank may be ten times as fast */
    const uint64_t count = range_scheduler_next(&scheduler, 1).count;
    cr_expect_eq(count, (uint64_t)((double)first.count / 0.15 * RANGE_SECONDS_MIN));
    range_scheduler_note(&scheduler, 1, count, 2);
    range_scheduler_note(&scheduler, 0, first.count, 0.015);
    cr_expect_gt(range_scheduler_next(&scheduler, 0).count, 8000);
    cr_expect_lt(range_scheduler_next(&scheduler, 1).count, 1300);
    range_scheduler_end(&scheduler);
}
