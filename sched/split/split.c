/* The check that a split is a split of its view, and the texts of reasons.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/sched.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *cox_reason_text(enum cox_reason reason)
{
    switch (reason) {
#define COX_REASON_CASE(name, value, text) \
    case name:                             \
        return text;
        COX_REASON_MAP(COX_REASON_CASE)
#undef COX_REASON_CASE
    }
    return "unknown reason";
}

__attribute__((format(printf, 3, 4))) static cox_status refuse(char *why, size_t why_bytes,
                                                               const char *format, ...)
{
    if (why && why_bytes > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
    }
    return COX_E_POLICY;
}

/* Check that a range lies in the frame and on the row alignment; `what` names it. */
static cox_status check_range(const struct cox_sched_view *view, const char *what,
                              uint32_t first_row, uint32_t rows, char *why, size_t why_bytes)
{
    uint64_t end = (uint64_t)first_row + rows; /* 64 bits, so that it cannot wrap */

    if (first_row % view->row_alignment != 0)
        return refuse(why, why_bytes,
                      "%s begins at row %" PRIu32
                      ", which is not a multiple of the row alignment %" PRIu32,
                      what, first_row, view->row_alignment);

    if (end > view->rows)
        return refuse(why, why_bytes, "%s ends at row %" PRIu64 ", but the frame has %" PRIu32,
                      what, end, view->rows);

    if (end % view->row_alignment != 0 && end != view->rows)
        return refuse(why, why_bytes,
                      "%s ends at row %" PRIu64
                      ", which is not a multiple of the row alignment %" PRIu32,
                      what, end, view->row_alignment);

    return COX_OK;
}

/* Check that the device exists and is usable; `what` names the range that is for it. */
static cox_status check_device(const struct cox_sched_view *view, const char *what, uint32_t device,
                               char *why, size_t why_bytes)
{
    if (device >= view->device_count)
        return refuse(why, why_bytes, "%s is for device %" PRIu32 ", but there are %" PRIu32, what,
                      device, view->device_count);

    if (!view->devices[device].usable)
        return refuse(why, why_bytes, "%s is for device %" PRIu32 ", which is not usable", what,
                      device);

    return COX_OK;
}

static cox_status check_shadow(const struct cox_split *split, const struct cox_sched_view *view,
                               char *why, size_t why_bytes)
{
    const struct cox_band *shadow = &split->shadow;
    if (shadow->rows == 0)
        return COX_OK;

    if (!view->shadow)
        return refuse(why, why_bytes, "a shadow is set, but the view does not allow one");

    cox_status status = check_device(view, "the shadow", shadow->device, why, why_bytes);
    if (status == COX_OK)
        status = check_range(view, "the shadow", shadow->first_row, shadow->rows, why, why_bytes);

    for (uint32_t i = 0; i < split->band_count && status == COX_OK; i++)
        if (split->bands[i].device == shadow->device)
            return refuse(why, why_bytes, "the shadow's device %" PRIu32 " has band %" PRIu32,
                          shadow->device, i);
    return status;
}

/* Check the number of bands, and that there is a pool only if the view allows one. */
static cox_status check_counts(const struct cox_split *split, const struct cox_sched_view *view,
                               char *why, size_t why_bytes)
{
    if (split->band_count > COX_BANDS_MAX)
        return refuse(why, why_bytes, "the split has %" PRIu32 " bands; at most %d are allowed",
                      split->band_count, COX_BANDS_MAX);
    if (split->band_count == 0 && split->pool_rows == 0)
        return refuse(why, why_bytes, "the split has no band");
    if (split->pool_rows > 0 && !view->pool)
        return refuse(why, why_bytes, "rows are left in a pool, but the view does not allow one");

    return check_range(view, "the pool", split->pool_rows ? split->pool_first_row : 0,
                       split->pool_rows, why, why_bytes);
}

/* Check that the band begins where the bands and the pool before it end, at row `next`. */
static cox_status check_begin(const struct cox_band *band, const char *what, uint64_t next,
                              char *why, size_t why_bytes)
{
    if (band->first_row < next)
        return refuse(why, why_bytes,
                      "%s begins at row %" PRIu32
                      ", inside or before the band above it, which ends at row %" PRIu64,
                      what, band->first_row, next);
    if (band->first_row > next)
        return refuse(why, why_bytes, "rows %" PRIu64 " to %" PRIu32 " before %s are in no band",
                      next, band->first_row - 1, what);
    return COX_OK;
}

cox_status cox_split_check(const struct cox_split *split, const struct cox_sched_view *view,
                           char *why, size_t why_bytes)
{
    if (why && why_bytes > 0)
        why[0] = '\0';

    cox_status status = check_counts(split, view, why, why_bytes);
    if (status)
        return status;

    uint64_t next = 0; /* first row that neither a band nor the pool covers yet */
    bool placed = split->pool_rows == 0;
    for (uint32_t i = 0; i < split->band_count; i++) {
        const struct cox_band *band = &split->bands[i];
        char what[24];
        snprintf(what, sizeof what, "band %" PRIu32, i);

        if (band->rows == 0)
            return refuse(why, why_bytes, "%s is empty", what);
        status = check_device(view, what, band->device, why, why_bytes);
        if (status)
            return status;

        /* The pool may lie between two bands. */
        if (!placed && split->pool_first_row == next) {
            next += split->pool_rows;
            placed = true;
        }

        status = check_begin(band, what, next, why, why_bytes);
        if (status)
            return status;
        status = check_range(view, what, band->first_row, band->rows, why, why_bytes);
        if (status)
            return status;
        next += band->rows;
    }

    if (!placed && split->pool_first_row == next) {
        next += split->pool_rows;
        placed = true;
    }

    if (!placed)
        return refuse(why, why_bytes,
                      "the pool begins at row %" PRIu32 ", inside a band or beyond the last one",
                      split->pool_first_row);

    if (next != view->rows)
        return refuse(why, why_bytes,
                      "the last band, %" PRIu32 ", ends at row %" PRIu64
                      ", but the frame has %" PRIu32,
                      split->band_count - 1, next, view->rows);

    return check_shadow(split, view, why, why_bytes);
}
