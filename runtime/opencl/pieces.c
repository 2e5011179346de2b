/* SPDX-License-Identifier: Apache-2.0 */
#include "pieces.h"

#include "base/bounds.h"

static uint64_t divide_up(uint64_t rows, uint64_t by)
{
    return (rows + by - 1) / by;
}

struct cox__cl_pieces cox__cl_pieces_of(uint32_t most_rows, uint64_t least_rows, uint64_t step)
{
    const uint64_t fewest = cox__max_u64(divide_up(most_rows, COX__CL_PIECES_MAX), least_rows);
    const uint64_t count = cox__max_u64(most_rows / fewest, 1);
    const uint64_t cell = divide_up(divide_up(most_rows, count), step) * step;
    const uint64_t rows = cox__min_u64(cell, most_rows);

    return (struct cox__cl_pieces){.most_rows = most_rows,
                                   .rows = (uint32_t)rows,
                                   .count = (uint32_t)divide_up(most_rows, rows),
                                   .least_rows = (uint32_t)cox__min_u64(least_rows, most_rows)};
}

uint32_t cox__cl_piece_rows(const struct cox__cl_pieces *pieces, uint32_t rows, uint32_t wanted,
                            uint32_t alignment)
{
    if (wanted <= 1 || pieces->count == 1)
        return rows;

    uint64_t count = cox__min_u64(wanted, rows / pieces->least_rows);
    count = cox__max_u64(count, divide_up(rows, pieces->rows));
    count = cox__min_u64(count, pieces->count);

    const uint64_t equal = divide_up(divide_up(rows, count), alignment) * alignment;
    const uint64_t piece = cox__min_u64(cox__min_u64(equal, pieces->rows), rows);

    /* The last cell may be too small for its piece, unless all pieces are as large as their
     * cells. */
    const uint64_t before = divide_up(rows, piece) - 1;
    if (before * pieces->rows + (rows - before * piece) > pieces->most_rows)
        return (uint32_t)cox__min_u64(pieces->rows, rows);
    return (uint32_t)piece;
}
