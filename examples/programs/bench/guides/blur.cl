/* A Gaussian blur of radius 4 (sigma 4/3), three ways. Pixels outside are copies of the edge. The
 * recursive form is that of I. T. Young and L. J. van Vliet, "Recursive implementation of the
 * Gaussian filter", Signal Processing 44 (1995).
 *
 * Geometry: no guard. blur_*: two dimensions, one pixel per work-item. recursive_rows: one
 * dimension, one row per work-item. recursive_columns: one column per work-item.
 * Access: `weights` holds 9 weights of one dimension, then 81 of two. `ratio` is {B, b1/b0, b2/b0,
 * b3/b0}. A recursive pass writes `there` on its way to the end; on its way back it reads `there`
 * and writes `out`.
 * Numerics: sums in the order of the taps. The host computes in double precision.
 * SPDX-License-Identifier: Apache-2.0 */
enum { RADIUS = 4, TAPS = 2 * RADIUS + 1 };

kernel void blur_2d(global const float *restrict in, global float *restrict out,
                    constant float *weights, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
#pragma unroll
    for (int j = -RADIUS; j <= RADIUS; j++) {
        global const float *row = in + (size_t)clamp(y + j, 0, height - 1) * width;
#pragma unroll
        for (int i = -RADIUS; i <= RADIUS; i++)
            sum += weights[TAPS + (j + RADIUS) * TAPS + i + RADIUS] *
                   row[clamp(x + i, 0, width - 1)];
    }
    out[(size_t)y * width + x] = sum;
}

kernel void blur_rows(global const float *restrict in, global float *restrict out,
                      constant float *weights, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    global const float *row = in + (size_t)y * width;
    float sum = 0;
#pragma unroll
    for (int i = -RADIUS; i <= RADIUS; i++)
        sum += weights[i + RADIUS] * row[clamp(x + i, 0, width - 1)];
    out[(size_t)y * width + x] = sum;
}

kernel void blur_columns(global const float *restrict in, global float *restrict out,
                         constant float *weights, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
#pragma unroll
    for (int j = -RADIUS; j <= RADIUS; j++)
        sum += weights[j + RADIUS] * in[(size_t)clamp(y + j, 0, height - 1) * width + x];
    out[(size_t)y * width + x] = sum;
}

void recursive_line(global const float *in, global float *there, global float *out,
                    constant float *ratio, size_t first, size_t step, int count)
{
    const float b = ratio[0], b1 = ratio[1], b2 = ratio[2], b3 = ratio[3];
    float v1 = in[first], v2 = v1, v3 = v1;
    size_t at = first;
    for (int n = 0; n < count; n++, at += step) {
        const float v = b * in[at] + (b1 * v1 + b2 * v2 + b3 * v3);
        there[at] = v;
        v3 = v2;
        v2 = v1;
        v1 = v;
    }
    v2 = v3 = v1;
    for (int n = 0; n < count; n++) {
        at -= step;
        const float v = b * there[at] + (b1 * v1 + b2 * v2 + b3 * v3);
        out[at] = v;
        v3 = v2;
        v2 = v1;
        v1 = v;
    }
}

kernel void recursive_rows(global const float *in, global float *there, global float *out,
                           constant float *ratio, int width, int height)
{
    recursive_line(in, there, out, ratio, get_global_id(0) * width, 1, width);
}

kernel void recursive_columns(global const float *in, global float *there, global float *out,
                              constant float *ratio, int width, int height)
{
    recursive_line(in, there, out, ratio, get_global_id(0), width, height);
}
