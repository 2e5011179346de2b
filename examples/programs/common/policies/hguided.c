/* `hguided`: EngineCL's HGuided. The whole frame is a pool, and a free device takes
 *
 *     chunk = remaining * P_d / (K * sum of P),  K = 2,
 *
 * but at least one row alignment. The first chunks are large, the last ones are small. The
 * computing powers P stay the same for the session. They are the speeds of warm-up, else the hints.
 * Without a pool, rows are split by the powers.
 *
 * Source: R. Nozal, J. L. Bosque, R. Beivide: EngineCL: usability and performance in heterogeneous
 * computing, 2020; the algorithm: B. Perez et al.: Simplifying programming and load balancing of
 * data parallel applications on heterogeneous systems, 2016.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/layout.h"
#include "common/policies/registry.h"
#include "common/strict_fp.h"

static const double SHARE_DIVISOR = 2.0; /* K */

struct state {
    bool powered;
    double powers[COX_DEVICES_MAX]; /* rows per nanosecond, or in proportion */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    (void)memory, (void)view, (void)options;
    return COX_OK;
}

/* The split of a view that allows no pool. */
static cox_status split_by_guess(const struct cox_sched_view *view, struct cox_split *out)
{
    double ns_per_row[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];

    (void)layout_guess(view, ns_per_row);
    if (layout_balance(view, ns_per_row, rows) < 0)
        return COX_E_NO_DEVICE;

    layout_bands(view, rows, out);
    out->reason = COX_REASON_FIRST;
    return COX_OK;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;

    /* The powers are set in the first frame, because warm-up comes after init. */
    if (!state->powered) {
        double ns_per_row[COX_DEVICES_MAX];
        (void)layout_guess(view, ns_per_row);

        for (uint32_t d = 0; d < view->device_count; d++)
            state->powers[d] = 1.0 / ns_per_row[d];
        state->powered = true;
    }

    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;
    if (!view->pool)
        return split_by_guess(view, out);

    out->pool_rows = view->rows;
    out->reason = COX_REASON_ON_DEMAND;
    return COX_OK;
}

/* The rows of a chunk of about `rows`: a multiple of the row alignment, at least a band's minimum,
 * at most what is left. */
static uint32_t chunk_of(const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                         uint32_t rows)
{
    uint64_t chunk = layout_least_band(view);

    if (chunk < rows)
        chunk = rows;
    chunk += view->row_alignment - 1;
    chunk -= chunk % view->row_alignment;

    if (chunk < offer->rows)
        return (uint32_t)chunk;
    return offer->rows;
}

static void next(void *memory, const struct cox_sched_view *view,
                 const struct cox_chunk_request *offer, struct cox_chunk *out)
{
    const struct state *state = memory;
    double sum = 0, share = 1.0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            sum += state->powers[d];
    if (sum > 0)
        share = state->powers[offer->device] / (SHARE_DIVISOR * sum);
    out->rows = chunk_of(view, offer, (uint32_t)(offer->rows * share));
}

const struct cox_policy policy_hguided = {
    .name = "hguided", .state_bytes = state_bytes, .init = init, .split = split, .assign = next};
