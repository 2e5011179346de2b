/* The candidates and their samples, and the policy that runs a candidate.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- Candidates ------------------------------------------------------------------------------- */

void lab_sweep_begin(struct lab_sweep *sweep, uint32_t device_count, uint32_t rows,
                     uint32_t row_alignment, uint32_t turn)
{
    *sweep = (struct lab_sweep){.device_count = device_count,
                                .rows = rows,
                                .row_alignment = row_alignment,
                                .turn = turn,
                                .kept = device_count,
                                .count = device_count};
    for (uint32_t d = 0; d < device_count; d++)
        sweep->candidates[d].rows[d] = rows;
}

void lab_sweep_end(struct lab_sweep *sweep)
{
    for (uint32_t c = 0; c < sweep->count; c++) {
        free(sweep->candidates[c].ns);
        free(sweep->candidates[c].rounds);
    }

    sweep->count = 0;
}

uint32_t lab_sweep_all(const struct lab_sweep *sweep)
{
    return sweep->device_count >= 32 ? UINT32_MAX : (1u << sweep->device_count) - 1;
}

/* The last device with rows. It ends at the frame's last row, which may be within a row alignment. */
static uint32_t last_of(const uint32_t *rows, uint32_t device_count)
{
    uint32_t last = 0;

    for (uint32_t d = 0; d < device_count; d++)
        if (rows[d])
            last = d;
    return last;
}

void lab_sweep_balance(const struct lab_sweep *sweep, const double *speed, uint32_t subset,
                       uint32_t *rows)
{
    double sum = 0, before = 0;
    uint32_t used = 0;

    for (uint32_t d = 0; d < sweep->device_count; d++)
        if (subset >> d & 1)
            sum += speed[d];

    for (uint32_t d = 0; d < sweep->device_count; d++) {
        rows[d] = 0;
        if (!(subset >> d & 1))
            continue;

        before += speed[d];
        double row_units = 0;
        if (sum > 0)
            row_units = floor(before / sum * sweep->rows / sweep->row_alignment + 0.5);

        uint32_t end = (uint32_t)fmin(row_units * sweep->row_alignment, sweep->rows);
        if (!(subset >> d >> 1)) /* the last device */
            end = sweep->rows;
        if (end > used) {
            rows[d] = end - used;
            used = end;
        }
    }
}

static bool is_known(const struct lab_sweep *sweep, const uint32_t *rows)
{
    for (uint32_t c = 0; c < sweep->count; c++)
        if (memcmp(sweep->candidates[c].rows, rows, sweep->device_count * sizeof *rows) == 0)
            return true;
    return false;
}

static void propose(struct lab_sweep *sweep, const uint32_t *rows)
{
    if (sweep->count == LAB_CANDIDATES_MAX || is_known(sweep, rows))
        return;

    struct lab_candidate *candidate = &sweep->candidates[sweep->count++];
    *candidate = (struct lab_candidate){.count = 0};
    memcpy(candidate->rows, rows, sweep->device_count * sizeof *rows);
}

/* Move a share of the frame's rows from one device to another, at least a row alignment, in whole
 * multiples of the row alignment. */
static void propose_moved(struct lab_sweep *sweep, const uint32_t *base, uint32_t from, uint32_t to,
                          double share)
{
    uint32_t rows[COX_DEVICES_MAX];
    uint32_t row_units = (uint32_t)(share * sweep->rows / sweep->row_alignment + 0.5);
    uint32_t moved = (row_units ? row_units : 1) * sweep->row_alignment;

    memcpy(rows, base, sweep->device_count * sizeof *rows);
    if (rows[from] <= moved ||
        (rows[from] - moved < sweep->row_alignment && from != last_of(base, sweep->device_count)))
        return;

    rows[from] -= moved;
    rows[to] += moved;
    propose(sweep, rows);
}

/* Move rows between every two devices that have some; with more than four only between
 * neighbours. */
static void propose_around(struct lab_sweep *sweep, const uint32_t *base, const double *shares,
                           uint32_t share_count)
{
    uint32_t with[COX_DEVICES_MAX], count = 0;

    for (uint32_t d = 0; d < sweep->device_count; d++)
        if (base[d])
            with[count++] = d;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) {
            bool neighbours = (i + 1) % count == j || (j + 1) % count == i;
            if (i == j || (count > 4 && !neighbours))
                continue;

            for (uint32_t s = 0; s < share_count; s++)
                propose_moved(sweep, base, with[i], with[j], shares[s]);
        }
}

static void spread_subset(struct lab_sweep *sweep, const double *speed, uint32_t subset)
{
    static const double two[] = {0.007, 0.015, 0.025, 0.04, 0.06, 0.09, 0.13},
                        three[] = {0.015, 0.04, 0.09}, more[] = {0.02, 0.06};
    uint32_t base[COX_DEVICES_MAX], devices = sweep->device_count;
    bool all = subset == lab_sweep_all(sweep);

    lab_sweep_balance(sweep, speed, subset, base);
    propose(sweep, base);

    if (devices == 2)
        propose_around(sweep, base, two, 7);
    else if (devices == 3 && all)
        propose_around(sweep, base, three, 3);
    else if (devices == 3 || all)
        propose_around(sweep, base, more, 2);
}

void lab_sweep_curve(struct lab_sweep *sweep, const double *speed, uint32_t steps)
{
    double others = 0, shares[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];

    for (uint32_t d = 1; d < sweep->device_count; d++)
        others += speed[d];

    for (uint32_t step = 1; others > 0 && step < steps; step++) {
        shares[0] = (double)step / steps;
        for (uint32_t d = 1; d < sweep->device_count; d++)
            shares[d] = (1 - shares[0]) * speed[d] / others;

        lab_sweep_balance(sweep, shares, lab_sweep_all(sweep), rows);
        if (rows[0] && rows[0] < sweep->rows)
            propose(sweep, rows);
    }

    sweep->kept = sweep->count;
}

void lab_sweep_spread(struct lab_sweep *sweep, const double *speed)
{
    uint32_t devices = sweep->device_count;
    if (devices < 2)
        return;

    spread_subset(sweep, speed, lab_sweep_all(sweep));
    if (devices <= 4) {
        for (uint32_t subset = 1; subset < lab_sweep_all(sweep); subset++)
            if (subset & (subset - 1)) /* two or more */
                spread_subset(sweep, speed, subset);
        return;
    }

    /* With many devices: the k fastest, for each k. */
    uint32_t fastest = 0;
    for (uint32_t k = 1; k < devices; k++) {
        uint32_t next = UINT32_MAX;

        for (uint32_t d = 0; d < devices; d++)
            if (!(fastest >> d & 1) && (next == UINT32_MAX || speed[d] > speed[next]))
                next = d;
        fastest |= 1u << next;

        if (k > 1)
            spread_subset(sweep, speed, fastest);
    }
}

void lab_sweep_propose(struct lab_sweep *sweep, const uint32_t *rows)
{
    double speed[COX_DEVICES_MAX];
    uint32_t rounded[COX_DEVICES_MAX] = {0}, subset = 0;

    for (uint32_t d = 0; d < sweep->device_count; d++) {
        speed[d] = rows[d];
        if (rows[d] >= sweep->row_alignment)
            subset |= 1u << d;
    }

    if (!(subset & (subset - 1))) /* one device alone is a candidate already */
        return;

    lab_sweep_balance(sweep, speed, subset, rounded);
    propose(sweep, rounded);
}

void lab_sweep_refine(struct lab_sweep *sweep)
{
    static const double steps[] = {0.02, 0.01, 0.005, 0.002}; /* of the frame's rows */
    struct lab_spread spreads[LAB_CANDIDATES_MAX];
    double step = steps[sweep->refined++ % 4];
    uint32_t base[COX_DEVICES_MAX];
    uint32_t best = UINT32_MAX;

    if (lab_sweep_spreads(sweep, spreads))
        best = lab_sweep_best(spreads, sweep->count);

    if (best == UINT32_MAX || best < sweep->device_count)
        return;

    memcpy(base, sweep->candidates[best].rows, sizeof base);
    propose_around(sweep, base, &step, 1);
}

/* --- Samples ---------------------------------------------------------------------------------- */

bool lab_sweep_add(struct lab_sweep *sweep, uint32_t candidate, double ns)
{
    struct lab_candidate *c = &sweep->candidates[candidate];
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 64;
        double *more = realloc(c->ns, room * sizeof *more);
        if (!more)
            return false;
        c->ns = more;

        uint32_t *rounds = realloc(c->rounds, room * sizeof *rounds);
        if (!rounds)
            return false;
        c->rounds = rounds;
        c->room = room;
    }

    c->rounds[c->count] = sweep->round;
    c->ns[c->count++] = ns;
    return true;
}

void lab_sweep_mark(struct lab_sweep *sweep)
{
    bool any = false;

    for (uint32_t c = 0; c < sweep->count; c++) {
        any |= sweep->candidates[c].count > sweep->candidates[c].marked;
        sweep->candidates[c].marked = sweep->candidates[c].count;
    }
    sweep->round += any;
}

void lab_sweep_undo(struct lab_sweep *sweep)
{
    for (uint32_t c = 0; c < sweep->count; c++)
        sweep->candidates[c].count = sweep->candidates[c].marked;
}

/* --- On devices ------------------------------------------------------------------------------- */

static _Atomic uint32_t chosen_rows[COX_DEVICES_MAX];

void lab_sweep_choose(const uint32_t *rows, uint32_t device_count)
{
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        atomic_store(&chosen_rows[d], d < device_count ? rows[d] : 0);
}

static size_t chosen_bytes(uint32_t device_count)
{
    (void)device_count;
    return 1;
}

static cox_status chosen_init(void *state, const struct cox_sched_view *view,
                              const struct cox_policy_options *options)

{
    (void)state, (void)view, (void)options;
    return COX_OK;
}

/* The end of the chosen rows before a device, in rows of this pass. A pass may have other rows and
 * multiples of the row alignment than the frame. */
static uint32_t chosen_end(const struct cox_sched_view *view, uint64_t before, uint64_t sum)
{
    if (before == sum)
        return view->rows;

    const uint64_t row_units = (2 * before * view->rows / sum + view->row_alignment) /
                               (2 * (uint64_t)view->row_alignment);
    const uint64_t end = row_units * view->row_alignment;
    return (uint32_t)fmin((double)end, view->rows);
}

static cox_status chosen_split(void *state, const struct cox_sched_view *view,
                               struct cox_split *out)
{
    (void)state;
    uint64_t rows[COX_DEVICES_MAX] = {0}, sum = 0, before = 0;
    uint32_t at = 0;
    *out = (struct cox_split){.reason = COX_REASON_GIVEN};
    for (uint32_t d = 0; d < view->device_count; d++)
        sum += rows[d] = atomic_load(&chosen_rows[d]);
    for (uint32_t d = 0; d < view->device_count && sum; d++) {
        before += rows[d];
        const uint32_t end = chosen_end(view, before, sum);
        if (end > at)
            out->bands[out->band_count++] = (struct cox_band){
                .device = d, .first_row = at, .rows = end - at};
        at = end;
    }
    return COX_OK;
}

const struct cox_policy lab_sweep_policy = {
    .name = "sweep", .state_bytes = chosen_bytes, .init = chosen_init, .split = chosen_split};
