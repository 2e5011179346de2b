/* `mean10`: what Intel's multi-device tone-mapping sample did. With t1 and t2 the kernel times of a frame that gave
 * device 1 the share r, the share that would have finished together is
 *
 *     r' = t2 r / (t1 (1 - r) + t2 r),
 *
 * the split uses the mean of the last ten r', and rows are floored to 16. For more devices: share_d in proportion to
 * r_d / t_d, which is the same for two. Kernel times only (a device without a profile: wall times), so launches and
 * transfers are not balanced: kept as it was, to compare with. A device left without rows keeps its last speed and is
 * probed now and then, which the sample did not do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "policies.h"
#include "probe.h"
#include "strict_fp.h"
#include "tally.h"

enum { MEAN_FRAMES = 10, MEAN_ROWS = 16 };

struct device {
    struct cox__tally tally;
    struct cox__probe probe;
    double ns_per_row; /* 0 = never measured */
    double shares[MEAN_FRAMES];
};

struct state {
    uint32_t device_count;
    uint32_t share_count;
    uint32_t share_next;
    bool fresh; /* something was measured since the last split */
    struct device devices[];
};

static size_t mean_bytes(uint32_t device_count)
{
    return sizeof(struct state) + device_count * sizeof(struct device);
}

static cox_status mean_init(void *memory, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    struct state *state = memory;
    state->device_count = view->device_count;
    return COX_OK;
}

static void learn(struct state *state, struct device *device, const struct cox__tally *sample)
{
    double ns = sample->kernel_ns > 0 ? sample->kernel_ns : sample->wall_ns;
    device->ns_per_row = cox__layout_sane(ns / (double)sample->rows);
    state->fresh = true;
}

static void mean_observe(void *memory, const struct cox_measurement *measurement)
{
    struct state *state = memory;
    if (measurement->device >= state->device_count)
        return;
    struct device *device = &state->devices[measurement->device];
    struct cox__tally closed;
    if (cox__tally_add(&device->tally, measurement, &closed))
        learn(state, device, &closed);
}

/* Shares that would have made the last frame's devices finish together, into the ring. */
static void push_shares(struct state *state)
{
    double speed = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        speed += state->devices[d].ns_per_row > 0 ? 1.0 / state->devices[d].ns_per_row : 0;
    for (uint32_t d = 0; d < state->device_count; d++) {
        struct device *device = &state->devices[d];
        device->shares[state->share_next] = device->ns_per_row > 0 ? 1.0 / device->ns_per_row / speed : 0;
    }
    state->share_next = (state->share_next + 1) % MEAN_FRAMES;
    if (state->share_count < MEAN_FRAMES)
        state->share_count++;
}

/* Sixteen rows where the granule allows it: their least common multiple, unless the frame is too small for that. */
static uint32_t step_rows(const struct cox_sched_view *view)
{
    uint64_t step = view->granule;
    while (step % MEAN_ROWS != 0)
        step += view->granule;
    return step * 2 > view->rows ? view->granule : (uint32_t)step;
}

/* Floor each device's share, the last one with a share takes the rest. */
static void floor_shares(const struct cox_sched_view *view, const double *shares, uint32_t *rows)
{
    double sum = 0;
    uint32_t last = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        rows[d] = 0;
        if (!view->devices[d].usable || !(shares[d] > 0))
            continue;
        sum += shares[d];
        last = d;
    }
    uint32_t step = step_rows(view);
    uint32_t least = view->min_band_rows > view->granule ? view->min_band_rows : view->granule;
    uint32_t left = view->rows;
    for (uint32_t d = 0; d < last; d++) {
        if (!view->devices[d].usable || !(shares[d] > 0))
            continue;
        double exact = shares[d] / sum * view->rows;
        uint32_t floored = (exact >= left ? left : (uint32_t)exact) / step * step;
        if (floored < least || floored > left)
            continue;
        rows[d] = floored;
        left -= floored;
    }
    rows[last] = left;
    if (left < least) { /* too short for a band: its neighbour before it takes the rows */
        for (uint32_t d = last; d-- > 0;) {
            if (rows[d] == 0)
                continue;
            rows[d] += left;
            rows[last] = 0;
            break;
        }
    }
}

static cox_status mean_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    uint32_t last = 0;
    if (cox__usable_count(view, &last) == 0)
        return COX_E_NO_DEVICE;
    bool all = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        struct cox__tally closed;
        if (cox__tally_take(&device->tally, &closed))
            learn(state, device, &closed);
        all &= !view->devices[d].usable || device->ns_per_row > 0;
    }
    if (state->fresh && all)
        push_shares(state);
    state->fresh = false;

    double shares[COX_DEVICES_MAX];
    double sum = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        shares[d] = 0;
        for (uint32_t i = 0; i < state->share_count; i++)
            shares[d] += state->devices[d].shares[i] / state->share_count;
        sum += view->devices[d].usable ? shares[d] : 0;
    }
    bool guessed = !all || !(sum > 0);
    if (guessed) {
        double ns_per_row[COX_DEVICES_MAX];
        (void)cox__layout_guess(view, ns_per_row);
        for (uint32_t d = 0; d < view->device_count; d++)
            shares[d] = 1.0 / ns_per_row[d];
    }
    uint32_t rows[COX_DEVICES_MAX];
    floor_shares(view, shares, rows);
    out->reason = guessed ? COX_REASON_FIRST : COX_REASON_BALANCED;
    struct cox__probe probes[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        probes[d] = state->devices[d].probe;
    if (cox__probe_frame(probes, view, rows))
        out->reason = COX_REASON_PROBE;
    for (uint32_t d = 0; d < view->device_count; d++)
        state->devices[d].probe = probes[d];
    cox__layout_bands(view, rows, out);
    out->predicted_ns = 0;
    return COX_OK;
}

const struct cox_policy cox__policy_mean10 = {
    .name = "mean10", .state_bytes = mean_bytes, .init = mean_init, .split = mean_split, .observe = mean_observe};
