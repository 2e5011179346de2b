/* Pieces of a band in a slot's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/pieces.h"

#include <criterion/criterion.h>

/* Every piece lies in its cell, and every cell in the memory. */
static void expect_fit(const struct cox__cl_pieces *pieces, uint32_t rows, uint32_t wanted, uint32_t alignment)
{
    const uint32_t piece = cox__cl_piece_rows(pieces, rows, wanted, alignment);
    cr_assert(piece >= 1 && piece <= rows, "%u rows in pieces of %u", rows, piece);
    if (piece == rows)
        return;

    const uint32_t count = (rows + piece - 1) / piece, last = rows - (count - 1) * piece;
    cr_assert(count <= pieces->count && piece <= pieces->rows && piece % alignment == 0);
    cr_assert((count - 1) * pieces->rows + last <= pieces->most_rows, "%u of %u rows, %u pieces of %u in cells of %u",
              rows, pieces->most_rows, count, piece, pieces->rows);
}

Test(pieces, lie_within_the_memory_of_the_slot)
{
    static const uint32_t steps[] = {1, 2, 8, 16, 32, 48};
    for (uint32_t most = 1; most <= 300; most += 1 + most / 40)
        for (uint32_t least = 1; least <= most + 2; least += 1 + least / 8)
            for (uint32_t s = 0; s < 6; s++) {
                const struct cox__cl_pieces pieces = cox__cl_pieces_of(most, least, steps[s]);
                cr_assert(pieces.count >= 1 && pieces.count <= COX__CL_PIECES_MAX && pieces.rows <= most);
                cr_assert(pieces.count == 1 || pieces.rows % steps[s] == 0);
                const uint32_t alignment = steps[s] % 16 ? 1 : 16;
                for (uint32_t rows = 1; rows <= most; rows++)
                    for (uint32_t wanted = 0; wanted <= COX__CL_PIECES_MAX; wanted++)
                        expect_fit(&pieces, rows, wanted, alignment);
            }
}

/* A look ahead at 1080p: four pieces of 272 rows passed the end of cells of 352 rows. */
Test(pieces, are_equal_also_if_the_rows_do_not_fill_the_smallest_cells)
{
    const struct cox__cl_pieces pieces = cox__cl_pieces_of(1080, 337, 16);
    cr_expect_eq(pieces.count, 3);
    cr_expect_eq(pieces.rows, 368);
    cr_expect_eq(cox__cl_piece_rows(&pieces, 1080, 4, 16), 368);
    cr_expect_eq(cox__cl_piece_rows(&pieces, 1080, 1, 16), 1080);
    cr_expect_eq(cox__cl_piece_rows(&pieces, 700, 2, 16), 352);
}
