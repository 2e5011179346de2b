/* Photographs: from coded R'G'B' and its colours, as four numbers of ITU-R H.273 name them, to the
 * light of a picture.
 *
 * PQ is absolute: 203 cd/m2 become 1.0 (ITU-R BT.2408). HLG is shown on a display of 1000 cd/m2.
 *
 * Thread-safety: pure, except that each input is used from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PHOTO_H
#define PHOTO_H

#include "picture_kinds.h"
#include "primaries.h"

enum { CICP_UNKNOWN = 2, CICP_LINEAR = 8, CICP_SRGB = 13, CICP_PQ = 16, CICP_HLG = 18 };

struct cicp {
    unsigned primaries, transfer, matrix;
    bool full_range;
};

enum { PHOTO_CODES = 65536 };

/* How codes of 16 bits become light. */
struct photo_light {
    float curve[PHOTO_CODES]; /* PQ: 1.0 = SDR white; HLG: the scene's light */
    bool hlg;
    float weights[3]; /* of R, G and B in the luminance, for HLG */
    bool convert;
    float matrix[9]; /* to BT.709 */
};

/* What a photograph's reader keeps of each: `library` is its own. */
struct photo {
    struct photo_light light;
    struct cicp cicp;
    unsigned orientation; /* of Exif: 1 to 8 */
    void *library;
};

/* Primaries of H.273. False: it does not define them, or they are not read. */
bool photo_primaries(unsigned number, struct primaries *out);

/* Make the state of an input from its colours, and describe it; `what` is "AVIF", for instance.
 * `rgb_bits`, of limited range only: bits of coded R'G'B'. Refuses SDR. */
bool photo_open(struct picture_input *input, const char *what, const struct cicp *cicp,
                unsigned bits, unsigned rgb_bits, struct error *error);

/* The same for an input whose codes are read. */
bool photo_open_coded(struct picture_input *input, const struct cicp *cicp, struct error *error);

/* Set the size of an input that is `width` x `height` as stored. */
bool photo_size(struct picture_input *input, int64_t width, int64_t height, unsigned orientation,
                struct error *error);

/* Which pictures a file of ISO's box format holds, by its first box. Sequences are video. */
enum photo_brand { PHOTO_BRAND_NONE, PHOTO_BRAND_AVIF, PHOTO_BRAND_HEIF };
enum photo_brand photo_brand(const uint8_t *data, size_t bytes);

/* "PQ", "sRGB", ... */
const char *photo_transfer_name(unsigned transfer);

/* Where the stored pixels go so that the picture is upright. */
struct photo_place {
    uint8_t *first;
    ptrdiff_t across, down; /* bytes from a stored pixel to the next one, from a row to the next */
};
struct photo_place photo_upright(const struct picture_input *input, uint8_t *pixels,
                                 size_t pitch_bytes, unsigned orientation);

/* Write `count` pixels of R'G'B'A with straight alpha, each `across` bytes behind the one before. */
void photo_put(const struct picture_input *input, const struct photo_light *light,
               const uint16_t *rgba, uint32_t count, uint8_t *to, ptrdiff_t across);

/* Write a pixel of linear BT.709 with straight alpha. */
void photo_put_light(const struct picture_input *input, const float rgb[3], float alpha,
                     uint8_t *to);

void photo_convert(const float matrix[9], float rgb[3]);

#endif
