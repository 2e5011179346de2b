/* Radiance pictures (.hdr, .pic): RGBE pixels, flat or with the old or the new run lengths (Greg
 * Ward, "Real Pixels", Graphics Gems II, and Radiance's ray/doc/filefmts).
 *
 * A pixel is mantissa * 2^(exponent - 136). EXPOSURE lines are not applied: the stored values are
 * the picture as its author left it. PRIMARIES are applied.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"
#include "primaries.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hdr {
    size_t offset; /* of the first scanline */
    bool bottom_up, mirrored;
    bool convert;
    float matrix[9];
    uint8_t *scanline; /* width * 4 bytes */
};

static bool hdr_matches(const uint8_t *data, size_t bytes)
{
    return (bytes >= 11 && !memcmp(data, "#?RADIANCE\n", 11)) ||
           (bytes >= 7 && !memcmp(data, "#?RGBE\n", 7)) ||
           (bytes >= 12 && !memcmp(data, "#?RADIANCE\r\n", 12));
}

/* Read a line without its end, cut to `line`'s size. False at the end of the data. */
static bool next_line(const struct picture_input *input, size_t *at, char *line, size_t line_bytes)
{
    const uint8_t *start = input->data + *at;
    const uint8_t *end = memchr(start, '\n', input->bytes - *at);
    if (!end)
        return false;
    size_t length = (size_t)(end - start);

    *at += length + 1;
    if (length && start[length - 1] == '\r')
        length--;
    if (length >= line_bytes)
        length = line_bytes - 1;
    memcpy(line, start, length);
    line[length] = 0;
    return true;
}

static bool parse_primaries(const char *text, struct primaries *out)
{
    double v[8];
    for (int i = 0; i < 8; i++) {
        char *end;
        v[i] = strtod(text, &end);
        if (end == text)
            return false;
        text = end;
    }

    *out = (struct primaries){{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]}};
    return true;
}

/* The resolution line, such as "-Y 480 +X 640". */
static bool parse_resolution(const char *line, struct hdr *hdr, int64_t *width, int64_t *height,
                             struct error *error)
{
    char first[3] = "", second[3] = "";
    long long a = 0, b = 0;
    if (sscanf(line, "%2s %10lld %2s %10lld", first, &a, second, &b) != 4)
        return error_set(error, "a damaged Radiance header: no resolution");

    bool signs = (first[0] == '-' || first[0] == '+') && (second[0] == '-' || second[0] == '+');
    if (signs && first[1] == 'X' && second[1] == 'Y')
        return error_set(error,
                         "a Radiance picture stored in columns (%s %s), which is not supported",
                         first, second);
    if (!signs || first[1] != 'Y' || second[1] != 'X')
        return error_set(error, "a damaged Radiance header: no resolution");

    hdr->bottom_up = first[0] == '+';
    hdr->mirrored = second[0] == '-';
    *width = b;
    *height = a;
    return true;
}

static bool check_format(const char *format, struct error *error)
{
    enum { LETTERS = 15 };
    if (!strncmp(format, "32-bit_rle_xyze", LETTERS))
        return error_set(
            error, "a Radiance picture in XYZ, which is not supported (ra_xyze -r converts it)");
    if (strncmp(format, "32-bit_rle_rgbe", LETTERS) != 0)
        return error_set(error, "a Radiance picture of the unknown format %.40s", format);
    return true;
}

static bool take_primaries(struct hdr *hdr, const char *text, struct error *error)
{
    struct primaries primaries;
    enum primaries_match match = PRIMARIES_BROKEN;
    if (parse_primaries(text, &primaries))
        match = primaries_to_bt709(&primaries, hdr->matrix);
    if (match == PRIMARIES_BROKEN)
        return error_set(error, "a damaged Radiance header: impossible primaries");

    hdr->convert = match == PRIMARIES_CONVERT;
    return true;
}

/* Read the lines up to the resolution; `*at` moves behind them. */
static bool read_header(const struct picture_input *input, struct hdr *hdr, size_t *at,
                        int64_t *width, int64_t *height, struct error *error)
{
    enum { HEADER_MAX = 65536 };
    char line[256];
    bool format = false, blank = false;

    while (!blank && *at < HEADER_MAX && next_line(input, at, line, sizeof line)) {
        blank = !*line;
        if (!strncmp(line, "FORMAT=", 7)) {
            if (!check_format(line + 7, error))
                return false;
            format = true;
        } else if (!strncmp(line, "PRIMARIES=", 10) && !take_primaries(hdr, line + 10, error)) {
            return false;
        }
    }
    if (!blank || !format || !next_line(input, at, line, sizeof line))
        return error_set(error, "a damaged Radiance header");

    return parse_resolution(line, hdr, width, height, error) &&
           picture_check_size(*width, *height, error);
}

static bool hdr_open(struct picture_input *input, struct error *error)
{
    int64_t width = 0, height = 0;
    struct hdr *hdr = calloc(1, sizeof *hdr);
    if (!hdr)
        return error_set(error, "out of memory");
    if (!read_header(input, hdr, &hdr->offset, &width, &height, error))
        goto fail;

    /* A scanline takes at least four bytes: a short file cannot ask for much memory. */
    const size_t left = input->bytes - hdr->offset;
    if (left / 4 < (uint64_t)height) {
        error_set(error, "truncated: %llu bytes cannot hold %lld rows", (unsigned long long)left,
                  (long long)height);
        goto fail;
    }
    hdr->scanline = malloc((size_t)width * 4);
    if (!hdr->scanline) {
        error_set(error, "out of memory");
        goto fail;
    }

    input->state = hdr;
    input->format.width = (uint32_t)width;
    input->format.height = (uint32_t)height;
    input->format.pixel = COX_PIXEL_RGBA_FLOAT;
    snprintf(input->format.text, sizeof input->format.text, "Radiance RGBE%s",
             hdr->convert ? ", own primaries" : "");
    return true;

fail:
    free(hdr);
    return false;
}

/* Each component in turn, in runs (count > 128) and literal bytes. Returns the bytes consumed, 0 on
 * damage. */
static size_t unpack_new(const uint8_t *from, size_t bytes, uint8_t *scanline, uint32_t width)
{
    size_t at = 4;

    for (uint32_t c = 0; c < 4; c++) {
        uint32_t x = 0;
        while (x < width) {
            if (at + 2 > bytes)
                return 0;

            uint32_t count = from[at++];
            if (count > 128) {
                count -= 128;
                if (count > width - x)
                    return 0;
                uint8_t value = from[at++];
                while (count--)
                    scanline[4 * (size_t)x++ + c] = value;
            } else {
                if (!count || count > width - x || count > bytes - at)
                    return 0;
                while (count--)
                    scanline[4 * (size_t)x++ + c] = from[at++];
            }
        }
    }
    return at;
}

/* Pixel by pixel. A pixel 1 1 1 n repeats the one before n times; n << 8 times if the pixel before
 * was a repetition too. */
static size_t unpack_old(const uint8_t *from, size_t bytes, uint8_t *scanline, uint32_t width)
{
    size_t at = 0;
    uint32_t x = 0, shift = 0;

    while (x < width) {
        if (bytes - at < 4)
            return 0;

        const uint8_t *pixel = from + at;
        at += 4;
        if (pixel[0] == 1 && pixel[1] == 1 && pixel[2] == 1) {
            if (!x || shift > 16)
                return 0;
            uint32_t count = (uint32_t)pixel[3] << shift;
            shift += 8;
            if (count > width - x)
                return 0;
            for (; count; count--, x++)
                memcpy(scanline + 4 * (size_t)x, scanline + 4 * (size_t)(x - 1), 4);
        } else {
            memcpy(scanline + 4 * (size_t)x++, pixel, 4);
            shift = 0;
        }
    }
    return at;
}

/* A scanline starts with 2 2 and its width if it has the new run lengths. */
static bool has_new_runs(const uint8_t *from, size_t left, uint32_t width)
{
    return left >= 4 && width >= 8 && width <= 0x7fff && from[0] == 2 && from[1] == 2 &&
           from[2] < 128;
}

static void convert_row(const struct hdr *hdr, const float scale[256], uint32_t width, float *row)
{
    const float *m = hdr->matrix;

    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *rgbe = hdr->scanline + 4 * (size_t)x;
        float *to = row + 4 * (size_t)(hdr->mirrored ? width - 1 - x : x);
        float r = rgbe[0] * scale[rgbe[3]], g = rgbe[1] * scale[rgbe[3]],
              b = rgbe[2] * scale[rgbe[3]];

        if (hdr->convert) {
            to[0] = m[0] * r + m[1] * g + m[2] * b;
            to[1] = m[3] * r + m[4] * g + m[5] * b;
            to[2] = m[6] * r + m[7] * g + m[8] * b;
        } else {
            to[0] = r, to[1] = g, to[2] = b;
        }
        to[3] = 1.0f;
    }
}

static bool hdr_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    struct hdr *hdr = input->state;
    uint32_t width = input->format.width, height = input->format.height;
    float scale[256]; /* of a mantissa, by exponent byte; 0 means black */
    scale[0] = 0;
    for (int e = 1; e < 256; e++)
        scale[e] = ldexpf(1.0f, e - 136);

    size_t at = hdr->offset;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *from = input->data + at;
        const size_t left = input->bytes - at;
        size_t used;
        if (!has_new_runs(from, left, width))
            used = unpack_old(from, left, hdr->scanline, width);
        else if (((uint32_t)from[2] << 8 | from[3]) == width)
            used = unpack_new(from, left, hdr->scanline, width);
        else
            return error_set(error, "damaged: row %u has %u pixels instead of %u", y,
                             (unsigned)from[2] << 8 | from[3], width);
        if (!used)
            return error_set(error, "truncated or damaged in row %u of %u", y, height);
        at += used;

        const uint32_t row = hdr->bottom_up ? height - 1 - y : y;
        convert_row(hdr, scale, width, (float *)(void *)(pixels + (size_t)row * pitch_bytes));
    }
    return true;
}

static void hdr_close(struct picture_input *input)
{
    struct hdr *hdr = input->state;
    free(hdr->scanline);
    free(hdr);
}

const struct picture_kind picture_kind_hdr = {hdr_matches, hdr_open, hdr_read, hdr_close, NULL};
