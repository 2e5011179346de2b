/* From rows per device to bands, and the row counts that go with given speeds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_LAYOUT_H
#define COX_SCHED_LAYOUT_H

#include <coxswain/sched.h>

/* Usable devices of the view, and the last of them in `*last` (unless 0). */
uint32_t cox__usable_count(const struct cox_sched_view *view, uint32_t *last);

/* Fill band_count and bands: one band for each device that has rows, in device order, except that the device which
 * takes the rows beyond the last full granule holds the frame's end. `rows` must sum to view->rows. */
void cox__layout_bands(const struct cox_sched_view *view, const uint32_t *rows, struct cox_split *out);

/* Rows such that devices of the given nanoseconds per row finish together. `ns_per_row` is read for usable devices and
 * taken into a range that arithmetic survives. Returns the frame time; negative if no device is usable. */
double cox__layout_balance(const struct cox_sched_view *view, const double *ns_per_row, uint32_t *rows);

/* The frame time of given rows at the given nanoseconds per row. */
double cox__layout_predict(const struct cox_sched_view *view, const double *ns_per_row, const uint32_t *rows);

/* Nanoseconds per row before anything was measured: from the warm-up times if all usable devices have one, else from
 * the hints, where only the ratio means something. Returns whether the values are times. */
bool cox__layout_guess(const struct cox_sched_view *view, double *ns_per_row);

/* The whole frame as a pool, for policies that only hand out; where the view allows none, a split by cox__layout_guess.
 * Errors: COX_E_NO_DEVICE. */
cox_status cox__layout_pool(const struct cox_sched_view *view, struct cox_split *out);

/* A grant of about `rows`: a multiple of the granule, at least a band's minimum, at most what is offered. */
uint32_t cox__layout_chunk(const struct cox_sched_view *view, const struct cox_offer *offer, uint32_t rows);

/* A number of nanoseconds per row that every computation survives. */
double cox__layout_sane(double ns_per_row);

/* For predicted_ns: 0 if there is no time to tell. */
uint64_t cox__layout_ns(double ns);

#endif
