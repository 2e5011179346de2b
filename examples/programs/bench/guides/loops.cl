/* Loops, mathematics and pointers, each written several ways.
 *
 * Geometry: one dimension, one pixel per work-item (pointers_*: four), no guard.
 * Defines: EXP, LOG, SQRT, OVER: the functions of `functions`.
 * Access: a filter reads `in` from its item on, up to 15 values after the last pixel.
 * Numerics: sums in the order of the taps; native and half functions are less exact.
 * SPDX-License-Identifier: Apache-2.0 */
#define STEP(k) sum += taps[k] * in[i + (k)];
#define LOOP(count)                   \
    const size_t i = get_global_id(0); \
    float sum = 0;                    \
    for (int k = 0; k < (count); k++) \
        STEP(k)                       \
    out[i] = sum;

kernel void filter_argument(global const float *restrict in, global float *restrict out,
                            constant float *taps, int count)
{
    LOOP(count)
}

kernel void filter_define(global const float *restrict in, global float *restrict out,
                          constant float *taps, int count)
{
    LOOP(16)
}

kernel void filter_kept(global const float *restrict in, global float *restrict out,
                        constant float *taps, int count)
{
    const size_t i = get_global_id(0);
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 16; k++)
        STEP(k)
    out[i] = sum;
}

kernel void filter_pragma(global const float *restrict in, global float *restrict out,
                          constant float *taps, int count)
{
    const size_t i = get_global_id(0);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++)
        STEP(k)
    out[i] = sum;
}

kernel void filter_hand_4(global const float *restrict in, global float *restrict out,
                          constant float *taps, int count)
{
    const size_t i = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < count; k += 4) {
        STEP(k)
        STEP(k + 1)
        STEP(k + 2)
        STEP(k + 3)
    }
    out[i] = sum;
}

kernel void filter_hand(global const float *restrict in, global float *restrict out,
                        constant float *taps, int count)
{
    const size_t i = get_global_id(0);
    float sum = 0;
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
    STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
    out[i] = sum;
}

#ifndef EXP
#define EXP exp
#define LOG log
#define SQRT sqrt
#define OVER(a, b) ((a) / (b))
#endif
kernel void functions(global const float *restrict in, global float *restrict out)
{
    const size_t i = get_global_id(0);
    const float v = in[i];
    out[i] = OVER(EXP(-v) + LOG(1.0f + v), 1.0f + SQRT(v));
}

/* Values that may alias must be read again after each write. */
#define FOUR                               \
    const size_t first = get_global_id(0) * 4; \
    for (int n = 0; n < 4; n++)            \
        out[first + n] = in[first + n] * taps[0] + taps[1] * taps[2] + taps[3];

kernel void pointers_plain(global float *in, global float *out, global float *taps)
{
    FOUR
}

kernel void pointers_const(global const float *in, global float *out, global const float *taps)
{
    FOUR
}

kernel void pointers_restrict(global const float *restrict in, global float *restrict out,
                              global const float *restrict taps)
{
    FOUR
}

kernel void pointers_constant(global const float *restrict in, global float *restrict out,
                              constant float *taps)
{
    FOUR
}
