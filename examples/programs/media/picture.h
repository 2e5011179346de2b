/* Pictures in and out: an input yields frames, an output takes frames. A picture is one frame.
 *
 * In: scene-linear RGBA with BT.709 primaries, half or float, 1.0 = diffuse white, written straight
 * into the caller's memory. Out: RGBA of 8 or 16 bits per channel, for a PNG or a JPEG. Files are
 * untrusted: every size is checked before use, and a bad file gives an error, never a crash.
 *
 * Thread-safety: one input or output from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PICTURE_H
#define PICTURE_H

#include "common/error.h"

#include <coxswain/tonemap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger pictures are refused. */
enum { PICTURE_SIDE_MAX = 65536 };
#define PICTURE_PIXELS_MAX (UINT64_C(1) << 29)

enum picture_alpha {
    PICTURE_ALPHA_BLACK = 0,    /* colours as stored: transparent parts over black; alpha is 1 */
    PICTURE_ALPHA_STRAIGHT = 1, /* keep alpha, and divide the colours by it, as PNG needs */
};

struct picture_format {
    uint32_t width; /* 1 .. PICTURE_SIDE_MAX */
    uint32_t height;
    enum cox_pixel_in pixel;
    bool alpha; /* the file has an alpha channel, and the caller asked for it */
    uint32_t aspect_width, aspect_height; /* of a pixel; 0 = unknown */
    unsigned primaries, transfer;         /* of a coded picture, see picture_input_open_coded */
    uint64_t frames;
    uint64_t file_bytes;
    char text[160]; /* for people: "OpenEXR, half, PIZ" */
};

struct picture_input;

/* Open a picture and read its header. The content tells its kind, not the name. "-" is standard
 * input. `layer` is one of the file's, for OpenEXR only; NULL = the main one, see exr_layer.h.
 * `*out` is NULL unless true is returned. */
bool picture_input_open(struct picture_input **out, const char *path, enum picture_alpha alpha,
                        const char *layer, struct error *error);

/* Open a PNG, also of SDR, to read its codes instead of light: RGBA of 16 bits, full range. The format
 * names `primaries` and `transfer` by their numbers in ITU-R H.273; 2 is unknown. A profile of sRGB
 * and a PNG that names nothing are sRGB: 1 and 13. Otherwise as picture_input_open. */
bool picture_input_open_coded(struct picture_input **out, const char *path, struct error *error);

/* The same from memory, which must stay until the input is closed. */
bool picture_input_open_coded_memory(struct picture_input **out, const void *data, size_t bytes,
                                     struct error *error);
bool picture_input_open_memory(struct picture_input **out, const void *data, size_t bytes,
                               enum picture_alpha alpha, const char *layer, struct error *error);

/* Valid until the input is closed. */
const struct picture_format *picture_input_format(const struct picture_input *input);

enum picture_read { PICTURE_READ_FRAME = 1, PICTURE_READ_END = 0, PICTURE_READ_ERROR = -1 };

/* Read the next frame. `pitch_bytes` is a multiple of 4, at least width * pixel size. After an
 * error the pixels are undefined. */
enum picture_read picture_input_read(struct picture_input *input, void *pixels, size_t pitch_bytes,
                                     struct error *error);

/* Close and set to NULL; NULL is accepted. */
void picture_input_close(struct picture_input **input);

struct picture_output;

/* Whether the name is that of a JPEG: it ends in .jpg or .jpeg. */
bool picture_is_jpeg(const char *path);

/* Start a JPEG with a gain map, or a PNG. The name must end in .jpg, .jpeg or .png, except "-"
 * (standard output), a pipe or a device, which get a PNG. A JPEG has 8 bits. A file appears under
 * its name only when the output is finished. `*out` is NULL unless true is returned. */
bool picture_output_open(struct picture_output **out, const char *path, uint32_t width,
                         uint32_t height, enum cox_pixel_out pixel, struct error *error);

/* The colours of the samples.
 *   PICTURE_SRGB  sRGB, the default
 *   PICTURE_WIDE  the curve of sRGB, the primaries of BT.2020; not for JPEG
 *   PICTURE_PQ    PQ, BT.2020; not for JPEG */
enum picture_colours { PICTURE_SRGB = 0, PICTURE_WIDE, PICTURE_PQ };

/* Name the colours. Call this before the picture is written. */
void picture_output_colours(struct picture_output *output, enum picture_colours colours);

/* Say that pixels are `width` to `height`; zeros = unknown. Call this before the picture is
 * written. */
void picture_output_aspect(struct picture_output *output, uint32_t width, uint32_t height);

/* The light that a picture was mapped from, linear RGBA with BT.709 primaries and without NaN. */
struct picture_light {
    const void *pixels;
    size_t pitch_bytes;
    enum cox_pixel_in pixel;
    float gain; /* with it 1.0 is SDR white */
    float peak; /* brighter light counts as this, in multiples of SDR white */
};

/* A JPEG needs this before it is written: the light for its gain map, and its quality from 1 to
 * 100. A PNG ignores it. */
void picture_output_light(struct picture_output *output, const struct picture_light *light,
                          unsigned quality);

/* Write the picture. An alpha channel that is opaque everywhere is left out, and in a JPEG any. */
bool picture_output_write(struct picture_output *output, const void *pixels, size_t pitch_bytes,
                          struct error *error);

/* Close, make durable, put in place. Sets the output to NULL, also on failure. */
bool picture_output_finish(struct picture_output **output, struct error *error);

/* Drop what was written, and set to NULL; NULL is accepted. */
void picture_output_abandon(struct picture_output **output);

#endif
