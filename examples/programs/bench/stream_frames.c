/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_frames.h"
#include "message.h"

#include <string.h>

enum { WIDTH = 3840, HEIGHT = 2160 };

static void add_plane(struct stream_frames *frames, const cox_runtime *runtime,
                      struct stream_plane plane)
{
    plane.pitch_bytes = cox_runtime_pitch_bytes(runtime, plane.row_bytes);
    frames->planes[frames->plane_count++] = plane;
}

/* RGBA, half floats in, 8 bits out. */
static void describe_pictures(struct stream_frames *frames, const cox_runtime *runtime)
{
    add_plane(frames, runtime,
              (struct stream_plane){
                  .in = true, .row_bytes = 8ul * frames->width, .row_divisor = 1});
    add_plane(frames, runtime,
              (struct stream_plane){.row_bytes = 4ul * frames->width, .row_divisor = 1});
}

/* HDR10 in, 8 bits out, both 4:2:0. */
static void describe_video(struct stream_frames *frames, const cox_runtime *runtime)
{
    struct cox_video_shape *shape = &frames->video;

    *shape = (struct cox_video_shape){
        .width = frames->width,
        .height = frames->height,
        .in = {.layout = COX_VIDEO_PLANAR, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .out = {.layout = COX_VIDEO_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .transfer = COX_TRANSFER_PQ,
        .op = COX_OPERATOR_BT2390,
        .dither = COX_DITHER_ORDERED};

    for (uint32_t side = 0; side < 2; side++) {
        const struct cox_video_format *format = side ? &shape->out : &shape->in;
        size_t *pitches = side ? shape->out_pitch_bytes : shape->in_pitch_bytes;
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        const uint32_t count = cox_video_planes(format, frames->width, frames->height, planes);

        for (uint32_t p = 0; p < count; p++) {
            /* Chroma between two rows of samples is interpolated. */
            const bool halo = side == 0 && planes[p].row_divisor > 1;
            add_plane(frames, runtime,
                      (struct stream_plane){.in = side == 0,
                                            .row_bytes = planes[p].row_bytes,
                                            .row_divisor = planes[p].row_divisor,
                                            .halo_rows = halo});
            pitches[p] = frames->planes[frames->plane_count - 1].pitch_bytes;
        }
    }
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

bool stream_frames_make(struct stream_frames *frames, cox_runtime *runtime,
                        const struct bench_options *options, uint32_t sets)
{
    *frames = (struct stream_frames){.width = bench_value(options->width, WIDTH),
                                     .height = bench_value(options->height, HEIGHT),
                                     .sets = sets,
                                     .pictures = options->pictures};
    if (frames->pictures)
        describe_pictures(frames, runtime);
    else
        describe_video(frames, runtime);

    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < frames->plane_count; b++) {
            const size_t bytes = stream_frames_span(frames, b, 0, frames->height).bytes;
            cox_status status = cox_buffer_create(runtime, bytes, &frames->buffers[set][b]);
            if (status)
                return bench_fail("a buffer of %zu bytes: %s", bytes, cox_status_text(status));
            if (frames->planes[b].in)
                fill(frames->pictures, cox_buffer_data(frames->buffers[set][b]), bytes,
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

cox_status stream_frames_mapping(const struct stream_frames *frames, cox_pipeline **pipeline,
                                 struct cox_constants *constants)
{
    const struct cox_video_settings settings = {.peak_nits = 1000};
    const cox_status status = cox_video_prepare(&frames->video, &settings, constants);

    if (status)
        return status;

    return cox_video_mapping(&frames->video, false, pipeline);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct stream_span stream_frames_span(const struct stream_frames *frames, uint32_t buffer,
                                      uint32_t first_row, uint32_t rows)
{
    const struct stream_plane *plane = &frames->planes[buffer];
    const uint32_t divisor = plane->row_divisor, halo = plane->halo_rows;
    const uint32_t all = (frames->height + divisor - 1) / divisor;
    uint32_t first = first_row / divisor;
    const uint32_t end = least((first_row + rows + divisor - 1) / divisor + halo, all);

    first -= least(first, halo);

    return (struct stream_span){.first = first,
                                .rows = end - first,
                                .offset = first * plane->pitch_bytes,
                                .bytes = (end - first) * plane->pitch_bytes};
}

double stream_frames_row_bytes(const struct stream_frames *frames, bool in)
{
    double bytes = 0;

    for (uint32_t b = 0; b < frames->plane_count; b++) {
        const struct stream_plane *plane = &frames->planes[b];
        if (plane->in == in)
            bytes += (double)plane->pitch_bytes / plane->row_divisor;
    }

    return bytes;
}

void stream_frames_clear(struct stream_frames *frames, uint32_t sets)
{
    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < frames->plane_count; b++)
            if (!frames->planes[b].in)
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
        for (uint32_t b = 0; b < frames->plane_count; b++) {
            const struct stream_plane *plane = &frames->planes[b];
            const char *data = cox_buffer_data(frames->buffers[set][b]);
            const uint32_t rows = stream_frames_span(frames, b, 0, frames->height).rows;
            for (uint32_t y = 0; !plane->in && y < rows; y++)
                hash = hash_row(hash, data + y * plane->pitch_bytes, plane->row_bytes);
        }

    return hash;
}
