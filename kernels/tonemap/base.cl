/* The base of the operator local: a guided filter of stops (log2 of light), self-guided, on blocks
 * of pixels.
 *
 * He, Sun and Tang, Guided Image Filtering (TPAMI 35, 2013), at a lower resolution as in He and
 * Sun, Fast Guided Filter (arXiv 1505.00996, 2015), with changes. Windows are tents instead of
 * boxes, so that no corners show. And a is v^2 / (v^2 + epsilon^2) instead of v / (v + epsilon), v
 * the variance. At an edge, where v is many times epsilon, (1 - a) of its height stays in the
 * detail. This part now falls off with the square, so that there is no halo. Windows over which a
 * and b are averaged are half as wide, so that no pixel is averaged over windows in which it is a
 * rare exception.
 *
 * Formula. I are the stops of the blocks. Edges are repeated.
 *     m = mean(I), v = mean(I^2) - m^2
 *     a = v^2 / (v^2 + epsilon^2), b = (1 - a) m
 * The means are over a tent of radius 16. Its weights are 16 - |distance| along both axes. Then a
 * and b are averaged over a tent of radius 8, and interpolated linearly along the rows.
 *
 * Stages: base_rows (sums along rows), base_fit (down the columns; a and b), base_rows_ab,
 * base_columns, base_widen (along the rows, to a column for each pixel or pair of pixels).
 * Geometry: dimension 0 over vectors of columns (COX_ITEM, see plane.clh; base_widen: over spaces
 * between columns), dimension 1 over rows of blocks. Any local size. Work-items past the end do
 * nothing; if all parameters are zero, no work-item does anything.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_SAMPLE 0, COX_CHANNELS 1, COX_EDGE 0, COX_ITEM
 * (plane.clh). Access: every buffer is ROWS, and HALO where it is read down the columns, and begins
 * at the row its `origin` says. A row holds its quantities one after the other, `stride` floats
 * apart:
 *   `moments`  I, the sums of I, the sums of I^2
 *   `ab`       a, b, the sums of a, the sums of b
 *   `base`     the means of a and b, then the interpolated means, `wide_stride` apart
 * The rows of the pass that writes `moments` are rows of pixels. A block has 2^block_log2 of them.
 *
 * Numerics: see detmath.clh. Sums are taken in one order, from the
 * first weight to the last, separately for each block, so neither the cut nor COX_WIDTH matters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/plane.clh"
#include "tonemap/local.clh"

#define FIT_RADIUS 16
#define MEAN_RADIUS 8

#define QUANTITY(row, index, stride) ((row) + (size_t)(index) * (stride))
#define BASE_ROW(type, buffer, y, name) ROW_OF(type, buffer, y, name##_origin, k.name##_pitch)

static inline real weight(int distance, int radius)
{
    return REAL((float)(radius - max(distance, -distance)));
}

__kernel void base_rows(__global uchar *moments, int moments_origin, struct local_params params,
                        int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct local_params k = params;
    const int y = (first >> k.block_log2) + (int)get_global_id(1);
    if (y << k.block_log2 >= first + rows || k.width <= 0)
        return;
    __global float *row = BASE_ROW(__global float, moments, y, moments);
    EACH_ELEMENT(e, k.width) {
        real sum = REAL(0.0f), squares = REAL(0.0f);
        for (int i = 1 - FIT_RADIUS; i < FIT_RADIUS; i++) {
            const real stops = load_beside(row, e, i, k.width);
            const real weighted = stops * weight(i, FIT_RADIUS);
            sum = sum + weighted;
            squares = MULADD(stops, weighted, squares);
        }
        STORE_ROW(float, sum, QUANTITY(row, 1, k.stride), e, k.width);
        STORE_ROW(float, squares, QUANTITY(row, 2, k.stride), e, k.width);
    }
}

__kernel void base_fit(__global const uchar *moments, __global uchar *ab, int moments_origin,
                       int ab_origin, struct local_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct local_params k = params;
    const int y = first + (int)get_global_id(1);
    if (y >= first + rows || k.width <= 0)
        return;
    __global float *dst = BASE_ROW(__global float, ab, y, ab);
    EACH_ELEMENT(e, k.width) {
        real sum = REAL(0.0f), squares = REAL(0.0f);
        for (int i = 1 - FIT_RADIUS; i < FIT_RADIUS; i++) {
            __global const float *row = BASE_ROW(__global const float, moments,
                                                 clamp(y + i, 0, k.height - 1), moments);
            sum = MULADD(load_reals(QUANTITY(row, 1, k.stride), e, k.width), weight(i, FIT_RADIUS),
                         sum);
            squares = MULADD(load_reals(QUANTITY(row, 2, k.stride), e, k.width),
                             weight(i, FIT_RADIUS), squares);
        }
        const real mean = sum * REAL(0x1p-16f); /* the weights add up to 16^4 */
        real v = MULADD(squares, REAL(0x1p-16f), -(mean * mean));
        /* rounding, whose square could be a denormal number */
        v = PICK(v < REAL(0x1p-20f), REAL(0.0f), v);
        const real inverse = det_rcp(MULADD(v, v, REAL(k.epsilon2)));
        STORE_ROW(float, v * v * inverse, dst, e, k.width);
        STORE_ROW(float, mean * (REAL(k.epsilon2) * inverse), QUANTITY(dst, 1, k.stride), e,
                  k.width);
    }
}

__kernel void base_rows_ab(__global uchar *ab, int ab_origin, struct local_params params, int first,
                           int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct local_params k = params;
    const int y = first + (int)get_global_id(1);
    if (y >= first + rows || k.width <= 0)
        return;
    __global float *row = BASE_ROW(__global float, ab, y, ab);
    for (int quantity = 0; quantity < 2; quantity++) {
        __global const float *src = QUANTITY(row, quantity, k.stride);
        EACH_ELEMENT(e, k.width) {
            real sum = REAL(0.0f);
            for (int i = 1 - MEAN_RADIUS; i < MEAN_RADIUS; i++)
                sum = MULADD(load_beside(src, e, i, k.width), weight(i, MEAN_RADIUS), sum);
            STORE_ROW(float, sum, QUANTITY(row, 2 + quantity, k.stride), e, k.width);
        }
    }
}

__kernel void base_columns(__global const uchar *ab, __global uchar *base, int ab_origin,
                           int base_origin, struct local_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct local_params k = params;
    const int y = first + (int)get_global_id(1);
    if (y >= first + rows || k.width <= 0)
        return;
    __global float *dst = BASE_ROW(__global float, base, y, base);
    for (int quantity = 0; quantity < 2; quantity++) {
        EACH_ELEMENT(e, k.width) {
            real sum = REAL(0.0f);
            for (int i = 1 - MEAN_RADIUS; i < MEAN_RADIUS; i++) {
                __global const float *row = BASE_ROW(__global const float, ab,
                                                     clamp(y + i, 0, k.height - 1), ab);
                sum = MULADD(load_reals(QUANTITY(row, 2 + quantity, k.stride), e, k.width),
                             weight(i, MEAN_RADIUS), sum);
            }
            /* 8^4 */
            STORE_ROW(float, sum * REAL(0x1p-12f), QUANTITY(dst, quantity, k.stride), e, k.width);
        }
    }
}

/* Fill the columns of the wide plane between block columns i and i + 1, or beyond the first or the
 * last one. */
static inline void widen(__global const float *src, __global float *dst, int i,
                         const struct local_params *k)
{
    /* columns of the wide plane in a block */
    const int each = 1 << (k->block_log2 - k->column_log2);
    const int begin = i * each + (each >> 1),
              end = i + 1 < k->width ? begin + each : k->wide_stride;
    const float left = src[max(i, 0)], step = src[min(i + 1, k->width - 1)] - left;
    const float unit = as_float((127 - (k->block_log2 - k->column_log2)) << 23);
    /* the first column's distance from the block's centre */
    const float half_unit = each > 1 ? 0.5f * unit : 0.0f;
    for (int x = max(begin, 0); x < end; x++)
        dst[x] = MULADD(step, MULADD(convert_float(x - begin), unit, half_unit), left);
}

__kernel void base_widen(__global uchar *base, int base_origin, struct local_params params,
                         int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct local_params k = params;
    const int y = first + (int)get_global_id(1);
    if (y >= first + rows || k.width <= 0)
        return;
    __global float *row = BASE_ROW(__global float, base, y, base);
    __global float *wide = QUANTITY(row, 2, k.stride);
#if COX_ITEM == 0
    const int begin = -1, end = k.width;
#else
    const int begin = (int)get_global_id(0) - 1, end = min(begin + 1, k.width);
#endif
    for (int i = begin; i < end; i++) {
        widen(row, wide, i, &k);
        widen(QUANTITY(row, 1, k.stride), QUANTITY(wide, 1, k.wide_stride), i, &k);
    }
}
