/* The exact minimiser of the frame time.
 *
 * Let a step be one row alignment, and N the rows. Without a minimum band the problem is: take the
 * N / alignment smallest of the values t_d(k steps), k = 1, 2, ..., over all devices. Each device's
 * values rise with k, so the smallest ones are a prefix for each device, and the largest value
 * taken is the frame time. The water level of the continuous problem (T_k in
 * docs/internals/scheduling.md) gives all but a few of them at once; the rest are taken one by one.
 * The rows beyond the last full unit go to one device, the holder of the frame's end: every device
 * is tried as the holder.
 *
 * With a minimum band m > alignment a device takes 0 rows or between m and c_d(T), the rows that it
 * finishes by T. For a given T a split exists iff the floor(N / m) largest c_d(T) >= m add up to N.
 * More devices than that cannot all have their minimum. Fewer or smaller capacities cover less.
 * So no search over subsets is needed. Bisection over the doubles themselves finds the least T, and
 * finds it exactly. The chosen devices are filled from their minimum up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "strict_fp.h"
#include "clip.h"
#include <coxswain/sched.h>

#include <math.h>
#include <string.h>

/* One device in one filling: `base` rows that it has in any case, and `row_units` row alignments on
 * top of them. */
struct item {
    uint32_t device;
    double fixed_ns;
    double ns_per_row;
    uint64_t base;
    uint64_t row_units;
    double start_ns; /* finish time with the base rows; for base 0 the fixed cost */
};

struct problem {
    uint64_t rows;
    uint64_t row_alignment;
    uint64_t min_rows;
    uint64_t rest;                      /* rows % row alignment */
    uint64_t row_units;                 /* rows / row alignment */
    uint32_t count;                     /* usable devices */
    struct item items[COX_DEVICES_MAX]; /* base and row_units are not set */
};

struct answer {
    double ns;
    uint32_t count;
    struct item items[COX_DEVICES_MAX];
};

static double time_of(const struct item *item, uint64_t rows)
{
    if (rows == 0)
        return 0.0;
    return item->fixed_ns + item->ns_per_row * (double)rows;
}

static double finish(const struct item *item, uint64_t row_units, uint64_t row_alignment)
{
    return time_of(item, item->base + row_units * row_alignment);
}

/* The device that ends last and could give rows away; -1 if none. */
static int latest(const struct item *items, uint32_t count, uint64_t row_alignment)
{
    int found = -1;
    double ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (items[i].row_units == 0)
            continue;
        double t = finish(&items[i], items[i].row_units, row_alignment);
        if (found < 0 || t > ns) {
            found = (int)i;
            ns = t;
        }
    }

    return found;
}

/* The device that would end first with one more unit. */
static uint32_t earliest_next(const struct item *items, uint32_t count, uint64_t row_alignment)
{
    uint32_t found = 0;
    double ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        double t = finish(&items[i], items[i].row_units + 1, row_alignment);
        if (i == 0 || t < ns) {
            found = i;
            ns = t;
        }
    }

    return found;
}

/* A number of steps from a quotient of times: rounded down, from 0 to `most`. */
static uint64_t whole_units(double quotient, uint64_t most)
{
    double units = floor(quotient);

    if (units <= 0)
        return 0;
    if (units >= (double)most)
        return most;
    return (uint64_t)units;
}

/* Insertion sort by start time. */
static void sort_by_start(struct item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct item moved = items[i];
        uint32_t at = i;
        for (; at > 0 && items[at - 1].start_ns > moved.start_ns; at--)
            items[at] = items[at - 1];
        items[at] = moved;
    }
}

/* Rounding in the level may have put rows on the wrong device: move them while that helps. */
static void move_units(struct item *items, uint32_t count, uint64_t row_alignment)
{
    for (uint32_t tries = 0; tries < 4 * count; tries++) {
        int from = latest(items, count, row_alignment);
        uint32_t to = earliest_next(items, count, row_alignment);
        if (from < 0 || (uint32_t)from == to ||
            finish(&items[to], items[to].row_units + 1, row_alignment) >=
                finish(&items[from], items[from].row_units, row_alignment))
            break;

        items[from].row_units--;
        items[to].row_units++;
    }
}

/* Put `row_units` on top of the items' base rows so that the last device ends as early as possible.
 * Returns that time. Sorts the items. */
static double fill(struct item *items, uint32_t count, uint64_t row_units, uint64_t row_alignment)
{
    for (uint32_t i = 0; i < count; i++) {
        items[i].row_units = 0;
        items[i].start_ns = items[i].fixed_ns;
        if (items[i].base)
            items[i].start_ns = time_of(&items[i], items[i].base);
    }
    sort_by_start(items, count);

    /* The level: the time at which the devices that have started by then have done all units. */
    double g = (double)row_alignment;
    double weight = 0, speed = 0, level = 0;
    uint32_t in = 0;

    while (in < count && (in == 0 || items[in].start_ns < level)) {
        double step = items[in].ns_per_row * g;
        weight += items[in].start_ns / step;
        speed += 1.0 / step;
        in++;
        level = ((double)row_units + weight) / speed;
    }

    uint64_t placed = 0;
    for (uint32_t i = 0; i < in; i++) {
        double n = (level - items[i].start_ns) / (items[i].ns_per_row * g);
        items[i].row_units = whole_units(n, row_units);
        placed += items[i].row_units;
    }

    while (placed > row_units) { /* possible by rounding only */
        items[latest(items, count, row_alignment)].row_units--;
        placed--;
    }
    for (; placed < row_units; placed++)
        items[earliest_next(items, count, row_alignment)].row_units++;
    move_units(items, count, row_alignment);

    double ns = 0;
    for (uint32_t i = 0; i < count; i++)
        ns = fmax(ns, finish(&items[i], items[i].row_units, row_alignment));
    return ns;
}

/* Most units on top of `base` that the item finishes by `ns`, at most `limit`; -1 if not even the
 * base rows. */
static int64_t capacity(const struct item *item, uint64_t base, uint64_t limit,
                        uint64_t row_alignment, double ns)
{
    struct item at = *item;

    at.base = base;
    if (finish(&at, 0, row_alignment) > ns)
        return -1;

    double guess = (ns - item->fixed_ns - item->ns_per_row * (double)base) /
                   (item->ns_per_row * (double)row_alignment);
    uint64_t n = whole_units(guess, limit);
    while (n > 0 && finish(&at, n, row_alignment) > ns)
        n--;
    while (n < limit && finish(&at, n + 1, row_alignment) <= ns)
        n++;

    return (int64_t)n;
}

/* Whether a split that respects the minimum band ends by `ns`, with items[holder] at the frame's
 * end (-1: the rows are a multiple of the row alignment). If so and `chosen` is given: the devices
 * to take, with their least rows as base. */
static bool feasible(const struct problem *p, int holder, uint64_t holder_base, double ns,
                     struct item *chosen, uint32_t *chosen_count)
{
    uint64_t least = (p->min_rows + p->row_alignment - 1) / p->row_alignment;
    /* units that are not in the holder's base */
    uint64_t left = p->row_units;
    uint64_t covered = 0;
    uint32_t taken = 0;

    if (holder >= 0) {
        uint64_t base_units = holder_base / p->row_alignment;
        left -= base_units;
        int64_t n = capacity(&p->items[holder], holder_base, left, p->row_alignment, ns);
        if (n < 0)
            return false;

        covered = (uint64_t)n;
        if (chosen) {
            chosen[taken] = p->items[holder];
            chosen[taken++].base = holder_base;
        }
    }

    uint64_t caps[COX_DEVICES_MAX]; /* of the others, largest first */
    uint32_t order[COX_DEVICES_MAX];
    uint32_t others = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if ((int)i == holder)
            continue;
        int64_t n = capacity(&p->items[i], 0, left, p->row_alignment, ns);
        if (n < 0 || (uint64_t)n < least)
            continue;

        uint32_t at = others++;
        for (; at > 0 && caps[at - 1] < (uint64_t)n; at--) {
            caps[at] = caps[at - 1];
            order[at] = order[at - 1];
        }
        caps[at] = (uint64_t)n;
        order[at] = i;
    }

    /* Take as many devices as can have their minimum. */
    uint64_t room = left / least;
    for (uint32_t i = 0; i < others && i < room; i++) {
        covered += caps[i];
        if (chosen) {
            chosen[taken] = p->items[order[i]];
            chosen[taken++].base = least * p->row_alignment;
        }
    }

    if (chosen)
        *chosen_count = taken;
    return covered >= left;
}

/* Non-negative doubles are ordered as their bit patterns are. */
static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void keep_better(struct answer *best, double ns, const struct item *items, uint32_t count)
{
    if (ns >= best->ns)
        return;
    best->ns = ns;

    best->count = count;
    memcpy(best->items, items, count * sizeof *items);
}

/* The rows that the holder of the frame's end has at least; false if the frame has fewer. */
static bool holder_rows(const struct problem *p, uint64_t *base)
{
    *base = p->rest;
    if (p->min_rows > p->rest)
        *base += (p->min_rows - p->rest + p->row_alignment - 1) / p->row_alignment *
                 p->row_alignment;
    return *base <= p->rows;
}

/* Whether a band of the filling is shorter than the minimum. */
static bool has_short_band(const struct problem *p, const struct item *items, uint32_t count)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found |= items[i].row_units > 0 &&
                 items[i].base + items[i].row_units * p->row_alignment < p->min_rows;
    return found;
}

/* The best split with items[holder] at the frame's end, if it beats `best`. */
static void try_holder(const struct problem *p, int holder, struct answer *best)
{
    uint64_t holder_base = 0;
    if (holder >= 0 && !holder_rows(p, &holder_base))
        return;

    struct item items[COX_DEVICES_MAX];
    uint32_t count = p->count;
    memcpy(items, p->items, count * sizeof *items);
    for (uint32_t i = 0; i < count; i++)
        items[i].base = (int)i == holder ? holder_base : 0;

    uint64_t row_units = (p->rows - holder_base) / p->row_alignment;
    double ns = fill(items, count, row_units, p->row_alignment);
    if (!has_short_band(p, items, count)) {
        keep_better(best, ns, items, count);
        return;
    }

    /* The minimum binds. `ns` is a lower bound, best->ns an upper one. */
    if (ns >= best->ns)
        return;

    uint64_t low = bits_of(ns), high = bits_of(best->ns) - 1;
    if (feasible(p, holder, holder_base, ns, NULL, NULL))
        high = low;
    else if (!feasible(p, holder, holder_base, from_bits(high), NULL, NULL))
        return;

    while (high - low > 1) { /* low is infeasible, high is feasible */
        uint64_t middle = low + (high - low) / 2;
        if (feasible(p, holder, holder_base, from_bits(middle), NULL, NULL))
            high = middle;
        else
            low = middle;
    }

    feasible(p, holder, holder_base, from_bits(high), items, &count);
    row_units = p->rows / p->row_alignment;
    for (uint32_t i = 0; i < count; i++)
        row_units -= items[i].base / p->row_alignment;

    ns = fill(items, count, row_units, p->row_alignment);
    keep_better(best, ns, items, count);
}

double cox_waterfill(uint32_t rows, uint32_t row_alignment, uint32_t min_band_rows,
                     const struct cox_cost *costs, uint32_t device_count, uint32_t *rows_out)
{
    if (device_count == 0 || device_count > COX_DEVICES_MAX)
        return -1.0;

    memset(rows_out, 0, device_count * sizeof *rows_out);
    if (rows == 0 || row_alignment == 0)
        return -1.0;

    struct problem p = {.rows = rows,
                        .row_alignment = row_alignment,
                        .min_rows = min_band_rows ? min_band_rows : row_alignment,
                        .rest = rows % row_alignment,
                        .row_units = rows / row_alignment};

    struct answer best = {.ns = HUGE_VAL};
    for (uint32_t d = 0; d < device_count; d++) {
        const struct cox_cost *cost = &costs[d];
        if (!cost->usable)
            continue;
        struct item item = {
            .device = d, .fixed_ns = cost->fixed_ns, .ns_per_row = cost->ns_per_row, .base = rows};

        /* The largest intermediate values must be finite too. The comparison is false for NaN. */
        if (!(cost->fixed_ns >= 0 && cost->ns_per_row > 0) ||
            !isfinite(time_of(&item, (uint64_t)rows + row_alignment)) ||
            !isfinite((cost->fixed_ns + 1.0) / cost->ns_per_row) || cost->ns_per_row < 1e-200)
            return -1.0;

        p.items[p.count++] = item;
        keep_better(&best, time_of(&item, rows), &item, 1); /* the frame's only band may be short */
    }
    if (p.count == 0)
        return -1.0;

    if (p.count > 1 && p.row_units > 0) {
        if (p.rest == 0)
            try_holder(&p, -1, &best);
        else
            for (int holder = (int)p.count - 1; holder >= 0; holder--)
                try_holder(&p, holder, &best);
    }

    for (uint32_t i = 0; i < best.count; i++)
        rows_out[best.items[i].device] = (uint32_t)(best.items[i].base +
                                                    best.items[i].row_units * row_alignment);

    return best.ns;
}
