/* Box filter: the mean of a window, in two stages of running sums.
 *
 * Formula, over the part of the window that lies in the frame. This part has `count` pixels.
 *     out(x, y) = floor((sum of in + floor(count / 2)) / count)
 *
 * Geometry. `box_rows`: dimension 0 over runs (COX_RUN, see window.clh), dimension 1 over the rows.
 * `box_columns`: dimension 0 over elements (COX_ITEM, see plane.clh), dimension 1 over groups of
 * COX_ITEM_ROWS rows. Any local size; work-items past the end store nothing.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_SAMPLE 1 or 2, COX_CHANNELS, COX_ITEM (plane.clh),
 * COX_RUN, COX_ITEM_ROWS. Sizes, pitches and radii are parameters. Access: `box_rows`: `in` ROWS or
 * HALO read, `mid` ROWS or private HALO written. `box_columns`: `mid` HALO(radius_y) read, `out`
 * ROWS write. Every buffer begins at the row its `origin` says. Numerics: integers only. Radii of
 * 127 at most, so that 32 bits hold 255 x 255 samples.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/window.clh"

struct box_params {
    int width, height; /* pixels */
    int in_pitch, mid_pitch, out_pitch;
    int radius_x, radius_y;
};

__kernel void box_rows(__global const uchar *in, __global uchar *mid, int in_origin, int mid_origin,
                       struct box_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct box_params k = params;
    const int y = first + (int)get_global_id(1), width = k.width, radius = k.radius_x;
    __global const sample *src = ROW_OF(__global const sample, in, y, in_origin, k.in_pitch);
    __global int *dst = ROW_OF(__global int, mid, y, mid_origin, k.mid_pitch);
    if (y >= first + rows)
        return;
    EACH_RUN(c, begin, end, width) {
        int sum = 0;
        for (int x = max(begin - radius, 0); x < min(begin + radius, width); x++)
            sum += src[x * COX_CHANNELS + c];
        for (int x = begin; x < end; x++) {
            if (x + radius < width)
                sum += src[(x + radius) * COX_CHANNELS + c];
            dst[x * COX_CHANNELS + c] = sum;
            if (x >= radius)
                sum -= src[(x - radius) * COX_CHANNELS + c];
        }
    }
}

__kernel void box_columns(__global const uchar *mid, __global uchar *out, int mid_origin,
                          int out_origin, struct box_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct box_params k = params;
    const int n = k.width * COX_CHANNELS, radius = k.radius_y, height = k.height;
    const int begin = first + (int)get_global_id(1) * COX_ITEM_ROWS;
    const int end = min(begin + COX_ITEM_ROWS, first + rows);
    if (begin >= end)
        return;
#define MID(y) AS_UNS(load_ints(ROW_OF(__global const int, mid, y, mid_origin, k.mid_pitch), e, n))
    EACH_ELEMENT(e, n) {
        uint lanes[COX_WIDTH];
        for (int i = 0; i < COX_WIDTH; i++)
            lanes[i] = (uint)max(window_size((e + i) / COX_CHANNELS, k.radius_x, k.width), 1);
        const uns across = FROM_ARRAY(uns, lanes);
        uns sum = (uns)(0);
        for (int y = max(begin - radius, 0); y < min(begin + radius, height); y++)
            sum += MID(y);
        for (int y = begin; y < end; y++) {
            if (y + radius < height)
                sum += MID(y + radius);
            const uns count = across * (uns)((uint)window_size(y, radius, height));
            const uns mean = (sum + (count >> (uns)(1))) / count;
            STORE_ROW(sample, TO_SAMPLE(mean),
                      ROW_OF(__global sample, out, y, out_origin, k.out_pitch), e, n);
            if (y >= radius)
                sum -= MID(y - radius);
        }
    }
}
