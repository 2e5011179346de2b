/* Tone mapping of one picture: scene-linear RGBA, 1.0 = diffuse white, to sRGB-encoded RGBA.
 *
 * Formula, for each pixel:
 *     c    = min(gain * max(c, 0), 2^24)              for R, G, B; NaN = 0, infinity = the largest
 *                                                     finite value
 *     m    = max(R, G, B)
 *     w    = over / (over + 3)                        over = fade_speed * max(Y - fade, 0),
 *                                                     Y the luminance of c
 *     c    = c + (m - c) * w                          light above `fade` turns white, as on film
 *     rational operators (hable, reinhard, mobius, aces, linear, clip), kind 0:
 *         f(m) = (a2 m^2 + a1 m + a0) / (b2 m^2 + b1 m + b0), or m below `knee`;  c = c * f(m)/m
 *     exposure operator, kind 1, for each channel:
 *         c = c * slope below `start`, else log2((c - start) * inner + 1) * outer + start_out
 *     bt2390, kind 2: f(m) as in pq.clh;  c = c * f(m)/m
 *     bt2446a, bt2446c, spline, kind 4: f(m) as in joined.clh;  c = c * f(m)/m
 *     local, with COX_LOCAL 1 and no other operator: c = c * the ratio of local.clh
 *     code = round(scale * sRGB(min(c, 1)));   alpha = round(scale * min(max(a, 0), 1)), NaN = 1
 * The constants come from kernels/tonemap/tonemap.c, computed in double precision and rounded once.
 *
 * Geometry: dimension 0 over groups of COX_ITEM columns, dimension 1 over the band's rows; any
 * local size; work-items past the last column or row do nothing. A vector that would pass the end
 * of a row goes through private memory, so no byte outside the row's pixels is touched.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_ITEM columns per work-item (a multiple of COX_WIDTH),
 * COX_COLUMNS, COX_IN_PITCH, COX_OUT_PITCH (bytes), COX_IN_FLOAT, COX_OUT_16 and COX_LOCAL (0 or
 * 1). Access: `in` ROWS read, `out` ROWS write; both begin at the band's first row. With COX_LOCAL
 * `base` HALO(1) read, a row for each row of blocks, from row `base_origin` on. Numerics: see
 * detmath.clh. Every result depends on its own pixel only, so neither the cut nor COX_WIDTH
 * matters.
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

#if COX_WIDTH == 1
#define VECTORS 1
#define EACH(...) ONCE(0, __VA_ARGS__)
#define COLOURS(...) ONCE(0, __VA_ARGS__) ONCE(1, __VA_ARGS__) ONCE(2, __VA_ARGS__)
#else
#define VECTORS 2
#define EACH(...) ONCE(0, __VA_ARGS__) ONCE(1, __VA_ARGS__)
#define COLOURS(...) SIX(__VA_ARGS__)
#endif
#define STEP (VECTORS * COX_WIDTH)

static inline real exposure_curve(real c, const struct picture_params *k)
{
    real curve = det_log2(MULADD(c - REAL(k->start), REAL(k->inner), REAL(1.0f)));
    return PICK(c < REAL(k->start), c * REAL(k->slope),
                MULADD(curve, REAL(k->outer), REAL(k->start_out)));
}

/* The input of a pixel besides its colours. */
#if COX_LOCAL
#define MODEL_TYPE struct local_model
#define MODEL_AT(x) local_model_at(&model_rows, x)
#else
#define MODEL_TYPE int
#define MODEL_AT(x) 0
#endif

/* Map light to the display's colours, for VECTORS vectors of pixels, each red, green and blue. They
 * are computed in parallel, because a single chain of operations mostly waits for its own
 * results. */
INLINE void map_pixels(real *c, const MODEL_TYPE *model, const struct picture_params *k)
{
    real m[VECTORS], over[VECTORS], whiten[VECTORS], w[VECTORS], ratio[VECTORS], inverse[VECTORS];
    COLOURS(c[i] = det_min(c[i] * REAL(k->gain), REAL(MOST_LIGHT)))
    EACH(m[i] = det_max(c[3 * i], det_max(c[3 * i + 1], c[3 * i + 2])))
    EACH(over[i] = det_max(det_luminance(c[3 * i], c[3 * i + 1], c[3 * i + 2]) - REAL(k->fade),
                           REAL(0.0f)) *
                   REAL(k->fade_speed))
    EACH(whiten[i] = over[i] + REAL(3.0f))
#if COX_LOCAL
    EACH(w[i] = over[i] * det_rcp(whiten[i]))
    EACH(ratio[i] = local_ratio(m[i], model[i], &k->surround))
    COLOURS(c[i] = MULADD(m[i / 3] - c[i], w[i / 3], c[i]) * ratio[i / 3])
#else
    if (k->kind == 0) {
        real p[VECTORS], q[VECTORS];
        EACH(p[i] = MULADD(MULADD(m[i], REAL(k->a2), REAL(k->a1)), m[i], REAL(k->a0)))
        EACH(q[i] = MULADD(MULADD(m[i], REAL(k->b2), REAL(k->b1)), m[i], REAL(k->b0)) *
                    det_max(m[i], REAL(0x1p-40f)))
        EACH(inverse[i] = det_rcp(q[i] * whiten[i])) /* one reciprocal for both quotients */
        EACH(w[i] = over[i] * (inverse[i] * q[i]))
        EACH(ratio[i] = PICK(m[i] < REAL(k->knee), REAL(1.0f), p[i] * (inverse[i] * whiten[i])))
        COLOURS(c[i] = MULADD(m[i / 3] - c[i], w[i / 3], c[i]) * ratio[i / 3])
    } else if (k->kind == 2 || k->kind == 4) {
        real light[VECTORS];
        EACH(light[i] = det_max(m[i], REAL(0x1p-40f)))
        EACH(inverse[i] = det_rcp(light[i] * whiten[i]))
        EACH(w[i] = over[i] * (inverse[i] * light[i]))
        if (k->kind == 2) {
            EACH(ratio[i] = bt2390(light[i], &k->eetf))
        } else {
            EACH(ratio[i] = joined(light[i], &k->joined))
        }
        EACH(ratio[i] = ratio[i] * (inverse[i] * whiten[i]))
        COLOURS(c[i] = MULADD(m[i / 3] - c[i], w[i / 3], c[i]) * ratio[i / 3])
    } else {
        EACH(w[i] = over[i] * det_rcp(whiten[i]))
        COLOURS(c[i] = exposure_curve(MULADD(m[i / 3] - c[i], w[i / 3], c[i]), k))
    }
#endif
    COLOURS(c[i] = ENCODE_SRGB(det_min(c[i], REAL(1.0f))))
}

INLINE struct codes to_codes(const real *c, real alpha)
{
    struct codes out;
    out.r = det_quantise(c[0], COX_SCALE, COX_MASK);
    out.g = det_quantise(c[1], COX_SCALE, COX_MASK);
    out.b = det_quantise(c[2], COX_SCALE, COX_MASK);
    out.a = det_quantise(alpha, COX_SCALE, COX_MASK);
    return out;
}

/* Load the vector of pixels at `p`: its colours go to number n of `c`, its alpha to number n of
 * `alpha`. */
#define LOAD_VECTOR(n, p)      \
    {                          \
        struct pixels px;      \
        LOAD(p);               \
        UNPACK_COLOUR(px);     \
        UNPACK_ALPHA(px);      \
        c[3 * (n)] = px.r;     \
        c[3 * (n) + 1] = px.g; \
        c[3 * (n) + 2] = px.b; \
        alpha[n] = px.a;       \
    }

__kernel void picture(__global const uchar *in, __global uchar *out,
#if COX_LOCAL
                      __global const uchar *base, int base_origin, int first,
#endif
                      struct picture_params k, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct picture_params p = k;
    const int y = (int)get_global_id(1);
    int x = (int)get_global_id(0) * COX_ITEM;
    if (y >= rows || x >= COX_COLUMNS)
        return;
#if COX_LOCAL
    const struct local_rows model_rows = local_rows_at(base, first + y, base_origin, &p.surround);
#endif
    __global const uint *src = (__global const uint *)(in + (size_t)y * COX_IN_PITCH);
    __global uint *dst = (__global uint *)(out + (size_t)y * COX_OUT_PITCH);
    real c[3 * VECTORS], alpha[VECTORS];
    MODEL_TYPE model[VECTORS];
    const int item_end = min(x + COX_ITEM, COX_COLUMNS);
    for (; x + STEP <= item_end; x += STEP) {
        EACH(LOAD_VECTOR(i, src + (x + i * COX_WIDTH) * COX_IN_WORDS))
        EACH(model[i] = MODEL_AT(x + i * COX_WIDTH))
        map_pixels(c, model, &p);
        EACH(const struct codes codes = to_codes(c + 3 * i, alpha[i]);
             PACK(dst + (x + i * COX_WIDTH) * COX_OUT_WORDS, codes))
    }
#if COX_WIDTH > 1
    if (x < item_end) {
        const int rest = item_end - x;
        uint words[STEP * COX_IN_WORDS], packed[STEP * COX_OUT_WORDS];
        for (int i = 0; i < STEP * COX_IN_WORDS; i++)
            words[i] = i < rest * COX_IN_WORDS ? src[x * COX_IN_WORDS + i] : 0;
        EACH(LOAD_VECTOR(i, words + i * COX_WIDTH * COX_IN_WORDS))
        /* its rows end there */
        EACH(model[i] = MODEL_AT(x + (i * COX_WIDTH < rest ? i * COX_WIDTH : 0)))
        map_pixels(c, model, &p);
        EACH(const struct codes codes = to_codes(c + 3 * i, alpha[i]);
             PACK(packed + i * COX_WIDTH * COX_OUT_WORDS, codes))
        for (int i = 0; i < rest * COX_OUT_WORDS; i++)
            dst[x * COX_OUT_WORDS + i] = packed[i];
    }
#endif
}
