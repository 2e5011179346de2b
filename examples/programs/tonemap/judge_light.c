/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_light.h"
#include "common/strict_fp.h"
#include "media/primaries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double white_nits = 100;

/* The curve of the display has equal steps of the signal. That of PQ has 128 steps in each of the
 * octaves from 2^-32, which counts as black, to 2^8. A float's exponent and its first seven bits are
 * the place in it. */
enum { CURVE_STEPS = 4096, OCTAVES = 40, OCTAVE_STEPS = 128, PQ_FIRST = (127 - 32) * OCTAVE_STEPS };

/* Where the samples of a component are. */
struct component {
    uint32_t plane, first, step; /* in samples */
    uint32_t x_log2, y_log2;     /* one for several pixels */
    float zero, scale;           /* signal = (code - zero) * scale */
};

struct judge_light {
    uint32_t width;
    bool rgb;
    uint32_t sample_bytes, shift;
    struct component components[3]; /* Y', Cb, Cr or R', G', B' */
    float cr_to_r, cb_to_g, cr_to_g, cb_to_b;
    float white;     /* the signal that counts as clipped, to half a code of 8 bits */
    float luma[3];   /* the weights of R', G' and B' */
    float to_lms[9]; /* from the light of R, G, B */
    float curve[CURVE_STEPS + 2];
    float pq[OCTAVES * OCTAVE_STEPS + 2];
    float *loaded[3]; /* a row of each component */
};

/* --- Tables --- */

/* SMPTE ST 2084. */
static double pq_of(double nits)
{
    const double m1 = 2610.0 / 16384, m2 = 2523.0 / 32, c1 = 3424.0 / 4096, c2 = 2413.0 / 128,
                 c3 = 2392.0 / 128, light = pow(nits / 10000, m1);
    return pow((c1 + c2 * light) / (1 + c3 * light), m2);
}

static double pq_nits(double signal)
{
    const double m1 = 2610.0 / 16384, m2 = 2523.0 / 32, c1 = 3424.0 / 4096, c2 = 2413.0 / 128,
                 c3 = 2392.0 / 128, power = pow(signal, 1 / m2);
    return 10000 * pow(fmax(power - c1, 0) / (c2 - c3 * power), 1 / m1);
}

static double light_of(double signal, enum cox_encoding curve)
{
    switch (curve) {
    case COX_ENCODING_PQ:
        return pq_nits(fmin(signal, 1)) / white_nits;
    case COX_ENCODING_SRGB:
        return signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4);
    default:
        return pow(signal, 2.4);
    }
}

static void fill_curve(struct judge_light *light, enum cox_encoding curve)
{
    for (int i = 0; i < CURVE_STEPS + 2; i++)
        light->curve[i] = (float)light_of((double)i / CURVE_STEPS, curve);
}

static void fill_pq(struct judge_light *light)
{
    for (int i = 0; i < OCTAVES * OCTAVE_STEPS + 2; i++) {
        const double mantissa = 1 + (double)(i % OCTAVE_STEPS) / OCTAVE_STEPS;
        light->pq[i] = (float)pq_of(white_nits * ldexp(mantissa, i / OCTAVE_STEPS - 32));
    }
    light->pq[0] = (float)pq_of(0);
}

struct judge_light *judge_light_create(uint32_t width)
{
    struct judge_light *light = calloc(1, sizeof *light);
    float *memory = malloc(3 * (size_t)width * sizeof *memory);
    if (!light || !memory) {
        free(light);
        free(memory);
        return NULL;
    }

    light->width = width;
    for (size_t c = 0; c < 3; c++)
        light->loaded[c] = memory + c * width;
    fill_pq(light);
    return light;
}

void judge_light_destroy(struct judge_light **light)
{
    if (*light)
        free((*light)->loaded[0]);
    free(*light);
    *light = NULL;
}

/* --- Codings --- */

static void place_components(struct judge_light *light, const struct cox_video_format *pixel)
{
    static const struct component places[][3] = {
        [COX_VIDEO_PLANAR] = {{.plane = 0, .step = 1},
                              {.plane = 1, .step = 1},
                              {.plane = 2, .step = 1}},
        [COX_VIDEO_SEMI_PLANAR] = {{.plane = 0, .step = 1},
                                   {.plane = 1, .step = 2},
                                   {.plane = 1, .first = 1, .step = 2}},
        [COX_VIDEO_RGBA] = {{.step = 4}, {.first = 1, .step = 4}, {.first = 2, .step = 4}},
        [COX_VIDEO_BGRA] = {{.first = 2, .step = 4}, {.first = 1, .step = 4}, {.step = 4}},
        [COX_VIDEO_GBR] = {
            {.plane = 2, .step = 1}, {.plane = 0, .step = 1}, {.plane = 1, .step = 1}}};
    const bool packed = pixel->layout == COX_VIDEO_RGBA || pixel->layout == COX_VIDEO_BGRA;
    const bool limited = pixel->range == COX_RANGE_LIMITED && !packed;
    const float unit = (float)(1U << (pixel->depth - 8)), most = (float)((1U << pixel->depth) - 1);

    light->rgb = packed || pixel->layout == COX_VIDEO_GBR;
    light->sample_bytes = pixel->depth > 8 ? 2 : 1;
    light->shift = pixel->msb_aligned ? 16 - pixel->depth : 0;
    for (int c = 0; c < 3; c++) {
        const bool chroma = c && !light->rgb;
        struct component *component = &light->components[c];
        *component = places[pixel->layout][c];
        component->zero = limited ? 16 * unit : 0;
        component->scale = limited ? 1 / (219 * unit) : 1 / most;
        if (!chroma)
            continue;

        component->x_log2 = pixel->chroma_x_log2;
        component->y_log2 = pixel->chroma_y_log2;
        component->zero = 128 * unit;
        if (limited)
            component->scale = 1 / (224 * unit);
    }
}

/* Y'CbCr to R'G'B'. */
static void set_matrix(struct judge_light *light, const struct judge_coding *coding)
{
    static const double weights[][2] = {/* of red and blue */
                                        [COX_MATRIX_AUTO] = {0.2126, 0.0722},
                                        [COX_MATRIX_BT2020] = {0.2627, 0.0593},
                                        [COX_MATRIX_BT709] = {0.2126, 0.0722},
                                        [COX_MATRIX_BT601] = {0.299, 0.114}};
    enum cox_matrix matrix = coding->matrix;
    if (matrix == COX_MATRIX_AUTO && coding->primaries == COX_PRIMARIES_BT2020)
        matrix = COX_MATRIX_BT2020;
    else if (matrix == COX_MATRIX_AUTO && (coding->primaries == COX_PRIMARIES_BT601_525 ||
                                           coding->primaries == COX_PRIMARIES_BT601_625))
        matrix = COX_MATRIX_BT601;

    const double red = weights[matrix][0], blue = weights[matrix][1], green = 1 - red - blue;
    light->luma[0] = (float)red;
    light->luma[1] = (float)green;
    light->luma[2] = (float)blue;
    light->cr_to_r = (float)(2 * (1 - red));
    light->cb_to_b = (float)(2 * (1 - blue));
    light->cr_to_g = (float)(-2 * red * (1 - red) / green);
    light->cb_to_g = (float)(-2 * blue * (1 - blue) / green);
}

/* Light of R, G, B to BT.709, to BT.2020 (BT.2087), to L, M, S (BT.2100). */
static void set_primaries(struct judge_light *light, enum cox_primaries which)
{
    static const struct primaries known[] = {
        [COX_PRIMARIES_BT2020] = {{0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}, {0.3127, 0.3290}},
        [COX_PRIMARIES_BT709] = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}},
        [COX_PRIMARIES_P3_D65] = {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.3127, 0.3290}},
        [COX_PRIMARIES_P3_DCI] = {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.314, 0.351}},
        [COX_PRIMARIES_BT601_525] = {{0.630, 0.340},
                                     {0.310, 0.595},
                                     {0.155, 0.070},
                                     {0.3127, 0.3290}},
        [COX_PRIMARIES_BT601_625] = {{0.64, 0.33}, {0.29, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}}};
    static const double to_2020[9] = {0.627403896, 0.329283038, 0.043313066,
                                      0.069097289, 0.919540395, 0.011362316,
                                      0.016391439, 0.088013308, 0.895595253};
    static const double to_lms[9] = {1688, 2146, 262, 683, 2951, 462, 99, 309, 3688};
    float to_709[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double wide[9];
    primaries_to_bt709(&known[which], to_709);

    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++)
            wide[row * 3 + column] = to_2020[row * 3] * (double)to_709[column] +
                                     to_2020[row * 3 + 1] * (double)to_709[3 + column] +
                                     to_2020[row * 3 + 2] * (double)to_709[6 + column];
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++)
            light->to_lms[row * 3 + column] = (float)((to_lms[row * 3] * wide[column] +
                                                       to_lms[row * 3 + 1] * wide[3 + column] +
                                                       to_lms[row * 3 + 2] * wide[6 + column]) /
                                                      4096);
}

void judge_light_set(struct judge_light *light, const struct judge_coding *coding)
{
    place_components(light, &coding->pixel);
    set_matrix(light, coding);
    set_primaries(light, coding->primaries);
    fill_curve(light, coding->curve);
    light->white = 254.5F / 255;
    if (coding->curve == COX_ENCODING_PQ)
        light->white = (float)(pq_of(coding->peak_nits) - 0.5 / 255);
}

/* --- Rows --------------------------------------------------------------------------------------
 * Loops are short and without branches, so that compilers vectorise them. */

static void load(const struct judge_light *light, const struct component *from,
                 const struct judge_frame *frame, uint32_t y, float *restrict to)
{
    const uint8_t *row = (const uint8_t *)frame->planes[from->plane] +
                         (size_t)(y >> from->y_log2) * frame->pitch_bytes[from->plane];
    const size_t count = ((light->width - 1) >> from->x_log2) + 1, step = from->step;
    const uint32_t shift = light->shift;
    const float zero = from->zero, scale = from->scale;

    row += from->first * light->sample_bytes;
    for (size_t x = 0; x < count && light->sample_bytes == 1; x++)
        to[x] = ((float)row[x * step] - zero) * scale;
    for (size_t x = 0; x < count && light->sample_bytes == 2; x++) {
        uint16_t code;
        memcpy(&code, row + 2 * x * step, sizeof code);
        to[x] = ((float)(code >> shift) - zero) * scale;
    }

    for (size_t x = light->width; x-- > 0 && from->x_log2;)
        to[x] = to[x >> from->x_log2];
}

static void take_luma(const struct judge_light *light, int32_t *restrict luma)
{
    const float *restrict one = light->loaded[0], *restrict two = light->loaded[1],
                          *restrict three = light->loaded[2];
    const float units = 219 * JUDGE_LUMA_UNITS;
    const float red = light->rgb ? light->luma[0] : 1, green = light->rgb ? light->luma[1] : 0,
                blue = light->rgb ? light->luma[2] : 0;
    const size_t width = light->width;

    /* A cast cuts off after the point, so that the value must not be negative. */
    for (size_t x = 0; x < width; x++) {
        const float signal = red * one[x] + green * two[x] + blue * three[x];
        luma[x] = (int32_t)((signal + 1) * units + 0.5F) - 219 * JUDGE_LUMA_UNITS;
    }
}

/* Y'CbCr to R'G'B', in place. */
static void take_colours(struct judge_light *light)
{
    float *restrict one = light->loaded[0], *restrict two = light->loaded[1],
                    *restrict three = light->loaded[2];
    const float cr_to_r = light->cr_to_r, cb_to_g = light->cb_to_g, cr_to_g = light->cr_to_g,
                cb_to_b = light->cb_to_b;
    const size_t width = light->width;

    for (size_t x = 0; x < width; x++) {
        const float luma = one[x], cb = two[x], cr = three[x];
        one[x] = luma + cr_to_r * cr;
        two[x] = luma + cb_to_g * cb + cr_to_g * cr;
        three[x] = luma + cb_to_b * cb;
    }
}

static void limit(float *restrict values, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        const float value = values[x] > 0 ? values[x] : 0;
        values[x] = value < 1 ? value : 1;
    }
}

/* Count the pixels at a limit. */
static void count_clipped(const struct judge_light *light, struct judge_row *row)
{
    const float *restrict r = light->loaded[0], *restrict g = light->loaded[1],
                          *restrict b = light->loaded[2];
    const float black = 0.5F / 255, white = light->white;
    const size_t width = light->width;
    int bright = 0, dark = 0;

    for (size_t x = 0; x < width; x++) {
        bright += (r[x] >= white) | (g[x] >= white) | (b[x] >= white);
        dark += (r[x] <= black) | (g[x] <= black) | (b[x] <= black);
    }
    row->white += (uint64_t)bright;
    row->black += (uint64_t)dark;
}

/* Between the two nearest entries of a table. */
static inline float between(const float *entry, float part)
{
    return entry[0] + (entry[1] - entry[0]) * part;
}

/* The light of signals. */
static void take_light(const float *restrict curve, float *restrict values, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        const float place = values[x] * CURVE_STEPS;
        const int step = (int)place;
        values[x] = between(curve + step, place - (float)step);
    }
}

/* The light of L, M or S, and its PQ. */
static void take_cone(const struct judge_light *light, const float weights[3], float *restrict to)
{
    const float *restrict r = light->loaded[0], *restrict g = light->loaded[1],
                          *restrict b = light->loaded[2], *restrict pq = light->pq;
    const float red = weights[0], green = weights[1], blue = weights[2], least = 0x1p-32F;
    const size_t width = light->width;
    for (size_t x = 0; x < width; x++) {
        const float value = red * r[x] + green * g[x] + blue * b[x];
        to[x] = value > least ? value : least;
    }

    for (size_t x = 0; x < width; x++) {
        uint32_t bits;
        memcpy(&bits, &to[x], sizeof bits);
        to[x] = between(pq + (bits >> 16) - PQ_FIRST, (float)(int)(bits & 0xffff) * 0x1p-16F);
    }
}

void judge_light_row(struct judge_light *light, const struct judge_frame *frame, uint32_t y,
                     struct judge_row *row)
{
    for (int c = 0; c < 3; c++)
        load(light, &light->components[c], frame, y, light->loaded[c]);
    take_luma(light, row->luma);
    if (!light->rgb)
        take_colours(light);

    for (int c = 0; c < 3; c++)
        limit(light->loaded[c], light->width);
    count_clipped(light, row);

    for (int c = 0; c < 3; c++)
        take_light(light->curve, light->loaded[c], light->width);
    take_cone(light, light->to_lms, row->i);
    take_cone(light, light->to_lms + 3, row->t);
    take_cone(light, light->to_lms + 6, row->p);

    /* BT.2100 and BT.2124: I, T = CT / 2 and P = CP. */
    float *restrict i = row->i, *restrict t = row->t, *restrict p = row->p;
    for (size_t x = 0; x < light->width; x++) {
        const float l = i[x], m = t[x], s = p[x];
        i[x] = 0.5F * l + 0.5F * m;
        t[x] = (6610 * l - 13613 * m + 7003 * s) * (1.0F / 8192);
        p[x] = (17933 * l - 17390 * m - 543 * s) * (1.0F / 4096);
    }
}
