/* SPDX-License-Identifier: Apache-2.0 */
#include "row_set.h"
#include "base/bounds.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends after the row; set->count = no range does. */
static uint32_t find(const struct cox__row_set *set, uint32_t row)
{
    uint32_t low = 0, high = set->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (set->ranges[middle].end > row)
            high = middle;
        else
            low = middle + 1;
    }

    return low;
}

/* Replace the ranges from `at` to `to` - 1 with `count` others. False: no memory; then only as many
 * are stored as were removed. */
static bool replace(struct cox__row_set *set, uint32_t at, uint32_t to,
                    const struct cox__row_range *with, uint32_t count)
{
    const uint32_t all = set->count - (to - at) + count;
    bool fits = true;

    if (all > set->capacity) {
        const uint32_t capacity = all + all / 2 + 8;
        struct cox__row_range *ranges = realloc(set->ranges, capacity * sizeof *ranges);

        fits = ranges != NULL;
        if (fits) {
            set->ranges = ranges;
            set->capacity = capacity;
        } else {
            count = cox__min_u32(to - at, count);
        }
    }

    if (set->count > to)
        memmove(&set->ranges[at + count], &set->ranges[to],
                (set->count - to) * sizeof *set->ranges);
    if (count)
        memcpy(&set->ranges[at], with, count * sizeof *with);
    set->count = set->count - (to - at) + count;

    return fits;
}

bool cox__row_set_add(struct cox__row_set *set, uint32_t first, uint32_t end)
{
    struct cox__row_range range = {first, end};
    /* A range that ends where these rows begin is extended. */
    const uint32_t at = find(set, first ? first - 1 : 0);
    uint32_t to = at;

    if (first == end)
        return true;

    for (; to < set->count && set->ranges[to].first <= end; to++) {
        range.first = cox__min_u32(range.first, set->ranges[to].first);
        range.end = cox__max_u32(range.end, set->ranges[to].end);
    }

    return replace(set, at, to, &range, 1);
}

bool cox__row_set_remove(struct cox__row_set *set, uint32_t first, uint32_t end)
{
    struct cox__row_range left[2];
    uint32_t count = 0, at = find(set, first), to = at;
    if (first == end)
        return true;

    for (; to < set->count && set->ranges[to].first < end; to++) {
        if (set->ranges[to].first < first)
            left[count++] = (struct cox__row_range){set->ranges[to].first, first};
        if (set->ranges[to].end > end)
            left[count++] = (struct cox__row_range){end, set->ranges[to].end};
    }

    return replace(set, at, to, left, count);
}

void cox__row_set_clear(struct cox__row_set *set)
{
    set->count = 0;
}

bool cox__row_set_has(const struct cox__row_set *set, uint32_t row, uint32_t end, uint32_t *until)
{
    const uint32_t at = find(set, row);
    const bool has = at < set->count && set->ranges[at].first <= row;

    *until = end;
    if (at < set->count)
        *until = cox__min_u32(end, has ? set->ranges[at].end : set->ranges[at].first);

    return has;
}

void cox__row_set_free(struct cox__row_set *set)
{
    free(set->ranges);
    *set = (struct cox__row_set){0};
}
