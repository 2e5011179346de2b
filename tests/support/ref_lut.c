/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_lut.h"
#include "bits_frame.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct cox_video_lut *ref_lut_of(uint32_t points)
{
    static struct cox_video_lut kept[COX_LUT_POINTS_MAX + 1];
    struct cox_video_lut *lut = &kept[points];
    if (lut->colors)
        return lut;

    const size_t count = (size_t)points * points * points;
    float *colors = bits_memory(3 * count * sizeof *colors);
    uint32_t seed = points;
    for (size_t i = 0; i < 3 * count; i++) {
        const size_t point = i / 3, place[3] = {point % points, point / points % points, point / points / points};
        const double along = (double)place[i % 3] / (points - 1), across = (double)place[(i + 1) % 3] / (points - 1);
        seed = seed * 1664525u + 1013904223u;
        colors[i] = (float)(1.2 * pow(along, 0.8) - 0.1 * across + ((seed >> 8) / 16777216.0 - 0.5) / points);
    }
    *lut = (struct cox_video_lut){.points = points, .colors = colors};
    if (points % 2 == 0) {
        static const float least[3] = {-0.25f, 0.125f, 0}, most[3] = {1, 0.875f, 1.5f};
        memcpy(lut->domain_least, least, sizeof least);
        memcpy(lut->domain_most, most, sizeof most);
    }
    return lut;
}

/* The colour `c` of a point of the lattice. */
static double point_at(const struct cox_video_lut *lut, const long at[3], int c)
{
    const size_t n = lut->points, point = (size_t)at[0] + n * ((size_t)at[1] + n * (size_t)at[2]);
    return (double)lut->colors[3 * point + (size_t)c];
}

void ref_lut_at(const struct cox_video_lut *lut, const double signal[3], double color[3])
{
    const bool own = lut->domain_most[0] > lut->domain_least[0];
    double rest[3];
    long at[3];
    int order[3] = {0, 1, 2}; /* the largest rest first */
    for (int c = 0; c < 3; c++) {
        const double least = own ? (double)lut->domain_least[c] : 0, most = own ? (double)lut->domain_most[c] : 1;
        const double place = fmin(fmax((signal[c] - least) / (most - least), 0), 1) * (lut->points - 1);
        at[c] = (long)fmin(floor(place), lut->points - 2);
        rest[c] = place - (double)at[c];
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (rest[order[j]] < rest[order[j + 1]]) {
                const int swapped = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swapped;
            }

    /* A path along the edges of the cell, from its low corner to its high one. Each edge adds its part of the way. */
    double sum[3];
    for (int c = 0; c < 3; c++)
        sum[c] = point_at(lut, at, c);
    for (int i = 0; i < 3; i++) {
        long next[3] = {at[0], at[1], at[2]};
        next[order[i]]++;
        for (int c = 0; c < 3; c++)
            sum[c] += rest[order[i]] * (point_at(lut, next, c) - point_at(lut, at, c));
        at[order[i]]++;
    }
    for (int c = 0; c < 3; c++)
        color[c] = fmin(fmax(sum[c], 0), 1);
}
