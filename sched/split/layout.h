/* Layout: bands from rows per device, rows from speeds, and the least rows of bands and chunks.
 * Policies call this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SPLIT_LAYOUT_H
#define COX_SPLIT_LAYOUT_H

#include <coxswain/sched.h>

/* The number of usable devices in the view. If it is not 0, `*last` is the last of them. */
uint32_t cox__layout_usable_count(const struct cox_sched_view *view, uint32_t *last);

/* Fill band_count and bands: one band for each device that has rows. The bands are in device order,
 * except that the device with the rows beyond the last full row alignment holds the frame's end.
 * `rows` must sum to view->rows. */
void cox__layout_bands(const struct cox_sched_view *view, const uint32_t *rows,
                       struct cox_split *out);

/* Give a device a band of `rows`, to measure it: the first rows of the largest band. False: that
 * band is less than twice as long, or there are already COX_BANDS_MAX bands. */
bool cox__layout_take_band(struct cox_split *out, uint32_t device, uint32_t rows);

/* The rows with which devices of the given nanoseconds per row finish together. Only usable devices
 * are read; their values are clipped by cox__layout_sane. Returns the frame time; negative if no
 * device is usable. */
double cox__layout_balance(const struct cox_sched_view *view, const double *ns_per_row,
                           uint32_t *rows);

/* The frame time if each device has these rows, at the given nanoseconds per row. */
double cox__layout_predict(const struct cox_sched_view *view, const double *ns_per_row,
                           const uint32_t *rows);

/* Nanoseconds per row before anything was measured: from the warm-up times if all usable devices
 * have one, else from the hints, which give ratios only. Returns whether the values are times. */
bool cox__layout_guess(const struct cox_sched_view *view, double *ns_per_row);

/* Put the whole frame into the pool, for policies that split nothing in advance. If the view allows
 * no pool, split it by cox__layout_guess. Errors: COX_E_NO_DEVICE. */
cox_status cox__layout_pool(const struct cox_sched_view *view, struct cox_split *out);

/* The least rows of a band: the minimum of the view in whole multiples of the row alignment, but
 * never more than the frame has. */
uint32_t cox__layout_least_band(const struct cox_sched_view *view);

/* The rows of a grant of about `rows`: a multiple of the row alignment, at least a band's minimum,
 * at most what is offered. */
uint32_t cox__layout_chunk(const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                           uint32_t rows);

/* Nanoseconds per row clipped to a range in which no computation overflows. NaN becomes the
 * smallest value. */
double cox__layout_sane(double ns_per_row);

/* A time as the integer for predicted_ns; 0 if it is not a time. */
uint64_t cox__layout_ns(double ns);

#endif
