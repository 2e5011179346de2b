/* Electric and magnetic fields in two dimensions, by finite differences in the time domain.
 *
 *   ey[y][x] -= 0.5 (hz[y][x] - hz[y - 1][x]);  ey[0][x] = source[t]
 *   ex[y][x] -= 0.5 (hz[y][x] - hz[y][x - 1])
 *   hz[y][x] -= 0.7 (ex[y][x + 1] - ex[y][x] + ey[y + 1][x] - ey[y][x])
 *
 * One work-item per point. With -D STEP=n, the kernels compute step t + n. fdtd_ey reads hz one row
 * above. fdtd_hz reads ey one row below. Each kernel writes its own field in place.
 *
 * All devices agree bit for bit: only + - * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void fdtd_ey(global const float *source, global const float *hz, global float *ey,
                    int columns, int rows, int t)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    if (y == 0)
        ey[at] = source[t + STEP];
    else
        ey[at] = ey[at] - 0.5f * (hz[at] - hz[at - columns]);
}

kernel void fdtd_ex(global const float *hz, global float *ex, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    if (x > 0)
        ex[at] = ex[at] - 0.5f * (hz[at] - hz[at - 1]);
}

kernel void fdtd_hz(global const float *ex, global const float *ey, global float *hz, int columns,
                    int rows)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    if (x < columns - 1 && y < rows - 1)
        hz[at] = hz[at] - 0.7f * (ex[at + 1] - ex[at] + ey[at + columns] - ey[at]);
}
