/* Guided filter (He, Sun, Tang: Guided Image Filtering, ECCV 2010 and TPAMI 35, 2013), in four
 * stages of running sums.
 *
 * Formula, over the window around each pixel. Only the window's part in the frame counts. It has N
 * pixels. I is the guide and p the input. All are integers.
 *     a = cov(I, p) / (var(I) + epsilon),  b = mean(p) - a mean(I)
 *     out = mean(a) I + mean(b)
 * The kernels compute in integers. S are the sums over the window. round() goes to the nearest
 * integer, ties away from 0.
 *     cov = N S_Ip - S_I S_p,  var = N S_II - S_I^2 + epsilon N^2
 * Both are shifted down by the same count of bits, so that var keeps 31 bits. The shift rounds
 * cov's magnitude down. The magnitude is limited to 2047 var.
 *     a = round(2^20 cov / var),  b = round((2^20 S_p - a S_I) / N)
 *     out = floor((S_a I + S_b + 2^19 N) / (2^20 N)), limited to the range of a sample
 * With COX_SELF the guide is the input.
 *
 * Stages:
 *   `guided_rows`     sums of I, p, I^2, I p along rows
 *   `guided_fit`      a and b, down the columns
 *   `guided_rows_ab`  sums of a and b along rows
 *   `guided_apply`    out, down the columns
 *
 * Geometry. Stages along rows: dimension 0 over runs (COX_RUN, see window.clh), dimension 1 over
 * the rows. Stages down the columns: dimension 0 over elements (COX_ITEM, see plane.clh),
 * dimension 1 over groups of COX_ITEM_ROWS rows. Any local size. Work-items past the end store
 * nothing.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_SAMPLE 1 or 2, COX_CHANNELS, COX_ITEM (plane.clh),
 * COX_RUN, COX_ITEM_ROWS, COX_SELF. Sizes, pitches, radii and epsilon are parameters. Access:
 * `guide` and `in` ROWS or HALO read; `sums` ROWS or private HALO written, then HALO(radius_y)
 * read; `ab` ROWS; `sums_ab` ROWS written, then HALO(radius_y) read; `out` ROWS write. Every buffer
 * begins at the row its `origin` says. A row of scratch holds its quantities one after the other,
 * `stride` elements apart: sums: I, p (int), I^2, I p (long); ab: a (int), b (long); sums_ab: a, b
 * (long). Numerics: integers only. Radii of 63 at most and epsilon from 1 to 2^32, so that 64 bits
 * hold everything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/window.clh"

struct guided_params {
    int width, height; /* pixels */
    int guide_pitch, in_pitch, out_pitch, sums_pitch, ab_pitch, sums_ab_pitch;
    int radius_x, radius_y;
    int stride;
    int unused;
    ulong epsilon;
};

#define INTS(row, index, stride) ((__global int *)(row) + (size_t)(index) * (stride))
#define LONGS(row, ints, index, stride) \
    ((__global long *)((__global int *)(row) + (size_t)((ints) + 2 * (index)) * (stride)))
#define CONST_INTS(row, index, stride) ((__global const int *)(row) + (size_t)(index) * (stride))
#define CONST_LONGS(row, ints, index, stride)              \
    ((__global const long *)((__global const int *)(row) + \
                             (size_t)((ints) + 2 * (index)) * (stride)))

static inline wide load_longs(__global const long *row, int e, int n)
{
    if (e + COX_WIDTH <= n)
        return LOAD_VECTOR(row + e);
    long lanes[COX_WIDTH];
    for (int i = 0; i < COX_WIDTH; i++)
        lanes[i] = e + i < n ? row[e + i] : 0;
    return FROM_ARRAY(wide, lanes);
}

#define WIDE(x) ((wide)(x))

/* num / den, den > 0, to nearest, ties away from 0; |num| + den / 2 < 2^63. */
static inline wide divide_round(wide num, wide den)
{
    const wide size = max(num, -num);
    const wide ratio = (size + (den >> WIDE(1))) / den;
    return PICK(num < WIDE(0), -ratio, ratio);
}

__kernel void guided_rows(__global const uchar *guide, __global const uchar *in,
                          __global uchar *sums, int guide_origin, int in_origin, int sums_origin,
                          struct guided_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct guided_params k = params;
    const int y = first + (int)get_global_id(1), width = k.width, radius = k.radius_x;
    __global const sample *lead = ROW_OF(__global const sample, guide, y, guide_origin,
                                         k.guide_pitch);
    __global const sample *src = ROW_OF(__global const sample, in, y, in_origin, k.in_pitch);
    __global uchar *dst = ROW_OF(__global uchar, sums, y, sums_origin, k.sums_pitch);
    __global int *i_out = INTS(dst, 0, k.stride);
    __global int *p_out = INTS(dst, 1, k.stride);
    __global long *ii_out = LONGS(dst, 2, 0, k.stride);
    __global long *ip_out = LONGS(dst, 2, 1, k.stride);
    if (y >= first + rows)
        return;
    EACH_RUN(c, begin, end, width) {
        int sum_i = 0, sum_p = 0;
        long sum_ii = 0, sum_ip = 0;
        for (int x = max(begin - radius, 0); x < end + radius; x++) {
            if (x < width) {
                const int at = x * COX_CHANNELS + c, i = lead[at], p = COX_SELF ? i : (int)src[at];
                sum_i += i;
                sum_p += p;
                sum_ii += (long)((ulong)(uint)i * (uint)i);
                sum_ip += (long)((ulong)(uint)i * (uint)p);
            }
            const int centre = x - radius;
            if (centre < begin)
                continue;
            const int to = centre * COX_CHANNELS + c;
            i_out[to] = sum_i;
            ii_out[to] = sum_ii;
            if (!COX_SELF) {
                p_out[to] = sum_p;
                ip_out[to] = sum_ip;
            }
            if (centre >= radius) {
                const int at = (centre - radius) * COX_CHANNELS + c, i = lead[at],
                          p = COX_SELF ? i : (int)src[at];
                sum_i -= i;
                sum_p -= p;
                sum_ii -= (long)((ulong)(uint)i * (uint)i);
                sum_ip -= (long)((ulong)(uint)i * (uint)p);
            }
        }
    }
}

/* The number of columns of the window around each lane's pixel. */
static inline wide columns_in_window(int e, int radius, int width)
{
    long lanes[COX_WIDTH];
    for (int i = 0; i < COX_WIDTH; i++)
        lanes[i] = max(window_size((e + i) / COX_CHANNELS, radius, width), 1);
    return FROM_ARRAY(wide, lanes);
}

struct moments {
    wide i, p, ii, ip;
};

static inline void add_moments(struct moments *m, __global const uchar *row, int e, int n,
                               int stride, wide sign)
{
    m->i += sign * TO_LONG(load_ints(CONST_INTS(row, 0, stride), e, n));
    m->ii += sign * load_longs(CONST_LONGS(row, 2, 0, stride), e, n);
#if !COX_SELF
    m->p += sign * TO_LONG(load_ints(CONST_INTS(row, 1, stride), e, n));
    m->ip += sign * load_longs(CONST_LONGS(row, 2, 1, stride), e, n);
#endif
}

__kernel void guided_fit(__global const uchar *sums, __global uchar *ab, int sums_origin,
                         int ab_origin, struct guided_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct guided_params k = params;
    const int n = k.width * COX_CHANNELS, radius = k.radius_y, height = k.height;
    const int begin = first + (int)get_global_id(1) * COX_ITEM_ROWS;
    const int end = min(begin + COX_ITEM_ROWS, first + rows);
    if (begin >= end)
        return;
    EACH_ELEMENT(e, n) {
        const wide across = columns_in_window(e, k.radius_x, k.width);
        struct moments m = {WIDE(0), WIDE(0), WIDE(0), WIDE(0)};
        for (int y = max(begin - radius, 0); y < min(begin + radius, height); y++)
            add_moments(&m, ROW_OF(__global const uchar, sums, y, sums_origin, k.sums_pitch), e, n,
                        k.stride, WIDE(1));
        for (int y = begin; y < end; y++) {
            if (y + radius < height)
                add_moments(&m,
                            ROW_OF(__global const uchar, sums, y + radius, sums_origin,
                                   k.sums_pitch),
                            e, n, k.stride, WIDE(1));
            const wide p = COX_SELF ? m.i : m.p, ip = COX_SELF ? m.ii : m.ip;
            const wide count = across * WIDE((long)window_size(y, radius, height));
            wide cov = count * ip - m.i * p;
            wide var = count * m.ii - m.i * m.i + WIDE((long)k.epsilon) * count * count;
            const wide down = max(WIDE(33) - clz(var), WIDE(0));
            var = var >> down;
            const wide size = min(max(cov, -cov) >> down, var * WIDE(2047));
            cov = PICK(cov < WIDE(0), -size, size);
            const wide a = divide_round(cov * WIDE(1 << 20), var);
            const wide b = divide_round(p * WIDE(1 << 20) - a * m.i, count);
            __global uchar *dst = ROW_OF(__global uchar, ab, y, ab_origin, k.ab_pitch);
            STORE_ROW(int, TO_LOW(a), INTS(dst, 0, k.stride), e, n);
            STORE_ROW(long, b, LONGS(dst, 1, 0, k.stride), e, n);
            if (y >= radius)
                add_moments(&m,
                            ROW_OF(__global const uchar, sums, y - radius, sums_origin,
                                   k.sums_pitch),
                            e, n, k.stride, WIDE(-1));
        }
    }
}

__kernel void guided_rows_ab(__global const uchar *ab, __global uchar *sums_ab, int ab_origin,
                             int sums_ab_origin, struct guided_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct guided_params k = params;
    const int y = first + (int)get_global_id(1), width = k.width, radius = k.radius_x;
    __global const uchar *src = ROW_OF(__global const uchar, ab, y, ab_origin, k.ab_pitch);
    __global const int *a = CONST_INTS(src, 0, k.stride);
    __global const long *b = CONST_LONGS(src, 1, 0, k.stride);
    __global uchar *dst = ROW_OF(__global uchar, sums_ab, y, sums_ab_origin, k.sums_ab_pitch);
    __global long *a_out = LONGS(dst, 0, 0, k.stride);
    __global long *b_out = LONGS(dst, 0, 1, k.stride);
    if (y >= first + rows)
        return;
    EACH_RUN(c, begin, end, width) {
        long sum_a = 0, sum_b = 0;
        for (int x = max(begin - radius, 0); x < end + radius; x++) {
            if (x < width) {
                sum_a += a[x * COX_CHANNELS + c];
                sum_b += b[x * COX_CHANNELS + c];
            }
            const int centre = x - radius;
            if (centre < begin)
                continue;
            a_out[centre * COX_CHANNELS + c] = sum_a;
            b_out[centre * COX_CHANNELS + c] = sum_b;
            if (centre >= radius) {
                sum_a -= a[(centre - radius) * COX_CHANNELS + c];
                sum_b -= b[(centre - radius) * COX_CHANNELS + c];
            }
        }
    }
}

__kernel void guided_apply(__global const uchar *guide, __global const uchar *sums_ab,
                           __global uchar *out, int guide_origin, int sums_ab_origin,
                           int out_origin, struct guided_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct guided_params k = params;
    const int n = k.width * COX_CHANNELS, radius = k.radius_y, height = k.height;
    const int begin = first + (int)get_global_id(1) * COX_ITEM_ROWS;
    const int end = min(begin + COX_ITEM_ROWS, first + rows);
    if (begin >= end)
        return;
#define SUMS_AB(y, index)                                                           \
    load_longs(CONST_LONGS(ROW_OF(__global const uchar, sums_ab, y, sums_ab_origin, \
                                  k.sums_ab_pitch),                                 \
                           0, index, k.stride),                                     \
               e, n)
    EACH_ELEMENT(e, n) {
        const wide across = columns_in_window(e, k.radius_x, k.width);
        wide sum_a = WIDE(0), sum_b = WIDE(0);
        for (int y = max(begin - radius, 0); y < min(begin + radius, height); y++) {
            sum_a += SUMS_AB(y, 0);
            sum_b += SUMS_AB(y, 1);
        }
        for (int y = begin; y < end; y++) {
            if (y + radius < height) {
                sum_a += SUMS_AB(y + radius, 0);
                sum_b += SUMS_AB(y + radius, 1);
            }
            const wide count = across * WIDE((long)window_size(y, radius, height));
            const wide lead = TO_LONG(load_samples(ROW_OF(__global const sample, guide, y,
                                                          guide_origin, k.guide_pitch),
                                                   e, n));
            const wide scaled = (sum_a * lead + sum_b + count * WIDE(1 << 19)) >> WIDE(20);
            const wide bounded = clamp(scaled, WIDE(0), count * WIDE(COX_SAMPLE_MAX));
            const sint code = TO_LOW(bounded) / TO_LOW(count);
            STORE_ROW(sample, TO_SAMPLE(code),
                      ROW_OF(__global sample, out, y, out_origin, k.out_pitch), e, n);
            if (y >= radius) {
                sum_a -= SUMS_AB(y - radius, 0);
                sum_b -= SUMS_AB(y - radius, 1);
            }
        }
    }
}
