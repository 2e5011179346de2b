/* An output of picture.h inside: what the writers of PNG and JPEG share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PICTURE_OUT_H
#define PICTURE_OUT_H

#include "common/outfile.h"
#include "picture.h"

struct picture_output {
    struct outfile *file;
    uint32_t width, height;
    enum cox_pixel_out pixel;
    uint32_t aspect_width, aspect_height; /* of a pixel; 0 = unknown */
    enum picture_colours colours;
    bool jpeg;
    struct picture_light light; /* of a JPEG */
    unsigned quality;
    bool written;
};

/* The words after "this program was built without" if the kind cannot be written; else NULL. */
extern const char *const picture_png_missing, *const picture_jpeg_missing;

/* Code the picture and write it to the file. */
bool picture_png_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                       struct error *error);
bool picture_jpeg_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                        struct error *error);

#endif
