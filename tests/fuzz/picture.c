/* Fuzz target: pictures in all kinds. A picture is refused with one line, or it is read, and
 * nothing is written beyond its rows.
 *
 * For OpenEXR the target covers this project's part: the choice of part, windows, channels and chunks, and the
 * unpacking. OpenEXRCore, which reads and decompresses, is not instrumented. Nor are the libraries of photographs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "media/picture.h"
#include "fuzz.h"

/* Larger pictures only make the target slow. */
enum { FUZZ_PICTURE_BYTES_MAX = 1 << 14, FUZZ_PICTURE_EXTRA = 12, FUZZ_PICTURE_FILL = 0xa5 };

static void fuzz_picture_error(const struct error *error)
{
    CHECK(*error->text && memchr(error->text, 0, sizeof error->text));
    for (const unsigned char *c = (const unsigned char *)error->text; *c; c++) {
        CHECK(*c >= ' ' && *c != 0x7f);
        CHECK(*c != 0xc2 || c[1] >= 0xa0); /* no control character of Latin-1 in UTF-8 */
    }
}

static void fuzz_picture_format(const struct picture_format *format, enum picture_alpha alpha)
{
    CHECK(format->width >= 1 && format->width <= PICTURE_SIDE_MAX);
    CHECK(format->height >= 1 && format->height <= PICTURE_SIDE_MAX);
    CHECK((uint64_t)format->width * format->height <= PICTURE_PIXELS_MAX);
    CHECK(format->pixel == COX_PIXEL_RGBA_HALF || format->pixel == COX_PIXEL_RGBA_FLOAT);
    CHECK(format->frames == 1 && (!format->alpha || alpha == PICTURE_ALPHA_STRAIGHT));
    /* It is printed, so it must be printable. */
    CHECK(*format->text && memchr(format->text, 0, sizeof format->text));
    for (const char *c = format->text; *c; c++)
        CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
}

/* Read it with bytes after each row that must not change. Read it twice, with different contents before: if some
 * memory is not written, the results differ. */
static void fuzz_picture_read(struct picture_input *input, struct picture_input *again)
{
    const struct picture_format *format = picture_input_format(input);
    size_t row_bytes = (size_t)format->width * (format->pixel == COX_PIXEL_RGBA_HALF ? 8 : 16);
    size_t pitch_bytes = row_bytes + FUZZ_PICTURE_EXTRA, all = pitch_bytes * format->height - FUZZ_PICTURE_EXTRA;
    struct error error = {""}, error2 = {""};
    if (all > FUZZ_PICTURE_BYTES_MAX)
        return;
    uint8_t *pixels = malloc(all), *pixels2 = malloc(all);
    CHECK(pixels && pixels2);
    memset(pixels, FUZZ_PICTURE_FILL, all);
    memset(pixels2, 0xff & ~FUZZ_PICTURE_FILL, all);
    enum picture_read result = picture_input_read(input, pixels, pitch_bytes, &error);
    CHECK(result == PICTURE_READ_FRAME || result == PICTURE_READ_ERROR);
    CHECK(picture_input_read(again, pixels2, pitch_bytes, &error2) == result);
    for (uint32_t row = 0; row + 1 < format->height; row++)
        for (size_t i = row_bytes; i < pitch_bytes; i++)
            CHECK(pixels[row * pitch_bytes + i] == FUZZ_PICTURE_FILL);
    if (result == PICTURE_READ_FRAME) {
        for (uint32_t row = 0; row < format->height; row++)
            CHECK(!memcmp(pixels + row * pitch_bytes, pixels2 + row * pitch_bytes, row_bytes));
        CHECK(picture_input_read(input, pixels, pitch_bytes, &error) == PICTURE_READ_END);
    } else {
        fuzz_picture_error(&error);
        CHECK(!strcmp(error.text, error2.text));
    }
    free(pixels);
    free(pixels2);
}

/* The codes of a PNG instead of its light. */
static void fuzz_picture_codes(const uint8_t *data, size_t size)
{
    struct picture_input *input, *again;
    struct error error = {""};
    if (!picture_input_open_coded_memory(&input, data, size, &error)) {
        CHECK(!input);
        fuzz_picture_error(&error);
        return;
    }
    fuzz_picture_format(picture_input_format(input), PICTURE_ALPHA_STRAIGHT);
    CHECK(picture_input_open_coded_memory(&again, data, size, &error));
    fuzz_picture_read(input, again);
    picture_input_close(&input);
    picture_input_close(&again);
}

/* `most_pixels`: the largest number of pixels for which a file of this size may allocate memory. */
static int fuzz_picture(const uint8_t *data, size_t size, uint64_t most_pixels)
{
    /* Chosen by the size, so that picture files are inputs without change. */
    enum picture_alpha alpha = size & 1 ? PICTURE_ALPHA_STRAIGHT : PICTURE_ALPHA_BLACK;
    struct picture_input *input, *again;
    struct error error = {""};
    if (!picture_input_open_memory(&input, data, size, alpha, NULL, &error)) {
        CHECK(!input);
        fuzz_picture_error(&error);
        return 0;
    }
    const struct picture_format *format = picture_input_format(input);
    fuzz_picture_format(format, alpha);
    CHECK((uint64_t)format->width * format->height <= most_pixels);
    CHECK(picture_input_open_memory(&again, data, size, alpha, NULL, &error));
    fuzz_picture_read(input, again);
    picture_input_close(&input);
    picture_input_close(&again);
    CHECK(!input && !again);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "\x76\x2f\x31\x01", 4) == 0) {
        /* OpenEXR: a black frame of up to 8K may need no data. Beyond that, PXR24 stores 64 pixels in 1376 bytes at
         * best. */
        return fuzz_picture(data, size, (UINT64_C(1) << 25) + size * 1376 / 2 * 64);
    }

    if (size >= 2 && memcmp(data, "#?", 2) == 0) {
        /* Radiance: a row may be one run. */
        return fuzz_picture(data, size, (uint64_t)size / 4 * PICTURE_SIDE_MAX);
    }

    if (size >= 1 && data[0] == 'P') /* PFM */
        return fuzz_picture(data, size, size / 4);

    /* Photographs: one block may code the whole picture. */
    if (size >= 4 && memcmp(data, "\x89PNG", 4) == 0)
        fuzz_picture_codes(data, size);
    return fuzz_picture(data, size, PICTURE_PIXELS_MAX);
}
