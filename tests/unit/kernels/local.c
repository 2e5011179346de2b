/* The operator local through the public interface, for pictures and for video, on every OpenCL device there is:
 * against the double-precision reference, the same bits, no halos, no flicker.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_splits.h"
#include "support/ref_local_case.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(local, .timeout = 1200);

static char last_log[4096];

static void keep_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(last_log, sizeof(last_log), "%s", line);
}

/* Mesa's software device plays the GPU where it is installed. */
static cox_runtime *open_devices(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 0);
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.cache_dir = getenv("COX_TEST_KERNELS"),
                                                                              .log = keep_log));
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    return runtime;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

enum variant { VARIANT_OWN = -1, VARIANT_VECTOR = 0, VARIANT_SCALAR = 1 };
enum { ALL_DEVICES = UINT32_MAX, STAGES = 8 };

static uint32_t bands_made; /* by sessions on all devices */

static void count_bands(void *user, const struct cox_frame_report *report)
{
    (void)user;
    bands_made += report->band_count;
}

/* On one device, or on all under random splits; every stage in its own variant or in the one that is asked for. */
static cox_session *session_open(cox_runtime *runtime, struct cox_session_params *params, enum variant variant,
                                 uint32_t device)
{
    struct cox_pass passes[COX_PASSES_MAX];
    struct cox_stage stages[COX_PASSES_MAX][STAGES];
    struct cox_variant only[COX_PASSES_MAX][STAGES];
    params->no_warmup = true;
    params->device_timeout_ns = 60000000000; /* a busy machine */
    for (uint32_t p = 0; p < params->pass_count; p++) {
        passes[p] = params->passes[p];
        for (uint32_t s = 0; s < passes[p].stage_count && variant != VARIANT_OWN; s++) {
            stages[p][s] = params->passes[p].stages[s];
            only[p][s] = stages[p][s].variants[variant];
            only[p][s].type = 0;
            stages[p][s].variants = &only[p][s];
            stages[p][s].variant_count = 1;
        }
        if (variant != VARIANT_OWN)
            passes[p].stages = stages[p];
    }
    params->passes = passes;
    if (device == ALL_DEVICES) {
        random_splits_begin(0, 0);
        params->custom_policy = &random_splits_policy;
        params->split_each_pass = true;
        params->report = count_bands;
    } else {
        params->policy = "single";
        params->devices = &device;
        params->device_count = 1;
    }
    cox_session *session = NULL;
    const cox_status status = cox_session_create(runtime, params, &session);
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    return session;
}

/* A frame of the buffers that are given; those of scratch are NULL. */
static void session_run(cox_session *session, cox_buffer *const *given, uint32_t given_count, uint32_t count,
                        const void *params)
{
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    memcpy(buffers, given, given_count * sizeof(*given));
    const cox_status status = cox_session_run(session,
                                              COX_FRAME(.buffers = buffers, .buffer_count = count, .params = params));
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
}

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

struct picture {
    struct cox_tonemap_shape shape;
    cox_buffer *buffers[2]; /* in, out */
};

static struct picture picture_new(cox_runtime *runtime, uint32_t width, uint32_t height, enum cox_pixel_in in,
                                  enum cox_pixel_out out)
{
    struct picture picture = {.shape = {.width = width, .height = height, .in = in, .out = out, .local = true}};
    picture.shape.in_pitch_bytes = cox_runtime_pitch_bytes(runtime, width * (in == COX_PIXEL_RGBA_FLOAT ? 16u : 8u));
    picture.shape.out_pitch_bytes = cox_runtime_pitch_bytes(runtime, width * (out == COX_PIXEL_RGBA16 ? 8u : 4u));
    cr_assert_eq(cox_buffer_create(runtime, picture.shape.in_pitch_bytes * height, &picture.buffers[0]), COX_OK);
    cr_assert_eq(cox_buffer_create(runtime, picture.shape.out_pitch_bytes * height, &picture.buffers[1]), COX_OK);
    return picture;
}

static void picture_free(struct picture *picture)
{
    cox_buffer_destroy(&picture->buffers[0]);
    cox_buffer_destroy(&picture->buffers[1]);
}

static void put(const struct picture *picture, uint32_t x, uint32_t y, double light)
{
    local_case_put(&picture->shape, cox_buffer_data(picture->buffers[0]), x, y, (double[]){light, light, light});
}

static double code_at(const struct picture *picture, uint32_t x, uint32_t y)
{
    return local_case_code(&picture->shape, cox_buffer_data(picture->buffers[1]), x, y, 1);
}

static void map_in(cox_session *session, const struct picture *picture, const struct cox_tonemap_settings *settings)
{
    struct cox_tonemap_params params;
    cr_assert_eq(cox_tonemap_prepare(&picture->shape, settings, &params), COX_OK);
    session_run(session, picture->buffers, 2, 2 + LOCAL_SCRATCH, &params);
}

static cox_session *map_session(cox_runtime *runtime, const struct picture *picture, enum variant variant,
                                uint32_t device)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {0};
    cr_assert_eq(cox_tonemap_mapping(&picture->shape, &storage, &params), COX_OK);
    return session_open(runtime, &params, variant, device);
}

static void map(cox_runtime *runtime, const struct picture *picture, const struct cox_tonemap_settings *settings,
                enum variant variant, uint32_t device)
{
    cox_session *session = map_session(runtime, picture, variant, device);
    map_in(session, picture, settings);
    cox_session_destroy(&session);
}

static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {83, 9}, {515, 301}, {1279, 180}};

/* Beside rounding the curve is a fit: of 16 bits the bound is that of the fit. */
Test(local, maps_pictures_within_one_code_of_the_reference)
{
    cox_runtime *runtime = open_devices();
    const struct cox_tonemap_settings settings[] = {
        {.op = COX_OPERATOR_LOCAL},
        {.op = COX_OPERATOR_LOCAL, .exposure_stops = 3, .peak = 620, .detail = 1.5f},
        {.op = COX_OPERATOR_LOCAL, .exposure_stops = -2, .peak = 2, .detail = 0.25f, .desaturate = -1}};
    double worst[2] = {0, 0};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int format = 0; format < 4; format++) {
            if (sizes[s][0] > 500 && format != 0 && format != 3)
                continue; /* half to 8 bits and float to 16 bits have both of everything */
            struct picture picture = picture_new(runtime, sizes[s][0], sizes[s][1],
                                                 format & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF,
                                                 format & 2 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8);
            local_case_picture(&picture.shape, cox_buffer_data(picture.buffers[0]), 5 + (uint32_t)s);
            const uint32_t device = (uint32_t)(s + (size_t)format) % cox_runtime_device_count(runtime);
            for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
                map(runtime, &picture, &settings[i], VARIANT_OWN, device);
                double error;
                cr_assert(local_case_picture_error(&picture.shape, &settings[i], cox_buffer_data(picture.buffers[0]),
                                                   cox_buffer_data(picture.buffers[1]), &error),
                          "no memory");
                cr_expect_leq(error, format & 2 ? 16 : 1, "%ux%u, format %d, settings %zu: %g codes", sizes[s][0],
                              sizes[s][1], format, i, error);
                worst[format / 2] = fmax(worst[format / 2], error);
            }
            picture_free(&picture);
        }
    }
    fprintf(stderr, "largest error: %g codes of 8 bits, %g of 16\n", worst[0], worst[1]);
    cox_runtime_destroy(&runtime);
}

static char *copy_output(const cox_buffer *out, size_t bytes)
{
    char *copy = malloc(bytes);
    cr_assert_not_null(copy);
    return memcpy(copy, cox_buffer_data(out), bytes);
}

Test(local, gives_pictures_the_same_bits_on_every_device_in_every_variant_and_split)
{
    cox_runtime *runtime = open_devices();
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = 1.3f};
    const uint32_t own[][2] = {{517, 211}, {1021, 97}};
    for (int n = 0; n < 2; n++) {
        struct picture picture = picture_new(runtime, own[n][0], own[n][1],
                                             n ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA16);
        const size_t bytes = picture.shape.out_pitch_bytes * picture.shape.height;
        local_case_picture(&picture.shape, cox_buffer_data(picture.buffers[0]), 3);
        map(runtime, &picture, &settings, VARIANT_VECTOR, 0);
        char *expected = copy_output(picture.buffers[1], bytes);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                memset(cox_buffer_data(picture.buffers[1]), 0xa5, bytes);
                map(runtime, &picture, &settings, variant, device);
                for (uint32_t y = 0; y < picture.shape.height; y++)
                    cr_assert_arr_eq((char *)cox_buffer_data(picture.buffers[1]) + y * picture.shape.out_pitch_bytes,
                                     expected + y * picture.shape.out_pitch_bytes, 8 * picture.shape.width,
                                     "device %u, variant %d, row %u", device, variant, y);
            }
        }
        cox_session *session = map_session(runtime, &picture, VARIANT_OWN, ALL_DEVICES);
        bands_made = 0;
        for (int i = 0; i < 10; i++) {
            memset(cox_buffer_data(picture.buffers[1]), 0xa5, bytes);
            map_in(session, &picture, &settings);
            for (uint32_t y = 0; y < picture.shape.height; y++)
                cr_assert_arr_eq((char *)cox_buffer_data(picture.buffers[1]) + y * picture.shape.out_pitch_bytes,
                                 expected + y * picture.shape.out_pitch_bytes, 8 * picture.shape.width,
                                 "split %d, row %u", i, y);
        }
        cr_expect_geq(bands_made, 60, "the splits are some: %u bands in 40 passes", bands_made);
        cox_session_destroy(&session);
        free(expected);
        picture_free(&picture);
    }
    cox_runtime_destroy(&runtime);
}

/* How far beyond the levels of both sides of an edge its surroundings go, in codes: [0] of the range, [1] of the edge's
 * height. */
static void overshoot(const struct picture *picture, double worst[2])
{
    const uint32_t width = picture->shape.width, y = picture->shape.height / 2;
    const double low = code_at(picture, 0, y), high = code_at(picture, width - 1, y);
    double beyond = 0;
    for (uint32_t x = 0; x < width; x++) {
        const double code = code_at(picture, x, y), level = x < width / 2 ? low : high;
        beyond = fmax(beyond, x < width / 2 ? level - code : code - level); /* away from the other side */
        beyond = fmax(beyond, x < width / 2 ? code - high : low - code);
    }
    worst[0] = beyond / 65535;
    worst[1] = beyond / (high - low);
}

/* Edges of a stop and more are held to 2 % of the range, those of two and more to 2 % of their height too. Smaller ones
 * are detail, which is to stand out. */
Test(local, leaves_no_halo_at_an_edge)
{
    enum { WIDTH = 640, HEIGHT = 40 };
    cox_runtime *runtime = open_devices();
    struct picture picture = picture_new(runtime, WIDTH, HEIGHT, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16);
    cox_session *session = map_session(runtime, &picture, VARIANT_OWN, 0);
    static const double edges[] = {0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 13};
    double range[2] = {0, 0}, height = 0; /* of edges of less than a stop, of the others; of two stops and more */
    for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++) {
        for (int bright = -5; bright <= 5; bright += 2) {
            for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
                const double light = exp2(bright - (i % WIDTH < WIDTH / 2 ? edges[e] : 0));
                put(&picture, i % WIDTH, i / WIDTH, light);
            }
            double worst[2];
            map_in(session, &picture, &(struct cox_tonemap_settings){.op = COX_OPERATOR_LOCAL, .peak = 40});
            overshoot(&picture, worst);
            if (edges[e] >= 1)
                cr_expect_leq(worst[0], 0.02, "%g stops up to 2^%d: %.2f %% of the range", edges[e], bright,
                              100 * worst[0]);
            if (edges[e] >= 2)
                cr_expect_leq(worst[1], 0.02, "%g stops up to 2^%d: %.2f %% of the edge", edges[e], bright,
                              100 * worst[1]);
            range[edges[e] >= 1] = fmax(range[edges[e] >= 1], worst[0]);
            height = fmax(height, edges[e] >= 2 ? worst[1] : 0);
        }
    }
    fprintf(
        stderr,
        "overshoot: %.2f %% of the range, %.2f %% at edges of less than a stop; %.2f %% of the height of an edge of two "
        "stops or more\n",
        100 * range[1], 100 * range[0], 100 * height);
    cox_session_destroy(&session);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* Texture on bright ground, where the curve alone would press it flat. */
Test(local, keeps_the_detail_of_what_it_compresses)
{
    cox_runtime *runtime = open_devices();
    struct picture picture = picture_new(runtime, 256, 64, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16);
    cox_session *session = map_session(runtime, &picture, VARIANT_OWN, 0);
    for (uint32_t i = 0; i < 256 * 64; i++) {
        const double light = 4 * exp2(i % 256 / 2 % 2 ? 0.1 : -0.1);
        put(&picture, i % 256, i / 256, light);
    }
    const float details[] = {0.5f, 0, 2};
    for (int i = 0; i < 3; i++) {
        map_in(session, &picture,
               &(struct cox_tonemap_settings){.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = details[i]});
        double light[2];
        for (uint32_t x = 0; x < 2; x++)
            light[x] = pow((code_at(&picture, 128 + 2 * x, 32) / 65535 + 0.055) / 1.055, 2.4);
        const double stops = log2(light[1] / light[0]), wanted = 0.2 * (i == 1 ? 1 : (double)details[i]);
        cr_expect_float_eq(stops, wanted, 0.01 + 0.1 * wanted, "detail %g: %g stops of %g", (double)details[i], stops,
                           wanted);
    }
    cox_session_destroy(&session);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* --- Video -------------------------------------------------------------------------------------------------------- */

struct frame {
    struct cox_video_shape shape;
    cox_buffer *in[COX_VIDEO_PLANES_MAX], *out[COX_VIDEO_PLANES_MAX], *histogram;
    struct cox_video_plane in_planes[COX_VIDEO_PLANES_MAX], out_planes[COX_VIDEO_PLANES_MAX];
    uint32_t in_count, out_count;
};

static struct frame frame_new(cox_runtime *runtime, const struct cox_video_shape *shape)
{
    struct frame frame = {.shape = *shape};
    frame.in_count = cox_video_planes(&shape->in, shape->width, shape->height, frame.in_planes);
    frame.out_count = cox_video_planes(&shape->out, shape->width, shape->height, frame.out_planes);
    for (uint32_t p = 0; p < frame.in_count; p++) {
        frame.shape.in_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, frame.in_planes[p].row_bytes);
        cr_assert_eq(cox_buffer_create(runtime, frame.shape.in_pitch_bytes[p] * frame.in_planes[p].rows, &frame.in[p]),
                     COX_OK);
    }
    for (uint32_t p = 0; p < frame.out_count; p++) {
        frame.shape.out_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, frame.out_planes[p].row_bytes);
        cr_assert_eq(cox_buffer_create(runtime, frame.shape.out_pitch_bytes[p] * frame.out_planes[p].rows,
                                       &frame.out[p]),
                     COX_OK);
    }
    cr_assert_eq(cox_buffer_create(runtime, COX_VIDEO_HISTOGRAM_BYTES, &frame.histogram), COX_OK);
    return frame;
}

static void frame_free(struct frame *frame)
{
    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        cox_buffer_destroy(&frame->in[p]);
        cox_buffer_destroy(&frame->out[p]);
    }
    cox_buffer_destroy(&frame->histogram);
}

static void fill_frame(const struct frame *frame, uint32_t seed, uint32_t noise)
{
    void *in[COX_VIDEO_PLANES_MAX] = {NULL};
    for (uint32_t p = 0; p < frame->in_count; p++)
        in[p] = cox_buffer_data(frame->in[p]);
    local_case_frame(&frame->shape, in, seed, noise);
}

static double frame_error(const struct frame *frame, const struct cox_video_settings *settings)
{
    const void *in[COX_VIDEO_PLANES_MAX] = {NULL}, *out[COX_VIDEO_PLANES_MAX] = {NULL};
    double error;
    for (uint32_t p = 0; p < frame->in_count; p++)
        in[p] = cox_buffer_data(frame->in[p]);
    for (uint32_t p = 0; p < frame->out_count; p++)
        out[p] = cox_buffer_data(frame->out[p]);
    cr_assert(local_case_frame_error(&frame->shape, settings, in, out, &error), "no memory");
    return error;
}

static void frame_run(cox_session *session, const struct frame *frame, bool analyse,
                      const struct cox_video_settings *settings)
{
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    uint32_t count = 0;
    struct cox_video_params params;
    cr_assert_eq(cox_video_prepare(&frame->shape, settings, &params), COX_OK);
    for (uint32_t p = 0; p < frame->in_count; p++)
        buffers[count++] = frame->in[p];
    for (uint32_t p = 0; p < frame->out_count; p++) {
        memset(cox_buffer_data(frame->out[p]), 0xa5, frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows);
        buffers[count++] = frame->out[p];
    }
    if (analyse)
        buffers[count++] = frame->histogram;
    session_run(session, buffers, count, count + LOCAL_SCRATCH, &params);
}

static cox_session *frame_session(cox_runtime *runtime, const struct frame *frame, bool analyse, enum variant variant,
                                  uint32_t device)
{
    struct cox_video_storage storage;
    struct cox_session_params params = {0};
    cr_assert_eq(cox_video_mapping(&frame->shape, analyse, &storage, &params), COX_OK);
    return session_open(runtime, &params, variant, device);
}

Test(local, maps_video_within_a_code_of_8_bits_and_two_of_10_of_the_reference)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings[] = {
        {0}, {.peak_nits = 4000, .detail = 1.5f, .gain = 0.7f}, {.peak_nits = 300, .detail = 0.5f}};
    double worst[2] = {0, 0};
    for (int n = 0; n < LOCAL_FILMS; n++) {
        const struct cox_video_shape shape = local_case_film((uint32_t)n);
        struct frame frame = frame_new(runtime, &shape);
        fill_frame(&frame, 17 + (uint32_t)n, 3);
        cox_session *session = frame_session(runtime, &frame, false, VARIANT_OWN,
                                             (uint32_t)n % cox_runtime_device_count(runtime));
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
            frame_run(session, &frame, false, &settings[i]);
            const double error = frame_error(&frame, &settings[i]);
            cr_expect_leq(error, shape.out.depth == 10 ? 2 : 1, "shape %d, settings %zu: %g codes", n, i, error);
            worst[shape.out.depth == 10] = fmax(worst[shape.out.depth == 10], error);
        }
        cox_session_destroy(&session);
        frame_free(&frame);
    }
    fprintf(stderr, "largest error: %g codes of 8 bits, %g of 10\n", worst[0], worst[1]);
    cox_runtime_destroy(&runtime);
}

static void expect_same(const struct frame *frame, char *const expected[COX_VIDEO_PLANES_MAX], const char *what,
                        unsigned number)
{
    for (uint32_t p = 0; p < frame->out_count; p++)
        for (uint32_t y = 0; y < frame->out_planes[p].rows; y++) {
            const size_t at = y * frame->shape.out_pitch_bytes[p];
            cr_assert_arr_eq((char *)cox_buffer_data(frame->out[p]) + at, expected[p] + at,
                             frame->out_planes[p].row_bytes, "%s %u: plane %u, row %u", what, number, p, y);
        }
}

Test(local, gives_video_the_same_bits_on_every_device_in_every_variant_and_split)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.detail = 1.3f};
    static const uint32_t shapes[] = {0, 2, 5, 7, 9};
    for (size_t n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
        const struct cox_video_shape shape = local_case_film(shapes[n]);
        struct frame frame = frame_new(runtime, &shape);
        char *expected[COX_VIDEO_PLANES_MAX] = {NULL};
        fill_frame(&frame, 5, 9);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                cox_session *session = frame_session(runtime, &frame, false, variant, device);
                frame_run(session, &frame, false, &settings);
                cox_session_destroy(&session);
                for (uint32_t p = 0; p < frame.out_count && !expected[frame.out_count - 1]; p++)
                    expected[p] = copy_output(frame.out[p], frame.shape.out_pitch_bytes[p] * frame.out_planes[p].rows);
                expect_same(&frame, expected, variant ? "scalars on device" : "vectors on device", device);
            }
        }
        cox_session *session = frame_session(runtime, &frame, true, VARIANT_OWN, ALL_DEVICES);
        for (unsigned i = 0; i < 8; i++) {
            frame_run(session, &frame, true, &settings);
            expect_same(&frame, expected, "split", i);
        }
        cox_session_destroy(&session);
        for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++)
            free(expected[p]);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

static double mean_luma(const struct frame *frame)
{
    double sum = 0;
    for (uint32_t y = 0; y < frame->shape.height; y++)
        for (uint32_t x = 0; x < frame->shape.width; x++)
            sum += ((const uint8_t *)cox_buffer_data(frame->out[0]))[y * frame->shape.out_pitch_bytes[0] + x];
    return sum / ((double)frame->shape.width * frame->shape.height);
}

/* The means of parts of the frame, which the base could move against each other without a change of the whole. */
enum { PARTS = 8 };

static void mean_lumas(const struct frame *frame, double means[PARTS * PARTS])
{
    const uint32_t width = frame->shape.width / PARTS, height = frame->shape.height / PARTS;
    for (uint32_t part = 0; part < PARTS * PARTS; part++) {
        double sum = 0;
        for (uint32_t i = 0; i < width * height; i++)
            sum += ((const uint8_t *)cox_buffer_data(frame->out[0]))[(part / PARTS * height + i / width) *
                                                                         frame->shape.out_pitch_bytes[0] +
                                                                     part % PARTS * width + i % width];
        means[part] = sum / (width * height);
    }
}

/* Nothing changes but noise of 1 % of the signal: from the second frame on, which the first one steers, neither does
 * the mean of the luma, of the frame or of any part of it. */
Test(local, does_not_flicker_on_a_constant_scene_with_noise)
{
    enum { FRAMES = 30 };
    cox_runtime *runtime = open_devices();
    for (int transfer = COX_TRANSFER_PQ; transfer <= COX_TRANSFER_HLG; transfer++) {
        struct cox_video_shape shape = local_case_film(0);
        shape.transfer = (enum cox_transfer)transfer;
        shape.width = 640;
        shape.height = 360;
        struct frame frame = frame_new(runtime, &shape);
        cox_session *session = frame_session(runtime, &frame, true, VARIANT_OWN, 0);
        struct cox_video_settings settings = {0};
        struct cox_video_steer steer = {0};
        double worst = 0, worst_part = 0, last = 0, parts[2][PARTS * PARTS];
        for (int i = 0; i < FRAMES; i++) {
            fill_frame(&frame, 40, 1000 + (uint32_t)i);
            frame_run(session, &frame, true, &settings);
            const double mean = mean_luma(&frame);
            mean_lumas(&frame, parts[i % 2]);
            for (int part = 0; part < PARTS * PARTS && i > 1; part++)
                worst_part = fmax(worst_part, fabs(parts[0][part] - parts[1][part]));
            worst = fmax(worst, i > 1 ? fabs(mean - last) : 0);
            last = mean;
            cox_video_steer(&steer, NULL, &frame.shape, cox_buffer_data(frame.histogram), &settings);
        }
        fprintf(stderr,
                "%s: mean luma %.1f, changes by up to %.3f codes from frame to frame, of a 64th of the frame %.3f\n",
                transfer ? "HLG" : "PQ", last, worst, worst_part);
        cr_expect_leq(worst, 0.5, "%g codes", worst);
        cr_expect_leq(worst_part, 0.5, "%g codes", worst_part);
        cox_session_destroy(&session);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

Test(local, takes_a_session_and_a_detail_of_its_own)
{
    struct cox_tonemap_shape shape = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
    struct cox_tonemap_params params;
    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL};
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_E_INVALID, "the session is for curves");
    shape.local = true;
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_OK);
    settings.op = COX_OPERATOR_HABLE;
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_E_INVALID, "the session is for local");

    static const float good[] = {0, 0.25f, 4}, bad[] = {0.2f, 4.1f, -1, NAN, INFINITY};
    struct cox_video_shape film = local_case_film(0);
    film.in_pitch_bytes[0] = film.in_pitch_bytes[1] = film.in_pitch_bytes[2] = 2048;
    film.out_pitch_bytes[0] = film.out_pitch_bytes[1] = film.out_pitch_bytes[2] = 2048;
    struct cox_video_params film_params;
    settings.op = COX_OPERATOR_LOCAL;
    for (size_t i = 0; i < 8; i++) {
        const cox_status status = i < 3 ? COX_OK : COX_E_INVALID;
        settings.detail = i < 3 ? good[i] : bad[i - 3];
        const struct cox_video_settings film_settings = {.detail = settings.detail};
        cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), status, "detail %g", (double)settings.detail);
        cr_expect_eq(cox_video_prepare(&film, &film_settings, &film_params), status, "detail %g",
                     (double)settings.detail);
    }
}
