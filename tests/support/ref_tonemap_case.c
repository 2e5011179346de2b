/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "ref_tonemap_case.h"
#include "random_splits.h"
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static size_t pitch_of(cox_runtime *runtime, uint32_t width, size_t padding, size_t pixel_bytes)
{
    return padding == REF_ALIGNED ? cox_runtime_pitch_bytes(runtime, width * pixel_bytes)
                                  : (width + padding) * pixel_bytes;
}

void ref_picture_open(struct ref_picture *picture, cox_runtime *runtime, const struct cox_tonemap_shape *shape,
                      bool analysis, size_t padding, const struct ref_picture *like)
{
    const size_t in_bytes = shape->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8;
    const size_t out_bytes = shape->out == COX_PIXEL_RGBA16 ? 8 : 4;
    memset(picture, 0, sizeof *picture);
    picture->shape = *shape;
    picture->shape.in_pitch_bytes = pitch_of(runtime, shape->width, padding, in_bytes);
    picture->shape.out_pitch_bytes = pitch_of(runtime, shape->width, padding, out_bytes);
    bits_need(analysis ? cox__tonemap_analysis_spec(&picture->shape, &picture->storage, &picture->session)
                       : cox__tonemap_mapping(&picture->shape, &picture->storage, &picture->session),
              "the pipeline of a picture");

    const struct bits_plane in = {
        .row_bytes = shape->width * in_bytes, .pitch_bytes = picture->shape.in_pitch_bytes, .rows = shape->height};
    const struct bits_plane out = {.row_bytes = shape->width * out_bytes,
                                   .pitch_bytes = picture->shape.out_pitch_bytes,
                                   .rows = shape->height,
                                   .written = true};
    const struct bits_plane histogram = {.row_bytes = COX_TONEMAP_HISTOGRAM_BYTES,
                                         .pitch_bytes = COX_TONEMAP_HISTOGRAM_BYTES,
                                         .rows = 1,
                                         .written = true};
    if (like)
        bits_frame_borrow(&picture->frame, &like->frame);
    else
        bits_frame_add(&picture->frame, runtime, in);
    bits_frame_add(&picture->frame, runtime, analysis ? histogram : out);
    picture->frame.count = picture->session.binding_count;
}

void ref_picture_close(struct ref_picture *picture)
{
    bits_frame_close(&picture->frame);
}

/* --- Contents ----------------------------------------------------------------------------------------------------- */

void ref_picture_put_bits(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel, uint32_t bits)
{
    uint8_t *row = bits_row(&picture->frame.planes[0], y);
    const size_t at = 4 * (size_t)x + channel;
    const uint16_t half = (uint16_t)bits;
    if (picture->shape.in == COX_PIXEL_RGBA_FLOAT)
        memcpy(row + 4 * at, &bits, 4);
    else
        memcpy(row + 2 * at, &half, 2);
}

void ref_picture_put(const struct ref_picture *picture, uint32_t x, uint32_t y, const double rgba[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        const float value = (float)rgba[i];
        uint32_t bits;
        memcpy(&bits, &value, 4);
        ref_picture_put_bits(picture, x, y, i, picture->shape.in == COX_PIXEL_RGBA_FLOAT ? bits : ref_to_half(rgba[i]));
    }
}

void ref_picture_put_grey(const struct ref_picture *picture, uint32_t x, uint32_t y, double light)
{
    ref_picture_put(picture, x, y, (double[]){light, light, light, 1});
}

void ref_picture_stored(const struct ref_picture *picture, uint32_t x, uint32_t y, double rgba[4])
{
    for (uint32_t i = 0; i < 4; i++)
        rgba[i] = ref_tonemap_stored(&picture->shape, picture->frame.planes[0].data, x, y, i);
}

uint32_t ref_picture_code(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel)
{
    const uint8_t *row = bits_row(&picture->frame.planes[1], y);
    const size_t at = 4 * (size_t)x + channel;
    uint16_t word;
    if (picture->shape.out != COX_PIXEL_RGBA16)
        return row[at];
    memcpy(&word, row + 2 * at, 2);
    return word;
}

void ref_picture_fill_patches(const struct ref_picture *picture, uint32_t seed)
{
    for (uint32_t y = 0; y < picture->shape.height; y++)
        for (uint32_t x = 0; x < picture->shape.width; x++) {
            uint32_t patch = (y / 37 * 131 + x / 53) * 7919 + seed;
            random_short(&patch);
            const double base = random_short_below(&patch, 20) - 14.0;
            const uint32_t colour = random_short_below(&patch, 3);
            const double texture = random_short_below(&seed, 20001) / 10000.0 - 1;
            const double light = exp2(base + 0.35 * texture + (random_short_below(&seed, 500) ? 0 : 7));
            ref_picture_put(picture, x, y,
                            (double[]){light, colour < 1 ? light : light / 3, colour < 2 ? light : light / 20, 1});
        }
}

/* --- Comparison --------------------------------------------------------------------------------------------------- */

enum { THREADS_MAX = 8 };

/* The part of one thread: every `step`-th row. */
struct judge {
    pthread_t thread;
    bool started;
    const struct ref_picture *picture;
    const struct cox_tonemap_settings *settings;
    struct ref_operator operator;
    uint32_t first_row, step;
    struct ref_error error;
};

static void *judge_rows(void *user)
{
    struct judge *judge = user;
    const struct ref_picture *picture = judge->picture;
    const double scale = picture->shape.out == COX_PIXEL_RGBA16 ? 65535 : 255;
    struct ref_operator *op = &judge->operator;
    for (op->y = judge->first_row; op->y < picture->shape.height; op->y += judge->step)
        for (op->x = 0; op->x < picture->shape.width; op->x++) {
            double in[4], out[4];
            ref_picture_stored(picture, op->x, op->y, in);
            ref_tonemap_pixel(op, judge->settings, picture->shape.in, in, scale, out);
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t got = ref_picture_code(picture, op->x, op->y, i);
                const uint32_t steps = (uint32_t)fabs(got - round(out[i]));
                ref_error_add(&judge->error, &(struct ref_error){.distance = fabs(got - out[i]),
                                                                 .steps = steps,
                                                                 .off = steps > 0,
                                                                 .samples = 1,
                                                                 .plane = i,
                                                                 .x = op->x,
                                                                 .y = op->y,
                                                                 .got = got,
                                                                 .wanted = out[i]});
            }
        }
    return NULL;
}

void ref_picture_judge(const struct ref_picture *picture, const struct cox_tonemap_settings *settings,
                       struct ref_error *error)
{
    struct judge judges[THREADS_MAX];
    struct ref_operator operator;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = 1;
    while (count < THREADS_MAX && count < cores && count < picture->shape.height)
        count++;
    ref_operator_init(&operator, settings->op, (double)settings->peak);
    if (settings->op == COX_OPERATOR_LOCAL)
        bits_need(ref_tonemap_surround(&operator, settings, &picture->shape, picture->frame.planes[0].data)
                      ? COX_OK
                      : COX_E_NOMEM,
                  "the reference");

    for (uint32_t i = 0; i < count; i++) {
        judges[i] = (struct judge){
            .picture = picture, .settings = settings, .operator= operator, .first_row = i, .step = count};
        judges[i].started = i > 0 && pthread_create(&judges[i].thread, NULL, judge_rows, &judges[i]) == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (judges[i].started)
            pthread_join(judges[i].thread, NULL);
        else
            judge_rows(&judges[i]);
        ref_error_add(error, &judges[i].error);
    }
    ref_local_free(&operator.local);
}
