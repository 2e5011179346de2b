/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_light.h"
#include "common/strict_fp.h"
#include "media/primaries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double white_nits = 100;

/* The curve of the display has equal steps of the signal. That of PQ has 128 steps in each of the
 * octaves from 2^-32 to 2 of the light, and is linear below: a float's exponent and its first seven
 * bits are the place in it. */
enum { CURVE_STEPS = 4096, OCTAVES = 33, OCTAVE_STEPS = 128, PQ_FIRST = (127 - 32) * OCTAVE_STEPS };

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

static double light_of(double signal, bool srgb)
{
    if (!srgb)
        return pow(signal, 2.4);

    return signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4);
}

static void fill_curve(struct judge_light *light, bool srgb)
{
    for (int i = 0; i < CURVE_STEPS + 2; i++)
        light->curve[i] = (float)light_of((double)i / CURVE_STEPS, srgb);
}

static void fill_pq(struct judge_light *light)
{
    for (int i = 0; i < OCTAVES * OCTAVE_STEPS + 2; i++) {
        const double mantissa = 1 + (double)(i % OCTAVE_STEPS) / OCTAVE_STEPS;
        light->pq[i] = (float)pq_of(white_nits * ldexp(mantissa, i / OCTAVE_STEPS - 32));
    }
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
    fill_curve(light, coding->srgb);
}

/* --- Rows --- */

static void load(const struct judge_light *light, const struct component *from,
                 const struct judge_frame *frame, uint32_t y, float *to)
{
    const uint8_t *row = (const uint8_t *)frame->planes[from->plane] +
                         (size_t)(y >> from->y_log2) * frame->pitch_bytes[from->plane];

    for (uint32_t x = 0; x < light->width; x++) {
        const size_t place = from->first + (size_t)(x >> from->x_log2) * from->step;
        uint16_t code = row[place * light->sample_bytes];
        if (light->sample_bytes == 2)
            memcpy(&code, row + 2 * place, sizeof code);
        to[x] = ((float)(code >> light->shift) - from->zero) * from->scale;
    }
}

/* Between the two nearest entries of a table. */
static inline float between(const float *entry, float part)
{
    return entry[0] + (entry[1] - entry[0]) * part;
}

static inline float curve_at(const struct judge_light *light, float signal)
{
    const float place = signal * CURVE_STEPS;
    const int step = (int)place;

    return between(light->curve + step, place - (float)step);
}

static inline float pq_at(const struct judge_light *light, float value)
{
    const float least = 0x1p-32F;
    uint32_t bits;
    if (value < least)
        return light->pq[0] * (value * 0x1p32F);

    memcpy(&bits, &value, sizeof bits);
    return between(light->pq + (bits >> 16) - PQ_FIRST, (float)(bits & 0xffff) * 0x1p-16F);
}

static inline float limited(float value)
{
    value = value > 0 ? value : 0;
    return value < 1 ? value : 1;
}

/* BT.2100 and BT.2124: I, T = CT / 2 and P = CP. */
static inline void put_itp(const struct judge_light *light, const float rgb[3], float *i, float *t,
                           float *p)
{
    float linear[3], lms[3];
    for (int c = 0; c < 3; c++)
        linear[c] = curve_at(light, rgb[c]);
    for (int c = 0; c < 3; c++)
        lms[c] = pq_at(light, light->to_lms[c * 3] * linear[0] +
                                  light->to_lms[c * 3 + 1] * linear[1] +
                                  light->to_lms[c * 3 + 2] * linear[2]);

    *i = 0.5F * lms[0] + 0.5F * lms[1];
    *t = (6610 * lms[0] - 13613 * lms[1] + 7003 * lms[2]) / 8192;
    *p = (17933 * lms[0] - 17390 * lms[1] - 543 * lms[2]) / 4096;
}

void judge_light_row(const struct judge_light *light, const struct judge_frame *frame, uint32_t y,
                     struct judge_row *row)
{
    const float black = 0.5F / 255, white = 254.5F / 255, units = 219 * JUDGE_LUMA_UNITS;
    for (int c = 0; c < 3; c++)
        load(light, &light->components[c], frame, y, light->loaded[c]);

    for (uint32_t x = 0; x < light->width; x++) {
        const float one = light->loaded[0][x], two = light->loaded[1][x],
                    three = light->loaded[2][x];
        float rgb[3] = {one, two, three}, luma = one;
        if (light->rgb) {
            luma = light->luma[0] * one + light->luma[1] * two + light->luma[2] * three;
        } else {
            rgb[0] = one + light->cr_to_r * three;
            rgb[1] = one + light->cb_to_g * two + light->cr_to_g * three;
            rgb[2] = one + light->cb_to_b * two;
        }

        bool bright = false, dark = false;
        for (int c = 0; c < 3; c++) {
            rgb[c] = limited(rgb[c]);
            bright |= rgb[c] >= white;
            dark |= rgb[c] <= black;
        }
        row->white += bright;
        row->black += dark;
        row->luma[x] = (int32_t)floorf(luma * units + 0.5F);
        put_itp(light, rgb, row->i + x, row->t + x, row->p + x);
    }
}
