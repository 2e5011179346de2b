/* SPDX-License-Identifier: Apache-2.0 */
#include "icc.h"

#include <math.h>
#include <string.h>

static uint32_t number(const uint8_t *at, unsigned size)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static double fixed(const uint8_t *at)
{
    return (int32_t)number(at, 4) / 65536.0;
}

/* The tag's data, of at least `least` bytes; else NULL. */
static const uint8_t *find(const uint8_t *data, size_t bytes, const char *tag, size_t least,
                           size_t *found)
{
    enum { HEADER = 128, ENTRY = 12 };
    if (bytes < HEADER + 4)
        return NULL;

    const uint32_t count = number(data + HEADER, 4);
    for (uint32_t i = 0; i < count && (bytes - HEADER - 4) / ENTRY > i; i++) {
        const uint8_t *entry = data + HEADER + 4 + (size_t)i * ENTRY;
        const uint32_t offset = number(entry + 4, 4), size = number(entry + 8, 4);
        if (memcmp(entry, tag, 4) != 0)
            continue;
        if (offset > bytes || size > bytes - offset || size < least)
            return NULL;
        *found = size;
        return data + offset;
    }
    return NULL;
}

bool icc_cicp(const uint8_t *data, size_t bytes, struct cicp *cicp)
{
    size_t size;
    const uint8_t *tag = find(data, bytes, "cicp", 12, &size);
    if (!tag || memcmp(tag, "cicp", 4) != 0)
        return false;

    *cicp = (struct cicp){tag[8], tag[9], tag[10], tag[11]};
    return true;
}

/* parametricCurveType (ICC.1:2022, 10.18): parameters g, a, b, c, d, e, f. */
static bool parametric(const uint8_t *tag, size_t size, float curve[256])
{
    static const unsigned counts[] = {1, 3, 4, 5, 7};
    const unsigned type = number(tag + 8, 2);
    double p[7] = {1, 1, 0, 0, 0, 0, 0};
    if (type > 4 || size < 12 + counts[type] * 4)
        return false;
    for (unsigned i = 0; i < counts[type]; i++)
        p[i] = fixed(tag + 12 + i * 4);

    const double g = p[0], a = p[1], b = p[2], c = p[3];
    double from = p[4], above = 0, below = 0;
    if (type == 1 || type == 2)
        from = a != 0 ? -b / a : 0;
    if (type == 2)
        above = below = c;
    if (type == 4)
        above = p[5], below = p[6];
    const double slope = type >= 3 ? c : 0;

    for (int i = 0; i < 256; i++) {
        const double x = i / 255.0;
        const double y = x >= from || !type ? pow(fmax(a * x + b, 0), g) + above
                                            : slope * x + below;
        curve[i] = (float)fmin(fmax(y, 0), 1);
    }
    return true;
}

/* curveType (10.6): a gamma, or a table. */
static bool tabled(const uint8_t *tag, size_t size, float curve[256])
{
    const uint32_t count = number(tag + 8, 4);
    if (count > (size - 12) / 2)
        return false;

    for (int i = 0; i < 256; i++) {
        const double x = i / 255.0;
        if (count == 0) {
            curve[i] = (float)x;
        } else if (count == 1) {
            curve[i] = (float)pow(x, number(tag + 12, 2) / 256.0);
        } else {
            const double at = x * (count - 1);
            const uint32_t low = at >= count - 1 ? count - 2 : (uint32_t)at;
            const double y0 = number(tag + 12 + (size_t)low * 2, 2);
            const double y1 = number(tag + 14 + (size_t)low * 2, 2);
            curve[i] = (float)((y0 + (y1 - y0) * (at - low)) / 65535);
        }
    }
    return true;
}

bool icc_rgb(const uint8_t *data, size_t bytes, struct icc_rgb *rgb)
{
    /* XYZ of D50, which profiles use, to BT.709: the inverse of sRGB's own profile. */
    static const double to_bt709[9] = {3.1338561, -1.6168667, -0.4906146, -0.9787684, 1.9161415,
                                       0.0334540, 0.0719453,  -0.2289914, 1.4052427};
    static const char *const colorants[] = {"rXYZ", "gXYZ", "bXYZ"};
    size_t size;
    if (bytes < 128 || memcmp(data + 16, "RGB XYZ ", 8) != 0 || find(data, bytes, "A2B0", 0, &size))
        return false;

    for (int column = 0; column < 3; column++) {
        const uint8_t *tag = find(data, bytes, colorants[column], 20, &size);
        if (!tag)
            return false;
        const double xyz[3] = {fixed(tag + 8), fixed(tag + 12), fixed(tag + 16)};
        for (int row = 0; row < 3; row++) {
            const double *m = to_bt709 + row * 3;
            rgb->matrix[row * 3 + column] = (float)(m[0] * xyz[0] + m[1] * xyz[1] + m[2] * xyz[2]);
        }
    }

    const uint8_t *curve = find(data, bytes, "rTRC", 12, &size);
    if (curve && !memcmp(curve, "para", 4))
        return parametric(curve, size, rgb->curve);
    return curve && !memcmp(curve, "curv", 4) && tabled(curve, size, rgb->curve);
}

void icc_srgb(struct icc_rgb *rgb)
{
    static const float same[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(rgb->matrix, same, sizeof same);

    for (int i = 0; i < 256; i++) {
        const double x = i / 255.0;
        rgb->curve[i] = (float)(x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4));
    }
}
