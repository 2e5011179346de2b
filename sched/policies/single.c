/* `single`: the whole frame on one device: the device asked for, else the fastest one by warm-up,
 * or by hint without a warm-up. While that device is not usable, the fastest other one is used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "split/layout.h"
#include "policies.h"

struct state {
    uint32_t asked; /* 1 + device; 0 = the fastest */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct state *state = memory;

    if (options)
        state->asked = options->device;
    return state->asked > view->device_count ? COX_E_INVALID : COX_OK;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    const struct state *state = memory;
    double ns_per_row[COX_DEVICES_MAX];
    bool timed = cox__layout_guess(view, ns_per_row);
    uint32_t best = view->device_count;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!view->devices[d].usable)
            continue;
        if (best == view->device_count || ns_per_row[d] < ns_per_row[best])
            best = d;
    }

    if (best == view->device_count)
        return COX_E_NO_DEVICE;

    out->reason = COX_REASON_SINGLE;
    if (state->asked > 0) {
        if (view->devices[state->asked - 1].usable)
            best = state->asked - 1;
        else
            out->reason = COX_REASON_DEVICES;
    }

    uint32_t rows[COX_DEVICES_MAX] = {0};
    rows[best] = view->rows;
    cox__layout_bands(view, rows, out);
    if (timed)
        out->predicted_ns = cox__layout_ns(cox__layout_predict(view, ns_per_row, rows));
    return COX_OK;
}

const struct cox_policy cox__policy_single = {
    .name = "single", .state_bytes = state_bytes, .init = init, .split = split};
