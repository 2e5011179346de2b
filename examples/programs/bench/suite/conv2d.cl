/* Convolution of an image of floats with 3 x 3 coefficients. The outermost points become 0.
 *
 * One work-item per point. Reads one row above and below its own.
 *
 * All devices agree bit for bit: only + and * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void conv2d(global const float *in, global float *out, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);

    if (x >= columns || y >= rows)
        return;

    float sum = 0.0f;
    if (x > 0 && x < columns - 1 && y > 0 && y < rows - 1) {
        global const float *up = in + (y - 1) * columns + x;
        global const float *here = up + columns, *down = here + columns;

        sum = 0.2f * up[-1] - 0.3f * up[0] + 0.4f * up[1] + 0.5f * here[-1] + 0.6f * here[0] +
              0.7f * here[1] - 0.8f * down[-1] - 0.9f * down[0] + 0.1f * down[1];
    }

    out[y * columns + x] = sum;
}
