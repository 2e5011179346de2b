/* SPDX-License-Identifier: Apache-2.0 */
#include "primaries.h"

#include <math.h>
#include <string.h>

static const struct primaries bt709 = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};

static void multiply(const double a[9], const double b[9], double out[9])
{
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++)
            out[row * 3 + column] = a[row * 3] * b[column] + a[row * 3 + 1] * b[3 + column] +
                                    a[row * 3 + 2] * b[6 + column];
}

static bool invert(const double m[9], double out[9])
{
    double c0 = m[4] * m[8] - m[5] * m[7];
    double c1 = m[5] * m[6] - m[3] * m[8];
    double c2 = m[3] * m[7] - m[4] * m[6];
    double determinant = m[0] * c0 + m[1] * c1 + m[2] * c2;
    if (!isfinite(determinant) || fabs(determinant) < 1e-9)
        return false;
    double r = 1.0 / determinant;
    const double inverse[9] = {
        c0 * r, (m[2] * m[7] - m[1] * m[8]) * r, (m[1] * m[5] - m[2] * m[4]) * r,
        c1 * r, (m[0] * m[8] - m[2] * m[6]) * r, (m[2] * m[3] - m[0] * m[5]) * r,
        c2 * r, (m[1] * m[6] - m[0] * m[7]) * r, (m[0] * m[4] - m[1] * m[3]) * r};

    memcpy(out, inverse, sizeof inverse);
    return true;
}

/* XYZ of a white point with Y = 1. */
static void white_xyz(const struct primaries *p, double xyz[3])
{
    xyz[0] = p->white[0] / p->white[1];
    xyz[1] = 1.0;
    xyz[2] = (1.0 - p->white[0] - p->white[1]) / p->white[1];
}

/* RGB to XYZ (SMPTE RP 177): columns are the primaries, scaled so that RGB = 1 1 1 is white. */
static bool rgb_to_xyz(const struct primaries *p, double out[9])
{
    const double *xy[3] = {p->red, p->green, p->blue};
    double columns[9], inverse[9], white[3];

    for (int i = 0; i < 3; i++) {
        columns[i] = xy[i][0];
        columns[3 + i] = xy[i][1];
        columns[6 + i] = 1.0 - xy[i][0] - xy[i][1];
    }

    if (!invert(columns, inverse))
        return false;
    white_xyz(p, white);
    for (int i = 0; i < 3; i++) {
        double scale = inverse[i * 3] * white[0] + inverse[i * 3 + 1] * white[1] +
                       inverse[i * 3 + 2] * white[2];
        for (int row = 0; row < 3; row++)
            out[row * 3 + i] = columns[row * 3 + i] * scale;
    }
    return true;
}

static bool adaptation(const struct primaries *from, const struct primaries *to, double out[9])
{
    static const double bradford[9] = {0.8951, 0.2664, -0.1614, -0.7502, 1.7135,
                                       0.0367, 0.0389, -0.0685, 1.0296};
    double inverse[9], source[3], target[3], scaled[9];
    if (!invert(bradford, inverse))
        return false;

    white_xyz(from, source);
    white_xyz(to, target);
    for (int i = 0; i < 3; i++) {
        const double *row = bradford + i * 3;
        double s = row[0] * source[0] + row[1] * source[1] + row[2] * source[2];
        double t = row[0] * target[0] + row[1] * target[1] + row[2] * target[2];
        if (!(s > 1e-6) || !(t > 1e-6))
            return false;
        for (int column = 0; column < 3; column++)
            scaled[i * 3 + column] = row[column] * (t / s);
    }

    multiply(inverse, scaled, out);
    return true;
}

enum primaries_match primaries_to_bt709(const struct primaries *from, float matrix[9])
{
    const double values[8] = {from->red[0],  from->red[1],  from->green[0], from->green[1],
                              from->blue[0], from->blue[1], from->white[0], from->white[1]};
    const double standard[8] = {bt709.red[0],  bt709.red[1],  bt709.green[0], bt709.green[1],
                                bt709.blue[0], bt709.blue[1], bt709.white[0], bt709.white[1]};
    double distance = 0;

    for (int i = 0; i < 8; i++) {
        if (!isfinite(values[i]) || fabs(values[i]) > 10)
            return PRIMARIES_BROKEN;
        distance = fmax(distance, fabs(values[i] - standard[i]));
    }

    if (distance < 2e-3)
        return PRIMARIES_SAME;
    if (from->white[1] < 1e-3)
        return PRIMARIES_BROKEN;
    double source[9], target[9], to_rgb[9], adapt[9], adapted[9], result[9];
    if (!rgb_to_xyz(from, source) || !rgb_to_xyz(&bt709, target) || !invert(target, to_rgb) ||
        !adaptation(from, &bt709, adapt))
        return PRIMARIES_BROKEN;
    multiply(adapt, source, adapted);
    multiply(to_rgb, adapted, result);
    for (int i = 0; i < 9; i++) {
        if (!isfinite(result[i]) || fabs(result[i]) > 1e3)
            return PRIMARIES_BROKEN;
        matrix[i] = (float)result[i];
    }

    return PRIMARIES_CONVERT;
}

bool primaries_luminance(const struct primaries *of, double weights[3])
{
    double xyz[9];
    if (!rgb_to_xyz(of, xyz))
        return false;

    memcpy(weights, xyz + 3, 3 * sizeof *weights);
    return weights[1] > 1e-3;
}

bool primaries_between(const float from[9], const float to[9], float matrix[9])
{
    double source[9], target[9], inverse[9], result[9];
    for (int i = 0; i < 9; i++)
        source[i] = (double)from[i], target[i] = (double)to[i];
    if (!invert(target, inverse))
        return false;

    multiply(inverse, source, result);
    for (int i = 0; i < 9; i++)
        matrix[i] = (float)result[i];
    return true;
}
