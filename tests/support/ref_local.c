/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_local.h"
#include <math.h>
#include <stdlib.h>

static const double darkest = -8; /* in stops */

double ref_local_stops(double light)
{
    return light > 0 ? fmax(log2(light), darkest) : darkest;
}

static double repeat_edge(const double *plane, const struct ref_local *local, long x, long y)
{
    const long width = (long)local->width, height = (long)local->height;
    x = x < 0 ? 0 : x >= width ? width - 1 : x;
    y = y < 0 ? 0 : y >= height ? height - 1 : y;
    return plane[y * width + x];
}

/* The weighted mean along one axis. Weights fall linearly to 0 at `radius`. */
static void tent(const struct ref_local *local, const double *from, double *to, long radius, bool down)
{
    for (long y = 0; y < (long)local->height; y++) {
        for (long x = 0; x < (long)local->width; x++) {
            double sum = 0, weights = 0;
            for (long i = 1 - radius; i < radius; i++) {
                const double weight = 1 - fabs((double)i) / (double)radius;
                sum += weight * repeat_edge(from, local, down ? x : x + i, down ? y + i : y);
                weights += weight;
            }
            to[y * (long)local->width + x] = sum / weights;
        }
    }
}

static void smooth(const struct ref_local *local, double *plane, double *room, long radius)
{
    tent(local, plane, room, radius, false);
    tent(local, room, plane, radius, true);
}

bool ref_local_init(struct ref_local *local, uint32_t width, uint32_t height, uint32_t pair,
                    ref_local_stops_fn *stops_of, const void *user)
{
    const double epsilon = 1.0 / 32;
    uint32_t side = pair;
    while (side < 32 && ((width > height ? width : height) + side - 1) / side > 480)
        side *= 2;
    *local = (struct ref_local){
        .width = (width + side - 1) / side, .height = (height + side - 1) / side, .side = side, .pair = pair};
    const size_t count = (size_t)local->width * local->height;
    double *mean = calloc(count, sizeof *mean), *square = calloc(count, sizeof *square);
    double *room = malloc(count * sizeof *room);
    local->a = malloc(count * sizeof *local->a);
    local->b = malloc(count * sizeof *local->b);
    const bool good = mean && square && room && local->a && local->b;
    for (size_t i = 0; good && i < count; i++) {
        mean[i] = stops_of(user, (uint32_t)(i % local->width), (uint32_t)(i / local->width), side);
        square[i] = mean[i] * mean[i];
    }
    if (good) {
        smooth(local, mean, room, 16);
        smooth(local, square, room, 16);
        for (size_t i = 0; i < count; i++) {
            const double variance = fmax(square[i] - mean[i] * mean[i], 0);
            local->a[i] = variance * variance / (variance * variance + epsilon * epsilon);
            local->b[i] = mean[i] * (1 - local->a[i]);
        }
        smooth(local, local->a, room, 8);
        smooth(local, local->b, room, 8);
    }
    free(mean);
    free(square);
    free(room);
    if (!good)
        ref_local_free(local);
    return good;
}

void ref_local_free(struct ref_local *local)
{
    free(local->a);
    free(local->b);
    local->a = local->b = NULL;
}

/* Linear interpolation between the centres of blocks, at the centre of the pixel's pair. */
static double interpolated(const struct ref_local *local, const double *plane, uint32_t x, uint32_t y)
{
    const double side = local->side, pair = local->pair;
    const double at_x = (floor(x / pair) + 0.5) * pair / side - 0.5, at_y = (floor(y / pair) + 0.5) * pair / side - 0.5;
    const long i = (long)floor(at_x), j = (long)floor(at_y);
    const double right = at_x - floor(at_x), down = at_y - floor(at_y);
    const double upper = repeat_edge(plane, local, i, j) * (1 - right) + repeat_edge(plane, local, i + 1, j) * right;
    const double lower = repeat_edge(plane, local, i, j + 1) * (1 - right) +
                         repeat_edge(plane, local, i + 1, j + 1) * right;
    return upper * (1 - down) + lower * down;
}

double ref_local_base(const struct ref_local *local, uint32_t x, uint32_t y, double stops)
{
    return interpolated(local, local->a, x, y) * stops + interpolated(local, local->b, x, y);
}

double ref_local_curve(double x, double peak)
{
    const double grey = 0.18, above = log2(peak);
    if (peak < 1.001)
        return x;
    const double n = 1 - above / (above - log2(grey)) / 3;
    const double half = pow(grey, n) * (1 - grey) / (grey - pow(grey / peak, n));
    const double within = fmin(fmax(x, pow(2, darkest)), peak);
    const double response = pow(within, n) / (pow(within, n) + half), white = pow(peak, n) / (pow(peak, n) + half);
    return x * response / white / within;
}

double ref_local_ratio(const struct ref_local *local, uint32_t x, uint32_t y, double m, double peak, double detail)
{
    const double stops = ref_local_stops(m), base = ref_local_base(local, x, y, stops), light = exp2(base);
    return ref_local_curve(light, peak) / light * exp2((detail - 1) * (stops - base));
}
