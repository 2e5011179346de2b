/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels_frames.h"
#include "ceilings.h"
#include "message.h"
#include "plane.h"
#include "scene.h"

static bool make_buffer(cox_runtime *runtime, size_t bytes, cox_buffer **buffer)
{
    cox_status status = cox_buffer_create(runtime, bytes, buffer);
    return status == COX_OK ||
           bench_fail("a buffer of %zu bytes: %s", bytes, cox_status_text(status));
}

static bool make_planes(cox_runtime *runtime, const struct cox_video_format *format,
                        const struct kernels_frames *frames,
                        size_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                        cox_buffer *buffers[COX_VIDEO_PLANES_MAX])
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t count = cox_video_planes(format, frames->width, frames->height, planes);

    for (uint32_t p = 0; p < count; p++) {
        pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        if (!make_buffer(runtime, planes[p].rows * pitch_bytes[p], &buffers[p]))
            return false;
    }

    return count > 0 ||
           bench_fail("--size: frames of %ux%u are not supported", frames->width, frames->height);
}

static bool make_video(cox_runtime *runtime, struct kernels_frames *frames)
{
    struct cox_video_shape *shape = &frames->video_shape;

    *shape = (struct cox_video_shape){.width = frames->width,
                                      .height = frames->height,
                                      .in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
                                      .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1}};

    return make_planes(runtime, &shape->in, frames, shape->in_pitch_bytes, frames->video[0]) &&
           make_planes(runtime, &shape->in, frames, shape->in_pitch_bytes, frames->video[1]) &&
           make_planes(runtime, &shape->out, frames, shape->out_pitch_bytes, frames->video_out) &&
           make_buffer(runtime, COX_VIDEO_HISTOGRAM_BYTES, &frames->video_counts);
}

static bool make_pictures(cox_runtime *runtime, struct kernels_frames *frames)
{
    frames->half_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * 8);
    frames->single_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * 16);
    frames->out_pitch = frames->half_pitch; /* 16 bits; those of 8 take half of it */

    return make_buffer(runtime, frames->height * frames->half_pitch, &frames->half) &&
           make_buffer(runtime, frames->height * frames->single_pitch, &frames->single) &&
           make_buffer(runtime, frames->height * frames->out_pitch, &frames->picture_out) &&
           make_buffer(runtime, COX_TONEMAP_HISTOGRAM_BYTES, &frames->picture_counts);
}

static bool make_plane(cox_runtime *runtime, struct kernels_frames *frames)
{
    frames->plane_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * sizeof(float));
    const size_t bytes = frames->height * frames->plane_pitch;
    if (!make_buffer(runtime, bytes, &frames->plane_in) ||
        !make_buffer(runtime, bytes, &frames->plane_out))
        return false;
    bench_plane_fill(cox_buffer_data(frames->plane_in), bytes / sizeof(float));

    return true;
}

static bool fill_frames(struct kernels_frames *frames)
{
    struct bench_scene *scene = bench_scene_create(frames->width, frames->height);
    if (!scene)
        return bench_fail("out of memory");
    bench_scene_picture(scene, COX_PIXEL_RGBA_HALF, cox_buffer_data(frames->half),
                        frames->half_pitch);
    bench_scene_picture(scene, COX_PIXEL_RGBA_FLOAT, cox_buffer_data(frames->single),
                        frames->single_pitch);

    for (int t = 0; t < 2; t++) {
        void *planes[COX_VIDEO_PLANES_MAX];
        for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++)
            planes[p] = cox_buffer_data(frames->video[t][p]);
        bench_scene_video(scene, t == 0 ? COX_TRANSFER_PQ : COX_TRANSFER_HLG, planes,
                          frames->video_shape.in_pitch_bytes);
    }

    bench_scene_destroy(&scene);
    return true;
}

bool kernels_frames_make(cox_runtime *runtime, struct kernels_frames *frames)
{
    struct bench_ceiling ceiling;
    struct cox_session_params session = {0};

    bench_ceiling_fill(&ceiling, frames->width, frames->height, 0, runtime, &session);
    if (!make_buffer(runtime, frames->height * ceiling.buffers[0].pitch_bytes,
                     &frames->ceiling_in) ||
        !make_buffer(runtime, frames->height * ceiling.buffers[1].pitch_bytes,
                     &frames->ceiling_out) ||
        !make_pictures(runtime, frames) || !make_video(runtime, frames) || !fill_frames(frames))
        return false;

    bench_ceiling_input(&ceiling, frames->height, cox_buffer_data(frames->ceiling_in));

    return make_plane(runtime, frames);
}

void kernels_frames_free(struct kernels_frames *frames)
{
    cox_buffer_destroy(&frames->half);
    cox_buffer_destroy(&frames->single);
    cox_buffer_destroy(&frames->picture_out);
    cox_buffer_destroy(&frames->picture_counts);

    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        cox_buffer_destroy(&frames->video[0][p]);
        cox_buffer_destroy(&frames->video[1][p]);
        cox_buffer_destroy(&frames->video_out[p]);
    }

    cox_buffer_destroy(&frames->video_counts);
    cox_buffer_destroy(&frames->ceiling_in);
    cox_buffer_destroy(&frames->ceiling_out);
    cox_buffer_destroy(&frames->plane_in);
    cox_buffer_destroy(&frames->plane_out);
}
