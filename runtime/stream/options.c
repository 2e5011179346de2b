/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "video/scene.h"

#include <string.h>

/* Any valid shape: with it cox_video_prepare checks the options. */
static const struct cox_video_shape try_on = {
    .width = 2,
    .height = 2,
    .in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
    .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
    .in_pitch_bytes = {4, 4, 4},
    .out_pitch_bytes = {4, 4, 4},
};

static bool is_choice(enum cox_tristate choice)
{
    return (unsigned)choice <= COX_YES;
}

cox_status cox__options_read(struct cox_tonemap_options *to, const struct cox_tonemap_options *from)
{
    *to = (struct cox_tonemap_options){0};
    if (from)
        *to = *from;
    to->settings.reshape = NULL; /* frames have these */
    to->settings.hdr10plus = NULL;

    if (!is_choice(to->dither) || (unsigned)to->gamut > COX_GAMUT_ALWAYS_HUE ||
        (unsigned)to->peak > COX_PEAK_FIXED)
        return COX_E_INVALID;
    if (!to->lut_points != !to->lut_table || (to->lut_points && to->peak != COX_PEAK_FIXED))
        return COX_E_INVALID;

    struct cox_video_shape shape = try_on;
    struct cox_constants params;
    shape.op = to->op;
    shape.lut_points = to->lut_points;
    return cox_video_prepare(&shape, &to->settings, &params);
}

static bool chosen(enum cox_tristate choice, bool otherwise)
{
    if (choice == COX_AUTO)
        return otherwise;

    return choice == COX_YES;
}

void cox__options_shape(const struct cox_tonemap_options *look, const struct cox_video_image *in,
                        const struct cox_video_image *out, struct cox_video_shape *shape)
{
    const bool halved = in->width == 2 * (uint64_t)out->width &&
                        in->height == 2 * (uint64_t)out->height;
    const bool scaled = in->width != out->width || in->height != out->height;

    memset(shape, 0, sizeof *shape);
    shape->width = in->width;
    shape->height = in->height;
    shape->in = in->format;
    shape->out = out->format;
    shape->transfer = in->transfer;
    shape->primaries = in->primaries;
    shape->encoding = out->encoding;
    shape->out_primaries = out->out_primaries;
    shape->matrix = in->matrix;
    if (in->reshape) { /* its matrices are in it */
        shape->reshape = true;
        shape->transfer = COX_TRANSFER_PQ;
        shape->primaries = COX_PRIMARIES_BT2020;
        shape->matrix = COX_MATRIX_AUTO;
        shape->in.range = COX_RANGE_LIMITED;
    }
    shape->op = look->op;
    shape->lut_points = look->lut_points;
    shape->desaturate_highlights = look->settings.desaturate >= 0;

    shape->dither = COX_DITHER_NONE;
    if (chosen(look->dither, out->format.depth < in->format.depth))
        shape->dither = COX_DITHER_ORDERED;
    const bool is_sdr = shape->transfer == COX_TRANSFER_SDR;
    const bool fits = shape->primaries == COX_PRIMARIES_BT709 ||
                      shape->out_primaries == COX_OUT_BT2020 ||
                      (is_sdr && shape->primaries >= COX_PRIMARIES_BT601_525);
    shape->gamut = fits ? COX_GAMUT_CLIP : COX_GAMUT_COMPRESS;
    if (look->gamut != COX_GAMUT_AUTO)
        shape->gamut = (enum cox_gamut)(look->gamut - COX_GAMUT_ALWAYS_CLIP);

    if (halved && look->box_downscale) {
        shape->scale = COX_SCALE_HALF;
    } else if (scaled) {
        shape->scale = COX_SCALE_FILTER;
        shape->out_width = out->width;
        shape->out_height = out->height;
    }
}

static bool formats_alike(const struct cox_video_format *a, const struct cox_video_format *b)
{
    return a->layout == b->layout && a->depth == b->depth && a->msb_aligned == b->msb_aligned &&
           a->chroma_x_log2 == b->chroma_x_log2 && a->chroma_y_log2 == b->chroma_y_log2 &&
           a->chroma_location == b->chroma_location && a->range == b->range;
}

bool cox__options_shapes_alike(const struct cox_video_shape *a, const struct cox_video_shape *b)
{
    return a->width == b->width && a->height == b->height && formats_alike(&a->in, &b->in) &&
           formats_alike(&a->out, &b->out) && a->transfer == b->transfer &&
           a->primaries == b->primaries && a->matrix == b->matrix && a->reshape == b->reshape &&
           a->op == b->op && a->desaturate_highlights == b->desaturate_highlights &&
           a->dither == b->dither && a->gamut == b->gamut && a->encoding == b->encoding &&
           a->out_primaries == b->out_primaries && a->scale == b->scale &&
           a->out_width == b->out_width && a->out_height == b->out_height &&
           a->lut_points == b->lut_points;
}

bool cox__options_pitches_alike(const struct cox_video_shape *a, const struct cox_video_shape *b)
{
    return !memcmp(a->in_pitch_bytes, b->in_pitch_bytes, sizeof a->in_pitch_bytes) &&
           !memcmp(a->out_pitch_bytes, b->out_pitch_bytes, sizeof a->out_pitch_bytes);
}

static bool same(float a, float b)
{
    return a <= b && a >= b;
}

bool cox__options_alike(const struct cox_video_settings *a, const struct cox_video_settings *b)
{
    return same(a->sdr_white_nits, b->sdr_white_nits) && same(a->peak_nits, b->peak_nits) &&
           same(a->hlg_peak_nits, b->hlg_peak_nits) && same(a->gain, b->gain) &&
           same(a->desaturate, b->desaturate) && same(a->detail, b->detail) &&
           same(a->gamut_knee, b->gamut_knee) && a->top_bar_rows == b->top_bar_rows &&
           a->bottom_bar_rows == b->bottom_bar_rows && !a->reshape && !b->reshape &&
           !a->hdr10plus && !b->hdr10plus;
}

/* The peak that a stream declares, if it can be true: HDR is brighter than SDR white, and PQ ends
 * at 10 000 cd/m2. Otherwise 0. */
static float believed_nits(const struct cox_tonemap_options *look, float said_nits)
{
    float white_nits = 203.0f;
    if (look->settings.sdr_white_nits > 0)
        white_nits = look->settings.sdr_white_nits;

    if (said_nits >= white_nits && said_nits <= 10000.0f)
        return said_nits;
    return 0.0f;
}

void cox__options_follow_curve(struct cox__curve *curve, const struct cox_tonemap_options *look,
                               const struct cox_video_shape *shape, float peak_said_nits,
                               const cox_buffer *histogram, struct cox_video_result *result)
{
    const uint32_t *counts = cox_buffer_data(histogram);
    struct cox__scene scene;
    struct cox_video_settings found = look->settings;
    const float said_nits = believed_nits(look, peak_said_nits);
    if (found.prior_nits <= 0)
        found.prior_nits = said_nits;
    if (look->trust_peak && said_nits > 0)
        found.most_nits = said_nits;

    cox__scene_read(shape, &look->settings, counts, &scene);
    result->scene_peak_nits = scene.peak_nits;
    result->scene_average_nits = scene.average_nits;
    result->cut = cox_video_adapt(&curve->steer, shape, counts, &found);

    curve->peak_nits = found.peak_nits;
    curve->gain = found.gain;
    curve->begun = true;
}

/* Keep a value in the range that cox_video_prepare accepts; with the gain it may leave that. */
static float within(float value, float least, float most)
{
    if (value < least)
        return least;
    if (value > most)
        return most;

    return value;
}

struct cox_video_settings cox__options_curve_settings(const struct cox__curve *curve,
                                                      const struct cox_tonemap_options *look)
{
    struct cox_video_settings settings = look->settings;
    if (look->peak == COX_PEAK_FIXED || !curve->begun)
        return settings;

    const float gain = settings.gain > 0 ? settings.gain : 1.0f;
    settings.gain = within(curve->gain * gain, 0x1p-32f, 0x1p32f);
    settings.peak_nits = within(curve->peak_nits * gain, 1.0f, 1e6f);
    return settings;
}
