/* SPDX-License-Identifier: Apache-2.0 */
#include "f_distribution.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz's method (Abramowitz and Stegun,
 * 26.5.8). It converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    static const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);

    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= 10000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double before = result;

        for (int half = 0; half < 2; half++) {
            const double term = half ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            before = result;
            result *= d * c;
        }
        if (fabs(result - before) <= 1e-15 * fabs(result))
            break;
    }

    return result;
}

/* The regularised incomplete beta function. */
static double beta(double a, double b, double x)
{
    if (!(x > 0))
        return 0;
    if (x >= 1)
        return 1;

    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double f_tail(double f, double degrees, double error_degrees)
{
    if (isnan(f))
        return NAN;
    if (f <= 0)
        return 1;
    return beta(error_degrees / 2, degrees / 2, error_degrees / (error_degrees + degrees * f));
}
