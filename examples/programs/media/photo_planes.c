/* SPDX-License-Identifier: Apache-2.0 */
#include "photo_planes.h"
#include "common/least.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_RGB = 0, MATRIX_YCGCO = 8 };

bool photo_planes_ready(struct photo_planes *planes, struct error *error)
{
    /* A matrix without a name is that of BT.601, as libavif writes and reads it. */
    static const struct {
        unsigned number;
        float red, blue;
    } known[] = {{1, 0.2126f, 0.0722f},
                 {4, 0.30f, 0.11f},
                 {5, 0.299f, 0.114f},
                 {6, 0.299f, 0.114f},
                 {CICP_UNKNOWN, 0.299f, 0.114f},
                 {7, 0.212f, 0.087f},
                 {9, 0.2627f, 0.0593f},
                 {0, 0, 0},
                 {MATRIX_YCGCO, 0, 0}};
    enum { BY_PRIMARIES = 12 };
    struct cicp *cicp = &planes->cicp;
    struct primaries primaries;
    double weights[3];

    if (cicp->matrix == BY_PRIMARIES &&
        photo_primaries(cicp->primaries == CICP_UNKNOWN ? 9 : cicp->primaries, &primaries) &&
        primaries_luminance(&primaries, weights)) {
        planes->weights[0] = (float)weights[0];
        planes->weights[1] = (float)weights[2];
        return true;
    }

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == cicp->matrix) {
            planes->weights[0] = known[i].red;
            planes->weights[1] = known[i].blue;
            if (cicp->matrix == MATRIX_RGB && (planes->half_width || planes->half_height))
                return error_set(error, "damaged: RGB with subsampled channels");
            return true;
        }
    return error_set(error, "its colour matrix is not supported (number %u)", cicp->matrix);
}

/* Two neighbours of a place among the samples of a subsampled plane. */
struct tap {
    uint32_t first, second;
    float share; /* of the second */
};

static struct tap tap_at(uint32_t at, bool half, bool on_sample, uint32_t count)
{
    struct tap tap = {at, at, 0};
    if (!half)
        return tap;

    const uint32_t last = (count + 1) / 2 - 1;
    tap.first = tap.second = at / 2;
    if (on_sample) {
        tap.second += at & 1;
        tap.share = 0.5f;
    } else if (at & 1) {
        tap.second++;
        tap.share = 0.25f;
    } else {
        tap.first -= tap.first > 0;
        tap.share = 0.75f;
    }
    tap.second = (uint32_t)least(tap.second, last);
    return tap;
}

static float sample(const struct photo_planes *planes, int c, uint32_t x, uint32_t y)
{
    const uint8_t *row = planes->plane[c] + (size_t)y * planes->pitch_bytes[c];
    uint16_t value = 0;
    if (!planes->wide[c])
        return row[x];
    memcpy(&value, row + (size_t)x * 2, sizeof value);
    return value;
}

static float blend(const struct photo_planes *planes, int c, struct tap x, struct tap y)
{
    float first = sample(planes, c, x.first, y.first),
          second = sample(planes, c, x.second, y.first);
    const float above = first + (second - first) * x.share;
    if (y.share == 0)
        return above;

    first = sample(planes, c, x.first, y.second), second = sample(planes, c, x.second, y.second);
    const float below = first + (second - first) * x.share;
    return above + (below - above) * y.share;
}

static void to_rgb(const struct photo_planes *planes, float luma, float cb, float cr, float rgb[3])
{
    const float red = planes->weights[0], blue = planes->weights[1], green = 1 - red - blue;

    if (planes->cicp.matrix == MATRIX_YCGCO) { /* H.273: Cg, then Co */
        rgb[0] = luma - cb + cr, rgb[1] = luma + cb, rgb[2] = luma - cb - cr;
        return;
    }
    rgb[0] = luma + 2 * (1 - red) * cr;
    rgb[2] = luma + 2 * (1 - blue) * cb;
    rgb[1] = (luma - red * rgb[0] - blue * rgb[2]) / green;
}

static uint16_t code_of(float value)
{
    return (uint16_t)(fminf(fmaxf(value, 0), 1) * 65535 + 0.5f);
}

/* Row `y`, as R'G'B'A of 16 bits in full range with straight alpha. */
static void take_row(const struct photo_planes *planes, uint32_t y, uint16_t *rgba)
{
    const float most = ldexpf(1, (int)planes->bits) - 1, unit = ldexpf(1, (int)planes->bits - 8);
    const bool full = planes->cicp.full_range, colour = planes->plane[1] && planes->plane[2];
    const float black = full ? 0 : 16 * unit, luma_scale = 1 / (full ? most : 219 * unit);
    const float middle = 128 * unit, chroma_scale = 1 / (full ? most : 224 * unit);
    const float alpha_black = planes->alpha_limited ? 16 * unit : 0;
    const float alpha_scale = 1 / (planes->alpha_limited ? 219 * unit : most);
    const struct tap down = tap_at(y, planes->half_height, planes->on_row, planes->height);

    for (uint32_t x = 0; x < planes->width; x++, rgba += 4) {
        const float luma = (sample(planes, 0, x, y) - black) * luma_scale;
        float rgb[3] = {luma, luma, luma}, alpha = 1;

        if (colour && planes->cicp.matrix == MATRIX_RGB) {
            rgb[2] = (sample(planes, 1, x, y) - black) * luma_scale;
            rgb[0] = (sample(planes, 2, x, y) - black) * luma_scale;
        } else if (colour) {
            const struct tap across = tap_at(x, planes->half_width, planes->on_column,
                                             planes->width);
            to_rgb(planes, luma, (blend(planes, 1, across, down) - middle) * chroma_scale,
                   (blend(planes, 2, across, down) - middle) * chroma_scale, rgb);
        }

        if (planes->plane[3])
            alpha = (sample(planes, 3, x, y) - alpha_black) * alpha_scale;
        const float share = planes->multiplied && alpha > 0 ? 1 / alpha : 1;
        for (int c = 0; c < 3; c++)
            rgba[c] = code_of(rgb[c] * share);
        rgba[3] = code_of(alpha);
    }
}

bool photo_planes_put(const struct picture_input *input, const struct photo_planes *planes,
                      uint32_t left, uint32_t top, uint32_t width, uint32_t height, uint8_t *pixels,
                      size_t pitch_bytes, struct error *error)
{
    const struct photo *photo = input->state;
    const bool turned = photo->orientation >= 5;
    const struct picture_format *format = &input->format;
    if (!planes->plane[0] || width != (turned ? format->height : format->width) ||
        height != (turned ? format->width : format->height) || left > planes->width ||
        width > planes->width - left || top > planes->height || height > planes->height - top)
        return error_set(error, "damaged: the decoded picture has another size");

    uint16_t *row = malloc((size_t)planes->width * 4 * sizeof *row);
    if (!row)
        return error_set(error, "out of memory");
    const struct photo_place place = photo_upright(input, pixels, pitch_bytes, photo->orientation);
    for (uint32_t y = 0; y < height; y++) {
        take_row(planes, top + y, row);
        photo_put(input, &photo->light, row + (size_t)left * 4, width,
                  place.first + place.down * (ptrdiff_t)y, place.across);
    }
    free(row);
    return true;
}
