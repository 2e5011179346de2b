/* A still of a film: a frame that is turned upright and written as a PNG.
 *
 * Thread-safety: one still from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_STILL_H
#define TONEMAP_STILL_H

#include "media/picture.h"
#include "media/video.h"

struct still {
    struct picture_output *output;
    uint32_t width, height; /* upright */
    struct video_turn turn;
    size_t pixel_bytes;
    struct video_rational aspect; /* of a pixel */
    enum picture_colours colours;
};

/* Set all fields but the output, for frames of `format`, which are RGBA. */
void still_describe(struct still *still, const struct video_format *format);

/* The samples of the PNG; and say in a PNG that is open which colours they have and how wide its
 * pixels are. */
enum cox_pixel_out still_pixel(const struct still *still);
void still_say_format(const struct still *still, struct picture_output *output);

/* Open `path` for frames of `format`, which are RGBA. Other fields of `still` are set even if it
 * fails. */
bool still_open(struct still *still, const char *path, const struct video_format *format,
                struct error *error);

/* Write the frame, as it comes from the devices. */
bool still_write(struct still *still, const uint8_t *pixels, size_t pitch_bytes,
                 struct error *error);

/* Copy the frame to `to`, upright. */
void still_turn(const struct still *still, const uint8_t *pixels, size_t pitch_bytes, uint8_t *to,
                size_t to_pitch_bytes);

/* Finish, or drop if `good` is false. Accepts a still that is not open. */
bool still_close(struct still *still, bool good, struct error *error);

#endif
