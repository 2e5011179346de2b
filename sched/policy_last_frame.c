/* `last-frame`: rows in proportion to the speed (rows per nanosecond of wall time) that each device showed in the last
 * frame that was measured. No memory beyond that: what every better policy is compared with. A device without rows
 * keeps its last speed and is probed now and then.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "policies.h"
#include "probe.h"
#include "strict_fp.h"
#include "tally.h"

struct device {
    struct cox__tally tally;
    struct cox__probe probe;
    double ns_per_row; /* 0 = never measured */
};

struct state {
    uint32_t device_count;
    struct device devices[];
};

static size_t last_bytes(uint32_t device_count)
{
    return sizeof(struct state) + device_count * sizeof(struct device);
}

static cox_status last_init(void *memory, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    struct state *state = memory;
    state->device_count = view->device_count;
    return COX_OK;
}

static void learn(struct device *device, const struct cox__tally *sample)
{
    device->ns_per_row = cox__layout_sane(sample->wall_ns / (double)sample->rows);
}

static void last_observe(void *memory, const struct cox_measurement *measurement)
{
    struct state *state = memory;
    if (measurement->device >= state->device_count)
        return;
    struct device *device = &state->devices[measurement->device];
    struct cox__tally closed;
    if (cox__tally_add(&device->tally, measurement, &closed))
        learn(device, &closed);
}

static cox_status last_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    double ns_per_row[COX_DEVICES_MAX] = {0};
    bool all = true, none = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        struct cox__tally closed;
        if (cox__tally_take(&device->tally, &closed))
            learn(device, &closed);
        ns_per_row[d] = device->ns_per_row;
        all &= !view->devices[d].usable || device->ns_per_row > 0;
        none &= !(device->ns_per_row > 0);
    }
    bool timed = true;
    if (!all) /* measurements and guesses do not compare: until every device was measured, guess for all */
        timed = cox__layout_guess(view, ns_per_row);

    uint32_t rows[COX_DEVICES_MAX];
    if (cox__layout_balance(view, ns_per_row, rows) < 0)
        return COX_E_NO_DEVICE;
    out->reason = none ? COX_REASON_FIRST : COX_REASON_BALANCED;
    struct cox__probe probes[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        probes[d] = state->devices[d].probe;
    if (cox__probe_frame(probes, view, rows))
        out->reason = COX_REASON_PROBE;
    for (uint32_t d = 0; d < view->device_count; d++)
        state->devices[d].probe = probes[d];
    cox__layout_bands(view, rows, out);
    out->predicted_ns = timed ? cox__layout_ns(cox__layout_predict(view, ns_per_row, rows)) : 0;
    return COX_OK;
}

const struct cox_policy cox__policy_last_frame = {
    .name = "last-frame", .state_bytes = last_bytes, .init = last_init, .split = last_split, .observe = last_observe};
