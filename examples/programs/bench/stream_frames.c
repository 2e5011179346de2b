/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_frames.h"
#include "message.h"

#include <string.h>

enum { WIDTH = 3840, HEIGHT = 2160 };

static bool describe_picture(struct stream_frames *frames, const cox_runtime *runtime)
{
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    struct cox_tonemap_shape shape = {.width = frames->width, .height = frames->height};

    frames->row_bytes[0] = 8ul * frames->width;
    frames->row_bytes[1] = 4ul * frames->width;
    shape.in_pitch_bytes = cox_runtime_pitch_bytes(runtime, frames->row_bytes[0]);
    shape.out_pitch_bytes = cox_runtime_pitch_bytes(runtime, frames->row_bytes[1]);
    cox_status status = cox_tonemap_mapping(&shape, &frames->storage.picture, &frames->pipeline);
    if (status == COX_OK)
        status = cox_tonemap_prepare(&shape, &settings, &frames->params.picture);

    return bench_good(status, "pictures");
}

/* HDR10 in, 8 bits out, both 4:2:0. */
static bool describe_video(struct stream_frames *frames, const cox_runtime *runtime)
{
    const struct cox_video_settings settings = {.peak_nits = 1000};
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    struct cox_video_shape shape = {
        .width = frames->width,
        .height = frames->height,
        .in = {.layout = COX_VIDEO_PLANAR, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .out = {.layout = COX_VIDEO_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .transfer = COX_TRANSFER_PQ,
        .op = COX_OPERATOR_BT2390,
        .dither = COX_DITHER_ORDERED};
    const struct cox_video_format *const formats[2] = {&shape.in, &shape.out};
    size_t *const all_pitches[2] = {shape.in_pitch_bytes, shape.out_pitch_bytes};

    for (uint32_t side = 0, b = 0; side < 2; side++) {
        size_t *pitches = all_pitches[side];
        uint32_t count = cox_video_planes(formats[side], frames->width, frames->height, planes);
        for (uint32_t p = 0; p < count; p++, b++) {
            frames->row_bytes[b] = planes[p].row_bytes;
            pitches[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        }
    }

    cox_status status = cox_video_mapping(&shape, false, &frames->storage.video, &frames->pipeline);
    if (status == COX_OK)
        status = cox_video_prepare(&shape, &settings, &frames->params.video);

    return bench_good(status, "video");
}

/* Pseudo-random light, the same on every machine. */
static void fill(bool pictures, void *data, size_t bytes, uint32_t seed)
{
    uint16_t *words = data;

    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (!pictures) /* limited range */
            words[i] = (uint16_t)(64 + (seed >> 16) % 877);
        else if (i % 4 == 3) /* alpha: 1 */
            words[i] = 0x3c00;
        else /* 2^-11 .. 2^5 */
            words[i] = (uint16_t)(0x1000 + (seed >> 18));
    }
}

static uint32_t divisor_of(const struct cox_binding *binding)
{
    return binding->row_divisor ? binding->row_divisor : 1;
}

bool stream_frames_make(struct stream_frames *frames, cox_runtime *runtime,
                        const struct bench_options *options, uint32_t sets)
{
    frames->width = bench_value(options->width, WIDTH);
    frames->height = bench_value(options->height, HEIGHT);
    frames->sets = sets;
    frames->arithmetic = cox_runtime_arithmetic(runtime);

    const bool described = options->pictures ? describe_picture(frames, runtime)
                                             : describe_video(frames, runtime);
    if (!described)
        return false;

    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < frames->pipeline.binding_count; b++) {
            const size_t bytes = stream_frames_span(frames, b, 0, frames->height).bytes;
            cox_status status = cox_buffer_create(runtime, bytes, &frames->buffers[set][b]);
            if (status)
                return bench_fail("a buffer of %zu bytes: %s", bytes, cox_status_text(status));
            if (frames->pipeline.bindings[b].access == COX_READ)
                fill(options->pictures, cox_buffer_data(frames->buffers[set][b]), bytes,
                     set * 16 + b);
        }

    return true;
}

void stream_frames_free(struct stream_frames *frames)
{
    for (uint32_t set = 0; set < STREAM_IN_FLIGHT_MAX; set++)
        for (uint32_t b = 0; b < STREAM_BUFFERS_MAX; b++)
            cox_buffer_destroy(&frames->buffers[set][b]);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct stream_span stream_frames_span(const struct stream_frames *frames, uint32_t buffer,
                                      uint32_t first_row, uint32_t rows)
{
    const struct cox_binding *binding = &frames->pipeline.bindings[buffer];
    const uint32_t divisor = divisor_of(binding);
    const uint32_t all = (frames->height + divisor - 1) / divisor;
    uint32_t first = first_row / divisor, end = (first_row + rows + divisor - 1) / divisor;

    if (binding->contract == COX_HALO) {
        first -= least(first, binding->halo_rows);
        end += binding->halo_rows;
    }

    end = least(end, all);

    return (struct stream_span){.first = first,
                                .rows = end - first,
                                .offset = first * binding->pitch_bytes,
                                .bytes = (end - first) * binding->pitch_bytes};
}

double stream_frames_row_bytes(const struct stream_frames *frames, bool in)
{
    double bytes = 0;

    for (uint32_t b = 0; b < frames->pipeline.binding_count; b++) {
        const struct cox_binding *binding = &frames->pipeline.bindings[b];
        if ((binding->access == COX_READ) == in)
            bytes += (double)binding->pitch_bytes / divisor_of(binding);
    }

    return bytes;
}

void stream_frames_clear(struct stream_frames *frames, uint32_t sets)
{
    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < frames->pipeline.binding_count; b++)
            if (frames->pipeline.bindings[b].access != COX_READ)
                memset(cox_buffer_data(frames->buffers[set][b]), 0,
                       stream_frames_span(frames, b, 0, frames->height).bytes);
}

/* FNV-1a over words of 8 bytes; the last word of a row is filled with zeros. */
static uint64_t hash_row(uint64_t hash, const char *row, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, row + at, bytes - at < 8 ? bytes - at : 8);
        hash = (hash ^ word) * 1099511628211u;
    }

    return hash;
}

uint64_t stream_frames_hash(const struct stream_frames *frames, uint32_t sets)
{
    uint64_t hash = 14695981039346656037u;

    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < frames->pipeline.binding_count; b++) {
            const struct cox_binding *binding = &frames->pipeline.bindings[b];
            const char *data = cox_buffer_data(frames->buffers[set][b]);
            const uint32_t rows = stream_frames_span(frames, b, 0, frames->height).rows;
            for (uint32_t y = 0; binding->access != COX_READ && y < rows; y++)
                hash = hash_row(hash, data + y * binding->pitch_bytes, frames->row_bytes[b]);
        }

    return hash;
}
