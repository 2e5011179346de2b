/* Colour spaces by their primaries: the matrix from a file's RGB to BT.709 RGB.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PRIMARIES_H
#define PRIMARIES_H

#include <stdbool.h>

/* CIE 1931 x, y of red, green, blue and white. */
struct primaries {
    double red[2], green[2], blue[2], white[2];
};

enum primaries_match {
    PRIMARIES_SAME = 0,    /* BT.709 within the rounding of a header: nothing to do */
    PRIMARIES_CONVERT = 1, /* the matrix was filled */
    PRIMARIES_BROKEN = -1, /* no colour space has such primaries */
};

/* The matrix from linear RGB of `from` to linear BT.709 RGB, row by row. White stays white:
 * Bradford's adaptation (ICC.1:2010, annex E) if the white points differ. */
enum primaries_match primaries_to_bt709(const struct primaries *from, float matrix[9]);

/* The matrix from one RGB to another, by their matrices to BT.709. False: the second has no inverse. */
bool primaries_between(const float from[9], const float to[9], float matrix[9]);

/* The weights of R, G and B in the luminance. False for impossible primaries. */
bool primaries_luminance(const struct primaries *of, double weights[3]);

#endif
