/* Gaps in frames' times, and the memory that a file may ask for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "media/frame_gaps.h"
#include "media/memory_limit.h"

#include <criterion/criterion.h>

/* The gaps of a film with these times, which end with -1. */
static struct frame_gaps gaps_of(double interval, const int64_t *times)
{
    struct frame_gaps gaps;
    frame_gaps_begin(&gaps, interval);
    for (uint64_t n = 0; times[n] >= 0; n++)
        frame_gaps_add(&gaps, n, times[n]);
    return gaps;
}

#define GAPS(interval, ...) gaps_of(interval, (const int64_t[]){__VA_ARGS__, -1})

Test(frame_gaps, equal_intervals_have_none)
{
    const struct frame_gaps rounded = GAPS(1000 / 24.0, 0, 42, 83, 125, 167, 208, 250);
    cr_expect_not(frame_gaps_found(&rounded));
    const struct frame_gaps whole = GAPS(1, 0, 1, 2, 3, 4);
    cr_expect_not(frame_gaps_found(&whole));
    const struct frame_gaps slow_tick = GAPS(1.001, 997, 998, 999, 1001, 1002); /* 24000/1001 in ticks of 1/24 */
    cr_expect_not(frame_gaps_found(&slow_tick));
}

Test(frame_gaps, missing_frames_are_counted)
{
    const struct frame_gaps one = GAPS(1, 0, 1, 3, 4, 5);
    cr_expect(frame_gaps_found(&one));
    cr_expect_eq(one.missing, 1);
    cr_expect_eq(one.first, 2);

    const struct frame_gaps two = GAPS(1000 / 24.0, 0, 42, 208, 250, 292, 333, 458, 500);
    cr_expect(frame_gaps_found(&two));
    cr_expect_eq(two.gaps, 2);
    cr_expect_eq(two.missing, 5);
    cr_expect_eq(two.first, 2);
}

Test(frame_gaps, without_a_rate_the_first_interval_counts)
{
    const struct frame_gaps gaps = GAPS(0, 0, 40, 80, 200, 240);
    cr_expect(frame_gaps_found(&gaps));
    cr_expect_eq(gaps.missing, 2);
}

Test(frame_gaps, a_rate_that_varies_has_none)
{
    const struct frame_gaps gaps = GAPS(10, 0, 10, 40, 50, 90, 100, 130, 150);
    cr_expect_eq(gaps.gaps, 4);
    cr_expect_not(frame_gaps_found(&gaps));
}

Test(frame_gaps, times_that_do_not_grow_are_counted)
{
    const struct frame_gaps gaps = GAPS(1, 0, 1, 1, 2, 0, 1);
    cr_expect_not(frame_gaps_found(&gaps));
    cr_expect_eq(gaps.backwards, 2);
    cr_expect_eq(gaps.first_backwards, 2);
}

Test(frame_gaps, the_end_counts_whole_frames)
{
    const struct frame_gaps gaps = GAPS(512, 0, 512, 1024);
    cr_expect_eq(frame_gaps_until(&gaps, 0), 0);
    cr_expect_eq(frame_gaps_until(&gaps, 1536), 0);
    cr_expect_eq(frame_gaps_until(&gaps, 1024 + 807), 0, "an edit cuts a frame short");
    cr_expect_eq(frame_gaps_until(&gaps, 2048), 1);
    cr_expect_eq(frame_gaps_until(&gaps, 2560), 2);

    const struct frame_gaps ticks = GAPS(1, 0, 1, 2);
    cr_expect_eq(frame_gaps_until(&ticks, 3), 0);
    cr_expect_eq(frame_gaps_until(&ticks, 4), 1);
    const struct frame_gaps none = GAPS(1, -1);
    cr_expect_eq(frame_gaps_until(&none, 100), 0);
}

Test(frame_gaps, impossible_times_do_no_harm)
{
    const struct frame_gaps gaps = GAPS(1, 0, INT64_MAX, 5, INT64_MAX - 1);
    cr_expect(frame_gaps_found(&gaps));
    cr_expect_eq(frame_gaps_until(&gaps, INT64_MAX), 0);
}

Test(memory_limit, a_short_file_may_ask_for_little)
{
    const uint64_t least = UINT64_C(640) << 20, mib = 1 << 20;
    cr_expect_eq(memory_limit(1, 0), least);
    cr_expect_eq(memory_limit(mib, 0), least);
    cr_expect_eq(memory_limit(100 * mib, 0), 10000 * mib);
    cr_expect_eq(memory_limit(UINT64_MAX, 0), UINT64_MAX);
    cr_expect_eq(memory_limit(0, 0), UINT64_MAX, "a pipe");
    cr_expect_eq(memory_limit(0, 5 * mib), 5 * mib);
    cr_expect_eq(memory_limit(1, 5000 * mib), 5000 * mib);
}
