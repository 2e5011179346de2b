/* The mean stops of blocks of pixels of a picture, for the base of the operator local.
 *
 * Formula: mean of log2(max(gain max(R, G, B), 2^-8)) over a block of 2^block_log2 pixels on each
 * side. R, G and B are as in picture.cl. The last column and row are repeated beyond the edge.
 *
 * Geometry: dimension 0 over blocks (COX_ITEM 1) or once for the whole row (0), dimension 1 over
 * the rows of blocks of the band, which begins with one; any local size. Build defines: COX_WIDTH
 * (detmath.clh), COX_ITEM, COX_COLUMNS, COX_IN_PITCH (bytes), COX_IN_FLOAT (0 or 1), COX_LOCAL 1.
 * Access: `in` ROWS read, `moments` ROWS write, its rows' first quantity. Numerics: see
 * detmath.clh. A block is summed up down its columns first, then from column to column: COX_WIDTH
 * does not matter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/detmath.clh"
#include "tonemap/params.clh"
#include "tonemap/pixels.clh"

static inline real stops_of(struct pixels px, float gain)
{
    const real m = det_max(px.r, det_max(px.g, px.b));
    return local_stops(det_min(m * REAL(gain), REAL(MOST_LIGHT)));
}

/* Of the pixels from column x on, which are in the row. */
static inline real stops_within(__global const uint *row, int x, float gain)
{
    struct pixels px;
    LOAD(row + x * COX_IN_WORDS);
    UNPACK_COLOUR(px);
    return stops_of(px, gain);
}

/* The same at the end of the row. */
static inline real stops_at_end(__global const uint *row, int x, float gain)
{
    struct pixels px;
    uint words[COX_WIDTH * COX_IN_WORDS];
    for (int i = 0; i < COX_WIDTH * COX_IN_WORDS; i++)
        words[i] =
            row[min(x + i / COX_IN_WORDS, COX_COLUMNS - 1) * COX_IN_WORDS + i % COX_IN_WORDS];
    LOAD(words);
    UNPACK_COLOUR(px);
    return stops_of(px, gain);
}

__kernel void blocks(__global const uchar *in, __global uchar *moments, int in_origin,
                     int moments_origin, struct picture_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct picture_params p = params;
    const struct local_params *k = &p.surround;
    const int side = 1 << k->block_log2;
    const int block_y = (first >> k->block_log2) + (int)get_global_id(1), y = block_y * side;
    const int end_x = COX_ITEM ? ((int)get_global_id(0) + 1) * side : k->width * side;
    const int last = first + rows - 1; /* a band that ends within a block ends with the frame */
    if (y > last || end_x > k->width * side)
        return;
    __global float *to = (__global float *)(moments +
                                            (size_t)(block_y - moments_origin) * k->moments_pitch);
    const float share = as_float((127 - 2 * k->block_log2) << 23); /* 1 / pixels of a block */
    float total = 0.0f;
    for (int x = COX_ITEM ? end_x - side : 0; x < end_x; x += COX_WIDTH) {
        real sum = REAL(0.0f);
        for (int r = 0; r < side; r++) {
            __global const uint *row =
                (__global const uint *)(in + (size_t)(min(y + r, last) - in_origin) * COX_IN_PITCH);
            sum = sum + (x + COX_WIDTH <= COX_COLUMNS ? stops_within(row, x, p.gain)
                                                      : stops_at_end(row, x, p.gain));
        }
        float lanes[COX_WIDTH];
#if COX_WIDTH == 1
        lanes[0] = sum;
#else
        COX_VSTORE(sum, 0, lanes);
#endif
        for (int i = 0; i < COX_WIDTH && x + i < end_x; i++) {
            total += lanes[i];
            if (((x + i + 1) & (side - 1)) == 0) {
                to[(x + i) >> k->block_log2] = total * share;
                total = 0.0f;
            }
        }
    }
}
