/* Separable convolution, in two stages: along the rows, then down the columns.
 *
 * Formula of the correlation. `across` has 2 r + 1 taps, `down` has 2 s + 1. Weight i of `across`
 * applies to the sample i - r to the right of the pixel.
 *     mid(x, y) = sum over i of across[i] * in(x + i - r, y)
 *     out(x, y) = sum over j of down[j] * mid(x, y + j - s)
 * Integer samples: all sums are exact.
 *     out = clamp((sum + 2^(shift-1)) >> shift, 0, largest sample)
 *
 * Geometry. Dimension 0 over elements (COX_ITEM, see plane.clh), dimension 1 over the rows.
 * The kernel `separable_columns` takes groups of COX_ITEM_ROWS rows and keeps their sums together.
 * So it reads each row only once. Any local size. Work-items past the last element or row store
 * nothing.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_SAMPLE, COX_CHANNELS, COX_EDGE, COX_ITEM (plane.clh),
 * COX_ACROSS, COX_DOWN (taps, odd), COX_ITEM_ROWS. Sizes, pitches and weights are parameters.
 * Access: `separable_rows`: `in` ROWS or HALO read, `mid` ROWS or private HALO written.
 * `separable_columns`: `mid` HALO(s) read, `out` ROWS write. Every buffer begins at the row its
 * `origin` says. `mid` holds floats for float samples, ints for integers. The sum of
 * |weights| is at most 2^11 for samples of 8 bits and 2^14 for 16. So an int holds the first sum.
 * For samples of 8 bits it also holds the second sum. Numerics: see detmath.clh and plane.clh.
 * Floats are added in the order of the taps, each product and sum rounded once. Each result
 * depends on its own pixels only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/plane.clh"

struct separable_params {
    int width, height; /* pixels */
    int in_pitch, mid_pitch, out_pitch;
    int shift;
    element across[63], down[63];
};

#if COX_SAMPLE == 0
typedef float mid_sample;
typedef real total;
#define LOAD_MID(row, e, n) flush_small(load_reals(row, e, n))
#define TOTAL(x) (x)
#define WEIGHT(w) REAL(w)
#else
typedef int mid_sample;
#define LOAD_MID(row, e, n) load_ints(row, e, n)
#if COX_SAMPLE == 2
typedef wide total;
#define TOTAL(x) TO_LONG(x)
#define WEIGHT(w) ((wide)(w))
#else
typedef sint total;
#define TOTAL(x) (x)
#define WEIGHT(w) SINT(w)
#endif
#endif

__kernel void separable_rows(__global const uchar *in, __global uchar *mid, int in_origin,
                             int mid_origin, struct separable_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct separable_params k = params;
    const int n = k.width * COX_CHANNELS;
    const bool inside = (int)get_global_id(1) < rows;
    const int y = first + min((int)get_global_id(1), rows - 1);
    __global const sample *src = ROW_OF(__global const sample, in, y, in_origin, k.in_pitch);
    __global mid_sample *dst = ROW_OF(__global mid_sample, mid, y, mid_origin, k.mid_pitch);
    EACH_ELEMENT(e, n) {
        value sum = VALUE(k.across[0]) * load_beside(src, e, -(COX_ACROSS / 2), k.width);
        for (int i = 1; i < COX_ACROSS; i++)
            sum = sum + VALUE(k.across[i]) * load_beside(src, e, i - COX_ACROSS / 2, k.width);
        if (inside)
            STORE_ROW(mid_sample, sum, dst, e, n);
    }
}

__kernel void separable_columns(__global const uchar *mid, __global uchar *out, int mid_origin,
                                int out_origin, struct separable_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct separable_params k = params;
    const int n = k.width * COX_CHANNELS;
    const int y0 = first + (int)get_global_id(1) * COX_ITEM_ROWS, end = first + rows;
    EACH_ELEMENT(e, n) {
        total sum[COX_ITEM_ROWS];
        for (int j = 0; j < COX_ITEM_ROWS; j++)
            sum[j] = TOTAL(VALUE(0));
        for (int s = 0; s < COX_ITEM_ROWS + COX_DOWN - 1; s++) {
            /* Rows past the band's last one are not stored, so they may read any values. */
            const int y = edge_index(min(y0 + s, end - 1 + COX_DOWN / 2 + COX_DOWN / 2) -
                                         COX_DOWN / 2,
                                     k.height);
            total here = TOTAL(VALUE(0));
            if (y >= 0)
                here = TOTAL(LOAD_MID(ROW_OF(__global const mid_sample, mid, y, mid_origin,
                                             k.mid_pitch),
                                      e, n));
            for (int j = 0; j < COX_ITEM_ROWS; j++) {
                const int tap = s - j;
                if (tap == 0)
                    sum[j] = WEIGHT(k.down[0]) * here;
                else if (tap > 0 && tap < COX_DOWN)
                    sum[j] = sum[j] + WEIGHT(k.down[tap]) * here;
            }
        }
        for (int j = 0; j < COX_ITEM_ROWS; j++) {
            if (y0 + j >= end)
                break;
            __global sample *dst = ROW_OF(__global sample, out, y0 + j, out_origin, k.out_pitch);
#if COX_SAMPLE == 0
            STORE_ROW(sample, sum[j], dst, e, n);
#else
            const total rounded = (sum[j] + (total)((1 << k.shift) >> 1)) >> (total)(k.shift);
            const total code = clamp(rounded, (total)(0), (total)(COX_SAMPLE_MAX));
            STORE_ROW(sample, TO_SAMPLE(code), dst, e, n);
#endif
        }
    }
}
