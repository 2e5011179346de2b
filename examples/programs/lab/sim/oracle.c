/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

static const double PRECISION = 1e-10; /* of the frame time, in the search */

enum {
    SEARCH_STEPS = 64,
    SETS_OF = 6, /* devices of which all subsets are searched */
    MOVES_MAX = 64
};

struct problem {
    const struct lab_world *world;
    uint64_t frame;
    uint32_t rows;
    uint32_t row_alignment;
};

double lab_makespan(const struct lab_world *world, uint64_t frame, const double *work_ns)
{
    double left[COX_DEVICES_MAX];
    uint32_t active = 0;
    double ns = 0;

    for (uint32_t d = 0; d < world->device_count; d++) {
        left[d] = work_ns[d];
        ns = fmax(ns, work_ns[d]);
        if (work_ns[d] > 0)
            active |= 1u << d;
    }

    if (!world->slowdown)
        return ns;

    double now = 0;
    while (active) {
        double slower[COX_DEVICES_MAX];
        double step = HUGE_VAL;

        for (uint32_t d = 0; d < world->device_count; d++) {
            if (!(active & 1u << d))
                continue;
            slower[d] = world->slowdown(world->ctx, frame, d, active);
            step = fmin(step, left[d] * slower[d]);
        }

        uint32_t still = 0;
        for (uint32_t d = 0; d < world->device_count; d++) {
            if (!(active & 1u << d) || left[d] * slower[d] <= step)
                continue;
            left[d] -= step / slower[d];
            if (left[d] > 0)
                still |= 1u << d;
        }
        active = still;
        now += step;
    }

    return now;
}

static double cost(const struct problem *p, uint32_t device, uint32_t first_row, uint32_t rows)
{
    struct lab_launch launch = {
        .frame = p->frame, .device = device, .first_row = first_row, .rows = rows};
    return p->world->expected_ns(p->world->ctx, &launch);
}

static uint32_t rows_of(const struct problem *p, uint32_t first_row, uint64_t units)
{
    uint64_t rows = units * p->row_alignment;
    if (rows > p->rows - first_row)
        return p->rows - first_row;
    return (uint32_t)rows;
}

/* The most multiples of the row alignment from `first_row` on that the device finishes by `ns`. The cost is nearly a
 * straight line: every other guess is on that line, the others box_downscale. */
static uint64_t capacity(const struct problem *p, uint32_t device, uint32_t first_row, double ns)
{
    uint64_t high = (p->rows - first_row + (uint64_t)p->row_alignment - 1) / p->row_alignment;
    double high_ns = cost(p, device, first_row, rows_of(p, first_row, high));
    if (high == 0 || high_ns <= ns)
        return high;

    uint64_t low = 1;
    double low_ns = cost(p, device, first_row, rows_of(p, first_row, low));
    if (low_ns > ns)
        return 0;

    for (bool box_downscale = false; high - low > 1; box_downscale = !box_downscale) {
        uint64_t guess = low + (high - low) / 2;
        if (!box_downscale) {
            double part = (ns - low_ns) / (high_ns - low_ns) * (double)(high - low);
            guess = low + 1;
            if (part > 1)
                guess = low + (uint64_t)part;
            if (guess >= high)
                guess = high - 1;
        }

        double guess_ns = cost(p, device, first_row, rows_of(p, first_row, guess));
        if (guess_ns <= ns) {
            low = guess;
            low_ns = guess_ns;
            /* On a straight line one more would be too many. */
            if (guess + 1 < high) {
                guess_ns = cost(p, device, first_row, rows_of(p, first_row, guess + 1));
                if (guess_ns > ns)
                    return low;
                low = guess + 1;
                low_ns = guess_ns;
            }
        } else {
            high = guess;
            high_ns = guess_ns;
        }
    }

    return low;
}

/* Give rows to the devices of `set` so that all end by `ns`; `*reached`: when they do. Returns
 * whether they cover the frame. */
static bool cover(const struct problem *p, uint32_t set, const double *slower, double ns,
                  uint32_t *rows, double *reached)
{
    uint32_t first_row = 0;
    *reached = 0;

    for (uint32_t d = 0; d < p->world->device_count; d++) {
        rows[d] = 0;
        if (!(set & 1u << d) || first_row == p->rows)
            continue;

        rows[d] = rows_of(p, first_row, capacity(p, d, first_row, ns / slower[d]));
        if (rows[d] > 0)
            *reached = fmax(*reached, cost(p, d, first_row, rows[d]) * slower[d]);
        first_row += rows[d];
    }

    return first_row == p->rows;
}

static double makespan_of(const struct problem *p, const uint32_t *rows)
{
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t first_row = 0;

    for (uint32_t d = 0; d < p->world->device_count; d++) {
        if (rows[d] > 0)
            work_ns[d] = cost(p, d, first_row, rows[d]);
        first_row += rows[d];
    }

    return lab_makespan(p->world, p->frame, work_ns);
}

/* The best split over a set of devices that all work until the end. Returns its time. */
static double best_of_set(const struct problem *p, uint32_t set, uint32_t *rows)
{
    double slower[COX_DEVICES_MAX];
    double high = HUGE_VAL;
    uint32_t single = 0;

    for (uint32_t d = 0; d < p->world->device_count; d++) {
        rows[d] = 0;
        slower[d] = 1;
        if (!(set & 1u << d))
            continue;
        slower[d] = lab_world_slowdown(p->world, p->frame, d, set);
        const double ns = cost(p, d, 0, p->rows) * slower[d];
        if (ns < high) {
            high = ns;
            single = d;
        }
    }

    rows[single] = p->rows;

    double low = 0;
    for (int step = 0; step < SEARCH_STEPS && high - low > PRECISION * high; step++) {
        uint32_t tried[COX_DEVICES_MAX];
        const double middle = low + (high - low) / 2;
        double reached;
        if (cover(p, set, slower, middle, tried, &reached)) {
            memcpy(rows, tried, p->world->device_count * sizeof *rows);
            high = fmin(reached, middle);
        } else {
            low = middle;
        }
    }

    if (p->world->slowdown)
        return makespan_of(p, rows);
    return high;
}

/* Move one row alignment at a time from band to band while the frame gets shorter. */
static double refine(const struct problem *p, uint32_t *rows, double ns)
{
    uint32_t count = p->world->device_count;

    for (int moves = 0; moves < MOVES_MAX; moves++) {
        uint32_t best_from = 0, best_to = 0;
        double best = ns;

        for (uint32_t from = 0; from < count; from++) {
            for (uint32_t to = 0; to < count; to++) {
                if (from == to || rows[from] < p->row_alignment || rows[to] == 0)
                    continue;

                rows[from] -= p->row_alignment;
                rows[to] += p->row_alignment;
                double tried = makespan_of(p, rows);
                rows[from] += p->row_alignment;
                rows[to] -= p->row_alignment;

                if (tried < best) {
                    best = tried;
                    best_from = from;
                    best_to = to;
                }
            }
        }

        if (best >= ns)
            break;

        rows[best_from] -= p->row_alignment;
        rows[best_to] += p->row_alignment;
        ns = best;
    }

    return ns;
}

static bool contended(const struct lab_world *world, uint64_t frame, uint32_t set)
{
    for (uint32_t d = 0; world->slowdown && d < world->device_count; d++)
        if (set & 1u << d && world->slowdown(world->ctx, frame, d, set) > 1)
            return true;
    return false;
}

static void keep(struct lab_oracle *best, const struct lab_world *world, double ns,
                 const uint32_t *rows)
{
    if (ns >= best->expected_ns)
        return;
    best->expected_ns = ns;
    memcpy(best->rows, rows, world->device_count * sizeof *rows);
}

/* Leave out one device after the other while that helps. */
static void search_descending(const struct problem *p, uint32_t all, struct lab_oracle *best)
{
    uint32_t tried[COX_DEVICES_MAX];
    uint32_t set = all;
    double set_ns = best_of_set(p, set, tried);

    for (;;) {
        uint32_t without = set;
        double without_ns = HUGE_VAL;

        keep(best, p->world, set_ns, tried);
        for (uint32_t d = 0; d < p->world->device_count; d++) {
            if (!(set & 1u << d) || set == 1u << d)
                continue;
            const double ns = best_of_set(p, set & ~(1u << d), tried);
            if (ns < without_ns) {
                without_ns = ns;
                without = set & ~(1u << d);
            }
        }
        if (without_ns >= set_ns)
            return;

        set = without;
        set_ns = best_of_set(p, set, tried);
    }
}

void lab_oracle_find(const struct lab_world *world, uint64_t frame, uint32_t rows,
                     uint32_t row_alignment, const bool *alive, struct lab_oracle *out)
{
    const struct problem p = {
        .world = world, .frame = frame, .rows = rows, .row_alignment = row_alignment};
    struct lab_oracle best = {.expected_ns = HUGE_VAL};
    uint32_t tried[COX_DEVICES_MAX] = {0};
    uint32_t all = 0, count = 0;
    double single_device_ns = HUGE_VAL;

    for (uint32_t d = 0; d < world->device_count; d++) {
        if (!alive[d])
            continue;
        all |= 1u << d;
        count++;
        const double ns = cost(&p, d, 0, rows);
        if (ns < single_device_ns) {
            single_device_ns = ns;
            best.solo = d;
        }
    }

    tried[best.solo] = rows;
    keep(&best, world, single_device_ns, tried);

    if (!contended(world, frame, all)) {
        keep(&best, world, best_of_set(&p, all, tried), tried);
    } else {
        if (count > SETS_OF)
            search_descending(&p, all, &best);
        else
            for (uint32_t set = all; set; set = (set - 1) & all) /* every subset */
                keep(&best, world, best_of_set(&p, set, tried), tried);
        best.expected_ns = refine(&p, best.rows, best.expected_ns);
    }

    best.condition = out->condition;
    *out = best;
}

/* --- other costs than time --- */

struct priced {
    struct problem problem;
    const bool *alive;
    double limit_ns;
    lab_price_fn *price;
    const void *ctx;
    double work_ns[COX_DEVICES_MAX];
    double least; /* the least price within the limit */
    /* If no split is within the limit: the price of the split that is done first, and its time. */
    double soonest, first_ns;
};

/* Try all splits of the rows from `first_row` on over the devices from `d` on. */
static void try_all(struct priced *p, uint32_t d, uint32_t first_row)
{
    const struct lab_world *world = p->problem.world;

    if (d == world->device_count) {
        if (first_row < p->problem.rows)
            return;
        const double ns = lab_makespan(world, p->problem.frame, p->work_ns);
        const double price = p->price(p->ctx, p->work_ns, ns);

        if (ns <= p->limit_ns)
            p->least = fmin(p->least, price);
        if (ns < p->first_ns) {
            p->first_ns = ns;
            p->soonest = price;
        }
        return;
    }

    const uint64_t past = (uint64_t)p->problem.rows + p->problem.row_alignment;
    for (uint64_t row = first_row; row < past; row += p->problem.row_alignment) {
        const uint32_t end = (uint32_t)(row < p->problem.rows ? row : p->problem.rows);

        p->work_ns[d] = 0;
        if (end > first_row)
            p->work_ns[d] = cost(&p->problem, d, first_row, end - first_row);
        try_all(p, d + 1, end);
        if (!p->alive[d])
            break;
    }
    p->work_ns[d] = 0;
}

double lab_oracle_price(const struct lab_world *world, uint64_t frame, uint32_t rows,
                        uint32_t row_alignment, const bool *alive, double limit_ns,
                        lab_price_fn *price, const void *ctx)
{
    struct priced p = {
        .problem = {.world = world, .frame = frame, .rows = rows, .row_alignment = row_alignment},
        .alive = alive,
        .limit_ns = limit_ns,
        .price = price,
        .ctx = ctx,
        .least = HUGE_VAL,
        .first_ns = HUGE_VAL};

    if (world->device_count > LAB_ORACLE_PRICED_MAX)
        return -1;

    try_all(&p, 0, 0);
    if (p.least < HUGE_VAL)
        return p.least;
    return p.soonest;
}
