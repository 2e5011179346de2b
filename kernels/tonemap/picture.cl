/* Tone mapping of one picture: scene-linear RGBA, 1.0 = diffuse white, to sRGB-encoded RGBA.
 *
 * Formula, for each pixel:
 *     c    = min(gain * max(c, 0), 2^24)             for R, G, B; NaN = 0, infinity = the largest finite value
 *     m    = max(R, G, B)
 *     w    = over / (over + 3)                        over = fade_speed * max(Y - fade, 0), Y the luminance of c
 *     c    = c + (m - c) * w                          light above `fade` turns white, as on film
 *     rational operators (hable, reinhard, mobius, aces, linear, clip), kind 0:
 *         f(m) = (a2 m^2 + a1 m + a0) / (b2 m^2 + b1 m + b0), or m below `knee`;  c = c * f(m)/m
 *     exposure operator, kind 1, each channel for itself:
 *         c = c * slope below `start`, else log2((c - start) * inner + 1) * outer + start_out
 *     bt2390, kind 2: f(m) as in pq.clh;  c = c * f(m)/m
 *     local, with COX_LOCAL 1 and no other operator: c = c * the ratio of local.clh
 *     code = round(scale * sRGB(min(c, 1)));   alpha = round(scale * min(max(a, 0), 1)), NaN = 1
 * The constants come from kernels/tonemap/pipeline.c, computed in double precision and rounded once.
 *
 * Geometry: dimension 0 over groups of COX_ITEM columns, dimension 1 over the band's rows; any local size; work-items
 * past the last column or row do nothing. A vector that would pass the end of a row goes through private memory, so
 * no byte outside the row's pixels is touched.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_ITEM columns per work-item (a multiple of COX_WIDTH), COX_COLUMNS,
 * COX_IN_PITCH, COX_OUT_PITCH (bytes), COX_IN_FLOAT, COX_OUT_16 and COX_LOCAL (0 or 1).
 * Access: `in` ROWS read, `out` ROWS write; both begin at the band's first row. With COX_LOCAL `base` HALO(1) read, a
 * row for each row of blocks, from row `base_origin` on.
 * Numerics: see detmath.clh. Every result depends on its own pixel only, so neither the cut nor COX_WIDTH matters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/detmath.clh"
#include "tonemap/params.clh"
#include "tonemap/pixels.clh"

#if COX_OUT_16
#define COX_SCALE 65535.0f
#define COX_MASK 0xffffu
#define COX_OUT_WORDS 2
#define ENCODE_SRGB det_srgb16
#else
#define COX_SCALE 255.0f
#define COX_MASK 0xffu
#define COX_OUT_WORDS 1
#define ENCODE_SRGB det_srgb8
#endif
#if COX_OUT_16
#define PACK(p, q) STORE16(p, (q).r | (q).g << 16, (q).b | (q).a << 16)
#else
#define PACK(p, q) STORE8(p, (q).r | (q).g << 8 | (q).b << 16 | (q).a << 24)
#endif

struct codes {
    uns r, g, b, a;
};

static inline real exposure_curve(real c, const struct picture_params *k)
{
    real curve = det_log2(MULADD(c - REAL(k->start), REAL(k->inner), REAL(1.0f)));
    return PICK(c < REAL(k->start), c * REAL(k->slope), MULADD(curve, REAL(k->outer), REAL(k->start_out)));
}

static inline uns encode(real c)
{
    return det_quantise(ENCODE_SRGB(det_min(c, REAL(1.0f))), COX_SCALE, COX_MASK);
}

/* What a pixel needs beside itself. */
#if COX_LOCAL
#define MODEL_TYPE struct local_model
#define MODEL_AT(x) local_model_at(&model_rows, x)
#else
#define MODEL_TYPE int
#define MODEL_AT(x) 0
#endif

static inline struct codes map_pixels(struct pixels px, MODEL_TYPE model, const struct picture_params *k)
{
    real r = det_min(px.r * REAL(k->gain), REAL(MOST_LIGHT));
    real g = det_min(px.g * REAL(k->gain), REAL(MOST_LIGHT));
    real b = det_min(px.b * REAL(k->gain), REAL(MOST_LIGHT));
    real m = det_max(r, det_max(g, b));
    real over = det_max(det_luminance(r, g, b) - REAL(k->fade), REAL(0.0f)) * REAL(k->fade_speed);
    real whiten = over + REAL(3.0f);
#if COX_LOCAL
    real w = over * det_rcp(whiten);
    real ratio = local_ratio(m, model, &k->surround);
    r = MULADD(m - r, w, r) * ratio;
    g = MULADD(m - g, w, g) * ratio;
    b = MULADD(m - b, w, b) * ratio;
#else
    if (k->kind == 0) {
        real p = MULADD(MULADD(m, REAL(k->a2), REAL(k->a1)), m, REAL(k->a0));
        real q = MULADD(MULADD(m, REAL(k->b2), REAL(k->b1)), m, REAL(k->b0)) * det_max(m, REAL(0x1p-40f));
        real inverse = det_rcp(q * whiten); /* one reciprocal for both quotients */
        real w = over * (inverse * q);
        real ratio = PICK(m < REAL(k->knee), REAL(1.0f), p * (inverse * whiten));
        r = MULADD(m - r, w, r) * ratio;
        g = MULADD(m - g, w, g) * ratio;
        b = MULADD(m - b, w, b) * ratio;
    } else if (k->kind == 2) {
        real light = det_max(m, REAL(0x1p-40f));
        real inverse = det_rcp(light * whiten);
        real w = over * (inverse * light);
        real ratio = bt2390(light, &k->eetf) * (inverse * whiten);
        r = MULADD(m - r, w, r) * ratio;
        g = MULADD(m - g, w, g) * ratio;
        b = MULADD(m - b, w, b) * ratio;
    } else {
        real w = over * det_rcp(whiten);
        r = exposure_curve(MULADD(m - r, w, r), k);
        g = exposure_curve(MULADD(m - g, w, g), k);
        b = exposure_curve(MULADD(m - b, w, b), k);
    }
#endif
    struct codes out;
    out.r = encode(r);
    out.g = encode(g);
    out.b = encode(b);
    out.a = det_quantise(px.a, COX_SCALE, COX_MASK);
    return out;
}

__kernel void picture(__global const uchar *in, __global uchar *out,
#if COX_LOCAL
                      __global const uchar *base, int base_origin, int first,
#endif
                      struct picture_params k, int rows)
{
    const struct picture_params p = k; /* before any branch: llvmpipe reads arguments as if all lanes took it */
    const int y = (int)get_global_id(1);
    int x = (int)get_global_id(0) * COX_ITEM;
    if (y >= rows || x >= COX_COLUMNS)
        return;
#if COX_LOCAL
    const struct local_rows model_rows = local_rows_at(base, first + y, base_origin, &p.surround);
#endif
    __global const uint *src = (__global const uint *)(in + (size_t)y * COX_IN_PITCH);
    __global uint *dst = (__global uint *)(out + (size_t)y * COX_OUT_PITCH);
    struct pixels px;
#if COX_WIDTH == 1
    const int end = min(x + COX_ITEM, COX_COLUMNS);
    for (; x < end; x++) {
        LOAD(src + x * COX_IN_WORDS);
        UNPACK_COLOUR(px);
        UNPACK_ALPHA(px);
        const struct codes c = map_pixels(px, MODEL_AT(x), &p);
        PACK(dst + x * COX_OUT_WORDS, c);
    }
#else
    const int item_end = min(x + COX_ITEM, COX_COLUMNS);
    for (; x + COX_WIDTH <= item_end; x += COX_WIDTH) {
        LOAD(src + x * COX_IN_WORDS);
        UNPACK_COLOUR(px);
        UNPACK_ALPHA(px);
        const struct codes c = map_pixels(px, MODEL_AT(x), &p);
        PACK(dst + x * COX_OUT_WORDS, c);
    }
    if (x < item_end) {
        const int rest = item_end - x;
        uint words[COX_WIDTH * COX_IN_WORDS];
        for (int i = 0; i < COX_WIDTH * COX_IN_WORDS; i++)
            words[i] = i < rest * COX_IN_WORDS ? src[x * COX_IN_WORDS + i] : 0;
        LOAD(words);
        UNPACK_COLOUR(px);
        UNPACK_ALPHA(px);
        const struct codes c = map_pixels(px, MODEL_AT(x), &p);
        uint packed[COX_WIDTH * COX_OUT_WORDS];
        PACK(packed, c);
        for (int i = 0; i < rest * COX_OUT_WORDS; i++)
            dst[x * COX_OUT_WORDS + i] = packed[i];
    }
#endif
}
