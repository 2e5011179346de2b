/* Tone mapping of one video frame in one pass: HDR samples in, SDR samples out, no plane of light in memory. With
 * COX_ANALYSE the frame's signal is counted on the way; with COX_MAP 0 it is only counted.
 *
 * Formula, for each pixel:
 *     Y'CbCr to R'G'B', chroma interpolated linearly between its samples; limited to 0 .. 1
 *     light    L = EOTF(signal), in multiples of SDR white; PQ, HLG with its OOTF, or half floats of light
 *     c        = M L, to BT.709 primaries
 *     m        = max(c); with COX_FADE as in picture.cl: c + (m - c) over / (over + 3)
 *     c        = c f(m)/m, limited to -1 .. 1;  f as in picture.cl, or BT.2390's (pq.clh)
 *     signal   = sign(c) |c|^(1/2.4)      BT.1886 inverted and continued through 0: light outside the gamut keeps its sign
 *                until after the average of the chroma, so that noise about black stays about black; straight below
 *                |c| = 2^-16, a tenth of what a display's black emits
 *     R'G'B' to Y'CbCr, chroma averaged with weights 1 2 1 (left-sited) or 1 1; to codes, limited to what a sample holds
 * Histogram: of every block of 2 x 2 pixels the largest R', G' or B' of the input, in COX_BINS steps.
 *
 * Geometry: a work-item takes COX_ITEM columns (0 = the whole row) and COX_ITEM_ROWS rows, two rows at a time; dimension
 * 0 runs over items, dimension 1 over groups of rows of the band. Where a histogram is made a work-group is COX_GROUP by
 * 1 and counts in local memory (COX_GROUP > 1), or a work-item in private memory (1), before it adds to the result. A
 * step takes 2 COX_WIDTH columns, the even ones in one vector and the odd ones in another, as they lie in words of two
 * samples. The last step of a row reads and writes sample by sample, so no byte outside the rows is touched.
 *
 * Build defines (all required): COX_WIDTH 1, 8 or 16; COX_ITEM, COX_ITEM_ROWS, COX_GROUP; COX_MAP, COX_ANALYSE;
 *     COX_IN_LAYOUT, COX_OUT_LAYOUT    0 planar, 1 semi-planar, 2 RGBA
 *     COX_IN_BYTES, COX_OUT_BYTES      of a sample; COX_IN_SHIFT, COX_OUT_SHIFT: unused low bits in it
 *     COX_IN_DEPTH                     bits of a sample
 *     COX_IN_SUB_X, _Y, COX_OUT_SUB_X, _Y    1 where chroma has half as many columns or rows
 *     COX_IN_SITE, COX_OUT_SITE        0 left, 1 centre, 2 top left
 *     COX_TRANSFER                     0 PQ, 1 HLG, 2 light
 *     COX_FADE                         0 or 1
 *     COX_CURVE                        0 scaled only, 1 rational, 2 rational from a knee, 3 BT.2390
 *     COX_DITHER                       0 or 1
 * Sizes, pitches and constants are parameters, so that a compiled kernel serves every film of its kind.
 * Access: luma and RGBA ROWS read, chroma of 4:2:0 HALO(1) read, from buffer row `origin`, other chroma ROWS; outputs
 * ROWS write; histogram REDUCE, zeroed before.
 * Numerics: see detmath.clh. Every result depends on the frame's samples only, not on the cut or COX_WIDTH: sums are
 * taken in one order. EOTF and its kin are minimax fits, weighted for codes of 10 bits (docs/kernels.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include "detmath.clh"
#include "pq.clh"

#define COX_BINS 512
#define IN_PLANES (3 - COX_IN_LAYOUT)
#define OUT_PLANES (3 - COX_OUT_LAYOUT)
#define IN_RGBA (COX_IN_LAYOUT == 2)
#define OUT_RGBA (COX_OUT_LAYOUT == 2)
#define STEP (2 * COX_WIDTH)

struct video_params {
    int width, height;
    int chroma_width, chroma_height; /* of the input's chroma planes */
    int in_pitch[3], out_pitch[3];   /* bytes */
    /* signal = code * luma_scale + chroma codes (sums of CHROMA_SCALE samples) * these + offsets */
    float luma_scale;
    float red_v, green_u, green_v, blue_u;
    float red_0, green_0, blue_0;
    float matrix[9];              /* light of the EOTF to BT.709 in multiples of SDR white */
    float hlg_y[3], hlg_exponent; /* OOTF: luminance weights, gamma - 1 */
    float a0, a1, a2, b0, b1, b2, knee;
    float fade, fade_speed;
    struct bt2390_params bt2390;
    float out_luma_scale, out_luma_0; /* codes of R', G', B' for RGBA */
    float out_cb_scale, out_cr_scale, out_chroma_0;
    float out_max;
};

#define INLINE __attribute__((always_inline)) static inline

/* --- Vectors of samples ---------------------------------------------------------------------------------------------- */

#if COX_WIDTH == 1
typedef ushort half_words;
typedef uchar quarter_words;
#define VLOAD(type, p) (*(__global const type *)(p))
#define VSTORE(type, v, p) (*(__global type *)(p) = (v))
#define TO_UNS(x) convert_uint(x)
#define TO_HALF_WORDS(x) convert_ushort(x)
#define TO_QUARTER_WORDS(x) convert_uchar(x)
#define LANE(v, k) (v)
#define FIRST_LANE(v) (v)
#define SHIFT_IN(last, v) (last)
#define LAST_LANE(v) (v)
#define LANES 0
#define STORE_HALF_WORDS(v, p) VSTORE(ushort, v, p)
#define STORE_QUARTER_WORDS(v, p) VSTORE(uchar, v, p)
#else
typedef COX_PASTE(ushort, COX_WIDTH) half_words;
typedef COX_PASTE(uchar, COX_WIDTH) quarter_words;
#define COX_VLOAD COX_PASTE(vload, COX_WIDTH)
#define COX_VSTORE COX_PASTE(vstore, COX_WIDTH)
#define VLOAD(type, p) COX_VLOAD(0, (__global const type *)(p))
#define VSTORE(type, v, p) COX_VSTORE(v, 0, (__global type *)(p))
#define TO_UNS(x) COX_PASTE(convert_uint, COX_WIDTH)(x)
#define TO_HALF_WORDS(x) COX_PASTE(convert_ushort, COX_WIDTH)(x)
#define TO_QUARTER_WORDS(x) COX_PASTE(convert_uchar, COX_WIDTH)(x)
#define FIRST_LANE(v) (v).s0
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
typedef half_words sums;
#define TO_SUMS(x) TO_HALF_WORDS(x)
#define SUMS_TO_REAL(x) TO_REAL(x)
#else
typedef uns sums;
#define TO_SUMS(x) (x)
#define SUMS_TO_REAL(x) TO_REAL(AS_SINT(x))
#endif

/* Two neighbouring samples in one word, the left one low; what a vector of them holds. */
#if COX_IN_BYTES == 1
#define IN_PAIRS(row, x) TO_UNS(VLOAD(ushort, (row) + (x)))
#define LEFT(pairs) ((pairs) & (uns)(0xffu))
#define RIGHT(pairs) ((pairs) >> 8)
#define IN_SAMPLE(row, x) ((uint)(row)[x])
#else
#define IN_PAIRS(row, x) VLOAD(uint, (row) + 2 * (x))
#define LEFT(pairs) (((pairs) & (uns)(0xffffu)) >> COX_IN_SHIFT)
#define RIGHT(pairs) ((pairs) >> (16 + COX_IN_SHIFT))
#define IN_SAMPLE(row, x) ((uint)((__global const ushort *)(row))[x])
#endif
#define PAIR_BITS (8 * COX_IN_BYTES)

static inline uns edge_pairs(__global const uchar *row, int x, int columns)
{
    uint words[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++) {
        const int left = min(x + 2 * k, columns - 1), right = min(x + 2 * k + 1, columns - 1);
        words[k] = IN_SAMPLE(row, left) | IN_SAMPLE(row, right) << PAIR_BITS;
    }
#if COX_WIDTH == 1
    return words[0];
#else
    return COX_VLOAD(0, words);
#endif
}

/* --- Chroma in --------------------------------------------------------------------------------------------------------- */

struct chroma {
    sums u, v;
};

/* A row of the frame's chroma: the plane rows it lies near to and far from. */
struct chroma_rows {
    __global const uchar *near_u, *far_u, *near_v, *far_v;
};

#if IN_RGBA
#define CHROMA_SCALE 1
#elif COX_IN_SUB_X == 0
#define CHROMA_SCALE 1
#else
#define CHROMA_X_SCALE (COX_IN_SITE == 1 ? 4 : 2)
#define CHROMA_Y_SCALE (COX_IN_SUB_Y == 0 ? 1 : COX_IN_SITE == 2 ? 2 : 4)

/* Chroma samples at plane columns i, i + 1, ... of one plane row. */
static inline struct chroma chroma_samples(__global const uchar *u, __global const uchar *v, int i, int columns,
                                           bool edge)
{
    struct chroma c;
    if (edge) {
#if COX_IN_DEPTH <= 12
        ushort us[COX_WIDTH], vs[COX_WIDTH];
#else
        uint us[COX_WIDTH], vs[COX_WIDTH];
#endif
        for (int k = 0; k < COX_WIDTH; k++) {
            const int at = clamp(i + k, 0, columns - 1);
#if COX_IN_LAYOUT == 1
            us[k] = IN_SAMPLE(u, 2 * at) >> COX_IN_SHIFT;
            vs[k] = IN_SAMPLE(u, 2 * at + 1) >> COX_IN_SHIFT;
#else
            us[k] = IN_SAMPLE(u, at) >> COX_IN_SHIFT;
            vs[k] = IN_SAMPLE(v, at) >> COX_IN_SHIFT;
#endif
        }
#if COX_WIDTH == 1
        c.u = us[0];
        c.v = vs[0];
#else
        c.u = COX_VLOAD(0, us);
        c.v = COX_VLOAD(0, vs);
#endif
        return c;
    }
#if COX_IN_LAYOUT == 1
    const uns pairs = IN_PAIRS(u, 2 * i);
    c.u = TO_SUMS(LEFT(pairs));
    c.v = TO_SUMS(RIGHT(pairs));
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

/* The same, interpolated between plane rows: sums of CHROMA_Y_SCALE samples. */
static inline struct chroma chroma_between(const struct chroma_rows *rows, int i, int columns, bool edge)
{
    struct chroma c = chroma_samples(rows->near_u, rows->near_v, i, columns, edge);
#if COX_IN_SUB_Y
    const struct chroma far = chroma_samples(rows->far_u, rows->far_v, i, columns, edge);
    if (CHROMA_Y_SCALE == 4) {
        c.u = c.u + c.u + c.u + far.u;
        c.v = c.v + c.v + c.v + far.v;
    } else {
        c.u = c.u + far.u;
        c.v = c.v + far.v;
    }
#endif
    return c;
}
#define CHROMA_SCALE (CHROMA_X_SCALE * CHROMA_Y_SCALE)

#if COX_IN_SITE == 1
/* All bits of the lanes whose odd column is past the last one. */
static inline sums past_end(int x, int columns)
{
#if COX_IN_DEPTH <= 12
    ushort bits[COX_WIDTH];
#else
    uint bits[COX_WIDTH];
#endif
    for (int k = 0; k < COX_WIDTH; k++)
        bits[k] = x + 2 * k + 1 >= columns ? ~0 : 0;
#if COX_WIDTH == 1
    return bits[0];
#else
    return COX_VLOAD(0, bits);
#endif
}
#endif
#endif

/* --- Signal and light -------------------------------------------------------------------------------------------------- */

/* Red, green and blue of the even columns, then of the odd ones. They go through the arithmetic side by side: each chain of
 * operations alone waits for its own results most of the time. */
struct six {
    real v[6];
};
/* Six times the same, with i from 0 to 5. Not a loop: not every compiler unrolls those in time to see the registers. */
#define ONCE(n, ...)    \
    {                   \
        enum { i = n }; \
        __VA_ARGS__;    \
    }
#define TWO(...) ONCE(0, __VA_ARGS__) ONCE(1, __VA_ARGS__)
#define EACH(...) \
    TWO(__VA_ARGS__) ONCE(2, __VA_ARGS__) ONCE(3, __VA_ARGS__) ONCE(4, __VA_ARGS__) ONCE(5, __VA_ARGS__)

#if COX_TRANSFER == 0
#define SIGNAL_LOW (-1.0f)
#else
#define SIGNAL_LOW 0.0f
#endif

static inline real limited(real x)
{
    return det_min(det_max(x, REAL(SIGNAL_LOW)), REAL(1.0f));
}

#if COX_TRANSFER == 0
/* The EOTF of ST 2084, 1 = 10 000 cd/m2, of the signal x = 2 E - 1: the square of a minimax polynomial for its root. The error is
 * 1.5e-6 of the light above 50 cd/m2 and 7e-5 cd/m2 below. */
INLINE void eotf(struct six *x)
{
    real p[6];
    EACH(p[i] = MULADD(x->v[i], REAL(1.243774908e-3f), REAL(1.357238057e-3f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(9.409501488e-4f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(5.486727531e-3f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(1.387723386e-2f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(2.810250988e-2f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(5.730446068e-2f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(1.099779192e-1f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(1.860275862e-1f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(2.590623737e-1f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(2.405752897e-1f)))
    EACH(p[i] = MULADD(x->v[i], p[i], REAL(9.604460104e-2f)))
    EACH(x->v[i] = p[i] * p[i])
}
#elif COX_TRANSFER == 1
/* The inverse OETF of HLG, then its OOTF: display light, 1 = the nominal peak. */
INLINE void eotf(struct six *x, const struct video_params *k)
{
    EACH(
        const real high = det_exp2(MULADD(x->v[i], REAL(8.067285660f), REAL(-8.101922300f))) + REAL(0.02372241f);
        x->v[i] = PICK(x->v[i] <= REAL(0.5f), x->v[i] * x->v[i] * REAL(0.3333333333f), high))
    real ootf[2];
    TWO(ootf[i] = MULADD(x->v[3 * i], REAL(k->hlg_y[0]),
                         MULADD(x->v[3 * i + 1], REAL(k->hlg_y[1]), x->v[3 * i + 2] * REAL(k->hlg_y[2])));
        ootf[i] = det_exp2(det_log2(det_max(ootf[i], REAL(0x1p-40f))) * REAL(k->hlg_exponent)))
    EACH(x->v[i] = x->v[i] * ootf[i / 3])
}
#endif

/* |x|^(1/2.4) with the sign of x, |x| limited to 1, and straight below 2^-16, where the power would be infinitely steep.
 * Relative error 1.1e-4. */
INLINE void bt1886(struct six *x)
{
    real size[6], p[6], n[6];
    EACH(size[i] = det_min(AS_REAL(AS_SINT(x->v[i]) & SINT(0x7fffffff)), REAL(1.0f)))
    /* 5/12 log2: the bits as an integer are the exponent and, for the logarithm of the mantissa m, m - 1; the polynomial of m
     * is the rest. */
    EACH(n[i] = AS_REAL((AS_SINT(size[i]) & SINT(0x007fffff)) | SINT(0x3f800000)))
    EACH(p[i] = MULADD(n[i], REAL(-0.03401181149f), REAL(0.2688401644f)))
    EACH(p[i] = MULADD(n[i], p[i], REAL(-0.8836814842f)))
    EACH(p[i] = MULADD(n[i], p[i], REAL(1.27926753f)))
    EACH(p[i] = MULADD(n[i], p[i], REAL(-53.54704459f)))
    EACH(p[i] = MULADD(TO_REAL(AS_SINT(size[i])), REAL(0x1.aaaaaap-25f), p[i]))
    EACH(n[i] = p[i] + REAL(12582912.0f)) /* 2^, as in det_exp2 */
    EACH(p[i] = p[i] - (n[i] - REAL(12582912.0f)))
    real q[6];
    EACH(q[i] = MULADD(p[i], REAL(0.05517166737f), REAL(0.2426111344f)))
    EACH(q[i] = MULADD(p[i], q[i], REAL(0.6932609871f)))
    EACH(q[i] = MULADD(p[i], q[i], REAL(0.9999280723f)))
    EACH(
        const real power = AS_REAL(AS_SINT(q[i]) + (AS_SINT(n[i]) << 23));
        const real result = PICK(size[i] < REAL(0x1p-16f), size[i] * REAL(645.0796f), power);
        x->v[i] = AS_REAL(AS_SINT(result) | (AS_SINT(x->v[i]) & SINT(0x80000000))))
}

/* det_rcp of two values side by side. */
INLINE void det_rcp_two(real *x)
{
    real y[2], e[2];
    TWO(y[i] = AS_REAL(SINT(0x7ef311c3) - AS_SINT(x[i])))
    TWO(e[i] = MULADD(-x[i], y[i], REAL(1.0f)))
    TWO(y[i] = MULADD(y[i], MULADD(e[i], e[i], e[i]), y[i]))
    TWO(e[i] = MULADD(-x[i], y[i], REAL(1.0f)))
    TWO(x[i] = MULADD(y[i], MULADD(e[i], e[i], e[i]), y[i]))
}

/* Signal to light of BT.709 in multiples of SDR white, through the operator, to signal. */
INLINE void map_six(struct six *x, const struct video_params *k)
{
#if COX_TRANSFER == 0
    eotf(x);
#elif COX_TRANSFER == 1
    eotf(x, k);
#endif
    struct six c;
    EACH(c.v[i] = MULADD(x->v[i / 3 * 3], REAL(k->matrix[i % 3 * 3]),
                         MULADD(x->v[i / 3 * 3 + 1], REAL(k->matrix[i % 3 * 3 + 1]),
                                x->v[i / 3 * 3 + 2] * REAL(k->matrix[i % 3 * 3 + 2]))))
    real m[2];
    TWO(m[i] = det_max(det_max(c.v[3 * i], det_max(c.v[3 * i + 1], c.v[3 * i + 2])), REAL(0x1p-40f)))
#if COX_FADE
    real over[2], w[2];
    TWO(over[i] = det_luminance(c.v[3 * i], c.v[3 * i + 1], c.v[3 * i + 2]) - REAL(k->fade);
        over[i] = det_max(over[i], REAL(0.0f)) * REAL(k->fade_speed);
        w[i] = over[i] + REAL(3.0f))
    det_rcp_two(w);
    TWO(w[i] = over[i] * w[i])
    EACH(c.v[i] = MULADD(m[i / 3] - c.v[i], w[i / 3], c.v[i]))
#endif
#if COX_CURVE != 0
    real ratio[2];
#if COX_CURVE == 1
    TWO(ratio[i] = MULADD(MULADD(m[i], REAL(k->b2), REAL(k->b1)), m[i], REAL(k->b0)))
    det_rcp_two(ratio);
    TWO(ratio[i] = MULADD(m[i], REAL(k->a2), REAL(k->a1)) * ratio[i])
#elif COX_CURVE == 2
    TWO(ratio[i] = MULADD(MULADD(m[i], REAL(k->b2), REAL(k->b1)), m[i], REAL(k->b0)) * m[i])
    det_rcp_two(ratio);
    TWO(ratio[i] = ratio[i] * MULADD(MULADD(m[i], REAL(k->a2), REAL(k->a1)), m[i], REAL(k->a0));
        ratio[i] = PICK(m[i] < REAL(k->knee), REAL(1.0f), ratio[i]))
#else
    TWO(ratio[i] = bt2390(m[i], &k->bt2390) * det_rcp(m[i]))
#endif
    EACH(c.v[i] = c.v[i] * ratio[i / 3])
#endif
    bt1886(&c);
    *x = c;
}

/* --- One row of a step --------------------------------------------------------------------------------------------------- */

struct source_row {
#if IN_RGBA
    __global const uchar *rgba;
#else
    __global const uchar *luma;
    struct chroma_rows chroma;
#endif
};

#if IN_RGBA
static inline real from_half(sint h)
{
#if COX_TRANSFER == 0
    return limited(MULADD(det_colour_half(h), REAL(2.0f), REAL(-1.0f)));
#elif COX_TRANSFER == 1
    return limited(det_colour_half(h));
#else
    return det_colour_half(h);
#endif
}

static inline void rgba_samples(__global const uchar *row, int x, int columns, real *c)
{
    int r[COX_WIDTH], g[COX_WIDTH], b[COX_WIDTH];
    for (int k = 0; k < COX_WIDTH; k++) {
        const uint2 words = vload2(0, (__global const uint *)row + 2 * min(x + 2 * k, columns - 1));
        r[k] = (int)(words.x & 0xffffu);
        g[k] = (int)(words.x >> 16);
        b[k] = (int)(words.y & 0xffffu);
    }
#if COX_WIDTH == 1
    c[0] = from_half(r[0]);
    c[1] = from_half(g[0]);
    c[2] = from_half(b[0]);
#else
    c[0] = from_half(COX_VLOAD(0, r));
    c[1] = from_half(COX_VLOAD(0, g));
    c[2] = from_half(COX_VLOAD(0, b));
#endif
}

INLINE struct six read_step(const struct source_row *row, int x, bool edge, const struct video_params *k)
{
    struct six s;
    rgba_samples(row->rgba, x, k->width, s.v);
    rgba_samples(row->rgba, x + 1, k->width, s.v + 3);
    return s;
}
#else
static inline void to_rgb(uns luma, sums u, sums v, const struct video_params *k, real *s)
{
    const real y = TO_REAL(AS_SINT(luma)) * REAL(k->luma_scale);
    const real cb = SUMS_TO_REAL(u), cr = SUMS_TO_REAL(v);
    s[0] = limited(MULADD(cr, REAL(k->red_v), REAL(k->red_0)) + y);
    s[1] = limited(MULADD(cb, REAL(k->green_u), MULADD(cr, REAL(k->green_v), REAL(k->green_0))) + y);
    s[2] = limited(MULADD(cb, REAL(k->blue_u), REAL(k->blue_0)) + y);
}

INLINE struct six read_step(const struct source_row *row, int x, bool edge, const struct video_params *k)
{
    const uns luma = edge ? edge_pairs(row->luma, x, k->width) : IN_PAIRS(row->luma, x);
#if COX_IN_SUB_X == 0
    const uns u = edge ? edge_pairs(row->chroma.near_u, x, k->width) : IN_PAIRS(row->chroma.near_u, x);
    const uns v = edge ? edge_pairs(row->chroma.near_v, x, k->width) : IN_PAIRS(row->chroma.near_v, x);
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
    if (edge) { /* past an odd width the last column comes again */
        const sums again = past_end(x, k->width);
        odd_u = (odd_u & ~again) | (even_u & again);
        odd_v = (odd_v & ~again) | (even_v & again);
    }
#else
    const sums even_u = here.u + here.u, odd_u = here.u + next.u;
    const sums even_v = here.v + here.v, odd_v = here.v + next.v;
#endif
#endif
    struct six s;
    to_rgb(LEFT(luma), even_u, even_v, k, s.v);
    to_rgb(RIGHT(luma), odd_u, odd_v, k, s.v + 3);
    return s;
}
#endif

/* --- Codes out ------------------------------------------------------------------------------------------------------- */

#if COX_MAP
/* Blue and red differences: B' - Y' and R' - Y'. */
struct ycc {
    real y, cb, cr;
};

static inline struct ycc to_ycc(const real *c)
{
    struct ycc out;
    out.y = det_luminance(c[0], c[1], c[2]);
    out.cb = c[2] - out.y;
    out.cr = c[0] - out.y;
    return out;
}

/* The step of the pattern, (bayer + 1/2)/64, for columns x, x + step, ... of row y. */
static inline real pattern(int x, int step, int y)
{
#if COX_DITHER
    const sint column = LANES * SINT(step) + SINT(x), across = column ^ SINT(y);
    const sint row = SINT(y);
    sint bayer = ((across & SINT(1)) << 5) + ((row & SINT(1)) << 4);
    bayer += ((across & SINT(2)) << 2) + ((row & SINT(2)) << 1);
    bayer += ((across & SINT(4)) >> 1) + ((row & SINT(4)) >> 2);
    return MULADD(TO_REAL(bayer), REAL(0x1p-6f), REAL(0x1p-7f));
#else
    return REAL(0.0f);
#endif
}

/* To a code, rounded: to the nearest, or up where the pattern says so. What leads past the largest code is the caller's. */
static inline real to_code(real x, float scale, float offset, real dither)
{
#if COX_DITHER
    return det_max(MULADD(x, REAL(scale), REAL(offset)) + dither, REAL(0.0f));
#else
    return det_max(MULADD(x, REAL(scale), REAL(offset + 0.5f)), REAL(0.0f));
#endif
}

/* x <= 1, which is a code of its own. */
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

/* Codes of even and odd columns, side by side from column x on. */
static inline void store_pairs(__global uchar *row, int x, uns even, uns odd, int columns, bool edge)
{
    if (edge) {
        uint left[COX_WIDTH], right[COX_WIDTH];
#if COX_WIDTH == 1
        left[0] = even;
        right[0] = odd;
#else
        COX_VSTORE(even, 0, left);
        COX_VSTORE(odd, 0, right);
#endif
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
#if COX_WIDTH == 1
        words[0] = codes;
#else
        COX_VSTORE(codes, 0, words);
#endif
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
static inline void store_rgba(__global uchar *row, int x, const real *c, int y, const struct video_params *k)
{
    const real dither = pattern(x, 2, y);
    uint r[COX_WIDTH], g[COX_WIDTH], b[COX_WIDTH];
    const uns codes_r = luma_code(c[0], dither, k);
    const uns codes_g = luma_code(c[1], dither, k);
    const uns codes_b = luma_code(c[2], dither, k);
#if COX_WIDTH == 1
    r[0] = codes_r;
    g[0] = codes_g;
    b[0] = codes_b;
#else
    COX_VSTORE(codes_r, 0, r);
    COX_VSTORE(codes_g, 0, g);
    COX_VSTORE(codes_b, 0, b);
#endif
    __global uint *at = (__global uint *)row;
    for (int n = 0; n < COX_WIDTH && x + 2 * n < k->width; n++) {
#if COX_OUT_BYTES == 1
        at[x + 2 * n] = r[n] | g[n] << 8 | b[n] << 16 | 0xff000000u;
#else
        at[2 * (x + 2 * n)] = r[n] | g[n] << 16;
        at[2 * (x + 2 * n) + 1] = b[n] | 0xffff0000u;
#endif
    }
}
#endif

struct target {
    __global uchar *plane[3];
};

/* Chroma of columns x/2, x/2 + 1, ... from the sums over `weight` pixels. */
static inline void store_chroma(const struct target *out, int y, int x, real cb, real cr, float weight, bool edge,
                                const struct video_params *k)
{
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

/* The average of chroma over columns: the even ones, the odd ones, the odd ones before. */
static inline real across(real before, real even, real odd)
{
#if COX_OUT_SITE == 1
    return even + odd;
#else
    return (before + odd) + (even + even);
#endif
}
#define ACROSS_WEIGHT (COX_OUT_SITE == 1 ? 0.5f : 0.25f)
#endif

/* --- The kernel --------------------------------------------------------------------------------------------------------- */

#if COX_ANALYSE
static inline real brightest(const real *s)
{
    return det_max(det_max(det_max(s[0], s[1]), det_max(s[2], s[3])), det_max(s[4], s[5]));
}

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

/* On a CPU neighbouring blocks are counted in tables of their own, for each increment waits for the one before if both hit
 * one word. */
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
#if COX_MAP
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
      struct video_params params, int first, int rows, int origin)
{
    const struct video_params p = params; /* before any branch: llvmpipe reads arguments as if all lanes took it */
    const struct video_params *k = &p;
    const int begin_y = (int)get_global_id(1) * COX_ITEM_ROWS, end_y = min(begin_y + COX_ITEM_ROWS, rows);
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
        const int present = min(end_y - y, 2);
        struct source_row source[2];
        for (int r = 0; r < 2; r++) {
            const int own = min(r, present - 1), at = y + own; /* a missing row is the one above again */
#if IN_RGBA
            source[r].rgba = in_0 + (size_t)at * k->in_pitch[0];
#else
            source[r].luma = in_0 + (size_t)at * k->in_pitch[0];
            int near = at, far = at;
#if COX_IN_SUB_Y
            near = (first + at) / 2;
#if COX_IN_SITE == 2
            far = near + own; /* the upper row has chroma of its own */
#else
            far = near + 2 * own - 1;
#endif
            far = clamp(far, 0, k->chroma_height - 1) - origin;
            near -= origin;
#endif
            struct chroma_rows chroma;
            chroma.near_u = in_1 + (size_t)near * k->in_pitch[1];
            chroma.far_u = in_1 + (size_t)far * k->in_pitch[1];
#if IN_PLANES > 2
            chroma.near_v = in_2 + (size_t)near * k->in_pitch[2];
            chroma.far_v = in_2 + (size_t)far * k->in_pitch[2];
#else
            chroma.near_v = chroma.near_u;
            chroma.far_v = chroma.far_u;
#endif
            source[r].chroma = chroma;
#endif
        }
#if COX_MAP
        struct target target[2];
        for (int r = 0; r < 2; r++) {
            const int at = y + min(r, present - 1);
            target[r].plane[0] = out_0 + (size_t)at * k->out_pitch[0];
#if OUT_PLANES > 1
            target[r].plane[1] = out_1 + (size_t)(COX_OUT_SUB_Y ? at / 2 : at) * k->out_pitch[1];
#endif
#if OUT_PLANES > 2
            target[r].plane[2] = out_2 + (size_t)(COX_OUT_SUB_Y ? at / 2 : at) * k->out_pitch[2];
#endif
        }
#if COX_OUT_SUB_X && COX_OUT_SITE != 1 && COX_ITEM
        /* The odd column before the first one, which another work-item writes. */
        float before_cb[2], before_cr[2];
        for (int r = 0; r < 2 && begin_x > 0 && begin_x < end_x; r++) {
            struct six s = read_step(&source[r], begin_x - STEP, true, k);
            map_six(&s, k);
            const struct ycc c = to_ycc(s.v + 3);
            before_cb[r] = LAST_LANE(c.cb);
            before_cr[r] = LAST_LANE(c.cr);
        }
#else
        float before_cb[2], before_cr[2];
#endif
#endif
        for (int x = begin_x; x < end_x; x += STEP) {
            const bool edge = x + STEP >= k->width || (COX_IN_SITE == 1 && x == 0);
#if COX_ANALYSE
            real most = REAL(SIGNAL_LOW);
#endif
#if COX_MAP && COX_OUT_SUB_X && COX_OUT_SUB_Y
            real sum_cb = REAL(0.0f), sum_cr = REAL(0.0f);
#endif
            for (int r = 0; r < 2; r++) {
                struct six s = read_step(&source[r], x, edge, k);
#if COX_ANALYSE
                most = det_max(most, brightest(s.v));
#endif
#if COX_MAP
                const int row = first + y + r;
                map_six(&s, k);
#if OUT_RGBA
                if (r < present) {
                    store_rgba(target[r].plane[0], x, s.v, row, k);
                    store_rgba(target[r].plane[0], x + 1, s.v + 3, row, k);
                }
#else
                const struct ycc a = to_ycc(s.v), b = to_ycc(s.v + 3);
                const uns code_a = luma_code(a.y, pattern(x, 2, row), k);
                const uns code_b = luma_code(b.y, pattern(x + 1, 2, row), k);
                if (r < present)
                    store_pairs(target[r].plane[0], x, code_a, code_b, k->width, edge);
#if COX_OUT_SUB_X
                real cb_before = b.cb, cr_before = b.cr;
#if COX_OUT_SITE != 1
                if (x == 0) {
                    before_cb[r] = FIRST_LANE(a.cb);
                    before_cr[r] = FIRST_LANE(a.cr);
                }
                cb_before = SHIFT_IN(before_cb[r], b.cb);
                cr_before = SHIFT_IN(before_cr[r], b.cr);
                before_cb[r] = LAST_LANE(b.cb);
                before_cr[r] = LAST_LANE(b.cr);
#endif
                const real cb = across(cb_before, a.cb, b.cb), cr = across(cr_before, a.cr, b.cr);
#if COX_OUT_SUB_Y
                sum_cb = r ? sum_cb + cb : cb;
                sum_cr = r ? sum_cr + cr : cr;
                if (r)
                    store_chroma(&target[0], (first + y) / 2, x, sum_cb, sum_cr, 0.5f * ACROSS_WEIGHT, edge, k);
#else
                if (r < present)
                    store_chroma(&target[r], row, x, cb, cr, ACROSS_WEIGHT, edge, k);
#endif
#else
                const uns u_a = chroma_code(a.cb, k->out_cb_scale, pattern(x, 2, row), k);
                const uns u_b = chroma_code(b.cb, k->out_cb_scale, pattern(x + 1, 2, row), k);
                const uns v_a = chroma_code(a.cr, k->out_cr_scale, pattern(x, 2, row), k);
                const uns v_b = chroma_code(b.cr, k->out_cr_scale, pattern(x + 1, 2, row), k);
                if (r < present) {
                    store_pairs(target[r].plane[1], x, u_a, u_b, k->width, edge);
                    store_pairs(target[r].plane[2], x, v_a, v_b, k->width, edge);
                }
#endif
#endif
#endif
            }
#if COX_ANALYSE
#if COX_WIDTH == 1
#if COX_GROUP > 1
            atomic_inc(&counts[bin_of(most)]);
#else
            counts[bin_of(most)]++;
#endif
#else
            int bins[COX_WIDTH];
            COX_VSTORE(bin_of(most), 0, bins);
            const int blocks = edge ? min((k->width - x + 1) / 2, COX_WIDTH) : COX_WIDTH;
            for (int i = 0; i < blocks; i++)
                counts[(i % TABLES) * COX_BINS + bins[i]]++;
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
