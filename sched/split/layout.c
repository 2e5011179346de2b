/* Bands from rows per device, rows per device from speeds, and the pool of policies that split
 * nothing in advance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>
#include <string.h>

uint32_t cox__layout_usable_count(const struct cox_sched_view *view, uint32_t *last)
{
    uint32_t count = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!view->devices[d].usable)
            continue;
        count++;
        *last = d;
    }

    return count;
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

/* The device whose rows are no multiple of the alignment; device_count = none. There is one at
 * most. */
static uint32_t odd_device(const struct cox_sched_view *view, const uint32_t *rows)
{
    uint32_t odd = view->device_count;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d] % view->row_alignment != 0)
            odd = d;

    return odd;
}

/* Only the last band may end off the row alignment. So the last device gets those rows, which are
 * fewer than the alignment. Otherwise a device that got them would change places with others, and
 * no device would keep its rows from frame to frame. */
static void move_odd_rows(const struct cox_sched_view *view, uint32_t *rows)
{
    const uint32_t from = odd_device(view, rows);
    uint32_t last = 0;
    if (from == view->device_count)
        return;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d] > 0)
            last = d;

    const uint32_t odd = rows[from] % view->row_alignment;
    if (from == last || (rows[from] > odd && rows[from] - odd < view->min_band_rows))
        return;

    rows[from] -= odd;
    rows[last] += odd;
}

void cox__layout_bands(const struct cox_sched_view *view, const uint32_t *given,
                       struct cox_split *out)
{
    uint32_t rows[COX_DEVICES_MAX];
    memcpy(rows, given, view->device_count * sizeof *rows);
    move_odd_rows(view, rows);

    const uint32_t odd = odd_device(view, rows); /* usually the last one */
    uint32_t next = 0;
    out->band_count = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (d != odd)
            append(out, d, &next, rows[d]);

    if (odd < view->device_count)
        append(out, odd, &next, rows[odd]);
}

bool cox__layout_take_band(struct cox_split *out, uint32_t device, uint32_t rows)
{
    uint32_t largest = 0;

    for (uint32_t i = 1; i < out->band_count; i++)
        if (out->bands[i].rows > out->bands[largest].rows)
            largest = i;

    if (out->band_count == 0 || out->band_count >= COX_BANDS_MAX ||
        out->bands[largest].rows < 2 * (uint64_t)rows)
        return false;

    struct cox_band *band = &out->bands[largest];
    memmove(band + 1, band, (out->band_count - largest) * sizeof *band);
    out->band_count++;
    *band = (struct cox_band){device, band[1].first_row, rows};
    band[1].first_row += rows;
    band[1].rows -= rows;

    return true;
}

double cox__layout_sane(double ns_per_row)
{
    return cox__clip(ns_per_row, 1e-6, 1e20);
}

double cox__layout_balance(const struct cox_sched_view *view, const double *ns_per_row,
                           uint32_t *rows)
{
    struct cox_cost costs[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){.usable = view->devices[d].usable,
                                     .ns_per_row = cox__layout_sane(ns_per_row[d])};

    return cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                         view->device_count, rows);
}

double cox__layout_predict(const struct cox_sched_view *view, const double *ns_per_row,
                           const uint32_t *rows)
{
    double ns = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d] > 0)
            ns = fmax(ns, cox__layout_sane(ns_per_row[d]) * rows[d]);

    return ns;
}

bool cox__layout_guess(const struct cox_sched_view *view, double *ns_per_row)
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
        ns_per_row[d] = cox__layout_sane(ns);
    }
    return timed;
}

uint64_t cox__layout_ns(double ns)
{
    if (ns >= 1 && ns < 1e19)
        return (uint64_t)ns;
    return 0;
}

cox_status cox__layout_pool(const struct cox_sched_view *view, struct cox_split *out)
{
    uint32_t last = 0;
    if (cox__layout_usable_count(view, &last) == 0)
        return COX_E_NO_DEVICE;

    if (view->pool) {
        out->pool_rows = view->rows;
        out->reason = COX_REASON_ON_DEMAND;
        return COX_OK;
    }

    double ns_per_row[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];

    (void)cox__layout_guess(view, ns_per_row);
    if (cox__layout_balance(view, ns_per_row, rows) < 0)
        return COX_E_NO_DEVICE;

    cox__layout_bands(view, rows, out);
    out->reason = COX_REASON_FIRST;
    return COX_OK;
}

uint32_t cox__layout_least_band(const struct cox_sched_view *view)
{
    uint64_t least = cox__max_u32(view->min_band_rows, view->row_alignment);
    least = (least + view->row_alignment - 1) / view->row_alignment * view->row_alignment;
    if (least > view->rows)
        return view->rows;
    return (uint32_t)least;
}

uint32_t cox__layout_chunk(const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                           uint32_t rows)
{
    uint32_t least = cox__layout_least_band(view);
    uint64_t chunk = (uint64_t)cox__max_u32(rows, least) + view->row_alignment - 1;

    chunk -= chunk % view->row_alignment;
    if (chunk < offer->rows)
        return (uint32_t)chunk;
    return offer->rows;
}
