/* What frames cost by the speeds that were learned.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/layout.h"
#include "split/strict_fp.h"

/* A device's time alone over its co-running time, if it is not known. */
static const double ALONE_UNKNOWN = 0.5;

struct cox_cost cox__costs_launch(const struct cox__speed *speed, double factor, bool usable)
{
    const double per_row = cox__layout_sane(factor * cox__speed_level(speed));

    return (struct cox_cost){.usable = usable,
                             .fixed_ns = cox__clip(per_row * speed->theta, 0, 1e18),
                             .ns_per_row = per_row};
}

/* A device's time in a set of fewer devices, over the time that its speed predicts. */
static double alone_factor(const struct cox__adaptive *state,
                           const struct cox__adaptive_device *device)
{
    if (device->alone > 0)
        return device->alone;
    if (device->single_device_ns > 0)
        return device->single_device_ns / cox__speed_ns(&device->speed, 1, state->rows);
    return ALONE_UNKNOWN;
}

double cox__costs_least_ns(const struct cox__adaptive *state, const struct cox_sched_view *view,
                           uint32_t devices)
{
    struct cox_cost costs[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < state->device_count; d++)
        costs[d] = cox__costs_launch(&state->devices[d].speed,
                                     alone_factor(state, &state->devices[d]), devices >> d & 1);

    return cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                         state->device_count, rows);
}
