/* `static`: the user's ratios, in every frame. Band boundaries are running sums of the ratios, each
 * rounded to the nearest row alignment, so that rounding errors do not add up. The share of a
 * device that is not usable goes to the others in proportion. A band shorter than the minimum goes
 * to the device before it. If no device before it has a band, the rows go to the device after it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "split/layout.h"
#include "policies.h"
#include "split/strict_fp.h"

#include <math.h>

struct state {
    double ratios[COX_DEVICES_MAX];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct state *state = memory;
    const double *ratios = options ? options->ratios : NULL;

    if (!ratios) {
        for (uint32_t d = 0; d < view->device_count; d++)
            state->ratios[d] = 1.0 / view->device_count;
        return COX_OK;
    }

    if (options->ratio_count != view->device_count)
        return COX_E_INVALID;

    double sum = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!(ratios[d] >= 0 && ratios[d] <= 1.01))
            return COX_E_INVALID;
        sum += ratios[d];
    }
    /* A tolerance, because 0.333 three times means 1. */
    if (fabs(sum - 1.0) > 0.002)
        return COX_E_INVALID;

    for (uint32_t d = 0; d < view->device_count; d++)
        state->ratios[d] = ratios[d] / sum;

    return COX_OK;
}

/* Give the rows of bands shorter than the minimum to the device before, or to the next device that
 * has enough. */
static void merge_short(const struct cox_sched_view *view, uint32_t *rows)
{
    uint32_t least = view->min_band_rows;
    if (least == 0)
        least = view->row_alignment;

    uint32_t before = view->device_count;
    uint64_t carried = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] == 0)
            continue;

        if (rows[d] + carried >= least) {
            rows[d] += (uint32_t)carried;
            carried = 0;
            before = d;
        } else if (before < view->device_count) {
            rows[before] += rows[d];
            rows[d] = 0;
        } else {
            carried += rows[d];
            rows[d] = 0;
            /* If no band is long enough, the frame stays one band. */
            if (carried == view->rows)
                rows[d] = view->rows;
        }
    }
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    const struct state *state = memory;
    uint32_t last = 0;
    uint32_t usable = cox__layout_usable_count(view, &last);
    if (usable == 0)
        return COX_E_NO_DEVICE;

    double sum = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            sum += state->ratios[d];

    uint32_t rows[COX_DEVICES_MAX] = {0};
    double share = 0; /* of the devices so far */
    uint32_t begin = 0;
    uint32_t filled = last; /* the last device with a share; it takes what rounding leaves */

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!view->devices[d].usable)
            continue;
        double part = 1.0 / usable;
        if (sum > 0)
            part = state->ratios[d] / sum;
        if (part <= 0)
            continue;

        share += part;
        double boundary = floor(share * view->rows / view->row_alignment + 0.5) *
                          view->row_alignment;
        uint32_t end = boundary >= view->rows ? view->rows : (uint32_t)boundary;
        rows[d] = end - begin;
        begin = end;
        filled = d;
    }

    rows[filled] += view->rows - begin;

    merge_short(view, rows);
    cox__layout_bands(view, rows, out);
    out->reason = COX_REASON_GIVEN;
    if (usable < view->device_count)
        out->reason = COX_REASON_DEVICES;

    return COX_OK;
}

const struct cox_policy cox__policy_static = {
    .name = "static", .state_bytes = state_bytes, .init = init, .split = split};
