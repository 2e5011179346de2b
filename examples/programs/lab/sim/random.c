/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators;
 * Stafford's variant 13). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t lab_random_bits(uint64_t seed, uint32_t stream, uint64_t frame, uint32_t device,
                         uint32_t launch)
{
    uint64_t x = mix(seed ^ ((uint64_t)stream << 56));
    x = mix(x ^ frame);
    return mix(x ^ ((uint64_t)device << 32 | launch));
}

double lab_random_uniform(uint64_t bits)
{
    /* 2^-52: with the half, exact in 53 bits. */
    return ((double)(bits >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ln 2 in two parts. The low 32 bits of the first one's mantissa are zero. */
static const double LN2_HIGH = 6.93147180369123816490e-01;
static const double LN2_LOW = 1.90821492927058770002e-10;

double lab_exp(double x)
{
    if (!(x > -700)) /* NaN too */
        x = -700;
    if (x > 700)
        x = 700;

    double k = floor(x * 1.44269504088896338700 + 0.5);
    double r = (x - k * LN2_HIGH) - k * LN2_LOW; /* |r| <= ln 2 / 2 */
    double sum = 1.0;

    for (int n = 13; n > 0; n--)
        sum = 1.0 + r / n * sum;
    return sum * from_bits((uint64_t)(1023 + (int)k) << 52);
}

double lab_log(double x)
{
    uint64_t bits = to_bits(x);
    int exponent = (int)(bits >> 52) - 1023;
    double m = from_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u); /* 1 <= m < 2 */
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        exponent++;
    }

    /* log m = 2 artanh s; |s| < 0.1716, so that the terms up to s^21 reach 1e-17. */
    double s = (m - 1.0) / (m + 1.0);
    double square = s * s;
    double sum = 0;

    for (int n = 21; n > 0; n -= 2)
        sum = sum * square + 1.0 / n;
    return exponent * LN2_HIGH + (2.0 * s * sum + exponent * LN2_LOW);
}

/* A polynomial in Horner's form, the highest power first. */
static double polynomial(const double *coefficients, int count, double x)
{
    double sum = coefficients[0];
    for (int i = 1; i < count; i++)
        sum = sum * x + coefficients[i];
    return sum;
}

static double tail(double u)
{
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                               -2.400758277161838e+00, -2.549732539343734e+00,
                               4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00, 1.0};
    double q = sqrt(-2.0 * lab_log(u));
    return polynomial(c, 6, q) / polynomial(d, 5, q);
}

double lab_random_normal(double u)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01, 1.0};
    const double low = 0.02425;

    if (u < low)
        return tail(u);
    if (u > 1.0 - low)
        return -tail(1.0 - u);

    double q = u - 0.5;
    double r = q * q;
    return polynomial(a, 6, r) * q / polynomial(b, 6, r);
}
