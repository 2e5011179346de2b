/* A binomial blur of grey pictures in two passes:
 *   across = in * (1 4 6 4 1) along the rows, 12 bits
 *   down   = across * (1 4 6 4 1)^T / 256, rounded to nearest
 * At the frame's edge, the kernels repeat the nearest pixel.
 *
 * Geometry: one work-item computes one pixel. Dimension 0 is the columns, dimension 1 the band's rows. Both are
 * guarded.
 * Access:
 *   `across` reads `in` and writes `middle`, both by rows.
 *   `down` reads `middle` with a halo of 2 rows and writes `out` by rows. The memory of `middle` begins at buffer row
 *   `middle_first_row`.
 * Other devices may have written the rows that `down` reads, so `down` is a separate pass. Both kernels use the band's
 * first row and the row at which memory begins, so they can also be fused.
 * Numerics: integers only, so every device gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
int binomial(int a, int b, int c, int d, int e)
{
    return a + e + 4 * (b + d) + 6 * c;
}

kernel void across(global const uchar *in, int in_first_row, global ushort *middle, int middle_first_row, int first_row,
                   int columns, int rows, int in_pitch, int middle_pitch)
{
    int x = get_global_id(0), y = get_global_id(1), last = columns - 1;
    if (x >= columns || y >= rows)
        return;
    global const uchar *row = in + (first_row + y - in_first_row) * in_pitch;
    middle[(first_row + y - middle_first_row) * middle_pitch + x] =
        binomial(row[max(x - 2, 0)], row[max(x - 1, 0)], row[x], row[min(x + 1, last)], row[min(x + 2, last)]);
}

kernel void down(global const ushort *middle, int middle_first_row, global uchar *out, int first_row, int columns,
                 int rows, int frame_rows, int middle_pitch, int out_pitch)
{
    int x = get_global_id(0), y = get_global_id(1), r = first_row + y, last = frame_rows - 1;
    if (x >= columns || y >= rows)
        return;
    global const ushort *column = middle - middle_first_row * middle_pitch + x;
    out[y * out_pitch + x] =
        (binomial(column[max(r - 2, 0) * middle_pitch], column[max(r - 1, 0) * middle_pitch], column[r * middle_pitch],
                  column[min(r + 1, last) * middle_pitch], column[min(r + 2, last) * middle_pitch]) + 128) >> 8;
}
