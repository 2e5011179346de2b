/* A synthetic scene for kernel measurements: smooth light and shadow over eighteen stops, texture,
 * grain, and tinted highlights. The time of a kernel depends on its input, above all for
 * histograms, so the scene is neither constant nor noise. It is the same on every machine, except
 * for the last bits of the C library's functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"
#include "media/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Light is stored as its logarithm, in steps of 1/128 stop, from -12 to +8 stops of SDR white. */
enum { STEPS = 128, STOPS_LOW = -12, STOPS_HIGH = 8, LEVELS = STEPS * (STOPS_HIGH - STOPS_LOW) };

struct bench_scene {
    uint32_t width, height;
    uint16_t *level[3]; /* R, G, B */
};

/* --- the scene --- */

static uint32_t hash(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = x * 0x9e3779b1u ^ y * 0x85ebca77u ^ seed * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

/* -1 .. 1, bilinear between the corners of cells. */
static float field(uint32_t x, uint32_t y, uint32_t cell_log2, uint32_t seed)
{
    const uint32_t cell = 1u << cell_log2, cx = x >> cell_log2, cy = y >> cell_log2;
    const float fx = (float)(x & (cell - 1)) / (float)cell,
                fy = (float)(y & (cell - 1)) / (float)cell;
    float corner[4];

    for (uint32_t i = 0; i < 4; i++)
        corner[i] = (float)(hash(cx + (i & 1), cy + (i >> 1), seed) >> 16) * (2.0f / 65535) - 1;
    const float upper = corner[0] + (corner[1] - corner[0]) * fx,
                lower = corner[2] + (corner[3] - corner[2]) * fx;

    return upper + (lower - upper) * fy;
}

static uint16_t to_level(float stops)
{
    const float level = (stops - STOPS_LOW) * STEPS;

    if (level >= LEVELS)
        return LEVELS - 1;

    return (uint16_t)fmaxf(level, 0);
}

static float level_light(uint32_t level)
{
    return exp2f((float)level / STEPS + STOPS_LOW);
}

struct bench_scene *bench_scene_create(uint32_t width, uint32_t height)
{
    struct bench_scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return NULL;
    scene->width = width;
    scene->height = height;

    for (int c = 0; c < 3; c++) {
        scene->level[c] = malloc((size_t)width * height * sizeof *scene->level[c]);
        if (!scene->level[c]) {
            bench_scene_destroy(&scene);
            return NULL;
        }
    }

    for (uint32_t y = 0; y < height; y++) {
        const float sky = (float)y < 0.4f * (float)height ? 1.0f : -3.0f;
        for (uint32_t x = 0; x < width; x++) {
            const float large = field(x, y, 8, 1);
            const float grain = (float)(hash(x, y, 2) >> 24) / 1024;
            const float lamp = large > 0.75f ? 24 * (large - 0.75f) : 0;
            const float stops = sky + 3 * large + field(x, y, 4, 3) + grain + lamp;
            const float warm = field(x, y, 7, 4), green = field(x, y, 6, 5);
            const size_t at = (size_t)y * width + x;
            scene->level[0][at] = to_level(stops + warm);
            scene->level[1][at] = to_level(stops + 0.3f * green);
            scene->level[2][at] = to_level(stops - warm);
        }
    }

    return scene;
}

void bench_scene_destroy(struct bench_scene **scene)
{
    if (!*scene)
        return;
    for (int c = 0; c < 3; c++)
        free((*scene)->level[c]);
    free(*scene);
    *scene = NULL;
}

/* --- as a picture --- */

void bench_scene_picture(const struct bench_scene *scene, enum cox_pixel_in pixel, void *pixels,
                         size_t pitch_bytes)
{
    float light[LEVELS];
    uint16_t half[LEVELS];

    for (uint32_t i = 0; i < LEVELS; i++) {
        light[i] = level_light(i);
        half[i] = half_from_float(light[i]);
    }

    for (uint32_t y = 0; y < scene->height; y++) {
        char *row = (char *)pixels + y * pitch_bytes;
        for (uint32_t x = 0; x < scene->width; x++) {
            const size_t at = (size_t)y * scene->width + x;
            const uint16_t level[3] = {scene->level[0][at], scene->level[1][at],
                                       scene->level[2][at]};
            if (pixel == COX_PIXEL_RGBA_FLOAT) {
                const float rgba[4] = {light[level[0]], light[level[1]], light[level[2]], 1};
                memcpy(row + x * sizeof rgba, rgba, sizeof rgba);
            } else {
                const uint16_t rgba[4] = {half[level[0]], half[level[1]], half[level[2]], HALF_ONE};
                memcpy(row + x * sizeof rgba, rgba, sizeof rgba);
            }
        }
    }
}

/* --- as a film: BT.2020, 4:2:0, 10 bits, limited range --- */

/* R'G'B' of light in multiples of SDR white. */
static double encode(enum cox_transfer transfer, double light)
{
    const double nits = 203 * light;

    if (transfer == COX_TRANSFER_HLG) { /* BT.2100; on a display of 1000 cd/m2, its OOTF left out */
        const double e = fmin(nits / 1000, 1);
        const double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
        return e <= 1.0 / 12 ? sqrt(3 * e) : a * log(12 * e - b) + c;
    }

    const double p = pow(fmin(nits / 10000, 1), 2610.0 / 16384);

    return pow((3424.0 / 4096 + 2413.0 / 128 * p) / (1 + 2392.0 / 128 * p), 2523.0 / 32);
}

/* One pixel's R'G'B'. BT.709 light, to BT.2020 primaries. */
static void pixel_signal(const struct bench_scene *scene, const float *light, const float *signal,
                         size_t at, float out[3])
{
    static const float matrix[3][3] = {
        {0.6274f, 0.3293f, 0.0433f}, {0.0691f, 0.9195f, 0.0114f}, {0.0164f, 0.0880f, 0.8956f}};
    const float r = light[scene->level[0][at]], g = light[scene->level[1][at]],
                b = light[scene->level[2][at]];

    for (int c = 0; c < 3; c++)
        out[c] = signal[to_level(log2f(matrix[c][0] * r + matrix[c][1] * g + matrix[c][2] * b))];
}

static uint16_t to_code(float value, float scale, float zero)
{
    return (uint16_t)(zero + scale * value + 0.5f);
}

void bench_scene_video(const struct bench_scene *scene, enum cox_transfer transfer,
                       void *const planes[3], const size_t pitch_bytes[3])
{
    float light[LEVELS], signal[LEVELS];

    for (uint32_t i = 0; i < LEVELS; i++) {
        light[i] = level_light(i);
        signal[i] = (float)encode(transfer, light[i]);
    }

    for (uint32_t y = 0; y < scene->height; y++) {
        uint16_t *luma = (void *)((char *)planes[0] + y * pitch_bytes[0]);
        uint16_t *cb = (void *)((char *)planes[1] + y / 2 * pitch_bytes[1]);
        uint16_t *cr = (void *)((char *)planes[2] + y / 2 * pitch_bytes[2]);
        for (uint32_t x = 0; x < scene->width; x++) {
            float rgb[3];
            pixel_signal(scene, light, signal, (size_t)y * scene->width + x, rgb);
            const float value = 0.2627f * rgb[0] + 0.6780f * rgb[1] + 0.0593f * rgb[2];
            luma[x] = to_code(value, 876, 64);
            if (x % 2 || y % 2)
                continue;
            cb[x / 2] = to_code((rgb[2] - value) / 1.8814f, 896, 512);
            cr[x / 2] = to_code((rgb[0] - value) / 1.4746f, 896, 512);
        }
    }
}
