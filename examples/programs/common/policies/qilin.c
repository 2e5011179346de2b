/* `qilin`: a training phase gives each device a linear regression of time over rows. The split in
 * which devices finish together by it is fixed from then on.
 *
 *     t_d(n) = a_d + b_d n,   minimise max_d t_d(n_d) with the sum of n_d = N
 *
 * Sources: C.-K. Luk, S. Hong, H. Kim, "Qilin: Exploiting Parallelism on Heterogeneous
 * Multiprocessors with Adaptive Mapping", MICRO 2009, section 4; J. Lee, M. Samadi, Y. Park,
 * S. Mahlke, "Transparent CPU-GPU Collaboration for Data-Parallel Kernels on Heterogeneous Systems"
 * (SKMD), PACT 2013, which fits such models offline, with the transfers in them.
 *
 * There the training runs before the program. Here it is the first frames: each device gets
 * TRAINING_SIZES sizes in turn, around the split that warm-up times or hints suggest. The devices
 * train while they share the frame. A device that joins later trains for as many frames. A device
 * that comes back keeps its regression.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>

enum {
    TRAINING_SIZES = 4,
    TRAINING_FRAMES = 3 * TRAINING_SIZES, /* measured for each device */
    TRAINING_MAX = 4 * TRAINING_FRAMES,   /* frames after which training ends in any case */
};

/* Sums of a regression of time over rows. */
struct device {
    uint32_t frames;
    double rows, ns, rows_rows, rows_ns;
};

struct state {
    struct history history;
    uint32_t usable;     /* devices at the last split, a bit each */
    uint32_t training;   /* frames of the current training phase */
    uint32_t split_rows; /* of the last frame after training; 0 = none */
    struct device devices[COX_DEVICES_MAX];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static void learn(struct state *state, const struct frame_sum *sum)
{
    struct device *device = &state->devices[sum->device];
    if (device->frames == TRAINING_FRAMES)
        return;

    const double rows = (double)sum->rows;
    device->frames++;
    device->rows += rows;
    device->ns += sum->wall_ns;
    device->rows_rows += rows * rows;
    device->rows_ns += rows * sum->wall_ns;
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct frame_sum sum;
    if (history_add(memory, measurement, &sum))
        learn(memory, &sum);
}

/* The least squares line; through the origin if a cost would be negative, or all sizes were the
 * same. */
static struct cox_cost fit(const struct device *device)
{
    const double n = device->frames;
    const double spread = n * device->rows_rows - device->rows * device->rows;
    double slope = device->rows_ns / device->rows_rows, fixed = 0;

    if (spread > 1e-9 * n * device->rows_rows) {
        const double steepness = (n * device->rows_ns - device->rows * device->ns) / spread;
        const double start = (device->ns - steepness * device->rows) / n;

        if (steepness > 0 && start > 0) {
            slope = steepness;
            fixed = fmin(start, 1e20);
        }
    }

    return (struct cox_cost){.usable = true, .fixed_ns = fixed, .ns_per_row = layout_sane(slope)};
}

/* Begin a training phase if a device has joined; count its frames. Returns whether it goes on. */
static bool train(struct state *state, const struct cox_sched_view *view)
{
    const uint32_t before = state->usable;
    bool missing = false;

    state->usable = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!view->devices[d].usable)
            continue;
        state->usable |= 1u << d;
        missing |= state->devices[d].frames < TRAINING_FRAMES;
    }

    if (state->usable & ~before)
        state->training = 0;
    if (state->usable != before)
        state->split_rows = 0;
    return missing && state->training++ < TRAINING_MAX;
}

/* Give each device the next of its training sizes. */
static void split_to_train(const struct state *state, const struct cox_sched_view *view,
                           uint32_t *rows, struct cox_split *out)
{
    double ns_per_row[COX_DEVICES_MAX];

    (void)layout_guess(view, ns_per_row);
    for (uint32_t d = 0; d < view->device_count; d++)
        ns_per_row[d] /= 1 + (state->training + d) % TRAINING_SIZES;

    (void)layout_balance(view, ns_per_row, rows);
    out->reason = COX_REASON_CALIBRATION;
}

/* Split by the regressions. A device without one gets no rows. */
static void split_by_models(struct state *state, const struct cox_sched_view *view, uint32_t *rows,
                            struct cox_split *out)
{
    struct cox_cost costs[COX_DEVICES_MAX] = {{.usable = false}};

    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable && state->devices[d].frames > 0)
            costs[d] = fit(&state->devices[d]);

    out->reason = COX_REASON_BALANCED;
    if (state->split_rows == view->rows)
        out->reason = COX_REASON_KEPT;
    state->split_rows = view->rows;

    const double ns = cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                                    view->device_count, rows);
    if (ns >= 0) {
        out->predicted_ns = layout_ns(ns);
        return;
    }

    double guess[COX_DEVICES_MAX];
    (void)layout_guess(view, guess);
    (void)layout_balance(view, guess, rows);
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;

    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);

    uint32_t rows[COX_DEVICES_MAX];
    if (train(state, view))
        split_to_train(state, view, rows, out);
    else
        split_by_models(state, view, rows, out);

    layout_bands(view, rows, out);
    return COX_OK;
}

const struct cox_policy policy_qilin = {.name = "qilin",
                                        .state_bytes = state_bytes,
                                        .init = history_init,
                                        .split = split,
                                        .observe = observe};
