/* What is read of ICC profiles: the `cicp` tag, and RGB profiles of a matrix and one curve.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ICC_H
#define ICC_H

#include "photo.h"

/* The profile's numbers of H.273 (ICC.1:2022, 9.2.17). False if it has none. */
bool icc_cicp(const uint8_t *data, size_t bytes, struct cicp *cicp);

struct icc_rgb {
    float curve[256]; /* 8-bit codes to light */
    float matrix[9];  /* light to BT.709 */
};

/* False if the profile is of another kind. */
bool icc_rgb(const uint8_t *data, size_t bytes, struct icc_rgb *rgb);

/* sRGB itself. */
void icc_srgb(struct icc_rgb *rgb);

#endif
