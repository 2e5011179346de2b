/* Pictures in and out: an input yields frames, an output takes frames. A picture is an input of one frame.
 *
 * Frames come as scene-linear RGBA with BT.709 primaries, half or float, alpha last, 1.0 = diffuse white, written
 * straight into the caller's memory; they leave as sRGB-encoded RGBA of 8 or 16 bits per channel.
 * Files are untrusted: every size is checked before it is believed, and a bad file gives an error, never a crash.
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

/* Bounds on what is believed of a file's header. */
enum { PICTURE_SIDE_MAX = 65536 };
#define PICTURE_PIXELS_MAX (UINT64_C(1) << 29)

enum picture_alpha {
    PICTURE_ALPHA_BLACK =
        0, /* as the file's colours stand: what is transparent lies over black; alpha becomes 1 */
    PICTURE_ALPHA_STRAIGHT = 1, /* keep alpha, colours divided by it, as PNG wants them */
};

struct picture_format {
    uint32_t width; /* 1 .. PICTURE_SIDE_MAX */
    uint32_t height;
    enum cox_pixel_in pixel;
    bool alpha; /* the file has an alpha channel and it was asked for */
    uint64_t frames;
    char text[96]; /* for people: "OpenEXR, half, PIZ" */
};

struct picture_input;

/* Open a picture and read its header; the kind is told by the content, not the name. "-" is standard input.
 * `*out` is NULL unless true is returned. */
bool picture_input_open(struct picture_input **out, const char *path, enum picture_alpha alpha,
                        struct error *error);

/* As above, from memory that must stay until the input is closed. */
bool picture_input_open_memory(struct picture_input **out, const void *data, size_t bytes,
                               enum picture_alpha alpha, struct error *error);

/* The format, which is the same for every frame. Lives as long as the input. */
const struct picture_format *picture_input_format(const struct picture_input *input);

enum picture_read { PICTURE_READ_FRAME = 1, PICTURE_READ_END = 0, PICTURE_READ_ERROR = -1 };

/* The next frame into `pixels`, `pitch_bytes` from row to row (at least width * pixel size, a multiple of 4). On an
 * error the pixels are undefined. */
enum picture_read picture_input_read(struct picture_input *input, void *pixels, size_t pitch_bytes,
                                     struct error *error);

/* Close and set to NULL; NULL is accepted. */
void picture_input_close(struct picture_input **input);

struct picture_output;

/* Start an output. The kind is told by the name, which must end in .png, unless it is "-" (standard output) or
 * something that is not a file (a pipe, a device). A file appears under its name only when the output is finished.
 * `*out` is NULL unless true is returned. */
bool picture_output_open(struct picture_output **out, const char *path, uint32_t width,
                         uint32_t height, enum cox_pixel_out pixel, struct error *error);

/* Take the next frame. An alpha channel that is opaque everywhere is left out. */
bool picture_output_write(struct picture_output *output, const void *pixels, size_t pitch_bytes,
                          struct error *error);

/* Close, make durable, put in place. The output is gone afterwards in any case (set to NULL). */
bool picture_output_finish(struct picture_output **output, struct error *error);

/* Drop what was written; NULL is accepted. */
void picture_output_abandon(struct picture_output **output);

#endif
