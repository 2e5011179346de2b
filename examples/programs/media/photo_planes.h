/* Planes of a decoded photograph to R'G'B', row by row. Chroma is interpolated linearly.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PHOTO_PLANES_H
#define PHOTO_PLANES_H

#include "photo.h"

struct photo_planes {
    uint32_t width, height;
    unsigned bits;
    const uint8_t *plane[4]; /* Y, Cb, Cr, alpha; G, B, R with the matrix 0. NULL = none */
    size_t pitch_bytes[4];
    bool wide[4];                   /* samples of two bytes */
    bool half_width, half_height;   /* of the chroma */
    bool on_column, on_row;         /* chroma lies on a luma sample, not between two */
    bool alpha_limited, multiplied; /* alpha's range; colours are multiplied by alpha */
    struct cicp cicp;
    float weights[2]; /* of R and B in the luma; set by photo_planes_ready */
};

/* Choose the matrix. False if it is not supported. */
bool photo_planes_ready(struct photo_planes *planes, struct error *error);

/* Write the part from `left`, `top` on; it must be as large as the input's photo_size said. */
bool photo_planes_put(const struct picture_input *input, const struct photo_planes *planes,
                      uint32_t left, uint32_t top, uint32_t width, uint32_t height, uint8_t *pixels,
                      size_t pitch_bytes, struct error *error);

#endif
