/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_local_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

double local_case_noise(uint32_t *state)
{
    return next_number(state) % 20001 / 10000.0 - 1;
}

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

void local_case_put(const struct cox_tonemap_shape *shape, void *in, uint32_t x, uint32_t y, const double rgb[3])
{
    char *pixel = (char *)in + y * shape->in_pitch_bytes + x * (shape->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8);
    for (size_t i = 0; i < 4; i++) {
        const float value = i < 3 ? (float)rgb[i] : 1;
        const uint16_t half = i < 3 ? ref_to_half(rgb[i]) : 0x3c00;
        if (shape->in == COX_PIXEL_RGBA_FLOAT)
            memcpy(pixel + 4 * i, &value, 4);
        else
            memcpy(pixel + 2 * i, &half, 2);
    }
}

double local_case_code(const struct cox_tonemap_shape *shape, const void *out, uint32_t x, uint32_t y, uint32_t channel)
{
    const uint8_t *row = (const uint8_t *)out + y * shape->out_pitch_bytes;
    const size_t at = 4 * (size_t)x + channel;
    uint16_t word;
    if (shape->out != COX_PIXEL_RGBA16)
        return row[at];
    memcpy(&word, row + 2 * at, 2);
    return word;
}

void local_case_picture(const struct cox_tonemap_shape *shape, void *in, uint32_t seed)
{
    for (uint32_t y = 0; y < shape->height; y++) {
        for (uint32_t x = 0; x < shape->width; x++) {
            uint32_t patch = (y / 37 * 131 + x / 53) * 7919 + seed;
            next_number(&patch);
            const double base = next_number(&patch) % 20 - 14.0;
            const uint32_t colour = next_number(&patch) % 3;
            const double light = exp2(base + 0.35 * local_case_noise(&seed) + (next_number(&seed) % 500 ? 0 : 7));
            local_case_put(shape, in, x, y,
                           (double[]){light, colour < 1 ? light : light / 3, colour < 2 ? light : light / 20});
        }
    }
}

static void stored_at(const struct cox_tonemap_shape *shape, const void *in, uint32_t x, uint32_t y, double stored[4])
{
    const char *pixel = (const char *)in + y * shape->in_pitch_bytes + x * (shape->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8);
    for (size_t i = 0; i < 4; i++) {
        float value;
        uint16_t half;
        memcpy(&half, pixel + 2 * i, 2);
        memcpy(&value, pixel + (shape->in == COX_PIXEL_RGBA_FLOAT ? 4 * i : 0), 4);
        stored[i] = shape->in == COX_PIXEL_RGBA_FLOAT ? (double)value : ref_half(half);
    }
}

bool local_case_picture_error(const struct cox_tonemap_shape *shape, const struct cox_tonemap_settings *settings,
                              const void *in, const void *out, double *error)
{
    struct ref_operator operator;
    ref_operator_init(&operator, COX_OPERATOR_LOCAL, (double)settings->peak);
    if (!ref_tonemap_surround(&operator, settings, shape, in))
        return false;
    *error = 0;
    for (operator.y = 0; operator.y<shape->height; operator.y++) {
        for (operator.x = 0; operator.x<shape->width; operator.x++) {
            double stored[4], wanted[4];
            stored_at(shape, in, operator.x, operator.y, stored);
            ref_tonemap_pixel(&operator, settings, shape->in, stored, shape->out == COX_PIXEL_RGBA16 ? 65535 : 255,
                              wanted);
            for (uint32_t i = 0; i < 4; i++)
                *error = fmax(*error, fabs(local_case_code(shape, out, operator.x, operator.y, i) - round(wanted[i])));
        }
    }
    ref_local_free(&operator.local);
    return true;
}

/* --- Video -------------------------------------------------------------------------------------------------------- */

static struct cox_video_format format_of(enum cox_video_layout layout, uint32_t depth, uint32_t sub_x, uint32_t sub_y)
{
    return (struct cox_video_format){.layout = layout,
                                     .depth = depth,
                                     .high_bits = layout == COX_VIDEO_SEMI_PLANAR && depth == 10,
                                     .chroma_x_log2 = sub_x,
                                     .chroma_y_log2 = sub_y,
                                     .range = layout == COX_VIDEO_RGBA || layout == COX_VIDEO_BGRA ? COX_RANGE_FULL
                                                                                                   : COX_RANGE_LIMITED};
}

struct cox_video_shape local_case_film(uint32_t number)
{
    static const uint32_t sizes[LOCAL_FILMS][2] = {{515, 301}, {1, 1},    {83, 35},  {992, 61}, {131, 66}, {320, 181},
                                                   {2, 5},     {203, 67}, {118, 55}, {97, 49},  {150, 31}};
    const struct cox_video_format in[LOCAL_FILMS] = {
        format_of(COX_VIDEO_PLANAR, 10, 1, 1),      format_of(COX_VIDEO_PLANAR, 8, 1, 1),
        format_of(COX_VIDEO_SEMI_PLANAR, 10, 1, 1), format_of(COX_VIDEO_PLANAR, 16, 1, 0),
        format_of(COX_VIDEO_PLANAR, 12, 0, 0),      format_of(COX_VIDEO_RGBA, 16, 0, 0),
        format_of(COX_VIDEO_SEMI_PLANAR, 8, 1, 1),  format_of(COX_VIDEO_V210, 10, 1, 0),
        format_of(COX_VIDEO_GBR, 12, 0, 0),         format_of(COX_VIDEO_BGRA, 8, 0, 0),
        format_of(COX_VIDEO_SEMI_PLANAR, 10, 1, 0)};
    const bool linear = in[number].layout == COX_VIDEO_RGBA, narrow = number == 3;
    return (struct cox_video_shape){.width = sizes[number][0],
                                    .height = sizes[number][1],
                                    .in = in[number],
                                    .out = number == 2   ? format_of(COX_VIDEO_RGBA, 8, 0, 0)
                                           : number == 8 ? format_of(COX_VIDEO_GBR, 10, 0, 0)
                                           : number == 9 ? format_of(COX_VIDEO_BGRA, 8, 0, 0)
                                                         : format_of(COX_VIDEO_PLANAR, narrow ? 10 : 8, 1, !narrow),
                                    .transfer = linear       ? COX_TRANSFER_LINEAR
                                                : number % 2 ? COX_TRANSFER_HLG
                                                             : COX_TRANSFER_PQ,
                                    .primaries = number == 4 ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020,
                                    .op = COX_OPERATOR_LOCAL,
                                    .fade = number % 2 == 0};
}

static void put_code(const struct cox_video_format *format, void *row, size_t index, double code)
{
    const double most = (1u << format->depth) - 1;
    const uint32_t bits = (uint32_t)lrint(fmin(fmax(code, 0), most)) << (format->high_bits ? 16 - format->depth : 0);
    const uint16_t word = (uint16_t)bits;
    if (format->depth == 8)
        ((uint8_t *)row)[index] = (uint8_t)bits;
    else
        memcpy((char *)row + 2 * index, &word, 2);
}

/* The signal of the patch at a pixel, 0 .. 1, and how far its chroma lies from grey. */
static double signal_at(uint32_t x, uint32_t y, uint32_t seed, double *colour)
{
    uint32_t patch = (y / 29 * 131 + x / 41) * 7919 + seed;
    next_number(&patch);
    *colour = next_number(&patch) % 5 * 0.02;
    return next_number(&patch) % 80 / 100.0 + 0.02;
}

/* A frame of a layout whose planes are not those of its parts. */
static void local_case_parts(const struct cox_video_shape *shape, void *const in[COX_VIDEO_PLANES_MAX], uint32_t seed,
                             uint32_t noise)
{
    const struct cox_video_format *format = &shape->in;
    const double most = (1u << format->depth) - 1;
    for (int part = 0; part < 3; part++) {
        const uint32_t log2 = part ? format->chroma_x_log2 : 0; /* 4:2:0 has planes */
        const bool chroma = part && format->layout == COX_VIDEO_V210;
        for (uint32_t y = 0; y < shape->height; y++)
            for (uint32_t i = 0; i <= (shape->width - 1) >> log2; i++) {
                double colour;
                const double luma = signal_at(i << log2, y, seed, &colour) + 0.01 * local_case_noise(&noise);
                const double code = chroma ? 0.5 + (part == 2 ? -colour : colour)
                                           : 0.0625 + 0.86 * (luma + (part == 2 ? colour : 0));
                ref_video_put_part(shape, in, part, i, y, (uint32_t)lrint(most * fmin(fmax(code, 0), 1)));
            }
    }
}

void local_case_frame(const struct cox_video_shape *shape, void *const in[COX_VIDEO_PLANES_MAX], uint32_t seed,
                      uint32_t noise)
{
    const struct cox_video_format *format = &shape->in;
    const double most = (1u << format->depth) - 1;
    if (format->layout > COX_VIDEO_RGBA) {
        local_case_parts(shape, in, seed, noise);
        return;
    }
    const bool rgba = format->layout == COX_VIDEO_RGBA;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(format, shape->width, shape->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        const bool semi = p && format->layout == COX_VIDEO_SEMI_PLANAR;
        const uint32_t samples = (uint32_t)(planes[p].row_bytes / planes[p].sample_bytes);
        for (uint32_t i = 0; i < samples * planes[p].rows; i++) {
            const uint32_t at = i % samples, y = i / samples;
            const uint32_t x = rgba ? at / 4 : (semi ? at / 2 : at) << (p ? format->chroma_x_log2 : 0);
            char *row = (char *)in[p] + y * shape->in_pitch_bytes[p];
            double colour;
            const double luma = signal_at(x, y * planes[p].row_divisor, seed, &colour) +
                                0.01 * local_case_noise(&noise);
            const uint16_t half = ref_to_half(fmax(luma, 0));
            const double chroma = 0.5 + (p == 2 || (semi && at % 2) ? -colour : colour);
            if (rgba)
                memcpy(row + 2 * (size_t)at, &half, 2);
            else
                put_code(format, row, at, most * (p ? chroma : 0.0625 + 0.86 * luma));
        }
    }
}

bool local_case_frame_error(const struct cox_video_shape *shape, const struct cox_video_settings *settings,
                            const void *const in[COX_VIDEO_PLANES_MAX], const void *const out[COX_VIDEO_PLANES_MAX],
                            double *error)
{
    struct ref_video ref;
    double *real[COX_VIDEO_PLANES_MAX];
    ref_video_init(&ref, shape, settings);
    if (!ref_video_map(&ref, in, real))
        return false;
    *error = 0;
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX && real[p]; p++) {
        const struct ref_plane plane = ref_video_plane(&shape->out, shape->width, shape->height, p);
        const size_t row = (size_t)plane.width * plane.channels;
        for (size_t i = 0; i < row * plane.height; i++) {
            const uint32_t y = (uint32_t)(i / row), x = (uint32_t)(i % row / plane.channels);
            const double got = ref_video_sample(&shape->out, out[p], shape->out_pitch_bytes[p], i % row, y);
            *error = fmax(*error, fabs(got - ref_video_code(&ref, real[p][i], x, y)));
        }
        free(real[p]);
    }
    return true;
}
