/* The operators' curves: their constants, their values, and their polynomials for kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "curve.h"
#include <math.h>
#include <string.h>

/* Hable's curve for Uncharted 2, scaled so that the peak becomes white. The subtraction of E/F is
 * included in the numerator, where nothing cancels. */
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

/* Linear up to j, then a Moebius transform that meets it with equal slope and takes the peak to
 * white. */
static struct cox__curve curve_mobius(double peak)
{
    const double j = 0.3;
    /* Nothing to compress; the formula tends to the identity. */
    if (peak < 1.001)
        return curve_clip();

    const double a = -j * j * (peak - 1) / (j * j - 2 * j + peak);
    const double b = (j * j - 2 * j * peak + peak) / (peak - 1);
    const double scale = (b * b + 2 * b * j + j * j) / (b - a);

    return (struct cox__curve){
        .a0 = scale * a / b, .a1 = scale / b, .b0 = 1, .b1 = 1 / b, .knee = j};
}

/* Narkowicz's fit of the ACES reference rendering. */
static struct cox__curve curve_aces(void)
{
    return (struct cox__curve){.a1 = 0.03, .a2 = 2.51, .b0 = 0.14, .b1 = 0.59, .b2 = 2.43};
}

/* The operator of the OpenEXR viewers. Light is scaled so that middle grey is 1. The curve is
 * linear up to 2^-3 and logarithmic from there on. The peak becomes 2^3.5, which is white. */
static struct cox__curve curve_exposure(double peak)
{
    const double scale = exp2(2.47393), low = exp2(-3.0), white = exp2(3.5);
    const double x = peak * scale - low, y = white - low;

    /* If there is nothing to compress: linear throughout. */
    if (x <= y * 1.001)
        return (struct cox__curve){
            .kind = COX__CURVE_EXPOSURE, .slope = scale / white, .start = 0x1p30};

    /* Bisect for f, which solves x f + 1 = exp(y f). Both sides are 1 at 0 and the right one is
     * convex, so it is the larger one above the root. */
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

static const double pq_m1 = 2610.0 / 16384, pq_m2 = 2523.0 / 32;
static const double pq_c1 = 3424.0 / 4096, pq_c2 = 2413.0 / 128, pq_c3 = 2392.0 / 128;

double cox__curve_pq_signal(double light)
{
    const double y = pow(fmin(fmax(light, 0.0), 1.0), pq_m1);
    return pow((pq_c1 + pq_c2 * y) / (1 + pq_c3 * y), pq_m2);
}

double cox__curve_pq_light(double signal)
{
    const double y = pow(fmin(fmax(signal, 0.0), 1.0), 1 / pq_m2);
    return pow(fmax(y - pq_c1, 0.0) / (pq_c2 - pq_c3 * y), 1 / pq_m1);
}

/* The EETF of Report ITU-R BT.2390, without its black lift. */
static struct cox__curve curve_bt2390(double peak, double white_nits)
{
    const double white = white_nits / 10000;

    /* The spline is monotonic while SDR white has a third of the peak's signal. The kernel's fit is
     * good while white has 0.43 of it, which is so from 48 cd/m2 on (a cinema's white). With a
     * darker white the peak is lower. */
    const double source = fmin(cox__curve_pq_signal(peak * white),
                               cox__curve_pq_signal(white) / 0.43);
    peak = fmin(peak, cox__curve_pq_light(source) / white);

    if (!(peak >= 1.001)) /* nothing to compress */
        return curve_clip();

    const double most = cox__curve_pq_signal(white) / source;
    return (struct cox__curve){.kind = COX__CURVE_BT2390,
                               .most = most,
                               .spline = 1.5 * most - 0.5,
                               .source = source,
                               .white = white,
                               .peak = peak};
}

static double bt2390_at(const struct cox__curve *c, double x)
{
    const double signal = cox__curve_pq_signal(fmin(x, c->peak) * c->white) / c->source;

    if (signal <= c->spline)
        return x;

    const double t = (signal - c->spline) / (1 - c->spline), t2 = t * t, t3 = t2 * t;
    const double mapped = (2 * t3 - 3 * t2 + 1) * c->spline + (t3 - 2 * t2 + t) * (1 - c->spline) +
                          (3 * t2 - 2 * t3) * c->most;

    return cox__curve_pq_light(mapped * c->source) / c->white;
}

/* The base of the operator local: the response of Naka and Rushton. Reinhard and Devlin use it for
 * pictures (2005). It is scaled so that the peak becomes white and middle grey stays. Its power is
 * the slope of the shadows in stops. It lies a third of the way from 1 to the slope of the straight
 * line, in stops, from grey to the peak. */
static struct cox__curve curve_local(double peak)
{
    const double grey = 0.18, share = 1.0 / 3;
    if (peak < 1.001) /* nothing to compress */
        return curve_clip();

    const double above = log2(peak), below = -log2(grey);
    const double power = 1 - share * above / (above + below);
    const double part = pow(grey, power);

    return (struct cox__curve){.kind = COX__CURVE_LOCAL,
                               .power = power,
                               .half = part * (1 - grey) / (grey - pow(grey / peak, power)),
                               .peak = peak};
}

static const double local_floor = 0x1p-8;

static double local_at(const struct cox__curve *c, double x)
{
    const double within = fmin(fmax(x, local_floor), c->peak), part = pow(within, c->power);
    return x / within * part * (1 + c->half * pow(c->peak, -c->power)) / (part + c->half);
}

/* What is darker by this factor is black on a display: a curve may be straight there. */
static const double straight = 0x1p-14;

/* The peak of curves in terms of PQ, at most 10 000 cd/m2. */
static double within_pq(double peak, double white_nits)
{
    return fmin(peak, 10000 / white_nits);
}

/* Report ITU-R BT.2446, method A: k = 1 / ln(rho of the input), rho of the input and the output,
 * less 1. */
static double bt2446a_at(const struct cox__curve *c, double x)
{
    const double video = pow(fmin(x, c->peak) / c->peak, 1 / 2.4);
    const double even = log(1 + c->k[1] * video) * c->k[0];

    double mapped = 0.5 * even + 0.5;
    if (even <= 0.7399)
        mapped = 1.0770 * even;
    else if (even < 0.9909)
        mapped = (-1.1510 * even + 2.7811) * even - 0.6302;

    return pow((exp(mapped * log(1 + c->k[2])) - 1) / c->k[2], 2.4);
}

static struct cox__curve curve_bt2446a(double peak, double white_nits)
{
    peak = fmax(within_pq(peak, white_nits), 1.0);
    const double source = 32 * pow(peak * white_nits / 10000, 1 / 2.4);
    const double target = 32 * pow(white_nits / 10000, 1 / 2.4);
    const double video = (exp(0.7399 * log(1 + source)) - 1) / source;

    return (struct cox__curve){.kind = COX__CURVE_JOINED,
                               .at = bt2446a_at,
                               .peak = peak,
                               .begin = peak * pow(video, 2.4) * straight,
                               .join = peak * pow(video, 2.4),
                               .k = {1 / log(1 + source), source, target}};
}

/* Report ITU-R BT.2446, method C, without its crosstalk. k[0] is the light of SDR white, k[1] a
 * factor. If the report's curve exceeds white at the peak, it takes the peak to white. */
static const double bt2446c_slope = 0.83802, bt2446c_bend = 58.5 / 0.83802;

static double bt2446c_at(const struct cox__curve *c, double x)
{
    const double nits = fmin(x, c->peak) * c->k[0];
    if (nits < bt2446c_bend)
        return c->k[1] * bt2446c_slope * nits;
    return c->k[1] * (15.09968 * log(nits / bt2446c_bend - 0.74204) + 78.99439);
}

static struct cox__curve curve_bt2446c(double peak, double white_nits)
{
    struct cox__curve c = {.kind = COX__CURVE_JOINED,
                           .at = bt2446c_at,
                           .peak = within_pq(peak, white_nits),
                           .k = {white_nits, 0.01}};

    c.k[1] = 0.01 / fmax(bt2446c_at(&c, c.peak), 1.0);
    c.begin = fmin(bt2446c_bend / white_nits, c.peak / 2);
    c.join = fmin(3 * c.begin, sqrt(c.begin * c.peak));
    return c;
}

/* A cubic from (0, 0) to (width, height) with the given slopes at its ends. */
static double hermite(double x, double width, double height, double begin, double end)
{
    const double t = x / width, rest = 1 - t;
    return t * (rest * rest * width * begin + t * (3 - 2 * t) * height - t * rest * width * end);
}

/* Two cubics in the signal of PQ that meet at middle grey.
 *
 *   k[0], k[1]  grey in and out
 *   k[2], k[3]  the peak and SDR white
 *   k[4], k[5]  the slopes at grey and at the peak */
static double spline_at(const struct cox__curve *c, double x)
{
    const double grey = c->k[0], mapped_grey = c->k[1];
    const double signal = cox__curve_pq_signal(fmin(x, c->peak) * c->white);

    double mapped = hermite(signal, grey, mapped_grey, 1, c->k[4]);
    if (signal > grey)
        mapped = mapped_grey +
                 hermite(signal - grey, c->k[2] - grey, c->k[3] - mapped_grey, c->k[4], c->k[5]);
    return cox__curve_pq_light(mapped) / c->white;
}

static struct cox__curve curve_spline(double peak, double white_nits)
{
    const double grey_light = 0.18;
    peak = within_pq(peak, white_nits);
    if (peak < 1.001) /* nothing to compress */
        return curve_clip();

    const double light = white_nits / 10000;
    const double white = cox__curve_pq_signal(light), source = cox__curve_pq_signal(peak * light);
    const double grey = cox__curve_pq_signal(grey_light * light);

    /* Grey gets a part of what a straight line from black to white would take from it. */
    const double part = (grey / white) * (grey / white);
    const double mapped_grey = grey * (1 - part * (1 - white / source));

    /* Contrast is kept at grey, unless that would make the rest fall. */
    const double steepness = (white - mapped_grey) / (source - grey);

    return (struct cox__curve){
        .kind = COX__CURVE_JOINED,
        .at = spline_at,
        .white = light,
        .peak = peak,
        .begin = grey_light * straight,
        .join = grey_light,
        .k = {grey, mapped_grey, source, white, fmin(1, 2 * steepness), 0.3 * steepness}};
}

struct cox__curve cox__curve_of(enum cox_operator op, double peak, double white_nits)
{
    peak = fmin(fmax(peak, 0x1p-10), 0x1p24); /* the kernel limits light to 2^24 */
    white_nits = fmin(fmax(white_nits, 1.0), 10000.0);

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
    case COX_OPERATOR_HDR10PLUS: /* for the display; the frame's own curve comes before */
        return curve_bt2390(peak, white_nits);
    case COX_OPERATOR_LOCAL:
        return curve_local(peak);
    case COX_OPERATOR_BT2446A:
        return curve_bt2446a(peak, white_nits);
    case COX_OPERATOR_BT2446C:
        return curve_bt2446c(peak, white_nits);
    case COX_OPERATOR_SPLINE:
        return curve_spline(peak, white_nits);
    case COX_OPERATOR_CLIP:
    case COX_OPERATOR_COUNT:
        break;
    }
    return curve_clip();
}

/* B at u, by De Casteljau's construction. */
static double bezier_at(const struct cox_hdr10plus_curve *from, double u)
{
    enum { POINTS_MAX = COX_HDR10PLUS_ANCHORS_MAX + 2 };
    const uint32_t last = from->anchor_count + 1;
    double points[POINTS_MAX] = {0};

    for (uint32_t i = 0; i < from->anchor_count; i++)
        points[1 + i] = (double)from->anchors[i];
    points[last] = 1;

    for (uint32_t left = last; left > 0; left--)
        for (uint32_t i = 0; i < left; i++)
            points[i] += u * (points[i + 1] - points[i]);
    return points[0];
}

static double hdr10plus_at(const struct cox__curve *c, double light)
{
    const struct cox_hdr10plus_curve *from = c->hdr10plus;
    const double knee_x = (double)from->knee_x, knee_y = (double)from->knee_y;
    const double x = fmin(light / c->peak, 1);

    double y = knee_x > 0 ? x * knee_y / knee_x : 0;
    if (x > knee_x)
        y = knee_y + (1 - knee_y) * bezier_at(from, (x - knee_x) / (1 - knee_x));

    return fmax(y, x * straight) * c->k[0]; /* black only from black */
}

struct cox__curve cox__curve_hdr10plus(const struct cox_hdr10plus_curve *from, double white_nits)
{
    const double peak = (double)from->scene_peak_nits / white_nits;
    const double begin = peak * fmax((double)from->knee_x, straight);

    return (struct cox__curve){.kind = COX__CURVE_JOINED,
                               .at = hdr10plus_at,
                               .peak = peak,
                               .begin = begin,
                               .join = sqrt(begin * peak),
                               .k = {(double)from->target_nits / white_nits},
                               .hdr10plus = from};
}

static double exposure_at(const struct cox__curve *c, double x)
{
    if (x < c->start)
        return x * c->slope;
    return c->start_out + c->outer * log2((x - c->start) * c->inner + 1);
}

double cox__curve_at(const struct cox__curve *c, double x)
{
    if (c->kind == COX__CURVE_EXPOSURE)
        return exposure_at(c, x);
    if (c->kind == COX__CURVE_BT2390)
        return bt2390_at(c, x);
    if (c->kind == COX__CURVE_LOCAL)
        return local_at(c, x);
    if (c->kind == COX__CURVE_JOINED)
        return c->at(c, x);

    if (x < c->knee)
        return x;
    return ((c->a2 * x + c->a1) * x + c->a0) / ((c->b2 * x + c->b1) * x + c->b0);
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

enum { POWERS_MAX = 11 };

/* The powers of t of the polynomial that has the values `value` at the `count` places t. */
static void interpolate(const double *t, const double *value, int count, double *powers)
{
    double newton[POWERS_MAX]; /* divided differences */
    memcpy(newton, value, (size_t)count * sizeof(*newton));

    for (int order = 1; order < count; order++)
        for (int i = count - 1; i >= order; i--)
            newton[i] = (newton[i] - newton[i - 1]) / (t[i] - t[i - order]);

    for (int i = 0; i < count; i++)
        powers[i] = 0;
    /* Horner's scheme over the differences. */
    for (int i = count - 1; i >= 0; i--) {
        for (int j = count - 1; j > 0; j--)
            powers[j] = powers[j - 1] - t[i] * powers[j];
        powers[0] = newton[i] - t[i] * powers[0];
    }
}

static const double pi = 3.14159265358979323846;

/* q of pq.clh, by interpolation. Between the zeros of a Chebyshev polynomial, interpolation is very
 * close to the best fit. The square before q replaces the two zeros next to the knee. */
void cox__curve_bt2390(const struct cox__curve *c, struct cox__bt2390 *out)
{
    enum { COUNT = sizeof(out->q) / sizeof(out->q[0]) };
    memset(out, 0, sizeof(*out));

    if (c->kind != COX__CURVE_BT2390) { /* light up to white stays: the exponent is 0 */
        out->peak = 1;
        out->offset = -1;
        return;
    }

    const double low = log2(cox__curve_pq_light(c->spline * c->source) / c->white);
    const double high = log2(c->peak);
    double t[COUNT], value[COUNT], powers[COUNT];

    for (int i = 0; i < COUNT; i++) {
        t[i] = cos(pi * (i + 0.5) / (COUNT + 2));
        const double at = low + (high - low) * (t[i] + 1) / 2;
        value[i] = (log2(bt2390_at(c, exp2(at))) - at) / ((t[i] + 1) * (t[i] + 1));
    }

    interpolate(t, value, COUNT, powers);

    out->peak = (float)c->peak;
    out->scale = (float)(2 / (high - low));
    out->offset = (float)(-2 * low / (high - low) - 1);
    for (int i = 0; i < COUNT; i++)
        out->q[i] = (float)powers[i];
}

/* Fit one piece, from `low` to `high` in stops. The fit is exact at both ends. bt2446a jumps by
 * 0.0006 of its signal where the pieces meet, so the ends are taken a little inside. */
static void fit_piece(const struct cox__curve *c, double low, double high, struct cox__joined *out,
                      int piece)
{
    enum { COUNT = sizeof(out->q[0]) / sizeof(out->q[0][0]) };
    double t[COUNT], value[COUNT], powers[COUNT];

    for (int i = 0; i < COUNT; i++) {
        t[i] = cos(pi * i / (COUNT - 1));
        const double within = fmin(fmax((t[i] + 1) / 2, 1e-9), 1 - 1e-9);
        const double at = low + (high - low) * within;
        value[i] = log2(c->at(c, exp2(at))) - at;
    }

    interpolate(t, value, COUNT, powers);

    out->scale[piece] = (float)(2 / (high - low));
    out->offset[piece] = (float)(-2 * low / (high - low) - 1);
    for (int i = 0; i < COUNT; i++)
        out->q[piece][i] = (float)powers[i];
}

void cox__curve_joined(const struct cox__curve *c, struct cox__joined *out)
{
    memset(out, 0, sizeof(*out));

    if (c->kind != COX__CURVE_JOINED) { /* light up to white stays: the exponents are 0 */
        out->peak = 1;
        return;
    }

    const double high = log2(c->peak), join = fmin(log2(c->join), high - 0x1p-10);
    fit_piece(c, log2(c->begin), join, out, 0);
    fit_piece(c, join, high, out, 1);

    out->peak = (float)c->peak;
    out->join = (float)exp2(join);
}

void cox__curve_local(const struct cox__curve *c, struct cox__local_curve *out)
{
    enum { COUNT = sizeof(out->q) / sizeof(out->q[0]) };
    memset(out, 0, sizeof(*out));

    if (c->kind != COX__CURVE_LOCAL)
        return;

    const double low = log2(local_floor), high = log2(c->peak);

    double t[COUNT], value[COUNT], powers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        t[i] = cos(pi * (i + 0.5) / COUNT);
        const double at = low + (high - low) * (t[i] + 1) / 2;
        value[i] = log2(local_at(c, exp2(at))) - at;
    }

    interpolate(t, value, COUNT, powers);

    out->scale = (float)(2 / (high - low));
    out->offset = (float)(-2 * low / (high - low) - 1);
    for (int i = 0; i < COUNT; i++)
        out->q[i] = (float)powers[i];
}
