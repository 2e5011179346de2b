/* Recursive Gaussian: lines are filtered forwards, then backwards. The time does not depend on
 * sigma.
 *
 * Formula: van Vliet, Young, Verbeek (Recursive Gaussian derivative filters, ICPR 1998). The filter
 * has three poles and is scaled such that the variance is sigma^2. It runs forwards, then the same
 * backwards:
 *     w(n) = B x(n) + b1 w(n-1) + b2 w(n-2) + b3 w(n-3),  B = 1 - b1 - b2 - b3.
 * Beyond its ends a line continues with its first and last samples. The backward filter's start is
 * then a linear function of the forward filter's end (Triggs, Sdika: Boundary conditions for
 * Young-van Vliet recursive filtering, IEEE TSP 54, 2006).
 *
 * The recursion uses the differences d1 = w(n) - w(n-1) and d2 = d1(n) - d1(n-1). A step is:
 *     t = B (x - (w + d1 + d2)) - (c1 (d1 + d2) + c2 d2),  d2 += t,  d1 += d2,  w += d1,
 *     c1 = b1 + 2 b2 + 3 b3,  c2 = -(b2 + 3 b3).
 * The filter is the same, but rounding B, c1 and c2 does not change its effect on a constant. A
 * rounding error is amplified by about sigma, not by sigma^3. The part that is lost when a small d1
 * is added to w is kept and added in the next step (Kahan). kernels/filter/gauss.c has the
 * coefficients.
 *
 * Kernel: line l goes down column l of `in` and becomes row l of `out` (a pass whose rows are the
 * columns of its input). If COX_LINES channels are interleaved in a row of `out`, row l has
 * COX_LINES lines. Sample i of line c is then in row i * COX_LINES + c of `in`. Geometry: dimension
 * 0 over COX_LINES, dimension 1 over groups of COX_WIDTH * COX_GROUPS rows of `out`, each a lane;
 * any local size. Work-items and lanes past the end store nothing. A line is stored in chunks of
 * COX_CHUNK samples. Each step of a line waits for the one before; COX_GROUPS vectors in parallel
 * keep a CPU busy meanwhile.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_GROUPS, COX_LINES. Sizes, pitches and coefficients
 * are parameters. Access: `in` WHOLE read, `out` ROWS write; the backward filter reads the results
 * of the forward filter of the same work-item there. Every buffer begins at the row its `origin`
 * says. Numerics: see detmath.clh and plane.clh. A state below 2^-50 becomes 0: a tail decays to
 * zero without passing through denormal numbers. A line is filtered by one work-item in one order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/gauss.clh"

#define COX_CHUNK 8

struct gauss_params {
    int length;  /* of a line, in samples */
    int columns; /* elements in a row of `in` */
    int in_pitch, out_pitch;
    struct gauss_recursion step;
    /* the backward filter's first state from the forward one's last, relative to the last sample */
    float back[9];
};

/* The place of a group of lines in `out`: `lines` rows of it, samples `place` + i * COX_LINES. */
struct lines {
    __global uchar *out;
    int count, pitch, place;
};

/* Samples i .. i + count - 1 of the lines, from or to tile[sample * COX_LANES + lane]. */
static inline void load_chunk(const struct lines *to, float *tile, int i, int count)
{
    for (int lane = 0; lane < COX_LANES; lane++) {
        __global const float *row =
            (__global const float *)(to->out + (size_t)min(lane, to->count - 1) * to->pitch);
        for (int j = 0; j < count; j++)
            tile[j * COX_LANES + lane] = row[(i + j) * COX_LINES + to->place];
    }
}

static inline void store_chunk(const struct lines *to, const float *tile, int i, int count)
{
    for (int lane = 0; lane < COX_LANES && lane < to->count; lane++) {
        __global float *row = (__global float *)(to->out + (size_t)lane * to->pitch);
#if COX_LINES == 1
        if (count == COX_CHUNK) {
            float chunk[COX_CHUNK];
            for (int j = 0; j < COX_CHUNK; j++)
                chunk[j] = tile[j * COX_LANES + lane];
            vstore8(vload8(0, chunk), 0, row + i);
            continue;
        }
#endif
        for (int j = 0; j < count; j++)
            row[(i + j) * COX_LINES + to->place] = tile[j * COX_LANES + lane];
    }
}

static inline void backward(const struct lines *to, struct state *s, int length,
                            struct gauss_recursion k)
{
    float tile[COX_CHUNK * COX_LANES];
    /* The last sample's result is the state itself. */
    int i = (length - 1) / COX_CHUNK * COX_CHUNK;
    for (int count = length - i, newest = 1; i >= 0; i -= COX_CHUNK, count = COX_CHUNK) {
        load_chunk(to, tile, i, count);
        for (int j = count - 1; j >= 0; j--) {
            float *sample = tile + j * COX_LANES;
            EACH_GROUP {
                const real x = FROM_ARRAY(real, sample + g * COX_WIDTH);
                const real w = newest ? s[g].w : advance(&s[g], x, k);
                TO_ARRAY(w, sample + g * COX_WIDTH);
            }
            newest = 0;
        }
        store_chunk(to, tile, i, count);
    }
}

#define FORWARD(LOAD)                                                                         \
    real x[COX_GROUPS];                                                                       \
    struct state s[COX_GROUPS];                                                               \
    EACH_GROUP {                                                                              \
        x[g] = LOAD(g, 0);                                                                    \
        s[g] = (struct state){settle(x[g]), REAL(0.0f), REAL(0.0f), REAL(0.0f)};              \
    }                                                                                         \
    for (int i = 0; i < k.length; i += COX_CHUNK) {                                           \
        float tile[COX_CHUNK * COX_LANES];                                                    \
        const int count = min(k.length - i, COX_CHUNK);                                       \
        for (int j = 0; j < count; j++)                                                       \
            EACH_GROUP {                                                                      \
                x[g] = LOAD(g, i + j);                                                        \
                TO_ARRAY(advance(&s[g], x[g], k.step), tile + j * COX_LANES + g * COX_WIDTH); \
            }                                                                                 \
        store_chunk(&to, tile, i, count);                                                     \
    }                                                                                         \
    EACH_GROUP s[g] = carry_over(k.back, s[g], x[g], REAL(0.0f), REAL(0.0f), REAL(0.0f));      \
    backward(&to, s, k.length, k.step)

__kernel void gauss_lines(__global const uchar *in, __global uchar *out, int in_origin,
                          int out_origin, struct gauss_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct gauss_params k = params;
    const int c = (int)get_global_id(0), l = first + (int)get_global_id(1) * COX_LANES;
    if (l >= first + rows || c >= COX_LINES || k.length <= 0) /* parameters that are all zeros */
        return;
    const struct lines to = {ROW_OF(__global uchar, out, l, out_origin, k.out_pitch),
                             min(first + rows - l, COX_LANES), k.out_pitch, c};
#define DOWN(g, i)                                                                       \
    clean_real(load_reals(ROW_OF(__global const float, in, (i) * COX_LINES + c, in_origin, \
                                 k.in_pitch),                                            \
                          l + (g) * COX_WIDTH, k.columns))
    FORWARD(DOWN);
}
