/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gain_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the metadata name, for each channel; logarithms are binary. */
struct terms {
    double least[3], most[3], gamma[3], base_offset[3], hdr_offset[3];
    double base_headroom, hdr_headroom;
};

static enum gain_map_found refuse(struct error *error, const char *why)
{
    error_set(error, "%s", why);
    return GAIN_MAP_REFUSED;
}

static enum gain_map_found use(const struct terms *terms, struct gain_map *map, struct error *error)
{
    enum { STOPS_MAX = 16 };
    if (!(terms->base_headroom < terms->hdr_headroom))
        return refuse(error, "a gain map from HDR to SDR, which is not supported");

    for (int c = 0; c < 3; c++) {
        if (!(terms->gamma[c] > 0) || !isfinite(terms->gamma[c]) ||
            !(terms->least[c] <= terms->most[c]) || !(fabs(terms->least[c]) <= STOPS_MAX) ||
            !(fabs(terms->most[c]) <= STOPS_MAX) || !(fabs(terms->base_offset[c]) <= 1) ||
            !(fabs(terms->hdr_offset[c]) <= 1))
            return refuse(error, "damaged: a gain map with impossible numbers");

        map->base_offset[c] = (float)terms->base_offset[c];
        map->hdr_offset[c] = (float)terms->hdr_offset[c];
        for (int i = 0; i < GAIN_STEPS; i++) {
            const double share = pow((double)i / (GAIN_STEPS - 1), 1 / terms->gamma[c]);
            map->gain[c][i] = (float)exp2(terms->least[c] +
                                          (terms->most[c] - terms->least[c]) * share);
        }
    }
    map->headroom = exp2(fmin(terms->hdr_headroom, STOPS_MAX));
    return GAIN_MAP_FOUND;
}

/* --- XMP -------------------------------------------------------------------------------------- */

/* The prefix of a namespace: xmlns:PREFIX="NAMESPACE". */
static bool find_prefix(const char *xmp, size_t bytes, const char *namespace, char prefix[32])
{
    const char *at = memmem(xmp, bytes, namespace, strlen(namespace));
    const char *begin = at;
    while (begin && begin > xmp && begin[-1] != ':')
        begin--;
    if (!at || begin == xmp || at - begin < 3 || at - begin > 32)
        return false;

    const size_t length = (size_t)(at - begin) - 2; /* without =" */
    memcpy(prefix, begin, length);
    prefix[length] = 0;
    return true;
}

static bool parse_number(const char *at, const char *end, double *value)
{
    char text[32], *stop;
    size_t length = 0;
    while (at + length < end && length < sizeof text - 1 && !strchr("\"'<", at[length]))
        length++;
    memcpy(text, at, length);
    text[length] = 0;

    *value = strtod(text, &stop);
    return stop != text;
}

/* The numbers of a property, which is an attribute, an element, or an element with a list. Returns
 * how many there are, 0 = none. One is copied to all three. */
static int find_numbers(const char *xmp, size_t bytes, const char *prefix, const char *name,
                        double values[3])
{
    const char *end = xmp + bytes, *at = NULL;
    char property[64];
    const int length = snprintf(property, sizeof property, "%s:%s", prefix, name);
    int count = 0;
    for (const char *from = xmp; !at;) {
        from = memmem(from, (size_t)(end - from), property, (size_t)length);
        if (!from)
            return 0;
        from += length;
        if (from + 2 < end && (*from == '=' || *from == '>'))
            at = from;
    }

    if (*at == '=') {
        count = parse_number(at + 2, end, values);
    } else if (parse_number(at + 1, end, values)) {
        count = 1;
    } else {
        const char *stop = memmem(at, (size_t)(end - at), property, (size_t)length);
        while (stop && count < 3) {
            at = memmem(at, (size_t)(stop - at), "li>", 3);
            if (!at)
                break;
            at += 3;
            if (parse_number(at, stop, values + count))
                count++;
        }
    }

    if (count == 1)
        values[1] = values[2] = values[0];
    return count;
}

/* Apple, "Applying Apple HDR effect to your photos": the map is coded as BT.709. */
void gain_map_apple(double headroom, struct gain_map *map)
{
    *map = (struct gain_map){.headroom = headroom};
    for (int i = 0; i < GAIN_STEPS; i++) {
        const double code = (double)i / (GAIN_STEPS - 1);
        const double light = code < 0.081 ? code / 4.5 : pow((code + 0.099) / 1.099, 1 / 0.45);
        for (int c = 0; c < 3; c++)
            map->gain[c][i] = (float)(1 + (headroom - 1) * light);
    }
}

static enum gain_map_found apple_from_xmp(const char *xmp, size_t bytes, double apple_headroom,
                                          struct gain_map *map, struct error *error)
{
    char prefix[32];
    double values[3];
    if (!find_prefix(xmp, bytes, "http://ns.apple.com/HDRGainMap/1.0/", prefix) ||
        !find_numbers(xmp, bytes, prefix, "HDRGainMapVersion", values))
        return GAIN_MAP_NONE;

    if (find_numbers(xmp, bytes, prefix, "HDRGainMapHeadroom", values))
        apple_headroom = values[0];
    if (!(apple_headroom >= 1 && apple_headroom <= 256))
        return refuse(error, "a gain map of Apple whose headroom is not named");
    gain_map_apple(apple_headroom, map);
    return GAIN_MAP_FOUND;
}

enum gain_map_found gain_map_from_xmp(const char *xmp, size_t bytes, double apple_headroom,
                                      struct gain_map *map, struct error *error)
{
    static const double offset = 1.0 / 64;
    struct terms terms = {
        {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {offset, offset, offset}, {offset, offset, offset}, 0, 0};
    double values[3];
    char prefix[32], is_hdr[64];
    if (!bytes)
        return GAIN_MAP_NONE;

    /* The SDR picture names the version too, but no gain. */
    if (!find_prefix(xmp, bytes, "http://ns.adobe.com/hdr-gain-map/1.0/", prefix) ||
        !find_numbers(xmp, bytes, prefix, "GainMapMax", terms.most))
        return apple_from_xmp(xmp, bytes, apple_headroom, map, error);
    snprintf(is_hdr, sizeof is_hdr, "%s:BaseRenditionIsHDR=\"True", prefix);
    if (memmem(xmp, bytes, is_hdr, strlen(is_hdr)))
        return refuse(error, "a gain map from HDR to SDR, which is not supported");

    find_numbers(xmp, bytes, prefix, "GainMapMin", terms.least);
    find_numbers(xmp, bytes, prefix, "Gamma", terms.gamma);
    find_numbers(xmp, bytes, prefix, "OffsetSDR", terms.base_offset);
    find_numbers(xmp, bytes, prefix, "OffsetHDR", terms.hdr_offset);
    if (find_numbers(xmp, bytes, prefix, "HDRCapacityMin", values))
        terms.base_headroom = values[0];
    terms.hdr_headroom = fmax(fmax(terms.most[0], terms.most[1]), terms.most[2]);
    if (find_numbers(xmp, bytes, prefix, "HDRCapacityMax", values))
        terms.hdr_headroom = values[0];
    map->own_colours = false;
    return use(&terms, map, error);
}

/* --- ISO 21496-1 ------------------------------------------------------------------------------ */

struct reader {
    const uint8_t *data;
    size_t bytes, at;
    uint32_t denominator; /* of all fractions; 0 = each has its own */
    bool good;
};

static uint32_t take(struct reader *reader, unsigned size)
{
    uint32_t value = 0;
    if (reader->bytes - reader->at < size) {
        reader->good = false;
        return 0;
    }
    while (size--)
        value = value << 8 | reader->data[reader->at++];
    return value;
}

static double take_fraction(struct reader *reader, bool is_signed)
{
    const uint32_t over = take(reader, 4);
    const uint32_t under = reader->denominator ? reader->denominator : take(reader, 4);
    return (is_signed ? (double)(int32_t)over : (double)over) / under;
}

enum gain_map_found gain_map_from_iso(const uint8_t *data, size_t bytes, struct gain_map *map,
                                      struct error *error)
{
    enum { THREE_CHANNELS = 0x80, BASE_COLOURS = 0x40, ONE_DENOMINATOR = 0x08, VERSION_BYTES = 4 };
    struct reader reader = {data, bytes, 0, 0, true};
    struct terms terms;
    if (bytes <= VERSION_BYTES) /* the SDR picture has the version alone */
        return GAIN_MAP_NONE;
    if (take(&reader, 2) != 0)
        return refuse(error, "a gain map of a later version of ISO 21496-1");

    take(&reader, 2); /* the writer's version */
    const uint32_t flags = take(&reader, 1);
    if (flags & ONE_DENOMINATOR)
        reader.denominator = take(&reader, 4);
    terms.base_headroom = take_fraction(&reader, false);
    terms.hdr_headroom = take_fraction(&reader, false);
    for (int c = 0; c < 3; c++) {
        if (c && !(flags & THREE_CHANNELS)) {
            terms.least[c] = terms.least[0], terms.most[c] = terms.most[0];
            terms.gamma[c] = terms.gamma[0], terms.base_offset[c] = terms.base_offset[0];
            terms.hdr_offset[c] = terms.hdr_offset[0];
            continue;
        }
        terms.least[c] = take_fraction(&reader, true);
        terms.most[c] = take_fraction(&reader, true);
        terms.gamma[c] = take_fraction(&reader, false);
        terms.base_offset[c] = take_fraction(&reader, true);
        terms.hdr_offset[c] = take_fraction(&reader, true);
    }
    if (!reader.good)
        return refuse(error, "damaged: the gain map's metadata are too short");

    map->own_colours = !(flags & BASE_COLOURS);
    return use(&terms, map, error);
}

/* --- The picture ------------------------------------------------------------------------------ */

/* A place between two samples of a side. */
static float place(uint32_t at, uint32_t side, uint32_t samples, uint32_t *first, uint32_t *second)
{
    const double exact = fmin(fmax((at + 0.5) * samples / side - 0.5, 0), samples - 1);
    *first = (uint32_t)exact;
    *second = *first + 1 < samples ? *first + 1 : *first;
    return (float)(exact - *first);
}

/* Change SDR to HDR at pixel x, y of a base of width x height. */
static void apply(const struct gain_map *map, const struct gain_raster *samples, uint32_t x,
                  uint32_t y, uint32_t width, uint32_t height, float rgb[3])
{
    uint32_t x0, x1, y0, y1;
    const float right = place(x, width, samples->width, &x0, &x1);
    const float down = place(y, height, samples->height, &y0, &y1);
    const uint8_t *above = samples->pixels + y0 * samples->pitch_bytes;
    const uint8_t *below = samples->pixels + y1 * samples->pitch_bytes;
    x0 *= samples->channels, x1 *= samples->channels;

    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t from = samples->channels == 3 ? c : 0;
        const float first = (float)above[x0 + from] +
                            (float)(above[x1 + from] - above[x0 + from]) * right;
        const float second = (float)below[x0 + from] +
                             (float)(below[x1 + from] - below[x0 + from]) * right;
        const float step = (first + (second - first) * down) / 255 * (GAIN_STEPS - 1);
        rgb[c] = (rgb[c] + map->base_offset[c]) * map->gain[c][(int)(step + 0.5f)] -
                 map->hdr_offset[c];
    }
}

bool gain_map_put(const struct picture_input *input, const struct gain_map *map,
                  const struct gain_raster *base, const struct gain_raster *samples,
                  const struct icc_rgb *colours, const struct icc_rgb *map_colours,
                  unsigned orientation, uint8_t *pixels, size_t pitch_bytes, struct error *error)
{
    const bool convert = map->own_colours && map_colours;
    const float *to_bt709 = convert ? map_colours->matrix : colours->matrix;
    const struct photo_place place = photo_upright(input, pixels, pitch_bytes, orientation);
    float to_map[9];
    if (convert && !primaries_between(colours->matrix, to_bt709, to_map))
        return error_set(error, "damaged: impossible colours of the gain map");

    for (uint32_t y = 0; y < base->height; y++) {
        const uint8_t *from = base->pixels + y * base->pitch_bytes;
        uint8_t *to = place.first + place.down * (ptrdiff_t)y;
        for (uint32_t x = 0; x < base->width; x++, to += place.across, from += base->channels) {
            float rgb[3];
            for (uint32_t c = 0; c < 3; c++)
                rgb[c] = colours->curve[from[base->channels == 3 ? c : 0]];
            if (convert)
                photo_convert(to_map, rgb);
            apply(map, samples, x, y, base->width, base->height, rgb);
            photo_convert(to_bt709, rgb);
            photo_put_light(input, rgb, 1, to);
        }
    }
    return true;
}
