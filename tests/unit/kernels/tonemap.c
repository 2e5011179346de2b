/* The picture kernels through the public interface, on every OpenCL device there is, against the double-precision
 * reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/random_splits.h"
#include "support/ref_tonemap.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(kernels, .timeout = 1200);

enum { GUARD_BYTES = 4096, GUARD = 0xa5 };
enum { CURVES = COX_OPERATOR_LOCAL }; /* operators before it map a pixel by itself; local.c is about that one */

/* --- Devices ------------------------------------------------------------------------------------------------------ */

static char last_log[4096];

static void keep_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(last_log, sizeof(last_log), "%s", line);
}

/* Mesa's software device plays the GPU where it is installed. */
static cox_runtime *open_devices(const char *devices)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 0);
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.devices = devices,
                                                                              .cache_dir = getenv("COX_TEST_KERNELS"),
                                                                              .log = keep_log));
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    return runtime;
}

static const char *device_name(cox_runtime *runtime, uint32_t device)
{
    static struct cox_device_info info;
    cr_assert_eq(cox_runtime_device_info(runtime, device, &info, sizeof info), COX_OK);
    return info.name;
}

/* --- Splits ------------------------------------------------------------------------------------------------------- */

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The bands that sessions on all devices were cut into so far. */
static uint32_t bands_made;

static void count_bands(void *user, const struct cox_frame_report *report)
{
    (void)user;
    bands_made += report->band_count;
}

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

struct picture {
    struct cox_tonemap_shape shape;
    cox_buffer *in;
    cox_buffer *out; /* its end is followed by GUARD_BYTES */
};

static struct picture picture_new(cox_runtime *runtime, uint32_t width, uint32_t height, enum cox_pixel_in in,
                                  enum cox_pixel_out out, size_t padding)
{
    const size_t in_pixel = in == COX_PIXEL_RGBA_FLOAT ? 16 : 8, out_pixel = out == COX_PIXEL_RGBA16 ? 8 : 4;
    struct picture picture = {.shape = {.width = width,
                                        .height = height,
                                        .in = in,
                                        .out = out,
                                        .in_pitch_bytes = (width + padding) * in_pixel,
                                        .out_pitch_bytes = (width + padding) * out_pixel}};
    const size_t out_bytes = picture.shape.out_pitch_bytes * height + GUARD_BYTES;
    cr_assert_eq(cox_buffer_create(runtime, picture.shape.in_pitch_bytes * height, &picture.in), COX_OK);
    cr_assert_eq(cox_buffer_create(runtime, out_bytes, &picture.out), COX_OK);
    memset(cox_buffer_data(picture.out), GUARD, out_bytes);
    return picture;
}

static void picture_free(struct picture *picture)
{
    cox_buffer_destroy(&picture->in);
    cox_buffer_destroy(&picture->out);
}

static void put(const struct picture *picture, uint32_t x, uint32_t y, const double rgba[4])
{
    char *row = (char *)cox_buffer_data(picture->in) + y * picture->shape.in_pitch_bytes;
    for (int i = 0; i < 4; i++) {
        if (picture->shape.in == COX_PIXEL_RGBA_FLOAT)
            ((float *)(void *)row)[4 * x + i] = (float)rgba[i];
        else
            ((uint16_t *)(void *)row)[4 * x + i] = ref_to_half(rgba[i]);
    }
}

static uint32_t bits_at(const struct picture *picture, uint32_t x, uint32_t y, int channel)
{
    const char *row = (const char *)cox_buffer_data(picture->in) + y * picture->shape.in_pitch_bytes;
    uint32_t bits;
    if (picture->shape.in != COX_PIXEL_RGBA_FLOAT)
        return ((const uint16_t *)(const void *)row)[4 * x + channel];
    memcpy(&bits, row + (4 * (size_t)x + channel) * 4, 4);
    return bits;
}

static void put_bits(const struct picture *picture, uint32_t x, uint32_t y, int channel, uint32_t bits)
{
    char *row = (char *)cox_buffer_data(picture->in) + y * picture->shape.in_pitch_bytes;
    if (picture->shape.in == COX_PIXEL_RGBA_FLOAT)
        memcpy(row + (4 * (size_t)x + channel) * 4, &bits, 4);
    else
        ((uint16_t *)(void *)row)[4 * x + channel] = (uint16_t)bits;
}

static void stored(const struct picture *picture, uint32_t x, uint32_t y, double rgba[4])
{
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = bits_at(picture, x, y, i);
        float value;
        memcpy(&value, &bits, 4);
        rgba[i] = picture->shape.in == COX_PIXEL_RGBA_FLOAT ? (double)value : ref_half((uint16_t)bits);
    }
}

static uint32_t code_at(const struct picture *picture, uint32_t x, uint32_t y, int channel)
{
    const unsigned char *row = (const unsigned char *)cox_buffer_data(picture->out) +
                               y * picture->shape.out_pitch_bytes;
    return picture->shape.out == COX_PIXEL_RGBA16 ? ((const uint16_t *)(const void *)row)[4 * x + channel]
                                                  : row[4 * x + channel];
}

static const double scale_of[] = {[COX_PIXEL_RGBA8] = 255, [COX_PIXEL_RGBA16] = 65535};

/* Light over 40 stops around white, some of it negative, and any alpha. */
static void fill_light(const struct picture *picture, uint32_t seed)
{
    for (uint32_t y = 0; y < picture->shape.height; y++) {
        for (uint32_t x = 0; x < picture->shape.width; x++) {
            double rgba[4];
            const double stops = next_number(&seed) % 25000 / 1000.0 - 16;
            for (int i = 0; i < 3; i++)
                rgba[i] = exp2(stops + next_number(&seed) % 4000 / 1000.0) * (next_number(&seed) % 16 ? 1 : -1);
            rgba[3] = next_number(&seed) % 1400 / 1000.0 - 0.2;
            put(picture, x, y, rgba);
        }
    }
}

/* Any bits at all. */
static void fill_noise(const struct picture *picture, uint32_t seed)
{
    for (uint32_t y = 0; y < picture->shape.height; y++)
        for (uint32_t x = 0; x < picture->shape.width; x++)
            for (int i = 0; i < 4; i++)
                put_bits(picture, x, y, i, next_number(&seed) << 16 ^ next_number(&seed));
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

enum variant { VARIANT_OWN = -1, VARIANT_VECTOR = 0, VARIANT_SCALAR = 1 };

/* A session of one pipeline on one device, or on all (device = UINT32_MAX) with random splits. */
static cox_session *session_new(cox_runtime *runtime, const struct picture *picture, bool analysis,
                                enum variant variant, uint32_t device)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.no_warmup = true, .device_timeout_ns = 60000000000 /* a busy machine */};
    cr_assert_eq(analysis ? cox_tonemap_analysis(&picture->shape, &storage, &params)
                          : cox_tonemap_mapping(&picture->shape, &storage, &params),
                 COX_OK);
    struct cox_stage stage = params.stages[0];
    struct cox_variant only = stage.variants[variant == VARIANT_SCALAR];
    if (variant != VARIANT_OWN) {
        only.type = 0;
        stage.variants = &only;
        stage.variant_count = 1;
        params.stages = &stage;
    }
    if (device == UINT32_MAX) {
        random_splits_begin(0, 0);
        params.custom_policy = &random_splits_policy;
        params.report = count_bands;
    } else {
        params.policy = "single";
        params.devices = &device;
        params.device_count = 1;
    }
    cox_session *session = NULL;
    last_log[0] = '\0';
    const cox_status status = cox_session_create(runtime, &params, &session);
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    return session;
}

static void map_in(cox_session *session, const struct picture *picture, const struct cox_tonemap_settings *settings)
{
    struct cox_tonemap_params params;
    cr_assert_eq(cox_tonemap_prepare(&picture->shape, settings, &params), COX_OK);
    const cox_status status = cox_session_run(session, COX_FRAME(.buffers = (cox_buffer *[]){picture->in, picture->out},
                                                                 .buffer_count = 2, .params = &params));
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
}

static void map(cox_runtime *runtime, const struct picture *picture, const struct cox_tonemap_settings *settings,
                enum variant variant, uint32_t device)
{
    cox_session *session = session_new(runtime, picture, false, variant, device);
    map_in(session, picture, settings);
    cox_session_destroy(&session);
}

static void analyse_in(cox_runtime *runtime, cox_session *session, const struct picture *picture, uint32_t *histogram)
{
    cox_buffer *counts = NULL;
    cr_assert_eq(cox_buffer_create(runtime, COX_TONEMAP_HISTOGRAM_BYTES, &counts), COX_OK);
    const cox_status status = cox_session_run(session,
                                              &(struct cox_frame){.buffers = (cox_buffer *[]){picture->in, counts},
                                                                  .buffer_count = 2});
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    memcpy(histogram, cox_buffer_data(counts), COX_TONEMAP_HISTOGRAM_BYTES);
    cox_buffer_destroy(&counts);
}

static void analyse(cox_runtime *runtime, const struct picture *picture, enum variant variant, uint32_t device,
                    uint32_t *histogram)
{
    cox_session *session = session_new(runtime, picture, true, variant, device);
    analyse_in(runtime, session, picture, histogram);
    cox_session_destroy(&session);
}

/* The largest distance, in codes, between what a device wrote and the reference. */
static double worst_error(const struct picture *picture, const struct cox_tonemap_settings *settings)
{
    struct ref_operator operator;
    ref_operator_init(&operator, settings->op, settings->peak);
    double worst = 0;
    for (uint32_t y = 0; y < picture->shape.height; y++) {
        for (uint32_t x = 0; x < picture->shape.width; x++) {
            double in[4], out[4];
            stored(picture, x, y, in);
            ref_tonemap_pixel(&operator, settings, picture->shape.in, in, scale_of[picture->shape.out], out);
            for (int i = 0; i < 4; i++)
                worst = fmax(worst, fabs(code_at(picture, x, y, i) - round(out[i])));
        }
    }
    return worst;
}

static bool guards_intact(const struct picture *picture)
{
    const struct cox_tonemap_shape *shape = &picture->shape;
    const unsigned char *out = cox_buffer_data(picture->out);
    const size_t row_bytes = shape->width * (shape->out == COX_PIXEL_RGBA16 ? 8u : 4u);
    for (uint32_t y = 0; y < shape->height; y++)
        for (size_t i = row_bytes; i < shape->out_pitch_bytes; i++)
            if (out[y * shape->out_pitch_bytes + i] != GUARD)
                return false;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (out[shape->height * shape->out_pitch_bytes + i] != GUARD)
            return false;
    return true;
}

/* --- Against the reference ---------------------------------------------------------------------------------------- */

static const struct {
    uint32_t width, height;
    size_t padding;
} sizes[] = {{1, 1, 0}, {7, 3, 0}, {16, 2, 5}, {83, 9, 0}, {1279, 721, 1}};

Test(kernels, stay_within_one_code_of_the_reference)
{
    cox_runtime *runtime = open_devices(NULL);
    double worst8 = 0, worst16 = 0;
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
        for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
            for (int format = 0; format < 4; format++) {
                const enum cox_pixel_in in = format & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF;
                const enum cox_pixel_out out = format & 2 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8;
                if (sizes[size].width > 1000 && format != 0 && format != 3)
                    continue; /* half to 8 bits and float to 16 bits have both of everything */
                struct picture picture = picture_new(runtime, sizes[size].width, sizes[size].height, in, out,
                                                     sizes[size].padding);
                fill_light(&picture, 7 + format);
                cox_session *session = session_new(runtime, &picture, false, VARIANT_OWN, device);
                for (int op = 0; op < CURVES; op++) {
                    const struct cox_tonemap_settings settings = {
                        .op = op, .exposure_stops = (float)(op - 2), .peak = op & 1 ? 40.0f : 0.0f};
                    map_in(session, &picture, &settings);
                    const double worst = worst_error(&picture, &settings);
                    cr_expect_leq(worst, 1, "%s, %s, %ux%u, format %d: %g codes", device_name(runtime, device),
                                  cox_operator_name(op), sizes[size].width, sizes[size].height, format, worst);
                    cr_expect(guards_intact(&picture), "%s, %ux%u, format %d: bytes outside the rows were written",
                              device_name(runtime, device), sizes[size].width, sizes[size].height, format);
                    *(out == COX_PIXEL_RGBA16 ? &worst16 : &worst8) = fmax(out == COX_PIXEL_RGBA16 ? worst16 : worst8,
                                                                           worst);
                }
                cox_session_destroy(&session);
                picture_free(&picture);
            }
        }
    }
    fprintf(stderr, "largest error: %g codes of 8 bits, %g codes of 16 bits\n", worst8, worst16);
    cox_runtime_destroy(&runtime);
}

Test(kernels, encode_every_step_of_the_scale)
{
    /* Through clip the light of each 16-bit code must come back as that code, one off at most. */
    cox_runtime *runtime = open_devices(NULL);
    struct picture picture = picture_new(runtime, 256, 256, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16, 0);
    for (uint32_t y = 0; y < 256; y++) {
        for (uint32_t x = 0; x < 256; x++) {
            const double v = (y * 256 + x) / 65535.0;
            const double light = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
            put(&picture, x, y, (double[]){light, light, light, v});
        }
    }
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
        map(runtime, &picture, &(struct cox_tonemap_settings){.op = COX_OPERATOR_CLIP}, VARIANT_OWN, device);
        for (uint32_t i = 0; i < 65536; i++) {
            const int off = (int)code_at(&picture, i % 256, i / 256, 1) - (int)i;
            cr_assert(off >= -1 && off <= 1, "code %u became %d", i, (int)i + off);
            cr_assert_eq(code_at(&picture, i % 256, i / 256, 3), i);
        }
        cr_assert_eq(code_at(&picture, 0, 0, 0), 0);
        cr_assert_eq(code_at(&picture, 255, 255, 0), 65535);
    }
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

Test(kernels, take_the_peak_to_white)
{
    cox_runtime *runtime = open_devices(NULL);
    struct picture picture = picture_new(runtime, 3, 1, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA8, 0);
    const enum cox_operator scaled[] = {COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,
                                        COX_OPERATOR_EXPOSURE, COX_OPERATOR_LINEAR};
    const float peaks[] = {4, 10, 1000, 12345};
    cox_session *session = session_new(runtime, &picture, false, VARIANT_OWN, 0);
    for (int op = 0; op < 5; op++) {
        for (int p = 0; p < 4; p++) {
            for (uint32_t x = 0; x < 3; x++) {
                const double light = (double)peaks[p] * (x == 0 ? 0.5 : x == 1 ? 1 : 3);
                put(&picture, x, 0, (double[]){light, light, light, 1});
            }
            map_in(session, &picture, &(struct cox_tonemap_settings){.op = scaled[op], .peak = peaks[p]});
            if (peaks[p] <= 10)
                cr_expect_lt(code_at(&picture, 0, 0, 0), 255, "%s keeps gradation", cox_operator_name(scaled[op]));
            cr_expect_eq(code_at(&picture, 1, 0, 0), 255, "%s, peak %g", cox_operator_name(scaled[op]),
                         (double)peaks[p]);
            cr_expect_eq(code_at(&picture, 2, 0, 0), 255, "%s is limited", cox_operator_name(scaled[op]));
        }
    }
    cox_session_destroy(&session);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* The reference itself, against figures that are not of its making. */
Test(kernels, reference_agrees_with_published_values)
{
    cr_expect_float_eq(ref_exposure_f(-3, 7.5), 0.379187, 1e-5);
    cr_expect_float_eq(ref_srgb(0.18), 0.46136, 1e-5);
    struct ref_operator operator;
    ref_operator_init(&operator, COX_OPERATOR_HABLE, 10);
    cr_expect_float_eq(ref_operator_at(&operator, 10), 1, 1e-12);
    ref_operator_init(&operator, COX_OPERATOR_ACES, 10);
    cr_expect_float_eq(ref_operator_at(&operator, 0.18), 0.2669, 1e-4);
    for (uint32_t h = 0; h < 0x7c00; h++)
        cr_assert_eq(ref_to_half(ref_half((uint16_t)h)), h);
}

/* --- Same bits ---------------------------------------------------------------------------------------------------- */

static char *copy_output(const struct picture *picture)
{
    const size_t bytes = picture->shape.out_pitch_bytes * picture->shape.height;
    char *copy = malloc(bytes);
    cr_assert_not_null(copy);
    memcpy(copy, cox_buffer_data(picture->out), bytes);
    return copy;
}

static bool same_output(const struct picture *picture, const char *expected)
{
    return memcmp(cox_buffer_data(picture->out), expected, picture->shape.out_pitch_bytes * picture->shape.height) == 0;
}

Test(kernels, give_the_same_bits_on_every_device_as_scalars_and_as_vectors)
{
    cox_runtime *runtime = open_devices(NULL);
    for (int format = 0; format < 4; format++) {
        const enum cox_pixel_in in = format & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF;
        const enum cox_pixel_out out = format & 2 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8;
        /* Half: every half there is, in every channel. */
        struct picture picture = picture_new(runtime, 257, 256, in, out, 0);
        fill_noise(&picture, 11);
        for (uint32_t i = 0; i < 65536 && in == COX_PIXEL_RGBA_HALF; i++)
            for (int channel = 0; channel < 4; channel++)
                put_bits(&picture, i % 256, i / 256, channel, (i + 12345u * (uint32_t)channel) & 0xffff);
        for (int op = 0; op < CURVES; op++) {
            const struct cox_tonemap_settings settings = {
                .op = op, .exposure_stops = op & 1 ? -7.3f : 2.1f, .peak = 17.0f};
            char *expected = NULL;
            for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
                for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                    map(runtime, &picture, &settings, variant, device);
                    if (!expected)
                        expected = copy_output(&picture);
                    cr_expect(same_output(&picture, expected), "%s differs: variant %d, %s, format %d",
                              device_name(runtime, device), variant, cox_operator_name(op), format);
                }
            }
            cr_expect_leq(worst_error(&picture, &settings), 1, "%s, format %d", cox_operator_name(op), format);
            free(expected);
        }
        picture_free(&picture);
    }
    cox_runtime_destroy(&runtime);
}

Test(kernels, give_the_same_bits_for_every_split)
{
    cox_runtime *runtime = open_devices(NULL);
    struct picture picture = picture_new(runtime, 1021, 97, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA8, 3);
    fill_light(&picture, 3);
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    map(runtime, &picture, &settings, VARIANT_OWN, 0);
    char *expected = copy_output(&picture);
    uint32_t whole[COX_TONEMAP_HISTOGRAM_BINS + 2], cut[COX_TONEMAP_HISTOGRAM_BINS + 2];
    analyse(runtime, &picture, VARIANT_OWN, 0, whole);

    uint32_t mapped_bands = 0, analysed_bands = 0;
    cox_session *mapping = session_new(runtime, &picture, false, VARIANT_OWN, UINT32_MAX);
    cox_session *analysis = session_new(runtime, &picture, true, VARIANT_OWN, UINT32_MAX);
    for (int i = 0; i < 20; i++) {
        memset(cox_buffer_data(picture.out), GUARD, picture.shape.out_pitch_bytes * picture.shape.height);
        bands_made = 0;
        map_in(mapping, &picture, &settings);
        cr_expect(same_output(&picture, expected), "split %d", i);
        mapped_bands += bands_made;
        bands_made = 0;
        analyse_in(runtime, analysis, &picture, cut);
        cr_expect_arr_eq(cut, whole, sizeof(whole), "histogram of split %d", i);
        analysed_bands += bands_made;
    }
    cr_expect_geq(mapped_bands, 40, "the splits are some: %u bands", mapped_bands);
    cr_expect_geq(analysed_bands, 40, "the splits are some: %u bands", analysed_bands);
    cox_session_destroy(&mapping);
    cox_session_destroy(&analysis);
    free(expected);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* --- Speed -------------------------------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Pixels per second of the fastest of some frames. */
static double speed(cox_runtime *runtime, const struct picture *picture, enum variant variant, uint32_t device)
{
    cox_session *session = session_new(runtime, picture, false, variant, device);
    double best = 1e9;
    const double begin = now_s();
    for (int i = 0; i < 3 || (i < 20 && now_s() - begin < 0.5); i++) {
        const double start = now_s();
        map_in(session, picture, &(struct cox_tonemap_settings){.op = COX_OPERATOR_HABLE});
        best = fmin(best, now_s() - start);
    }
    cox_session_destroy(&session);
    return picture->shape.width * picture->shape.height / best;
}

Test(kernels, are_faster_as_vectors_on_a_cpu)
{
    /* No OpenCL compiler for CPUs that was tried makes vectors of the scalar form, hence the variants: a tenfold gain
     * was seen. Half as much again must show on any CPU, however busy. */
    cox_runtime *runtime = open_devices(NULL);
    uint32_t cpus = 0;
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
        struct cox_device_info info;
        cr_assert_eq(cox_runtime_device_info(runtime, device, &info, sizeof info), COX_OK);
        cpus += info.type == COX_DEVICE_CPU;
        for (int format = 0; format < 4; format++) {
            struct picture picture = picture_new(runtime, 1920, 1080,
                                                 format & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF,
                                                 format & 2 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8, 0);
            fill_light(&picture, 1);
            const double vectors = speed(runtime, &picture, VARIANT_VECTOR, device);
            const double scalars = speed(runtime, &picture, VARIANT_SCALAR, device);
            fprintf(stderr, "%-40s %s to %s: %4.0f Mpixel/s as vectors, %4.0f as scalars\n", info.name,
                    format & 1 ? "float" : "half", format & 2 ? "16 bits" : "8 bits", vectors / 1e6, scalars / 1e6);
            if (info.type == COX_DEVICE_CPU)
                cr_expect_gt(vectors, 1.5 * scalars, "%s", info.name);
            picture_free(&picture);
        }
    }
    cox_runtime_destroy(&runtime);
    if (cpus == 0)
        cr_skip_test("skipped, because there is no CPU device");
}

/* --- Unusual light ------------------------------------------------------------------------------------------------ */

Test(kernels, define_the_result_of_nan_infinite_negative_denormal_and_huge_light)
{
    cox_runtime *runtime = open_devices(NULL);
    const double nan_ = NAN, inf = INFINITY;
    const uint32_t device_count = cox_runtime_device_count(runtime);
    struct picture picture = picture_new(runtime, 9, 1, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA8, 0);
    const double light[9][4] = {
        {nan_, nan_, nan_, nan_}, {-nan_, 0.5, -inf, -nan_},  {inf, inf, inf, inf},
        {inf, 0, 0, -inf},        {-1, -1e30, -0.0, -1},      {1e-44, 1e-39, 0, 1e-44},
        {3e38, 3e38, 3e38, 2},    {1e-12, 1e-13, 1e-11, 0.5}, {inf, nan_, -inf, 1},
    };
    for (uint32_t x = 0; x < 9; x++)
        put(&picture, x, 0, light[x]);
    for (uint32_t device = 0; device < device_count; device++) {
        cox_session *session = session_new(runtime, &picture, false, VARIANT_OWN, device);
        for (int op = 0; op < CURVES; op++) {
            for (int stops = -64; stops <= 64; stops += 32) {
                const struct cox_tonemap_settings settings = {.op = op, .exposure_stops = (float)stops};
                map_in(session, &picture, &settings);
                cr_expect_leq(worst_error(&picture, &settings), 1, "%s at %d stops", cox_operator_name(op), stops);
                for (int i = 0; i < 3; i++) {
                    cr_expect_eq(code_at(&picture, 0, 0, i), 0, "NaN is black");
                    cr_expect_eq(code_at(&picture, 4, 0, i), 0, "negative light is black");
                    cr_expect_eq(code_at(&picture, 5, 0, i), 0, "light below 2^-40 is black");
                    if (stops == 0)
                        cr_expect_eq(code_at(&picture, 2, 0, i), 255, "infinite light is white");
                }
                const uint32_t alpha[9] = {255, 255, 255, 0, 0, 0, 255, 128, 255};
                for (uint32_t x = 0; x < 9; x++)
                    cr_expect_eq(code_at(&picture, x, 0, 3), alpha[x], "alpha of pixel %u", x);
            }
        }
        cox_session_destroy(&session);
    }
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

Test(kernels, turn_hot_spots_white_and_leave_saturated_colours_their_hue)
{
    cox_runtime *runtime = open_devices(NULL);
    struct picture picture = picture_new(runtime, 3, 1, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA8, 0);
    put(&picture, 0, 0, (double[]){400, 150, 20, 1});  /* a flame */
    put(&picture, 1, 0, (double[]){0.9, 0.2, 0.1, 1}); /* paint */
    put(&picture, 2, 0, (double[]){0.1, 0.1, 6, 1});   /* a blue lamp */
    cox_session *session = session_new(runtime, &picture, false, VARIANT_OWN, 0);
    for (int op = 0; op < CURVES; op++) {
        map_in(session, &picture, &(struct cox_tonemap_settings){.op = op, .peak = 400});
        for (int i = 0; i < 3 && op != COX_OPERATOR_LINEAR; i++) /* to which half the peak is no hot spot */
            cr_expect_geq(code_at(&picture, 0, 0, i), 230, "%s: channel %d of the flame", cox_operator_name(op), i);
        const uint32_t paint[3] = {code_at(&picture, 1, 0, 0), code_at(&picture, 1, 0, 1), code_at(&picture, 1, 0, 2)};
        const uint32_t lamp = code_at(&picture, 2, 0, 2), lamp_red = code_at(&picture, 2, 0, 0);
        cr_expect_lt(lamp_red * 2, lamp, "%s: the blue lamp stays blue", cox_operator_name(op));
        map_in(session, &picture, &(struct cox_tonemap_settings){.op = op, .peak = 400, .desaturate = -1});
        for (int i = 0; i < 3; i++)
            cr_expect_eq(code_at(&picture, 1, 0, i), paint[i], "%s: paint does not fade", cox_operator_name(op));
        if (op != COX_OPERATOR_EXPOSURE && op != COX_OPERATOR_CLIP) /* these work on each channel */
            cr_expect_lt(code_at(&picture, 0, 0, 2), 100, "%s: no fading by request", cox_operator_name(op));
    }
    cox_session_destroy(&session);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* --- Analysis ----------------------------------------------------------------------------------------------------- */

Test(kernels, count_every_pixel_by_its_luminance)
{
    cox_runtime *runtime = open_devices(NULL);
    const struct {
        uint32_t width, height;
    } shapes[] = {{1, 1}, {7, 3}, {33, 19}, {1279, 721}};
    for (int i = 0; i < 8; i++) {
        const enum cox_pixel_in in = i & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF;
        struct picture picture = picture_new(runtime, shapes[i / 2].width, shapes[i / 2].height, in, COX_PIXEL_RGBA8,
                                             0);
        if (shapes[i / 2].width == 33)
            fill_noise(&picture, 5);
        else
            fill_light(&picture, 5);
        uint32_t expected[COX_TONEMAP_HISTOGRAM_BINS + 2] = {0};
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                uint32_t histogram[COX_TONEMAP_HISTOGRAM_BINS + 2];
                analyse(runtime, &picture, variant, device, histogram);
                if (device == 0 && variant == VARIANT_VECTOR)
                    memcpy(expected, histogram, sizeof(expected));
                cr_expect_arr_eq(histogram, expected, sizeof(expected), "%s, variant %d, shape %d",
                                 device_name(runtime, device), variant, i);
            }
        }
        /* Each pixel in its bin, or in the next one if it lies within rounding of the border: so the counts up to
         * any border differ from the exact ones by no more than the pixels near it. */
        static uint32_t exact[COX_TONEMAP_HISTOGRAM_BINS + 1], near[COX_TONEMAP_HISTOGRAM_BINS + 1];
        memset(exact, 0, sizeof(exact));
        memset(near, 0, sizeof(near));
        double largest = 0;
        for (uint32_t y = 0; y < picture.shape.height; y++) {
            for (uint32_t x = 0; x < picture.shape.width; x++) {
                double rgba[4];
                stored(&picture, x, y, rgba);
                for (int c = 0; c < 3; c++)
                    rgba[c] = ref_colour(rgba[c], in);
                const double luminance = ref_luminance(rgba);
                largest = fmax(largest, luminance);
                const double place = luminance > 0 ? fmax((log2(luminance) + 16) * 32, -1) : -1;
                exact[(int)fmin(floor(place) + 1, COX_TONEMAP_HISTOGRAM_BINS)]++; /* [0] counts black */
                if (fabs(place - round(place)) < 1e-3 && place > -0.5 && place < COX_TONEMAP_HISTOGRAM_BINS)
                    near[(int)round(place)]++;
            }
        }
        uint64_t counted = expected[COX_TONEMAP_HISTOGRAM_BINS], wanted = exact[0];
        for (int bin = 0; bin < COX_TONEMAP_HISTOGRAM_BINS; bin++) {
            cr_expect_leq(llabs((long long)counted - (long long)wanted), near[bin], "up to bin %d of shape %d", bin, i);
            counted += expected[bin];
            wanted += exact[bin + 1];
        }
        cr_expect_eq(counted, (uint64_t)picture.shape.width * picture.shape.height);
        float brightest;
        memcpy(&brightest, &expected[COX_TONEMAP_HISTOGRAM_BINS + 1], 4);
        cr_expect_leq(fabs((double)brightest - largest), 1e-6 * largest);
        picture_free(&picture);
    }
    cox_runtime_destroy(&runtime);
}

Test(kernels, expose_a_grey_picture_to_middle_grey_under_every_operator)
{
    cox_runtime *runtime = open_devices(NULL);
    struct picture picture = picture_new(runtime, 64, 48, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA8, 0);
    cox_session *mapping = session_new(runtime, &picture, false, VARIANT_OWN, 0);
    const double lights[] = {0.001, 0.18, 30};
    for (int l = 0; l < 3; l++) {
        for (uint32_t i = 0; i < 64 * 48; i++)
            put(&picture, i % 64, i / 64, (double[]){lights[l], lights[l], lights[l], 1});
        uint32_t histogram[COX_TONEMAP_HISTOGRAM_BINS + 2];
        analyse(runtime, &picture, VARIANT_OWN, 0, histogram);
        struct cox_tonemap_analysis analysis;
        cox_tonemap_read_analysis(histogram, &analysis);
        cr_expect_eq(analysis.pixels, 64 * 48);
        cr_expect_float_eq(analysis.log_average / lights[l], 1, 0.02);
        cr_expect_float_eq(analysis.peak / lights[l], 1, 0.02);
        for (int op = 0; op < CURVES; op++) {
            struct cox_tonemap_settings settings = {.op = op};
            cox_tonemap_expose(&analysis, &settings);
            map_in(mapping, &picture, &settings);
            cr_expect(abs((int)code_at(&picture, 5, 5, 1) - 118) <= 2, "%s: light %g became code %u",
                      cox_operator_name(op), lights[l], code_at(&picture, 5, 5, 1));
        }
    }
    cox_session_destroy(&mapping);
    picture_free(&picture);
    cox_runtime_destroy(&runtime);
}

/* --- Without a device --------------------------------------------------------------------------------------------- */

static void count(uint32_t *histogram, double luminance, uint32_t pixels)
{
    const float bits = (float)luminance;
    uint32_t largest;
    memcpy(&largest, &bits, 4);
    histogram[(int)floor((log2(luminance) + 16) * 32)] += pixels;
    if (largest > histogram[COX_TONEMAP_HISTOGRAM_BINS + 1])
        histogram[COX_TONEMAP_HISTOGRAM_BINS + 1] = largest;
}

Test(kernels, keep_a_night_scene_dark_and_a_few_lamps_out_of_the_peak)
{
    uint32_t night[COX_TONEMAP_HISTOGRAM_BINS + 2] = {0};
    count(night, 0.001, 700000);
    count(night, 0.5, 299950);
    count(night, 100, 20);
    count(night, 5000, 30);
    struct cox_tonemap_analysis analysis;
    cox_tonemap_read_analysis(night, &analysis);
    cr_expect_eq(analysis.pixels, 1000000);
    cr_expect_float_eq(analysis.highlight, 0.5, 0.02);
    cr_expect_float_eq(analysis.peak, 0.5, 0.02, "50 of a million are left out, so the lamps are");
    count(night, 100, 1);
    cox_tonemap_read_analysis(night, &analysis);
    cr_expect_float_eq(analysis.peak, 100, 3, "51 are one too many");

    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_CLIP, .exposure_stops = 0.5f};
    cox_tonemap_expose(&analysis, &settings);
    cr_expect_float_eq(settings.exposure_stops, 1.5f, 0.1, "one stop takes the highlight to white");
    cr_expect_float_eq(settings.peak, analysis.peak * exp2f(settings.exposure_stops), 0.1);
}

Test(kernels, leave_the_settings_alone_for_a_black_picture)
{
    uint32_t black[COX_TONEMAP_HISTOGRAM_BINS + 2] = {[COX_TONEMAP_HISTOGRAM_BINS] = 1000};
    struct cox_tonemap_analysis analysis;
    cox_tonemap_read_analysis(black, &analysis);
    cr_expect_eq(analysis.pixels, 1000);
    cr_expect_eq(analysis.log_average, 0.0f);
    cr_expect_eq(analysis.peak, 0.0f);
    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE, .exposure_stops = 2, .peak = 7};
    cox_tonemap_expose(&analysis, &settings);
    cr_expect_eq(settings.exposure_stops, 2.0f);
    cr_expect_eq(settings.peak, 7.0f);
}

Test(kernels, know_their_operators_by_name)
{
    for (int op = 0; op < COX_OPERATOR_COUNT; op++) {
        enum cox_operator found = COX_OPERATOR_COUNT;
        cr_expect_eq(cox_operator_find(cox_operator_name(op), &found), COX_OK);
        cr_expect_eq(found, (enum cox_operator)op);
    }
    enum cox_operator untouched = COX_OPERATOR_ACES;
    cr_expect_eq(cox_operator_find("Hable", &untouched), COX_E_NOT_FOUND);
    cr_expect_eq(cox_operator_find("", &untouched), COX_E_NOT_FOUND);
    cr_expect_eq(cox_operator_find(NULL, &untouched), COX_E_NOT_FOUND);
    cr_expect_eq(untouched, COX_OPERATOR_ACES);
    cr_expect_null(cox_operator_name(COX_OPERATOR_COUNT));
}

Test(kernels, refuse_shapes_that_are_none)
{
    const struct cox_tonemap_shape good = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
    struct cox_tonemap_shape bad[11];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        bad[i] = good;
    bad[0].width = 0;
    bad[1].height = 0;
    bad[2].width = 65537;
    bad[2].in_pitch_bytes = bad[2].out_pitch_bytes = 1 << 20;
    bad[3].height = 65537;
    bad[4].in_pitch_bytes = 48;
    bad[5].in_pitch_bytes = 60;
    bad[6].out_pitch_bytes = 24;
    bad[7].out_pitch_bytes = 30;
    bad[8].in = (enum cox_pixel_in)2;
    bad[9].out = (enum cox_pixel_out) - 1;
    bad[10].in_pitch_bytes = (size_t)1 << 31;
    struct cox_tonemap_storage storage;
    struct cox_session_params session = {0};
    struct cox_tonemap_params params;
    const struct cox_tonemap_settings settings = {0};
    cr_expect_eq(cox_tonemap_mapping(&good, &storage, &session), COX_OK);
    cr_expect_eq(session.rows, 3);
    cr_expect_eq(session.params_bytes, sizeof(params));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(cox_tonemap_mapping(&bad[i], &storage, &session), COX_E_INVALID, "shape %zu", i);
        cr_expect_eq(cox_tonemap_analysis(&bad[i], &storage, &session), COX_E_INVALID, "shape %zu", i);
        cr_expect_eq(cox_tonemap_prepare(&bad[i], &settings, &params), COX_E_INVALID, "shape %zu", i);
    }
    const struct cox_tonemap_shape largest = {.width = 65536,
                                              .height = 65536,
                                              .in = COX_PIXEL_RGBA_FLOAT,
                                              .out = COX_PIXEL_RGBA16,
                                              .in_pitch_bytes = 0x7ffffff0,
                                              .out_pitch_bytes = 0x7ffffff8};
    cr_expect_eq(cox_tonemap_mapping(&largest, &storage, &session), COX_OK);
    const char *options = session.stages[0].variants[0].options;
    cr_expect_not_null(strstr(options, "-DCOX_OUT_PITCH=2147483640 "), "%s", options);
    cr_expect_lt(strlen(options), 160);
    cr_expect_eq(cox_tonemap_analysis(&largest, &storage, &session), COX_E_INVALID, "its counts would not fit");
}

Test(kernels, refuse_settings_that_are_none)
{
    const struct cox_tonemap_shape shape = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
    struct cox_tonemap_params params;
    const struct cox_tonemap_settings bad[] = {
        {.op = COX_OPERATOR_COUNT},
        {.exposure_stops = NAN},
        {.exposure_stops = 64.5f},
        {.exposure_stops = -INFINITY},
        {.peak = -1},
        {.peak = NAN},
        {.desaturate = NAN},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_eq(cox_tonemap_prepare(&shape, &bad[i], &params), COX_E_INVALID, "settings %zu", i);
    const struct cox_tonemap_settings odd[] = {{.peak = 1e-30f}, {.peak = INFINITY}, {.desaturate = 9}};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        for (int op = 0; op < CURVES; op++) {
            struct cox_tonemap_settings settings = odd[i];
            settings.op = op;
            cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_OK);
            for (size_t w = 1; w < sizeof(params.word) / sizeof(params.word[0]); w++) {
                float word;
                memcpy(&word, &params.word[w], 4);
                cr_expect(isfinite(word), "word %zu of settings %zu, %s", w, i, cox_operator_name(op));
            }
        }
    }
}
