/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "ref_video_case.h"
#include "random_splits.h"
#include "ref_tonemap.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Text --------------------------------------------------------------------------------------------------------- */

static const uint32_t sub_names[] = {[REF_420] = 420, [REF_422] = 422, [REF_444] = 444};

struct cox_video_format ref_format_of(enum cox_video_layout layout, uint32_t depth, int sub,
                                      enum cox_chroma_location site, enum cox_color_range range)
{
    const bool packed = layout == COX_VIDEO_RGBA || layout == COX_VIDEO_BGRA;
    return (struct cox_video_format){.layout = layout,
                                     .depth = depth,
                                     .msb_aligned = layout == COX_VIDEO_SEMI_PLANAR && depth > 8 && depth < 16,
                                     .chroma_x_log2 = sub != REF_444,
                                     .chroma_y_log2 = sub == REF_420,
                                     .chroma_location = site,
                                     .range = packed ? COX_RANGE_FULL : range};
}

static bool read_layout(const char *word, struct cox_video_format *format)
{
    uint32_t sub = 0, depth = 8;
    enum cox_video_layout layout = COX_VIDEO_PLANAR;
    if (sscanf(word, "yuv%3up%2u", &sub, &depth) == 2) {
        layout = COX_VIDEO_PLANAR;
    } else if (!strcmp(word, "nv12") || !strcmp(word, "nv16")) {
        layout = COX_VIDEO_SEMI_PLANAR;
        sub = word[3] == '2' ? 420 : 422;
    } else if (sscanf(word, "p%1u%2u", &sub, &depth) == 2) {
        layout = COX_VIDEO_SEMI_PLANAR;
        sub = sub == 0 ? 420 : 422;
    } else if (!strcmp(word, "v210")) {
        layout = COX_VIDEO_V210;
        sub = 422;
        depth = 10;
    } else if (sscanf(word, "rgba%2u", &depth) == 1) {
        layout = COX_VIDEO_RGBA;
    } else if (sscanf(word, "bgra%2u", &depth) == 1) {
        layout = COX_VIDEO_BGRA;
    } else if (sscanf(word, "gbrp%2u", &depth) == 1) {
        layout = COX_VIDEO_GBR;
    } else {
        return false;
    }
    *format = ref_format_of(layout, depth,
                            sub == 420   ? REF_420
                            : sub == 422 ? REF_422
                                         : REF_444,
                            COX_CHROMA_LEFT, COX_RANGE_LIMITED);
    return true;
}

static bool read_word(const char *word, struct cox_video_shape *shape, bool out)
{
    struct cox_video_format *format = out ? &shape->out : &shape->in;
    const struct {
        const char *word;
        void *field;
        int value;
    } words[] = {
        {"centre", &format->chroma_location, COX_CHROMA_CENTER},
        {"topleft", &format->chroma_location, COX_CHROMA_TOP_LEFT},
        {"full", &format->range, COX_RANGE_FULL},
        {"hlg", &shape->transfer, COX_TRANSFER_HLG},
        {"light", &shape->transfer, COX_TRANSFER_LINEAR},
        {"sdr", &shape->transfer, COX_TRANSFER_SDR},
        {"bt709", &shape->primaries, COX_PRIMARIES_BT709},
        {"p3", &shape->primaries, COX_PRIMARIES_P3_D65},
        {"dci", &shape->primaries, COX_PRIMARIES_P3_DCI},
        {"525", &shape->primaries, COX_PRIMARIES_BT601_525},
        {"625", &shape->primaries, COX_PRIMARIES_BT601_625},
        {"matrix2020", &shape->matrix, COX_MATRIX_BT2020},
        {"matrix709", &shape->matrix, COX_MATRIX_BT709},
        {"matrix601", &shape->matrix, COX_MATRIX_BT601},
        {"dither", &shape->dither, COX_DITHER_ORDERED},
        {"compress", &shape->gamut, COX_GAMUT_COMPRESS},
        {"hue", &shape->gamut, COX_GAMUT_HUE},
        {"half", &shape->scale, COX_SCALE_HALF},
        {"srgb", &shape->encoding, COX_ENCODING_SRGB},
        {"pq", &shape->encoding, COX_ENCODING_PQ},
        {"wide", &shape->out_primaries, COX_OUT_BT2020},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i].word)) {
            memcpy(words[i].field, &words[i].value, sizeof(int)); /* an enumeration */
            return true;
        }
    uint32_t width, height;
    if (sscanf(word, "%ux%u", &width, &height) == 2) {
        *(out ? &shape->out_width : &shape->width) = width;
        *(out ? &shape->out_height : &shape->height) = height;
        shape->scale = out ? COX_SCALE_FILTER : COX_SCALE_NONE;
        return true;
    }
    if (!strcmp(word, "fade"))
        return shape->desaturate_highlights = true;
    if (!strcmp(word, "reshape"))
        return shape->reshape = true;
    if (sscanf(word, "lut%u", &shape->lut_points) == 1)
        return true;
    return read_layout(word, format) || cox_operator_find(word, &shape->op) == COX_OK;
}

struct cox_video_shape ref_shape(const char *text)
{
    struct cox_video_shape shape = {0};
    char copy[256], *rest = copy;
    bool out = false;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (!strcmp(word, "to"))
            out = true;
        else if (!read_word(word, &shape, out))
            bits_need(COX_E_INVALID, word);
    }
    return shape;
}

struct cox_video_format ref_format(const char *text)
{
    return ref_shape(text).in;
}

/* Returns the length. */
static int print_format(char *to, size_t room, const struct cox_video_format *format)
{
    static const char *const sites[] = {"", " centre", " topleft"}, *const rgb[] = {"rgba", "bgra", "gbrp"};
    const uint32_t x = format->chroma_x_log2, sub = sub_names[x + format->chroma_y_log2 == 2 ? REF_420 : 2 - x];
    char name[32];
    if (format->layout == COX_VIDEO_V210)
        snprintf(name, sizeof name, "v210");
    else if (format->layout == COX_VIDEO_SEMI_PLANAR && format->depth == 8)
        snprintf(name, sizeof name, "nv1%u", sub == 420 ? 2 : 6);
    else if (format->layout == COX_VIDEO_SEMI_PLANAR)
        snprintf(name, sizeof name, "p%u%u", sub == 420 ? 0 : 2, format->depth);
    else if (format->layout == COX_VIDEO_PLANAR)
        snprintf(name, sizeof name, "yuv%up%u", sub, format->depth);
    else
        snprintf(name, sizeof name, "%s%u", rgb[format->layout - COX_VIDEO_RGBA], format->depth);
    return snprintf(to, room, "%s%s%s", name, sites[format->chroma_location], format->range ? " full" : "");
}

const char *ref_shape_text(const struct cox_video_shape *s)
{
    static char texts[4][256];
    static unsigned turn;
    static const char *const transfers[] = {"", " hlg", " light", " sdr"};
    static const char *const primaries[] = {"", " bt709", " p3", " dci", " 525", " 625"};
    static const char *const encodings[] = {"", " srgb", " pq"}, *const gamuts[] = {"", " compress", " hue"};
    static const char *const matrices[] = {"", " matrix2020", " matrix709", " matrix601"};
    char *text = texts[turn++ % 4], size[32] = "";
    const size_t room = sizeof texts[0];
    if (s->scale == COX_SCALE_FILTER)
        snprintf(size, sizeof size, "%ux%u ", s->out_width, s->out_height);
    int at = snprintf(text, room, "%ux%u ", s->width, s->height);
    at += print_format(text + at, room - (size_t)at, &s->in);
    at += snprintf(text + at, room - (size_t)at, " to %s", size);
    at += print_format(text + at, room - (size_t)at, &s->out);
    snprintf(text + at, room - (size_t)at, " %s%s%s%s%s%s%s%s%s%s%s", cox_operator_name(s->op), transfers[s->transfer],
             primaries[s->primaries], matrices[s->matrix], s->desaturate_highlights ? " fade" : "",
             s->dither ? " dither" : "", gamuts[s->gamut], s->scale == COX_SCALE_HALF ? " half" : "",
             encodings[s->encoding], s->out_primaries ? " wide" : "", s->reshape ? " reshape" : "");
    if (s->lut_points)
        snprintf(text + strlen(text), room - strlen(text), " lut%u", s->lut_points);
    return text;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static size_t pitch_of(cox_runtime *runtime, const struct cox_video_format *format, bool in, size_t row_bytes,
                       size_t words)
{
    const size_t unit = in && format->layout == COX_VIDEO_V210 ? 16 : 4;
    const size_t pitch = words == REF_ALIGNED ? cox_runtime_pitch_bytes(runtime, row_bytes)
                                              : ((row_bytes + 3) / 4 + words) * 4;
    return (pitch + unit - 1) / unit * unit;
}

cox_status ref_film_session(struct ref_film *film, enum ref_pipeline pipeline, struct cox__session_spec *session)
{
    *session = (struct cox__session_spec){0};
    return pipeline == REF_ANALYSIS
               ? cox__video_analysis(&film->shape, &film->storage, session)
               : cox__video_mapping(&film->shape, pipeline == REF_MAPPING_AND_ANALYSIS, &film->storage, session);
}

static void add_plane(struct ref_film *film, cox_runtime *runtime, const struct cox_video_plane *plane, size_t pitch,
                      bool written)
{
    bits_frame_add(&film->frame, runtime,
                   (struct bits_plane){
                       .row_bytes = plane->row_bytes, .pitch_bytes = pitch, .rows = plane->rows, .written = written});
}

static void add_lut(struct ref_film *film, cox_runtime *runtime)
{
    const struct cox_video_lut *lut = ref_lut_of(film->shape.lut_points);
    const struct cox_video_plane table = {.row_bytes = cox_video_lut_bytes(lut->points), .rows = 1};
    add_plane(film, runtime, &table, table.row_bytes, false);
    bits_need(cox_video_lut_table(lut, film->frame.planes[film->in_count].data), "a look-up table");
}

void ref_film_open(struct ref_film *film, cox_runtime *runtime, const struct cox_video_shape *shape,
                   enum ref_pipeline pipeline, size_t words, const struct ref_film *like)
{
    struct cox_video_plane in[COX_VIDEO_PLANES_MAX], out[COX_VIDEO_PLANES_MAX];
    memset(film, 0, sizeof *film);
    film->shape = *shape;
    ref_video_size(shape, &film->width, &film->height);
    film->in_count = cox_video_planes(&shape->in, shape->width, shape->height, in);
    film->out_count = cox_video_planes(&shape->out, film->width, film->height, out);
    for (uint32_t p = 0; p < film->in_count; p++)
        film->shape.in_pitch_bytes[p] = pitch_of(runtime, &shape->in, true, in[p].row_bytes, words);
    for (uint32_t p = 0; p < film->out_count; p++)
        film->shape.out_pitch_bytes[p] = pitch_of(runtime, &shape->out, false, out[p].row_bytes, words);
    if (!film->in_count || !film->out_count || ref_film_session(film, pipeline, &film->session))
        bits_need(COX_E_INVALID, ref_shape_text(shape));

    if (like)
        bits_frame_borrow(&film->frame, &like->frame);
    for (uint32_t p = 0; p < film->in_count && !like; p++) {
        add_plane(film, runtime, &in[p], film->shape.in_pitch_bytes[p], false);
        memset(film->frame.planes[p].data, 0xff, film->shape.in_pitch_bytes[p] * in[p].rows);
    }
    const struct cox_video_plane table = {.row_bytes = COX_VIDEO_RESHAPE_BYTES, .rows = 1};
    const bool looks_up = shape->lut_points && pipeline != REF_ANALYSIS;
    film->out_first = film->in_count + (shape->reshape || looks_up);
    if (shape->reshape && !like)
        add_plane(film, runtime, &table, table.row_bytes, false);
    if (looks_up && !like)
        add_lut(film, runtime);
    const struct cox_video_plane histogram = {.row_bytes = COX_VIDEO_HISTOGRAM_BYTES, .rows = 1};
    for (uint32_t p = 0; p < film->out_count && pipeline != REF_ANALYSIS; p++)
        add_plane(film, runtime, &out[p], film->shape.out_pitch_bytes[p], true);
    film->histogram = film->frame.count;
    if (pipeline != REF_MAPPING)
        add_plane(film, runtime, &histogram, histogram.row_bytes, true);
    film->frame.count = film->session.binding_count;
}

void ref_film_close(struct ref_film *film)
{
    bits_frame_close(&film->frame);
}

void ref_film_inputs(const struct ref_film *film, void *in[COX_VIDEO_PLANES_MAX])
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        in[p] = p < film->in_count ? film->frame.planes[p].data : NULL;
}

uint32_t ref_film_output(const struct ref_film *film, uint32_t plane, size_t index, uint32_t y)
{
    return ref_video_sample(&film->shape.out, film->frame.planes[film->out_first + plane].data,
                            film->shape.out_pitch_bytes[plane], index, y);
}

const uint32_t *ref_film_histogram(const struct ref_film *film)
{
    return (const uint32_t *)(const void *)film->frame.planes[film->histogram].data;
}

double ref_film_mean_luma(const struct ref_film *film, uint32_t left, uint32_t top, uint32_t width, uint32_t height)
{
    double sum = 0;
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            sum += ref_film_output(film, 0, x, y);
    return sum / ((double)width * height);
}

/* --- Contents ----------------------------------------------------------------------------------------------------- */

void ref_film_put_sample(const struct ref_film *film, uint32_t plane, uint32_t row, size_t index, uint32_t code)
{
    const struct cox_video_format *format = &film->shape.in;
    uint8_t *at = bits_row(&film->frame.planes[plane], row);
    if (format->depth == 8) {
        at[index] = (uint8_t)code;
        return;
    }
    if (format->layout == COX_VIDEO_V210) {
        memcpy(at + 4 * index, &code, 4);
        return;
    }
    const uint16_t word = (uint16_t)(format->msb_aligned ? code << (16 - format->depth) : code);
    memcpy(at + 2 * index, &word, 2);
}

static double random_between(uint32_t *seed, double least, double most)
{
    return least + (most - least) * random_short_below(seed, 10001) / 10000;
}

/* Pieces from a value at each end, and a bow between. */
static void draw_polynomials(struct cox_reshape_curve *curve, uint32_t *seed)
{
    double at = random_between(seed, 0, 1) * 0.1;
    for (uint32_t i = 0; i < curve->piece_count; i++) {
        struct cox_reshape_piece *piece = &curve->piece[i];
        const double from = i ? piece->from : curve->least;
        const double to = i + 1 < curve->piece_count ? piece[1].from : curve->most;
        const double rise = (to - from) * random_between(seed, 0.4, 1.4);
        const double slope = rise / (to - from), bow = random_between(seed, -0.5, 0.5);
        piece->kind = COX_RESHAPE_POLYNOMIAL;
        piece->c[0] = at - slope * from + bow * from * to;
        piece->c[1] = slope - bow * (from + to);
        piece->c[2] = bow;
        at += rise;
    }
}

void ref_reshape_draw(struct cox_video_reshape *reshape, uint32_t pieces, uint32_t *seed)
{
    static const double ipt[9] = {8192, 799, 1681, 8192, -933, 1091, 8192, 267, -5545};
    static const double light[9] = {3.23, -2.33, 0.1, -0.74, 1.87, -0.13, 0.02, -0.06, 1.04};
    static const double ycc[9] = {9574, 0, 13802, 9574, -1540, -5348, 9574, 17610, 0};
    const bool profile_5 = random_short_below(seed, 2);

    memset(reshape, 0, sizeof *reshape);
    for (int c = 0; c < 3; c++) {
        struct cox_reshape_curve *curve = &reshape->curve[c];
        curve->piece_count = 1 + random_short_below(seed, pieces);
        curve->most = 1 - 1.0 / 1024;
        for (uint32_t i = 0; i < curve->piece_count; i++)
            curve->piece[i].from = i * 1024 / curve->piece_count / 1024.0;
        if (random_short_below(seed, 2)) {
            curve->least = 1.0 / 64;
            curve->most = 1 - 1.0 / 64;
        }
        draw_polynomials(curve, seed);
        if (c == 0 || curve->piece_count > 1)
            continue;
        curve->piece[0].kind = COX_RESHAPE_MMR;
        const uint32_t orders = 1 + random_short_below(seed, 3);
        for (uint32_t i = 0; i < 7; i++)
            for (uint32_t order = 0; order < 3; order++)
                curve->piece[0].c[1 + 3 * i + order] = order < orders ? random_between(seed, -0.2, 0.2) : 0;
        curve->piece[0].c[1 + 3 * c] += 1;
    }

    for (int i = 0; i < 9; i++) {
        reshape->signal_matrix[i] = (profile_5 ? ipt : ycc)[i] / 8192;
        reshape->light_matrix[i] = profile_5 ? light[i] : i % 4 == 0;
    }
    reshape->signal_offset[0] = profile_5 ? 0 : 1.0 / 16;
    reshape->signal_offset[1] = reshape->signal_offset[2] = 0.5;
}

void ref_film_put_reshape(const struct ref_film *film, const struct cox_video_reshape *reshape)
{
    bits_need(cox_video_reshape_table(reshape, film->frame.planes[film->in_count].data), "a reshaping");
}

static bool is_rgb(const struct cox_video_format *format)
{
    return format->layout == COX_VIDEO_RGBA || format->layout == COX_VIDEO_BGRA || format->layout == COX_VIDEO_GBR;
}

static uint32_t code_within(double code, double largest)
{
    return (uint32_t)lrint(fmin(fmax(code, 0), largest));
}

/* Codes of a colour. Linear: halves of the light itself. */
static void encode(const struct cox_video_shape *shape, const double rgb[3], uint32_t codes[3])
{
    const struct cox_video_format *format = &shape->in;
    const double step = 1u << (format->depth - 8), largest = (1u << format->depth) - 1;
    const bool full = format->range == COX_RANGE_FULL;
    const double *k = ref_video_luma(shape);
    const double luma = k[0] * rgb[0] + k[1] * rgb[1] + k[2] * rgb[2];
    const double parts[3] = {luma, (rgb[2] - luma) / (2 - 2 * k[2]), (rgb[0] - luma) / (2 - 2 * k[0])};
    for (int i = 0; i < 3; i++) {
        if (shape->transfer == COX_TRANSFER_LINEAR) {
            codes[i] = ref_to_half(rgb[i]);
            continue;
        }
        const double value = is_rgb(format) ? rgb[i] : parts[i];
        if (i == 0 || is_rgb(format))
            codes[i] = code_within(full ? value * largest : step * (16 + 219 * value), largest);
        else
            codes[i] = code_within(step * 128 + value * (full ? largest : 224 * step), largest);
    }
}

void ref_film_put(const struct ref_film *film, uint32_t x, uint32_t y, const double rgb[3])
{
    const struct cox_video_format *format = &film->shape.in;
    uint32_t codes[3];
    void *planes[COX_VIDEO_PLANES_MAX];
    encode(&film->shape, rgb, codes);
    ref_film_inputs(film, planes);
    ref_video_put_part(&film->shape, planes, 0, x, y, codes[0]);

    const uint32_t i = x >> format->chroma_x_log2, j = y >> format->chroma_y_log2;
    if (i << format->chroma_x_log2 != x || j << format->chroma_y_log2 != y)
        return;
    ref_video_put_part(&film->shape, planes, 1, i, j, codes[1]);
    ref_video_put_part(&film->shape, planes, 2, i, j, codes[2]);
}

enum stripe { STRIPE_NOISE = 0, STRIPE_RAMP = 1, STRIPE_BLOCKS = 2, STRIPE_EXTREMES = 3, STRIPES = 4 };

static enum stripe stripe_of(uint32_t y, uint32_t seed)
{
    return (enum stripe)((y / 8 + seed) % STRIPES);
}

/* Any code within the depth, sometimes outside the range; in halves any bits. */
static uint32_t noise_code(const struct cox_video_shape *shape, enum stripe stripe, uint32_t *seed)
{
    const struct cox_video_format *format = &shape->in;
    static const uint16_t halves[] = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
                                      0x0001, 0x03ff, 0x7bff, 0xfbff, 0x3bff, 0x3c01, 0x0400, 0x8400};
    const uint32_t largest = (1u << format->depth) - 1, step = 1u << (format->depth - 8);
    if (stripe == STRIPE_NOISE)
        return random_short_below(seed, 1u << format->depth);
    if (shape->transfer == COX_TRANSFER_LINEAR)
        return halves[random_short_below(seed, 16)];
    const uint32_t codes[] = {0, 1, largest, largest - 1, 16 * step, 235 * step, 240 * step, 128 * step};
    return codes[random_short_below(seed, 8)];
}

/* The three samples of a word of V210: `code`, another code, and one outside the range. */
static uint32_t three_codes(uint32_t code, uint32_t row, size_t index)
{
    return code | ((code * 5 + row) & 1023) << 10 | (code ^ 1023) << 20 | (uint32_t)index << 30;
}

void ref_film_fill_stripes(const struct ref_film *film, uint32_t seed)
{
    const struct cox_video_shape *shape = &film->shape;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t state = seed * 7919 + 1;
    cox_video_planes(&shape->in, shape->width, shape->height, planes);
    for (uint32_t p = 0; p < film->in_count; p++)
        for (uint32_t row = 0; row < planes[p].rows; row++)
            for (size_t i = 0; i < planes[p].row_bytes / planes[p].sample_bytes; i++) {
                const uint32_t code = noise_code(shape, stripe_of(row * planes[p].row_divisor, seed), &state);
                ref_film_put_sample(film, p, row, i,
                                    shape->in.layout == COX_VIDEO_V210 ? three_codes(code, row, i) : code);
            }

    for (uint32_t y = 0; y < shape->height; y++)
        for (uint32_t x = 0; x < shape->width; x++) {
            const enum stripe stripe = stripe_of(y, seed);
            uint32_t block = (y / 4 * 977 + x / 4) * 31 + seed;
            double rgb[3];
            for (int i = 0; i < 3; i++) {
                rgb[i] = stripe == STRIPE_RAMP ? (x + 0.5) / shape->width : random_short_below(&block, 5) / 4.0;
                if (shape->transfer == COX_TRANSFER_LINEAR)
                    rgb[i] = rgb[i] > 0 ? exp2(rgb[i] * 28 - 16) : 0;
            }
            if (stripe == STRIPE_RAMP || stripe == STRIPE_BLOCKS)
                ref_film_put(film, x, y, rgb);
        }
}

const char *const ref_local_films[REF_LOCAL_FILMS] = {
    "515x301 yuv420p10 to yuv420p8 local fade",
    "1x1 yuv420p8 to yuv420p8 local hlg",
    "83x35 p010 to rgba8 local fade",
    "992x61 yuv422p16 to yuv422p10 local hlg",
    "131x66 yuv444p12 to yuv420p8 local bt709 fade",
    "320x181 rgba16 to yuv420p8 local light",
    "2x5 nv12 to yuv420p8 local fade",
    "203x67 v210 to yuv420p8 local hlg",
    "118x55 gbrp12 to gbrp10 local fade",
    "97x49 bgra8 to bgra8 local hlg",
    "150x31 p210 to yuv420p8 local fade",
};

/* The signal of the patch at a pixel, 0 .. 1, and the distance of its chroma from grey. */
static double patch_at(uint32_t x, uint32_t y, uint32_t seed, double *colour)
{
    uint32_t patch = (y / 29 * 131 + x / 41) * 7919 + seed;
    random_short(&patch);
    *colour = random_short_below(&patch, 5) * 0.02;
    return random_short_below(&patch, 80) / 100.0 + 0.02;
}

void ref_film_fill_patches(const struct ref_film *film, uint32_t seed, uint32_t noise)
{
    const struct cox_video_format *format = &film->shape.in;
    const double largest = (1u << format->depth) - 1;
    void *in[COX_VIDEO_PLANES_MAX];
    ref_film_inputs(film, in);
    for (int part = 0; part < 3; part++) {
        const uint32_t x_log2 = part ? format->chroma_x_log2 : 0, y_log2 = part ? format->chroma_y_log2 : 0;
        for (uint32_t j = 0; j <= (film->shape.height - 1) >> y_log2; j++)
            for (uint32_t i = 0; i <= (film->shape.width - 1) >> x_log2; i++) {
                double colour;
                const double luma = patch_at(i << x_log2, j << y_log2, seed, &colour) +
                                    0.01 * (random_short_below(&noise, 20001) / 10000.0 - 1);
                double value = 0.0625 + 0.86 * luma;
                if (part && !is_rgb(format))
                    value = 0.5 + (part == 2 ? -colour : colour);
                else if (part == 2)
                    value += 0.86 * colour;
                const uint32_t code = film->shape.transfer == COX_TRANSFER_LINEAR
                                          ? ref_to_half(fmax(luma, 0))
                                          : code_within(largest * value, largest);
                ref_video_put_part(&film->shape, in, part, i, j, code);
            }
    }
}

/* --- Comparison --------------------------------------------------------------------------------------------------- */

void ref_error_add(struct ref_error *to, const struct ref_error *from)
{
    const struct ref_error before = *to;
    if (from->steps >= to->steps)
        *to = *from;
    to->codes = fmax(before.codes, from->codes);
    to->distance = fmax(before.distance, from->distance);
    to->off = before.off + from->off;
    to->samples = before.samples + from->samples;
}

static void judge_plane(const struct ref_film *film, const struct ref_video *ref, const double *real, uint32_t p,
                        struct ref_error *error)
{
    const struct ref_plane plane = ref_video_plane(&film->shape.out, ref->width, ref->height, p);
    const size_t row = (size_t)plane.width * plane.channels;
    for (size_t at = 0; at < row * plane.height; at++) {
        const uint32_t x = (uint32_t)(at % row / plane.channels), y = (uint32_t)(at / row);
        const uint32_t got = ref_film_output(film, p, at % row, y), code = ref_video_code(ref, real[at], x, y);
        /* All real numbers that become this code lie in an interval of length one. */
        const double up = ref->shape.dither ? (ref_bayer(x & 7, y & 7) + 0.5) / 64 : 0.5;
        const double lowest = got - up, highest = lowest + 1;
        ref_error_add(error, &(struct ref_error){.codes = fmax(fmax(lowest - real[at], real[at] - highest), 0),
                                                 .distance = fabs(got - real[at]),
                                                 .steps = got > code ? got - code : code - got,
                                                 .off = got != code,
                                                 .samples = 1,
                                                 .plane = p,
                                                 .x = x,
                                                 .y = y,
                                                 .got = got,
                                                 .wanted = real[at]});
    }
}

void ref_film_judge(const struct ref_film *film, const struct cox_video_settings *settings, struct ref_error *error)
{
    struct ref_video ref;
    void *in[COX_VIDEO_PLANES_MAX];
    double *real[COX_VIDEO_PLANES_MAX];
    ref_video_init(&ref, &film->shape, settings);
    ref_film_inputs(film, in);
    bits_need(ref_video_map(&ref, (const void *const *)in, real) ? COX_OK : COX_E_NOMEM, "the reference");
    for (uint32_t p = 0; p < film->out_count; p++) {
        judge_plane(film, &ref, real[p], p, error);
        free(real[p]);
    }
}

const char *ref_error_text(const struct ref_error *error)
{
    static char text[128];
    snprintf(text, sizeof text, "%u codes, plane %u (%u, %u) is %u, should be %.3f", error->steps, error->plane,
             error->x, error->y, error->got, error->wanted);
    return text;
}

bool ref_film_counted(const struct ref_film *film, const struct cox_video_settings *settings, double tolerance,
                      uint32_t *bin)
{
    struct ref_video ref;
    void *in[COX_VIDEO_PLANES_MAX];
    uint32_t counts[COX_VIDEO_BINS], near[COX_VIDEO_BINS];
    ref_video_init(&ref, &film->shape, settings);
    ref_film_inputs(film, in);
    ref_video_histogram(&ref, (const void *const *)in, tolerance, counts, near);
    return ref_video_same_histogram(ref_film_histogram(film), counts, near, bin);
}
