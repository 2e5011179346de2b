/* PNG pictures in: PQ and HLG, as the chunk cICP says (PNG, third edition) or an ICC profile's tag
 * of that name; or the codes of any PNG.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"

#include <string.h>

static bool png_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8);
}

#ifndef COX_HAVE_PNG

const struct picture_kind picture_kind_png = {
    .matches = png_matches,
    .missing = "a PNG picture, but this program was built without libpng (Debian: libpng-dev)"};

#else

#include "common/least.h"
#include "exif.h"
#include "icc.h"
#include "photo.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

/* One reading of the file. libpng's errors jump, so all that is made is kept here. */
struct reading {
    const struct picture_input *input;
    size_t at;
    png_structp png;
    png_infop info;
    uint8_t *memory; /* of the rows */
    struct error *error;
};

static void on_error(png_structp png, png_const_charp message)
{
    struct reading *reading = png_get_error_ptr(png);
    error_set(reading->error, "damaged or truncated PNG: %.200s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void on_read(png_structp png, png_bytep to, size_t bytes)
{
    struct reading *reading = png_get_io_ptr(png);
    if (bytes > reading->input->bytes - reading->at)
        png_error(png, "the file ends too early");
    memcpy(to, reading->input->data + reading->at, bytes);
    reading->at += bytes;
}

static bool begin(struct reading *reading, struct error *error)
{
    reading->error = error;
    reading->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reading, on_error, on_warning);
    if (reading->png)
        reading->info = png_create_info_struct(reading->png);
    if (!reading->info)
        return error_set(error, "out of memory");

    png_set_read_fn(reading->png, reading, on_read);
    png_set_user_limits(reading->png, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
    return true;
}

static void end(struct reading *reading)
{
    if (reading->png)
        png_destroy_read_struct(&reading->png, &reading->info, NULL);
    free(reading->memory);
}

/* The data of a chunk before the pixels; NULL = none. libpng 1.6 does not know cICP. */
static const uint8_t *find_chunk(const struct picture_input *input, const char *name, size_t *bytes)
{
    for (size_t at = 8; input->bytes - at >= 12;) {
        const uint8_t *chunk = input->data + at;
        *bytes = (size_t)chunk[0] << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
        if (*bytes > input->bytes - at - 12 || !memcmp(chunk + 4, "IDAT", 4))
            return NULL;
        if (!memcmp(chunk + 4, name, 4))
            return chunk + 8;
        at += 12 + *bytes;
    }
    return NULL;
}

/* Whether the profile is sRGB, up to the rounding of usual profiles. */
static bool is_srgb(const uint8_t *profile, size_t bytes)
{
    struct icc_rgb rgb, srgb;
    bool same = icc_rgb(profile, bytes, &rgb);
    icc_srgb(&srgb);

    for (int i = 0; i < 9 && same; i++)
        same = fabsf(rgb.matrix[i] - srgb.matrix[i]) < 0.01f;
    for (int i = 0; i < 256 && same; i++)
        same = fabsf(rgb.curve[i] - srgb.curve[i]) < 0.002f;
    return same;
}

static void find_colours(const struct reading *reading, struct cicp *cicp)
{
    static const char w3c_pq[] = "ITUR_2100_PQ_FULL"; /* before cICP, PQ was named so */
    size_t bytes = 0;
    png_charp name;
    png_bytep profile;
    png_uint_32 length;
    int method;

    const uint8_t *chunk = find_chunk(reading->input, "cICP", &bytes);
    *cicp = (struct cicp){1, CICP_SRGB, 0, true};
    if (chunk && bytes == 4)
        *cicp = (struct cicp){chunk[0], chunk[1], chunk[2], chunk[3]};
    else if (png_get_iCCP(reading->png, reading->info, &name, &method, &profile, &length) &&
             !icc_cicp(profile, length, cicp)) {
        if (!strcmp(name, w3c_pq))
            *cicp = (struct cicp){9, CICP_PQ, 0, true};
        else if (reading->input->coded && !is_srgb(profile, length))
            *cicp = (struct cicp){CICP_UNKNOWN, CICP_UNKNOWN, 0, true};
    }
}

static bool read_header(struct reading *reading, struct picture_input *input)
{
    struct error *error = reading->error;
    struct cicp cicp;
    png_uint_32 exif_bytes = 0;
    png_bytep exif = NULL;
    if (setjmp(png_jmpbuf(reading->png)))
        return false;

    png_read_info(reading->png, reading->info);
    const unsigned bits = png_get_bit_depth(reading->png, reading->info);
    find_colours(reading, &cicp);
    if (cicp.matrix != 0)
        return error_set(error, "damaged PNG: its cICP names a matrix");

    if (input->coded && !cicp.full_range)
        return error_set(error, "its codes are of the limited range, which is not supported");

    /* Palettes and few bits are widened to 8 bits. */
    const bool opened = input->coded
                            ? photo_open_coded(input, &cicp, error)
                            : photo_open(input, "PNG", &cicp, bits, bits > 8 ? 16 : 8, error);
    if (!opened)
        return false;
    struct photo *photo = input->state;
    if (png_get_eXIf_1(reading->png, reading->info, &exif_bytes, &exif))
        photo->orientation = exif_orientation(exif, exif_bytes);

    const bool alpha = (png_get_color_type(reading->png, reading->info) & PNG_COLOR_MASK_ALPHA) ||
                       png_get_valid(reading->png, reading->info, PNG_INFO_tRNS);
    input->format.alpha = alpha && input->alpha == PICTURE_ALPHA_STRAIGHT;
    return photo_size(input, png_get_image_width(reading->png, reading->info),
                      png_get_image_height(reading->png, reading->info), photo->orientation, error);
}

static void png_close(struct picture_input *input)
{
    free(input->state);
    input->state = NULL;
}

static bool png_open(struct picture_input *input, struct error *error)
{
    struct reading reading = {.input = input};
    const bool good = begin(&reading, error) && read_header(&reading, input);
    end(&reading);
    if (!good)
        png_close(input);
    return good;
}

/* Rows come as RGBA of 16 bits. An interlaced picture is kept whole. */
static bool read_rows(struct reading *reading, struct picture_input *input, uint8_t *pixels,
                      size_t pitch_bytes)
{
    const struct photo *photo = input->state;
    png_structp png = reading->png;
    if (setjmp(png_jmpbuf(png)))
        return false;

    png_read_info(png, reading->info);
    png_set_expand_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xffff, PNG_FILLER_AFTER);
    png_set_swap(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, reading->info);

    const png_uint_32 width = png_get_image_width(png, reading->info);
    const png_uint_32 height = png_get_image_height(png, reading->info);
    const size_t row_bytes = (size_t)width * 8;
    reading->memory = calloc(passes > 1 ? height : 1, row_bytes);
    if (!reading->memory)
        return error_set(reading->error, "out of memory");
    if (png_get_rowbytes(png, reading->info) != row_bytes)
        return error_set(reading->error, "damaged PNG: an unknown kind of pixels");

    const struct photo_place place = photo_upright(input, pixels, pitch_bytes, photo->orientation);
    for (int pass = 0; pass < passes; pass++)
        for (png_uint_32 y = 0; y < height; y++) {
            uint8_t *row = reading->memory + (passes > 1 ? y * row_bytes : 0);
            png_read_row(png, row, NULL);
            if (pass < passes - 1)
                continue;

            uint8_t *to = place.first + place.down * (ptrdiff_t)y;
            if (!input->coded)
                photo_put(input, &photo->light, (const uint16_t *)(const void *)row, width, to,
                          place.across);
            for (png_uint_32 x = 0; x < width && input->coded; x++, to += place.across)
                memcpy(to, row + (size_t)x * 8, 8);
        }
    png_read_end(png, NULL);
    return true;
}

static bool png_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    struct reading reading = {.input = input};
    const bool good = begin(&reading, error) && read_rows(&reading, input, pixels, pitch_bytes);
    end(&reading);
    return good;
}

const struct picture_kind picture_kind_png = {png_matches, png_open, png_read, png_close, NULL};

#endif
