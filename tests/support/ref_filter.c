/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_filter.h"
#include "support/check.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t channels_of(const struct cox_filter_shape *shape)
{
    return shape->channels ? shape->channels : 1;
}

static double *new_plane(size_t samples)
{
    double *plane = calloc(samples, sizeof *plane);
    if (!plane)
        abort();
    return plane;
}

/* --- Convolutions ------------------------------------------------------------------------------------------------- */

double ref_filter_clean(float x)
{
    if (isnan(x) || fabsf(x) < 0x1p-40f)
        return 0;
    return fmin(fmax((double)x, -0x1p60), 0x1p60);
}

static double edge(double x)
{
    return ref_filter_clean((float)x);
}

/* Applies the edge rule until the place is inside. Returns -1 for a zero. */
static long place(long i, long n, enum cox_filter_edge how)
{
    while (i < 0 || i >= n) {
        if (how == COX_FILTER_ZERO)
            return -1;
        if (how == COX_FILTER_CLAMP || n == 1)
            i = i < 0 ? 0 : n - 1;
        else
            i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}

static double at(const struct cox_filter_shape *s, const double *plane, long x, long y, size_t c)
{
    x = place(x, s->width, s->edge);
    y = place(y, s->height, s->edge);
    return x < 0 || y < 0 ? 0 : plane[((size_t)y * s->width + (size_t)x) * channels_of(s) + c];
}

/* The weight as the kernels use it. */
static double weight_of(const struct cox_filter_shape *s, const float *floats, const int32_t *ints, long i)
{
    return s->sample != COX_FILTER_FLOAT ? ints[i] : fabsf(floats[i]) < 0x1p-40f ? 0 : (double)floats[i];
}

/* A sum computed in float. In double, the product of two floats and the sum of two floats are exact, or rounded
 * without effect on the result. */
struct sum {
    double rounded, exact, magnitude;
    bool begun;
};

static void add(struct sum *sum, double weight, double x)
{
    const float product = (float)(weight * x);
    sum->rounded = sum->begun ? (double)(float)(sum->rounded + (double)product) : (double)product;
    sum->begun = true;
}

static void add_exact(struct sum *sum, double weight, double x)
{
    sum->exact += weight * x;
    sum->magnitude += fabs(weight * x);
}

static double code_of(const struct cox_filter_shape *s, double sum, uint32_t shift)
{
    const double half = shift ? ldexp(1, (int)shift - 1) : 0;
    return fmin(fmax(floor(ldexp(sum + half, -(int)shift)), 0), s->sample == COX_FILTER_8 ? 255 : 65535);
}

static void judge(const struct sum *sum, double *ulps)
{
    if (ulps && sum->magnitude > 0)
        *ulps = fmax(*ulps, fabs(sum->rounded - sum->exact) / sum->magnitude * 0x1p24);
}

void ref_filter_separable(const struct cox_filter_shape *s, const double *in, const struct cox_filter_weights *weights,
                          double *out, double *ulps)
{
    const long rx = s->radius_x, ry = s->radius_y;
    const size_t channels = channels_of(s), row = s->width * channels;
    double *mid = new_plane(row * s->height);
    for (long y = 0; y < s->height; y++)
        for (size_t e = 0; e < row; e++) {
            struct sum sum = {0};
            for (long i = -rx; i <= rx; i++)
                add(&sum, weight_of(s, weights->across, weights->across_int, i + rx),
                    edge(at(s, in, (long)(e / channels) + i, y, e % channels)));
            mid[(size_t)y * row + e] = sum.rounded;
        }
    for (long y = 0; y < s->height; y++)
        for (size_t e = 0; e < row; e++) {
            const long x = (long)(e / channels);
            struct sum sum = {0};
            for (long j = -ry; j <= ry; j++) {
                const double down = weight_of(s, weights->down, weights->down_int, j + ry);
                const double here = at(s, mid, x, y + j, e % channels);
                add(&sum, down, fabs(here) < 0x1p-40 ? 0 : here);
                for (long i = -rx; i <= rx; i++)
                    add_exact(&sum, down * weight_of(s, weights->across, weights->across_int, i + rx),
                              edge(at(s, in, x + i, y + j, e % channels)));
            }
            judge(&sum, ulps);
            out[(size_t)y * row + e] = s->sample == COX_FILTER_FLOAT ? sum.rounded
                                                                     : code_of(s, sum.exact, weights->shift);
        }
    free(mid);
}

void ref_filter_convolution(const struct cox_filter_shape *s, const double *in,
                            const struct cox_filter_weights *weights, double *out, double *ulps)
{
    const long rx = s->radius_x, ry = s->radius_y;
    const size_t channels = channels_of(s), row = s->width * channels;
    for (long y = 0; y < s->height; y++)
        for (size_t e = 0; e < row; e++) {
            struct sum sum = {0};
            for (long j = -ry; j <= ry; j++)
                for (long i = -rx; i <= rx; i++) {
                    const double w = weight_of(s, weights->across, weights->across_int,
                                               (j + ry) * (2 * rx + 1) + i + rx);
                    const double x = edge(at(s, in, (long)(e / channels) + i, y + j, e % channels));
                    add(&sum, w, x);
                    add_exact(&sum, w, x);
                }
            judge(&sum, ulps);
            out[(size_t)y * row + e] = s->sample == COX_FILTER_FLOAT ? sum.rounded
                                                                     : code_of(s, sum.exact, weights->shift);
        }
}

/* --- Gaussian ----------------------------------------------------------------------------------------------------- */

/* Applies a function to every row of each channel, then to every column. */
typedef void line_fn(const double *in, double *out, size_t count, double sigma);

static void both_ways(const struct cox_filter_shape *s, const double *in, double sigma_x, double sigma_y, double *out,
                      line_fn *line)
{
    const size_t channels = channels_of(s), row = s->width * channels;
    const size_t longest = s->width > s->height ? s->width : s->height;
    double *from = new_plane(longest), *to = new_plane(longest);
    for (size_t y = 0; y < s->height; y++)
        for (size_t c = 0; c < channels; c++) {
            for (size_t x = 0; x < s->width; x++)
                from[x] = edge(in[y * row + x * channels + c]);
            line(from, to, s->width, sigma_x);
            for (size_t x = 0; x < s->width; x++)
                out[y * row + x * channels + c] = to[x];
        }
    for (size_t e = 0; e < row; e++) {
        for (size_t y = 0; y < s->height; y++)
            from[y] = out[y * row + e];
        line(from, to, s->height, sigma_y);
        for (size_t y = 0; y < s->height; y++)
            out[y * row + e] = to[y];
    }
    free(from);
    free(to);
}

/* The poles of van Vliet, Young and Verbeek for sigma = 2, scaled until the variance is right. */
static void coefficients(double sigma, double b[4])
{
    const double complex poles[3] = {1.41650 + 1.00829 * I, 1.41650 - 1.00829 * I, 1.86543};
    double complex p[3] = {0};
    double q = 0.01;
    for (int bit = 8; bit > -44; bit--) {
        const double step = ldexp(1, bit);
        double complex variance = 0;
        for (int i = 0; i < 3; i++) {
            p[i] = cpow(poles[i], 1 / (q + step));
            variance += 2 * p[i] / ((p[i] - 1) * (p[i] - 1));
        }
        if (creal(variance) <= sigma * sigma)
            q += step;
    }
    for (int i = 0; i < 3; i++)
        p[i] = cpow(poles[i], -1 / q);
    b[1] = creal(p[0] + p[1] + p[2]);
    b[2] = -creal(p[0] * p[1] + p[0] * p[2] + p[1] * p[2]);
    b[3] = creal(p[0] * p[1] * p[2]);
    b[0] = creal((1 - p[0]) * (1 - p[1]) * (1 - p[2]));
}

static void recursive_line(const double *in, double *out, size_t count, double sigma)
{
    const size_t more = (size_t)(40 * sigma) + 64, all = count + 2 * more;
    double *w = new_plane(all), b[4];
    coefficients(sigma, b);
    for (size_t i = 0; i < all; i++) {
        const double x = in[i < more ? 0 : i - more < count ? i - more : count - 1];
        w[i] = i < 3 ? x : b[0] * x + b[1] * w[i - 1] + b[2] * w[i - 2] + b[3] * w[i - 3];
    }
    for (size_t i = all - 3; i-- > 0;)
        w[i] = b[0] * w[i] + b[1] * w[i + 1] + b[2] * w[i + 2] + b[3] * w[i + 3];
    memcpy(out, w + more, count * sizeof *out);
    free(w);
}

static void gaussian_line(const double *in, double *out, size_t count, double sigma)
{
    const long radius = (long)ceil(8 * sigma);
    for (long n = 0; n < (long)count; n++) {
        double sum = 0, all = 0;
        for (long i = -radius; i <= radius; i++) {
            const double w = exp(-0.5 * (double)(i * i) / (sigma * sigma));
            sum += w * in[n + i < 0 ? 0 : n + i < (long)count ? n + i : (long)count - 1];
            all += w;
        }
        out[n] = sum / all;
    }
}

void ref_filter_recursive(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                          double *out)
{
    both_ways(shape, in, sigma_x, sigma_y, out, recursive_line);
}

void ref_filter_gaussian(const struct cox_filter_shape *shape, const double *in, double sigma_x, double sigma_y,
                         double *out)
{
    both_ways(shape, in, sigma_x, sigma_y, out, gaussian_line);
}

/* --- Windows ------------------------------------------------------------------------------------------------------ */

/* The part of the window around sample `e` of row `y` that lies inside the frame. */
struct window {
    size_t x0, x1, y0, y1, channel;
    int64_t count;
};

static struct window window_at(const struct cox_filter_shape *s, size_t y, size_t e)
{
    const size_t x = e / channels_of(s);
    struct window w = {.x0 = x > s->radius_x ? x - s->radius_x : 0,
                       .y0 = y > s->radius_y ? y - s->radius_y : 0,
                       .x1 = x + s->radius_x + 1 < s->width ? x + s->radius_x + 1 : s->width,
                       .y1 = y + s->radius_y + 1 < s->height ? y + s->radius_y + 1 : s->height,
                       .channel = e % channels_of(s)};
    w.count = (int64_t)((w.x1 - w.x0) * (w.y1 - w.y0));
    return w;
}

/* The sum of a - from_a, or of (a - from_a)(b - from_b). It is exact for integer samples. */
static double window_sum(const struct cox_filter_shape *s, const struct window *w, const double *a, double from_a,
                         const double *b, double from_b)
{
    double sum = 0;
    for (size_t y = w->y0; y < w->y1; y++)
        for (size_t x = w->x0; x < w->x1; x++) {
            const size_t at = (y * s->width + x) * channels_of(s) + w->channel;
            sum += (a[at] - from_a) * (b ? b[at] - from_b : 1);
        }
    return sum;
}

static int64_t window_count(const struct cox_filter_shape *s, const struct window *w, const int64_t *a)
{
    int64_t sum = 0;
    for (size_t y = w->y0; y < w->y1; y++)
        for (size_t x = w->x0; x < w->x1; x++)
            sum += a[(y * s->width + x) * channels_of(s) + w->channel];
    return sum;
}

void ref_filter_box(const struct cox_filter_shape *s, const double *in, double *out)
{
    const size_t row = s->width * channels_of(s);
    for (size_t i = 0; i < row * s->height; i++) {
        const struct window w = window_at(s, i / row, i % row);
        const int64_t mean = ((int64_t)window_sum(s, &w, in, 0, NULL, 0) + w.count / 2) / w.count;
        out[i] = (double)mean;
    }
}

/* Rounds to nearest, ties away from 0. */
static int64_t divide(int64_t a, int64_t b)
{
    return a < 0 ? -((-a + b / 2) / b) : (a + b / 2) / b;
}

void ref_filter_guided(const struct cox_filter_shape *s, const double *in, const double *guide, double epsilon,
                       double *out)
{
    const size_t row = s->width * channels_of(s), all = row * s->height;
    const double range = s->sample == COX_FILTER_8 ? 255 : 65535;
    const int64_t eps = (int64_t)fmax(floor(epsilon * range * range + 0.5), 1);
    int64_t *a = calloc(all, sizeof *a), *b = calloc(all, sizeof *b);
    if (!a || !b)
        abort();
    for (size_t at = 0; at < all; at++) {
        const struct window w = window_at(s, at / row, at % row);
        const int64_t n = w.count;
        const int64_t i = (int64_t)window_sum(s, &w, guide, 0, NULL, 0), p = (int64_t)window_sum(s, &w, in, 0, NULL, 0);
        const int64_t ii = (int64_t)window_sum(s, &w, guide, 0, guide, 0);
        const int64_t ip = (int64_t)window_sum(s, &w, guide, 0, in, 0);
        int64_t cov = n * ip - i * p, var = n * ii - i * i + eps * n * n, size = cov < 0 ? -cov : cov;
        while (var > INT32_MAX) {
            var /= 2;
            size /= 2;
        }
        size = size > 2047 * var ? 2047 * var : size;
        a[at] = divide((cov < 0 ? -size : size) * (1 << 20), var);
        b[at] = divide(p * (1 << 20) - a[at] * i, n);
    }
    for (size_t at = 0; at < all; at++) {
        const struct window w = window_at(s, at / row, at % row);
        const int64_t n = w.count * (1 << 20);
        const int64_t sum = window_count(s, &w, a) * (int64_t)guide[at] + window_count(s, &w, b) + n / 2;
        const int64_t code = sum < 0 ? 0 : sum / n;
        out[at] = fmin((double)code, range);
    }
    free(a);
    free(b);
}

void ref_filter_guided_exact(const struct cox_filter_shape *s, const double *in, const double *guide, double epsilon,
                             double *out)
{
    const size_t row = s->width * channels_of(s), all = row * s->height;
    const double range = s->sample == COX_FILTER_8 ? 255 : 65535, eps = fmax(epsilon * range * range, 1);
    double *a = new_plane(all), *b = new_plane(all);
    for (size_t at = 0; at < all; at++) {
        const struct window w = window_at(s, at / row, at % row);
        const double n = (double)w.count;
        const double i = window_sum(s, &w, guide, 0, NULL, 0) / n, p = window_sum(s, &w, in, 0, NULL, 0) / n;
        const double var = window_sum(s, &w, guide, i, guide, i) / n, cov = window_sum(s, &w, guide, i, in, p) / n;
        a[at] = cov / (var + eps);
        b[at] = p - a[at] * i;
    }
    for (size_t at = 0; at < all; at++) {
        const struct window w = window_at(s, at / row, at % row);
        const double n = (double)w.count;
        out[at] = window_sum(s, &w, a, 0, NULL, 0) / n * guide[at] + window_sum(s, &w, b, 0, NULL, 0) / n;
    }
    free(a);
    free(b);
}
