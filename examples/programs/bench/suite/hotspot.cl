/* Temperature of a chip, one step.
 *
 *   to = t + scale (power + (down + up - 2 t) per_y + (right + left - 2 t) per_x +
 *                   (ambient - t) per_z)
 *
 * Beyond the chip's edges a point has its own value. One work-item per point. Reads one row above
 * and below its own.
 *
 * All devices agree bit for bit: only + - * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void hotspot(global const float *power, global const float *from, global float *to,
                    int columns, int rows, float scale, float per_x, float per_y, float per_z,
                    float ambient)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    float t = from[at];
    float up = y > 0 ? from[at - columns] : t;
    float down = y < rows - 1 ? from[at + columns] : t;
    float left = x > 0 ? from[at - 1] : t;
    float right = x < columns - 1 ? from[at + 1] : t;

    to[at] = t + scale * (power[at] + (down + up - 2.0f * t) * per_y +
                          (right + left - 2.0f * t) * per_x + (ambient - t) * per_z);
}
