/* What the compared policies have in common: bands from rows per device, and rows from speeds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMPARED_LAYOUT_H
#define COMPARED_LAYOUT_H

#include <coxswain/sched.h>

/* Whether any device of the view is usable. */
bool layout_any_usable(const struct cox_sched_view *view);

/* Fill band_count and bands: one band for each device that has rows. The bands are in device order,
 * except that the device with the rows beyond the last full row alignment holds the frame's end.
 * `rows` must sum to view->rows. */
void layout_bands(const struct cox_sched_view *view, const uint32_t *rows, struct cox_split *out);

/* The rows with which devices of the given nanoseconds per row finish together. Only usable devices
 * are read; their values are clipped by layout_sane. Returns the frame time; negative if no device
 * is usable. */
double layout_balance(const struct cox_sched_view *view, const double *ns_per_row, uint32_t *rows);

/* The frame time if each device has these rows, at the given nanoseconds per row. */
double layout_predict(const struct cox_sched_view *view, const double *ns_per_row,
                      const uint32_t *rows);

/* Nanoseconds per row before anything was measured: from the warm-up times if all usable devices
 * have one, else from the hints, which give ratios only. Returns whether the values are times. */
bool layout_guess(const struct cox_sched_view *view, double *ns_per_row);

/* The least rows of a band: the minimum of the view in whole multiples of the row alignment, but
 * never more than the frame has. */
uint32_t layout_least_band(const struct cox_sched_view *view);

/* Nanoseconds per row clipped to a range in which no computation overflows. NaN becomes the
 * smallest value. */
double layout_sane(double ns_per_row);

/* A time as the integer for predicted_ns; 0 if it is not a time. */
uint64_t layout_ns(double ns);

#endif
