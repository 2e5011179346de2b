/* Scaling of a frame: separable Catmull-Rom resampling of its planes' codes, first down the
 * columns, then along the rows. The result has a sample of Y', Cb and Cr for each pixel, however
 * chroma was subsampled. From RGBA, BGRA and planes of colours it has a sample of G, B and R.
 *
 * Sample i of a plane has the weight w((i - at) / stretch), divided by the sum of all weights. The
 * pixel's position in the plane is `at`. The number of samples per pixel is `stretch`. It is at
 * least 1, so that no detail aliases.
 *     w(d) = (1.5 d - 2.5) d d + 1 for d = |d| < 1,  ((-0.5 d + 2.5) d - 4) d + 2 for d < 2,
 *            0 beyond,
 * R. Keys, Cubic convolution interpolation for digital image processing, IEEE Trans. ASSP 29
 * (1981). Samples on the frame's edge are repeated beyond it.
 *
 * The intermediate frame has the output's rows and the input's columns, in blocks of BLOCK rows. On
 * a GPU each block is stored row by row. On a CPU it is stored column by column, so that a vector
 * holds a column of a block.
 *
 * Build defines: COX_WIDTH (detmath.clh), rows of a work-item, 1 or BLOCK; COX_IN_LAYOUT,
 * COX_IN_BYTES, COX_IN_SHIFT as in frame.cl; COX_COLUMNS: columns of a work-item, 0 = all of them.
 * Access: the frame's planes WHOLE; the intermediate frame and the result each band's own, HALO(0),
 * the former with a buffer row for each block. Numerics: see detmath.clh. Where a sample lies is
 * computed in integers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video/samples.clh"

/* The position of a plane's first sample in a row of the intermediate frame, and the distance
 * between its samples. */
#if IN_RGBA
#define FIRST_OF(plane, p) ((plane) == 0 ? 1 : ((plane) == 1) == (COX_IN_LAYOUT == 2) ? 2 : 0)
#define APART(kind) 4
#elif IN_V210
#define FIRST_OF(plane, p) ((plane) == 0 ? 1 : 2 * (plane)-2)
#define APART(kind) ((kind) ? 4 : 2)
#elif COX_IN_LAYOUT == 1
#define FIRST_OF(plane, p) ((plane) == 2 ? (p).begin[1] + 1 : (p).begin[plane])
#define APART(kind) ((kind) ? 2 : 1)
#else
#define FIRST_OF(plane, p) (p).begin[plane]
#define APART(kind) 1
#endif
#define BLOCK 16
/* The most samples that have a weight: 2 * reach if a side becomes an eighth. */
#define TAPS 32

#if COX_WIDTH == 1
#define LANES 0
#define LOAD_REALS(array) (array)[0]
#define STORE_REALS(v, array) (array)[0] = (v)
#else
#define LANES (sint)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define LOAD_REALS(array) COX_PASTE(vload, COX_WIDTH)(0, array)
#define STORE_REALS(v, array) COX_PASTE(vstore, COX_WIDTH)(v, 0, array)
#endif

/* The position of a plane under the output in one direction: pixel p is at (p * num + offset) /
 * den. */
struct scale_axis {
    int num, offset, den;
    int samples; /* of the plane */
    int reach;   /* samples on each side of the pixel that have a weight */
    float inv_den, inv_stretch;
};

/* The parameter block; struct cox__scale of scale.h. */
struct scale_params {
    int width;                       /* pixels of the result */
    int in_pitch[3];                 /* bytes */
    int columns[3];                  /* samples in a row of each plane, of whatever kinds */
    /* where each plane begins in a row of the intermediate frame */
    int begin[3];
    int samples;                     /* in a row of the intermediate frame */
    int result_pitch;                /* bytes */
    struct scale_axis down[2], along[2]; /* luma, chroma */
    float unit;                      /* codes of 16 bits per code */
};

/* The sample at or before pixel p, and the pixel's distance behind it, in units of 1 / den. A
 * quotient of floats is off by one at most. */
static inline int place_of(int p, const struct scale_axis *axis, int *rest)
{
    const long at = (long)p * axis->num + axis->offset;
    int i = (int)((float)at * axis->inv_den);
    long left = at - (long)i * axis->den;
    while (left < 0) {
        left += axis->den;
        i--;
    }
    while (left >= axis->den) {
        left -= axis->den;
        i++;
    }
    *rest = (int)left;
    return i;
}

/* The same for pixels p, p + 1, ..., with the distance as a fraction of a sample. */
static inline sint places_of(int p, const struct scale_axis *axis, real *rest)
{
    int left;
    const sint i = SINT(place_of(p, axis, &left));
    const sint at = SINT(left) + LANES * SINT(axis->num); /* below 2^22 */
    sint steps = TO_SINT(TO_REAL(at) * REAL(axis->inv_den));
    sint off = at - steps * SINT(axis->den);
    steps = PICK(off < SINT(0), steps - SINT(1),
                 PICK(off >= SINT(axis->den), steps + SINT(1), steps));
    off = at - steps * SINT(axis->den);
    *rest = TO_REAL(off) * REAL(axis->inv_den);
    return i + steps;
}

static inline real weight(real d)
{
    d = AS_REAL(AS_SINT(d) & SINT(0x7fffffff));
    const real near = MULADD(MULADD(d, REAL(1.5f), REAL(-2.5f)), d * d, REAL(1.0f));
    const real far = MULADD(MULADD(MULADD(d, REAL(-0.5f), REAL(2.5f)), d, REAL(-4.0f)), d,
                            REAL(2.0f));
    return PICK(d < REAL(1.0f), near, PICK(d < REAL(2.0f), far, REAL(0.0f)));
}

#if IN_V210
#define CODE(row, i) component(row, i)
#elif COX_IN_BYTES == 1
#define CODE(row, i) ((uint)(row)[i])
#else
#define CODE(row, i) ((uint)PLACED_AT(ushort, (row) + 2 * (i)) >> COX_IN_SHIFT)
#endif

/* Codes x, x + 1, ... of a row; past its end, the last one. */
static inline real codes_at(__global const uchar *row, int x, int columns)
{
    float codes[COX_WIDTH];
#if IN_V210 && COX_WIDTH == 16
    if (x + 24 <= columns) {
        const uint8 a = PLACED_AT(uint8, row + 4 * (x / 3));
        const int first = x % 3; /* in its word */
        uns words;
        if (first == 0)
            words = (uint16)(a.s0001, a.s1122, a.s2333, a.s4445) >> TURNS(0, 10, 20);
        else if (first == 1)
            words = (uint16)(a.s0011, a.s1222, a.s3334, a.s4455) >> TURNS(10, 20, 0);
        else
            words = (uint16)(a.s0111, a.s2223, a.s3344, a.s4555) >> TURNS(20, 0, 10);
        return TO_REAL(AS_SINT(words & (uns)(0x3ffu)));
    }
#else
    if (x + COX_WIDTH <= columns) {
#if COX_WIDTH == 1
        return (float)CODE(row, x);
#elif COX_IN_BYTES == 1
        return TO_REAL(PLACED_AT(COX_PASTE(uchar, COX_WIDTH), row + x));
#else
        const COX_PASTE(ushort, COX_WIDTH)
            words = PLACED_AT(COX_PASTE(ushort, COX_WIDTH), row + 2 * x);
        return TO_REAL(words >> (ushort)COX_IN_SHIFT);
#endif
    }
#endif
    for (int k = 0; k < COX_WIDTH; k++)
        codes[k] = (float)CODE(row, min(x + k, columns - 1));
    return LOAD_REALS(codes);
}

/* The weights of pixels p, p + 1, ..., not yet divided by their sums. Returns the sample of the
 * first weight. */
static inline sint weights_at(int p, const struct scale_axis *axis, float weights[TAPS][COX_WIDTH],
                              real *inv_sum)
{
    real rest, sum = REAL(0.0f);
    const sint at = places_of(p, axis, &rest);
    for (int t = 0; t < 2 * axis->reach; t++) {
        const real w = weight((REAL((float)(t + 1 - axis->reach)) - rest) *
                              REAL(axis->inv_stretch));
        sum = sum + w;
        STORE_REALS(w, weights[t]);
    }
    *inv_sum = det_rcp(sum);
    return at + SINT(1 - axis->reach);
}

/* The place of (x, row) in the intermediate frame of a band, with `samples` in a row. */
static inline size_t place_in_block(int x, int row, int origin, int samples)
{
    const size_t block = (size_t)(row / BLOCK - origin) * BLOCK * samples;
    return block + (COX_WIDTH == 1 ? (size_t)(row % BLOCK) * samples + x : (size_t)x * BLOCK);
}

/* --- Down the columns --- */

/* Columns of one pass over the rows; few enough that samples which several rows read stay in the
 * cache. */
#define PART (8 * COX_WIDTH)

static inline void one_plane(__global const uchar *plane, int pitch, int columns,
                             const struct scale_axis *axis, int y, int begin, int end,
                             __global float *to)
{
    float weights[TAPS][COX_WIDTH], inv_sums[COX_WIDTH], tile[COX_WIDTH][PART];
    int firsts[COX_WIDTH];
    real inv_sum;
    STORE_REALS(weights_at(y, axis, weights, &inv_sum), firsts);
    STORE_REALS(inv_sum, inv_sums);
    for (int part = begin; part < end; part += PART) {
        const int count = min(PART, end - part);
        for (int r = 0; r < COX_WIDTH; r++)
            for (int x = 0; x < count; x += COX_WIDTH) {
                real total = REAL(0.0f);
                for (int t = 0; t < 2 * axis->reach; t++) {
                    const int i = clamp(firsts[r] + t, 0, axis->samples - 1);
                    total = MULADD(REAL(weights[t][r]),
                                   codes_at(plane + (size_t)i * pitch, part + x, columns), total);
                }
                STORE_REALS(total * REAL(inv_sums[r]), tile[r] + x);
            }
        for (int k = 0; k < count; k++) {
            float column[COX_WIDTH];
            for (int r = 0; r < COX_WIDTH; r++)
                column[r] = tile[r][k];
            STORE_REALS(LOAD_REALS(column), to + (size_t)(part + k) * COX_WIDTH);
        }
    }
}

__kernel void scale_down(__global const uchar *in_0,
#if IN_PLANES > 1
                         __global const uchar *in_1,
#endif
#if IN_PLANES > 2
                         __global const uchar *in_2,
#endif
                         __global float *intermediate, int origin_0,
#if IN_PLANES > 1
                         int origin_1,
#endif
#if IN_PLANES > 2
                         int origin_2,
#endif
                         int origin, struct scale_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct scale_params p = params;
#if IN_PLANES > 2
    __global const uchar *planes[3] = {in_0, in_1, in_2};
#elif IN_PLANES > 1
    __global const uchar *planes[2] = {in_0, in_1};
#else
    __global const uchar *planes[1] = {in_0};
#endif
    const int y = (int)get_global_id(1) * COX_WIDTH;
    if (y >= rows)
        return;
    __global float *to = intermediate + place_in_block(0, first + y, origin, p.samples);
    const int from = (int)get_global_id(0) * COX_COLUMNS;
    for (int i = 0; i < IN_PLANES; i++) {
        const int begin = COX_COLUMNS ? clamp(from - p.begin[i], 0, p.columns[i]) : 0;
        const int end = COX_COLUMNS ? clamp(from + COX_COLUMNS - p.begin[i], 0, p.columns[i])
                                    : p.columns[i];
        if (begin < end)
            one_plane(planes[i], p.in_pitch[i], p.columns[i], &p.down[i > 0], first + y, begin, end,
                      to + (size_t)p.begin[i] * COX_WIDTH);
    }
}

/* --- Along the rows --- */

/* Codes of 16 bits, rounded to nearest, of `columns` pixels of `rows` rows. */
static inline void store_tile(real values[COX_WIDTH], real unit, int columns, int rows, int pitch,
                              __global uchar *to)
{
    int codes[COX_WIDTH][COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++)
        STORE_REALS(TO_SINT(det_min(det_max(MULADD(values[k], unit, REAL(0.5f)), REAL(0.0f)),
                                    REAL(65535.0f))),
                    codes[k]);
    for (int r = 0; r < rows; r++) {
        __global ushort *row = (__global ushort *)(to + (size_t)r * pitch);
        for (int k = 0; k < columns; k++)
            row[k] = (ushort)codes[k][r];
    }
}

/* A plane's pixels x, x + 1, ..., whose samples lie `step` apart. */
static inline void pixels_of(__global const float *from, int step, const struct scale_axis *axis,
                             float weights[TAPS][COX_WIDTH], const int firsts[COX_WIDTH],
                             const float inv_sums[COX_WIDTH], real values[COX_WIDTH])
{
    for (int k = 0; k < COX_WIDTH; k++) {
        real total = REAL(0.0f);
        for (int t = 0; t < 2 * axis->reach; t++) {
            const int i = step * clamp(firsts[k] + t, 0, axis->samples - 1);
            total = MULADD(REAL(weights[t][k]), LOAD_REALS(from + (size_t)i * COX_WIDTH), total);
        }
        values[k] = total * REAL(inv_sums[k]);
    }
}

__kernel void scale_along(__global const float *intermediate, __global uchar *out_0,
                          __global uchar *out_1, __global uchar *out_2, int origin, int out_origin,
                          int out_origin_1, int out_origin_2, struct scale_params params, int first,
                          int rows)
{
    const struct scale_params p = params;
    const int y = (int)get_global_id(1) * COX_WIDTH;
    if (y >= rows)
        return;
    __global uchar *outs[3] = {out_0, out_1, out_2};
    __global const float *from = intermediate + place_in_block(0, first + y, origin, p.samples);
    const size_t at = (size_t)(first - out_origin + y) * p.result_pitch;
    const int begin = (int)get_global_id(0) * COX_COLUMNS;
    const int end = COX_COLUMNS ? min(begin + COX_COLUMNS, p.width) : p.width;
    for (int x = begin; x < end; x += COX_WIDTH) {
        for (int kind = 0; kind < 2; kind++) {
            float weights[TAPS][COX_WIDTH], inv_sums[COX_WIDTH];
            int firsts[COX_WIDTH];
            real inv_sum, values[COX_WIDTH];
            STORE_REALS(weights_at(x, &p.along[kind], weights, &inv_sum), firsts);
            STORE_REALS(inv_sum, inv_sums);
            for (int plane = kind; plane < 1 + 2 * kind; plane++) {
                pixels_of(from + (size_t)FIRST_OF(plane, p) * COX_WIDTH, APART(kind),
                          &p.along[kind], weights, firsts, inv_sums, values);
                store_tile(values, REAL(p.unit), min(COX_WIDTH, p.width - x),
                           min(COX_WIDTH, rows - y), p.result_pitch,
                           outs[plane] + at + 2 * (size_t)x);
            }
        }
    }
}
