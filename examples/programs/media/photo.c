/* SPDX-License-Identifier: Apache-2.0 */
#include "photo.h"
#include "half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ITU-R BT.2408: HDR reference white, and the peak of the display that HLG is made for. */
static const double white_nits = 203, hlg_nits = 1000;

static double pq_nits(double code)
{
    const double m1 = 2610.0 / 16384, m2 = 2523.0 / 32;
    const double c1 = 3424.0 / 4096, c2 = 2413.0 / 128, c3 = 2392.0 / 128;
    const double power = pow(code, 1 / m2);
    return 10000 * pow(fmax(power - c1, 0) / (c2 - c3 * power), 1 / m1);
}

static double hlg_scene(double code)
{
    const double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
    if (code <= 0.5)
        return code * code / 3;
    return (exp((code - c) / a) + b) / 12;
}

bool photo_primaries(unsigned number, struct primaries *out)
{
    static const struct {
        unsigned number;
        struct primaries primaries;
    } known[] = {{1, {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}}},
                 {5, {{0.64, 0.33}, {0.29, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}}},
                 {6, {{0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}, {0.3127, 0.3290}}},
                 {7, {{0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}, {0.3127, 0.3290}}},
                 {9, {{0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}, {0.3127, 0.3290}}},
                 {11, {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.314, 0.351}}},
                 {12, {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.3127, 0.3290}}},
                 {22, {{0.630, 0.340}, {0.295, 0.605}, {0.155, 0.077}, {0.3127, 0.3290}}}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == number) {
            *out = known[i].primaries;
            return true;
        }
    return false;
}

const char *photo_transfer_name(unsigned transfer)
{
    switch (transfer) {
    case 1:
    case 6:
    case 14:
    case 15:
        return "BT.709";
    case CICP_UNKNOWN:
        return "unknown";
    case CICP_LINEAR:
        return "linear";
    case CICP_SRGB:
        return "sRGB";
    case CICP_PQ:
        return "PQ";
    case CICP_HLG:
        return "HLG";
    default:
        return "other";
    }
}

static const char *primaries_name(unsigned number)
{
    switch (number) {
    case 1:
        return "BT.709";
    case 9:
        return "BT.2020";
    case 11:
        return "P3-DCI";
    case 12:
        return "P3";
    default:
        return "BT.601";
    }
}

/* Whether the first box names the brand. */
static bool has_brand(const uint8_t *data, size_t bytes, const char *brand)
{
    if (bytes < 16 || memcmp(data + 4, "ftyp", 4) != 0)
        return false;

    const size_t box = (size_t)data[2] << 8 | data[3];
    for (size_t at = 8; at + 4 <= box && at + 4 <= bytes; at += 4)
        if (!memcmp(data + at, brand, 4))
            return true;
    return false;
}

enum photo_brand photo_brand(const uint8_t *data, size_t bytes)
{
    static const char *const pictures[] = {"avif", "heic", "heix", "heim", "heis", "mif1", "miaf"};
    bool found = false;
    if (bytes < 16 || memcmp(data + 4, "ftyp", 4) != 0)
        return PHOTO_BRAND_NONE;

    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++)
        found = found || !memcmp(data + 8, pictures[i], 4);
    if (!found)
        return PHOTO_BRAND_NONE;

    return has_brand(data, bytes, "avif") ? PHOTO_BRAND_AVIF : PHOTO_BRAND_HEIF;
}

/* Fill the curve: codes of 16 bits, whose full or limited range is that of `bits`. */
static void fill_curve(struct photo_light *light, const struct cicp *cicp, unsigned bits)
{
    const double most = ldexp(1, (int)bits) - 1, unit = ldexp(1, (int)bits - 8);

    for (int i = 0; i < PHOTO_CODES; i++) {
        double code = i / 65535.0;
        if (!cicp->full_range)
            code = fmin(fmax((code * most - 16 * unit) / (219 * unit), 0), 1);
        light->curve[i] = (float)(light->hlg ? hlg_scene(code) : pq_nits(code) / white_nits);
    }
}

bool photo_size(struct picture_input *input, int64_t width, int64_t height, unsigned orientation,
                struct error *error)
{
    if (!picture_check_size(width, height, error))
        return false;

    const bool turned = orientation >= 5;
    input->format.width = (uint32_t)(turned ? height : width);
    input->format.height = (uint32_t)(turned ? width : height);
    return true;
}

bool photo_open(struct picture_input *input, const char *what, const struct cicp *cicp,
                unsigned bits, unsigned rgb_bits, struct error *error)
{
    struct primaries primaries;
    double weights[3] = {0};
    const unsigned number = cicp->primaries == CICP_UNKNOWN ? 9 : cicp->primaries;

    const bool hdr = cicp->transfer == CICP_PQ || cicp->transfer == CICP_HLG;
    if (!hdr && has_brand(input->data, input->bytes, "tmap"))
        return error_set(error, "the %s picture is HDR by a gain map, which is not supported",
                         what);
    if (cicp->transfer == CICP_UNKNOWN)
        return error_set(error,
                         "the %s picture does not say that it is HDR: its colours name "
                         "neither PQ nor HLG",
                         what);
    if (!hdr)
        return error_set(error, "the %s picture is SDR (transfer: %s); only PQ and HLG are mapped",
                         what, photo_transfer_name(cicp->transfer));
    if (!photo_primaries(number, &primaries))
        return error_set(error, "the %s picture has primaries that are not supported (number %u)",
                         what, number);

    struct photo *photo = calloc(1, sizeof *photo);
    if (!photo)
        return error_set(error, "out of memory");
    struct photo_light *light = &photo->light;
    photo->cicp = *cicp;
    photo->orientation = 1;
    light->hlg = cicp->transfer == CICP_HLG;
    light->convert = primaries_to_bt709(&primaries, light->matrix) == PRIMARIES_CONVERT;
    primaries_luminance(&primaries, weights);
    for (int c = 0; c < 3; c++)
        light->weights[c] = (float)weights[c];
    fill_curve(light, cicp, rgb_bits);

    input->state = photo;
    input->format.pixel = COX_PIXEL_RGBA_HALF;
    snprintf(input->format.text, sizeof input->format.text, "%s, %u bits, %s, %s", what, bits,
             photo_transfer_name(cicp->transfer), primaries_name(number));
    return true;
}

bool photo_open_coded(struct picture_input *input, const struct cicp *cicp, struct error *error)
{
    struct photo *photo = calloc(1, sizeof *photo);
    if (!photo)
        return error_set(error, "out of memory");

    photo->orientation = 1;
    input->state = photo;
    snprintf(input->format.text, sizeof input->format.text, "codes");
    input->format.pixel = COX_PIXEL_RGBA_HALF; /* of the same size as four codes */
    input->format.primaries = cicp->primaries;
    input->format.transfer = cicp->transfer;
    return true;
}

struct photo_place photo_upright(const struct picture_input *input, uint8_t *pixels,
                                 size_t pitch_bytes, unsigned orientation)
{
    const ptrdiff_t pitch = (ptrdiff_t)pitch_bytes;
    const ptrdiff_t pixel = input->format.pixel == COX_PIXEL_RGBA_HALF ? 8 : 16;
    const bool turned = orientation >= 5;
    const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 ||
                          orientation == 7;
    const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 ||
                          orientation == 8;
    struct photo_place place = {pixels, pixel, pitch};

    if (mirror_x) {
        place.first += (ptrdiff_t)(input->format.width - 1) * pixel;
        place.across = -pixel;
    }
    if (mirror_y) {
        place.first += (ptrdiff_t)(input->format.height - 1) * pitch;
        place.down = -pitch;
    }
    if (turned) {
        const ptrdiff_t across = place.across;
        place.across = place.down;
        place.down = across;
    }
    return place;
}

void photo_put_light(const struct picture_input *input, const float rgb[3], float alpha,
                     uint8_t *to)
{
    const bool black = input->alpha == PICTURE_ALPHA_BLACK;
    const float share = black ? alpha : 1;
    const float rgba[4] = {rgb[0] * share, rgb[1] * share, rgb[2] * share, black ? 1 : alpha};
    uint16_t half[4];

    if (input->format.pixel == COX_PIXEL_RGBA_FLOAT) {
        memcpy(to, rgba, sizeof rgba);
        return;
    }
    for (int c = 0; c < 4; c++)
        half[c] = half_from_float(rgba[c]);
    memcpy(to, half, sizeof half);
}

void photo_convert(const float m[9], float rgb[3])
{
    const float r = rgb[0], g = rgb[1], b = rgb[2];
    for (int c = 0; c < 3; c++)
        rgb[c] = m[c * 3] * r + m[c * 3 + 1] * g + m[c * 3 + 2] * b;
}

/* The OOTF of BT.2100: the scene's light to that of the display. */
static void show_hlg(const struct photo_light *light, float rgb[3])
{
    const float *w = light->weights;
    const float luminance = w[0] * rgb[0] + w[1] * rgb[1] + w[2] * rgb[2];
    const float scale = powf(luminance, 0.2f) * (float)(hlg_nits / white_nits);
    for (int c = 0; c < 3; c++)
        rgb[c] *= scale;
}

void photo_put(const struct picture_input *input, const struct photo_light *light,
               const uint16_t *rgba, uint32_t count, uint8_t *to, ptrdiff_t across)
{
    for (uint32_t x = 0; x < count; x++, rgba += 4, to += across) {
        float rgb[3] = {light->curve[rgba[0]], light->curve[rgba[1]], light->curve[rgba[2]]};
        if (light->hlg)
            show_hlg(light, rgb);
        if (light->convert)
            photo_convert(light->matrix, rgb);
        photo_put_light(input, rgb, (float)rgba[3] / 65535, to);
    }
}
