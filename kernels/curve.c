/* SPDX-License-Identifier: Apache-2.0 */
#include "curve.h"
#include <math.h>

/* Hable's curve for Uncharted 2, scaled so that the peak becomes white. The subtraction of E/F is folded into the
 * numerator, where nothing cancels. */
static struct cox__curve curve_hable(double peak)
{
    const double a = 0.15, b = 0.50, c = 0.10, d = 0.20, e = 0.02, f = 0.30;
    const double a1 = c * b - b * (e / f), a2 = a * (1 - e / f);
    const double white = ((a2 * peak + a1) * peak) / ((a * peak + b) * peak + d * f);
    return (struct cox__curve){.a1 = a1 / white, .a2 = a2 / white, .b0 = d * f, .b1 = b, .b2 = a};
}

/* x / (x + 1), scaled so that the peak becomes white. */
static struct cox__curve curve_reinhard(double peak)
{
    return (struct cox__curve){.a1 = (peak + 1) / peak, .b0 = 1, .b1 = 1};
}

static struct cox__curve curve_clip(void)
{
    return (struct cox__curve){.a1 = 1, .b0 = 1};
}

static struct cox__curve curve_linear(double peak)
{
    return (struct cox__curve){.a1 = 1 / peak, .b0 = 1};
}

/* Linear up to j, then a Moebius transform that meets it with equal slope and takes the peak to white. */
static struct cox__curve curve_mobius(double peak)
{
    const double j = 0.3;
    if (peak < 1.001) /* nothing to compress; the formula tends to the identity */
        return curve_clip();
    const double a = -j * j * (peak - 1) / (j * j - 2 * j + peak);
    const double b = (j * j - 2 * j * peak + peak) / (peak - 1);
    const double scale = (b * b + 2 * b * j + j * j) / (b - a);
    return (struct cox__curve){.a0 = scale * a / b, .a1 = scale / b, .b0 = 1, .b1 = 1 / b, .knee = j};
}

/* Narkowicz's fit of the ACES reference rendering. */
static struct cox__curve curve_aces(void)
{
    return (struct cox__curve){.a1 = 0.03, .a2 = 2.51, .b0 = 0.14, .b1 = 0.59, .b2 = 2.43};
}

/* The operator of the OpenEXR viewers: light is scaled so that middle grey is 1, followed linearly to 2^-3 and
 * logarithmically from there, such that the peak becomes 2^3.5, which is white. */
static struct cox__curve curve_exposure(double peak)
{
    const double scale = exp2(2.47393), low = exp2(-3.0), white = exp2(3.5);
    const double x = peak * scale - low, y = white - low;
    if (x <= y * 1.001) /* nothing to compress: linear throughout */
        return (struct cox__curve){.kind = COX__CURVE_EXPOSURE, .slope = scale / white, .start = 0x1p30};
    /* f solves x f + 1 = exp(y f). Both sides are 1 at 0 and the right one is convex: it is the larger one above the
     * root. */
    double lo = 0, hi = 1;
    while (exp(y * hi) < x * hi + 1)
        hi *= 2;
    for (int i = 0; i < 200; i++) {
        const double f = (lo + hi) / 2;
        if (exp(y * f) < x * f + 1)
            lo = f;
        else
            hi = f;
    }
    return (struct cox__curve){.kind = COX__CURVE_EXPOSURE,
                               .slope = scale / white,
                               .start = low / scale,
                               .start_out = low / white,
                               .inner = hi * scale,
                               .outer = log(2.0) / (hi * white)};
}

struct cox__curve cox__curve_of(enum cox_operator op, double peak, double white_nits)
{
    (void)white_nits;
    peak = fmin(fmax(peak, 0x1p-10), 0x1p24); /* the kernel limits light to 2^24 */
    switch (op) {
    case COX_OPERATOR_HABLE:
        return curve_hable(peak);
    case COX_OPERATOR_REINHARD:
        return curve_reinhard(peak);
    case COX_OPERATOR_MOBIUS:
        return curve_mobius(peak);
    case COX_OPERATOR_ACES:
        return curve_aces();
    case COX_OPERATOR_EXPOSURE:
        return curve_exposure(peak);
    case COX_OPERATOR_LINEAR:
        return curve_linear(peak);
    case COX_OPERATOR_BT2390:
    case COX_OPERATOR_CLIP:
    case COX_OPERATOR_COUNT:
        break;
    }
    return curve_clip();
}

double cox__curve_at(const struct cox__curve *c, double x)
{
    if (c->kind == COX__CURVE_EXPOSURE)
        return x < c->start ? x * c->slope : c->start_out + c->outer * log2((x - c->start) * c->inner + 1);
    return x < c->knee ? x : ((c->a2 * x + c->a1) * x + c->a0) / ((c->b2 * x + c->b1) * x + c->b0);
}

double cox__curve_inverse(const struct cox__curve *c, double y, double lo, double hi)
{
    for (int i = 0; i < 100; i++) {
        const double x = sqrt(lo * hi);
        if (cox__curve_at(c, x) < y)
            lo = x;
        else
            hi = x;
    }
    return hi;
}
