/* Convolution in two dimensions.
 *
 * Formula of the correlation. The weights w of (2 r + 1) x (2 s + 1) taps are stored row by row
 * from the top left.
 *     out(x, y) = sum over j, i of w[j][i] * in(x + i - r, y + j - s)
 * Integer samples: the sum is exact.
 *     out = clamp((sum + 2^(shift-1)) >> shift, 0, largest sample)
 *
 * Geometry: dimension 0 over elements (COX_ITEM, see plane.clh), dimension 1 over the band's rows;
 * any local size. Work-items past the last element or row store nothing.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_SAMPLE, COX_CHANNELS, COX_EDGE, COX_ITEM (plane.clh),
 * COX_ACROSS, COX_DOWN (taps, odd, at most 15). Sizes, pitches and weights are parameters. Access:
 * `in` HALO(s) read, `out` ROWS write. Every buffer begins at the row its `origin` says.
 * |weights| add up to at most 2^22 for samples of 8 bits, 2^14 for 16, so that an int holds the
 * sum. Numerics: see detmath.clh and plane.clh. Floats are added in the order of the taps, each
 * product and sum rounded once; each result depends on its own pixels only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/plane.clh"

struct convolve_params {
    int width, height; /* pixels */
    int in_pitch, out_pitch;
    int shift;
    element weights[225];
};

__kernel void convolve(__global const uchar *in, __global uchar *out, int in_origin, int out_origin,
                       struct convolve_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct convolve_params k = params;
    const int n = k.width * COX_CHANNELS;
    const bool inside = (int)get_global_id(1) < rows;
    const int y = first + min((int)get_global_id(1), rows - 1);
    __global sample *dst = ROW_OF(__global sample, out, y, out_origin, k.out_pitch);
    EACH_ELEMENT(e, n) {
        value sum = VALUE(0);
        for (int j = 0; j < COX_DOWN; j++) {
            const int from = edge_index(y + j - COX_DOWN / 2, k.height);
            __global const sample *src = ROW_OF(__global const sample, in, from < 0 ? y : from,
                                                in_origin, k.in_pitch);
            for (int i = 0; i < COX_ACROSS; i++) {
                const value beside = from < 0 ? VALUE(0)
                                              : load_beside(src, e, i - COX_ACROSS / 2, k.width);
                const value product = VALUE(k.weights[j * COX_ACROSS + i]) * beside;
                sum = i + j == 0 ? product : sum + product;
            }
        }
#if COX_SAMPLE != 0
        sum = clamp((sum + SINT((1 << k.shift) >> 1)) >> SINT(k.shift), SINT(0),
                    SINT(COX_SAMPLE_MAX));
        if (inside)
            STORE_ROW(sample, TO_SAMPLE(sum), dst, e, n);
#else
        if (inside)
            STORE_ROW(sample, sum, dst, e, n);
#endif
    }
}
