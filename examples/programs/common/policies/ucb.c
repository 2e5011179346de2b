/* `ucb`: a bandit whose arms are a grid of splits: all ways to divide PARTS equal parts of the frame
 * among the devices. It knows no model; each frame's time per row is the arm's outcome. Discounted
 * UCB plays the arm with the largest
 *
 *     r_i + B sqrt(ln n / n_i),   n_i the arm's frames, discounted by DISCOUNT each frame; n their sum
 *
 * where r_i is the least mean time of all arms over that of arm i. Each arm is played once first,
 * in the order of the times that warm-up times or hints suggest. Arms with an unusable device are
 * not played.
 *
 * Sources: P. Auer, N. Cesa-Bianchi, P. Fischer, "Finite-time Analysis of the Multiarmed Bandit
 * Problem", Machine Learning 47, 2002 (UCB1); A. Garivier, E. Moulines, "On Upper-Confidence Bound
 * Policies for Switching Bandit Problems", ALT 2011 (the discount).
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>

enum {
    ARMS_MAX = 64,
    PARTS_MAX = 16, /* of the frame: the finest grid of at most ARMS_MAX arms */
    IN_FLIGHT = 16,
};

static const double DISCOUNT = 0.998; /* the last 500 frames count */
static const double BONUS = 0.1;      /* B, by how much likely rewards differ; their 2 B sqrt(xi) */

struct arm {
    uint8_t parts[COX_DEVICES_MAX];
    bool played;       /* since a device joined or left, or measured */
    double frames;     /* discounted; 0 = never measured */
    double ns_per_row; /* mean */
};

struct play {
    uint64_t frame;
    uint32_t arm, rows;
};

struct state {
    uint32_t arm_count;
    uint32_t usable; /* devices at the last split, a bit each */
    struct arm arms[ARMS_MAX];
    struct play plays[IN_FLIGHT];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

/* The ways to divide `parts` among `devices`; ARMS_MAX + 1 if there are more. */
static uint32_t count_ways(uint32_t parts, uint32_t devices)
{
    uint64_t ways = 1;

    for (uint32_t i = 1; i <= parts && ways <= ARMS_MAX; i++)
        ways = ways * (devices - 1 + i) / i;
    return ways > ARMS_MAX ? ARMS_MAX + 1 : (uint32_t)ways;
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct state *state = memory;
    const uint32_t devices = view->device_count;
    uint32_t parts = PARTS_MAX;
    (void)options;

    while (parts > 1 && count_ways(parts, devices) > ARMS_MAX)
        parts--;
    state->arm_count = count_ways(parts, devices);

    /* Count through the ways: the first device with parts passes one on and keeps none. */
    state->arms[0].parts[0] = (uint8_t)parts;
    for (uint32_t i = 1; i < state->arm_count; i++) {
        uint8_t *next = state->arms[i].parts;
        uint32_t first = 0;

        for (uint32_t d = 0; d < devices; d++)
            next[d] = state->arms[i - 1].parts[d];
        while (next[first] == 0)
            first++;

        const uint8_t kept = next[first];
        next[first] = 0;
        next[0] = (uint8_t)(kept - 1);
        next[first + 1]++;
    }

    return COX_OK;
}

static void observe_frame(void *memory, const struct cox_frame_measurement *measurement)
{
    struct state *state = memory;
    const struct play *play = &state->plays[measurement->frame % IN_FLIGHT];
    if (play->rows == 0 || play->frame != measurement->frame)
        return;

    for (uint32_t i = 0; i < state->arm_count; i++)
        state->arms[i].frames *= DISCOUNT;

    struct arm *arm = &state->arms[play->arm];
    const double ns_per_row = layout_sane((double)measurement->period_ns / play->rows);
    arm->frames += 1;
    arm->ns_per_row += (ns_per_row - arm->ns_per_row) / arm->frames;
}

/* The natural logarithm of x >= 1, the same on every machine. */
static double logarithm(double x)
{
    double result = 0, power;

    for (; x >= 2; x /= 2)
        result += 0.69314718055994531;
    const double y = (x - 1) / (x + 1);
    power = 2 * y;
    for (int n = 1; n < 24; n += 2, power *= y * y)
        result += power / n;
    return result;
}

/* The expected time of an arm by guessed speeds; negative if it uses an unusable device. */
static double guess_arm(const struct arm *arm, const struct cox_sched_view *view,
                        const double *ns_per_row)
{
    double most = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (arm->parts[d] > 0 && !view->devices[d].usable)
            return -1;
        most = fmax(most, arm->parts[d] * ns_per_row[d]);
    }
    return most;
}

static uint32_t choose(const struct state *state, const struct cox_sched_view *view)
{
    double guess[COX_DEVICES_MAX], times[ARMS_MAX];
    double frames = 0, least_ns = HUGE_VAL, best = -1;
    uint32_t unplayed = ARMS_MAX, likely = ARMS_MAX, chosen = ARMS_MAX;

    (void)layout_guess(view, guess);
    for (uint32_t i = 0; i < state->arm_count; i++) {
        const struct arm *arm = &state->arms[i];

        times[i] = guess_arm(arm, view, guess);
        if (times[i] < 0)
            continue;
        if (likely == ARMS_MAX || times[i] < times[likely])
            likely = i;
        if (!arm->played && (unplayed == ARMS_MAX || times[i] < times[unplayed]))
            unplayed = i;
        if (arm->frames > 0)
            least_ns = fmin(least_ns, arm->ns_per_row);
        frames += arm->frames;
    }
    if (unplayed < ARMS_MAX)
        return unplayed;

    const double spread = logarithm(fmax(frames, 1));
    for (uint32_t i = 0; i < state->arm_count; i++) {
        const struct arm *arm = &state->arms[i];
        if (times[i] < 0 || !(arm->frames > 0))
            continue;

        const double index = least_ns / arm->ns_per_row + BONUS * sqrt(spread / arm->frames);
        if (index > best) {
            best = index;
            chosen = i;
        }
    }
    return chosen < ARMS_MAX ? chosen : likely;
}

/* Play arms that were never measured again if a device has joined or left: their frame may have
 * failed with it. */
static void note_devices(struct state *state, const struct cox_sched_view *view)
{
    uint32_t usable = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            usable |= 1u << d;
    for (uint32_t i = 0; i < state->arm_count && usable != state->usable; i++)
        state->arms[i].played = state->arms[i].frames > 0;
    state->usable = usable;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;
    note_devices(state, view);

    const uint32_t chosen = choose(state, view);
    struct arm *arm = &state->arms[chosen];
    struct cox_cost costs[COX_DEVICES_MAX] = {{.usable = false}};
    for (uint32_t d = 0; d < view->device_count; d++)
        if (arm->parts[d] > 0)
            costs[d] = (struct cox_cost){.usable = true, .ns_per_row = 1.0 / arm->parts[d]};

    uint32_t rows[COX_DEVICES_MAX];
    (void)cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                        view->device_count, rows);
    layout_bands(view, rows, out);

    out->reason = arm->frames > 0 ? COX_REASON_BALANCED : COX_REASON_TRIAL;
    if (arm->frames > 0)
        out->predicted_ns = layout_ns(arm->ns_per_row * view->rows);
    arm->played = true;
    state->plays[view->frame % IN_FLIGHT] = (struct play){
        .frame = view->frame, .arm = chosen, .rows = view->rows};
    return COX_OK;
}

const struct cox_policy policy_ucb = {.name = "ucb",
                                      .state_bytes = state_bytes,
                                      .init = init,
                                      .split = split,
                                      .observe_frame = observe_frame};
