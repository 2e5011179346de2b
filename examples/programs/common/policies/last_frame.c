/* `last-frame`: rows in proportion to the speed (rows per nanosecond of wall time) of each device
 * in the last frame that was measured. It is the simplest policy that follows the devices, and the
 * one to compare others with. A device without rows keeps its last speed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

struct state {
    struct history history;
    double ns_per_row[COX_DEVICES_MAX]; /* 0 = never measured */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static void learn(struct state *state, const struct frame_sum *sum)
{
    state->ns_per_row[sum->device] = layout_sane(sum->wall_ns / (double)sum->rows);
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct frame_sum sum;
    if (history_add(memory, measurement, &sum))
        learn(memory, &sum);
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);

    double ns_per_row[COX_DEVICES_MAX] = {0};
    bool all = true, none = true, timed = true;

    for (uint32_t d = 0; d < view->device_count; d++) {
        ns_per_row[d] = state->ns_per_row[d];
        all &= !view->devices[d].usable || ns_per_row[d] > 0;
        none &= !(ns_per_row[d] > 0);
    }

    /* Measured and guessed speeds cannot be compared: guess all of them until every device was
     * measured. */
    if (!all)
        timed = layout_guess(view, ns_per_row);

    out->reason = none ? COX_REASON_FIRST : COX_REASON_BALANCED;
    if (!history_balance(&state->history, view, ns_per_row, timed, out))
        return COX_E_NO_DEVICE;
    return COX_OK;
}

const struct cox_policy policy_last_frame = {.name = "last-frame",
                                             .state_bytes = state_bytes,
                                             .init = history_init,
                                             .split = split,
                                             .observe = observe};
