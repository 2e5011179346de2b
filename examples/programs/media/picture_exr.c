/* OpenEXR pictures through OpenEXRCore, the C API.
 *
 * The library reads and decompresses chunks; the unpacking into the caller's rows is done here, because only here is
 * it known which channels matter, where the display window cuts, and what a hostile header must not reach.
 *
 * What is shown is the display window, as in every viewer: data outside of it is cut off, and what the data window does
 * not cover is black. If the two do not meet at all, the data window is shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool exr_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 4 && !memcmp(data, "\x76\x2f\x31\x01", 4);
}

#ifndef COX_HAVE_OPENEXR

static bool exr_open(struct picture_input *input, struct error *error)
{
    (void)input;
    return error_set(error,
                     "an OpenEXR picture, but this program was built without OpenEXR (Debian: "
                     "libopenexr-dev), so it reads Radiance .hdr and PFM only");
}

static bool exr_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    (void)input, (void)pixels, (void)pitch_bytes;
    return error_set(error, "this program was built without OpenEXR");
}

static void exr_close(struct picture_input *input)
{
    (void)input;
}

#else

#include "half.h"
#include "primaries.h"

#include <openexr.h>

/* A chunk larger than this is a header gone wrong, not a picture. */
static const uint64_t chunk_bytes_max = UINT64_C(1) << 30;

struct exr {
    exr_context_t context;
    int part;
    bool tiled;
    exr_attr_box2i_t data; /* window of the stored pixels */
    int64_t left, top;     /* upper left corner of what is shown, in the file's coordinates */
    int channel[4];        /* of R, G, B, A in the file's list; -1 = absent */
    bool grey;             /* R, G and B are one channel */
    bool convert;
    float matrix[9];
    struct error detail; /* the library's last words */
};

/* `expands`: the most bytes of samples that come of one stored byte. RLE: runs of 128 of two bytes. ZIP: deflate's runs
 * of 258 of two bits. PIZ: runs of 255 halves of nine bits. PXR24: floats lose a byte before they are deflated. B44: 4
 * x 4 halves of 14 bytes, B44A: of 3 bytes if all are the same. */
static const struct {
    const char *name;
    uint64_t expands;
} compressions[] = {{"no compression", 1}, {"RLE", 64}, {"ZIPS", 1032}, {"ZIP", 1032}, {"PIZ", 512},
                    {"PXR24", 1376},       {"B44", 3},  {"B44A", 11},   {"DWAA", 0},   {"DWAB", 0}};

/* Pixels that are shown without being stored are black. A frame of 8K may be, and beyond that so many for each that
 * is. */
enum { SHOWN_FREE = 1 << 25, SHOWN_FOR_EACH = 64 };

/* --- What the library asks for ---------------------------------------------------------------------------------- */

static int64_t on_read(exr_const_context_t context, void *user, void *buffer, uint64_t bytes,
                       uint64_t offset, exr_stream_error_func_ptr_t fail)
{
    (void)context, (void)fail;
    const struct picture_input *input = user;
    if (offset >= input->bytes)
        return 0;
    uint64_t left = input->bytes - offset;
    if (bytes > left)
        bytes = left;
    memcpy(buffer, input->data + offset, bytes);
    return (int64_t)bytes;
}

static int64_t on_size(exr_const_context_t context, void *user)
{
    (void)context;
    const struct picture_input *input = user;
    return (int64_t)input->bytes;
}

/* Zeroed: of a damaged chunk the library may fill only a part, and what it leaves must not be this process's past. */
static void *on_allocate(size_t bytes)
{
    return calloc(1, bytes);
}

static void on_error(exr_const_context_t context, exr_result_t code, const char *message)
{
    (void)code;
    void *user = NULL;
    if (!context || exr_get_user_data(context, &user) != EXR_ERR_SUCCESS || !user)
        return;
    struct exr *exr = ((struct picture_input *)user)->state;
    if (!exr || exr->detail.text[0]) /* the first message is nearest to the cause */
        return;
    snprintf(exr->detail.text, sizeof exr->detail.text, "%.180s", message ? message : "");
    for (char *c = exr->detail.text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

static bool fail_because(const struct exr *exr, exr_result_t code, const char *what,
                         struct error *error)
{
    const char *detail = exr->detail.text[0] ? exr->detail.text
                                             : exr_get_default_error_message(code);
    return error_set(error, "%s: %.200s", what, detail);
}

/* --- Which part, which channels ---------------------------------------------------------------------------------- */

static bool channels_of(const struct exr *exr, int part, const exr_attr_chlist_t **list)
{
    const exr_attribute_t *attribute = NULL;
    if (exr_get_attribute_by_name(exr->context, part, "channels", &attribute) != EXR_ERR_SUCCESS ||
        !attribute || attribute->type != EXR_ATTR_CHLIST || !attribute->chlist ||
        attribute->chlist->num_channels <= 0)
        return false;
    *list = attribute->chlist;
    return true;
}

/* The channel `layer`.`letter`, or `letter` alone for an empty layer; -1 if there is none. */
static int find_channel(const exr_attr_chlist_t *list, const char *layer, size_t layer_length,
                        char letter)
{
    for (int i = 0; i < list->num_channels; i++) {
        const exr_attr_string_t *name = &list->entries[i].name;
        if (name->length == (int32_t)layer_length + 1 && !strncmp(name->str, layer, layer_length) &&
            name->str[layer_length] == letter)
            return i;
    }
    return -1;
}

/* R, G, B (a missing one is black), or Y alone, in the unnamed layer or else in the first layer that has them. */
static bool find_colours(struct exr *exr, const exr_attr_chlist_t *list, const char **layer,
                         size_t *layer_length)
{
    for (int i = -1; i < list->num_channels; i++) {
        const char *name = i < 0 ? "" : list->entries[i].name.str;
        const char *dot = strrchr(name, '.');
        if (i >= 0 && !dot)
            continue;
        size_t length = dot ? (size_t)(dot - name) + 1 : 0;
        int y = find_channel(list, name, length, 'Y');
        for (int c = 0; c < 4; c++)
            exr->channel[c] = find_channel(list, name, length, "RGBA"[c]);
        bool colours = exr->channel[0] >= 0 || exr->channel[1] >= 0 || exr->channel[2] >= 0;
        if (!colours && y < 0)
            continue;
        exr->grey = !colours;
        if (exr->grey)
            exr->channel[0] = exr->channel[1] = exr->channel[2] = y;
        *layer = name;
        *layer_length = length ? length - 1 : 0;
        return true;
    }
    return false;
}

static void list_channels(const exr_attr_chlist_t *list, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < list->num_channels && used + 24 < bytes; i++) {
        int wrote = snprintf(text + used, bytes - used, "%s%.20s", i ? ", " : "",
                             list->entries[i].name.str);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static bool choose_channels(struct picture_input *input, const exr_attr_chlist_t *list,
                            const char *compression, int parts, struct error *error)
{
    struct exr *exr = input->state;
    const char *layer = "";
    size_t layer_length = 0;
    if (!find_colours(exr, list, &layer, &layer_length)) {
        char names[120];
        list_channels(list, names, sizeof names);
        return error_set(error, "the OpenEXR picture has no R, G, B or Y channel, only %s", names);
    }
    if (input->alpha == PICTURE_ALPHA_BLACK)
        exr->channel[3] = -1;
    bool chroma = false;
    for (int i = 0; exr->grey && i < list->num_channels; i++)
        chroma = chroma || !strcmp(list->entries[i].name.str, "RY") ||
                 !strcmp(list->entries[i].name.str, "BY");
    bool all_half = true;
    for (int c = 0; c < 4; c++) {
        if (exr->channel[c] < 0)
            continue;
        const exr_attr_chlist_entry_t *entry = &list->entries[exr->channel[c]];
        if (entry->x_sampling != 1 || entry->y_sampling != 1)
            return error_set(
                error, "the OpenEXR picture's channel %.40s is subsampled, which is not supported",
                entry->name.str);
        all_half = all_half && entry->pixel_type == EXR_PIXEL_HALF;
    }
    if (chroma)
        return error_set(
            error, "the OpenEXR picture is stored as luminance and chroma, which is not supported");

    input->format.pixel = all_half ? COX_PIXEL_RGBA_HALF : COX_PIXEL_RGBA_FLOAT;
    input->format.alpha = exr->channel[3] >= 0;
    snprintf(input->format.text, sizeof input->format.text, "OpenEXR, %s%s%s, %s%s%s%.*s%s",
             all_half ? "half" : "float", exr->grey ? ", luminance only" : "",
             exr->tiled ? ", tiles" : "", compression, parts > 1 ? ", first of several parts" : "",
             layer_length ? ", layer " : "", (int)(layer_length < 24 ? layer_length : 24), layer,
             exr->convert ? ", own primaries" : "");
    return true;
}

/* --- Header ------------------------------------------------------------------------------------------------------- */

/* The first part that is a flat picture. */
static bool choose_part(struct exr *exr, int *parts, struct error *error)
{
    if (exr_get_count(exr->context, parts) != EXR_ERR_SUCCESS || *parts < 1)
        return error_set(error, "a damaged OpenEXR header: no parts");
    for (int part = 0; part < *parts; part++) {
        exr_storage_t storage;
        if (exr_get_storage(exr->context, part, &storage) != EXR_ERR_SUCCESS)
            return error_set(error, "a damaged OpenEXR header");
        if (storage == EXR_STORAGE_SCANLINE || storage == EXR_STORAGE_TILED) {
            exr->part = part;
            exr->tiled = storage == EXR_STORAGE_TILED;
            return true;
        }
    }
    return error_set(error, "a deep OpenEXR picture, which is not supported: flatten it first");
}

static bool choose_windows(struct picture_input *input, struct error *error)
{
    struct exr *exr = input->state;
    exr_attr_box2i_t display;
    if (exr_get_data_window(exr->context, exr->part, &exr->data) != EXR_ERR_SUCCESS ||
        exr_get_display_window(exr->context, exr->part, &display) != EXR_ERR_SUCCESS)
        return error_set(error, "a damaged OpenEXR header: no windows");
    const exr_attr_box2i_t *data = &exr->data, *shown = &display;
    if (!picture_check_size((int64_t)data->max.x - data->min.x + 1,
                            (int64_t)data->max.y - data->min.y + 1, error))
        return false;
    if (display.min.x > data->max.x || display.max.x < data->min.x || display.min.y > data->max.y ||
        display.max.y < data->min.y)
        shown = data;
    int64_t width = (int64_t)shown->max.x - shown->min.x + 1,
            height = (int64_t)shown->max.y - shown->min.y + 1;
    if (!picture_check_size(width, height, error))
        return false;
    int64_t stored = ((int64_t)data->max.x - data->min.x + 1) *
                     ((int64_t)data->max.y - data->min.y + 1);
    if (width * height > SHOWN_FREE && width * height / SHOWN_FOR_EACH > stored)
        return error_set(
            error, "the OpenEXR picture shows %lld x %lld pixels of which it stores next to none",
            (long long)width, (long long)height);
    exr->left = shown->min.x;
    exr->top = shown->min.y;
    input->format.width = (uint32_t)width;
    input->format.height = (uint32_t)height;
    return true;
}

/* Whether the file is long enough for its pixels, however well they are compressed: a short one cannot ask for much
 * memory. */
static bool check_length(const struct picture_input *input, exr_compression_t compression,
                         const exr_attr_chlist_t *channels, struct error *error)
{
    const struct exr *exr = input->state;
    int64_t width = (int64_t)exr->data.max.x - exr->data.min.x + 1;
    int64_t height = (int64_t)exr->data.max.y - exr->data.min.y + 1;
    int32_t chunks = 0;
    uint64_t samples = 0; /* bytes */
    for (int c = 0; c < channels->num_channels; c++) {
        const exr_attr_chlist_entry_t *channel = &channels->entries[c];
        if (channel->x_sampling > 0 && channel->y_sampling > 0)
            samples += (uint64_t)(width / channel->x_sampling) *
                       (uint64_t)(height / channel->y_sampling) *
                       (channel->pixel_type == EXR_PIXEL_HALF ? 2 : 4);
    }
    if (exr_get_chunk_count(exr->context, exr->part, &chunks) != EXR_ERR_SUCCESS || chunks <= 0)
        return error_set(error, "a damaged OpenEXR header: no chunks");
    /* Each chunk has its place in a table. */
    if ((uint64_t)chunks * 8 + samples / compressions[compression].expands > input->bytes)
        return error_set(error, "truncated: %llu bytes cannot hold %lld x %lld pixels (%s)",
                         (unsigned long long)input->bytes, (long long)width, (long long)height,
                         compressions[compression].name);
    return true;
}

static bool read_primaries(struct exr *exr, struct error *error)
{
    const exr_attribute_t *attribute = NULL;
    if (exr_get_attribute_by_name(exr->context, exr->part, "chromaticities", &attribute) !=
            EXR_ERR_SUCCESS ||
        !attribute || attribute->type != EXR_ATTR_CHROMATICITIES)
        return true;
    exr_attr_chromaticities_t c;
    memcpy(&c, attribute->chromaticities, sizeof c);
    struct primaries primaries = {
        {c.red_x, c.red_y}, {c.green_x, c.green_y}, {c.blue_x, c.blue_y}, {c.white_x, c.white_y}};
    enum primaries_match match = primaries_to_bt709(&primaries, exr->matrix);
    if (match == PRIMARIES_BROKEN)
        return error_set(error, "a damaged OpenEXR header: impossible chromaticities");
    exr->convert = match == PRIMARIES_CONVERT;
    return true;
}

static void exr_close(struct picture_input *input)
{
    struct exr *exr = input->state;
    if (!exr)
        return;
    if (exr->context)
        exr_finish(&exr->context);
    free(exr);
    input->state = NULL;
}

static bool exr_open(struct picture_input *input, struct error *error)
{
    struct exr *exr = calloc(1, sizeof *exr);
    if (!exr)
        return error_set(error, "out of memory");
    input->state = exr;

    exr_context_initializer_t setup = EXR_DEFAULT_CONTEXT_INITIALIZER;
    setup.error_handler_fn = on_error;
    setup.user_data = input;
    setup.alloc_fn = on_allocate;
    setup.free_fn = free;
    setup.read_fn = on_read;
    setup.size_fn = on_size;
    setup.max_image_width = PICTURE_SIDE_MAX;
    setup.max_image_height = PICTURE_SIDE_MAX;
    setup.max_tile_width = PICTURE_SIDE_MAX;
    setup.max_tile_height = PICTURE_SIDE_MAX;
    setup.flags = EXR_CONTEXT_FLAG_DISABLE_CHUNK_RECONSTRUCTION;

    int parts = 0;
    exr_compression_t compression;
    const exr_attr_chlist_t *channels = NULL;
    uint64_t chunk_bytes = 0;
    exr_result_t result = exr_start_read(&exr->context, "picture", &setup);
    if (result != EXR_ERR_SUCCESS) {
        fail_because(exr, result, "not a readable OpenEXR picture", error);
        goto fail;
    }
    if (!choose_part(exr, &parts, error))
        goto fail;
    if (exr_get_compression(exr->context, exr->part, &compression) != EXR_ERR_SUCCESS ||
        (unsigned)compression >= sizeof compressions / sizeof compressions[0]) {
        error_set(error, "an OpenEXR picture with an unknown compression");
        goto fail;
    }
    if (compression == EXR_COMPRESSION_DWAA || compression == EXR_COMPRESSION_DWAB) {
        int major, minor, patch;
        const char *extra;
        exr_get_library_version(&major, &minor, &patch, &extra);
        error_set(
            error,
            "an OpenEXR picture with %s compression, which OpenEXRCore %d.%d.%d cannot read: save it with "
            "ZIP or PIZ",
            compressions[compression].name, major, minor, patch);
        goto fail;
    }
    if (!choose_windows(input, error) || !read_primaries(exr, error))
        goto fail;
    if (!channels_of(exr, exr->part, &channels)) {
        error_set(error, "a damaged OpenEXR header: no channels");
        goto fail;
    }
    if (!check_length(input, compression, channels, error))
        goto fail;
    if (exr_get_chunk_unpacked_size(exr->context, exr->part, &chunk_bytes) != EXR_ERR_SUCCESS ||
        chunk_bytes > chunk_bytes_max) {
        error_set(error, "an OpenEXR picture with chunks of %llu bytes is not supported",
                  (unsigned long long)chunk_bytes);
        goto fail;
    }
    if (!choose_channels(input, channels, compressions[compression].name, parts, error))
        goto fail;
    return true;
fail:
    exr_close(input);
    return false;
}

/* --- Pixels ------------------------------------------------------------------------------------------------------- */

static float sample_to_float(const uint8_t *sample, uint16_t type)
{
    uint32_t bits = (uint32_t)sample[0] | (uint32_t)sample[1] << 8;
    if (type == EXR_PIXEL_HALF)
        return half_to_float((uint16_t)bits);
    bits |= (uint32_t)sample[2] << 16 | (uint32_t)sample[3] << 24;
    if (type == EXR_PIXEL_UINT)
        return (float)bits;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One row of one channel into every fourth component of `to`. */
static void unpack_row(const uint8_t *from, uint16_t type, int64_t count, uint8_t *to,
                       enum cox_pixel_in pixel)
{
    size_t step = type == EXR_PIXEL_HALF ? 2 : 4;
    if (pixel ==
        COX_PIXEL_RGBA_HALF) { /* then the channel is half too: the bits pass as they are */
        uint16_t *out = (uint16_t *)(void *)to;
        for (int64_t x = 0; x < count; x++, from += step)
            out[4 * x] = (uint16_t)(from[0] | from[1] << 8);
    } else {
        float *out = (float *)(void *)to;
        for (int64_t x = 0; x < count; x++, from += step)
            out[4 * x] = sample_to_float(from, type);
    }
}

/* Copies what is shown of a decoded chunk whose first pixel is start_x, start_y. The chunk holds, for each of its
 * lines, each channel's samples. */
static bool unpack_chunk(const struct picture_input *input, const exr_decode_pipeline_t *decode,
                         int64_t start_x, int64_t start_y, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    const exr_chunk_info_t *chunk = &decode->chunk;
    size_t component_bytes = input->format.pixel == COX_PIXEL_RGBA_HALF ? 2 : 4;
    const uint8_t *from = decode->unpacked_buffer;
    uint64_t left = chunk->unpacked_size;
    /* The part of the chunk's columns that is shown. */
    int64_t first = exr->left > start_x ? exr->left - start_x : 0;
    int64_t shown_end = exr->left + (int64_t)input->format.width - start_x;
    int64_t end = chunk->width < shown_end ? chunk->width : shown_end;

    for (int64_t y = start_y; y < start_y + chunk->height; y++) {
        int64_t row = y - exr->top;
        bool shown = row >= 0 && row < (int64_t)input->format.height && first < end;
        for (int c = 0; c < decode->channel_count; c++) {
            const exr_coding_channel_info_t *info = &decode->channels[c];
            if (info->y_samples > 1 && y % info->y_samples)
                continue;
            uint64_t bytes = (uint64_t)info->width * (uint64_t)info->bytes_per_element;
            if (info->width < 0 || bytes > left)
                return false;
            for (int component = 0; shown && component < 4; component++) {
                if (exr->channel[component] != c)
                    continue;
                if (info->width < chunk->width)
                    return false;
                uint8_t *to = pixels + (size_t)row * pitch_bytes +
                              (size_t)(start_x + first - exr->left) * 4 * component_bytes +
                              (size_t)component * component_bytes;
                unpack_row(from + first * info->bytes_per_element, info->data_type, end - first, to,
                           input->format.pixel);
            }
            from += bytes;
            left -= bytes;
        }
    }
    return true;
}

/* Black; opaque where the file has no alpha, transparent where it has one but stores no pixel. */
static void clear(const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    for (uint32_t y = 0; y < input->format.height; y++) {
        uint8_t *row = pixels + (size_t)y * pitch_bytes;
        size_t component_bytes = input->format.pixel == COX_PIXEL_RGBA_HALF ? 2 : 4;
        memset(row, 0, input->format.width * 4 * component_bytes);
        if (exr->channel[3] >= 0)
            continue;
        for (uint32_t x = 0; x < input->format.width; x++) {
            if (component_bytes == 2)
                ((uint16_t *)(void *)row)[4 * (size_t)x + 3] = HALF_ONE;
            else
                ((float *)(void *)row)[4 * (size_t)x + 3] = 1.0f;
        }
    }
}

/* Straight alpha and BT.709 primaries, in place. Where alpha is 0 colours stay: light without an obstacle. */
static void finish_pixels(const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    if (!exr->convert && exr->channel[3] < 0)
        return;
    bool half = input->format.pixel == COX_PIXEL_RGBA_HALF;
    const float *m = exr->matrix;
    for (uint32_t y = 0; y < input->format.height; y++) {
        uint16_t *halves = (uint16_t *)(void *)(pixels + (size_t)y * pitch_bytes);
        float *floats = (float *)(void *)halves;
        for (uint32_t x = 0; x < input->format.width; x++, halves += 4, floats += 4) {
            float in[4], out[3];
            for (int c = 0; c < 4; c++)
                in[c] = half ? half_to_float(halves[c]) : floats[c];
            if (exr->channel[3] >= 0 && in[3] > 0.0f && in[3] < 1.0f)
                for (int c = 0; c < 3; c++)
                    in[c] /= in[3];
            for (int c = 0; c < 3; c++)
                out[c] = exr->convert
                             ? m[3 * c] * in[0] + m[3 * c + 1] * in[1] + m[3 * c + 2] * in[2]
                             : in[c];
            for (int c = 0; c < 3; c++) {
                if (half)
                    halves[c] = half_from_float(out[c]);
                else
                    floats[c] = out[c];
            }
        }
    }
}

/* Decode one chunk. The first call also chooses how the library reads and decompresses. */
static bool decode_chunk(struct picture_input *input, const exr_chunk_info_t *chunk,
                         int64_t start_x, int64_t start_y, exr_decode_pipeline_t *decode,
                         bool *started, uint8_t *pixels, size_t pitch_bytes, struct error *error)
{
    struct exr *exr = input->state;
    exr_result_t result;
    if (chunk->unpacked_size > chunk_bytes_max || !chunk->packed_size ||
        chunk->packed_size > input->bytes)
        return error_set(error, "damaged: an impossible chunk at line %lld", (long long)start_y);
    if (!*started) {
        result = exr_decoding_initialize(exr->context, exr->part, chunk, decode);
        *started = result == EXR_ERR_SUCCESS;
        if (result == EXR_ERR_SUCCESS)
            result = exr_decoding_choose_default_routines(exr->context, exr->part, decode);
        decode->unpack_and_convert_fn = NULL; /* see unpack_chunk */
    } else {
        result = exr_decoding_update(exr->context, exr->part, chunk, decode);
    }
    if (result == EXR_ERR_SUCCESS)
        result = exr_decoding_run(exr->context, exr->part, decode);
    if (result != EXR_ERR_SUCCESS)
        return fail_because(exr, result, "truncated or damaged", error);
    if (!decode->unpacked_buffer ||
        !unpack_chunk(input, decode, start_x, start_y, pixels, pitch_bytes))
        return error_set(error, "damaged: a chunk at line %lld is shorter than its pixels",
                         (long long)start_y);
    return true;
}

static bool exr_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    struct exr *exr = input->state;
    exr_decode_pipeline_t decode = EXR_DECODE_PIPELINE_INITIALIZER;
    exr_chunk_info_t chunk;
    exr_result_t result = EXR_ERR_SUCCESS;
    bool started = false, good = true;
    clear(input, pixels, pitch_bytes);

    if (exr->tiled) {
        int32_t tile_width = 0, tile_height = 0, width = 0, height = 0;
        if (exr_get_tile_sizes(exr->context, exr->part, 0, 0, &tile_width, &tile_height) !=
                EXR_ERR_SUCCESS ||
            exr_get_level_sizes(exr->context, exr->part, 0, 0, &width, &height) !=
                EXR_ERR_SUCCESS ||
            tile_width <= 0 || tile_height <= 0)
            return error_set(error, "a damaged OpenEXR header: no tile sizes");
        for (int64_t y = 0; good && y * tile_height < height; y++) {
            for (int64_t x = 0; good && x * tile_width < width; x++) {
                result = exr_read_tile_chunk_info(exr->context, exr->part, (int)x, (int)y, 0, 0,
                                                  &chunk);
                good = result == EXR_ERR_SUCCESS &&
                       decode_chunk(input, &chunk, exr->data.min.x + x * tile_width,
                                    exr->data.min.y + y * tile_height, &decode, &started, pixels,
                                    pitch_bytes, error);
            }
        }
    } else {
        int32_t lines = 0;
        result = exr_get_scanlines_per_chunk(exr->context, exr->part, &lines);
        good = result == EXR_ERR_SUCCESS;
        if (good &&
            lines <= 0) /* so it is of a scan line picture that has the attributes of tiles */
            return error_set(error, "a damaged OpenEXR header: no lines in a chunk");
        for (int64_t y = exr->data.min.y; good && y <= exr->data.max.y; y += lines) {
            result = exr_read_scanline_chunk_info(exr->context, exr->part, (int)y, &chunk);
            good = result == EXR_ERR_SUCCESS &&
                   decode_chunk(input, &chunk, exr->data.min.x, y, &decode, &started, pixels,
                                pitch_bytes, error);
        }
    }
    if (result != EXR_ERR_SUCCESS)
        fail_because(exr, result, "truncated or damaged", error);
    if (started)
        exr_decoding_destroy(exr->context, &decode);
    if (good)
        finish_pixels(input, pixels, pitch_bytes);
    return good;
}

#endif

const struct picture_kind picture_kind_exr = {exr_matches, exr_open, exr_read, exr_close};
