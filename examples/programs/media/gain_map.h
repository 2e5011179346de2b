/* Gain maps: an SDR picture and a smaller one that says how much brighter HDR is, pixel by pixel.
 * Ultra HDR and Adobe (XMP), ISO 21496-1, and Apple.
 *
 * HDR = (SDR + base offset) * gain - HDR offset, in linear light with 1.0 = SDR white. The picture
 * is taken with its whole gain, as a display with enough headroom shows it.
 *
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GAIN_MAP_H
#define GAIN_MAP_H

#include "icc.h"

enum { GAIN_STEPS = 4096 };

struct gain_map {
    float gain[3][GAIN_STEPS]; /* by the map's value */
    float base_offset[3], hdr_offset[3];
    bool own_colours; /* the gain is for the colours of the map's own profile */
    double headroom;  /* as a factor */
};

enum gain_map_found { GAIN_MAP_NONE, GAIN_MAP_FOUND, GAIN_MAP_REFUSED };

/* What the XMP of a map says. `apple_headroom`: of the notes in Exif, used if XMP has none. */
enum gain_map_found gain_map_from_xmp(const char *xmp, size_t bytes, double apple_headroom,
                                      struct gain_map *map, struct error *error);

/* The same of the binary metadata of ISO 21496-1, annex C. */
enum gain_map_found gain_map_from_iso(const uint8_t *data, size_t bytes, struct gain_map *map,
                                      struct error *error);

/* Apple's map alone. */
void gain_map_apple(double headroom, struct gain_map *map);

/* Samples of 8 bits. */
struct gain_raster {
    const uint8_t *pixels;
    size_t pitch_bytes;
    uint32_t width, height, channels; /* 1 or 3 */
};

/* Write the HDR picture of `base` and the map's samples. `colours` are those of the base,
 * `map_colours` those of the map's profile, NULL = none. */
bool gain_map_put(const struct picture_input *input, const struct gain_map *map,
                  const struct gain_raster *base, const struct gain_raster *samples,
                  const struct icc_rgb *colours, const struct icc_rgb *map_colours,
                  unsigned orientation, uint8_t *pixels, size_t pitch_bytes, struct error *error);

#endif
