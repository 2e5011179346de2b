/* Speckle-reducing anisotropic diffusion of an image, one iteration in three kernels.
 *
 * The kernels:
 *
 *   srad_sums      sums[row] = (sum of the row, sum of the squares)
 *   srad_factors   the four differences of each point, and its diffusion coefficient in 0 .. 1
 *   srad_update    image += rate * (sum of coefficient x difference)
 *
 * srad_sums has a group of 32 work-items per row. The other kernels have one work-item per point.
 * srad_factors reads the image one row above and below. srad_update reads the factors one row below,
 * and changes the image in place.
 *
 * All devices agree bit for bit: only + - * in a fixed order, without contraction. `inverse` starts
 * with an estimate from the bits of a positive x. Four steps of Newton's method improve it.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF
#define GROUP 32

float inverse(float x)
{
    float y = as_float(0x7ef311c3 - as_int(x));

    for (int i = 0; i < 4; i++)
        y = y * (2.0f - x * y);

    return y;
}

kernel void srad_sums(global const float *image, global float2 *sums, int rows, int width)
{
    local float2 parts[GROUP];
    int item = get_local_id(0), y = get_global_id(1);
    float2 part = (float2)(0.0f);

    for (int x = item; x < width && y < rows; x += GROUP) {
        float value = image[y * width + x];
        part += (float2)(value, value * value);
    }
    parts[item] = part;

    for (int width_of_sum = GROUP / 2; width_of_sum > 0; width_of_sum /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < width_of_sum)
            parts[item] += parts[item + width_of_sum];
    }

    if (item == 0 && y < rows)
        sums[y] = parts[0];
}

kernel void srad_factors(global const float *image, global float4 *differences,
                         global float *factors, int columns, int rows, float noise)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    float value = image[at];
    float up = (y > 0 ? image[at - columns] : value) - value;
    float down = (y < rows - 1 ? image[at + columns] : value) - value;
    float left = (x > 0 ? image[at - 1] : value) - value;
    float right = (x < columns - 1 ? image[at + 1] : value) - value;

    float per_value = inverse(value);
    float gradient = (up * up + down * down + left * left + right * right) * per_value * per_value;
    float laplacian = (up + down + left + right) * per_value;
    float weight = inverse(1.0f + 0.25f * laplacian);
    float speckle = (0.5f * gradient - 0.0625f * laplacian * laplacian) * weight * weight;
    float excess = (speckle - noise) * inverse(noise * (1.0f + noise));

    differences[at] = (float4)(up, down, left, right);
    factors[at] = clamp(inverse(1.0f + excess), 0.0f, 1.0f);
}

kernel void srad_update(global const float4 *differences, global const float *factors,
                        global float *image, int columns, int rows, float rate)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * columns + x;

    if (x >= columns || y >= rows)
        return;

    float here = factors[at];
    float below = y < rows - 1 ? factors[at + columns] : here;
    float beside = x < columns - 1 ? factors[at + 1] : here;
    float4 by = differences[at];

    image[at] = image[at] + rate * (here * by.x + below * by.y + here * by.z + beside * by.w);
}
