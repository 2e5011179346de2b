/* `fpm`: a functional performance model of each device. Its speed s(n), rows per nanosecond, is a
 * function of the rows n: piecewise linear between the sizes that came up, constant outside. The
 * split puts the points (n_d, s_d(n_d)) on one line through the origin:
 *
 *     n_1 / s_1(n_1) = ... = n_p / s_p(n_p),   with the sum of n_d = N
 *
 * The line is found by bisection of its slope. Each measured frame then adds a point or refines
 * one, and the next split follows, so models become exact where they are used.
 *
 * Sources: A. Lastovetsky, R. Reddy, "Data Partitioning with a Functional Performance Model of
 * Heterogeneous Processors", Int. J. High Performance Computing Applications 21(1), 2007; by the
 * same, "Distributed Data Partitioning for Heterogeneous Processors Based on Partial Estimation of
 * Their Functional Performance Models", HeteroPar 2009 (points from the runs themselves).
 *
 * There the algorithm ends when times are equal within a tolerance. Here it never ends, and a model
 * keeps the POINTS sizes used last, so it follows devices that change.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = 8,
    MEAN_FRAMES = 4, /* measurements that a point averages */
    BISECTIONS = 64,
};

static const double SAME_SIZE = 1.0 / 32; /* sizes that differ by less are one point */

struct point {
    double rows, ns_per_row;
    uint32_t frames; /* measurements in it, up to MEAN_FRAMES */
    uint64_t used;   /* when it was last measured, by state.measurements */
};

/* The points of a device in ascending order of rows. */
struct model {
    uint32_t count;
    struct point points[POINTS];
};

struct state {
    struct history history;
    uint64_t measurements;
    struct model models[COX_DEVICES_MAX];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static void drop_oldest(struct model *model)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < model->count; i++)
        if (model->points[i].used < model->points[oldest].used)
            oldest = i;

    model->count--;
    memmove(&model->points[oldest], &model->points[oldest + 1],
            (model->count - oldest) * sizeof model->points[0]);
}

static void insert(struct model *model, struct point point)
{
    if (model->count == POINTS)
        drop_oldest(model);

    uint32_t at = model->count++;
    for (; at > 0 && model->points[at - 1].rows > point.rows; at--)
        model->points[at] = model->points[at - 1];
    model->points[at] = point;
}

static void learn(struct state *state, const struct frame_sum *sum)
{
    struct model *model = &state->models[sum->device];
    const double rows = (double)sum->rows;
    const double ns_per_row = layout_sane(sum->wall_ns / rows);

    state->measurements++;
    for (uint32_t i = 0; i < model->count; i++) {
        struct point *point = &model->points[i];
        if (fabs(point->rows - rows) > SAME_SIZE * rows)
            continue;

        point->frames += point->frames < MEAN_FRAMES;
        point->ns_per_row += (ns_per_row - point->ns_per_row) / point->frames;
        point->used = state->measurements;
        return;
    }

    insert(model,
           (struct point){
               .rows = rows, .ns_per_row = ns_per_row, .frames = 1, .used = state->measurements});
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct frame_sum sum;
    if (history_add(memory, measurement, &sum))
        learn(memory, &sum);
}

/* The most rows that a device does in `ns`: where n / ns, a line through the origin, leaves the
 * speed function for the last time. Between two points both are linear. */
static double rows_within(const struct model *model, double ns)
{
    const struct point *point = &model->points[model->count - 1];
    double above = 0, rows_above = 0;

    for (uint32_t i = model->count; i-- > 0; point--) {
        const double excess = point->rows - ns / point->ns_per_row;

        if (excess <= 0 && i + 1 == model->count)
            return ns / point->ns_per_row;
        if (excess <= 0)
            return point->rows + (rows_above - point->rows) * excess / (excess - above);
        above = excess;
        rows_above = point->rows;
    }

    return ns / model->points[0].ns_per_row;
}

/* The time that any device needs at most for the whole frame. */
static double longest(const struct state *state, const struct cox_sched_view *view)
{
    double ns = HUGE_VAL;

    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct model *model = &state->models[d];
        double slowest = 0;

        for (uint32_t i = 0; i < model->count; i++)
            slowest = fmax(slowest, model->points[i].ns_per_row);
        if (view->devices[d].usable)
            ns = fmin(ns, slowest * view->rows);
    }

    return ns;
}

/* Nanoseconds per row at the sizes with which all devices finish together. */
static void find_line(const struct state *state, const struct cox_sched_view *view,
                      double *ns_per_row)
{
    double low = 0, high = longest(state, view);

    for (uint32_t i = 0; i < BISECTIONS; i++) {
        const double middle = low + (high - low) / 2;
        double rows = 0;

        for (uint32_t d = 0; d < view->device_count; d++)
            if (view->devices[d].usable)
                rows += rows_within(&state->models[d], middle);
        if (rows < view->rows)
            low = middle;
        else
            high = middle;
    }

    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            ns_per_row[d] = layout_sane(high / rows_within(&state->models[d], high));
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!layout_any_usable(view))
        return COX_E_NO_DEVICE;

    struct frame_sum sum;
    while (history_take(&state->history, &sum))
        learn(state, &sum);

    bool all = true, timed = true;
    for (uint32_t d = 0; d < view->device_count; d++)
        all &= !view->devices[d].usable || state->models[d].count > 0;

    /* Until every device was measured, all speeds are guesses. */
    double ns_per_row[COX_DEVICES_MAX] = {0};
    out->reason = COX_REASON_BALANCED;
    if (all) {
        find_line(state, view, ns_per_row);
    } else {
        timed = layout_guess(view, ns_per_row);
        out->reason = COX_REASON_FIRST;
    }

    (void)history_balance(&state->history, view, ns_per_row, timed, out);
    return COX_OK;
}

const struct cox_policy policy_fpm = {.name = "fpm",
                                      .state_bytes = state_bytes,
                                      .init = history_init,
                                      .split = split,
                                      .observe = observe};
