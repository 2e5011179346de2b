/* A set of rows: ranges in ascending order, with gaps between them.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_RANGES_H
#define BENCH_SUITE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* More than the ranges that bands of COX_DEVICES_MAX devices make. */
enum { SUITE_RANGES_MAX = 136 };

struct suite_range {
    uint32_t first, end; /* rows first .. end - 1 */
};

struct suite_ranges {
    uint32_t count;
    struct suite_range at[SUITE_RANGES_MAX];
};

void suite_ranges_add(struct suite_ranges *ranges, struct suite_range range);
void suite_ranges_remove(struct suite_ranges *ranges, struct suite_range range);

/* The rows of `range` that are in the set, or those that are not. */
struct suite_ranges suite_ranges_common(const struct suite_ranges *ranges,
                                        struct suite_range range);
struct suite_ranges suite_ranges_missing(const struct suite_ranges *ranges,
                                         struct suite_range range);

static inline bool suite_range_empty(struct suite_range range)
{
    return range.first >= range.end;
}

static inline bool suite_range_overlaps(struct suite_range a, struct suite_range b)
{
    return a.first < b.end && b.first < a.end;
}

static inline bool suite_range_contains(struct suite_range outer, struct suite_range inner)
{
    return outer.first <= inner.first && inner.end <= outer.end;
}

#endif
