/* cox-bench kernels: vectors over scalars. The kernel that maps pictures has a variant with vectors
 * for CPUs and one with scalars for GPUs. Both map the same picture on one CPU. Their frames
 * alternate, so that other programs disturb both. Below the bar the vector variant is not worth
 * keeping.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"
#include "device_list.h"
#include "common/now.h"
#include "media/half.h"
#include "message.h"
#include "session.h"

#include <math.h>

enum { WIDTH = 1920, HEIGHT = 1080, ROUNDS_MAX = 20 };

/* The library's variants, in its order. */
enum { VECTOR, SCALAR, VARIANTS };

/* None of the OpenCL compilers for CPUs that were tried vectorizes the scalar variant. */
static const double bar_ratio = 1.5;

/* The range of half floats. */
static const float stops_low = -24, stops_high = 16;

static const struct format {
    const char *name;
    enum cox_pixel_in in;
    enum cox_pixel_out out;
} formats[BENCH_VECTORS_FORMATS] = {
    {"half to 8 bits", COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA8},
    {"float to 8 bits", COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA8},
    {"half to 16 bits", COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA16},
    {"float to 16 bits", COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16},
};

/* A format: its picture, and a session of each variant. */
struct contest {
    cox_buffer *buffers[3]; /* the last one ends the list */
    cox_session *sessions[VARIANTS];
    struct cox_constants params;
    double best_ns[VARIANTS];
};

static void fill_picture(const struct cox_tonemap_shape *shape, void *pixels)
{
    uint32_t number = 1;

    for (uint32_t y = 0; y < shape->height; y++) {
        char *row = (char *)pixels + y * shape->in_pitch_bytes;
        for (uint32_t i = 0; i < shape->width * 4; i++) {
            number = number * 1664525u + 1013904223u;
            const float part = (float)(number >> 16) / 65536;
            float light = 1; /* alpha */

            if (i % 4 != 3)
                light = exp2f(stops_low + (stops_high - stops_low) * part);
            if (shape->in == COX_PIXEL_RGBA_FLOAT)
                ((float *)(void *)row)[i] = light;
            else
                ((uint16_t *)(void *)row)[i] = half_from_float(light);
        }
    }
}

static cox_status open_session(cox_runtime *runtime, uint32_t device,
                               const struct cox_tonemap_shape *shape, uint32_t variant,
                               cox_session **session)
{
    static const enum cox_device_type types[VARIANTS] = {COX_DEVICE_CPU, COX_DEVICE_GPU};
    cox_pipeline *pipeline;
    cox_status status = cox_tonemap_mapping(shape, &pipeline);
    if (status == COX_OK)
        status = cox_pipeline_use_variant(pipeline, types[variant]);
    if (status == COX_OK) {
        const struct bench_device_list list = bench_device_list(&device, 1);
        const struct cox_session_params params = {
            .pipeline = pipeline, .policy = "single", .in_flight = 1, .devices = list.text};
        status = bench_session_create(runtime, &params, session);
    }

    cox_pipeline_destroy(&pipeline);
    return status;
}

static cox_status open_contest(cox_runtime *runtime, uint32_t device, const struct format *format,
                               struct contest *contest)
{
    const size_t in_bytes = format->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8,
                 out_bytes = format->out == COX_PIXEL_RGBA16 ? 8 : 4;
    const struct cox_tonemap_shape shape = {
        .width = WIDTH,
        .height = HEIGHT,
        .in = format->in,
        .out = format->out,
        .in_pitch_bytes = cox_runtime_pitch_bytes(runtime, WIDTH * in_bytes),
        .out_pitch_bytes = cox_runtime_pitch_bytes(runtime, WIDTH * out_bytes)};
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};

    cox_status status = cox_tonemap_prepare(&shape, &settings, &contest->params);

    if (status == COX_OK)
        status = cox_buffer_create(runtime, HEIGHT * shape.in_pitch_bytes, &contest->buffers[0]);
    if (status == COX_OK)
        status = cox_buffer_create(runtime, HEIGHT * shape.out_pitch_bytes, &contest->buffers[1]);
    if (status)
        return status;

    fill_picture(&shape, cox_buffer_data(contest->buffers[0]));
    for (uint32_t v = 0; v < VARIANTS && status == COX_OK; v++) {
        contest->best_ns[v] = INFINITY;
        status = open_session(runtime, device, &shape, v, &contest->sessions[v]);
    }

    return status;
}

static void close_contest(struct contest *contest)
{
    for (uint32_t v = 0; v < VARIANTS; v++)
        bench_session_destroy(&contest->sessions[v]);
    cox_buffer_destroy(&contest->buffers[0]);
    cox_buffer_destroy(&contest->buffers[1]);
}

/* One frame of each variant. The first round is not counted. */
static cox_status run_round(struct contest *contest, bool counts)
{
    cox_status status = COX_OK;

    for (uint32_t v = 0; v < VARIANTS && status == COX_OK; v++) {
        const uint64_t began = now_ns();
        status = cox_session_run(contest->sessions[v],
                                 &(const struct cox_frame){.buffers = contest->buffers,
                                                           .constants = &contest->params});
        if (counts)
            contest->best_ns[v] = fmin(contest->best_ns[v], (double)(now_ns() - began));
    }

    return status;
}

bool bench_vectors(cox_runtime *runtime, uint32_t device, uint32_t rounds, struct quiet *quiet,
                   struct bench_vectors *result)
{
    struct contest contests[BENCH_VECTORS_FORMATS] = {0};
    cox_status status = COX_OK;

    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS && status == COX_OK; f++)
        status = open_contest(runtime, device, &formats[f], &contests[f]);
    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS && status == COX_OK; f++)
        status = run_round(&contests[f], false);

    if (rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    for (uint32_t round = 0; round < rounds && status == COX_OK;) {
        quiet_begin(quiet);
        for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS && status == COX_OK; f++)
            status = run_round(&contests[f], true);
        round += quiet_keep(quiet);
    }

    *result = (struct bench_vectors){
        .width = WIDTH, .height = HEIGHT, .bar = bar_ratio, .met = status == COX_OK};
    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS; f++) {
        struct bench_vectors_format *of = &result->formats[f];
        of->name = formats[f].name;
        of->vector_ms = contests[f].best_ns[VECTOR] / 1e6;
        of->scalar_ms = contests[f].best_ns[SCALAR] / 1e6;
        of->ratio = of->scalar_ms / of->vector_ms;
        result->met &= of->ratio >= bar_ratio;
        close_contest(&contests[f]);
    }

    return bench_good(status, "vectors over scalars");
}
