/* Tone mapping of one video frame in one pass: HDR samples in, SDR samples out, no plane of light
 * in memory. With COX_ANALYSE the kernel also counts the frame's signal; with COX_MAP 0 it only
 * counts.
 *
 * Formula, for each pixel. Y'CbCr is converted to R'G'B' unless the frame is in R'G'B'. Chroma is
 * interpolated linearly between its samples. The signal is limited to 0 .. 1.
 *     light    L = EOTF(signal), in multiples of SDR white; PQ, HLG with its OOTF, half floats of
 *              light, or signal^2.4 of SDR (BT.1886)
 *     c        = M L, to the output's primaries, BT.709 or with COX_WIDE BT.2020
 *     m        = max(c); with COX_FADE as in picture.cl: c + (m - c) over / (over + 3)
 *     c        = c f(m)/m, limited to -1 .. 1;  f as in picture.cl, pq.clh (BT.2390) or
 *                joined.clh, or the ratio of local.clh instead of f(m)/m
 *     with COX_GAMUT 1: grey y, the luminance of c; d = (y - min(c)) / y, 1 on the edge of BT.709;
 *                from the knee K on
 *                c = y + (c - y) f,  f = (K + x / (1 + x / (1 - K))) / d,  x = d - K
 *                and for blue, w = (1 - f) max(blue - green - 6 red, 0):
 *                green + 0.23 w, blue - 0.8 w
 *                with 2: as in hue.clh
 *     signal   = sign(c) |c|^(1/2.4)      BT.1886 inverted, continued through 0
 *                with COX_ENCODE 1: sign(c) sRGB(|c|);  2: PQ(max(c, 0))
 * BT.1886's signal is straight below |c| = 2^-18, where the power is steeper than single precision
 * can follow. Light outside the gamut keeps its sign until after the average of the chroma. So
 * noise about black stays about black.
 *
 * R'G'B' is converted to Y'CbCr unless the output is R'G'B'. Chroma is averaged with weights 1 2 1
 * (left-sited) or 1 1. The codes are limited to the range of a sample.
 *
 * Histogram: of every block of 2 x 2 pixels the largest R', G' or B' of the input, in COX_BINS
 * steps. In 4:2:0 that is the one of the block's largest Y' with the block's own chroma sample.
 *
 * Black bars: each row has one colour. So a bar's rows are mapped in their first step, which is
 * stored in all columns: the same bits for less arithmetic. Bars are not counted.
 *
 * Geometry. A work-item takes COX_ITEM columns (0 = the whole row) and COX_ITEM_ROWS rows, two rows
 * at a time. Dimension 0 runs over items, dimension 1 over groups of rows of the band. To make a
 * histogram, a work-group of COX_GROUP by 1 counts in local memory (COX_GROUP > 1), or a work-item
 * in private memory (1), before it adds to the result. A step takes 2 COX_WIDTH columns, the even
 * ones in one vector and the odd ones in another, as they lie in words of two samples. The last
 * step of a row reads and writes sample by sample, so no byte outside the rows is touched.
 *
 * Build defines (all required): COX_WIDTH 1, 8 or 16; COX_ITEM, COX_ITEM_ROWS, COX_GROUP; COX_MAP,
 * COX_ANALYSE;
 *     COX_IN_LAYOUT, COX_OUT_LAYOUT    as in samples.clh; no v210 out
 *     COX_IN_BYTES, COX_OUT_BYTES      of a sample
 *     COX_IN_SHIFT, COX_OUT_SHIFT      unused low bits in a sample
 *     COX_IN_DEPTH                     bits of a sample
 *     COX_IN_SUB_X, _Y, COX_OUT_SUB_X, _Y    1 where chroma has half as many columns or rows
 *     COX_IN_SITE, COX_OUT_SITE        0 left, 1 centre, 2 top left
 *     COX_TRANSFER                     0 PQ, 1 HLG, 2 light, 3 SDR
 *     COX_RESHAPE                      1: the codes are reshaped first, see reshape.clh
 *     COX_LUT                          0, or the points along a side of the table that replaces
 *                                      light, c and signal, see lut.clh
 *     COX_FADE                         0 or 1
 *     COX_CURVE                        0 scaled only, 1 rational, 2 rational from a knee,
 *                                      3 BT.2390, 4 local, 5 joined.clh,
 *                                      6 joined.clh (HDR10+), then BT.2390
 *     COX_DITHER, COX_WIDE             0 or 1
 *     COX_GAMUT                        0 clip, 1 compress, 2 keep the hue
 *     COX_ENCODE                       0 BT.1886, 1 sRGB, 2 PQ
 *     COX_HALVE                        1: a pixel is the mean of 2 x 2 pixels of the input, of
 *                                      their signal: of the codes of Y', and of Cb and Cr as
 *                                      they lie between their samples. Sizes are those of the
 *                                      output
 * Sizes, pitches and constants are parameters, so that one compiled kernel serves all films with
 * these defines. Access: luma, colours and v210 ROWS read, chroma of 4:2:0 HALO(1) read, other
 * chroma ROWS, each from its buffer row `origin_...`. If the frame was scaled before, chroma and Y'
 * are each band's own, HALO(0). Outputs are ROWS write. The histogram is REDUCE, zeroed
 * before. With COX_RESHAPE `reshaping` is WHOLE read, and with COX_LUT `lut`. With COX_CURVE 4
 * `base` is HALO(1) read, a row for each row of blocks. Numerics: see detmath.clh. Every result
 * depends on the frame's samples only, not on the cut or COX_WIDTH: sums are taken in one order.
 * The EOTF and related functions are minimax fits, weighted for codes of 10 bits
 * (docs/guide/video.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include "video/samples.clh"
#define SIDE_BY_SIDE
#include "video/signal.clh"

#define COX_BINS 512
/* The existing planes; the last one takes the place of those that are missing. */
#if IN_PLANES == 3
#define IN_1 in_1
#define IN_2 in_2
#define ORIGINS {origin_0, origin_1, origin_2}
#elif IN_PLANES == 2
#define IN_1 in_1
#define IN_2 in_1
#define ORIGINS {origin_0, origin_1, origin_1}
#else
#define IN_1 in_0
#define IN_2 in_0
#define ORIGINS {origin_0, origin_0, origin_0}
#endif
#if OUT_PLANES == 3
#define OUT_1 out_1
#define OUT_2 out_2
#elif OUT_PLANES == 2
#define OUT_1 out_1
#define OUT_2 out_1
#else
#define OUT_1 out_0
#define OUT_2 out_0
#endif
#define STEP (2 * COX_WIDTH)
/* The most columns that a step reads, so that no byte outside the row is touched. */
#if IN_V210
#define REACH (2 * STEP)
#else
#define REACH STEP
#endif

/* --- Vectors of samples --- */

#if COX_WIDTH == 1
typedef ushort half_words;
typedef uchar quarter_words;
#define VLOAD(type, p) (*(__global const type *)(p))
#define VSTORE(type, v, p) (*(__global type *)(p) = (v))
#define TO_UNS(x) convert_uint(x)
#define TO_HALF_WORDS(x) convert_ushort(x)
#define TO_QUARTER_WORDS(x) convert_uchar(x)
#define FIRST_LANE(v) (v)
#define SHIFT_IN(last, v) (last)
#define LAST_LANE(v) (v)
#define LANES 0
#define GATHERED(array) (array)[0]
#define SCATTER(v, array) (array)[0] = (v)
#define STORE_HALF_WORDS(v, p) VSTORE(ushort, v, p)
#define STORE_QUARTER_WORDS(v, p) VSTORE(uchar, v, p)
#else
typedef COX_PASTE(ushort, COX_WIDTH) half_words;
typedef COX_PASTE(uchar, COX_WIDTH) quarter_words;
#define COX_VLOAD COX_PASTE(vload, COX_WIDTH)
#define COX_VSTORE COX_PASTE(vstore, COX_WIDTH)
#define VLOAD(type, p) PLACED_AT(COX_PASTE(type, COX_WIDTH), p)
#define VSTORE(type, v, p) COX_VSTORE(v, 0, (__global type *)(p))
#define TO_UNS(x) COX_PASTE(convert_uint, COX_WIDTH)(x)
#define TO_HALF_WORDS(x) COX_PASTE(convert_ushort, COX_WIDTH)(x)
#define TO_QUARTER_WORDS(x) COX_PASTE(convert_uchar, COX_WIDTH)(x)
#define FIRST_LANE(v) (v).s0
#define GATHERED(array) COX_VLOAD(0, array)
#define SCATTER(v, array) COX_VSTORE(v, 0, array)
#if COX_WIDTH == 16
#define LAST_LANE(v) (v).sf
#define SHIFT_IN(last, v) ((real)(last, (v).s01234567, (v).s89ab, (v).scd, (v).se))
#define LANES (sint)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define STORE_HALF_WORDS(v, p) vstore8(as_uint8(v), 0, (__global uint *)(p))
#define STORE_QUARTER_WORDS(v, p) vstore4(as_uint4(v), 0, (__global uint *)(p))
#else
#define LAST_LANE(v) (v).s7
#define SHIFT_IN(last, v) ((real)(last, (v).s0123, (v).s45, (v).s6))
#define LANES (sint)(0, 1, 2, 3, 4, 5, 6, 7)
#define STORE_HALF_WORDS(v, p) vstore4(as_uint4(v), 0, (__global uint *)(p))
#define STORE_QUARTER_WORDS(v, p) vstore2(as_uint2(v), 0, (__global uint *)(p))
#endif
#endif

/* Sums of chroma samples: 16 bits hold sixteen of 12 bits. */
#if COX_IN_DEPTH <= 12
typedef ushort sum;
typedef half_words sums;
#define TO_SUMS(x) TO_HALF_WORDS(x)
#define SUMS_TO_REAL(x) TO_REAL(x)
#else
typedef uint sum;
typedef uns sums;
#define TO_SUMS(x) (x)
#define SUMS_TO_REAL(x) TO_REAL(AS_SINT(x))
#endif

#if IN_V210
/* Components c, c + 4, c + 8, ... of a row. */
#if COX_WIDTH == 16
static inline uns components(__global const uchar *row, int c)
{
    __global const uchar *at = row + 4 * (c / 3);
    const uint16 a = PLACED_AT(uint16, at);
    const uint8 b = PLACED_AT(uint8, at + 64);
    /* in its word; the vector's element k is component first + 4 k of these words */
    const int first = c % 3;
    uns words;
    if (first == 0)
        words = (uint16)(a.s0124, a.s5689, a.sacde, b.s0124) >> TURNS(0, 10, 20);
    else if (first == 1)
        words = (uint16)(a.s0134, a.s5789, a.sbcdf, b.s0134) >> TURNS(10, 20, 0);
    else
        words = (uint16)(a.s0234, a.s678a, a.sbcef, b.s0234) >> TURNS(20, 0, 10);
    return words & (uns)(0x3ffu);
}
#else
static inline uns components(__global const uchar *row, int c)
{
    uint words[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++)
        words[k] = component(row, c + 4 * k);
    return GATHERED(words);
}
#endif
#endif

/* Two neighbouring samples in one word, the left one in the low bits, and the parts of a vector of
 * them. */
#if IN_V210
#define IN_PAIRS(row, x) (components(row, 2 * (x) + 1) | components(row, 2 * (x) + 3) << 16)
#define LEFT(pairs) ((pairs) & (uns)(0xffffu))
#define RIGHT(pairs) ((pairs) >> 16)
#define IN_SAMPLE(row, x) component(row, 2 * (x) + 1)
#elif COX_IN_BYTES == 1
#define IN_PAIRS(row, x) TO_UNS(VLOAD(ushort, (row) + (x)))
#define LEFT(pairs) ((pairs) & (uns)(0xffu))
#define RIGHT(pairs) ((pairs) >> 8)
#define IN_SAMPLE(row, x) ((uint)(row)[x])
#else
#define IN_PAIRS(row, x) VLOAD(uint, (row) + 2 * (x))
#define LEFT(pairs) (((pairs) & (uns)(0xffffu)) >> COX_IN_SHIFT)
#define RIGHT(pairs) ((pairs) >> (16 + COX_IN_SHIFT))
/* Not PLACED_AT: with that PoCL 3.1 keeps less of the arithmetic in registers, and the kernel is a
 * tenth slower. */
#define IN_SAMPLE(row, x) ((uint)((__global const ushort *)(row))[x])
#endif
#define PAIR_BITS (8 * COX_IN_BYTES)
/* Where Cb (which = 0) and Cr lie in one row. */
#if IN_V210
#define IN_CHROMA(row, which, i) component(row, 4 * (i) + 2 * (which))
#elif COX_IN_LAYOUT == 1
#define IN_CHROMA(row, which, i) (IN_SAMPLE(row, 2 * (i) + (which)) >> COX_IN_SHIFT)
#endif

static inline uns edge_pairs(__global const uchar *row, int x, int columns)
{
    uint words[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++) {
        const int left = clamp(x + 2 * k, 0, columns - 1),
                  right = clamp(x + 2 * k + 1, 0, columns - 1);
        words[k] = IN_SAMPLE(row, left) | IN_SAMPLE(row, right) << PAIR_BITS;
    }
    return GATHERED(words);
}

#if COX_HALVE
/* Every second value of two consecutive vectors. */
#if COX_WIDTH == 1
#define EVEN_OF(a, b) (a)
#define ODD_OF(a, b) (b)
#else
#define EVEN_OF(a, b) ((uns)((a).even, (b).even))
#define ODD_OF(a, b) ((uns)((a).odd, (b).odd))
#endif
#endif

/* --- Chroma in --- */

struct chroma {
    sums u, v;
};

/* A row of the frame's chroma: the nearest plane row and the next one. */
struct chroma_rows {
    __global const uchar *near_u, *far_u, *near_v, *far_v;
};

#if COX_IN_SUB_X && !COX_HALVE
/* Chroma samples at plane columns i, i + 1, ... of one plane row. */
static inline struct chroma chroma_samples(__global const uchar *u, __global const uchar *v, int i,
                                           int columns, bool edge)
{
    struct chroma c;
    if (edge) {
        sum us[COX_WIDTH], vs[COX_WIDTH];
        for (int k = 0; k < COX_WIDTH; k++) {
            const int at = clamp(i + k, 0, columns - 1);
#ifdef IN_CHROMA
            us[k] = IN_CHROMA(u, 0, at);
            vs[k] = IN_CHROMA(u, 1, at);
#else
            us[k] = IN_SAMPLE(u, at) >> COX_IN_SHIFT;
            vs[k] = IN_SAMPLE(v, at) >> COX_IN_SHIFT;
#endif
        }
        c.u = GATHERED(us);
        c.v = GATHERED(vs);
        return c;
    }
#if COX_IN_LAYOUT == 1
    const uns pairs = IN_PAIRS(u, 2 * i);
    c.u = TO_SUMS(LEFT(pairs));
    c.v = TO_SUMS(RIGHT(pairs));
#elif IN_V210
    c.u = TO_SUMS(components(u, 4 * i));
    c.v = TO_SUMS(components(u, 4 * i + 2));
#elif COX_IN_BYTES == 1
    c.u = TO_SUMS(VLOAD(uchar, u + i));
    c.v = TO_SUMS(VLOAD(uchar, v + i));
#elif COX_IN_DEPTH <= 12
    c.u = VLOAD(ushort, u + 2 * i) >> COX_IN_SHIFT;
    c.v = VLOAD(ushort, v + 2 * i) >> COX_IN_SHIFT;
#else
    c.u = TO_UNS(VLOAD(ushort, u + 2 * i)) >> COX_IN_SHIFT;
    c.v = TO_UNS(VLOAD(ushort, v + 2 * i)) >> COX_IN_SHIFT;
#endif
    return c;
}

/* The same, interpolated between plane rows: sums of four samples, or of two with COX_IN_SITE 2. */
static inline struct chroma chroma_between(const struct chroma_rows *rows, int i, int columns,
                                           bool edge)
{
    struct chroma c = chroma_samples(rows->near_u, rows->near_v, i, columns, edge);
#if COX_IN_SUB_Y
    const struct chroma far = chroma_samples(rows->far_u, rows->far_v, i, columns, edge);
#if COX_IN_SITE != 2
    c.u = c.u + c.u + c.u;
    c.v = c.v + c.v + c.v;
#endif
    c.u = c.u + far.u;
    c.v = c.v + far.v;
#endif
    return c;
}

#if COX_IN_SITE == 1
/* All bits of the lanes whose odd column is past the last one. */
static inline sums past_end(int x, int columns)
{
    sum bits[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++)
        bits[k] = x + 2 * k + 1 >= columns ? ~0 : 0;
    return GATHERED(bits);
}
#endif
#endif

/* A block of 2 x 2 pixels has one sample of Cb and Cr, which counts CHROMA_UNIT times. */
#define SHARED_CHROMA (COX_IN_SUB_Y && !COX_HALVE && !COX_RESHAPE && !IN_RGBA)
#define CHROMA_UNIT ((COX_IN_SITE == 1 ? 4 : 2) * (COX_IN_SITE == 2 ? 2 : 4))

/* --- The operator --- */

#include "video/lut.clh"

/* Luminance with the output's primaries. */
#if COX_WIDE
#define LUMINANCE(r, g, b) \
    MULADD(r, REAL(0.2627f), MULADD(g, REAL(0.6780f), (b) * REAL(0.0593f)))
#else
#define LUMINANCE(r, g, b) det_luminance(r, g, b)
#endif

/* A step is a block of two rows, in twelve vectors. The upper row has red, green and blue of its
 * even columns, then of its odd ones. The lower row follows in the same order. If the lower row is
 * missing, it is the upper one again. */

/* Compressed into the gamut, light has no negative parts except for rounding, and needs no sign.
 * Reshaped light may have a negative luminance. */
#if COX_GAMUT == 1 && !COX_RESHAPE
#define SIZE_OF(x) det_max(x, REAL(0.0f))
#define WITH_SIGN_OF(x, size) (size)
#else
#define SIZE_OF(x) AS_REAL(AS_SINT(x) & SINT(0x7fffffff))
#define WITH_SIGN_OF(x, size) AS_REAL(AS_SINT(size) | (AS_SINT(x) & SINT(0x80000000)))
#endif

#if COX_ENCODE == 2
/* PQ (SMPTE ST 2084) of x, which is limited to 0 .. 1. Light below 2^-40 is black. */
INLINE void encode(real *x, const struct video_params *k)
{
    real p[3 * PIXELS], q[3 * PIXELS];
    COLOURS(p[i] = det_min(det_max(x[i], REAL(0x1p-40f)), REAL(1.0f)) * REAL(k->out_light))
    COLOURS(p[i] = det_exp2(det_log2(det_max(p[i], REAL(0x1p-60f))) * REAL(0.1593017578f)))
    COLOURS(q[i] = det_rcp(MULADD(p[i], REAL(18.6875f), REAL(1.0f))))
    COLOURS(q[i] = q[i] * MULADD(p[i], REAL(18.8515625f), REAL(0.8359375f)))
    COLOURS(x[i] = det_exp2(det_log2(q[i]) * REAL(78.84375f)))
}
#elif COX_ENCODE == 1
/* sRGB of |x| with the sign of x, |x| limited to 1. Error 7.1e-6. */
INLINE void encode(real *x, const struct video_params *k)
{
    COLOURS(const real size = det_min(SIZE_OF(x[i]), REAL(1.0f));
            x[i] = WITH_SIGN_OF(x[i], det_srgb16(size)))
}
#else
/* |x|^(1/2.4) with the sign of x, |x| limited to 1. Below 2^-18 it is straight, because the power
 * becomes infinitely steep. The line is below the power there, and above it elsewhere. Relative
 * error 1.1e-4. */
INLINE void encode(real *x, const struct video_params *k)
{
    real size[3 * PIXELS], p[3 * PIXELS], n[3 * PIXELS];
    COLOURS(size[i] = det_min(SIZE_OF(x[i]), REAL(1.0f)))
    /* 5/12 log2: the bits as an integer are the exponent and, for the logarithm of the mantissa m,
     * m - 1; the polynomial of m is the rest. */
    COLOURS(n[i] = AS_REAL((AS_SINT(size[i]) & SINT(0x007fffff)) | SINT(0x3f800000)))
    COLOURS(p[i] = MULADD(n[i], REAL(-0.03401181149f), REAL(0.2688401644f)))
    COLOURS(p[i] = MULADD(n[i], p[i], REAL(-0.8836814842f)))
    COLOURS(p[i] = MULADD(n[i], p[i], REAL(1.27926753f)))
    COLOURS(p[i] = MULADD(n[i], p[i], REAL(-53.54704459f)))
    COLOURS(p[i] = MULADD(TO_REAL(AS_SINT(size[i])), REAL(0x1.aaaaaap-25f), p[i]))
    COLOURS(n[i] = p[i] + REAL(12582912.0f)) /* 2^, as in det_exp2 */
    COLOURS(p[i] = p[i] - (n[i] - REAL(12582912.0f)))
    real q[3 * PIXELS];
    COLOURS(q[i] = MULADD(p[i], REAL(0.05517166737f), REAL(0.2426111344f)))
    COLOURS(q[i] = MULADD(p[i], q[i], REAL(0.6932609871f)))
    COLOURS(q[i] = MULADD(p[i], q[i], REAL(0.9999280723f)))
    COLOURS(
        const real power = AS_REAL(AS_SINT(q[i]) + (AS_SINT(n[i]) << 23));
        const real result = det_min(power, size[i] * REAL(1448.154688f));
        x[i] = WITH_SIGN_OF(x[i], result))
}
#endif

/* 1/x as in det_rcp but with a shorter last step: relative error 4e-6, the same for all three
 * colours. */
static inline real reciprocal(real x)
{
    real y = AS_REAL(SINT(0x7ef311c3) - AS_SINT(x));
    real e = MULADD(-x, y, REAL(1.0f));
    y = MULADD(y, MULADD(e, e, e), y);
    e = MULADD(-x, y, REAL(1.0f));
    return MULADD(y, e, y);
}

/* Whether some pixel of a vector needs what follows. */
#if COX_WIDTH == 1
#define ANY(condition) (condition)
#else
#define ANY(condition) any_lane(condition)

/* any() of the results of comparisons. PoCL 3.1's any() jumps once for each lane. */
static inline bool any_lane(sint condition)
{
#if COX_WIDTH == 16
    const int8 eight = condition.lo | condition.hi;
#else
    const int8 eight = condition;
#endif
    const ulong2 two = as_ulong2(eight.lo | eight.hi);
    return (two.x | two.y) != 0;
}
#endif

/* The input of a block of four pixels besides its samples. */
#define LOCAL (COX_MAP && COX_CURVE == 4)
#if LOCAL
#define MODEL_TYPE struct local_model
#define MODEL_AT(x) local_model_at(&model_rows, (x) / 2)
#elif COX_LUT
#define MODEL_TYPE __global const float4 *
#define MODEL_AT(x) lut
#else
#define MODEL_TYPE int
#define MODEL_AT(x) 0
#endif

/* The factor of the operator for a pixel whose largest colour is m. */
static inline real ratio_of(real m, MODEL_TYPE model, const struct video_params *k)
{
#if LOCAL
    return local_ratio(m, model, &k->surround);
#elif COX_CURVE == 1
    const real below = MULADD(MULADD(m, REAL(k->b2), REAL(k->b1)), m, REAL(k->b0));
    return MULADD(m, REAL(k->a2), REAL(k->a1)) * reciprocal(below);
#elif COX_CURVE == 2
    const real below = MULADD(MULADD(m, REAL(k->b2), REAL(k->b1)), m, REAL(k->b0)) * m;
    const real above = MULADD(MULADD(m, REAL(k->a2), REAL(k->a1)), m, REAL(k->a0));
    return PICK(m < REAL(k->knee), REAL(1.0f), reciprocal(below) * above);
#elif COX_CURVE == 3
    return bt2390(m, &k->bt2390) * reciprocal(m);
#elif COX_CURVE == 5
    return joined(m, &k->joined) * reciprocal(m);
#elif COX_CURVE == 6
    return bt2390(joined(m, &k->joined), &k->bt2390) * reciprocal(m);
#else
    return REAL(1.0f);
#endif
}

#if COX_GAMUT == 2
#include "video/hue.clh"
#elif COX_GAMUT == 1
/* The factor of c - y is f = y (u - K^2 y) / (u (u + (1 - 2 K) y)), u = y - min(c): one quotient.
 * Black or less becomes grey, because no other colour of that luminance is inside. Both factors of
 * the denominator are 2^-40 at least: smaller values are noise around black, and the product stays
 * a normal number. Colours inside the knee keep their bits, so a vector of them skips the rest. */
INLINE void compress_gamut(real *c, const struct video_params *k)
{
    const real y = LUMINANCE(c[0], c[1], c[2]);
    const real u = det_max(y - det_min(c[0], det_min(c[1], c[2])), REAL(0x1p-40f));
    const sint outside = u >= y * REAL(k->gamut_knee);
    if (!ANY(outside))
        return;

    const real below = u * det_max(MULADD(y, REAL(k->gamut_rest), u), REAL(0x1p-40f));
    const real f = det_max(y * MULADD(y, REAL(k->gamut_square), u) * reciprocal(below), REAL(0.0f));
    const real rest = PICK(outside, REAL(1.0f) - f, REAL(0.0f));
    THREE(c[i] = MULADD(y - c[i], rest, c[i]))

    /* a straight line to grey turns blue violet */
    const real blue = det_max(MULADD(c[0], REAL(-6.0f), c[2] - c[1]), REAL(0.0f)) * rest;
    c[1] = MULADD(blue, REAL(0.23f), c[1]);
    c[2] = MULADD(blue, REAL(-0.8f), c[2]);
}
#endif

#if COX_FADE
/* Light over the middle of the range fades to white. The rest keeps its bits, so a vector without
 * such light skips the quotient. m: the largest colour. */
INLINE void fade(real *c, real m, const struct video_params *k)
{
    real over = LUMINANCE(c[0], c[1], c[2]) - REAL(k->fade);
    if (!ANY(over > REAL(0.0f)))
        return;

    over = det_max(over, REAL(0.0f)) * REAL(k->fade_speed);
    const real white = over * reciprocal(over + REAL(3.0f));
    THREE(c[i] = MULADD(m - c[i], white, c[i]))
}
#endif

/* The light of a pixel, mapped to that of the output. */
INLINE void map_light(real *c, MODEL_TYPE model, const struct video_params *k)
{
    primaries(c, k);
    const real m = det_max(det_max(c[0], det_max(c[1], c[2])), REAL(0x1p-40f));
#if COX_FADE
    fade(c, m, k);
#endif
#if COX_CURVE != 0
    const real ratio = ratio_of(m, model, k);
    THREE(c[i] = c[i] * ratio)
#endif
#if COX_GAMUT == 2
    keep_hue(c, k);
#elif COX_GAMUT == 1
    compress_gamut(c, k);
#endif
}

/* Map the input's signal to the output's, for PIXELS pixels. */
INLINE void map_pixels(real *x, MODEL_TYPE model, const struct video_params *k)
{
    eotf(x, k);
    EACH_PIXEL(map_light(x + 3 * i, model, k))
    encode(x, k);
}

/* The same for a block. If PIXELS is 1, the loop is not unrolled. The pixels side by side would
 * need more registers than the CPU has. A third of the instructions would then move values. */
INLINE void map_block(real *x, MODEL_TYPE model, const struct video_params *k)
{
#if COX_LUT
    look_up(x, model);
    look_up(x + 6, model);
#elif COX_WIDTH > 1 && PIXELS == 1
#pragma unroll 1
    for (int pixel = 0; pixel < 4; pixel++)
        map_pixels(x + 3 * pixel, model, k);
#elif PIXELS == 2
    map_pixels(x, model, k);
    map_pixels(x + 6, model, k);
#else
    map_pixels(x, model, k);
    map_pixels(x + 3, model, k);
    map_pixels(x + 6, model, k);
    map_pixels(x + 9, model, k);
#endif
}

/* --- Rows in --- */

struct source_row {
#if COX_HALVE
    /* of each plane the two rows, or with 4:2:0 the nearest one twice */
    __global const uchar *first[3], *second[3];
    __global const uchar *above[2], *below[2];  /* chroma of 4:2:0: its neighbours */
#elif IN_RGBA
    __global const uchar *rgba;
#else
    __global const uchar *luma;
    struct chroma_rows chroma;
#endif
};

#if COX_HALVE && !IN_RGBA
struct halves {
    uns even, odd;
};

/* All bits of the lanes whose odd column is past the last one, which is then repeated. */
static inline uns past_end(int x, int columns)
{
    uint bits[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++)
        bits[k] = x + 2 * k + 1 >= columns ? ~0u : 0u;
    return GATHERED(bits);
}

/* Sums of the four samples under each pixel. */
INLINE struct halves sums_of_four(__global const uchar *first, __global const uchar *second, int x,
                                  int columns, bool edge)
{
    uns sum[2];
    for (int i = 0; i < 2; i++) {
        const int at = 2 * x + i * STEP;
        const uns upper = edge ? edge_pairs(first, at, columns) : IN_PAIRS(first, at);
        const uns lower = edge ? edge_pairs(second, at, columns) : IN_PAIRS(second, at);
        sum[i] = (LEFT(upper) + RIGHT(upper)) + (LEFT(lower) + RIGHT(lower));
    }
    struct halves h;
    h.even = EVEN_OF(sum[0], sum[1]);
    h.odd = ODD_OF(sum[0], sum[1]);
    return h;
}

#if COX_IN_SUB_X
/* Samples i, i + 2, ... and i + 1, i + 3, ... of one row of chroma; `which`: Cb or Cr. If Cb and Cr
 * have separate planes, i is even: a GPU reads aligned pairs only. */
INLINE struct halves every_second(__global const uchar *row, int which, int i, int columns,
                                  bool edge)
{
    struct halves h;
#ifdef IN_CHROMA
    if (edge) {
        uint even[COX_WIDTH], odd[COX_WIDTH];
        for (int k = 0; k < COX_WIDTH; k++) {
            even[k] = IN_CHROMA(row, which, clamp(i + 2 * k, 0, columns - 1));
            odd[k] = IN_CHROMA(row, which, clamp(i + 2 * k + 1, 0, columns - 1));
        }
        h.even = GATHERED(even);
        h.odd = GATHERED(odd);
        return h;
    }
#if IN_V210
    const uns here = components(row, 4 * i + 2 * which),
              next = components(row, 4 * (i + COX_WIDTH) + 2 * which);
#else
    const uns a = IN_PAIRS(row, 2 * i), b = IN_PAIRS(row, 2 * i + STEP);
    const uns here = which ? RIGHT(a) : LEFT(a), next = which ? RIGHT(b) : LEFT(b);
#endif
    h.even = EVEN_OF(here, next);
    h.odd = ODD_OF(here, next);
#else
    const uns pairs = edge ? edge_pairs(row, i, columns) : IN_PAIRS(row, i);
    h.even = LEFT(pairs);
    h.odd = RIGHT(pairs);
#endif
    return h;
}

/* The same, weighted over the chroma rows around the two rows of pixels. */
INLINE struct halves between_rows(const struct source_row *row, int which, int i, int columns,
                                  bool edge)
{
    struct halves h = every_second(row->first[1 + which], which, i, columns, edge);
    const struct halves below = every_second(COX_IN_SUB_Y ? row->below[which]
                                                          : row->second[1 + which],
                                             which, i, columns, edge);
#if COX_IN_SUB_Y && COX_IN_SITE != 2
    const struct halves above = every_second(row->above[which], which, i, columns, edge);
    h.even = (h.even * (uns)(6u) + above.even) + below.even;
    h.odd = (h.odd * (uns)(6u) + above.odd) + below.odd;
#elif COX_IN_SUB_Y
    h.even = h.even * (uns)(3u) + below.even;
    h.odd = h.odd * (uns)(3u) + below.odd;
#else
    h.even = h.even + below.even;
    h.odd = h.odd + below.odd;
#endif
    return h;
}

/* And over the columns. */
INLINE struct halves chroma_of(const struct source_row *row, int which, int x, bool edge,
                                      const struct video_params *k)
{
    const int columns = k->chroma_width;
    const struct halves here = between_rows(row, which, x, columns, edge);
#ifdef IN_CHROMA
    const uns next = between_rows(row, which, x + 1, columns, edge).odd;
#else /* samples are read in pairs, which begin at even columns only */
    const uns next = between_rows(row, which, x + 2, columns, edge).even;
#endif
    struct halves h;
#if COX_IN_SITE == 1
#ifdef IN_CHROMA
    const uns last = between_rows(row, which, x - 1, columns, edge).even;
#else
    const uns last = between_rows(row, which, x - 2, columns, edge).odd;
#endif
    h.even = (here.even * (uns)(6u) + last) + here.odd;
    h.odd = (here.odd * (uns)(6u) + here.even) + next;
#else
    h.even = here.even * (uns)(3u) + here.odd;
    h.odd = here.odd * (uns)(3u) + next;
#endif
    return h;
}
#else
INLINE struct halves chroma_of(const struct source_row *row, int which, int x, bool edge,
                                      const struct video_params *k)
{
    return sums_of_four(row->first[1 + which], row->second[1 + which], x, 2 * k->width, edge);
}
#endif

INLINE void read_row(const struct source_row *row, int x, bool edge, const struct video_params *k,
                     real *s)
{
    struct halves y = sums_of_four(row->first[0], row->second[0], x, 2 * k->width, edge);
    struct halves u = chroma_of(row, 0, x, edge, k), v = chroma_of(row, 1, x, edge, k);
    if (edge) {
        const uns again = past_end(x, k->width);
        y.odd = (y.odd & ~again) | (y.even & again);
        u.odd = (u.odd & ~again) | (u.even & again);
        v.odd = (v.odd & ~again) | (v.even & again);
    }
    rgb_signal(TO_REAL(AS_SINT(y.even)), TO_REAL(AS_SINT(u.even)), TO_REAL(AS_SINT(v.even)), k, s);
    rgb_signal(TO_REAL(AS_SINT(y.odd)), TO_REAL(AS_SINT(u.odd)), TO_REAL(AS_SINT(v.odd)), k, s + 3);
}
#elif IN_RGBA
/* Pixels x, x + step, .... */
static inline void rgba_samples(__global const uchar *row, int x, int step, int columns,
                                const struct video_params *k, real *c)
{
    int r[COX_WIDTH], g[COX_WIDTH], b[COX_WIDTH];
    for (int i = 0; i < COX_WIDTH; i++) {
        const pixel p = PIXEL_AT(row, min(x + step * i, columns - 1));
        r[i] = RED_OF(p);
        g[i] = GREEN_OF(p);
        b[i] = BLUE_OF(p);
    }
    c[0] = rgba_signal(GATHERED(r), k);
    c[1] = rgba_signal(GATHERED(g), k);
    c[2] = rgba_signal(GATHERED(b), k);
}

INLINE void read_row(const struct source_row *row, int x, bool edge, const struct video_params *k,
                     real *s)
{
#if COX_HALVE
    for (int column = 0; column < 2; column++) {
        real c[4][3];
        for (int i = 0; i < 4; i++)
            rgba_samples(i / 2 ? row->second[0] : row->first[0], 2 * (x + column) + i % 2, 4,
                         /* past the end, the last pixel is repeated */
                         2 * k->width - 1 + i % 2, k, c[i]);
        for (int i = 0; i < 3; i++)
            s[3 * column + i] = ((c[0][i] + c[1][i]) + (c[2][i] + c[3][i])) * REAL(0.25f);
    }
#else
    rgba_samples(row->rgba, x, 2, k->width, k, s);
    rgba_samples(row->rgba, x + 1, 2, k->width, k, s + 3);
#endif
}
#else
static inline void to_rgb(uns luma, sums u, sums v, const struct video_params *k, real *s)
{
    rgb_signal(TO_REAL(AS_SINT(luma)), SUMS_TO_REAL(u), SUMS_TO_REAL(v), k, s);
}

INLINE void read_row(const struct source_row *row, int x, bool edge, const struct video_params *k,
                     real *s)
{
    const uns luma = edge ? edge_pairs(row->luma, x, k->width) : IN_PAIRS(row->luma, x);
#if COX_IN_SUB_X == 0
    const uns u = edge ? edge_pairs(row->chroma.near_u, x, k->width)
                       : IN_PAIRS(row->chroma.near_u, x);
    const uns v = edge ? edge_pairs(row->chroma.near_v, x, k->width)
                       : IN_PAIRS(row->chroma.near_v, x);
    const sums even_u = TO_SUMS(LEFT(u)), odd_u = TO_SUMS(RIGHT(u));
    const sums even_v = TO_SUMS(LEFT(v)), odd_v = TO_SUMS(RIGHT(v));
#else
    const int i = x / 2;
    const struct chroma here = chroma_between(&row->chroma, i, k->chroma_width, edge);
    const struct chroma next = chroma_between(&row->chroma, i + 1, k->chroma_width, edge);
#if COX_IN_SITE == 1
    const struct chroma last = chroma_between(&row->chroma, i - 1, k->chroma_width, edge);
    const sums here_u = here.u + here.u + here.u, here_v = here.v + here.v + here.v;
    const sums even_u = last.u + here_u, even_v = last.v + here_v;
    sums odd_u = here_u + next.u, odd_v = here_v + next.v;
    if (edge) { /* past an odd width, the last column is repeated */
        const sums again = past_end(x, k->width);
        odd_u = (odd_u & ~again) | (even_u & again);
        odd_v = (odd_v & ~again) | (even_v & again);
    }
#else
    const sums even_u = here.u + here.u, odd_u = here.u + next.u;
    const sums even_v = here.v + here.v, odd_v = here.v + next.v;
#endif
#endif
    to_rgb(LEFT(luma), even_u, even_v, k, s);
    to_rgb(RIGHT(luma), odd_u, odd_v, k, s + 3);
}
#endif

/* The rows at which the memory of the planes begins. */
struct origins {
    int luma, u, v;
};

/* The band's row y, or its replacement if it is missing. */
INLINE struct source_row source_at(__global const uchar *in_0, __global const uchar *in_1,
                                   __global const uchar *in_2, int y, bool lower, int first,
                                   struct origins origins, const struct video_params *k)
{
    struct source_row row;
    const int here = first + y;
#if COX_HALVE
    __global const uchar *planes[3] = {in_0, in_1, in_2};
    const int begin[3] = {origins.luma, origins.u, origins.v};
    for (int p = 0; p < IN_PLANES; p++) {
        row.first[p] = planes[p] + (size_t)(2 * (here - begin[p])) * k->in_pitch[p];
        row.second[p] = row.first[p] + k->in_pitch[p];
    }
#if COX_IN_SUB_Y
    const int above = max(here - 1, 0), below = min(here + 1, k->chroma_height - 1);
    for (int p = 1; p < IN_PLANES; p++) {
        row.first[p] = planes[p] + (size_t)(here - begin[p]) * k->in_pitch[p];
        row.second[p] = row.first[p];
        row.above[p - 1] = planes[p] + (size_t)(above - begin[p]) * k->in_pitch[p];
        row.below[p - 1] = planes[p] + (size_t)(below - begin[p]) * k->in_pitch[p];
    }
#endif
#if COX_IN_LAYOUT == 1
    row.first[2] = row.first[1];
    row.second[2] = row.second[1];
    row.above[1] = row.above[0];
    row.below[1] = row.below[0];
#elif IN_V210
    row.first[1] = row.first[2] = row.first[0];
    row.second[1] = row.second[2] = row.second[0];
#endif
#elif IN_RGBA
    row.rgba = in_0 + (size_t)(here - origins.luma) * k->in_pitch[0];
#else
    row.luma = in_0 + (size_t)(here - origins.luma) * k->in_pitch[0];
    int near = here, far = here;
#if COX_IN_SUB_Y
    near = here / 2;
#if COX_IN_SITE == 2
    far = near + lower; /* the upper row has its own chroma */
#else
    far = near + (lower ? 1 : -1);
#endif
    far = clamp(far, 0, k->chroma_height - 1);
#endif
    row.chroma.near_u = in_1 + (size_t)(near - origins.u) * k->in_pitch[1];
    row.chroma.far_u = in_1 + (size_t)(far - origins.u) * k->in_pitch[1];
    row.chroma.near_v = in_2 + (size_t)(near - origins.v) * k->in_pitch[2];
    row.chroma.far_v = in_2 + (size_t)(far - origins.v) * k->in_pitch[2];
#endif
    return row;
}

/* --- Codes out --- */

#if COX_MAP
/* Blue and red differences: B' - Y' and R' - Y'. */
struct ycc {
    real y, cb, cr;
};

INLINE struct ycc to_ycc(const real *c)
{
    struct ycc out;
    out.y = LUMINANCE(c[0], c[1], c[2]);
    out.cb = c[2] - out.y;
    out.cr = c[0] - out.y;
    return out;
}

/* The step of the pattern, (bayer + 1/2)/64, for columns x, x + step, ... of row y. */
static inline real pattern(int x, int step, int y)
{
#if COX_DITHER
#if COX_WIDTH > 1
    x %= 2; /* a step begins at a multiple of the pattern's 8 columns; so it is computed once */
#endif
    const sint column = LANES * SINT(step) + SINT(x);
    return MULADD(TO_REAL(BAYER(column ^ SINT(y), y)), REAL(0x1p-6f), REAL(0x1p-7f));
#else
    return REAL(0.0f);
#endif
}

/* Round to a code: to the nearest, or up where the pattern requires it. The caller limits the
 * result to the largest code. */
static inline real to_code(real x, float scale, float offset, real dither)
{
#if COX_DITHER
    return det_max(MULADD(x, REAL(scale), REAL(offset)) + dither, REAL(0.0f));
#else
    return det_max(MULADD(x, REAL(scale), REAL(offset + 0.5f)), REAL(0.0f));
#endif
}

/* x <= 1, which has its own code. */
static inline uns luma_code(real x, real dither, const struct video_params *k)
{
    return AS_UNS(TO_SINT(to_code(x, k->out_luma_scale, k->out_luma_0, dither)));
}

static inline uns chroma_code(real x, float scale, real dither, const struct video_params *k)
{
    return AS_UNS(TO_SINT(det_min(to_code(x, scale, k->out_chroma_0, dither), REAL(k->out_max))));
}

#if COX_OUT_BYTES == 1
typedef __global uchar *sample_pointer;
#else
typedef __global ushort *sample_pointer;
#endif

/* Store codes of even and odd columns, interleaved, from column x on. */
static inline void store_pairs(__global uchar *row, int x, uns even, uns odd, int columns,
                               bool edge)
{
    if (edge) {
        uint left[COX_WIDTH], right[COX_WIDTH];
        SCATTER(even, left);
        SCATTER(odd, right);
        sample_pointer at = (sample_pointer)row;
        for (int k = 0; k < COX_WIDTH; k++) {
            if (x + 2 * k < columns)
                at[x + 2 * k] = left[k] << COX_OUT_SHIFT;
            if (x + 2 * k + 1 < columns)
                at[x + 2 * k + 1] = right[k] << COX_OUT_SHIFT;
        }
        return;
    }
#if COX_OUT_BYTES == 1
    STORE_HALF_WORDS(TO_HALF_WORDS(even | odd << 8), row + x);
#else
    VSTORE(uint, (even | odd << 16) << COX_OUT_SHIFT, row + 2 * x);
#endif
}

/* Codes from column x on. */
static inline void store_samples(__global uchar *row, int x, uns codes, int columns, bool edge)
{
    if (edge) {
        uint words[COX_WIDTH];
        SCATTER(codes, words);
        sample_pointer at = (sample_pointer)row;
        for (int k = 0; k < COX_WIDTH && x + k < columns; k++)
            at[x + k] = words[k] << COX_OUT_SHIFT;
        return;
    }
#if COX_OUT_BYTES == 1
    STORE_QUARTER_WORDS(TO_QUARTER_WORDS(codes), row + x);
#else
    STORE_HALF_WORDS(TO_HALF_WORDS(codes << COX_OUT_SHIFT), row + 2 * x);
#endif
}

#if OUT_RGBA
static inline void store_rgba(__global uchar *row, int x, const real *c, int y,
                              const struct video_params *k)
{
    const real dither = pattern(x, 2, y);
    const int blue_first = COX_OUT_LAYOUT == 3;
    uint first[COX_WIDTH], second[COX_WIDTH], third[COX_WIDTH];
    SCATTER(luma_code(c[blue_first ? 2 : 0], dither, k), first);
    SCATTER(luma_code(c[1], dither, k), second);
    SCATTER(luma_code(c[blue_first ? 0 : 2], dither, k), third);
    __global uint *at = (__global uint *)row;
    for (int n = 0; n < COX_WIDTH && x + 2 * n < k->width; n++) {
#if COX_OUT_BYTES == 1
        at[x + 2 * n] = first[n] | second[n] << 8 | third[n] << 16 | 0xff000000u;
#else
        at[2 * (x + 2 * n)] = first[n] | second[n] << 16;
        at[2 * (x + 2 * n) + 1] = third[n] | 0xffff0000u;
#endif
    }
}
#endif

struct target_row {
    __global uchar *plane[3];
};

INLINE struct target_row target_at(__global uchar *out_0, __global uchar *out_1,
                                   __global uchar *out_2, int y, const struct video_params *k)
{
    struct target_row row;
    const int chroma = COX_OUT_SUB_Y ? y / 2 : y;
    row.plane[0] = out_0 + (size_t)y * k->out_pitch[0];
    row.plane[1] = out_1 + (size_t)chroma * k->out_pitch[1];
    row.plane[2] = out_2 + (size_t)chroma * k->out_pitch[2];
    return row;
}

/* Pixels, planes of colours, or luma and chroma that is not subsampled, of frame row y. */
INLINE void store_row(const struct target_row *out, int x, int y, const real *c, bool edge,
                      const struct video_params *k)
{
#if OUT_RGBA
    store_rgba(out->plane[0], x, c, y, k);
    store_rgba(out->plane[0], x + 1, c + 3, y, k);
#else
    const real even = pattern(x, 2, y), odd = pattern(x + 1, 2, y);
#if OUT_GBR
    for (int i = 0; i < 3; i++) {
        const int colour = (i + 1) % 3;
        store_pairs(out->plane[i], x, luma_code(c[colour], even, k),
                    luma_code(c[3 + colour], odd, k), k->width, edge);
    }
#else
    const struct ycc a = to_ycc(c), b = to_ycc(c + 3);
    store_pairs(out->plane[0], x, luma_code(a.y, even, k), luma_code(b.y, odd, k), k->width, edge);
#if !COX_OUT_SUB_X
    store_pairs(out->plane[1], x, chroma_code(a.cb, k->out_cb_scale, even, k),
                chroma_code(b.cb, k->out_cb_scale, odd, k), k->width, edge);
    store_pairs(out->plane[2], x, chroma_code(a.cr, k->out_cr_scale, even, k),
                chroma_code(b.cr, k->out_cr_scale, odd, k), k->width, edge);
#endif
#endif
#endif
}

#if COX_OUT_SUB_X
/* Chroma of the even and of the odd columns: of one row, or the sum of both. */
struct columns {
    real even_cb, odd_cb, even_cr, odd_cr;
};

INLINE struct columns columns_of(const real *c)
{
    const struct ycc a = to_ycc(c), b = to_ycc(c + 3);
    struct columns s;
    s.even_cb = a.cb;
    s.odd_cb = b.cb;
    s.even_cr = a.cr;
    s.odd_cr = b.cr;
#if COX_OUT_SUB_Y
    const struct ycc lower_a = to_ycc(c + 6), lower_b = to_ycc(c + 9);
    s.even_cb = s.even_cb + lower_a.cb;
    s.odd_cb = s.odd_cb + lower_b.cb;
    s.even_cr = s.even_cr + lower_a.cr;
    s.odd_cr = s.odd_cr + lower_b.cr;
#endif
    return s;
}

/* The last odd column of the step before. */
struct before {
    float cb, cr;
};

/* Subsampled chroma from columns x/2 on, of chroma row y. */
INLINE void store_chroma(const struct target_row *out, int x, int y, const struct columns *s,
                         struct before *before, bool edge, const struct video_params *k)
{
#if COX_OUT_SITE == 1
    const real cb = s->even_cb + s->odd_cb, cr = s->even_cr + s->odd_cr;
    const float weight = COX_OUT_SUB_Y ? 0.25f : 0.5f;
#else
    if (x == 0) { /* before the start, the first column is repeated */
        before->cb = FIRST_LANE(s->even_cb);
        before->cr = FIRST_LANE(s->even_cr);
    }
    const real before_cb = SHIFT_IN(before->cb, s->odd_cb),
               before_cr = SHIFT_IN(before->cr, s->odd_cr);
    before->cb = LAST_LANE(s->odd_cb);
    before->cr = LAST_LANE(s->odd_cr);
    const real cb = (before_cb + s->odd_cb) + (s->even_cb + s->even_cb);
    const real cr = (before_cr + s->odd_cr) + (s->even_cr + s->even_cr);
    const float weight = COX_OUT_SUB_Y ? 0.125f : 0.25f;
#endif
    const int i = x / 2, columns = (k->width + 1) / 2;
    const real dither = pattern(i, 1, y);
    const uns u = chroma_code(cb, k->out_cb_scale * weight, dither, k);
    const uns v = chroma_code(cr, k->out_cr_scale * weight, dither, k);
#if COX_OUT_LAYOUT == 1
    store_pairs(out->plane[1], x, u, v, 2 * columns, edge);
#else
    store_samples(out->plane[1], i, u, columns, edge);
    store_samples(out->plane[2], i, v, columns, edge);
#endif
}
#endif
#endif

/* --- The kernel --- */

#if COX_MAP
/* Where the result of a step goes, and what it needs of the step before. */
struct target {
    struct target_row upper, lower;
    bool has_lower;
    int y; /* of the upper row in the frame */
#if COX_OUT_SUB_X
    struct before before;
#if !COX_OUT_SUB_Y
    struct before lower_before;
#endif
#endif
};

INLINE void store_block(struct target *out, int x, const real *s, bool edge,
                        const struct video_params *k)
{
    store_row(&out->upper, x, out->y, s, edge, k);
    if (out->has_lower)
        store_row(&out->lower, x, out->y + 1, s + 6, edge, k);
#if COX_OUT_SUB_X
    const struct columns c = columns_of(s);
    store_chroma(&out->upper, x, COX_OUT_SUB_Y ? out->y / 2 : out->y, &c, &out->before, edge, k);
#if !COX_OUT_SUB_Y
    const struct columns lower_c = columns_of(s + 6);
    if (out->has_lower)
        store_chroma(&out->lower, x, out->y + 1, &lower_c, &out->lower_before, edge, k);
#endif
#endif
}
#endif

/* Whether two rows lie in a bar, at least `reach` rows from the picture. */
static inline bool in_bar(int y, int reach, const struct video_params *k)
{
    return y + 1 < k->picture_top - reach || y >= k->picture_bottom + reach;
}

/* Chroma of the row below or above belongs to a row of 4:2:0, too. */
#define BAR_REACH (COX_IN_SUB_Y ? 2 : 0)

#if COX_ANALYSE
/* The largest R', G' or B' of each block of 2 x 2 pixels. */
#if SHARED_CHROMA
INLINE real brightest(const struct source_row *upper, const struct source_row *lower, int x,
                      bool edge, const struct video_params *k)
{
    const uns above = edge ? edge_pairs(upper->luma, x, k->width) : IN_PAIRS(upper->luma, x);
    const uns below = edge ? edge_pairs(lower->luma, x, k->width) : IN_PAIRS(lower->luma, x);
    const uns y = max(max(LEFT(above), RIGHT(above)), max(LEFT(below), RIGHT(below)));

    const struct chroma c = chroma_samples(upper->chroma.near_u, upper->chroma.near_v, x / 2,
                                           k->chroma_width, edge);
    real s[3];
    to_rgb(y, c.u * (sums)((sum)CHROMA_UNIT), c.v * (sums)((sum)CHROMA_UNIT), k, s);
    return det_max(det_max(s[0], s[1]), s[2]);
}
#else
INLINE real brightest(const real *s)
{
    real most[6];
    SIX(most[i] = det_max(s[i], s[6 + i]))
    return det_max(det_max(det_max(most[0], most[1]), det_max(most[2], most[3])),
                   det_max(most[4], most[5]));
}
#endif

static inline sint bin_of(real x)
{
#if COX_TRANSFER == 2
    x = MULADD(det_log2(det_max(x, REAL(0x1p-20f))), REAL(16.0f), REAL(256.0f));
#else
    x = (x - REAL(SIGNAL_LOW)) * REAL(COX_BINS / (1.0f - SIGNAL_LOW));
#endif
    return TO_SINT(det_min(det_max(x, REAL(0.0f)), REAL(COX_BINS - 1.0f)));
}
#endif

/* Reshape a block of four pixels. */
#if COX_RESHAPE
#define RESHAPE(s) (reshape(s, reshaping), reshape((s) + 6, reshaping))
#else
#define RESHAPE(s)
#endif

/* On a CPU neighbouring blocks are counted in separate tables, because an increment waits for the
 * one before if both hit the same word. */
#define TABLES (COX_GROUP > 1 ? 1 : 4)

__kernel
#if COX_ANALYSE
__attribute__((reqd_work_group_size(COX_GROUP, 1, 1)))
#endif
void
video(__global const uchar *in_0,
#if IN_PLANES > 1
      __global const uchar *in_1,
#endif
#if IN_PLANES > 2
      __global const uchar *in_2,
#endif
#if COX_RESHAPE
      __global const float *reshaping,
#endif
#if COX_MAP
#if COX_LUT
      __global const float4 *lut,
#endif
      __global uchar *out_0,
#if OUT_PLANES > 1
      __global uchar *out_1,
#endif
#if OUT_PLANES > 2
      __global uchar *out_2,
#endif
#endif
#if COX_ANALYSE
      __global uint *histogram,
#endif
#if LOCAL
      __global const uchar *base, int base_origin,
#endif
      struct video_params params, int first, int rows, int origin_0
#if IN_PLANES > 1
      , int origin_1
#endif
#if IN_PLANES > 2
      , int origin_2
#endif
)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct video_params p = params;
    const struct video_params *k = &p;
    const struct origins origins = ORIGINS;
    const int begin_y = (int)get_global_id(1) * COX_ITEM_ROWS,
              end_y = min(begin_y + COX_ITEM_ROWS, rows);
    const int begin_x = (int)get_global_id(0) * COX_ITEM;
    const int end_x = COX_ITEM ? min(begin_x + COX_ITEM, k->width) : k->width;
#if COX_ANALYSE
    const int lane = (int)get_local_id(0);
#if COX_GROUP > 1
    __local uint counts[COX_BINS];
    for (int i = lane; i < COX_BINS; i += COX_GROUP)
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    uint counts[TABLES * COX_BINS];
    for (int i = 0; i < TABLES * COX_BINS; i++)
        counts[i] = 0;
#endif
#endif
    for (int y = begin_y; y < end_y; y += 2) {
#if !COX_MAP
        if (in_bar(first + y, 0, k))
            continue;
#endif
        const bool lower = y + 1 < end_y; /* the lower row exists */
        const struct source_row upper_in = source_at(in_0, IN_1, IN_2, y, false, first, origins, k);
        const struct source_row lower_in = source_at(in_0, IN_1, IN_2, y + lower, lower, first,
                                                     origins, k);
#if COX_MAP
        struct target out = {.upper = target_at(out_0, OUT_1, OUT_2, y, k),
                             .lower = target_at(out_0, OUT_1, OUT_2, y + lower, k),
                             .has_lower = lower,
                             .y = first + y};
#if LOCAL
        const struct local_rows model_rows = local_rows_at(base, first + y, base_origin,
                                                           &k->surround);
#endif
#if COX_OUT_SUB_X
#if COX_ITEM && COX_OUT_SITE != 1
        if (begin_x > 0 && begin_x < end_x) { /* the step before belongs to another work-item */
            real s[12];
            read_row(&upper_in, begin_x - STEP, true, k, s);
            read_row(&lower_in, begin_x - STEP, true, k, s + 6);
            RESHAPE(s);
            map_block(s, MODEL_AT(begin_x - STEP), k);
            const struct columns c = columns_of(s);
            out.before.cb = LAST_LANE(c.odd_cb);
            out.before.cr = LAST_LANE(c.odd_cr);
#if !COX_OUT_SUB_Y
            const struct columns lower_c = columns_of(s + 6);
            out.lower_before.cb = LAST_LANE(lower_c.odd_cb);
            out.lower_before.cr = LAST_LANE(lower_c.odd_cr);
#endif
        }
#endif
#endif
#endif
        const bool bar = in_bar(first + y, BAR_REACH, k);
        for (int x = begin_x; x < end_x; x += STEP) {
            /* or the first step */
            const bool edge = x + REACH >= k->width || x < (COX_IN_SITE == 1);
#if COX_ANALYSE && SHARED_CHROMA
            const real most = brightest(&upper_in, &lower_in, x, edge, k);
#endif
#if COX_MAP || !SHARED_CHROMA
            real s[12];
            read_row(&upper_in, x, edge, k, s);
            read_row(&lower_in, x, edge, k, s + 6);
            RESHAPE(s);
#if COX_ANALYSE && !SHARED_CHROMA
            const real most = brightest(s);
#endif
#endif
#if COX_MAP
            map_block(s, MODEL_AT(x), k);
            store_block(&out, x, s, edge, k);
            if (bar) {
                for (x += STEP; x < end_x; x += STEP)
                    store_block(&out, x, s, x + REACH >= k->width, k);
                break;
            }
#endif
#if COX_ANALYSE
            if (BAR_REACH && in_bar(first + y, 0, k))
                continue;
#if COX_GROUP > 1
            atomic_inc(&counts[bin_of(most)]); /* COX_WIDTH is 1 */
#else
            int bins[COX_WIDTH];
            SCATTER(bin_of(most), bins);
            if (edge) {
                const int blocks = min((k->width - x + 1) / 2, COX_WIDTH);
                for (int i = 0; i < blocks; i++)
                    counts[(i % TABLES) * COX_BINS + bins[i]]++;
            } else {
#pragma unroll
                for (int i = 0; i < COX_WIDTH; i++)
                    counts[(i % TABLES) * COX_BINS + bins[i]]++;
            }
#endif
#endif
        }
    }
#if COX_ANALYSE
#if COX_GROUP > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < COX_BINS; i += COX_GROUP)
        if (counts[i] != 0)
            atomic_add(&histogram[i], counts[i]);
#else
    for (int i = 0; i < COX_BINS; i++) {
        uint count = 0;
        for (int t = 0; t < TABLES; t++)
            count += counts[t * COX_BINS + i];
        if (count != 0)
            atomic_add(&histogram[i], count);
    }
#endif
#endif
}
