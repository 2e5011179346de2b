/* Sources: ITU-R BT.709, BT.1886, BT.2020, BT.2100 (PQ and HLG), Report ITU-R BT.2390 (EETF). The operators are in
 * docs/internals/kernels.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ref_video.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Transfer ----------------------------------------------------------------------------------------------------- */

static const double hlg_a = 0.17883277;

double ref_hlg_light(double signal)
{
    const double b = 1 - 4 * hlg_a, c = 0.5 - hlg_a * log(4 * hlg_a);
    return signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / hlg_a) + b) / 12;
}

double ref_hlg_signal(double light)
{
    const double b = 1 - 4 * hlg_a, c = 0.5 - hlg_a * log(4 * hlg_a);
    return light <= 1.0 / 12 ? sqrt(3 * light) : hlg_a * log(12 * light - b) + c;
}

/* --- Colour ------------------------------------------------------------------------------------------------------- */

/* The published weights, which are rounded; `luminance_of` computes those of other primaries. */
static const double luma_of[2][3] = {
    [COX_PRIMARIES_BT2020] = {.2627, .6780, .0593}, [COX_PRIMARIES_BT709] = {.2126, .7152, .0722}};

const double *ref_video_luma(const struct cox_video_shape *shape)
{
    static const double bt601[3] = {.299, .587, .114};
    if (shape->matrix == COX_MATRIX_BT601 || (!shape->matrix && shape->primaries >= COX_PRIMARIES_BT601_525))
        return bt601;
    if (shape->matrix)
        return luma_of[shape->matrix == COX_MATRIX_BT709];
    return luma_of[shape->primaries == COX_PRIMARIES_BT709];
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Replaces m by its inverse. */
static void invert(double m[3][3])
{
    double c[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c[i][j] = m[(j + 1) % 3][(i + 1) % 3] * m[(j + 2) % 3][(i + 2) % 3] -
                      m[(j + 1) % 3][(i + 2) % 3] * m[(j + 2) % 3][(i + 1) % 3];
    const double determinant = m[0][0] * c[0][0] + m[0][1] * c[1][0] + m[0][2] * c[2][0];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[i][j] = c[i][j] / determinant;
}

static void white_xyz(const double xy[2], double xyz[3])
{
    xyz[0] = xy[0] / xy[1];
    xyz[1] = 1;
    xyz[2] = (1 - xy[0] - xy[1]) / xy[1];
}

/* RGB to XYZ, from the chromaticities of the primaries and white. */
static void rgb_to_xyz(const double xy[4][2], double m[3][3])
{
    double inverse[3][3], scale[3], white[3];
    white_xyz(xy[3], white);
    for (int i = 0; i < 3; i++) {
        m[0][i] = inverse[0][i] = xy[i][0] / xy[i][1];
        m[1][i] = inverse[1][i] = 1;
        m[2][i] = inverse[2][i] = (1 - xy[i][0] - xy[i][1]) / xy[i][1];
    }
    invert(inverse);
    for (int i = 0; i < 3; i++)
        scale[i] = dot(inverse[i], white);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[i][j] *= scale[j];
}

#define D65            \
    {                  \
        0.3127, 0.3290 \
    }
static const double xy_of[][4][2] = {
    [COX_PRIMARIES_BT2020] = {{0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}, D65},
    [COX_PRIMARIES_BT709] = {{0.640, 0.330}, {0.300, 0.600}, {0.150, 0.060}, D65},
    [COX_PRIMARIES_P3_D65] = {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, D65},
    [COX_PRIMARIES_P3_DCI] = {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.314, 0.351}},
    [COX_PRIMARIES_BT601_525] = {{0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}, D65},
    [COX_PRIMARIES_BT601_625] = {{0.640, 0.330}, {0.290, 0.600}, {0.150, 0.060}, D65},
};

/* out = a b */
static void multiply(const double a[3][3], const double b[3][3], double out[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
}

/* Convert XYZ under one white to XYZ under another: Bradford's cone responses are scaled. */
static void adapt(const double from[2], const double to[2], double m[3][3])
{
    static const double cones[3][3] = {{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}};
    double source[3], target[3], inverse[3][3], scaled[3][3];
    white_xyz(from, source);
    white_xyz(to, target);
    memcpy(inverse, cones, sizeof inverse);
    invert(inverse);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            scaled[i][j] = cones[i][j] * dot(cones[i], target) / dot(cones[i], source);
    multiply(inverse, scaled, m);
}

void ref_primaries(enum cox_primaries from, enum cox_primaries to, double m[3][3])
{
    double in[3][3], out[3][3], white[3][3], adapted[3][3];
    rgb_to_xyz(xy_of[from], in);
    rgb_to_xyz(xy_of[to], out);
    invert(out);
    adapt(xy_of[from][3], xy_of[to][3], white);
    multiply(white, in, adapted);
    multiply(out, adapted, m);
}

/* The luminance of light of some primaries. */
static double luminance_of(enum cox_primaries primaries, const double light[3])
{
    double xyz[3][3];
    if (primaries <= COX_PRIMARIES_BT709)
        return dot(luma_of[primaries], light);
    rgb_to_xyz(xy_of[primaries], xyz);
    return dot(xyz[1], light);
}

/* --- The operator ------------------------------------------------------------------------------------------------- */

double ref_video_operator(const struct ref_video *ref, double x)
{
    if (ref->shape.op == COX_OPERATOR_HDR10PLUS && ref->hdr10plus)
        return ref_bt2390(ref_hdr10plus(ref->hdr10plus, x * ref->white_nits) / ref->white_nits,
                          ref->hdr10plus->target_nits / ref->white_nits, ref->white_nits);
    const double in_nits = ref_curve_in_nits(ref->shape.op, x, ref->peak, ref->white_nits);
    if (!isnan(in_nits))
        return in_nits;
    return ref_operator_at(&(struct ref_operator){.op = ref->shape.op, .peak = ref->peak}, x);
}

static double value_at(const void *ref, double x)
{
    return ref_video_operator(ref, x);
}

static double or_default(float setting, double standard)
{
    return setting == 0 ? standard : (double)setting;
}

void ref_video_size(const struct cox_video_shape *shape, uint32_t *width, uint32_t *height)
{
    const uint32_t half = shape->scale == COX_SCALE_HALF;
    *width = shape->scale == COX_SCALE_FILTER ? shape->out_width : shape->width >> half;
    *height = shape->scale == COX_SCALE_FILTER ? shape->out_height : shape->height >> half;
}

void ref_video_init(struct ref_video *ref, const struct cox_video_shape *shape,
                    const struct cox_video_settings *settings)
{
    *ref = (struct ref_video){.shape = *shape};
    ref_video_size(shape, &ref->width, &ref->height);
    ref->white_nits = or_default(settings->sdr_white_nits, 203);
    ref->peak_nits = or_default(settings->peak_nits, 1000);
    ref->hlg_peak_nits = or_default(settings->hlg_peak_nits, 1000);
    ref->gain = or_default(settings->gain, 1);
    ref->detail = or_default(settings->detail, 1);
    ref->knee = or_default(settings->gamut_knee, 0.9);
    ref->strength = shape->desaturate_highlights ? fmin(fmax(or_default(settings->desaturate, 0.75), 0), 1) : 0;
    ref->peak = ref->peak_nits / ref->white_nits;
    const bool wide = shape->out_primaries == COX_OUT_BT2020;
    ref_primaries(shape->primaries, wide ? COX_PRIMARIES_BT2020 : COX_PRIMARIES_BT709, ref->primaries);
    ref->out_luma = luma_of[wide ? COX_PRIMARIES_BT2020 : COX_PRIMARIES_BT709];
    if (shape->reshape) {
        double to_2020[3][3], to_709[3][3];
        ref->reshape = settings->reshape;
        memcpy(to_2020, ref->reshape->light_matrix, sizeof to_2020);
        memcpy(to_709, ref->primaries, sizeof to_709);
        multiply(to_709, to_2020, ref->primaries);
    }
    ref->hdr10plus = settings->hdr10plus;
    ref->sdr_nits = shape->encoding == COX_ENCODING_PQ ? fmin(203, ref->white_nits) : ref->white_nits;
    if (shape->transfer == COX_TRANSFER_SDR) { /* which is neither compressed nor made brighter */
        ref->shape.op = COX_OPERATOR_CLIP;
        ref->strength = 0;
        ref->gain = 1;
    }
    if (shape->lut_points)
        ref->lut = ref_lut_of(shape->lut_points);
    ref->fade = ref_fade(ref, value_at);
}

/* --- Samples in --------------------------------------------------------------------------------------------------- */

static uint32_t sample_at(const struct cox_video_format *format, const void *row, size_t index)
{
    if (format->depth == 8)
        return ((const uint8_t *)row)[index];
    uint16_t word;
    memcpy(&word, (const char *)row + 2 * index, 2);
    return format->msb_aligned ? (uint32_t)word >> (16 - format->depth) : word;
}

uint32_t ref_video_sample(const struct cox_video_format *format, const void *plane, size_t pitch_bytes, size_t index,
                          uint32_t y)
{
    return sample_at(format, (const char *)plane + y * pitch_bytes, index);
}

/* The codes of 0 and 1, and those of chroma 0 and 1. */
struct levels {
    double luma_zero, luma_one, chroma_zero, chroma_span;
};

static struct levels levels_of(const struct cox_video_format *format)
{
    const double step = 1u << (format->depth - 8), largest = (1u << format->depth) - 1;
    if (format->range == COX_RANGE_FULL || format->layout == COX_VIDEO_RGBA || format->layout == COX_VIDEO_BGRA)
        return (struct levels){0, largest, 1u << (format->depth - 1), largest};
    return (struct levels){16 * step, 235 * step, 128 * step, 224 * step};
}

/* Whether samples are R', G' and B'. */
static bool is_rgb(const struct cox_video_format *format)
{
    return format->layout == COX_VIDEO_RGBA || format->layout == COX_VIDEO_BGRA || format->layout == COX_VIDEO_GBR;
}

/* The position of sample `i` of a row of one part of the picture. Parts 0, 1, 2 are Y', Cb, Cr, or R', G', B'. */
struct place {
    uint32_t plane;
    size_t index;   /* in samples; V210: in words */
    uint32_t shift; /* V210: bits below it */
};

static struct place place_of_sample(const struct cox_video_format *format, int part, size_t i)
{
    /* Word and bit of Y' of six pixels, of their three Cb and of their three Cr. */
    static const uint8_t v210[3][6][2] = {
        {{0, 10}, {1, 0}, {1, 20}, {2, 10}, {3, 0}, {3, 20}}, {{0, 0}, {1, 10}, {2, 20}}, {{0, 20}, {2, 0}, {3, 10}}};
    const size_t samples = part ? 3 : 6;
    const uint8_t *in_group = v210[part][i % samples];
    switch (format->layout) {
    case COX_VIDEO_SEMI_PLANAR:
        return part ? (struct place){1, 2 * i + (size_t)part - 1, 0} : (struct place){0, i, 0};
    case COX_VIDEO_RGBA:
        return (struct place){0, 4 * i + (size_t)part, 0};
    case COX_VIDEO_BGRA:
        return (struct place){0, 4 * i + 2 - (size_t)part, 0};
    case COX_VIDEO_GBR:
        return (struct place){part == 0 ? 2 : part == 1 ? 0 : 1, i, 0};
    case COX_VIDEO_V210:
        return (struct place){0, i / samples * 4 + in_group[0], in_group[1]};
    case COX_VIDEO_PLANAR:
        break;
    }
    return (struct place){(uint32_t)part, i, 0};
}

uint32_t ref_video_part(const struct cox_video_shape *shape, const void *const in[COX_VIDEO_PLANES_MAX], int part,
                        size_t i, size_t j)
{
    const struct place place = place_of_sample(&shape->in, part, i);
    const char *row = (const char *)in[place.plane] + j * shape->in_pitch_bytes[place.plane];
    if (shape->in.layout != COX_VIDEO_V210)
        return sample_at(&shape->in, row, place.index);
    uint32_t word;
    memcpy(&word, row + 4 * place.index, 4);
    return word >> place.shift & 1023;
}

void ref_video_put_part(const struct cox_video_shape *shape, void *const in[COX_VIDEO_PLANES_MAX], int part, size_t i,
                        size_t j, uint32_t code)
{
    const struct place place = place_of_sample(&shape->in, part, i);
    char *row = (char *)in[place.plane] + j * shape->in_pitch_bytes[place.plane];
    if (shape->in.layout == COX_VIDEO_V210) {
        uint32_t word;
        memcpy(&word, row + 4 * place.index, 4);
        word = (word & ~(1023u << place.shift)) | code << place.shift;
        memcpy(row + 4 * place.index, &word, 4);
    } else if (shape->in.depth == 8) {
        row[place.index] = (char)code;
    } else {
        const uint16_t word = (uint16_t)(shape->in.msb_aligned ? code << (16 - shape->in.depth) : code);
        memcpy(row + 2 * place.index, &word, 2);
    }
}

/* The value of a part's code. */
static double value_of(const struct ref_video *ref, int part, double code)
{
    const struct cox_video_format *format = &ref->shape.in;
    if (ref->reshape)
        return code / (1u << format->depth);
    const struct levels levels = levels_of(format);
    return part == 0 || is_rgb(format) ? (code - levels.luma_zero) / (levels.luma_one - levels.luma_zero)
                                       : (code - levels.chroma_zero) / levels.chroma_span;
}

/* The code of sample (i, j) of a part. Places outside repeat the edge. */
static uint32_t code_within(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], int part, long i,
                            long j)
{
    const struct cox_video_format *format = &ref->shape.in;
    const long last_i = (long)((ref->shape.width - 1) >> (part ? format->chroma_x_log2 : 0));
    const long last_j = (long)((ref->shape.height - 1) >> (part ? format->chroma_y_log2 : 0));
    return ref_video_part(&ref->shape, in, part,
                          (size_t)(i < 0        ? 0
                                   : i > last_i ? last_i
                                                : i),
                          (size_t)(j < 0        ? 0
                                   : j > last_j ? last_j
                                                : j));
}

/* Chroma sample (i, j) of Cb (0) or Cr (1). */
static double chroma_sample(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], int which, long i,
                            long j)
{
    return value_of(ref, 1 + which, code_within(ref, in, 1 + which, i, j));
}

/* Finds the two chroma samples on both sides of luma place `at` along one axis, and the weight of the second. With
 * `half_way`, samples lie between two luma places, else on the even ones. */
static double between(uint32_t at, uint32_t log2, bool half_way, long *first)
{
    if (log2 == 0) {
        *first = (long)at;
        return 0;
    }
    const double place = half_way ? (at - 0.5) / 2 : at / 2.0;
    *first = (long)floor(place);
    return place - floor(place);
}

static double chroma_at(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], int which, uint32_t x,
                        uint32_t y)
{
    const struct cox_video_format *format = &ref->shape.in;
    long i, j;
    const double right = between(x, format->chroma_x_log2, format->chroma_location == COX_CHROMA_CENTER, &i);
    const double down = between(y, format->chroma_y_log2, format->chroma_location != COX_CHROMA_TOP_LEFT, &j);
    const double upper = chroma_sample(ref, in, which, i, j) * (1 - right) +
                         chroma_sample(ref, in, which, i + 1, j) * right;
    const double lower = chroma_sample(ref, in, which, i, j + 1) * (1 - right) +
                         chroma_sample(ref, in, which, i + 1, j + 1) * right;
    return upper * (1 - down) + lower * down;
}

/* The values of a pixel: Y', Cb and Cr, or R', G' and B', or light. */
static void sample_parts(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], uint32_t x,
                         uint32_t y, double parts[3])
{
    const struct cox_video_format *format = &ref->shape.in;
    for (int part = 0; part < 3; part++) {
        const uint32_t code = code_within(ref, in, part, (long)(x >> (part ? format->chroma_x_log2 : 0)),
                                          (long)(y >> (part ? format->chroma_y_log2 : 0)));
        if (ref->shape.transfer == COX_TRANSFER_LINEAR)
            parts[part] = ref_colour(ref_half((uint16_t)code), COX_PIXEL_RGBA_HALF);
        else if (part == 0 || is_rgb(format))
            parts[part] = value_of(ref, part, code);
        else
            parts[part] = chroma_at(ref, in, part - 1, x, y);
    }
}

/* Catmull-Rom's cubic (Keys 1981, a = -1/2). */
static double cubic(double d)
{
    d = fabs(d);
    return d < 1 ? 1.5 * d * d * d - 2.5 * d * d + 1 : d < 2 ? -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2 : 0;
}

/* The place of pixel `p` of `to` among the samples of a plane of `from` pixels, and the width of the filter there. */
static double place_of(uint32_t p, uint32_t from, uint32_t to, uint32_t log2, bool half_way, double *stretch)
{
    const double pixel = (p + 0.5) * from / to - 0.5;
    *stretch = fmax(1, (double)from / to / (1 << log2));
    return log2 ? (pixel - (half_way ? 0.5 : 0)) / 2 : pixel;
}

/* One of Y', Cb and Cr, or of R', G' and B', of a pixel after scaling. */
static double scaled_part(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], int part, uint32_t x,
                          uint32_t y)
{
    const struct cox_video_shape *s = &ref->shape;
    const struct cox_video_format *format = &s->in;
    double wide, high, total = 0, weights = 0;
    const double right = place_of(x, s->width, s->out_width, part ? format->chroma_x_log2 : 0,
                                  format->chroma_location == COX_CHROMA_CENTER, &wide);
    const double down = place_of(y, s->height, s->out_height, part ? format->chroma_y_log2 : 0,
                                 format->chroma_location != COX_CHROMA_TOP_LEFT, &high);
    for (long j = (long)ceil(down - 2 * high); j <= (long)floor(down + 2 * high); j++)
        for (long i = (long)ceil(right - 2 * wide); i <= (long)floor(right + 2 * wide); i++) {
            const double weight = cubic((double)(i - right) / wide) * cubic((double)(j - down) / high);
            weights += weight;
            total += weight * code_within(ref, in, part, i, j);
        }
    /* Overshoot is limited to the codes of 16 bits. */
    const double code = fmin(fmax(total / weights, 0), 65535 / exp2(16 - (double)format->depth));
    return value_of(ref, part, code);
}

/* One component by its curve, from all three. */
static double reshaped(const struct cox_reshape_curve *curve, const double ycc[3], int part)
{
    const double x = fmin(fmax(ycc[part], curve->least), curve->most);
    const double terms[7] = {
        ycc[0], ycc[1], ycc[2], ycc[0] * ycc[1], ycc[0] * ycc[2], ycc[1] * ycc[2], ycc[0] * ycc[1] * ycc[2]};
    uint32_t i = curve->piece_count - 1;
    while (i > 0 && x < curve->piece[i].from)
        i--;
    const double *c = curve->piece[i].c;
    double value = c[0];
    if (curve->piece[i].kind == COX_RESHAPE_POLYNOMIAL)
        value += c[1] * x + c[2] * x * x;
    for (int t = 0; t < 7 && curve->piece[i].kind == COX_RESHAPE_MMR; t++)
        for (int order = 1; order <= 3; order++)
            value += c[3 * t + order] * pow(terms[t], order);
    return fmin(fmax(value, 0), 1);
}

/* R', G' and B' of Y', Cb and Cr, without limits. */
static void to_signal(const struct ref_video *ref, const double ycc[3], double signal[3])
{
    const double *k = ref_video_luma(&ref->shape);
    if (ref->reshape) {
        double from[3], parts[3];
        for (int c = 0; c < 3; c++)
            from[c] = fmin(fmax(ycc[c], 0), 1);
        for (int c = 0; c < 3; c++)
            parts[c] = reshaped(&ref->reshape->curve[c], from, c) - ref->reshape->signal_offset[c];
        for (int c = 0; c < 3; c++)
            signal[c] = dot(ref->reshape->signal_matrix + 3 * (size_t)c, parts);
        return;
    }
    signal[2] = ycc[0] + 2 * (1 - k[2]) * ycc[1];
    signal[0] = ycc[0] + 2 * (1 - k[0]) * ycc[2];
    signal[1] = (ycc[0] - k[0] * signal[0] - k[2] * signal[2]) / k[1];
}

void ref_video_signal(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], uint32_t x, uint32_t y,
                      double signal[3])
{
    const uint32_t side = ref->shape.scale == COX_SCALE_HALF ? 2 : 1;
    double mean[3] = {0, 0, 0};
    for (uint32_t i = 0; i < side * side; i++) {
        double parts[3];
        if (ref->shape.scale == COX_SCALE_FILTER)
            for (int c = 0; c < 3; c++)
                parts[c] = scaled_part(ref, in, c, x, y);
        else
            sample_parts(ref, in, x * side + i % side, y * side + i / side, parts);
        for (int c = 0; c < 3; c++)
            mean[c] += parts[c] / (side * side);
    }
    memcpy(signal, mean, sizeof mean);
    if (!is_rgb(&ref->shape.in))
        to_signal(ref, mean, signal);
    for (int c = 0; c < 3; c++)
        if (ref->shape.transfer != COX_TRANSFER_LINEAR)
            signal[c] = fmin(fmax(signal[c], 0), 1);
}

/* --- A pixel ------------------------------------------------------------------------------------------------------ */

void ref_video_light(const struct ref_video *ref, const double signal[3], double light[3])
{
    if (ref->shape.transfer == COX_TRANSFER_LINEAR) {
        for (int c = 0; c < 3; c++)
            light[c] = signal[c] * ref->gain;
        return;
    }
    const double scale = ref->gain / ref->white_nits;
    if (ref->shape.transfer == COX_TRANSFER_PQ) {
        for (int c = 0; c < 3; c++)
            light[c] = ref_pq_light(signal[c]) * scale;
        return;
    }
    for (int c = 0; c < 3 && ref->shape.transfer == COX_TRANSFER_SDR; c++)
        light[c] = pow(signal[c], 2.4) * ref->sdr_nits / ref->white_nits;
    if (ref->shape.transfer == COX_TRANSFER_SDR)
        return;
    double scene[3];
    for (int c = 0; c < 3; c++)
        scene[c] = ref_hlg_light(signal[c]);
    const double luminance = luminance_of(ref->shape.primaries, scene);
    const double gamma = 1.2 + 0.42 * log10(ref->hlg_peak_nits / 1000);
    for (int c = 0; c < 3; c++)
        light[c] = luminance > 0 ? ref->hlg_peak_nits * pow(luminance, gamma - 1) * scene[c] * scale : 0;
}

/* Converts light to BT.709's primaries. Returns the largest of its colours. */
static double to_bt709(const struct ref_video *ref, const double light[3], double c[3])
{
    for (int i = 0; i < 3; i++)
        c[i] = dot(ref->primaries[i], light);
    return fmax(c[0], fmax(c[1], c[2]));
}

/* Move the colour towards grey of the same luminance, depending on how far the smallest channel is from it. */
static void compress_gamut(const struct ref_video *ref, double c[3])
{
    const double grey = dot(ref->out_luma, c), least = fmin(c[0], fmin(c[1], c[2]));
    double factor = 0;
    if (grey > 0) {
        const double distance = (grey - least) / grey, beyond = distance - ref->knee;
        if (beyond <= 0)
            return;
        factor = (ref->knee + beyond / (1 + beyond / (1 - ref->knee))) / distance;
    }
    for (int i = 0; i < 3; i++)
        c[i] = grey + (c[i] - grey) * factor;
    const double blue = (1 - factor) * fmax(c[2] - c[1] - 6 * c[0], 0);
    c[1] += 0.23 * blue;
    c[2] -= 0.8 * blue;
}

/* Oklab (B. Ottosson 2020) of BT.709 light, and back. */
static void to_oklab(const double c[3], double lab[3])
{
    static const double cones[3][3] = {{0.4122214708, 0.5363325363, 0.0514459929},
                                       {0.2119034982, 0.6806995451, 0.1073969566},
                                       {0.0883024619, 0.2817188376, 0.6299787005}};
    static const double axes[3][3] = {{0.2104542553, 0.7936177850, -0.0040720468},
                                      {1.9779984951, -2.4285922050, 0.4505937099},
                                      {0.0259040371, 0.7827717662, -0.8086757660}};
    double root[3];
    for (int i = 0; i < 3; i++)
        root[i] = cbrt(dot(cones[i], c));
    for (int i = 0; i < 3; i++)
        lab[i] = dot(axes[i], root);
}

static void from_oklab(const double lab[3], double c[3])
{
    static const double roots[3][3] = {
        {1, 0.3963377774, 0.2158037573}, {1, -0.1055613458, -0.0638541728}, {1, -0.0894841775, -1.2914855480}};
    static const double colours[3][3] = {{4.0767416621, -3.3077115913, 0.2309699292},
                                         {-1.2684380046, 2.6097574011, -0.3413193965},
                                         {-0.0041960863, -0.7034186147, 1.7076147010}};
    double cones[3];
    for (int i = 0; i < 3; i++)
        cones[i] = pow(dot(roots[i], lab), 3);
    for (int i = 0; i < 3; i++)
        c[i] = dot(colours[i], cones);
}

/* The output's light of the Oklab colour with its chroma multiplied by s. */
static void at_chroma(const struct ref_video *ref, const double lab[3], double s, double c[3])
{
    double bt709[3], to_wide[3][3];
    from_oklab((double[3]){lab[0], s * lab[1], s * lab[2]}, bt709);
    memcpy(c, bt709, sizeof bt709);
    if (ref->shape.out_primaries == COX_OUT_BT709)
        return;
    ref_primaries(COX_PRIMARIES_BT709, COX_PRIMARIES_BT2020, to_wide);
    for (int i = 0; i < 3; i++)
        c[i] = dot(to_wide[i], bt709);
}

/* The same towards grey of the same lightness, along a line of one hue in Oklab. */
static void keep_hue(const struct ref_video *ref, double c[3])
{
    double lab[3], bt709[3], to_bt709[3][3];
    memcpy(bt709, c, sizeof bt709);
    if (ref->shape.out_primaries == COX_OUT_BT2020) {
        ref_primaries(COX_PRIMARIES_BT2020, COX_PRIMARIES_BT709, to_bt709);
        for (int i = 0; i < 3; i++)
            bt709[i] = dot(to_bt709[i], c);
    }
    if (fmin(c[0], fmin(c[1], c[2])) >= 0.95 * (1 - ref->knee) * fmax(c[0], fmax(c[1], c[2])))
        return;
    to_oklab(bt709, lab);

    const double limit = -0.0009 * fmax(c[0], fmax(c[1], c[2]));
    double inside = 0, outside = 1 / ref->knee, at[3];
    at_chroma(ref, lab, outside, at);
    if (fmin(at[0], fmin(at[1], at[2])) >= limit)
        return;
    for (int i = 0; i < 60; i++) {
        const double middle = (inside + outside) / 2;
        at_chroma(ref, lab, middle, at);
        if (fmin(at[0], fmin(at[1], at[2])) >= limit)
            inside = middle;
        else
            outside = middle;
    }
    const double distance = 1 / inside, beyond = distance - ref->knee;
    at_chroma(ref, lab, (ref->knee + beyond / (1 + beyond / (1 - ref->knee))) / distance, c);
    const double too_bright = fmax(fmax(c[0], fmax(c[1], c[2])), 1);
    for (int i = 0; i < 3; i++)
        c[i] = fmax(c[i], 0) / too_bright;
}

/* Light with BT.709's primaries, multiplied by the operator's ratio. */
static void display_of(const struct ref_video *ref, const double c[3], double brightest, double ratio,
                       double display[3])
{
    const double over = ref->strength * fmax(dot(ref->out_luma, c) / ref->fade - 1, 0);
    const double white = over / (over + 3);
    double mapped[3];
    for (int i = 0; i < 3; i++)
        mapped[i] = (c[i] * (1 - white) + brightest * white) * ratio;
    if (ref->shape.gamut == COX_GAMUT_COMPRESS)
        compress_gamut(ref, mapped);
    if (ref->shape.gamut == COX_GAMUT_HUE)
        keep_hue(ref, mapped);
    for (int i = 0; i < 3; i++) {
        const double v = fmin(fmax(mapped[i], -1), 1);
        const double size = ref->shape.encoding == COX_ENCODING_SRGB ? ref_srgb(fabs(v)) : pow(fabs(v), 1 / 2.4);
        display[i] = copysign(size, v);
        if (ref->shape.encoding == COX_ENCODING_PQ)
            display[i] = ref_pq_signal(fmax(v, 0) * ref->white_nits);
    }
}

void ref_video_display(const struct ref_video *ref, const double light[3], double display[3])
{
    double c[3];
    const double brightest = to_bt709(ref, light, c);
    display_of(ref, c, brightest, brightest > 0 ? ref_video_operator(ref, brightest) / brightest : 1, display);
}

/* --- The base of COX_OPERATOR_LOCAL ------------------------------------------------------------------------------- */

struct planes {
    const struct ref_video *ref;
    const void *const *in;
};

static uint32_t within(uint32_t at, uint32_t count)
{
    return at < count ? at : count - 1;
}

/* Y', Cb and Cr, or R', G' and B', of a block: the means of its samples. */
static void mean_parts(const struct planes *planes, uint32_t block_x, uint32_t block_y, uint32_t side, double means[3])
{
    const struct ref_video *ref = planes->ref;
    const struct cox_video_format *format = &ref->shape.in;
    for (int part = 0; part < 3; part++) {
        const uint32_t across = side >> (part ? format->chroma_x_log2 : 0);
        const uint32_t down = side >> (part ? format->chroma_y_log2 : 0);
        means[part] = 0;
        for (uint32_t j = block_y * down; j < (block_y + 1) * down; j++)
            for (uint32_t i = block_x * across; i < (block_x + 1) * across; i++)
                means[part] += value_of(ref, part, code_within(ref, planes->in, part, (long)i, (long)j)) /
                               (across * down);
    }
}

static double stops_of_signal(const struct ref_video *ref, double signal[3])
{
    double light[3], c[3];
    for (int i = 0; i < 3 && ref->shape.transfer != COX_TRANSFER_LINEAR; i++)
        signal[i] = fmin(fmax(signal[i], 0), 1);
    ref_video_light(ref, signal, light);
    return ref_local_stops(to_bt709(ref, light, c));
}

/* A ref_local_stops_fn. */
static double video_stops(const void *user, uint32_t block_x, uint32_t block_y, uint32_t side)
{
    const struct planes *planes = user;
    const struct ref_video *ref = planes->ref;
    double signal[3], ycc[3], sum = 0;
    if (ref->shape.in.layout == COX_VIDEO_GBR) {
        mean_parts(planes, block_x, block_y, side, signal);
        return stops_of_signal(ref, signal);
    }
    if (!is_rgb(&ref->shape.in)) {
        mean_parts(planes, block_x, block_y, side, ycc);
        to_signal(ref, ycc, signal);
        return stops_of_signal(ref, signal);
    }
    for (uint32_t i = 0; i < side * side; i++) {
        ref_video_signal(ref, planes->in, within(block_x * side + i % side, ref->shape.width),
                         within(block_y * side + i / side, ref->shape.height), signal);
        sum += stops_of_signal(ref, signal);
    }
    return sum / (side * side);
}

/* --- Samples out -------------------------------------------------------------------------------------------------- */

struct ref_plane ref_video_plane(const struct cox_video_format *format, uint32_t width, uint32_t height, uint32_t plane)
{
    if (format->layout == COX_VIDEO_RGBA || format->layout == COX_VIDEO_BGRA)
        return (struct ref_plane){width, height, 4};
    if (plane == 0)
        return (struct ref_plane){width, height, 1};
    return (struct ref_plane){((width - 1) >> format->chroma_x_log2) + 1, ((height - 1) >> format->chroma_y_log2) + 1,
                              format->layout == COX_VIDEO_SEMI_PLANAR ? 2 : 1};
}

static double limit(const struct ref_video *ref, double value)
{
    return fmin(fmax(value, 0), (1u << ref->shape.out.depth) - 1);
}

uint32_t ref_bayer(uint32_t x, uint32_t y)
{
    static const uint32_t smallest[2][2] = {{0, 2}, {3, 1}};
    uint32_t value = 0;
    for (int bit = 0; bit < 3; bit++) /* the last bit of a coordinate decides most */
        value = 4 * value + smallest[y >> bit & 1][x >> bit & 1];
    return value;
}

uint32_t ref_video_code(const struct ref_video *ref, double value, uint32_t x, uint32_t y)
{
    const double up = ref->shape.dither == COX_DITHER_ORDERED ? (ref_bayer(x & 7, y & 7) + 0.5) / 64 : 0.5;
    return (uint32_t)limit(ref, floor(value + up));
}

/* The frame's Cb or Cr at full resolution. Places outside repeat the edge. */
static double full_chroma(const struct ref_video *ref, const double *chroma, long x, long y)
{
    const long width = (long)ref->width, height = (long)ref->height;
    x = x < 0 ? 0 : x >= width ? width - 1 : x;
    y = y < 0 ? 0 : y >= height ? height - 1 : y;
    return chroma[y * width + x];
}

static double chroma_of_row(const struct ref_video *ref, const double *chroma, long i, long y)
{
    if (ref->shape.out.chroma_x_log2 == 0)
        return full_chroma(ref, chroma, i, y);
    if (ref->shape.out.chroma_location == COX_CHROMA_CENTER)
        return (full_chroma(ref, chroma, 2 * i, y) + full_chroma(ref, chroma, 2 * i + 1, y)) / 2;
    return (full_chroma(ref, chroma, 2 * i - 1, y) + 2 * full_chroma(ref, chroma, 2 * i, y) +
            full_chroma(ref, chroma, 2 * i + 1, y)) /
           4;
}

/* The mean of two rows for every chroma location, top-left too: then no sample of a band depends on rows above it. */
static double chroma_down(const struct ref_video *ref, const double *chroma, long i, long j)
{
    if (ref->shape.out.chroma_y_log2 == 0)
        return chroma_of_row(ref, chroma, i, j);
    return (chroma_of_row(ref, chroma, i, 2 * j) + chroma_of_row(ref, chroma, i, 2 * j + 1)) / 2;
}

static void write_rgba(const struct ref_video *ref, const double *display, double *out)
{
    const double largest = (1u << ref->shape.out.depth) - 1;
    for (size_t i = 0; i < (size_t)ref->width * ref->height; i++) {
        for (int c = 0; c < 3; c++)
            out[place_of_sample(&ref->shape.out, c, i).index] = largest * fmax(display[3 * i + (size_t)c], 0);
        out[4 * i + 3] = largest;
    }
}

static void write_gbr(const struct ref_video *ref, const double *display, double *out[COX_VIDEO_PLANES_MAX])
{
    const struct levels levels = levels_of(&ref->shape.out);
    for (size_t i = 0; i < (size_t)ref->width * ref->height; i++)
        for (int c = 0; c < 3; c++)
            out[place_of_sample(&ref->shape.out, c, i).plane][i] =
                limit(ref, levels.luma_zero + (levels.luma_one - levels.luma_zero) * display[3 * i + (size_t)c]);
}

/* `chroma` has room for a frame. */
static void write_planes(const struct ref_video *ref, const double *display, double *chroma,
                         double *out[COX_VIDEO_PLANES_MAX])
{
    const struct cox_video_format *format = &ref->shape.out;
    const double *k = ref->out_luma;
    const struct levels levels = levels_of(format);
    const size_t pixels = (size_t)ref->width * ref->height;
    const bool semi = format->layout == COX_VIDEO_SEMI_PLANAR;
    for (size_t i = 0; i < pixels; i++)
        out[0][i] = limit(ref, levels.luma_zero + (levels.luma_one - levels.luma_zero) * dot(k, &display[3 * i]));
    for (size_t which = 0; which < 2; which++) {
        const size_t channel = which == 0 ? 2 : 0; /* B for Cb, R for Cr */
        for (size_t i = 0; i < pixels; i++)
            chroma[i] = (display[3 * i + channel] - dot(k, &display[3 * i])) / (2 * (1 - k[channel]));
        const struct ref_plane plane = ref_video_plane(format, ref->width, ref->height, 1);
        for (size_t y = 0; y < plane.height; y++) {
            for (size_t x = 0; x < plane.width; x++) {
                const double c = chroma_down(ref, chroma, (long)x, (long)y);
                const size_t at = (y * plane.width + x) * plane.channels + (semi ? which : 0);
                out[semi ? 1 : 1 + which][at] = limit(ref, levels.chroma_zero + levels.chroma_span * c);
            }
        }
    }
}

/* Whether SDR has the colours, the size and the places of the output, so that its codes are kept. */
static bool keeps_codes(const struct cox_video_shape *s)
{
    const bool wide = s->out_primaries == COX_OUT_BT2020;
    const bool places = s->in.chroma_x_log2 == s->out.chroma_x_log2 && s->in.chroma_y_log2 == s->out.chroma_y_log2 &&
                        (s->in.chroma_x_log2 == 0 || s->in.chroma_location == s->out.chroma_location);
    return s->transfer == COX_TRANSFER_SDR && s->encoding == COX_ENCODING_BT1886 && s->scale == COX_SCALE_NONE &&
           is_rgb(&s->in) == is_rgb(&s->out) && places &&
           s->primaries == (wide ? COX_PRIMARIES_BT2020 : COX_PRIMARIES_BT709) &&
           (is_rgb(&s->in) || ref_video_luma(s) == luma_of[s->primaries]);
}

/* The value of each sample of the input, as a code of the output. */
static void keep_codes(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX],
                       double *out[COX_VIDEO_PLANES_MAX])
{
    const struct cox_video_format *format = &ref->shape.out;
    const struct levels levels = levels_of(format);
    for (int part = 0; part < 3; part++) {
        const bool chroma = part > 0 && !is_rgb(format);
        const uint32_t width = part ? ((ref->width - 1) >> format->chroma_x_log2) + 1 : ref->width;
        const uint32_t height = part ? ((ref->height - 1) >> format->chroma_y_log2) + 1 : ref->height;
        for (uint32_t j = 0; j < height; j++)
            for (uint32_t i = 0; i < width; i++) {
                const struct place place = place_of_sample(format, part, i);
                const struct ref_plane plane = ref_video_plane(format, ref->width, ref->height, place.plane);
                double value = value_of(ref, part, code_within(ref, in, part, (long)i, (long)j));
                if (chroma)
                    value = levels.chroma_zero + levels.chroma_span * value;
                else
                    value = levels.luma_zero + (levels.luma_one - levels.luma_zero) * value;
                out[place.plane][(size_t)j * plane.width * plane.channels + place.index] = limit(ref, value);
            }
    }
    const double largest = (1u << format->depth) - 1;
    for (size_t i = 0; i < (size_t)ref->width * ref->height; i++)
        if (format->layout == COX_VIDEO_RGBA || format->layout == COX_VIDEO_BGRA)
            out[0][4 * i + 3] = largest;
}

bool ref_video_map(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX],
                   double *out[COX_VIDEO_PLANES_MAX])
{
    const struct cox_video_shape *shape = &ref->shape;
    const size_t pixels = (size_t)ref->width * ref->height;
    const bool packed = shape->out.layout == COX_VIDEO_RGBA || shape->out.layout == COX_VIDEO_BGRA;
    const uint32_t planes = packed ? 1 : shape->out.layout == COX_VIDEO_SEMI_PLANAR ? 2 : 3;
    double *display = malloc(pixels * 4 * sizeof(double));
    bool good = display != NULL;
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        const struct ref_plane plane = ref_video_plane(&shape->out, ref->width, ref->height, p);
        out[p] = p < planes ? malloc(sizeof(double) * plane.width * plane.height * plane.channels) : NULL;
        good = good && (out[p] || p >= planes);
    }
    struct ref_local local = {0};
    const bool surround = shape->op == COX_OPERATOR_LOCAL;
    if (surround)
        good = good && ref_local_init(&local, ref->width, ref->height, 2, video_stops, &(struct planes){ref, in});
    const bool kept = keeps_codes(shape);
    for (uint32_t y = 0; good && !kept && y < ref->height; y++) {
        for (uint32_t x = 0; x < ref->width; x++) {
            double signal[3], light[3], c[3], *to = &display[3 * ((size_t)y * ref->width + x)];
            ref_video_signal(ref, in, x, y, signal);
            ref_video_light(ref, signal, light);
            if (ref->lut) {
                ref_lut_at(ref->lut, signal, to);
            } else if (surround) {
                const double most = to_bt709(ref, light, c);
                display_of(ref, c, most, ref_local_ratio(&local, x, y, most, ref->peak, ref->detail), to);
            } else {
                ref_video_display(ref, light, to);
            }
        }
    }
    ref_local_free(&local);
    if (good && kept)
        keep_codes(ref, in, out);
    else if (good && packed)
        write_rgba(ref, display, out[0]);
    else if (good && shape->out.layout == COX_VIDEO_GBR)
        write_gbr(ref, display, out);
    else if (good)
        write_planes(ref, display, display + 3 * pixels, out);
    for (int p = 0; p < COX_VIDEO_PLANES_MAX && !good; p++) {
        free(out[p]);
        out[p] = NULL;
    }
    free(display);
    return good;
}

/* --- The histogram ------------------------------------------------------------------------------------------------ */

/* The same for 4:2:0, where a block has one sample of Cb and Cr, from the largest Y'. */
static double shared_chroma_signal(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], uint32_t x,
                                   uint32_t y)
{
    uint32_t luma = 0;
    double signal[3];
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t code = code_within(ref, in, 0, x + i % 2, y + i / 2);
        luma = code > luma ? code : luma;
    }
    to_signal(ref,
              (double[]){value_of(ref, 0, luma), chroma_sample(ref, in, 0, x / 2, y / 2),
                         chroma_sample(ref, in, 1, x / 2, y / 2)},
              signal);
    return fmin(fmax(fmax(signal[0], fmax(signal[1], signal[2])), 0), 1);
}

static double block_signal(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], uint32_t x,
                           uint32_t y)
{
    double largest = 0;
    if (ref->shape.in.chroma_y_log2 && !is_rgb(&ref->shape.in) && !ref->shape.scale && !ref->reshape)
        return shared_chroma_signal(ref, in, x, y);
    for (uint32_t i = 0; i < 4; i++) {
        double signal[3];
        const uint32_t column = x + i % 2, row = y + i / 2;
        if (column >= ref->width || row >= ref->height)
            continue;
        ref_video_signal(ref, in, column, row, signal);
        largest = fmax(largest, fmax(signal[0], fmax(signal[1], signal[2])));
    }
    return largest;
}

/* Linear input: 16 bins to a stop, 2^-16 .. 2^16. */
static double bin_place(const struct ref_video *ref, double signal)
{
    if (ref->shape.transfer == COX_TRANSFER_LINEAR)
        return signal > 0 ? 16 * (log2(signal) + 16) : -1;
    return signal * COX_VIDEO_BINS;
}

void ref_video_histogram(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], double tolerance,
                         uint32_t counts[COX_VIDEO_BINS], uint32_t near[COX_VIDEO_BINS])
{
    memset(counts, 0, COX_VIDEO_HISTOGRAM_BYTES);
    memset(near, 0, COX_VIDEO_HISTOGRAM_BYTES);
    for (uint32_t y = 0; y < ref->height; y += 2) {
        for (uint32_t x = 0; x < ref->width; x += 2) {
            const double place = bin_place(ref, block_signal(ref, in, x, y));
            counts[(int)fmin(fmax(floor(place), 0), COX_VIDEO_BINS - 1)]++;
            if (fabs(place - round(place)) <= tolerance && round(place) >= 0 && round(place) < COX_VIDEO_BINS)
                near[(int)round(place)]++;
        }
    }
}

bool ref_video_same_histogram(const uint32_t *got, const uint32_t counts[COX_VIDEO_BINS],
                              const uint32_t near[COX_VIDEO_BINS], uint32_t *bin)
{
    /* The counts below an edge may differ by at most the number of blocks near that edge. */
    int64_t difference = 0;
    for (*bin = 0; *bin < COX_VIDEO_BINS; ++*bin) {
        if (llabs(difference) > near[*bin])
            return false;
        difference += (int64_t)got[*bin] - counts[*bin];
    }
    *bin = COX_VIDEO_BINS - 1;
    return difference == 0;
}
