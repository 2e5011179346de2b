/* N multiply-adds on every pixel: v = v * 0.999 + 0.001, N times. N = 0 is a copy.
 *
 * Geometry: one dimension, no guard. A work-item has CHAINS vectors of VEC pixels, whose chains of
 * operations are independent. With SIDE_BY_SIDE, on GPUs, the vectors of a work-item are a whole
 * launch apart, so that neighbouring items read neighbouring vectors. Otherwise they follow each
 * other.
 * Defines: VEC (1, 2, 4, 8, 16), CHAINS, N, SIDE_BY_SIDE (0, 1); HINT: a vec_type_hint.
 * Access: reads each pixel of `in` once, writes each of `out` once.
 * Numerics: a device may fuse a multiplication and an addition; the host's tolerance covers that.
 * SPDX-License-Identifier: Apache-2.0 */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if VEC == 1
typedef float real;
#define LOAD(at, p) (p)[at]
#define STORE(v, at, p) (p)[at] = v
#else
typedef JOIN(float, VEC) real;
#define LOAD(at, p) JOIN(vload, VEC)(at, p)
#define STORE(v, at, p) JOIN(vstore, VEC)(v, at, p)
#endif
#ifdef HINT
#define HINTED __attribute__((vec_type_hint(HINT)))
#else
#define HINTED
#endif
#if SIDE_BY_SIDE
#define AT(c) (get_global_id(0) + c * get_global_size(0))
#else
#define AT(c) (get_global_id(0) * CHAINS + c)
#endif

HINTED kernel void ceiling(global const float *restrict in, global float *restrict out)
{
    real v[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        v[c] = LOAD(AT(c), in);
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            v[c] = v[c] * (real)(0.999f) + (real)(0.001f);
    }
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        STORE(v[c], AT(c), out);
}

/* The same with 16 consecutive pixels per work-item in a loop, for a compiler that vectorizes
 * loops. */
kernel void ceiling_loop(global const float *restrict in, global float *restrict out)
{
    const size_t first = get_global_id(0) * 16;
    for (int c = 0; c < 16; c++) {
        float v = in[first + c];
        for (int n = 0; n < N; n++)
            v = v * 0.999f + 0.001f;
        out[first + c] = v;
    }
}

/* Any number of work-items; those after the last pixel do nothing. */
kernel void ceiling_guarded(global const float *restrict in, global float *restrict out, int count)
{
    const size_t at = get_global_id(0);
    if (at >= (size_t)count)
        return;
    float v = in[at];
    for (int n = 0; n < N; n++)
        v = v * 0.999f + 0.001f;
    out[at] = v;
}

kernel void empty(global float *out)
{
}
