/* Seven-point stencil over a volume of floats.
 *
 *   to = near (left + right + up + down + before + behind) - centre from
 *
 * The outermost points keep their values. A row of the frame is a plane of width x height points.
 * One work-item per point. Reads one plane before and behind its own.
 *
 * All devices agree bit for bit: only + - * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void stencil(global const float *from, global float *to, int columns, int rows, int width,
                    int height, float near, float centre)
{
    int cell = get_global_id(0), z = get_global_id(1);

    if (cell >= columns || z >= rows)
        return;

    int x = cell % width, y = cell / width;
    global const float *at = from + z * columns + cell;
    float value = at[0];

    if (x > 0 && x < width - 1 && y > 0 && y < height - 1 && z > 0 && z < rows - 1)
        value = near * (at[-1] + at[1] + at[-width] + at[width] + at[-columns] + at[columns]) -
                centre * value;

    to[z * columns + cell] = value;
}
