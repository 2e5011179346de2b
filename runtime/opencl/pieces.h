/* How a band in a slot's memory is cut into pieces.
 *
 * The memory has cells of equal size, and a last cell with the rest. Piece n of a band begins with
 * cell n, so that its sub-buffer can be made in advance. A piece may be smaller than its cell.
 *
 * Pure: no allocation, no OpenCL, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_PIECES_H
#define COX_OPENCL_PIECES_H

#include <stdint.h>

enum { COX__CL_PIECES_MAX = 4 };

struct cox__cl_pieces {
    uint32_t most_rows;  /* of a band */
    uint32_t rows;       /* of a cell */
    uint32_t count;      /* of cells; 1 = the memory is not divided */
    uint32_t least_rows; /* a smaller piece costs more than it saves */
};

/* Divide memory of `most_rows` rows into cells of about equal size. Cells begin at multiples of
 * `step` rows. All arguments are at least 1. */
struct cox__cl_pieces cox__cl_pieces_of(uint32_t most_rows, uint64_t least_rows, uint64_t step);

/* The rows of each piece but the last, for a band of `rows` rows: equal pieces, `wanted` of them
 * unless they would be too small or too large. Pieces are multiples of `alignment` rows, of which
 * the cells' step is a multiple. */
uint32_t cox__cl_piece_rows(const struct cox__cl_pieces *pieces, uint32_t rows, uint32_t wanted,
                            uint32_t alignment);

#endif
