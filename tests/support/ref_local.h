/* Reference for the base of the operator `local`, in scalar double precision. It is written from the formulas, not
 * from the kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_LOCAL_H
#define COX_TESTS_REF_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct ref_local {
    uint32_t width, height; /* in blocks */
    uint32_t side, pair;    /* pixels of a block, and pixels along each axis that share a model */
    double *a, *b;
};

/* The mean stops of a block, which may extend beyond the frame. */
typedef double ref_local_stops_fn(const void *user, uint32_t block_x, uint32_t block_y, uint32_t side);

/* Compute the base of a frame of `width` x `height` pixels. Returns false if memory runs out. */
bool ref_local_init(struct ref_local *local, uint32_t width, uint32_t height, uint32_t pair,
                    ref_local_stops_fn *stops_of, const void *user);
void ref_local_free(struct ref_local *local);

/* Light in stops. */
double ref_local_stops(double light);

/* The curve of the base, without limits. */
double ref_local_curve(double x, double peak);

/* The base in stops at a pixel of `stops`, and the factor for the pixel's colours, the largest of which is m. */
double ref_local_base(const struct ref_local *local, uint32_t x, uint32_t y, double stops);
double ref_local_ratio(const struct ref_local *local, uint32_t x, uint32_t y, double m, double peak, double detail);

#endif
