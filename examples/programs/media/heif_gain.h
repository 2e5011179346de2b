/* Apple's HDR photographs in HEIC: an SDR picture and a gain map, which is an auxiliary picture.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEIF_GAIN_H
#define HEIF_GAIN_H

#include "gain_map.h"

#include <libheif/heif.h>

struct heif_gain;

/* NULL, and `error` says why, if the picture has no gain map, or one that is not supported. */
struct heif_gain *heif_gain_open(const struct heif_image_handle *base, const struct cicp *cicp,
                                 struct error *error);

double heif_gain_headroom(const struct heif_gain *gain);

bool heif_gain_read(const struct heif_gain *gain, const struct heif_image_handle *base,
                    const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                    struct error *error);

void heif_gain_close(struct heif_gain **gain);

#endif
