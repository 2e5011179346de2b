/* The gain map of a picture and the light that it was mapped from; gain_map.h applies such maps.
 *
 * gain = log2((light + 1/64) / (SDR + 1/64)), channel by channel, in linear light with 1.0 = SDR
 * white. A sample of the map is the mean of the gains of its pixels.
 *
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GAIN_MAP_MAKE_H
#define GAIN_MAP_MAKE_H

#include "picture.h"

/* A map of 3 channels. A sample s of 8 bits means least + s / 255 * (most - least) stops. */
struct gain_map_made {
    uint8_t *pixels;
    uint32_t width, height;
    double least[3], most[3]; /* multiples of 1/65536, at most 16 stops up or down */
    double headroom;          /* of the brightest light, in stops, as above; at least 1/16 */
};

/* Make the map of `sdr`, which is sRGB in rows of RGBA of 8 bits. Free it with gain_map_free. */
bool gain_map_make(const struct picture_light *light, const uint8_t *sdr, size_t pitch_bytes,
                   uint32_t width, uint32_t height, struct gain_map_made *made,
                   struct error *error);

void gain_map_free(struct gain_map_made *made);

#endif
