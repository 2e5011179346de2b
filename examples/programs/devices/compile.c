/* The parameters that a kernel is built with are part of its source. Here is one film for each set
 * of kernels that cox-tonemap uses without options.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "compile.h"
#include "common/now.h"

#include <stdio.h>

enum { WIDTH = 256, HEIGHT = 64, DEPTH = 10 };

static struct cox_video_shape shape_of(const cox_runtime *runtime, enum cox_transfer transfer,
                                       bool halved)
{
    struct cox_video_shape shape = {
        .width = WIDTH,
        .height = HEIGHT,
        .in = {.depth = DEPTH, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .transfer = transfer,
        .op = COX_OPERATOR_HABLE,
        .desaturate_highlights = true,
        .dither = COX_DITHER_ORDERED,
        .gamut = COX_GAMUT_COMPRESS,
    };
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t width = WIDTH, height = HEIGHT;
    if (halved) {
        shape.scale = COX_SCALE_HALF;
        width /= 2;
        height /= 2;
    }

    uint32_t count = cox_video_planes(&shape.in, WIDTH, HEIGHT, planes);
    for (uint32_t p = 0; p < count; p++)
        shape.in_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);

    count = cox_video_planes(&shape.out, width, height, planes);
    for (uint32_t p = 0; p < count; p++)
        shape.out_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
    return shape;
}

/* Create a session, do one frame on each device, and destroy it. */
static cox_status compile_one(cox_runtime *runtime, const struct cox_video_shape *shape,
                              bool analyse)
{
    cox_pipeline *pipeline = NULL;
    const struct cox_video_settings settings = {0};
    struct cox_constants constants;
    cox_session *session = NULL;

    cox_status status = cox_video_prepare(shape, &settings, &constants);
    if (status == COX_OK)
        status = cox_video_mapping(shape, analyse, &pipeline);
    if (status == COX_OK)
        status = cox_session_create(runtime,
                                    &(const struct cox_session_params){.pipeline = pipeline,
                                                                       .no_profile = true},
                                    &session);
    if (status == COX_OK)
        status = cox_session_warm(session, &constants);

    cox_session_destroy(&session);
    cox_pipeline_destroy(&pipeline);
    return status;
}

cox_status compile_films(cox_runtime *runtime)
{
    static const struct {
        const char *name;
        enum cox_transfer transfer;
    } transfers[] = {{"PQ", COX_TRANSFER_PQ}, {"HLG", COX_TRANSFER_HLG}};
    for (int kind = 0; kind < 8; kind++) {
        const bool halved = kind & 2, analyse = !(kind & 1);
        const int curve = kind / 4;
        const uint64_t began_ns = now_ns();
        const struct cox_video_shape shape = shape_of(runtime, transfers[curve].transfer, halved);
        const cox_status status = compile_one(runtime, &shape, analyse);
        if (status != COX_OK)
            return status;

        printf("  %-3s  4:2:0, %d bits to 8, %-9s  %-13s  %6.2f s\n", transfers[curve].name, DEPTH,
               halved ? "half size" : "", analyse ? "measured peak" : "given peak",
               (double)(now_ns() - began_ns) / 1e9);
        fflush(stdout);
    }
    return COX_OK;
}
