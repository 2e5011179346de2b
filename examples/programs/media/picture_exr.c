/* OpenEXR pictures through OpenEXRCore, the C API.
 *
 * The library reads and decompresses chunks. Unpacking into the caller's rows is done here, since
 * it needs the chosen channels and the display window, and must not trust a hostile header.
 *
 * The picture shows the display window, as every viewer does: data outside of it is cut off, and
 * what the data window does not cover is black. If the two do not overlap, the data window is
 * shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool exr_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 4 && !memcmp(data, "\x76\x2f\x31\x01", 4);
}

#ifndef COX_HAVE_OPENEXR

const struct picture_kind picture_kind_exr = {
    .matches = exr_matches,
    .missing = "an OpenEXR picture, but this program was built without OpenEXR (Debian: "
               "libopenexr-dev)"};

#else

#include "common/least.h"
#include "exr_layer.h"
#include "half.h"
#include "primaries.h"

#include <openexr.h>

/* A larger chunk means a damaged header. */
static const uint64_t chunk_bytes_max = UINT64_C(1) << 30;

struct exr {
    exr_context_t context;
    struct exr_layer layer;
    bool tiled;
    exr_attr_box2i_t data; /* window of the stored pixels */
    int64_t left, top;     /* the shown window's upper left corner, in the file's coordinates */
    double weights[3];     /* of R, G, B in the luminance */
    bool convert;
    float matrix[9];
    struct error detail; /* the library's first message */
};

/* `expands`: the most bytes of samples from one stored byte.
 *   RLE    Two bytes hold a run of 128.
 *   ZIP    Two bits hold deflate's run of 258.
 *   PIZ    Nine bits hold a run of 255 halves.
 *   PXR24  Floats lose a byte before deflate.
 *   B44    14 bytes hold 4 x 4 halves.
 *   B44A   Three bytes hold 4 x 4 halves if all are equal. */
static const struct {
    const char *name;
    uint64_t expands;
} compressions[] = {{"no compression", 1}, {"RLE", 64}, {"ZIPS", 1032}, {"ZIP", 1032}, {"PIZ", 512},
                    {"PXR24", 1376},       {"B44", 3},  {"B44A", 11},   {"DWAA", 0},   {"DWAB", 0}};

/* Pixels that are shown but not stored are black. Up to SHOWN_FREE (an 8K frame) may be shown;
 * above that, SHOWN_FOR_EACH per stored pixel. */
enum { SHOWN_FREE = 1 << 25, SHOWN_FOR_EACH = 64 };

/* --- What the library asks for ---------------------------------------------------------------- */

static int64_t on_read(exr_const_context_t context, void *user, void *buffer, uint64_t bytes,
                       uint64_t offset, exr_stream_error_func_ptr_t fail)
{
    (void)context, (void)fail;
    const struct picture_input *input = user;
    if (offset >= input->bytes)
        return 0;
    bytes = least(bytes, input->bytes - offset);
    memcpy(buffer, input->data + offset, bytes);
    return (int64_t)bytes;
}

static int64_t on_size(exr_const_context_t context, void *user)
{
    (void)context;
    const struct picture_input *input = user;
    return (int64_t)input->bytes;
}

/* Zeroed: the library may fill a damaged chunk only in part, and the rest must not be old
 * memory. */
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
    if (message)
        snprintf(exr->detail.text, sizeof exr->detail.text, "%.180s", message);
    for (char *c = exr->detail.text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

static bool fail_because(const struct exr *exr, exr_result_t code, const char *what,
                         struct error *error)
{
    const char *detail = exr->detail.text;
    if (!*detail)
        detail = exr_get_default_error_message(code);
    return error_set(error, "%s: %.200s", what, detail);
}

/* --- Which channels --------------------------------------------------------------------------- */

static void describe(struct picture_input *input, const char *compression)
{
    const struct exr *exr = input->state;
    const struct exr_layer *layer = &exr->layer;
    const char *samples = input->format.pixel == COX_PIXEL_RGBA_HALF ? "half" : "float";
    const char *colours = "";
    char part[40] = "";
    if (layer->grey)
        colours = ", luminance only";
    if (layer->chroma)
        colours = ", luminance and chroma";
    if (layer->parts > 1)
        snprintf(part, sizeof part, ", part %d of %d", layer->part + 1, layer->parts);

    snprintf(input->format.text, sizeof input->format.text, "OpenEXR, %s%s%s, %s%s%s%.36s%s",
             samples, colours, exr->tiled ? ", tiles" : "", compression, part,
             *layer->name ? ", layer " : "", layer->name, exr->convert ? ", own primaries" : "");
}

/* Whether the samples of component `c` are where they can be read. Chroma may have half as many
 * columns and rows. */
static bool check_sampling(const struct exr *exr, int c, struct error *error)
{
    const exr_attr_chlist_entry_t *entry = &exr->layer.channels->entries[exr->layer.channel[c]];
    const int most = exr->layer.chroma && (c == 0 || c == 2) ? 2 : 1;
    if (entry->x_sampling < 1 || entry->x_sampling > most || entry->y_sampling < 1 ||
        entry->y_sampling > most)
        return error_set(
            error, "the OpenEXR picture's channel %.40s is subsampled, which is not supported",
            entry->name.str);
    if (exr->data.min.x % entry->x_sampling || exr->data.min.y % entry->y_sampling)
        return error_set(error,
                         "a damaged OpenEXR header: subsampled channels begin between pixels");
    return true;
}

static bool check_channels(struct picture_input *input, const char *compression,
                           struct error *error)
{
    struct exr *exr = input->state;
    struct exr_layer *layer = &exr->layer;
    bool all_half = true;
    if (input->alpha == PICTURE_ALPHA_BLACK)
        layer->channel[3] = -1;

    for (int c = 0; c < 4; c++) {
        if (layer->channel[c] < 0)
            continue;
        if (!check_sampling(exr, c, error))
            return false;
        all_half = all_half &&
                   layer->channels->entries[layer->channel[c]].pixel_type == EXR_PIXEL_HALF;
    }

    input->format.pixel = all_half ? COX_PIXEL_RGBA_HALF : COX_PIXEL_RGBA_FLOAT;
    input->format.alpha = layer->channel[3] >= 0;
    describe(input, compression);
    return true;
}

static size_t sample_bytes(bool half)
{
    return half ? 2 : 4;
}

/* --- Header ----------------------------------------------------------------------------------- */

static int64_t width_of(const exr_attr_box2i_t *window)
{
    return (int64_t)window->max.x - window->min.x + 1;
}

static int64_t height_of(const exr_attr_box2i_t *window)
{
    return (int64_t)window->max.y - window->min.y + 1;
}

static bool overlap(const exr_attr_box2i_t *a, const exr_attr_box2i_t *b)
{
    return a->min.x <= b->max.x && a->max.x >= b->min.x && a->min.y <= b->max.y &&
           a->max.y >= b->min.y;
}

static bool choose_windows(struct picture_input *input, struct error *error)
{
    struct exr *exr = input->state;
    const exr_attr_box2i_t *data = &exr->data, *shown = data;
    exr_attr_box2i_t display;

    if (exr_get_data_window(exr->context, exr->layer.part, &exr->data) != EXR_ERR_SUCCESS ||
        exr_get_display_window(exr->context, exr->layer.part, &display) != EXR_ERR_SUCCESS)
        return error_set(error, "a damaged OpenEXR header: no windows");
    if (!picture_check_size(width_of(data), height_of(data), error))
        return false;
    if (overlap(&display, data))
        shown = &display;
    const int64_t width = width_of(shown), height = height_of(shown);
    if (!picture_check_size(width, height, error))
        return false;

    const int64_t stored = width_of(data) * height_of(data);
    if (width * height > SHOWN_FREE && width * height / SHOWN_FOR_EACH > stored)
        return error_set(
            error, "the OpenEXR picture shows %lld x %lld pixels but stores almost none of them",
            (long long)width, (long long)height);

    exr->left = shown->min.x;
    exr->top = shown->min.y;
    input->format.width = (uint32_t)width;
    input->format.height = (uint32_t)height;
    return true;
}

/* Whether the file is long enough for its pixels, however well they are compressed: a short file
 * cannot ask for much memory. */
static bool check_length(const struct picture_input *input, exr_compression_t compression,
                         const exr_attr_chlist_t *channels, struct error *error)
{
    const struct exr *exr = input->state;
    const int64_t width = width_of(&exr->data), height = height_of(&exr->data);
    int32_t chunks = 0;
    uint64_t samples = 0; /* bytes */

    for (int c = 0; c < channels->num_channels; c++) {
        const exr_attr_chlist_entry_t *channel = &channels->entries[c];
        if (channel->x_sampling > 0 && channel->y_sampling > 0)
            samples += (uint64_t)(width / channel->x_sampling) *
                       (uint64_t)(height / channel->y_sampling) *
                       sample_bytes(channel->pixel_type == EXR_PIXEL_HALF);
    }

    if (exr_get_chunk_count(exr->context, exr->layer.part, &chunks) != EXR_ERR_SUCCESS ||
        chunks <= 0)
        return error_set(error, "a damaged OpenEXR header: no chunks");

    /* Each chunk has an entry of eight bytes in a table. */
    if ((uint64_t)chunks * 8 + samples / compressions[compression].expands > input->bytes)
        return error_set(error, "truncated: %llu bytes cannot hold %lld x %lld pixels (%s)",
                         (unsigned long long)input->bytes, (long long)width, (long long)height,
                         compressions[compression].name);
    return true;
}

/* The matrix to BT.709, and the weights of the luminance. */
static bool read_primaries(struct exr *exr, struct error *error)
{
    static const double bt709[] = {0.2126, 0.7152, 0.0722};
    const exr_attribute_t *attribute = NULL;
    memcpy(exr->weights, bt709, sizeof bt709);
    if (exr_get_attribute_by_name(exr->context, exr->layer.part, "chromaticities", &attribute) !=
            EXR_ERR_SUCCESS ||
        !attribute || attribute->type != EXR_ATTR_CHROMATICITIES)
        return true;

    exr_attr_chromaticities_t c;
    memcpy(&c, attribute->chromaticities, sizeof c);
    struct primaries primaries = {
        {c.red_x, c.red_y}, {c.green_x, c.green_y}, {c.blue_x, c.blue_y}, {c.white_x, c.white_y}};
    enum primaries_match match = primaries_to_bt709(&primaries, exr->matrix);
    if (match == PRIMARIES_BROKEN ||
        (match == PRIMARIES_CONVERT && !primaries_luminance(&primaries, exr->weights)))
        return error_set(error, "a damaged OpenEXR header: impossible chromaticities");
    exr->convert = match == PRIMARIES_CONVERT;
    return true;
}

static void read_aspect(struct picture_input *input)
{
    const struct exr *exr = input->state;
    float aspect = 1;
    if (exr_get_pixel_aspect_ratio(exr->context, exr->layer.part, &aspect) != EXR_ERR_SUCCESS ||
        !(aspect >= 0.01f && aspect <= 100.0f))
        return;

    input->format.aspect_width = (uint32_t)lround((double)aspect * 10000);
    input->format.aspect_height = 10000;
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

static exr_context_initializer_t setup_for(struct picture_input *input)
{
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
    return setup;
}

static bool check_compression(const struct exr *exr, exr_compression_t *compression,
                              struct error *error)
{
    int major, minor, patch;
    const char *extra;
    if (exr_get_compression(exr->context, exr->layer.part, compression) != EXR_ERR_SUCCESS ||
        (unsigned)*compression >= sizeof compressions / sizeof compressions[0])
        return error_set(error, "an OpenEXR picture with an unknown compression");
    if (*compression != EXR_COMPRESSION_DWAA && *compression != EXR_COMPRESSION_DWAB)
        return true;

    exr_get_library_version(&major, &minor, &patch, &extra);
    return error_set(error,
                     "an OpenEXR picture with %s compression, which OpenEXRCore %d.%d.%d cannot "
                     "read: save it with ZIP or PIZ",
                     compressions[*compression].name, major, minor, patch);
}

static bool check_chunks(const struct exr *exr, struct error *error)
{
    uint64_t bytes = 0;
    if (exr_get_chunk_unpacked_size(exr->context, exr->layer.part, &bytes) == EXR_ERR_SUCCESS &&
        bytes <= chunk_bytes_max)
        return true;
    return error_set(error, "an OpenEXR picture with chunks of %llu bytes is not supported",
                     (unsigned long long)bytes);
}

static bool read_header(struct picture_input *input, struct error *error)
{
    struct exr *exr = input->state;
    const exr_context_initializer_t setup = setup_for(input);
    exr_compression_t compression;
    exr_storage_t storage;

    const exr_result_t result = exr_start_read(&exr->context, "picture", &setup);
    if (result != EXR_ERR_SUCCESS)
        return fail_because(exr, result, "not a readable OpenEXR picture", error);
    if (!exr_layer_find(exr->context, input->layer, &exr->layer, error))
        return false;
    if (exr_get_storage(exr->context, exr->layer.part, &storage) != EXR_ERR_SUCCESS)
        return error_set(error, "a damaged OpenEXR header");
    exr->tiled = storage == EXR_STORAGE_TILED;

    if (!check_compression(exr, &compression, error) || !choose_windows(input, error) ||
        !read_primaries(exr, error))
        return false;
    read_aspect(input);
    return check_length(input, compression, exr->layer.channels, error) &&
           check_chunks(exr, error) && check_channels(input, compressions[compression].name, error);
}

static bool exr_open(struct picture_input *input, struct error *error)
{
    input->state = calloc(1, sizeof(struct exr));
    if (!input->state)
        return error_set(error, "out of memory");
    if (read_header(input, error))
        return true;

    exr_close(input);
    return false;
}

/* --- Pixels ----------------------------------------------------------------------------------- */

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

/* `count` samples of one channel into one component of every `apart`th pixel. */
static void unpack_row(const uint8_t *from, uint16_t type, int64_t count, int64_t apart,
                       uint8_t *to, enum cox_pixel_in pixel)
{
    const size_t step = sample_bytes(type == EXR_PIXEL_HALF);
    if (pixel == COX_PIXEL_RGBA_HALF) { /* the channel is half too: copy the bits */
        uint16_t *out = (uint16_t *)(void *)to;
        for (int64_t x = 0; x < count; x++, from += step)
            out[4 * apart * x] = (uint16_t)(from[0] | from[1] << 8);
    } else {
        float *out = (float *)(void *)to;
        for (int64_t x = 0; x < count; x++, from += step)
            out[4 * apart * x] = sample_to_float(from, type);
    }
}

/* Copy the shown part of a decoded chunk whose first pixel is start_x, start_y. The chunk holds,
 * for each of its lines, each channel's samples. */
static bool unpack_chunk(const struct picture_input *input, const exr_decode_pipeline_t *decode,
                         int64_t start_x, int64_t start_y, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    const exr_chunk_info_t *chunk = &decode->chunk;
    const size_t component_bytes = sample_bytes(input->format.pixel == COX_PIXEL_RGBA_HALF);
    const uint8_t *from = decode->unpacked_buffer;
    uint64_t left = chunk->unpacked_size;

    /* The columns of the chunk that are shown. */
    int64_t first = exr->left - start_x, end = first + (int64_t)input->format.width;

    if (first < 0)
        first = 0;
    if (end > chunk->width)
        end = chunk->width;

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
                if (exr->layer.channel[component] != c)
                    continue;
                const int64_t apart = info->x_samples;
                if (apart < 1 || info->width * apart < chunk->width)
                    return false;

                /* The first sample that is shown: the chunk begins with one. */
                const int64_t i = (first + apart - 1) / apart, column = i * apart;
                if (column >= end)
                    continue;
                uint8_t *to = pixels + (size_t)row * pitch_bytes +
                              (size_t)(start_x + column - exr->left) * 4 * component_bytes +
                              (size_t)component * component_bytes;
                unpack_row(from + i * info->bytes_per_element, info->data_type,
                           (end - column + apart - 1) / apart, apart, to, input->format.pixel);
            }
            from += bytes;
            left -= bytes;
        }
    }
    return true;
}

/* Make all pixels black: opaque if the file has no alpha, else transparent. */
static void clear(const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    const size_t component_bytes = sample_bytes(input->format.pixel == COX_PIXEL_RGBA_HALF);

    for (uint32_t y = 0; y < input->format.height; y++) {
        uint8_t *row = pixels + (size_t)y * pitch_bytes;
        memset(row, 0, input->format.width * 4 * component_bytes);
        if (exr->layer.channel[3] >= 0)
            continue;

        for (uint32_t x = 0; x < input->format.width; x++) {
            if (component_bytes == 2)
                ((uint16_t *)(void *)row)[4 * (size_t)x + 3] = HALF_ONE;
            else
                ((float *)(void *)row)[4 * (size_t)x + 3] = 1.0f;
        }
    }
}

/* --- Chroma ----------------------------------------------------------------------------------- */

/* A component of the decoded picture. */
static float get(const struct picture_input *input, const uint8_t *row, int64_t x, int component)
{
    if (input->format.pixel == COX_PIXEL_RGBA_HALF)
        return half_to_float(((const uint16_t *)(const void *)row)[4 * x + component]);
    return ((const float *)(const void *)row)[4 * x + component];
}

static void set(const struct picture_input *input, uint8_t *row, int64_t x, int component,
                float value)
{
    if (input->format.pixel == COX_PIXEL_RGBA_HALF)
        ((uint16_t *)(void *)row)[4 * x + component] = half_from_float(value);
    else
        ((float *)(void *)row)[4 * x + component] = value;
}

/* The first and the last column and row that are both stored and shown. */
struct area {
    int64_t left, right, top, bottom;
};

static struct area area_of(const struct picture_input *input)
{
    const struct exr *exr = input->state;
    struct area area = {exr->data.min.x - exr->left, exr->data.max.x - exr->left,
                        exr->data.min.y - exr->top, exr->data.max.y - exr->top};
    if (area.left < 0)
        area.left = 0;
    if (area.top < 0)
        area.top = 0;
    if (area.right >= input->format.width)
        area.right = (int64_t)input->format.width - 1;
    if (area.bottom >= input->format.height)
        area.bottom = (int64_t)input->format.height - 1;
    return area;
}

/* Fill in the component where it has no sample: the mean of its neighbours, in samples' rows along
 * them, then in the rows between down the columns. At an edge the only neighbour is repeated. */
static void fill_component(const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                           int component)
{
    const struct exr *exr = input->state;
    const exr_attr_chlist_entry_t *entry =
        &exr->layer.channels->entries[exr->layer.channel[component]];
    const struct area area = area_of(input);

    for (int64_t y = area.top; y <= area.bottom && entry->x_sampling == 2; y++) {
        uint8_t *row = pixels + (size_t)y * pitch_bytes;
        for (int64_t x = area.left; x <= area.right; x++) {
            if ((exr->left + x) % 2 == 0 || area.left == area.right)
                continue;
            const int64_t before = x > area.left ? x - 1 : x + 1;
            const int64_t after = x < area.right ? x + 1 : x - 1;
            set(input, row, x, component,
                (get(input, row, before, component) + get(input, row, after, component)) / 2);
        }
    }

    for (int64_t y = area.top; y <= area.bottom && entry->y_sampling == 2; y++) {
        if ((exr->top + y) % 2 == 0 || area.top == area.bottom)
            continue;
        uint8_t *row = pixels + (size_t)y * pitch_bytes;
        const uint8_t *above = y > area.top ? row - pitch_bytes : row + pitch_bytes;
        const uint8_t *below = y < area.bottom ? row + pitch_bytes : row - pitch_bytes;
        for (int64_t x = area.left; x <= area.right; x++)
            set(input, row, x, component,
                (get(input, above, x, component) + get(input, below, x, component)) / 2);
    }
}

/* R, G, B from RY = (R - Y) / Y, Y, and BY = (B - Y) / Y. */
static void join_chroma(const struct exr *exr, float c[4])
{
    const double *w = exr->weights;
    const double y = (double)c[1], red = ((double)c[0] + 1) * y, blue = ((double)c[2] + 1) * y;
    c[0] = (float)red;
    c[1] = (float)((y - w[0] * red - w[2] * blue) / w[1]);
    c[2] = (float)blue;
}

/* --- Colours ---------------------------------------------------------------------------------- */

/* Divide a pixel's colours by its alpha, if there is one, and convert them to BT.709. Colours with
 * an alpha of 0 stay: light without an obstacle. */
static void finish_pixel(const struct exr *exr, const float in[4], float out[3])
{
    const float *m = exr->matrix;
    float straight[3] = {in[0], in[1], in[2]};
    if (exr->layer.channel[3] >= 0 && in[3] > 0.0f && in[3] < 1.0f)
        for (int c = 0; c < 3; c++)
            straight[c] /= in[3];

    for (int c = 0; c < 3; c++) {
        out[c] = straight[c];
        if (exr->convert)
            out[c] = m[3 * c] * straight[0] + m[3 * c + 1] * straight[1] +
                     m[3 * c + 2] * straight[2];
    }
}

/* All pixels, in place. */
static void finish_pixels(const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes)
{
    const struct exr *exr = input->state;
    const bool half = input->format.pixel == COX_PIXEL_RGBA_HALF, chroma = exr->layer.chroma;

    if (!exr->convert && !chroma && exr->layer.channel[3] < 0)
        return;
    for (int c = 0; c <= 2 && chroma; c += 2)
        if (exr->layer.channel[c] >= 0)
            fill_component(input, pixels, pitch_bytes, c);

    for (uint32_t y = 0; y < input->format.height; y++) {
        uint16_t *halves = (uint16_t *)(void *)(pixels + (size_t)y * pitch_bytes);
        float *floats = (float *)(void *)halves;
        for (uint32_t x = 0; x < input->format.width; x++, halves += 4, floats += 4) {
            float in[4], out[3];
            for (int c = 0; c < 4; c++)
                in[c] = half ? half_to_float(halves[c]) : floats[c];
            if (chroma)
                join_chroma(exr, in);
            finish_pixel(exr, in, out);
            for (int c = 0; c < 3; c++) {
                if (half)
                    halves[c] = half_from_float(out[c]);
                else
                    floats[c] = out[c];
            }
        }
    }
}

/* A reading of all chunks under way. */
struct reading {
    struct picture_input *input;
    exr_decode_pipeline_t decode;
    bool started;
    uint8_t *pixels;
    size_t pitch_bytes;
};

/* Decode one chunk. The first call also chooses how the library reads and decompresses. */
static bool decode_chunk(struct reading *reading, const exr_chunk_info_t *chunk, int64_t start_x,
                         int64_t start_y, struct error *error)
{
    const struct exr *exr = reading->input->state;
    exr_decode_pipeline_t *decode = &reading->decode;
    exr_result_t result;

    if (chunk->unpacked_size > chunk_bytes_max || !chunk->packed_size ||
        chunk->packed_size > reading->input->bytes)
        return error_set(error, "damaged: an impossible chunk at line %lld", (long long)start_y);

    if (!reading->started) {
        result = exr_decoding_initialize(exr->context, exr->layer.part, chunk, decode);
        reading->started = result == EXR_ERR_SUCCESS;
        if (result == EXR_ERR_SUCCESS)
            result = exr_decoding_choose_default_routines(exr->context, exr->layer.part, decode);
        decode->unpack_and_convert_fn = NULL; /* see unpack_chunk */
    } else {
        result = exr_decoding_update(exr->context, exr->layer.part, chunk, decode);
    }

    if (result == EXR_ERR_SUCCESS)
        result = exr_decoding_run(exr->context, exr->layer.part, decode);
    if (result != EXR_ERR_SUCCESS)
        return fail_because(exr, result, "truncated or damaged", error);
    if (!decode->unpacked_buffer || !unpack_chunk(reading->input, decode, start_x, start_y,
                                                  reading->pixels, reading->pitch_bytes))
        return error_set(error, "damaged: a chunk at line %lld is shorter than its pixels",
                         (long long)start_y);
    return true;
}

static bool read_tiles(struct reading *reading, struct error *error)
{
    const struct exr *exr = reading->input->state;
    int32_t tile_width = 0, tile_height = 0, width = 0, height = 0;
    exr_chunk_info_t chunk;

    if (exr_get_tile_sizes(exr->context, exr->layer.part, 0, 0, &tile_width, &tile_height) !=
            EXR_ERR_SUCCESS ||
        exr_get_level_sizes(exr->context, exr->layer.part, 0, 0, &width, &height) !=
            EXR_ERR_SUCCESS ||
        tile_width <= 0 || tile_height <= 0)
        return error_set(error, "a damaged OpenEXR header: no tile sizes");

    for (int64_t y = 0; y * tile_height < height; y++) {
        for (int64_t x = 0; x * tile_width < width; x++) {
            const exr_result_t result = exr_read_tile_chunk_info(exr->context, exr->layer.part,
                                                                 (int)x, (int)y, 0, 0, &chunk);
            if (result != EXR_ERR_SUCCESS)
                return fail_because(exr, result, "truncated or damaged", error);
            if (!decode_chunk(reading, &chunk, exr->data.min.x + x * tile_width,
                              exr->data.min.y + y * tile_height, error))
                return false;
        }
    }
    return true;
}

static bool read_lines(struct reading *reading, struct error *error)
{
    const struct exr *exr = reading->input->state;
    exr_chunk_info_t chunk;
    int32_t lines = 0;

    exr_result_t result = exr_get_scanlines_per_chunk(exr->context, exr->layer.part, &lines);
    if (result != EXR_ERR_SUCCESS)
        return fail_because(exr, result, "truncated or damaged", error);
    if (lines <= 0) /* a scan line picture with the attributes of tiles */
        return error_set(error, "a damaged OpenEXR header: no lines in a chunk");

    for (int64_t y = exr->data.min.y; y <= exr->data.max.y; y += lines) {
        result = exr_read_scanline_chunk_info(exr->context, exr->layer.part, (int)y, &chunk);
        if (result != EXR_ERR_SUCCESS)
            return fail_because(exr, result, "truncated or damaged", error);
        if (!decode_chunk(reading, &chunk, exr->data.min.x, y, error))
            return false;
    }
    return true;
}

static bool exr_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    const struct exr *exr = input->state;
    struct reading reading = {.input = input,
                              .decode = EXR_DECODE_PIPELINE_INITIALIZER,
                              .pixels = pixels,
                              .pitch_bytes = pitch_bytes};
    bool good;

    clear(input, pixels, pitch_bytes);
    if (exr->tiled)
        good = read_tiles(&reading, error);
    else
        good = read_lines(&reading, error);

    if (reading.started)
        exr_decoding_destroy(exr->context, &reading.decode);
    if (good)
        finish_pixels(input, pixels, pitch_bytes);
    return good;
}

const struct picture_kind picture_kind_exr = {exr_matches, exr_open, exr_read, exr_close, NULL};

#endif
