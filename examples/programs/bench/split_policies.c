/* SPDX-License-Identifier: Apache-2.0 */
#include "split_policies.h"

#include <stdatomic.h>

/* --- sweep --- */

static _Atomic uint32_t sweep_rows;

void split_sweep_set(uint32_t rows)
{
    atomic_store(&sweep_rows, rows);
}

static size_t sweep_bytes(uint32_t device_count)
{
    (void)device_count;
    return 1;
}

static cox_status sweep_init(void *state, const struct cox_sched_view *view,
                             const struct cox_policy_options *options)
{
    (void)state;
    (void)options;
    if (view->device_count != 2)
        return COX_E_INVALID;

    return COX_OK;
}

static cox_status sweep_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    uint32_t first = atomic_load(&sweep_rows);
    out->band_count = 0;
    out->reason = COX_REASON_GIVEN;
    out->predicted_ns = 0;
    if (first > 0)
        out->bands[out->band_count++] = (struct cox_band){
            .device = 0, .first_row = 0, .rows = first};
    if (first < view->rows)
        out->bands[out->band_count++] = (struct cox_band){
            .device = 1, .first_row = first, .rows = view->rows - first};

    return COX_OK;
}

const struct cox_policy split_sweep_policy = {
    .name = "sweep", .state_bytes = sweep_bytes, .init = sweep_init, .split = sweep_split};

/* --- blind --- */

static const struct cox_policy *blind_inner;

void split_blind_use(const struct cox_policy *policy)
{
    blind_inner = policy;
}

/* The view without warm-up times and with equal hints. */
static void blind_view(const struct cox_sched_view *view, struct cox_sched_device *devices,
                       struct cox_sched_view *out)
{
    for (uint32_t d = 0; d < view->device_count; d++)
        devices[d] = (struct cox_sched_device){.usable = view->devices[d].usable, .hint = 1};
    *out = *view;
    out->devices = devices;
}

static size_t blind_bytes(uint32_t device_count)
{
    return blind_inner->state_bytes(device_count);
}

static cox_status blind_init(void *state, const struct cox_sched_view *view,
                             const struct cox_policy_options *options)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view seen;
    blind_view(view, devices, &seen);
    return blind_inner->init(state, &seen, options);
}

static cox_status blind_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view seen;
    blind_view(view, devices, &seen);
    return blind_inner->split(state, &seen, out);
}

static void blind_observe(void *state, const struct cox_measurement *measurement)
{
    if (blind_inner->observe)
        blind_inner->observe(state, measurement);
}

const struct cox_policy split_blind_policy = {.name = "blind",
                                              .state_bytes = blind_bytes,
                                              .init = blind_init,
                                              .split = blind_split,
                                              .observe = blind_observe};
