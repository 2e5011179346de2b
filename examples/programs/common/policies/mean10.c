/* `mean10`: the method of Intel's multi-device tone-mapping sample. Let t1 and t2 be the kernel
 * times of a frame that gave device 1 the share r. The devices would have finished together with
 * the share
 *
 *     r' = t2 r / (t1 (1 - r) + t2 r).
 *
 * The split uses the mean of the last ten r', and rows are floored to 16. With more devices,
 * share_d is in proportion to r_d / t_d, which is the same for two. Only kernel times count, so
 * launches and transfers are not balanced. Wall times replace kernel times for a device without a
 * profile, and for a staged device in a session without `profile`. The policy is kept as it was,
 * for comparison. The sample had no probes of devices that are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

enum { MEAN_FRAMES = 10, MEAN_ROWS = 16 };

struct state {
    struct history history;
    bool fresh;                         /* a device was measured since the last split */
    double ns_per_row[COX_DEVICES_MAX]; /* 0 = never measured */
    uint32_t share_count, share_next;
    double shares[MEAN_FRAMES][COX_DEVICES_MAX]; /* a ring */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static void learn(struct state *state, const struct frame_sum *sum)
{
    double ns = sum->kernel_ns;

    if (!(ns > 0))
        ns = sum->wall_ns;
    state->ns_per_row[sum->device] = layout_sane(ns / (double)sum->rows);
    state->fresh = true;
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct frame_sum sum;
    if (history_add(memory, measurement, &sum))
        learn(memory, &sum);
}

/* Put the shares with which the last frame's devices would have finished together into the ring. */
static void push_shares(struct state *state)
{
    double speed = 0;

    for (uint32_t d = 0; d < state->history.device_count; d++)
        if (state->ns_per_row[d] > 0)
            speed += 1.0 / state->ns_per_row[d];
    for (uint32_t d = 0; d < state->history.device_count; d++) {
        double *share = &state->shares[state->share_next][d];
        *share = 0;
        if (state->ns_per_row[d] > 0)
            *share = 1.0 / state->ns_per_row[d] / speed;
    }

    state->share_next = (state->share_next + 1) % MEAN_FRAMES;
    state->share_count += state->share_count < MEAN_FRAMES;
}

/* The mean of the shares in the ring. Returns whether any usable device has one. */
static bool mean_shares(const struct state *state, const struct cox_sched_view *view,
                        double *shares)
{
    double sum = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        shares[d] = 0;
        for (uint32_t i = 0; i < state->share_count; i++)
            shares[d] += state->shares[i][d] / state->share_count;
        if (view->devices[d].usable)
            sum += shares[d];
    }
    return sum > 0;
}

/* The least common multiple of sixteen rows and the row alignment, or the row alignment itself if
 * the frame is too small for that. */
static uint32_t step_rows(const struct cox_sched_view *view)
{
    uint64_t step = view->row_alignment;
    while (step % MEAN_ROWS != 0)
        step += view->row_alignment;

    if (step * 2 > view->rows)
        return view->row_alignment;
    return (uint32_t)step;
}

/* Floor each device's share to rows; `rows` is zero before. The last device with a share takes the
 * rest. If the rest is too short for a band, the device with rows before it takes the rest. */
static void floor_shares(const struct cox_sched_view *view, const double *shares, uint32_t *rows)
{
    double sum = 0;
    uint32_t last = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!view->devices[d].usable || !(shares[d] > 0))
            continue;
        sum += shares[d];
        last = d;
    }

    uint32_t step = step_rows(view);
    uint32_t least = view->min_band_rows;
    if (least < view->row_alignment)
        least = view->row_alignment;

    uint32_t left = view->rows, before = last;
    for (uint32_t d = 0; d < last; d++) {
        if (!view->devices[d].usable || !(shares[d] > 0))
            continue;

        double exact = shares[d] / sum * view->rows;
        uint32_t whole = exact >= left ? left : (uint32_t)exact;
        uint32_t floored = whole / step * step;

        if (floored < least || floored > left)
            continue;
        rows[d] = floored;
        left -= floored;
        before = d;
    }

    rows[left < least ? before : last] += left;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;

    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);

    bool all = true;
    for (uint32_t d = 0; d < view->device_count; d++)
        all &= !view->devices[d].usable || state->ns_per_row[d] > 0;

    if (state->fresh && all)
        push_shares(state);
    state->fresh = false;

    /* Until every device was measured, use guesses. */
    double shares[COX_DEVICES_MAX];
    out->reason = COX_REASON_BALANCED;
    if (!mean_shares(state, view, shares) || !all) {
        double ns_per_row[COX_DEVICES_MAX];
        (void)layout_guess(view, ns_per_row);
        for (uint32_t d = 0; d < view->device_count; d++)
            shares[d] = 1.0 / ns_per_row[d];
        out->reason = COX_REASON_FIRST;
    }

    uint32_t rows[COX_DEVICES_MAX] = {0};
    floor_shares(view, shares, rows);
    history_lay_out(&state->history, view, rows, out);

    return COX_OK;
}

const struct cox_policy policy_mean10 = {.name = "mean10",
                                         .state_bytes = state_bytes,
                                         .init = history_init,
                                         .split = split,
                                         .observe = observe};
