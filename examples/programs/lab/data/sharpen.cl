/* Unsharp masking of grey pictures: out = clamp(in + amount * (in - b) / 256), b the mean of the 5 x 5 pixels around,
 * weighted, rounded to nearest. At the frame's edge the nearest pixel is taken.
 *
 * Geometry: one work-item a pixel; dimension 0 the columns, dimension 1 the band's rows; both are guarded.
 * Access: `in` halo, 2 rows, its memory begins at buffer row `in_first_row`; `weights` whole, 25 of them, whose sum is
 * 256; `out` rows.
 * Numerics: integers only, so every device gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void sharpen(global const uchar *in, global const uchar *weights, global uchar *out, int in_first_row, int first_row,
                    int columns, int rows, int frame_rows, int in_pitch, int out_pitch, int amount)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= columns || y >= rows)
        return;
    int sum = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int row = clamp(first_row + y + dy, 0, frame_rows - 1) - in_first_row, column = clamp(x + dx, 0, columns - 1);
            sum += weights[5 * (dy + 2) + dx + 2] * in[row * in_pitch + column];
        }
    int own = in[(first_row + y - in_first_row) * in_pitch + x], mean = (sum + 128) >> 8;
    out[y * out_pitch + x] = convert_uchar_sat(own + amount * (own - mean) / 256);
}
