/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void append(struct suite_ranges *ranges, struct suite_range range)
{
    if (!suite_range_empty(range) && ranges->count < SUITE_RANGES_MAX)
        ranges->at[ranges->count++] = range;
}

void suite_ranges_remove(struct suite_ranges *ranges, struct suite_range range)
{
    struct suite_ranges left = {0};

    for (uint32_t r = 0; r < ranges->count; r++) {
        const struct suite_range old = ranges->at[r];
        if (!suite_range_overlaps(old, range)) {
            append(&left, old);
            continue;
        }
        append(&left, (struct suite_range){old.first, smaller(old.end, range.first)});
        append(&left, (struct suite_range){larger(old.first, range.end), old.end});
    }

    *ranges = left;
}

void suite_ranges_add(struct suite_ranges *ranges, struct suite_range range)
{
    struct suite_ranges all = {0};
    bool added = false;

    if (suite_range_empty(range))
        return;

    for (uint32_t r = 0; r < ranges->count; r++) {
        const struct suite_range old = ranges->at[r];
        if (old.end < range.first) {
            append(&all, old);
        } else if (old.first > range.end) {
            if (!added)
                append(&all, range);
            added = true;
            append(&all, old);
        } else {
            range.first = smaller(range.first, old.first);
            range.end = larger(range.end, old.end);
        }
    }
    if (!added)
        append(&all, range);

    *ranges = all;
}

struct suite_ranges suite_ranges_common(const struct suite_ranges *ranges, struct suite_range range)
{
    struct suite_ranges common = {0};

    for (uint32_t r = 0; r < ranges->count; r++)
        append(&common, (struct suite_range){larger(ranges->at[r].first, range.first),
                                             smaller(ranges->at[r].end, range.end)});

    return common;
}

struct suite_ranges suite_ranges_missing(const struct suite_ranges *ranges,
                                         struct suite_range range)
{
    struct suite_ranges missing = {0};

    append(&missing, range);
    for (uint32_t r = 0; r < ranges->count; r++)
        suite_ranges_remove(&missing, ranges->at[r]);

    return missing;
}
