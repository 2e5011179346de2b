/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture_out.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), most = strlen(ending);
    return length > most && !strcasecmp(path + length - most, ending);
}

bool picture_is_jpeg(const char *path)
{
    return ends_with(path, ".jpg") || ends_with(path, ".jpeg");
}

/* Whether a file of this name and these pixels can be written. */
static bool check(const struct picture_output *output, const char *path, struct error *error)
{
    enum { JPEG_SIDE_MAX = 65500 }; /* of libjpeg */
    const char *missing = output->jpeg ? picture_jpeg_missing : picture_png_missing;
    if (missing)
        return error_set(error, "this program was built without %s", missing);
    if (!output->jpeg && !ends_with(path, ".png") && !outfile_is_special(output->file))
        return error_set(error, "pictures are written as PNG or JPEG; the name must end in .png or "
                                ".jpg");
    if (output->jpeg && output->pixel != COX_PIXEL_RGBA8)
        return error_set(error, "a JPEG has 8 bits");
    if (output->jpeg && (output->width > JPEG_SIDE_MAX || output->height > JPEG_SIDE_MAX))
        return error_set(error, "a JPEG has at most %d pixels on a side", JPEG_SIDE_MAX);
    return true;
}

bool picture_output_open(struct picture_output **out, const char *path, uint32_t width,
                         uint32_t height, enum cox_pixel_out pixel, struct error *error)
{
    struct picture_output *output = calloc(1, sizeof *output);
    *out = NULL;
    if (!output)
        return error_set(error, "out of memory");
    output->width = width;
    output->height = height;
    output->pixel = pixel;
    output->jpeg = picture_is_jpeg(path);

    if (!outfile_open(&output->file, path, error) || !check(output, path, error)) {
        picture_output_abandon(&output);
        return false;
    }
    *out = output;
    return true;
}

void picture_output_aspect(struct picture_output *output, uint32_t width, uint32_t height)
{
    const bool known = width && height;
    output->aspect_width = known ? width : 0;
    output->aspect_height = known ? height : 0;
}

void picture_output_colours(struct picture_output *output, enum picture_colours colours)
{
    output->colours = colours;
}

void picture_output_light(struct picture_output *output, const struct picture_light *light,
                          unsigned quality)
{
    output->light = *light;
    output->quality = quality;
}

bool picture_output_write(struct picture_output *output, const void *pixels, size_t pitch_bytes,
                          struct error *error)
{
    if (output->written)
        return error_set(error, "a picture file holds one picture only");
    output->written = true;

    return output->jpeg ? picture_jpeg_write(output, pixels, pitch_bytes, error)
                        : picture_png_write(output, pixels, pitch_bytes, error);
}

bool picture_output_finish(struct picture_output **output, struct error *error)
{
    bool good = outfile_finish(&(*output)->file, error);
    free(*output);
    *output = NULL;
    return good;
}

void picture_output_abandon(struct picture_output **output)
{
    if (!*output)
        return;
    outfile_abandon(&(*output)->file);
    free(*output);
    *output = NULL;
}
