/* Look-up tables of three dimensions in .cube files, as Adobe's "Cube LUT Specification 1.0" (2013)
 * describes them, with Resolve's LUT_3D_INPUT_RANGE. Tables of one dimension and shapers are
 * refused.
 * Thread-safety: pure, but for the files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CUBE_H
#define CUBE_H

#include "common/error.h"

#include <stdint.h>
#include <stdio.h>

struct cube {
    char title[100];         /* cut to this size; empty if the file has no title */
    uint32_t points;         /* along each side, 2 .. COX_LUT_POINTS_MAX */
    float least[3], most[3]; /* the domain; least < most */
    float *colors;           /* R, G and B of each point, of which red changes fastest */
};

/* The number of points in all. */
size_t cube_points(const struct cube *cube);

/* Read a table. It may hold any finite numbers below 2^16. On an error `cube` is empty, and `error`
 * names the line. */
bool cube_read(struct cube *cube, const char *path, struct error *error);
bool cube_read_stream(struct cube *cube, FILE *file, struct error *error);

/* Write a table with a title, and with comments: lines that begin with '#'. The stream's own error
 * flag tells whether that failed. */
void cube_write(FILE *file, const struct cube *cube, const char *title, const char *comments);

/* Free the colours; accepts an empty table. */
void cube_free(struct cube *cube);

#endif
