/* Reference for look-up tables: tetrahedral interpolation in double precision, and tables to test with.
 * Thread-safety: none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_LUT_H
#define COX_TESTS_REF_LUT_H

#include <coxswain/video.h>

/* The table of films with that number of points: a curve with noise. Some of its colours are outside 0 .. 1. If the
 * number is even, its domain is not 0 .. 1. It stays until the program ends. */
const struct cox_video_lut *ref_lut_of(uint32_t points);

/* The colour at a signal, 0 .. 1. */
void ref_lut_at(const struct cox_video_lut *lut, const double signal[3], double color[3]);

#endif
