/* PNG pictures out, 8 or 16 bits per channel. The chunk cICP names all colours but sRGB (PNG, third
 * edition); older chunks name those that they can.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture_out.h"

#include "photo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef COX_HAVE_PNG

const char *const picture_png_missing = NULL;

#include <png.h>
#include <setjmp.h>

static bool is_opaque(const struct picture_output *output, const void *pixels, size_t pitch_bytes)
{
    const bool deep = output->pixel != COX_PIXEL_RGBA8;

    for (uint32_t y = 0; y < output->height; y++) {
        const uint8_t *row = (const uint8_t *)pixels + (size_t)y * pitch_bytes;
        for (uint32_t x = 0; x < output->width; x++) {
            uint16_t alpha = 0xff00;
            if (deep)
                memcpy(&alpha, row + 8 * (size_t)x + 6, sizeof alpha);
            else
                alpha |= row[4 * (size_t)x + 3];
            if (alpha != 0xffff)
                return false;
        }
    }
    return true;
}

/* One row in PNG's order: most significant byte first, alpha only if it is kept. */
static void pack_row(const struct picture_output *output, const uint8_t *from, bool opaque,
                     uint8_t *to)
{
    uint32_t channels = opaque ? 3 : 4;

    for (uint32_t x = 0; x < output->width; x++) {
        for (uint32_t c = 0; c < channels; c++) {
            if (output->pixel == COX_PIXEL_RGBA8) {
                *to++ = from[4 * (size_t)x + c];
            } else {
                uint16_t value;
                memcpy(&value, from + 8 * (size_t)x + 2 * (size_t)c, sizeof value);
                *to++ = (uint8_t)(value >> 8);
                *to++ = (uint8_t)value;
            }
        }
    }
}

struct png_failure {
    struct error *error;
    int cause; /* errno of the stream, 0 = libpng's own */
};

static void on_png_error(png_structp png, png_const_charp message)
{
    struct png_failure *failure = png_get_error_ptr(png);
    if (failure->cause)
        error_set(failure->error, "cannot be written: %s", strerror(failure->cause));
    else
        error_set(failure->error, "cannot be encoded: %.200s", message);
    png_longjmp(png, 1);
}

static void on_png_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void on_png_write(png_structp png, png_bytep data, png_size_t bytes)
{
    struct png_failure *failure = png_get_error_ptr(png);
    errno = 0;
    if (fwrite(data, 1, bytes, png_get_io_ptr(png)) != bytes) {
        failure->cause = errno ? errno : EIO;
        png_error(png, "write");
    }
}

static void on_png_flush(png_structp png)
{
    (void)png; /* outfile_finish does */
}

/* Everything between setjmp and longjmp happens here, on values that do not change after setjmp. */
static bool encode(png_structp png, png_infop info, const struct picture_output *output,
                   const uint8_t *pixels, size_t pitch_bytes, bool opaque, uint8_t *packed)
{
    enum { BT2020 = 9 }; /* of H.273 */
    if (setjmp(png_jmpbuf(png)))
        return false;

    const int bits = output->pixel == COX_PIXEL_RGBA8 ? 8 : 16;
    const int colours = opaque ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGB_ALPHA;
    png_set_write_fn(png, outfile_stream(output->file), on_png_write, on_png_flush);
    png_set_IHDR(png, info, output->width, output->height, bits, colours, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (output->colours == PICTURE_SRGB)
        png_set_sRGB_gAMA_and_cHRM(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
    else
        png_set_cHRM(png, info, 0.3127, 0.3290, 0.708, 0.292, 0.170, 0.797, 0.131, 0.046);
    if (output->colours == PICTURE_WIDE)
        png_set_gAMA(png, info, 1 / 2.2);
    if (output->aspect_width != output->aspect_height)
        png_set_pHYs(png, info, output->aspect_height, output->aspect_width,
                     PNG_RESOLUTION_UNKNOWN); /* pixels for a length, thus inverse */
    png_write_info_before_PLTE(png, info);
    if (output->colours != PICTURE_SRGB) { /* libpng 1.6 does not know this chunk */
        const bool pq = output->colours == PICTURE_PQ;
        const png_byte cicp[4] = {BT2020, pq ? CICP_PQ : CICP_SRGB, 0, 1};
        png_write_chunk(png, (png_const_bytep) "cICP", cicp, sizeof cicp);
    }
    png_write_info(png, info);

    for (uint32_t y = 0; y < output->height; y++) {
        pack_row(output, pixels + (size_t)y * pitch_bytes, opaque, packed);
        png_write_row(png, packed);
    }
    png_write_end(png, info);
    return true;
}

bool picture_png_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                       struct error *error)
{
    struct png_failure failure = {error, 0};
    png_infop info = NULL;
    uint8_t *packed = malloc((size_t)output->width * 8);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_png_error,
                                              on_png_warning);
    if (png)
        info = png_create_info_struct(png);

    const bool opaque = is_opaque(output, pixels, pitch_bytes);
    bool good = false;
    if (packed && info)
        good = encode(png, info, output, pixels, pitch_bytes, opaque, packed);
    else
        error_set(error, "out of memory");
    if (png)
        png_destroy_write_struct(&png, &info);
    free(packed);
    return good;
}

#else

const char *const picture_png_missing = "libpng (Debian: libpng-dev)";

bool picture_png_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                       struct error *error)
{
    (void)output, (void)pixels, (void)pitch_bytes;
    return error_set(error, "this program was built without libpng");
}

#endif
