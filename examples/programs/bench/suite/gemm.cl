/* Product of matrices of floats.
 *
 *   c[i][j] = beta c[i][j] + sum over k of alpha a[i][k] b[k][j]
 *
 * One work-item per element of c. Reads row i of a, all of b, and its element of c.
 *
 * All devices agree bit for bit: only + and * in a fixed order, without contraction.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void gemm(global const float *a, global const float *b, global float *c, int columns,
                 int rows, int inner, float alpha, float beta)
{
    int j = get_global_id(0), i = get_global_id(1);

    if (j >= columns || i >= rows)
        return;

    float sum = beta * c[i * columns + j];
    for (int k = 0; k < inner; k++)
        sum += alpha * a[i * inner + k] * b[k * columns + j];

    c[i * columns + j] = sum;
}
