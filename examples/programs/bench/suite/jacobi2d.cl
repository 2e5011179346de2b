/* One sweep of Jacobi's method: the mean of a point and its four neighbours. The outermost points
 * keep their values.
 *
 * One work-item per point. Reads one row above and below its own.
 *
 * All devices agree bit for bit: only + and * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void jacobi2d(global const float *from, global float *to, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);

    if (x >= columns || y >= rows)
        return;

    global const float *at = from + y * columns + x;
    float value = at[0];
    if (x > 0 && x < columns - 1 && y > 0 && y < rows - 1)
        value = 0.2f * (at[0] + at[-1] + at[1] + at[columns] + at[-columns]);

    to[y * columns + x] = value;
}
