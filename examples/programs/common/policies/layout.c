/* Bands from rows per device, and rows per device from speeds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/layout.h"
#include "common/strict_fp.h"

#include <math.h>

bool layout_any_usable(const struct cox_sched_view *view)
{
    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            return true;

    return false;
}

/* Append a band of `rows` at row `*next`. */
static void append(struct cox_split *out, uint32_t device, uint32_t *next, uint32_t rows)
{
    if (rows == 0)
        return;

    out->bands[out->band_count++] = (struct cox_band){
        .device = device, .first_row = *next, .rows = rows};
    *next += rows;
}

void layout_bands(const struct cox_sched_view *view, const uint32_t *rows, struct cox_split *out)
{
    uint32_t holder = view->device_count;
    /* Only the last band may end off the row alignment. */
    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d] % view->row_alignment != 0)
            holder = d;

    uint32_t next = 0;
    out->band_count = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (d != holder)
            append(out, d, &next, rows[d]);

    if (holder < view->device_count)
        append(out, holder, &next, rows[holder]);
}

double layout_sane(double ns_per_row)
{
    if (!(ns_per_row > 1e-6))
        return 1e-6;
    return fmin(ns_per_row, 1e20);
}

double layout_balance(const struct cox_sched_view *view, const double *ns_per_row, uint32_t *rows)
{
    struct cox_cost costs[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){.usable = view->devices[d].usable,
                                     .ns_per_row = layout_sane(ns_per_row[d])};

    return cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                         view->device_count, rows);
}

double layout_predict(const struct cox_sched_view *view, const double *ns_per_row,
                      const uint32_t *rows)
{
    double ns = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d] > 0)
            ns = fmax(ns, layout_sane(ns_per_row[d]) * rows[d]);

    return ns;
}

bool layout_guess(const struct cox_sched_view *view, double *ns_per_row)
{
    bool timed = true;

    for (uint32_t d = 0; d < view->device_count; d++)
        timed &= !view->devices[d].usable || view->devices[d].single_device_ns > 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_sched_device *device = &view->devices[d];
        double hint = device->hint > 0 ? device->hint : 1.0;
        double ns = 1e6 / hint;

        if (timed)
            ns = (double)device->single_device_ns / view->rows;
        ns_per_row[d] = layout_sane(ns);
    }

    return timed;
}

uint32_t layout_least_band(const struct cox_sched_view *view)
{
    uint64_t least = view->min_band_rows;

    if (least < view->row_alignment)
        least = view->row_alignment;
    least = (least + view->row_alignment - 1) / view->row_alignment * view->row_alignment;

    if (least > view->rows)
        return view->rows;
    return (uint32_t)least;
}

uint64_t layout_ns(double ns)
{
    if (ns >= 1 && ns < 1e19)
        return (uint64_t)ns;
    return 0;
}
