/* The error bounds that kernels/math/detmath.clh documents. The file is compiled as C, because its operations are
 * the same on the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/curve.h"
#include "support/ref_tonemap.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* OpenCL C built-ins that C lacks. */
#pragma GCC diagnostic ignored "-Wunused-function"
typedef unsigned int uint;
#ifndef __ENDIAN_LITTLE__
#define __ENDIAN_LITTLE__ 1
#endif

static inline float as_float(int bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline int as_int(float value)
{
    int bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline uint as_uint(float value)
{
    return (uint)as_int(value);
}

static inline float convert_float(int value)
{
    return (float)value;
}

static inline int convert_int(float value)
{
    return (int)value;
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

#ifdef COX_FMA
#define fma fmaf
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* gcc -std=c11 does not contract */
#endif
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "math/detmath.clh"
#include "math/joined.clh"

#include "math/pq.clh"

TestSuite(detmath, .timeout = 600);

/* Every `step`-th float from `from` to `to`, both positive. */
#define FOR_FLOATS(x, from, to, step)                                    \
    for (int x##_bits = as_int(from), x##_more = 1; x##_more;            \
         x##_more = x##_bits <= as_int(to) - (step), x##_bits += (step)) \
        for (float x = as_float(x##_bits), *x##_once = &x; x##_once; x##_once = NULL)

enum { STEP = 97 };

Test(detmath, reciprocal_is_within_two_units_in_the_last_place)
{
    double worst = 0;
    FOR_FLOATS(x, 0x1p-100f, 0x1p100f, 9973)
    worst = fmax(worst, fabs((double)det_rcp(x) * (double)x - 1));
    FOR_FLOATS(y, 1.0f, 4.0f, 7)
    worst = fmax(worst, fabs((double)det_rcp(y) * (double)y - 1));
    fprintf(stderr, "reciprocal: relative error %.3g\n", worst);
    cr_expect_lt(worst, 0x1p-22);
}

Test(detmath, logarithm_is_within_its_bound)
{
    double worst = 0;
    FOR_FLOATS(x, 0x1p-9f, 4.0f, STEP)
    worst = fmax(worst, fabs((double)det_log2(x) - log2((double)x)));
    fprintf(stderr, "log2: absolute error %.3g over 2^-9 .. 4\n", worst);
    cr_expect_lt(worst, 1.1e-6);
    FOR_FLOATS(y, 0x1p-125f, 0x1p125f, 9973)
    cr_assert_lt(fabs((double)det_log2(y) - log2((double)y)), 8e-6); /* + half a unit in the last place of 125 */
    cr_expect_eq(det_log2(1.0f), 0.0f);
}

Test(detmath, exponential_is_within_its_bound)
{
    double worst = 0;
    FOR_FLOATS(x, 0x1p-20f, 125.0f, STEP)
    {
        worst = fmax(worst, fabs((double)det_exp2(x) / exp2((double)x) - 1));
        worst = fmax(worst, fabs((double)det_exp2(-x) / exp2((double)-x) - 1));
    }
    fprintf(stderr, "exp2: relative error %.3g\n", worst);
    cr_expect_lt(worst, 3e-7);
    cr_expect_eq(det_exp2(0.0f), 1.0f);
}

Test(detmath, srgb_is_close_enough_for_its_codes)
{
    double worst8 = 0, worst16 = 0;
    FOR_FLOATS(x, 0x1p-30f, 1.0f, 29)
    {
        const double exact = (double)x <= 0.0031308 ? 12.92 * (double)x : 1.055 * pow((double)x, 1 / 2.4) - 0.055;
        worst8 = fmax(worst8, fabs((double)det_srgb8(x) - exact) * 255);
        worst16 = fmax(worst16, fabs((double)det_srgb16(x) - exact) * 65535);
    }
    fprintf(stderr, "sRGB before rounding: %.3f codes of 8 bits, %.3f codes of 16 bits\n", worst8, worst16);
    cr_expect_lt(worst8, 0.04);
    cr_expect_lt(worst16, 0.5);
    cr_expect_eq(det_quantise(det_srgb8(1.0f), 255.0f, 0xff), 255);
    cr_expect_eq(det_quantise(det_srgb16(1.0f), 65535.0f, 0xffff), 65535);
    cr_expect_eq(det_srgb8(0.0f), 0.0f);
    cr_expect_eq(det_srgb16(0.0f), 0.0f);
}

Test(detmath, halfs_are_decoded_exactly)
{
    for (int h = 0; h < 0x10000; h++) {
        double expected;
        if (h > 0x7c00)
            expected = 0; /* negative or NaN */
        else if (h == 0x7c00)
            expected = 65504;
        else
            expected = h < 0x400 ? ldexp(h, -24) : ldexp(0x400 | (h & 0x3ff), (h >> 10) - 25);
        cr_assert_eq((double)det_colour_half(h), expected, "%04x", (unsigned)h);
        const int nan = (h & 0x7fff) > 0x7c00;
        cr_assert_eq((double)det_alpha_half(h), nan ? 1 : fmin(expected, 1), "%04x", (unsigned)h);
    }
}

Test(detmath, quantising_rounds_to_the_nearest_code)
{
    for (int code = 0; code < 65535; code++) {
        cr_assert_eq(det_quantise((float)((code + 0.49) / 65535), 65535.0f, 0xffff), (uint)code);
        cr_assert_eq(det_quantise((float)((code + 0.51) / 65535), 65535.0f, 0xffff), (uint)code + 1);
    }
}

/* --- BT.2390 ------------------------------------------------------------------------------------------------------ */

static struct bt2390_params bt2390_of(double peak, double white_nits)
{
    const struct cox__curve curve = cox__curve_of(COX_OPERATOR_BT2390, peak, white_nits);
    cr_assert_eq(curve.kind, COX__CURVE_BT2390);
    struct cox__bt2390 host;
    struct bt2390_params kernel;
    cox__curve_bt2390(&curve, &host);
    cr_assert_eq(sizeof(host), sizeof(kernel));
    memcpy(&kernel, &host, sizeof(kernel));
    return kernel;
}

/* The largest relative difference between the kernel's curve and the host's. */
static double bt2390_error(double peak, double white_nits)
{
    const struct bt2390_params params = bt2390_of(peak, white_nits);
    const struct cox__curve curve = cox__curve_of(COX_OPERATOR_BT2390, peak, white_nits);
    double worst = 0;
    FOR_FLOATS(x, 0x1p-40f, (float)peak * 4, 20011)
    {
        const double exact = ref_bt2390((double)x, peak, white_nits);
        worst = fmax(worst, fabs((double)bt2390(x, &params) / exact - 1));
        cr_assert_lt(fabs(cox__curve_at(&curve, (double)x) / exact - 1), 1e-9);
    }
    return worst;
}

Test(detmath, bt2390_is_within_its_bound)
{
    const double whites[] = {48, 100, 203, 400, 1000}, nits[] = {1, 300, 600, 1000, 2000, 4000, 10000};
    for (int w = 0; w < 5; w++) {
        double worst = 0;
        for (int n = 0; n < 7; n++)
            worst = fmax(worst, bt2390_error(fmax(nits[n] / whites[w], 1.002), whites[w]));
        fprintf(stderr, "bt2390: relative error %.3g, white at %g cd/m2\n", worst, whites[w]);
        cr_expect_lt(worst, whites[w] > 200 ? 2e-6 : whites[w] > 99 ? 7e-6 : 3e-5);
    }
}

Test(detmath, bt2390_leaves_dark_light_as_it_is_and_takes_the_peak_to_white)
{
    const struct bt2390_params params = bt2390_of(1000 / 203.0, 203);
    const double knee = 0.43; /* PQ^-1(1.5 PQ(203) - 0.5 PQ(1000)) is 88 cd/m2 */
    FOR_FLOATS(x, 0x1p-40f, (float)knee, 20011)
    cr_assert_eq(bt2390(x, &params), x);
    cr_expect_lt(bt2390(0.45f, &params), 0.45f);
    cr_expect_float_eq(bt2390(1000 / 203.0f, &params), 1.0f, 2e-6);
    cr_expect_float_eq(bt2390(0x1p24f, &params), 1.0f, 2e-6);
    float before = 0;
    for (int i = 0; i <= 5000; i++) {
        const float now = bt2390(0.001f * (float)(i + 1), &params);
        cr_assert_geq(now, before - 2e-6f);
        before = now;
    }
}

Test(detmath, bt2390_is_defined_for_any_peak_and_white)
{
    const double whites[] = {0, 1, 10, 47, 203, 9999, 10000, 1e9}, peaks[] = {0, 0.5, 1, 1.0005, 1.002, 10, 1e4, 1e30};
    for (int w = 0; w < 8; w++) {
        for (int p = 0; p < 8; p++) {
            const struct cox__curve curve = cox__curve_of(COX_OPERATOR_BT2390, peaks[p], whites[w]);
            struct cox__bt2390 host;
            struct bt2390_params params;
            cox__curve_bt2390(&curve, &host);
            memcpy(&params, &host, sizeof(params));
            double before = 0;
            for (double x = 1e-6; x < 1e6; x *= 1.1) {
                const double y = cox__curve_at(&curve, x);
                cr_assert(y >= before * (1 - 1e-12), "white %g, peak %g: %g at %g", whites[w], peaks[p], y, x);
                before = y;
                if (curve.kind == COX__CURVE_BT2390)
                    cr_assert(fabs((double)bt2390((float)x, &params) / y - 1) < 1e-4, "white %g, peak %g: %g at %g",
                              whites[w], peaks[p], (double)bt2390((float)x, &params), x);
                else
                    cr_assert_eq(bt2390((float)x, &params), fminf((float)x, 1));
            }
            if (curve.kind == COX__CURVE_BT2390)
                cr_expect_float_eq(before, 1, 1e-9);
            else
                cr_expect(peaks[p] < 1.001 || whites[w] > 9000);
        }
    }
}

/* --- Curves in two pieces ----------------------------------------------------------------------------------------- */

static const enum cox_operator joined_operators[] = {COX_OPERATOR_BT2446A, COX_OPERATOR_BT2446C, COX_OPERATOR_SPLINE};
enum { JOINED = sizeof joined_operators / sizeof joined_operators[0] };

static struct joined_params joined_of(const struct cox__curve *curve)
{
    struct cox__joined host;
    struct joined_params kernel;
    cox__curve_joined(curve, &host);
    cr_assert_eq(sizeof(host), sizeof(kernel));
    memcpy(&kernel, &host, sizeof(kernel));
    return kernel;
}

/* Codes of 8 bits on a display of BT.1886. */
static double codes_of(double light)
{
    return 255 * pow(fmin(fmax(light, 0), 1), 1 / 2.4);
}

Test(detmath, joined_curves_are_within_an_eighth_of_a_code_and_rise)
{
    const double whites[] = {48, 100, 203, 400}, nits[] = {250, 410, 1000, 4000, 10000};
    for (int o = 0; o < JOINED; o++) {
        double worst = 0, usual = 0;
        for (int i = 0; i < 20; i++) {
            const double white = whites[i / 5], peak = fmax(nits[i % 5] / white, 1.01);
            const struct cox__curve curve = cox__curve_of(joined_operators[o], peak, white);
            cr_assert_eq(curve.kind, COX__CURVE_JOINED);
            const struct joined_params params = joined_of(&curve);
            double before = 0;
            FOR_FLOATS(x, 0x1p-20f, (float)peak * 2, 20011)
            {
                const double exact = ref_curve_in_nits(joined_operators[o], (double)x, peak, white);
                const double got = (double)joined(x, &params);
                cr_assert_lt(fabs(cox__curve_at(&curve, (double)x) / exact - 1), 1e-9);
                cr_assert_geq(got, before * (1 - 1e-5), "%s, white %g, peak %g: falls at %g",
                              cox_operator_name(joined_operators[o]), white, peak, (double)x);
                before = got;
                const double error = fabs(codes_of(got) - codes_of(exact));
                worst = fmax(worst, error);
                if (white == 203 && nits[i % 5] < 4000)
                    usual = fmax(usual, error);
            }
        }
        fprintf(stderr, "%s: error %.3f codes, %.3f for peaks up to 1000\n", cox_operator_name(joined_operators[o]),
                worst, usual);
        cr_expect_lt(worst, 0.12);
        cr_expect_lt(usual, 0.06);
    }
}

Test(detmath, joined_curves_are_defined_for_any_peak_and_white)
{
    const double whites[] = {0, 1, 10, 47, 203, 9999, 10000, 1e9}, peaks[] = {0, 0.5, 1, 1.0005, 1.002, 10, 1e4, 1e30};
    for (int i = 0; i < 64 * JOINED; i++) {
        const enum cox_operator op = joined_operators[i / 64];
        const double white = whites[i / 8 % 8], peak = peaks[i % 8];
        const struct cox__curve curve = cox__curve_of(op, peak, white);
        const struct joined_params params = joined_of(&curve);
        double before = 0, now = 0;
        for (double x = 1e-6; x < 1e6; x *= 1.1) {
            const double y = cox__curve_at(&curve, x);
            cr_assert(y >= before * (1 - 1e-12), "%s, white %g, peak %g: %g at %g", cox_operator_name(op), white, peak,
                      y, x);
            before = y;
            now = (double)joined((float)x, &params);
            cr_assert(isfinite(now) && now >= 0);
            if (curve.kind == COX__CURVE_JOINED)
                cr_assert(fabs(codes_of(now) - codes_of(y)) < 1.5, "%s, white %g, peak %g: %g, not %g, at %g",
                          cox_operator_name(op), white, peak, now, y, x);
        }
        cr_expect(now <= 1 + 1e-5, "%s, white %g, peak %g: %g", cox_operator_name(op), white, peak, now);
    }
}

/* Curves of HDR10+ from graded films, with one anchor, none, and steep ones; by Bernstein's polynomials. */
Test(detmath, curves_of_hdr10plus_are_within_half_a_code)
{
    static const struct cox_hdr10plus_curve curves[] = {
        {1000, 400, 0.0156f, 0.0662f, 9, {.259f, .651f, .724f, .782f, .829f, .867f, .899f, .924f, .935f}},
        {4000, 500, 0, 0, 9, {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f}},
        {1000, 1000, 0.1f, 0.2f, 1, {.684f}},
        {10000, 203, 0.12f, 0.366f, 0, {0}},
        {600, 150, 0.05f, 0.2f, 15, {.2f, .4f, .6f, .7f, .8f, .82f, .84f, .86f, .88f, .9f, .92f, .94f, .96f, .98f, 1}},
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        const struct cox_hdr10plus_curve *from = &curves[i];
        const struct cox__curve curve = cox__curve_hdr10plus(from, 203);
        const struct joined_params params = joined_of(&curve);
        const double peak = (double)from->scene_peak_nits / 203;
        FOR_FLOATS(x, 0x1p-14f, (float)peak * 2, 20011)
        {
            const double exact = ref_hdr10plus(from, (double)x * 203) / 203;
            cr_assert_lt(fabs(cox__curve_at(&curve, (double)x) - exact), 1e-6);
            worst = fmax(worst, fabs(codes_of((double)joined(x, &params)) - codes_of(exact)));
        }
    }
    fprintf(stderr, "hdr10plus: error %.3f codes\n", worst);
    cr_expect_lt(worst, 0.5);
}
