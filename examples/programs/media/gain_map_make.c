/* SPDX-License-Identifier: Apache-2.0 */
#include "gain_map_make.h"
#include "half.h"
#include "icc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 2 }; /* of a side of the picture for one sample */

static const float offset = 1.0f / 64;

struct making {
    const struct picture_light *light;
    const uint8_t *sdr;
    size_t pitch_bytes;
    uint32_t width, height;
    struct icc_rgb srgb;
    float brightest;
};

/* A pixel's light in multiples of SDR white, and not above the peak. */
static void read_light(struct making *making, const uint8_t *row, uint32_t x, float rgb[3])
{
    const struct picture_light *light = making->light;
    uint16_t half[3];
    if (light->pixel == COX_PIXEL_RGBA_FLOAT)
        memcpy(rgb, row + (size_t)x * 16, 3 * sizeof *rgb);
    else
        memcpy(half, row + (size_t)x * 8, sizeof half);

    float most = 0;
    for (int c = 0; c < 3; c++) {
        const float value = light->pixel == COX_PIXEL_RGBA_FLOAT ? rgb[c] : half_to_float(half[c]);
        rgb[c] = value > 0 ? fminf(value, 0x1p32f) * light->gain : 0;
        most = fmaxf(most, rgb[c]);
    }

    /* All channels together, which keeps the hue. */
    for (int c = 0; c < 3 && most > light->peak; c++)
        rgb[c] *= light->peak / most;
    making->brightest = fmaxf(making->brightest, fminf(most, light->peak));
}

/* The first pixel of a sample. */
static uint32_t first_of(uint32_t sample, uint32_t samples, uint32_t side)
{
    return (uint32_t)((uint64_t)sample * side / samples);
}

/* The mean gain of the pixels of a sample. */
static void mean_gain(struct making *making, const struct gain_map_made *made, uint32_t column,
                      uint32_t row, float gains[3])
{
    const uint32_t x0 = first_of(column, made->width, making->width);
    const uint32_t x1 = first_of(column + 1, made->width, making->width);
    const uint32_t y0 = first_of(row, made->height, making->height);
    const uint32_t y1 = first_of(row + 1, made->height, making->height);
    float sums[3] = {0};

    for (uint32_t y = y0; y < y1; y++) {
        const uint8_t *codes = making->sdr + y * making->pitch_bytes;
        const uint8_t *light = (const uint8_t *)making->light->pixels +
                               y * making->light->pitch_bytes;
        for (uint32_t x = x0; x < x1; x++) {
            float rgb[3];
            read_light(making, light, x, rgb);
            for (size_t c = 0; c < 3; c++)
                sums[c] += log2f((rgb[c] + offset) /
                                 (making->srgb.curve[codes[(size_t)x * 4 + c]] + offset));
        }
    }

    const float count = (float)((x1 - x0) * (y1 - y0));
    for (int c = 0; c < 3; c++)
        gains[c] = fminf(fmaxf(sums[c] / count, -16), 16);
}

/* The range of the gains, and the samples in it. */
static void quantise(struct gain_map_made *made, const float *gains)
{
    const size_t count = (size_t)made->width * made->height;

    for (size_t c = 0; c < 3; c++) {
        float least = gains[c], most = gains[c];
        for (size_t i = 1; i < count; i++) {
            least = fminf(least, gains[3 * i + c]);
            most = fmaxf(most, gains[3 * i + c]);
        }
        made->least[c] = floor(least * 65536.0) / 65536;
        made->most[c] = ceil(most * 65536.0) / 65536;

        const double range = made->most[c] - made->least[c];
        const float zero = (float)made->least[c];
        const float scale = range > 0 ? (float)(255 / range) : 0;
        for (size_t i = 0; i < count; i++)
            made->pixels[3 * i + c] = (uint8_t)fminf((gains[3 * i + c] - zero) * scale + 0.5f, 255);
    }
}

bool gain_map_make(const struct picture_light *light, const uint8_t *sdr, size_t pitch_bytes,
                   uint32_t width, uint32_t height, struct gain_map_made *made, struct error *error)
{
    struct making making = {light, sdr, pitch_bytes, width, height, {{0}, {0}}, 0};
    *made = (struct gain_map_made){.width = (width + PIXELS - 1) / PIXELS,
                                   .height = (height + PIXELS - 1) / PIXELS};
    const size_t count = (size_t)made->width * made->height;
    float *gains = malloc(count * 3 * sizeof *gains);
    made->pixels = malloc(count * 3);
    if (!gains || !made->pixels) {
        free(gains);
        gain_map_free(made);
        return error_set(error, "out of memory");
    }

    icc_srgb(&making.srgb);
    for (uint32_t y = 0; y < made->height; y++)
        for (uint32_t x = 0; x < made->width; x++)
            mean_gain(&making, made, x, y, gains + 3 * ((size_t)y * made->width + x));
    quantise(made, gains);
    free(gains);

    const double stops = making.brightest > 1 ? log2((double)making.brightest) : 0;
    made->headroom = fmin(fmax(ceil(stops * 65536) / 65536, 1.0 / 16), 16);
    return true;
}

void gain_map_free(struct gain_map_made *made)
{
    free(made->pixels);
    made->pixels = NULL;
}
