/* The judge of the operator local: its base in scalar double precision, written from the formulas and not from the
 * kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_LOCAL_H
#define COX_TESTS_REF_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct ref_local {
    uint32_t width, height; /* in blocks */
    uint32_t side, pair;    /* pixels of a block; pixels along each axis that share a model */
    double *a, *b;
};

/* The mean stops of a block, which may reach over the frame's edge. */
typedef double ref_local_stops_fn(const void *user, uint32_t block_x, uint32_t block_y, uint32_t side);

/* The base of a frame of so many pixels. False without memory. */
bool ref_local_init(struct ref_local *local, uint32_t width, uint32_t height, uint32_t pair,
                    ref_local_stops_fn *stops_of, const void *user);
void ref_local_free(struct ref_local *local);

/* The stops of light. */
double ref_local_stops(double light);

/* The curve of the base, not limited. */
double ref_local_curve(double x, double peak);

/* The base in stops at a pixel of these stops, and what the pixel's colours, the largest of them m, are multiplied
 * by. */
double ref_local_base(const struct ref_local *local, uint32_t x, uint32_t y, double stops);
double ref_local_ratio(const struct ref_local *local, uint32_t x, uint32_t y, double m, double peak, double detail);

#endif
