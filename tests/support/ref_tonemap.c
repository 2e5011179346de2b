/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_tonemap.h"
#include <math.h>
#include <string.h>

static double hable(double x)
{
    const double a = .15, b = .50, c = .10, d = .20, e = .02, f = .30;
    return (x * (a * x + c * b) + d * e) / (x * (a * x + b) + d * f) - e / f;
}

static double reinhard(double x, double peak)
{
    const double param = 0.5, p = (1 - param) / param;
    return x / (x + p) * (peak + p) / peak;
}

static double mobius(double x, double peak)
{
    const double j = 0.3;
    if (x <= j || peak <= 1)
        return x;
    const double a = -j * j * (peak - 1) / (j * j - 2 * j + peak);
    const double b = (j * j - 2 * j * peak + peak) / (peak - 1);
    return (b * b + 2 * b * j + j * j) / (b - a) * (x + a) / (x + b);
}

static double aces(double x)
{
    return x * (2.51 * x + .03) / (x * (2.43 * x + .59) + .14);
}

double ref_exposure_f(double k_low, double k_high)
{
    const double x = pow(2, k_high) - pow(2, k_low), y = pow(2, 3.5) - pow(2, k_low);
    if (x <= y)
        return 0;
    /* Newton's method, from the right of the root of a convex function. */
    double f = 1;
    while (exp(y * f) - x * f - 1 < 0)
        f += 1;
    for (int i = 0; i < 100; i++)
        f -= (exp(y * f) - x * f - 1) / (y * exp(y * f) - x);
    return f;
}

static double exposure(double x, double f)
{
    const double knee = pow(2, -3);
    double c = x * pow(2, 2.47393);
    if (c > knee && f > 0)
        c = knee + log((c - knee) * f + 1) / f;
    return c * pow(2, -3.5);
}

static const double pq_m1 = 2610.0 / 16384, pq_m2 = 2523.0 / 32, pq_c1 = 3424.0 / 4096, pq_c2 = 2413.0 / 128,
                    pq_c3 = 2392.0 / 128;

double ref_pq_light(double signal)
{
    const double p = pow(signal, 1 / pq_m2);
    return 10000 * pow(fmax(p - pq_c1, 0) / (pq_c2 - pq_c3 * p), 1 / pq_m1);
}

double ref_pq_signal(double nits)
{
    const double p = pow(nits / 10000, pq_m1);
    return pow((pq_c1 + pq_c2 * p) / (1 + pq_c3 * p), pq_m2);
}

double ref_bt2390(double x, double peak, double white_nits)
{
    if (peak <= 1)
        return fmin(x, 1);
    const double white = ref_pq_signal(white_nits), source = ref_pq_signal(fmin(peak * white_nits, 10000));
    const double max_lum = white / source, ks = 1.5 * max_lum - 0.5;
    const double e1 = fmin(ref_pq_signal(x * white_nits) / source, 1), t = (e1 - ks) / (1 - ks);
    if (e1 <= ks)
        return x;
    const double e2 = (2 * pow(t, 3) - 3 * pow(t, 2) + 1) * ks + (pow(t, 3) - 2 * pow(t, 2) + t) * (1 - ks) +
                      (-2 * pow(t, 3) + 3 * pow(t, 2)) * max_lum;
    return ref_pq_light(e2 * source) / white_nits;
}

/* Report ITU-R BT.2446, method A, for greys. */
static double bt2446a(double x, double peak, double white_nits)
{
    const double source = fmin(fmax(peak, 1) * white_nits, 10000);
    const double rho_in = 1 + 32 * pow(source / 10000, 1 / 2.4), rho_out = 1 + 32 * pow(white_nits / 10000, 1 / 2.4);
    const double video = pow(fmin(x * white_nits / source, 1), 1 / 2.4);
    const double even = log(1 + (rho_in - 1) * video) / log(rho_in);
    double mapped = 1.0770 * even;
    if (even > 0.7399)
        mapped = -1.1510 * even * even + 2.7811 * even - 0.6302;
    if (even >= 0.9909)
        mapped = 0.5 * even + 0.5;
    return pow((pow(rho_out, mapped) - 1) / (rho_out - 1), 2.4);
}

/* Report ITU-R BT.2446, method C, for greys: in and out in cd/m2, SDR white is 100. */
static double bt2446c_nits(double nits)
{
    const double bend = 58.5 / 0.83802;
    return nits < bend ? 0.83802 * nits : 15.09968 * log(nits / bend - 0.74204) + 78.99439;
}

/* Scaled so that the peak is not brighter than SDR white. */
static double bt2446c(double x, double peak, double white_nits)
{
    const double most = fmin(peak * white_nits, 10000);
    return bt2446c_nits(fmin(x * white_nits, most)) / fmax(bt2446c_nits(most), 100);
}

/* The cubic between two points (x, y) with slopes, by Hermite's basis. */
static double cubic(double x, double x0, double y0, double slope0, double x1, double y1, double slope1)
{
    const double t = (x - x0) / (x1 - x0), t2 = t * t, t3 = t2 * t;
    return (2 * t3 - 3 * t2 + 1) * y0 + (t3 - 2 * t2 + t) * (x1 - x0) * slope0 + (3 * t2 - 2 * t3) * y1 +
           (t3 - t2) * (x1 - x0) * slope1;
}

static double spline(double x, double peak, double white_nits)
{
    peak = fmin(peak, 10000 / white_nits);
    if (peak < 1.001)
        return x;
    const double white = ref_pq_signal(white_nits), most = ref_pq_signal(peak * white_nits);
    const double grey = ref_pq_signal(0.18 * white_nits), signal = ref_pq_signal(fmin(x, peak) * white_nits);
    const double mapped_grey = grey * (1 - pow(grey / white, 2) * (1 - white / most));
    const double steep = (white - mapped_grey) / (most - grey), slope = fmin(1, 2 * steep);
    const double mapped = signal <= grey ? cubic(signal, 0, 0, 1, grey, mapped_grey, slope)
                                         : cubic(signal, grey, mapped_grey, slope, most, white, 0.3 * steep);
    return ref_pq_light(mapped) / white_nits;
}

double ref_curve_in_nits(enum cox_operator op, double x, double peak, double white_nits)
{
    switch (op) {
    case COX_OPERATOR_BT2390:
    case COX_OPERATOR_HDR10PLUS:
        return ref_bt2390(x, peak, white_nits);
    case COX_OPERATOR_BT2446A:
        return bt2446a(x, peak, white_nits);
    case COX_OPERATOR_BT2446C:
        return bt2446c(x, peak, white_nits);
    case COX_OPERATOR_SPLINE:
        return spline(x, peak, white_nits);
    default:
        return NAN;
    }
}

double ref_hdr10plus(const struct cox_hdr10plus_curve *curve, double nits)
{
    const double knee_x = (double)curve->knee_x, knee_y = (double)curve->knee_y;
    const double x = fmin(nits / (double)curve->scene_peak_nits, 1);
    if (x <= knee_x)
        return knee_x > 0 ? curve->target_nits * x * knee_y / knee_x : 0;
    const double u = (x - knee_x) / (1 - knee_x);
    const int order = (int)curve->anchor_count + 1;
    double sum = pow(u, order), ways = 1;
    for (int i = 1; i < order; i++) {
        ways = ways * (order - i + 1) / i;
        sum += ways * pow(u, i) * pow(1 - u, order - i) * (double)curve->anchors[i - 1];
    }
    return curve->target_nits * (knee_y + (1 - knee_y) * sum);
}

double ref_operator_at(const struct ref_operator *operator, double x)
{
    switch (operator->op) {
    case COX_OPERATOR_HABLE:
        return hable(x) / hable(operator->peak);
    case COX_OPERATOR_REINHARD:
        return reinhard(x, operator->peak);
    case COX_OPERATOR_MOBIUS:
        return mobius(x, operator->peak);
    case COX_OPERATOR_ACES:
        return aces(x);
    case COX_OPERATOR_EXPOSURE:
        return exposure(x, operator->f);
    case COX_OPERATOR_LINEAR:
        return x / operator->peak;
    case COX_OPERATOR_BT2390:
    case COX_OPERATOR_BT2446A:
    case COX_OPERATOR_BT2446C:
    case COX_OPERATOR_SPLINE:
        return ref_curve_in_nits(operator->op, x, operator->peak, 203);
    case COX_OPERATOR_LOCAL:
        return ref_local_curve(x, operator->peak);
    case COX_OPERATOR_HDR10PLUS:
    case COX_OPERATOR_CLIP:
    case COX_OPERATOR_COUNT:
        break;
    }
    return x;
}

double ref_fade(const void *operator, ref_curve_fn * curve)
{
    double below = 1, above = pow(2, 24);
    while (above - below > 1e-13 * above) {
        const double middle = (below + above) / 2;
        if (curve(operator, middle) < 0.5)
            below = middle;
        else
            above = middle;
    }
    return above;
}

static double value_at(const void *operator, double x)
{
    return ref_operator_at(operator, x);
}

void ref_operator_init(struct ref_operator *operator, enum cox_operator op, double peak)
{
    *operator=(struct ref_operator){.op = op, .peak = peak == 0 ? 10 : peak};
    operator->f = ref_exposure_f(-3, log2(operator->peak) + 2.47393);
    operator->fade = ref_fade(operator, value_at);
}

double ref_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = ldexp(mantissa, -24);
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else if (exponent != 0)
        value = ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

uint16_t ref_to_half(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    const int exponent = value == 0 ? -14 : (int)fmax(floor(log2(value)), -14);
    const double mantissa = nearbyint(ldexp(value, 10 - exponent)); /* 1024 .. 2048, or less for a denormal */
    return (uint16_t)(sign | ((exponent + 14) * 1024 + (int)mantissa));
}

double ref_srgb(double linear)
{
    return linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
}

double ref_colour(double stored, enum cox_pixel_in format)
{
    if (isnan(stored) || stored < 0)
        return 0;
    if (format == COX_PIXEL_RGBA_HALF)
        return fmin(stored, 65504);
    return stored < pow(2, -40) ? 0 : fmin(stored, pow(2, 32));
}

double ref_luminance(const double rgb[3])
{
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}

double ref_tonemap_stored(const struct cox_tonemap_shape *shape, const void *in, uint32_t x, uint32_t y,
                          uint32_t channel)
{
    const char *row = (const char *)in + y * shape->in_pitch_bytes;
    const size_t at = 4 * (size_t)x + channel;
    uint16_t half;
    float value;
    if (shape->in == COX_PIXEL_RGBA_FLOAT) {
        memcpy(&value, row + 4 * at, 4);
        return (double)value;
    }
    memcpy(&half, row + 2 * at, 2);
    return ref_half(half);
}

struct exposed {
    const struct cox_tonemap_shape *shape;
    const void *in;
    double gain;
};

/* A ref_local_stops_fn. */
static double picture_stops(const void *user, uint32_t block_x, uint32_t block_y, uint32_t side)
{
    const struct exposed *picture = user;
    double sum = 0;
    for (uint32_t i = 0; i < side * side; i++) {
        const uint32_t x = block_x * side + i % side, y = block_y * side + i / side;
        double most = 0;
        for (uint32_t c = 0; c < 3; c++) {
            const double stored = ref_tonemap_stored(picture->shape, picture->in,
                                                     x < picture->shape->width ? x : picture->shape->width - 1,
                                                     y < picture->shape->height ? y : picture->shape->height - 1, c);
            most = fmax(most, ref_colour(stored, picture->shape->in));
        }
        sum += ref_local_stops(fmin(most * picture->gain, pow(2, 24)));
    }
    return sum / (side * side);
}

bool ref_tonemap_surround(struct ref_operator *operator, const struct cox_tonemap_settings * settings,
                          const struct cox_tonemap_shape *shape, const void *in)
{
    const struct exposed picture = {shape, in, pow(2, settings->exposure_stops)};
    return ref_local_init(&operator->local, shape->width, shape->height, 1, picture_stops, &picture);
}

void ref_tonemap_pixel(const struct ref_operator *operator, const struct cox_tonemap_settings * settings,
                       enum cox_pixel_in format, const double in[4], double scale, double out[4])
{
    double strength = settings->desaturate;
    if (strength == 0)
        strength = 0.75;
    strength = fmin(fmax(strength, 0), 1);

    double c[3];
    for (int i = 0; i < 3; i++)
        c[i] = fmin(ref_colour(in[i], format) * pow(2, settings->exposure_stops), pow(2, 24));
    const double over = strength * fmax(ref_luminance(c) / operator->fade - 1, 0);
    const double white = over / (over + 3);
    const double brightest = fmax(c[0], fmax(c[1], c[2]));
    for (int i = 0; i < 3; i++) {
        double light = c[i] * (1 - white) + brightest * white;
        if (operator->op == COX_OPERATOR_EXPOSURE)
            light = ref_operator_at(operator, light);
        else if (operator->op == COX_OPERATOR_LOCAL)
            light *= ref_local_ratio(&operator->local, operator->x, operator->y, brightest, operator->peak,
                                     settings->detail == 0 ? 1 : settings->detail);
        else if (brightest > 0)
            light *= ref_operator_at(operator, brightest) / brightest;
        out[i] = scale * ref_srgb(fmin(light, 1));
    }
    out[3] = scale * (isnan(in[3]) ? 1 : fmin(fmax(in[3], 0), 1));
}
