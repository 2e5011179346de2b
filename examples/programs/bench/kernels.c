/* cox-bench kernels: how fast each kernel of the library is on each device, by the device's
 * profile, compared with ceilings measured in the same rounds. Frames of all kernels take turns, so
 * a disturbance affects all of them, and a kernel does not find its frame in the caches. On CPUs
 * there is a bar too: vectors.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels_print.h"
#include "commands.h"
#include "common/quantiles.h"
#include "device_list.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"
#include "plane.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 3840, HEIGHT = 2160, FRAMES_DEFAULT = 40 };

/* How often a filter reads or writes each sample: the blur reads and writes in two passes, the
 * Gaussian forwards and backwards along rows and along columns. */
enum { BLUR_ACCESSES = 4, GAUSSIAN_ACCESSES = 8 };

/* --- sessions --- */

/* Shorter kernel times are not real: rusticl 22.3 reports one nanosecond for every kernel. */
enum { KERNEL_NS_MIN = 100 };

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct kernels_entrant *entrant = user;

    if (report->warmup || report->shadow)
        return;

    for (uint32_t b = 0; b < report->band_count; b++) {
        if (report->bands[b].kernel_ns >= KERNEL_NS_MIN) {
            entrant->kernel_ns += report->bands[b].kernel_ns;
        } else {
            entrant->kernel_ns += report->bands[b].wall_ns;
            entrant->unprofiled = true;
        }
    }
}

static bool make_session(const struct kernels *kernels, uint32_t device,
                         struct cox_session_params *params, struct kernels_entrant *entrant)
{
    const struct bench_device_list devices = bench_device_list(&device, 1);

    params->policy = "single";
    params->in_flight = 1;
    params->devices = devices.text;
    params->report = on_report;
    params->report_user = entrant;
    params->profile = true;
    cox_status status = bench_session_create(kernels->runtime, params, &entrant->session);

    return bench_good(status, "session");
}

/* Make a session of a pipeline, which it destroys, if `status` is good. */
static bool make_session_of(const struct kernels *kernels, uint32_t device, const char *name,
                            cox_status status, cox_pipeline *pipeline,
                            struct kernels_entrant *entrant)
{
    struct cox_session_params params = {.pipeline = pipeline};
    const bool good = bench_good(status, name) && make_session(kernels, device, &params, entrant);

    cox_pipeline_destroy(&pipeline);

    return good;
}

static bool add_ceiling(struct kernels *kernels, uint32_t device, uint32_t multiply_adds_of,
                        struct kernels_entrant *entrant)
{
    const struct kernels_frames *frames = &kernels->frames;
    struct bench_ceiling ceiling;
    struct cox_session_params params = {0};

    bench_ceiling_fill(&ceiling, frames->width, frames->height, multiply_adds_of, kernels->runtime,
                       &params);
    entrant->bytes = ceiling.bytes;
    entrant->buffers[entrant->buffer_count++] = frames->ceiling_in;
    entrant->buffers[entrant->buffer_count++] = frames->ceiling_out;

    return make_session(kernels, device, &params, entrant);
}

static bool add_picture(struct kernels *kernels, uint32_t device,
                        const struct kernels_entry *kernel, struct kernels_entrant *entrant)
{
    const struct kernels_frames *frames = &kernels->frames;
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    const bool single = kernel->in == COX_PIXEL_RGBA_FLOAT, maps = kernel->kind == KERNELS_PICTURE;
    const uint32_t out_bytes = kernel->out == COX_PIXEL_RGBA16 ? 8 : 4;
    uint64_t pixel_bytes = single ? 16 : 8;
    const struct cox_tonemap_shape shape = {.width = frames->width,
                                            .height = frames->height,
                                            .in = kernel->in,
                                            .out = kernel->out,
                                            .in_pitch_bytes = single ? frames->single_pitch
                                                                     : frames->half_pitch,
                                            .out_pitch_bytes = frames->out_pitch * out_bytes / 8};
    cox_pipeline *pipeline = NULL;
    cox_status status;

    if (maps)
        status = cox_tonemap_mapping(&shape, &pipeline);
    else
        status = cox_tonemap_analysis(&shape, &pipeline);

    if (status == COX_OK)
        status = cox_tonemap_prepare(&shape, &settings, &entrant->constants);

    entrant->buffers[0] = single ? frames->single : frames->half;
    entrant->buffers[1] = frames->picture_counts;
    entrant->buffer_count = 2;
    if (maps) {
        entrant->buffers[1] = frames->picture_out;
        pixel_bytes += out_bytes;
    }

    entrant->bytes = pixel_bytes * frames->width * frames->height;

    return make_session_of(kernels, device, kernel->name, status, pipeline, entrant);
}

static void add_planes(const struct cox_video_format *format, const struct kernels_frames *frames,
                       cox_buffer *const buffers[COX_VIDEO_PLANES_MAX],
                       struct kernels_entrant *entrant)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t count = cox_video_planes(format, frames->width, frames->height, planes);

    for (uint32_t p = 0; p < count; p++) {
        entrant->bytes += (uint64_t)planes[p].rows * planes[p].row_bytes;
        entrant->buffers[entrant->buffer_count++] = buffers[p];
    }
}

static bool add_video(struct kernels *kernels, uint32_t device, const struct kernels_entry *kernel,
                      struct kernels_entrant *entrant)
{
    const struct kernels_frames *frames = &kernels->frames;
    const struct cox_video_settings settings = {.sdr_white_nits = 100, .desaturate = -1};
    struct cox_video_shape shape = frames->video_shape;
    cox_pipeline *pipeline = NULL;
    cox_status status;

    shape.transfer = kernel->transfer;
    if (kernel->kind == KERNELS_VIDEO)
        status = cox_video_mapping(&shape, kernel->analyse, &pipeline);
    else
        status = cox_video_analysis(&shape, &pipeline);

    if (status == COX_OK)
        status = cox_video_prepare(&shape, &settings, &entrant->constants);

    add_planes(&shape.in, frames, frames->video[kernel->transfer == COX_TRANSFER_HLG], entrant);
    if (kernel->kind == KERNELS_VIDEO)
        add_planes(&shape.out, frames, frames->video_out, entrant);
    if (kernel->kind == KERNELS_ANALYSIS || kernel->analyse)
        entrant->buffers[entrant->buffer_count++] = frames->video_counts;

    return make_session_of(kernels, device, kernel->name, status, pipeline, entrant);
}

static bool add_filter(struct kernels *kernels, uint32_t device, const struct kernels_entry *kernel,
                       struct kernels_entrant *entrant)
{
    enum { RADIUS = 15 };
    const struct kernels_frames *frames = &kernels->frames;
    const bool blurs = kernel->kind == KERNELS_BLUR;
    struct cox_filter_shape shape = {.width = frames->width,
                                     .height = frames->height,
                                     .sample = COX_FILTER_FLOAT,
                                     .in_pitch_bytes = frames->plane_pitch,
                                     .out_pitch_bytes = frames->plane_pitch,
                                     .form = kernel->form};
    cox_pipeline *pipeline = NULL;
    uint64_t accesses = GAUSSIAN_ACCESSES;
    cox_status status;

    if (blurs) {
        accesses = BLUR_ACCESSES;
        shape.radius_x = shape.radius_y = RADIUS;
        status = cox_filter_separable(&shape, &pipeline);
        if (status == COX_OK)
            status = bench_blur_prepare(&shape, &entrant->constants);
    } else {
        status = cox_filter_gaussian(&shape, &pipeline);
        if (status == COX_OK)
            status = cox_filter_gaussian_prepare(&shape, RADIUS / 3.0f, RADIUS / 3.0f,
                                                 &entrant->constants);
    }

    entrant->bytes = accesses * frames->width * frames->height * sizeof(float);
    entrant->buffers[0] = frames->plane_in;
    entrant->buffers[1] = frames->plane_out; /* the library owns intermediate planes */
    entrant->buffer_count = 2;

    return make_session_of(kernels, device, kernel->name, status, pipeline, entrant);
}

static bool add_entrant(struct kernels *kernels, uint32_t device, uint32_t index)
{
    struct kernels_entrant *entrant = &kernels->entrants[index];

    *entrant = (struct kernels_entrant){.ns = kernels->memory + (size_t)index * kernels->rounds};
    if (index < KERNELS_CEILINGS)
        return add_ceiling(kernels, device, kernels_multiply_adds[index], entrant);

    const struct kernels_entry *kernel = &kernels_list[index - KERNELS_CEILINGS];
    switch (kernel->kind) {
    case KERNELS_PICTURE:
    case KERNELS_HISTOGRAM:
        return add_picture(kernels, device, kernel, entrant);
    case KERNELS_VIDEO:
    case KERNELS_ANALYSIS:
        return add_video(kernels, device, kernel, entrant);
    default:
        return add_filter(kernels, device, kernel, entrant);
    }
}

/* --- measuring --- */

static bool run_frame(struct kernels_entrant *entrant, uint32_t round)
{
    const struct cox_frame frame = {.buffers = entrant->buffers, .constants = &entrant->constants};

    entrant->kernel_ns = 0;
    cox_status status = cox_session_run(entrant->session, &frame);
    entrant->ns[round] = (double)entrant->kernel_ns;

    return bench_good(status, "a frame failed");
}

/* The order of a round: entrants that work on the same buffers do not follow each other. */
static const uint32_t order[KERNELS_ENTRANTS] = {0, 6, 1,  10, 2,  7, 16, 3, 11,
                                                 4, 8, 14, 5,  12, 9, 15, 13};

/* Run rounds of one frame of each entrant. The first frame after a session's warm-up is not
 * counted. */
static bool run_rounds(struct kernels *kernels)
{
    for (uint32_t e = 0; e < KERNELS_ENTRANTS; e++)
        if (!run_frame(&kernels->entrants[e], 0))
            return false;

    for (uint32_t round = 0; round < kernels->rounds;) {
        quiet_begin(&kernels->quiet);
        for (uint32_t e = 0; e < KERNELS_ENTRANTS; e++)
            if (!run_frame(&kernels->entrants[order[e]], round))
                return false;
        round += quiet_keep(&kernels->quiet);
    }

    for (uint32_t e = 0; e < KERNELS_ENTRANTS; e++) {
        struct kernels_entrant *entrant = &kernels->entrants[e];
        entrant->low_ns = quantile_of(entrant->ns, kernels->rounds, 0.25);
        entrant->frame_ns = quantile_of(entrant->ns, kernels->rounds, 0.5);
        entrant->high_ns = quantile_of(entrant->ns, kernels->rounds, 0.75);
    }

    return true;
}

static bool measure_device(struct kernels *kernels, uint32_t device)
{
    bool good = true;

    cox_runtime_device_info(kernels->runtime, device, &kernels->device);
    memset(kernels->entrants, 0, sizeof kernels->entrants);
    for (uint32_t e = 0; good && e < KERNELS_ENTRANTS; e++)
        good = add_entrant(kernels, device, e);
    good = good && run_rounds(kernels);
    for (uint32_t e = 0; e < KERNELS_ENTRANTS; e++)
        bench_session_destroy(&kernels->entrants[e].session);
    if (good && kernels_is_cpu(kernels))
        good = bench_vectors(kernels->runtime, device, kernels->rounds, &kernels->quiet,
                             &kernels->vectors);

    return good;
}

/* `*met`: whether all CPUs meet their bar. */
static bool measure_devices(struct kernels *kernels, const struct bench_options *options, bool *met)
{
    struct json writer, *json = options->json ? &writer : NULL;

    kernels_print_head(json, kernels);
    quiet_start(&kernels->quiet, options->quiet_s);

    for (uint32_t d = 0; d < cox_runtime_device_count(kernels->runtime); d++) {
        if (!measure_device(kernels, d))
            return false;
        *met &= !kernels_is_cpu(kernels) || kernels->vectors.met;
        kernels_print_device(json, kernels);
    }

    kernels_print_tail(json, kernels);

    return true;
}

bool bench_kernels(const struct bench_options *options, bool *met)
{
    struct kernels *kernels = calloc(1, sizeof *kernels);
    if (!kernels)
        return bench_fail("out of memory");

    kernels->rounds = bench_value(options->frames, FRAMES_DEFAULT);
    kernels->frames.width = bench_value(options->width, WIDTH);
    kernels->frames.height = bench_value(options->height, HEIGHT);
    kernels->memory = calloc((size_t)kernels->rounds * KERNELS_ENTRANTS, sizeof *kernels->memory);
    *met = true;
    bool good = kernels->memory || bench_fail("out of memory");
    good = good && bench_open_runtime(options, options->arithmetic, &kernels->runtime) &&
           kernels_frames_make(kernels->runtime, &kernels->frames) &&
           measure_devices(kernels, options, met);

    kernels_frames_free(&kernels->frames);
    cox_runtime_destroy(&kernels->runtime);
    free(kernels->memory);
    free(kernels);
    return good;
}
