/* Five-point stencil of floats, as fused steps.
 *
 *   out[row][x] = 0.5 in[row][x] + 0.125 (up + down + left + right)
 *
 * Beyond the frame's edges a point has its own value. One work-item per point. A step reads one row
 * above and below its band, so the rows of each step in a group differ from the buffer's.
 *
 * All devices agree bit for bit: only + and * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void stencil5(global const float *from, int from_first_row, global float *to,
                     int to_first_row, int columns, int rows, int first_row, int frame_rows)
{
    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;

    if (x >= columns || y >= rows)
        return;

    global const float *line = from + (long)(row - from_first_row) * columns;
    float here = line[x];
    float up = row > 0 ? line[x - columns] : here;
    float down = row < frame_rows - 1 ? line[x + columns] : here;
    float left = x > 0 ? line[x - 1] : here;
    float right = x < columns - 1 ? line[x + 1] : here;

    to[(long)(row - to_first_row) * columns + x] =
        0.5f * here + 0.125f * ((up + down) + (left + right));
}
