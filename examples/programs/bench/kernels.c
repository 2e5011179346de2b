/* cox-bench kernels: how fast each kernel of the library is on each device, by the device's own profile, beside what
 * the device can do at most: ceilings measured in the same rounds. Frames of all kernels take turns, so what disturbs
 * one disturbs all, and a kernel finds nothing of its frame in the caches. On a CPU there is a bar, too: vectors.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 3840,
    HEIGHT = 2160,
    FRAMES_DEFAULT = 40,
    CEILINGS = 6,
    KERNELS = 11,
    ENTRANTS = CEILINGS + KERNELS
};

/* The last one finds the arithmetic rate: so much arithmetic that memory does not matter. */
static const uint32_t multiply_adds[CEILINGS] = {0, 3, 6, 12, 24, 192};

enum kind { PICTURE, PICTURE_HISTOGRAM, VIDEO, VIDEO_ANALYSIS, BLUR, GAUSSIAN };

/* The kernels. `operations` are those of a pixel, with muladd and with fma: additions, multiplications, fma, choices,
 * shifts, bitwise operations and conversions, as docs/results/kernel-operations.sh counts them. Loads, stores,
 * shuffles and sums of addresses are not among them. 0 = not counted: a filter's, of which only the accesses to memory
 * that cannot be done without are. */
static const struct kernel {
    const char *name;
    const char *key; /* JSON */
    enum kind kind;
    enum cox_pixel_in in;
    enum cox_pixel_out out;
    enum cox_transfer transfer;
    bool analyse;
    enum cox_filter_form form;
    double operations[2];
} kernels[KERNELS] = {
    {"picture, half to 8 bits", "picture_half_8", PICTURE, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA8,
     .operations = {182, 142}},
    {"picture, float to 8 bits", "picture_float_8", PICTURE, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA8,
     .operations = {173, 133}},
    {"picture, half to 16 bits", "picture_half_16", PICTURE, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA16,
     .operations = {192, 146}},
    {"picture histogram, half", "picture_histogram", PICTURE_HISTOGRAM, COX_PIXEL_RGBA_HALF,
     .operations = {49, 39}},
    {"video, PQ", "video_pq", VIDEO, .transfer = COX_TRANSFER_PQ, .operations = {247, 166}},
    {"video, PQ, with analysis", "video_pq_analyse", VIDEO, .analyse = true,
     .operations = {260, 179}},
    {"video, PQ, analysis alone", "video_analysis", VIDEO_ANALYSIS, .operations = {39, 35}},
    {"video, HLG", "video_hlg", VIDEO, .transfer = COX_TRANSFER_HLG, .operations = {280, 200}},
    {"blur of radius 15, separable", "blur", BLUR, .form = COX_FILTER_EXCHANGE},
    {"Gaussian, recursive, in blocks", "gaussian", GAUSSIAN, .form = COX_FILTER_OVERLAP},
    {"Gaussian, recursive, by lines", "gaussian_lines", GAUSSIAN, .form = COX_FILTER_EXCHANGE},
};

/* Times that a filter reads or writes a sample of a plane of floats: the blur reads and writes in each of two passes;
 * the Gaussian forwards and backwards, along the rows and down the columns. */
enum { BLUR_ACCESSES = 4, GAUSSIAN_ACCESSES = 8 };

enum { BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX + 1 };

/* A ceiling or a kernel in a session of its own. */
struct entrant {
    cox_session *session;
    cox_buffer *buffers[BUFFERS_MAX];
    uint32_t buffer_count;
    uint64_t bytes; /* read and written in a frame */
    union {
        struct cox_tonemap_params picture;
        struct cox_video_params video;
        struct bench_ceiling_params ceiling;
        struct cox_filter_params filter;
    } params;
    uint64_t kernel_ns; /* of the frame under way */
    bool unprofiled;    /* the device does not say how long kernels take */
    double *ns;         /* one for each frame */
    double frame_ns, low_ns, high_ns;
};

/* The frames; every device works on the same. */
struct frames {
    uint32_t width, height;
    cox_buffer *half, *single, *picture_out, *picture_counts;
    size_t half_pitch, single_pitch, out_pitch;
    cox_buffer *video[2][COX_VIDEO_PLANES_MAX], *video_out[COX_VIDEO_PLANES_MAX],
        *video_counts; /* PQ, HLG */
    struct cox_video_shape video_shape;
    cox_buffer *ceiling_in, *ceiling_out;
    cox_buffer *plane_in, *plane_out; /* of floats */
    size_t plane_pitch;
};

struct bench {
    cox_runtime *runtime;
    struct frames frames;
    uint32_t rounds;
    struct quiet quiet;
    struct entrant entrants[ENTRANTS]; /* ceilings first */
    double *memory;
    /* of one device */
    struct cox_device_info device;
    double copy_gbs, operations_gs;
    struct bench_vectors vectors; /* of a CPU */
};

/* --- frames --- */

static bool make_buffer(cox_runtime *runtime, size_t bytes, cox_buffer **buffer)
{
    cox_status status = cox_buffer_create(runtime, bytes, buffer);
    return status == COX_OK ||
           bench_fail("a buffer of %zu bytes: %s", bytes, cox_status_text(status));
}

static bool make_planes(cox_runtime *runtime, const struct cox_video_format *format,
                        const struct frames *frames, size_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                        cox_buffer *buffers[COX_VIDEO_PLANES_MAX])
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t count = cox_video_planes(format, frames->width, frames->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        if (!make_buffer(runtime, planes[p].rows * pitch_bytes[p], &buffers[p]))
            return false;
    }
    return count > 0 || bench_fail("frames of %u x %u do not work", frames->width, frames->height);
}

static bool make_video(cox_runtime *runtime, struct frames *frames)
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

static bool make_pictures(cox_runtime *runtime, struct frames *frames)
{
    frames->half_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * 8);
    frames->single_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * 16);
    frames->out_pitch = frames->half_pitch; /* 16 bits; those of 8 take half of it */
    return make_buffer(runtime, frames->height * frames->half_pitch, &frames->half) &&
           make_buffer(runtime, frames->height * frames->single_pitch, &frames->single) &&
           make_buffer(runtime, frames->height * frames->out_pitch, &frames->picture_out) &&
           make_buffer(runtime, COX_TONEMAP_HISTOGRAM_BYTES, &frames->picture_counts);
}

static bool make_plane(cox_runtime *runtime, struct frames *frames)
{
    frames->plane_pitch = cox_runtime_pitch_bytes(runtime, (size_t)frames->width * sizeof(float));
    const size_t bytes = frames->height * frames->plane_pitch;
    if (!make_buffer(runtime, bytes, &frames->plane_in) ||
        !make_buffer(runtime, bytes, &frames->plane_out))
        return false;
    bench_plane_fill(cox_buffer_data(frames->plane_in), bytes / sizeof(float));
    return true;
}

static bool fill_frames(struct frames *frames)
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

static bool make_frames(cox_runtime *runtime, struct frames *frames)
{
    struct bench_ceiling ceiling;
    struct cox_session_params session = {0};
    bench_ceiling_fill(&ceiling, frames->width, frames->height, 0, runtime, &session);
    if (!make_buffer(runtime, frames->height * ceiling.bindings[0].pitch_bytes,
                     &frames->ceiling_in) ||
        !make_buffer(runtime, frames->height * ceiling.bindings[1].pitch_bytes,
                     &frames->ceiling_out) ||
        !make_pictures(runtime, frames) || !make_video(runtime, frames) || !fill_frames(frames))
        return false;
    bench_ceiling_input(&ceiling, frames->height, cox_buffer_data(frames->ceiling_in));
    return make_plane(runtime, frames);
}

static void clear_frames(struct frames *frames)
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

/* --- sessions --- */

enum { LAUNCH_NS = 100 }; /* no device launches a kernel in less */

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct entrant *entrant = user;
    if (report->warmup || report->shadow)
        return;
    for (uint32_t b = 0; b < report->band_count; b++) {
        /* rusticl 22.3 says one nanosecond, whatever the kernel did */
        bool said = report->bands[b].kernel_ns >= LAUNCH_NS;
        entrant->unprofiled |= !said;
        entrant->kernel_ns += said ? report->bands[b].kernel_ns : report->bands[b].wall_ns;
    }
}

static bool make_session(const struct bench *bench, uint32_t device,
                         struct cox_session_params *params, struct entrant *entrant)
{
    params->policy = "single";
    params->in_flight = 1;
    params->device_count = 1;
    params->devices = &device;
    params->report = on_report;
    params->report_user = entrant;
    params->profile = true;
    cox_status status = cox_session_create(bench->runtime, params, &entrant->session);
    return status == COX_OK || bench_fail("session: %s", cox_status_text(status));
}

static bool add_ceiling(struct bench *bench, uint32_t device, uint32_t multiply_adds_of,
                        struct entrant *entrant)
{
    const struct frames *frames = &bench->frames;
    struct bench_ceiling ceiling;
    struct cox_session_params params = {0};
    bench_ceiling_fill(&ceiling, frames->width, frames->height, multiply_adds_of, bench->runtime,
                       &params);
    entrant->params.ceiling = ceiling.params;
    entrant->bytes = ceiling.bytes;
    entrant->buffers[entrant->buffer_count++] = frames->ceiling_in;
    entrant->buffers[entrant->buffer_count++] = frames->ceiling_out;
    return make_session(bench, device, &params, entrant);
}

static bool add_picture(struct bench *bench, uint32_t device, const struct kernel *kernel,
                        struct entrant *entrant)
{
    const struct frames *frames = &bench->frames;
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    const bool single = kernel->in == COX_PIXEL_RGBA_FLOAT, maps = kernel->kind == PICTURE;
    const struct cox_tonemap_shape shape = {
        .width = frames->width,
        .height = frames->height,
        .in = kernel->in,
        .out = kernel->out,
        .in_pitch_bytes = single ? frames->single_pitch : frames->half_pitch,
        .out_pitch_bytes = frames->out_pitch / (kernel->out == COX_PIXEL_RGBA16 ? 1 : 2)};
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {0};
    cox_status status = maps ? cox_tonemap_mapping(&shape, &storage, &params)
                             : cox_tonemap_analysis(&shape, &storage, &params);
    if (status == COX_OK)
        status = cox_tonemap_prepare(&shape, &settings, &entrant->params.picture);
    if (status)
        return bench_fail("%s: %s", kernel->name, cox_status_text(status));
    entrant->bytes = (uint64_t)frames->width * frames->height *
                     ((single ? 16 : 8) + (maps ? (kernel->out == COX_PIXEL_RGBA16 ? 8 : 4) : 0));
    entrant->buffers[entrant->buffer_count++] = single ? frames->single : frames->half;
    entrant->buffers[entrant->buffer_count++] = maps ? frames->picture_out : frames->picture_counts;
    return make_session(bench, device, &params, entrant);
}

static void add_planes(const struct cox_video_format *format, const struct frames *frames,
                       cox_buffer *const buffers[COX_VIDEO_PLANES_MAX], struct entrant *entrant)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t count = cox_video_planes(format, frames->width, frames->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        entrant->bytes += (uint64_t)planes[p].rows * planes[p].row_bytes;
        entrant->buffers[entrant->buffer_count++] = buffers[p];
    }
}

static bool add_video(struct bench *bench, uint32_t device, const struct kernel *kernel,
                      struct entrant *entrant)
{
    const struct frames *frames = &bench->frames;
    const struct cox_video_settings settings = {.sdr_white_nits = 100, .desaturate = -1};
    struct cox_video_shape shape = frames->video_shape;
    shape.transfer = kernel->transfer;
    struct cox_video_storage storage;
    struct cox_session_params params = {0};
    cox_status status = kernel->kind == VIDEO
                            ? cox_video_mapping(&shape, kernel->analyse, &storage, &params)
                            : cox_video_analysis(&shape, &storage, &params);
    if (status == COX_OK)
        status = cox_video_prepare(&shape, &settings, &entrant->params.video);
    if (status)
        return bench_fail("%s: %s", kernel->name, cox_status_text(status));
    add_planes(&shape.in, frames, frames->video[kernel->transfer == COX_TRANSFER_HLG], entrant);
    if (kernel->kind == VIDEO)
        add_planes(&shape.out, frames, frames->video_out, entrant);
    if (kernel->kind == VIDEO_ANALYSIS || kernel->analyse)
        entrant->buffers[entrant->buffer_count++] = frames->video_counts;
    return make_session(bench, device, &params, entrant);
}

static bool add_filter(struct bench *bench, uint32_t device, const struct kernel *kernel,
                       struct entrant *entrant)
{
    enum { RADIUS = 15 };
    const struct frames *frames = &bench->frames;
    const bool blurs = kernel->kind == BLUR;
    const struct cox_filter_shape shape = {.width = frames->width,
                                           .height = frames->height,
                                           .sample = COX_FILTER_FLOAT,
                                           .in_pitch_bytes = frames->plane_pitch,
                                           .out_pitch_bytes = frames->plane_pitch,
                                           .radius_x = blurs ? RADIUS : 0,
                                           .radius_y = blurs ? RADIUS : 0,
                                           .form = kernel->form};
    struct cox_filter_storage storage;
    struct cox_session_params params = {0};
    cox_status status = blurs ? cox_filter_separable(&shape, &storage, &params)
                              : cox_filter_gaussian(&shape, &storage, &params);
    if (status == COX_OK)
        status = blurs ? bench_blur_prepare(&shape, &entrant->params.filter)
                       : cox_filter_gaussian_prepare(&shape, RADIUS / 3.0f, RADIUS / 3.0f,
                                                     &entrant->params.filter);
    if (status)
        return bench_fail("%s: %s", kernel->name, cox_status_text(status));
    entrant->bytes = (uint64_t)frames->width * frames->height * sizeof(float) *
                     (blurs ? BLUR_ACCESSES : GAUSSIAN_ACCESSES);
    entrant->buffers[0] = frames->plane_in;
    entrant->buffers[1] = frames->plane_out; /* what is between is the library's */
    entrant->buffer_count = params.binding_count;
    return make_session(bench, device, &params, entrant);
}

static bool add_entrant(struct bench *bench, uint32_t device, uint32_t index)
{
    struct entrant *entrant = &bench->entrants[index];
    *entrant = (struct entrant){.ns = bench->memory + (size_t)index * bench->rounds};
    if (index < CEILINGS)
        return add_ceiling(bench, device, multiply_adds[index], entrant);
    const struct kernel *kernel = &kernels[index - CEILINGS];
    bool picture = kernel->kind == PICTURE || kernel->kind == PICTURE_HISTOGRAM;
    if (kernel->kind == BLUR || kernel->kind == GAUSSIAN)
        return add_filter(bench, device, kernel, entrant);
    return (picture ? add_picture : add_video)(bench, device, kernel, entrant);
}

/* --- measuring --- */

static bool run_frame(struct entrant *entrant, uint32_t round)
{
    const struct cox_frame frame = {.buffers = entrant->buffers,
                                    .buffer_count = entrant->buffer_count,
                                    .params = &entrant->params};
    entrant->kernel_ns = 0;
    cox_status status = cox_session_run(entrant->session, &frame);
    entrant->ns[round] = (double)entrant->kernel_ns;
    return status == COX_OK || bench_fail("a frame failed: %s", cox_status_text(status));
}

/* The order of a round: no two neighbours work on the same buffers. */
static const uint32_t order[ENTRANTS] = {0, 6, 1, 10, 2, 7, 16, 3, 11, 4, 8, 14, 5, 12, 9, 15, 13};

/* Rounds of one frame of each. The first frames after a session's own warm-up are not counted. */
static bool run_rounds(struct bench *bench)
{
    for (uint32_t e = 0; e < ENTRANTS; e++)
        if (!run_frame(&bench->entrants[e], 0))
            return false;
    for (uint32_t round = 0; round < bench->rounds;) {
        quiet_begin(&bench->quiet);
        for (uint32_t e = 0; e < ENTRANTS; e++)
            if (!run_frame(&bench->entrants[order[e]], round))
                return false;
        round += quiet_keep(&bench->quiet);
    }
    for (uint32_t e = 0; e < ENTRANTS; e++) {
        struct entrant *entrant = &bench->entrants[e];
        entrant->low_ns = figures_quantile(entrant->ns, bench->rounds, 0.25);
        entrant->frame_ns = figures_quantile(entrant->ns, bench->rounds, 0.5);
        entrant->high_ns = figures_quantile(entrant->ns, bench->rounds, 0.75);
    }
    return true;
}

static double fps(double ns)
{
    return ns > 0 ? 1e9 / ns : 0;
}

static double gbs(const struct entrant *entrant)
{
    return (double)entrant->bytes * fps(entrant->frame_ns) * 1e-9;
}

/* 10^9 operations a second. */
static double rate(const struct bench *bench, const struct entrant *entrant, double operations)
{
    return operations * bench->frames.width * bench->frames.height * fps(entrant->frame_ns) * 1e-9;
}

static bool uses_fma(const struct bench *bench)
{
    return cox_runtime_arithmetic(bench->runtime) == COX_ARITHMETIC_FMA;
}

/* 10^9 operations a second of a ceiling; an fma is one, a multiplication and an addition are two. */
static double ceiling_rate(const struct bench *bench, uint32_t ceiling)
{
    const double operations = (uses_fma(bench) ? 1.0 : 2.0) * multiply_adds[ceiling];
    return rate(bench, &bench->entrants[ceiling], operations);
}

static double operations_of(const struct bench *bench, uint32_t kernel)
{
    return kernels[kernel].operations[uses_fma(bench)];
}

/* The ceilings that count: the copy's bytes, the operations of the one with the most. */
static void find_ceilings(struct bench *bench)
{
    bench->copy_gbs = gbs(&bench->entrants[0]);
    bench->operations_gs = ceiling_rate(bench, CEILINGS - 1);
}

/* How near a kernel is to each ceiling; the higher share binds. */
struct shares {
    double memory, arithmetic;
};

static struct shares find_shares(const struct bench *bench, uint32_t kernel)
{
    const struct entrant *entrant = &bench->entrants[CEILINGS + kernel];
    return (struct shares){.memory = gbs(entrant) / bench->copy_gbs,
                           .arithmetic = rate(bench, entrant, operations_of(bench, kernel)) /
                                         bench->operations_gs};
}

static double binding_share(const struct shares *shares)
{
    return shares->memory > shares->arithmetic ? shares->memory : shares->arithmetic;
}

/* Below this share of both ceilings something else decides: counting one by one, waiting for results. */
static const double bound_from = 0.4;

static const char *binding_name(const struct shares *shares)
{
    if (binding_share(shares) < bound_from)
        return "neither";
    return shares->memory > shares->arithmetic ? "memory" : "arithmetic";
}

/* --- output --- */

static bool is_cpu(const struct bench *bench)
{
    return bench->device.type == COX_DEVICE_CPU;
}

static void print_vectors(const struct bench_vectors *vectors)
{
    printf("  pictures of %u x %u by vectors and by scalars, the best frame of each\n",
           vectors->width, vectors->height);
    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS; f++) {
        const struct bench_vectors_format *of = &vectors->formats[f];
        printf(
            "  vectors over scalars, %-16s %7.2f ms against %7.2f: %.2f times, at least %.2f: %s\n",
            of->name, of->vector_ms, of->scalar_ms, of->ratio, vectors->bar,
            of->ratio >= vectors->bar ? "met" : "MISSED");
    }
}

static void print_device(const struct bench *bench)
{
    const struct cox_device_info *device = &bench->device;
    printf("\n%s (%s %s, %s), %u compute units, %s memory, %s\n", device->name, device->platform,
           device->driver, cox_device_type_name(device->type), device->compute_units,
           cox_memory_mode_name(device->mode),
           cox_arithmetic_name(cox_runtime_arithmetic(bench->runtime)));
    if (bench->entrants[0].unprofiled)
        printf(
            "  it does not say how long its kernels take: these times are from submission to completion\n");
    printf("  %-28s %10s %19s %9s %15s\n", "ceiling", "frames/s", "[quartiles]", "GB/s",
           "10^9 ops/s");
    for (uint32_t c = 0; c < CEILINGS; c++) {
        const struct entrant *entrant = &bench->entrants[c];
        char name[48];
        snprintf(name, sizeof name, c == 0 ? "copy" : "copy + %u multiply-adds", multiply_adds[c]);
        printf("  %-28s %10.1f [%8.1f,%8.1f] %9.2f %15.1f\n", name, fps(entrant->frame_ns),
               fps(entrant->high_ns), fps(entrant->low_ns), gbs(entrant), ceiling_rate(bench, c));
    }
    printf("  %-28s %10s %19s %9s %8s %6s %8s   %s\n", "kernel", "frames/s", "[quartiles]", "GB/s",
           "of copy", "ops/px", "of ops/s", "binds");
    for (uint32_t k = 0; k < KERNELS; k++) {
        const struct entrant *entrant = &bench->entrants[CEILINGS + k];
        const struct shares shares = find_shares(bench, k);
        printf("  %-28s %10.1f [%8.1f,%8.1f] %9.2f %8.2f ", kernels[k].name, fps(entrant->frame_ns),
               fps(entrant->high_ns), fps(entrant->low_ns), gbs(entrant), shares.memory);
        if (operations_of(bench, k) > 0)
            printf("%6.0f %8.2f   %s\n", operations_of(bench, k), shares.arithmetic,
                   binding_name(&shares));
        else
            printf("%6s %8s   -\n", "-", "-");
    }
    if (is_cpu(bench))
        print_vectors(&bench->vectors);
}

static void json_times(struct json *json, const struct entrant *entrant)
{
    json_key(json, "fps");
    json_number(json, fps(entrant->frame_ns));
    json_key(json, "fps_quartiles");
    json_open_array(json, true);
    json_number(json, fps(entrant->high_ns));
    json_number(json, fps(entrant->low_ns));
    json_close_array(json);
    json_key(json, "gbs");
    json_number(json, gbs(entrant));
    json_key(json, "profiled");
    json_bool(json, !entrant->unprofiled);
}

static void json_vectors(struct json *json, const struct bench_vectors *vectors)
{
    json_key(json, "vectors");
    json_open_object(json, false);
    json_key(json, "width");
    json_unsigned(json, vectors->width);
    json_key(json, "height");
    json_unsigned(json, vectors->height);
    json_key(json, "formats");
    json_open_array(json, false);
    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS; f++) {
        json_open_object(json, true);
        json_key(json, "format");
        json_string(json, vectors->formats[f].name);
        json_key(json, "vector_ms");
        json_number(json, vectors->formats[f].vector_ms);
        json_key(json, "scalar_ms");
        json_number(json, vectors->formats[f].scalar_ms);
        json_key(json, "ratio");
        json_number(json, vectors->formats[f].ratio);
        json_close_object(json);
    }
    json_close_array(json);
    json_key(json, "bar");
    json_number(json, vectors->bar);
    json_key(json, "met");
    json_bool(json, vectors->met);
    json_close_object(json);
}

static void json_device(struct json *json, const struct bench *bench)
{
    json_open_object(json, false);
    json_key(json, "device");
    json_string(json, bench->device.name);
    json_key(json, "platform");
    json_string(json, bench->device.platform);
    json_key(json, "driver");
    json_string(json, bench->device.driver);
    json_key(json, "arithmetic");
    json_string(json, cox_arithmetic_name(cox_runtime_arithmetic(bench->runtime)));
    json_key(json, "mode");
    json_string(json, cox_memory_mode_name(bench->device.mode));
    json_key(json, "ceilings");
    json_open_array(json, false);
    for (uint32_t c = 0; c < CEILINGS; c++) {
        json_open_object(json, true);
        json_key(json, "multiply_adds");
        json_unsigned(json, multiply_adds[c]);
        json_times(json, &bench->entrants[c]);
        json_key(json, "operations_gs");
        json_number(json, ceiling_rate(bench, c));
        json_close_object(json);
    }
    json_close_array(json);
    json_key(json, "kernels");
    json_open_array(json, false);
    for (uint32_t k = 0; k < KERNELS; k++) {
        const struct shares shares = find_shares(bench, k);
        json_open_object(json, true);
        json_key(json, "kernel");
        json_string(json, kernels[k].key);
        json_times(json, &bench->entrants[CEILINGS + k]);
        json_key(json, "of_copy");
        json_number(json, shares.memory);
        if (operations_of(bench, k) > 0) {
            json_key(json, "operations");
            json_number(json, operations_of(bench, k));
            json_key(json, "of_operations");
            json_number(json, shares.arithmetic);
            json_key(json, "binds");
            json_string(json, binding_name(&shares));
        }
        json_close_object(json);
    }
    json_close_array(json);
    if (is_cpu(bench))
        json_vectors(json, &bench->vectors);
    json_close_object(json);
}

static void print_head(const struct bench *bench, const struct machine *machine)
{
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus,
           machine->system, machine->load);
    printf(
        "frames of %u x %u; video: 4:2:0, 10 bits to 8, hable; %u frames of each kernel, in turn; medians of the\n"
        "kernels' own time, copies to and from the device left out\n",
        bench->frames.width, bench->frames.height, bench->rounds);
}

static void json_head(struct json *json, const struct bench *bench, const struct machine *machine)
{
    json_begin(json, stdout);
    json_open_object(json, false);
    json_key(json, "benchmark");
    json_string(json, "kernels");
    machine_json(machine, json);
    json_key(json, "width");
    json_unsigned(json, bench->frames.width);
    json_key(json, "height");
    json_unsigned(json, bench->frames.height);
    json_key(json, "frames");
    json_unsigned(json, bench->rounds);
    json_key(json, "devices");
    json_open_array(json, false);
}

static void print_tail(const struct bench *bench)
{
    putchar('\n');
    if (quiet_others(&bench->quiet) >= 0)
        printf(
            "other programs used %.2f processors meanwhile; %u disturbed rounds were done again\n",
            quiet_others(&bench->quiet), bench->quiet.again);
    if (quiet_busy(&bench->quiet))
        printf("The machine was BUSY: the figures say little.\n");
}

static void json_tail(struct json *json, const struct bench *bench)
{
    json_close_array(json);
    json_key(json, "others_cpus");
    json_number(json, quiet_others(&bench->quiet));
    json_key(json, "rounds_again");
    json_unsigned(json, bench->quiet.again);
    json_close_object(json);
    json_end(json);
}

static bool measure_device(struct bench *bench, uint32_t device)
{
    bool good = true;
    cox_runtime_device_info(bench->runtime, device, &bench->device);
    memset(bench->entrants, 0, sizeof bench->entrants);
    for (uint32_t e = 0; good && e < ENTRANTS; e++)
        good = add_entrant(bench, device, e);
    good = good && run_rounds(bench);
    if (good)
        find_ceilings(bench);
    for (uint32_t e = 0; e < ENTRANTS; e++)
        cox_session_destroy(&bench->entrants[e].session);
    if (good && is_cpu(bench))
        good = bench_vectors(bench->runtime, device, bench->rounds, &bench->quiet, &bench->vectors);
    return good;
}

/* `*met`: the bar, which CPUs have. */
static bool measure_devices(struct bench *bench, const struct bench_options *options, bool *met)
{
    struct machine machine;
    struct json json;
    machine_read(&machine);
    quiet_start(&bench->quiet, options->quiet_s);
    if (options->json)
        json_head(&json, bench, &machine);
    else
        print_head(bench, &machine);
    for (uint32_t d = 0; d < cox_runtime_device_count(bench->runtime); d++) {
        if (!measure_device(bench, d))
            return false;
        *met &= !is_cpu(bench) || bench->vectors.met;
        if (options->json)
            json_device(&json, bench);
        else
            print_device(bench);
    }
    if (options->json)
        json_tail(&json, bench);
    else
        print_tail(bench);
    return true;
}

bool bench_kernels(const struct bench_options *options, bool *met)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return bench_fail("out of memory");
    bench->rounds = options->frames ? options->frames : FRAMES_DEFAULT;
    bench->frames.width = options->width ? options->width : WIDTH;
    bench->frames.height = options->height ? options->height : HEIGHT;
    bench->memory = calloc((size_t)bench->rounds * ENTRANTS, sizeof *bench->memory);
    bool good = bench->memory || bench_fail("out of memory");
    if (good) {
        cox_status status =
            cox_runtime_create(&bench->runtime,
                               &(const struct cox_runtime_params){.devices = options->devices,
                                                                  .arithmetic = options->arithmetic,
                                                                  .log = bench_log});
        good = status == COX_OK || bench_fail("%s", cox_status_text(status));
    }
    *met = true;
    good = good && make_frames(bench->runtime, &bench->frames) &&
           measure_devices(bench, options, met);
    clear_frames(&bench->frames);
    cox_runtime_destroy(&bench->runtime);
    free(bench->memory);
    free(bench);
    return good;
}
