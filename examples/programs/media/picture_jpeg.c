/* JPEG pictures with a gain map, through libjpeg: Ultra HDR, ISO 21496-1, and Apple's.
 *
 * The file has two JPEGs: the SDR picture, and the gain map, which names its numbers. The
 * Multi-Picture Format (CIPA DC-007) lists them; without such a list they are searched for.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture_kinds.h"

#include <string.h>

static bool jpeg_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 3 && !memcmp(data, "\xff\xd8\xff", 3);
}

#ifndef COX_HAVE_JPEG

const struct picture_kind picture_kind_jpeg = {
    .matches = jpeg_matches,
    .missing = "a JPEG picture, but this program was built without libjpeg (Debian: libjpeg-dev)"};

#else

#include "exif.h"
#include "gain_map.h"
#include "icc.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

/* One of the file's JPEGs. */
struct part {
    const uint8_t *data;
    size_t bytes;
};

/* What the segments of a part hold; empty if it has none. */
struct segments {
    struct part xmp, exif, mpf, iso;
    size_t end; /* where the coded pixels begin */
};

struct jpeg {
    unsigned orientation;
    struct part base, map;
    struct gain_map gain;
};

/* --- The file's parts ------------------------------------------------------------------------- */

static uint32_t number(const uint8_t *at, unsigned size, bool little_endian)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | at[little_endian ? size - 1 - i : i];
    return value;
}

/* Set `out` to what follows `name` in the first segment that begins with it. */
static void take_segment(struct part segment, const char *name, size_t name_bytes, struct part *out)
{
    if (!out->data && segment.bytes >= name_bytes && !memcmp(segment.data, name, name_bytes))
        *out = (struct part){segment.data + name_bytes, segment.bytes - name_bytes};
}

#define SEGMENT(segment, name, out) take_segment(segment, name, sizeof name - 1, out)

static struct segments find_segments(struct part part)
{
    enum { APP1 = 0xe1, APP2 = 0xe2, SOS = 0xda };
    struct segments found = {.end = part.bytes};

    for (size_t at = 2; part.bytes - at >= 4 && part.data[at] == 0xff;) {
        const uint8_t marker = part.data[at + 1];
        const size_t length = number(part.data + at + 2, 2, false);
        if (marker == 0xff) { /* fill */
            at++;
            continue;
        }
        if (marker == SOS || length < 2 || length > part.bytes - at - 2) {
            found.end = at;
            break;
        }

        const struct part segment = {part.data + at + 4, length - 2};
        if (marker == APP1) {
            SEGMENT(segment, "http://ns.adobe.com/xap/1.0/\0", &found.xmp);
            SEGMENT(segment, "Exif\0\0", &found.exif);
        } else if (marker == APP2) {
            SEGMENT(segment, "MPF\0", &found.mpf);
            SEGMENT(segment, "urn:iso:std:iso:ts:21496:-1\0", &found.iso);
        }
        at += 2 + length;
    }
    return found;
}

/* Picture `n` of the file, from 1 on for those that follow the first. False: there are fewer. */
static bool find_part(const struct picture_input *input, struct part mpf, uint32_t n,
                      struct part *out)
{
    enum { ENTRIES = 0xb002, ENTRY_BYTES = 16 };
    if (mpf.bytes < 10)
        return false;
    const bool little = mpf.data[0] == 'I';
    const size_t folder = number(mpf.data + 4, 4, little);
    if (folder > mpf.bytes - 2)
        return false;

    const uint32_t count = number(mpf.data + folder, 2, little);
    for (uint32_t i = 0; i < count; i++) {
        const size_t at = folder + 2 + (size_t)i * 12;
        if (at + 12 > mpf.bytes)
            return false;
        if (number(mpf.data + at, 2, little) != ENTRIES)
            continue;

        const size_t entry = number(mpf.data + at + 8, 4, little) + (size_t)n * ENTRY_BYTES;
        if (((size_t)n + 1) * ENTRY_BYTES > number(mpf.data + at + 4, 4, little) ||
            entry > mpf.bytes || mpf.bytes - entry < ENTRY_BYTES)
            return false;
        const size_t size = number(mpf.data + entry + 4, 4, little);
        const size_t offset = number(mpf.data + entry + 8, 4, little) +
                              (size_t)(mpf.data - input->data);
        const size_t left = offset < input->bytes ? input->bytes - offset : 0;
        *out = (struct part){input->data + (left ? offset : 0), left < size ? left : size};
        return true;
    }
    return false;
}

/* The next JPEG from `*at` on. Coded pixels have no such bytes. */
static bool search_part(const struct picture_input *input, size_t *at, struct part *out)
{
    const uint8_t *found = memmem(input->data + *at, input->bytes - *at, "\xff\xd8\xff", 3);
    if (!found)
        return false;

    const size_t offset = (size_t)(found - input->data);
    *out = (struct part){found, input->bytes - offset};
    *at = offset + 3;
    return true;
}

/* Read the numbers of a part that may be the gain map. */
static enum gain_map_found read_map(struct jpeg *jpeg, double headroom, struct error *error)
{
    if (!jpeg_matches(jpeg->map.data, jpeg->map.bytes))
        return GAIN_MAP_NONE;

    const struct segments map = find_segments(jpeg->map);
    const enum gain_map_found found = gain_map_from_iso(map.iso.data, map.iso.bytes, &jpeg->gain,
                                                        error);
    if (found != GAIN_MAP_NONE)
        return found;
    return gain_map_from_xmp((const char *)map.xmp.data, map.xmp.bytes, headroom, &jpeg->gain,
                             error);
}

/* Find the gain map. */
static bool find_map(struct picture_input *input, struct error *error)
{
    enum { PARTS_MAX = 16 };
    struct jpeg *jpeg = input->state;
    const struct segments base = find_segments(jpeg->base);
    const double headroom = exif_apple_headroom(base.exif.data, base.exif.bytes);
    enum gain_map_found found = GAIN_MAP_NONE;
    jpeg->orientation = exif_orientation(base.exif.data, base.exif.bytes);

    for (uint32_t n = 1; n < PARTS_MAX && found == GAIN_MAP_NONE; n++) {
        if (!find_part(input, base.mpf, n, &jpeg->map))
            break;
        found = read_map(jpeg, headroom, error);
    }
    size_t at = base.end;
    for (uint32_t n = 1; n < PARTS_MAX && found == GAIN_MAP_NONE; n++) {
        if (!search_part(input, &at, &jpeg->map))
            break;
        found = read_map(jpeg, headroom, error);
    }
    if (found == GAIN_MAP_NONE)
        error_set(error, "the JPEG picture is SDR: it has no gain map");
    return found == GAIN_MAP_FOUND;
}

/* --- libjpeg ---------------------------------------------------------------------------------- */

/* One decoder, whose errors jump. */
struct decoder {
    struct jpeg_error_mgr manager; /* the first member */
    struct jpeg_decompress_struct jpeg;
    jmp_buf jump;
    struct error *error;
    struct gain_raster raster;
    uint8_t *pixels; /* the raster's */
    uint8_t *profile;
    unsigned profile_bytes;
};

static void on_error(j_common_ptr common)
{
    struct decoder *decoder = (struct decoder *)common->err;
    char text[JMSG_LENGTH_MAX];
    decoder->manager.format_message(common, text);
    error_set(decoder->error, "damaged or truncated JPEG: %.160s", text);
    longjmp(decoder->jump, 1);
}

/* Warnings are of damaged data, except of what lies between two segments. */
static void on_message(j_common_ptr common, int level)
{
    if (level < 0 && common->err->msg_code != JWRN_EXTRANEOUS_DATA)
        on_error(common);
}

/* Read the header of a part, and its pixels if `pixels` is set. */
static bool decode_steps(struct decoder *decoder, struct part part, bool pixels)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    struct gain_raster *raster = &decoder->raster;
    if (setjmp(decoder->jump))
        return false;

    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, part.data, part.bytes);
    jpeg_save_markers(jpeg, JPEG_APP0 + 2, 0xffff);
    jpeg_read_header(jpeg, TRUE);
    if (!picture_check_size(jpeg->image_width, jpeg->image_height, decoder->error))
        return false;
    if (jpeg->num_components != 1 && jpeg->num_components != 3)
        return error_set(decoder->error, "a JPEG of %d channels is not supported",
                         jpeg->num_components);

    *raster = (struct gain_raster){NULL, (size_t)jpeg->image_width * (unsigned)jpeg->num_components,
                                   jpeg->image_width, jpeg->image_height,
                                   (uint32_t)jpeg->num_components};
    if (!pixels)
        return true;
    jpeg_read_icc_profile(jpeg, &decoder->profile, &decoder->profile_bytes);
    jpeg->out_color_space = raster->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    raster->pixels = decoder->pixels = calloc(raster->height, raster->pitch_bytes);
    if (!decoder->pixels)
        return error_set(decoder->error, "out of memory");

    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < raster->height) {
        JSAMPROW row = decoder->pixels + jpeg->output_scanline * raster->pitch_bytes;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    return true;
}

static bool decode(struct decoder *decoder, struct part part, bool pixels, struct error *error)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->error = error;
    decoder->jpeg.err = jpeg_std_error(&decoder->manager);
    decoder->manager.error_exit = on_error;
    decoder->manager.emit_message = on_message;
    const bool good = decode_steps(decoder, part, pixels);
    jpeg_destroy_decompress(&decoder->jpeg);
    return good;
}

static void free_decoded(struct decoder *decoder)
{
    free(decoder->pixels);
    free(decoder->profile);
}

/* --- The picture ------------------------------------------------------------------------------ */

static void jpeg_close(struct picture_input *input)
{
    free(input->state);
    input->state = NULL;
}

static bool check_sizes(struct picture_input *input, struct error *error)
{
    enum { LARGER = 4 };
    const struct jpeg *jpeg = input->state;
    struct decoder base, map;
    if (!decode(&base, jpeg->base, false, error) || !decode(&map, jpeg->map, false, error))
        return false;

    const uint64_t pixels = (uint64_t)base.raster.width * base.raster.height;
    if ((uint64_t)map.raster.width * map.raster.height / LARGER > pixels)
        return error_set(error, "damaged JPEG: its gain map is much larger than the picture");
    return photo_size(input, base.raster.width, base.raster.height, jpeg->orientation, error);
}

static bool jpeg_open(struct picture_input *input, struct error *error)
{
    struct jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg)
        return error_set(error, "out of memory");
    input->state = jpeg;
    jpeg->base = (struct part){input->data, input->bytes};

    if (!find_map(input, error) || !check_sizes(input, error)) {
        jpeg_close(input);
        return false;
    }
    input->format.pixel = COX_PIXEL_RGBA_HALF;
    snprintf(input->format.text, sizeof input->format.text, "JPEG, gain map up to %.3g x white",
             jpeg->gain.headroom);
    return true;
}

/* The colours of a part: those of its profile, else sRGB. */
static bool find_colours(const struct decoder *decoder, struct icc_rgb *colours,
                         struct error *error)
{
    icc_srgb(colours);
    return !decoder->profile_bytes || icc_rgb(decoder->profile, decoder->profile_bytes, colours) ||
           error_set(error, "a JPEG whose ICC profile is not of an RGB matrix and curves");
}

static bool jpeg_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                      struct error *error)
{
    const struct jpeg *jpeg = input->state;
    struct decoder base = {.profile = NULL}, map = {.profile = NULL};
    struct icc_rgb colours, map_colours;
    const bool own = jpeg->gain.own_colours;

    const bool good = decode(&base, jpeg->base, true, error) &&
                      decode(&map, jpeg->map, true, error) &&
                      find_colours(&base, &colours, error) &&
                      (!own || find_colours(&map, &map_colours, error)) &&
                      gain_map_put(input, &jpeg->gain, &base.raster, &map.raster, &colours,
                                   own && map.profile ? &map_colours : NULL, jpeg->orientation,
                                   pixels, pitch_bytes, error);
    free_decoded(&base);
    free_decoded(&map);
    return good;
}

const struct picture_kind picture_kind_jpeg = {jpeg_matches, jpeg_open, jpeg_read, jpeg_close,
                                               NULL};

#endif
