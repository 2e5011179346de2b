/* Checking splits, and the texts of reasons.
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

__attribute__((format(printf, 3, 4))) static cox_status refuse(char *why, size_t why_bytes, const char *format, ...)
{
    if (why && why_bytes > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
    }
    return COX_E_POLICY;
}

cox_status cox_split_check(const struct cox_split *split, const struct cox_sched_view *view, char *why,
                           size_t why_bytes)
{
    if (why && why_bytes > 0)
        why[0] = '\0';
    if (split->band_count == 0)
        return refuse(why, why_bytes, "the split has no band");
    if (split->band_count > COX_BANDS_MAX)
        return refuse(why, why_bytes, "the split has %" PRIu32 " bands, %d are possible", split->band_count,
                      COX_BANDS_MAX);

    uint64_t next = 0; /* first row that no band covers yet; 64 bits, so that first_row + rows cannot wrap */
    for (uint32_t i = 0; i < split->band_count; i++) {
        const struct cox_band *band = &split->bands[i];
        if (band->rows == 0)
            return refuse(why, why_bytes, "band %" PRIu32 " is empty", i);
        if (band->device >= view->device_count)
            return refuse(why, why_bytes, "band %" PRIu32 " is for device %" PRIu32 ", there are %" PRIu32, i,
                          band->device, view->device_count);
        if (!view->devices[band->device].usable)
            return refuse(why, why_bytes, "band %" PRIu32 " is for device %" PRIu32 ", which is not usable", i,
                          band->device);
        if (band->first_row < next)
            return refuse(why, why_bytes,
                          "band %" PRIu32 " begins at row %" PRIu32 ", inside or before its predecessor, which ends "
                          "at row %" PRIu64,
                          i, band->first_row, next);
        if (band->first_row > next)
            return refuse(why, why_bytes, "rows %" PRIu64 " to %" PRIu32 " before band %" PRIu32 " are in no band",
                          next, band->first_row - 1, i);
        if (band->first_row % view->granule != 0)
            return refuse(why, why_bytes,
                          "band %" PRIu32 " begins at row %" PRIu32 ", which is not a multiple of the granule %" PRIu32,
                          i, band->first_row, view->granule);
        next += band->rows;
        if (next > view->rows)
            return refuse(why, why_bytes, "band %" PRIu32 " ends at row %" PRIu64 ", the frame has %" PRIu32, i, next,
                          view->rows);
    }
    if (next != view->rows)
        return refuse(why, why_bytes, "the last band, %" PRIu32 ", ends at row %" PRIu64 ", the frame has %" PRIu32,
                      split->band_count - 1, next, view->rows);
    return COX_OK;
}
