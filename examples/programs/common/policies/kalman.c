/* `kalman`: a Kalman filter for the time per row of each device; devices finish together by the
 * estimates. The time x per row is a random walk, and a frame measures it with noise. All errors
 * are relative to x:
 *
 *     P += Q for each frame;   K = P / (P + R),  e = z / x - 1,  x *= 1 + K e,  P *= 1 - K
 *
 * R is estimated from the innovations e, whose variance is P + R. An outlier counts as three
 * deviations there. A device without rows is not measured, so its P grows, and its next
 * measurement counts more.
 *
 * Sources: R. E. Kalman, "A New Approach to Linear Filtering and Prediction Problems", J. Basic
 * Engineering 82, 1960; R. K. Mehra, "On the Identification of Variances and Adaptive Kalman
 * Filtering", IEEE Trans. Automatic Control 15(2), 1970 (R from the innovations).
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>

static const double WALK = 0.03 * 0.03;      /* Q: 3 % a frame */
static const double NOISE = 0.05 * 0.05;     /* R of a device that was measured once */
static const double NOISE_MIN = 0.01 * 0.01; /* R at least */
static const double VARIANCE_MAX = 1;        /* P at most: nothing is known */
static const double NOISE_GAIN = 1.0 / 64;   /* of an innovation in R */
static const double CLIP = 9;                /* variances: what an innovation counts at most */

struct device {
    double ns_per_row; /* x; 0 = never measured */
    double variance;   /* P */
    double noise;      /* R */
};

struct state {
    struct history history;
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
    const double measured = layout_sane(sum->wall_ns / (double)sum->rows);

    if (!(device->ns_per_row > 0)) {
        *device = (struct device){.ns_per_row = measured, .variance = NOISE, .noise = NOISE};
        return;
    }

    const double expected = device->variance + device->noise;
    const double gain = device->variance / expected;
    const double innovation = measured / device->ns_per_row - 1;
    const double square = fmin(innovation * innovation, CLIP * expected);

    device->ns_per_row = layout_sane(device->ns_per_row * (1 + gain * innovation));
    device->noise += NOISE_GAIN * (square - device->variance - device->noise);
    device->noise = fmax(device->noise, NOISE_MIN);
    device->variance *= 1 - gain;
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
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;

    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);

    double ns_per_row[COX_DEVICES_MAX] = {0};
    bool all = true, timed = true;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct device *device = &state->devices[d];
        device->variance = fmin(device->variance + WALK, VARIANCE_MAX);
        ns_per_row[d] = device->ns_per_row;
        all &= !view->devices[d].usable || ns_per_row[d] > 0;
    }

    /* Until every device was measured, all speeds are guesses. */
    out->reason = COX_REASON_BALANCED;
    if (!all) {
        timed = layout_guess(view, ns_per_row);
        out->reason = COX_REASON_FIRST;
    }

    (void)history_balance(&state->history, view, ns_per_row, timed, out);
    return COX_OK;
}

const struct cox_policy policy_kalman = {.name = "kalman",
                                         .state_bytes = state_bytes,
                                         .init = history_init,
                                         .split = split,
                                         .observe = observe};
