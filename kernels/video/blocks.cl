/* The stops of blocks of samples of a video frame, for the base of the operator local.
 *
 * Formula: the mean Y', Cb and Cr of the block's samples; their light as in frame.cl, to BT.709 in
 * multiples of SDR white; log2(max(R, G, B, 2^-8)). For RGBA and BGRA: the mean of the pixels'
 * stops. The last column and row are repeated beyond the edge.
 *
 * Geometry: dimension 0 over groups of 2 COX_WIDTH blocks (COX_ITEM 1) or once for the whole row
 * (0), dimension 1 over the band's rows of blocks. A band begins with a row of blocks. Any local
 * size. Build defines: COX_WIDTH (detmath.clh), COX_ITEM; COX_BLOCK_LOG2 1 .. 5; COX_CHROMA_UNIT,
 * what one chroma sample counts in the parameters; of frame.cl: COX_IN_LAYOUT, COX_IN_BYTES,
 * COX_IN_SHIFT, COX_IN_SUB_X, COX_IN_SUB_Y, COX_TRANSFER, COX_RESHAPE, COX_CURVE 4. Access: inputs
 * ROWS read, `moments` ROWS write, its rows' first quantity. Numerics: see detmath.clh. Codes are
 * added as integers. For RGBA and BGRA one work-item adds up a block, in one order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video/samples.clh"
#include "video/signal.clh"

#define SIDE (1 << COX_BLOCK_LOG2)
#define GROUP (2 * COX_WIDTH)
#if COX_WIDTH == 1
#define GATHERED(array) (array)[0]
#define SCATTER(v, array) (array)[0] = (v)
#else
#define GATHERED(array) COX_PASTE(vload, COX_WIDTH)(0, array)
#define SCATTER(v, array) COX_PASTE(vstore, COX_WIDTH)(v, 0, array)
#endif

/* The table for reshape.clh, as a parameter and as an argument. */
#if COX_RESHAPE
#define RESHAPING __global const float *reshaping,
#define RESHAPING_OF reshaping,
#else
#define RESHAPING
#define RESHAPING_OF
#endif

/* The stops of two vectors of signals; overwrites `s`. */
INLINE void stops_of(real *s, const struct video_params *k, float *stops)
{
    for (int i = 0; i < 2; i++) {
        eotf(s + 3 * i, k);
        primaries(s + 3 * i, k);
    }
    SCATTER(local_stops(det_max(s[0], det_max(s[1], s[2]))), stops);
    SCATTER(local_stops(det_max(s[3], det_max(s[4], s[5]))), stops + COX_WIDTH);
}

#if IN_RGBA

/* R, G, B of pixels x, x + 1, ... of a row, one vector after the other. */
static inline void signal_at(__global const uchar *row, int x, const struct video_params *k,
                             real *s)
{
    int c[3][GROUP];
    for (int i = 0; i < GROUP; i++) {
        const pixel p = PIXEL_AT(row, min(x + i, k->width - 1));
        c[0][i] = RED_OF(p);
        c[1][i] = GREEN_OF(p);
        c[2][i] = BLUE_OF(p);
    }
    for (int i = 0; i < 3; i++) {
        s[i] = rgba_signal(GATHERED(c[i]), k);
        s[3 + i] = rgba_signal(GATHERED(c[i] + COX_WIDTH), k);
    }
}

/* Stops of the blocks from `first_block` on, from row y0 on; `last_row` of the band. */
static inline void group_stops(__global const uchar *in, int first_block, int y0, int last_row,
                               const struct video_params *k, float *stops)
{
    for (int block = 0; block < GROUP; block++)
        stops[block] = 0.0f;
    for (int r = 0; r < SIDE; r++) {
        __global const uchar *row = in + (size_t)min(y0 + r, last_row) * k->in_pitch[0];
        for (int x = 0; x < GROUP * SIDE; x += GROUP) {
            real s[6];
            float own[GROUP];
            signal_at(row, first_block * SIDE + x, k, s);
            stops_of(s, k, own);
            for (int i = 0; i < GROUP; i++)
                stops[(x + i) / SIDE] += own[i];
        }
    }
    for (int block = 0; block < GROUP; block++)
        stops[block] *= as_float((127 - 2 * COX_BLOCK_LOG2) << 23);
}

#else

#define ACROSS (COX_BLOCK_LOG2 - COX_IN_SUB_X)
#define DOWN (COX_BLOCK_LOG2 - COX_IN_SUB_Y)

#if IN_V210
/* The sums of a block's Y', Cb and Cr. A block at the edge repeats its last sample of each. */
static inline void block_sums(__global const uchar *plane, __global const uchar *unused_1,
                              __global const uchar *unused_2, int block, int y0, int last_row,
                              const struct video_params *k, int *y, int *u, int *v)
{
    const int pair = block << ACROSS;
    *y = *u = *v = 0;
    for (int r = 0; r < SIDE; r++) {
        __global const uchar *row = plane + (size_t)min(y0 + r, last_row) * k->in_pitch[0];
        for (int i = pair; i < pair + (1 << ACROSS); i++) {
            const int at = min(i, k->chroma_width - 1), last = k->width - 1;
            *y += (int)component(row, 2 * min(2 * i, last) + 1) +
                  (int)component(row, 2 * min(2 * i + 1, last) + 1);
            *u += (int)component(row, 4 * at);
            *v += (int)component(row, 4 * at + 2);
        }
    }
}
#else

#if COX_IN_BYTES == 1
#define SAMPLES(n, row, x) PLACED_AT(uchar##n, (row) + (x))
#define SAMPLE(row, x) (row)[x]
#else
#define SAMPLES(n, row, x) PLACED_AT(ushort##n, (row) + 2 * (x))
#define SAMPLE(row, x) PLACED_AT(ushort, (row) + 2 * (x))
#endif

/* The sums of a block's samples, `rows` rows of `count` (a power of two) from sample `begin` on.
 * There are four sums, each of every fourth sample. So Cb and Cr of semi-planar chroma stay apart.
 * A block at the edge repeats its last sample, or pair of samples. */
static inline uint4 sums_of(__global const uchar *plane, int pitch, int begin, int count, int total,
                            int channels, int y0, int last_row, int rows)
{
    uint8 wide = (uint8)(0);
    uint4 sums = (uint4)(0);
    uint rest[4] = {0, 0, 0, 0};
    for (int r = 0; r < rows; r++) {
        __global const uchar *row = plane + (size_t)min(y0 + r, last_row) * pitch;
        if (begin + count > total || count < 4) {
            for (int i = 0; i < count; i++) {
                const int at = begin + i,
                          back = at < total ? 0 : (at - total + channels) / channels * channels;
                rest[i % 4] += SAMPLE(row, at - back) >> COX_IN_SHIFT;
            }
        } else if (count == 4) {
            sums += convert_uint4(SAMPLES(4, row, begin)) >> COX_IN_SHIFT;
        } else {
            for (int i = begin; i < begin + count; i += 8)
                wide += convert_uint8(SAMPLES(8, row, i)) >> COX_IN_SHIFT;
        }
    }
    return sums + wide.lo + wide.hi + vload4(0, rest);
}

/* The sums of a block's Y', Cb and Cr. */
static inline void block_sums(__global const uchar *luma, __global const uchar *cb,
                              __global const uchar *cr, int block, int y0, int last_row,
                              const struct video_params *k, int *y, int *u, int *v)
{
    const int x = block << COX_BLOCK_LOG2, chroma_x = x >> COX_IN_SUB_X,
              chroma_y0 = y0 >> COX_IN_SUB_Y;
    const int last_chroma_row = last_row >> COX_IN_SUB_Y;
    const uint4 s = sums_of(luma, k->in_pitch[0], x, SIDE, k->width, 1, y0, last_row, SIDE);
    *y = (int)(s.x + s.y + s.z + s.w);
#if COX_IN_LAYOUT == 1
    const uint4 c = sums_of(cb, k->in_pitch[1], 2 * chroma_x, 2 << ACROSS, 2 * k->chroma_width, 2,
                            chroma_y0, last_chroma_row, 1 << DOWN);
    *u = (int)(c.x + c.z);
    *v = (int)(c.y + c.w);
#else
    const uint4 b = sums_of(cb, k->in_pitch[1], chroma_x, 1 << ACROSS, k->chroma_width, 1,
                            chroma_y0, last_chroma_row, 1 << DOWN);
    const uint4 r = sums_of(cr, k->in_pitch[2], chroma_x, 1 << ACROSS, k->chroma_width, 1,
                            chroma_y0, last_chroma_row, 1 << DOWN);
    *u = (int)(b.x + b.y + b.z + b.w);
    *v = (int)(r.x + r.y + r.z + r.w);
#endif
}
#endif

/* The light of a block's mean Y', Cb and Cr, in the units of the parameters. */
static inline void group_stops(__global const uchar *luma, __global const uchar *cb,
                               __global const uchar *cr, int first_block, int y0, int last_row,
                               const struct video_params *k, RESHAPING float *stops)
{
    const float luma_share = as_float((127 - 2 * COX_BLOCK_LOG2) << 23);
    const float chroma_share = as_float((127 - ACROSS - DOWN) << 23) * (float)COX_CHROMA_UNIT;
    int y[GROUP], u[GROUP], v[GROUP];
    real s[6];
    for (int i = 0; i < GROUP; i++)
        block_sums(luma, cb, cr, min(first_block + i, k->surround.width - 1), y0, last_row, k,
                   y + i, u + i, v + i);
    for (int i = 0; i < 2; i++)
        rgb_signal(TO_REAL(GATHERED(y + i * COX_WIDTH)) * REAL(luma_share),
                   TO_REAL(GATHERED(u + i * COX_WIDTH)) * REAL(chroma_share),
                   TO_REAL(GATHERED(v + i * COX_WIDTH)) * REAL(chroma_share), k, s + 3 * i);
#if COX_RESHAPE
    reshape(s, reshaping);
#endif
    stops_of(s, k, stops);
}
#endif

__kernel void blocks(__global const uchar *in_0,
#if IN_PLANES > 1
                     __global const uchar *in_1,
#endif
#if IN_PLANES > 2
                     __global const uchar *in_2,
#endif
                     RESHAPING __global uchar *moments, int moments_origin,
                     struct video_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct video_params p = params;
    const struct video_params *k = &p;
    const int columns = k->surround.width;
    /* of the band, which begins with a row of blocks */
    const int y0 = (int)get_global_id(1) << COX_BLOCK_LOG2;
    const int begin = COX_ITEM ? GROUP * (int)get_global_id(0) : 0,
              end = COX_ITEM ? begin + 1 : columns;
    if (y0 >= rows || columns <= 0) /* parameters that are all zeros */
        return;
    const int row = (first + y0) >> COX_BLOCK_LOG2;
    __global float *to = (__global float *)(moments + (size_t)(row - moments_origin) *
                                                          k->surround.moments_pitch);
    for (int block = begin; block < end; block += GROUP) {
        float stops[GROUP];
#if IN_RGBA
        group_stops(in_0, block, y0, rows - 1, k, stops);
#elif IN_V210
        group_stops(in_0, in_0, in_0, block, y0, rows - 1, k, RESHAPING_OF stops);
#elif COX_IN_LAYOUT == 1
        group_stops(in_0, in_1, in_1, block, y0, rows - 1, k, RESHAPING_OF stops);
#else
        group_stops(in_0, in_1, in_2, block, y0, rows - 1, k, RESHAPING_OF stops);
#endif
        for (int i = 0; i < GROUP && block + i < columns; i++)
            to[block + i] = stops[i];
    }
}
