/* The operator `local` through the public interface, for pictures and video, on every OpenCL device:
 *   It agrees with the double-precision reference.
 *   All devices give the same bits.
 *   Edges have no halos.
 *   Video does not flicker.
 * SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include <math.h>

TestSuite(local, .timeout = 1200);

static struct cox_tonemap_shape shape_of(uint32_t width, uint32_t height, enum cox_pixel_in in, enum cox_pixel_out out)
{
    return (struct cox_tonemap_shape){.width = width, .height = height, .in = in, .out = out, .local = true};
}

/* The kernel's curve is a fit. For 16 bits the bound is the error of that fit, not only of rounding. */
DEVICE_TEST(local, maps_pictures_within_one_code_of_the_reference)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {83, 9}, {515, 301}, {1279, 180}};
    const struct cox_tonemap_settings settings[] = {
        {.op = COX_OPERATOR_LOCAL},
        {.op = COX_OPERATOR_LOCAL, .exposure_stops = 3, .peak = 620, .detail = 1.5f},
        {.op = COX_OPERATOR_LOCAL, .exposure_stops = -2, .peak = 2, .detail = 0.25f, .desaturate = -1}};
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int format = 0; format < 4; format++) {
            if (sizes[s][0] > 500 && format != 0 && format != 3)
                continue; /* half to 8 bits and float to 16 bits cover both formats on each side */
            const struct cox_tonemap_shape shape = shape_of(sizes[s][0], sizes[s][1], (enum cox_pixel_in)(format & 1),
                                                            (enum cox_pixel_out)(format / 2));
            struct ref_picture picture;
            ref_picture_open(&picture, runtime, &shape, false, REF_ALIGNED, NULL);
            ref_picture_fill_patches(&picture, 5 + (uint32_t)s);
            const uint32_t device = (uint32_t)(s + (size_t)format) % cox_runtime_device_count(runtime);
            for (size_t i = 0; i < COUNT_OF(settings); i++) {
                struct ref_error error = {0};
                picture_run(&picture, &settings[i], VARIANT_OWN, device);
                ref_picture_judge(&picture, &settings[i], &error);
                cr_expect_leq(error.steps, format & 2 ? 16 : 1, "%ux%u, format %d, settings %zu: %s", shape.width,
                              shape.height, format, i, ref_error_text(&error));
            }
            ref_picture_close(&picture);
        }
}

/* The frame must hold the same result as all earlier ones. */
static void expect_same(const struct bits_frame *frame, uint8_t **expected, const char *what, unsigned number)
{
    size_t at;
    if (!*expected)
        *expected = bits_frame_result(frame);
    cr_expect(bits_frame_equals(frame, *expected, &at), "%s %u: byte %zu of the result", what, number, at);
}

DEVICE_TEST(local, gives_pictures_the_same_bits_on_every_device_in_every_variant_and_split)
{
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = 1.3f};
    const struct cox_tonemap_shape shapes[] = {shape_of(517, 211, COX_PIXEL_RGBA_HALF, COX_PIXEL_RGBA16),
                                               shape_of(1021, 97, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16)};
    for (int n = 0; n < 2; n++) {
        struct ref_picture picture;
        uint8_t *expected = NULL;
        ref_picture_open(&picture, runtime, &shapes[n], false, REF_ALIGNED, NULL);
        ref_picture_fill_patches(&picture, 3);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                picture_run(&picture, &settings, variant, device);
                expect_same(&picture.frame, &expected, variant ? "scalars on device" : "vectors on device", device);
            }
        cox_session *session = picture_session(&picture, VARIANT_OWN, BITS_ALL_DEVICES);
        bands_made = 0;
        for (unsigned i = 0; i < 10; i++) {
            picture_run_in(session, &picture, &settings);
            expect_same(&picture.frame, &expected, "split", i);
        }
        cr_expect_geq(bands_made, 60, "there are too few splits: %u bands in 40 passes", bands_made);
        cox_session_destroy(&session);
        free(expected);
        ref_picture_close(&picture);
    }
}

static double code_at(const struct ref_picture *picture, uint32_t x, uint32_t y)
{
    return ref_picture_code(picture, x, y, 1);
}

/* How far the surroundings of an edge exceed the levels of its two sides, in codes: [0] relative to the range, [1]
 * relative to the edge's height. */
static void overshoot(const struct ref_picture *picture, double worst[2])
{
    const uint32_t width = picture->shape.width, y = picture->shape.height / 2;
    const double low = code_at(picture, 0, y), high = code_at(picture, width - 1, y);
    double beyond = 0;
    for (uint32_t x = 0; x < width; x++) {
        const double code = code_at(picture, x, y), level = x < width / 2 ? low : high;
        beyond = fmax(beyond, x < width / 2 ? level - code : code - level); /* away from the other side's level */
        beyond = fmax(beyond, x < width / 2 ? code - high : low - code);
    }
    worst[0] = beyond / 65535;
    worst[1] = beyond / (high - low);
}

/* For edges of one stop or more the limit is 2 % of the range. For two stops or more it is also 2 % of the edge's
 * height. Smaller edges are detail, which the operator emphasises. */
DEVICE_TEST(local, leaves_no_halo_at_an_edge)
{
    enum { WIDTH = 640, HEIGHT = 40 };
    static const double edges[] = {0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 13};
    const struct cox_tonemap_shape shape = shape_of(WIDTH, HEIGHT, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16);
    struct ref_picture picture;
    ref_picture_open(&picture, runtime, &shape, false, REF_ALIGNED, NULL);
    cox_session *session = picture_session(&picture, VARIANT_OWN, 0);
    for (size_t e = 0; e < COUNT_OF(edges); e++)
        for (int bright = -5; bright <= 5; bright += 2) {
            for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
                ref_picture_put_grey(&picture, i % WIDTH, i / WIDTH,
                                     exp2(bright - (i % WIDTH < WIDTH / 2 ? edges[e] : 0)));
            double worst[2];
            picture_run_in(session, &picture, &(struct cox_tonemap_settings){.op = COX_OPERATOR_LOCAL, .peak = 40});
            overshoot(&picture, worst);
            if (edges[e] >= 1)
                cr_expect_leq(worst[0], 0.02, "%g stops up to 2^%d: %.2f %% of the range", edges[e], bright,
                              100 * worst[0]);
            if (edges[e] >= 2)
                cr_expect_leq(worst[1], 0.02, "%g stops up to 2^%d: %.2f %% of the edge", edges[e], bright,
                              100 * worst[1]);
        }
    cox_session_destroy(&session);
    ref_picture_close(&picture);
}

/* Texture on a bright ground, which the curve alone would flatten. */
DEVICE_TEST(local, keeps_the_detail_of_what_it_compresses)
{
    const struct cox_tonemap_shape shape = shape_of(256, 64, COX_PIXEL_RGBA_FLOAT, COX_PIXEL_RGBA16);
    struct ref_picture picture;
    ref_picture_open(&picture, runtime, &shape, false, REF_ALIGNED, NULL);
    cox_session *session = picture_session(&picture, VARIANT_OWN, 0);
    for (uint32_t i = 0; i < 256 * 64; i++)
        ref_picture_put_grey(&picture, i % 256, i / 256, 4 * exp2(i % 256 / 2 % 2 ? 0.1 : -0.1));
    const float details[] = {0.5f, 0, 2};
    for (int i = 0; i < 3; i++) {
        const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = details[i]};
        picture_run_in(session, &picture, &settings);
        double light[2];
        for (uint32_t x = 0; x < 2; x++)
            light[x] = pow((code_at(&picture, 128 + 2 * x, 32) / 65535 + 0.055) / 1.055, 2.4);
        const double stops = log2(light[1] / light[0]), wanted = 0.2 * (i == 1 ? 1 : (double)details[i]);
        cr_expect_float_eq(stops, wanted, 0.01 + 0.1 * wanted, "detail %g: %g stops of %g", (double)details[i], stops,
                           wanted);
    }
    cox_session_destroy(&session);
    ref_picture_close(&picture);
}

/* --- Video -------------------------------------------------------------------------------------------------------- */

DEVICE_TEST(local, maps_video_within_a_code_of_8_bits_and_two_of_10_of_the_reference)
{
    const struct cox_video_settings settings[] = {
        {0}, {.peak_nits = 4000, .detail = 1.5f, .gain = 0.7f}, {.peak_nits = 300, .detail = 0.5f}};
    for (uint32_t n = 0; n < REF_LOCAL_FILMS; n++) {
        const struct cox_video_shape shape = ref_shape(ref_local_films[n]);
        struct ref_film film;
        ref_film_open(&film, runtime, &shape, REF_MAPPING, REF_ALIGNED, NULL);
        ref_film_fill_patches(&film, 17 + n, 3);
        cox_session *session = film_session(&film, REF_MAPPING, VARIANT_OWN, n % cox_runtime_device_count(runtime));
        for (size_t i = 0; i < COUNT_OF(settings); i++) {
            struct ref_error error = {0};
            film_run_in(session, &film, REF_MAPPING, &settings[i]);
            ref_film_judge(&film, &settings[i], &error);
            cr_expect_leq(error.steps, shape.out.depth == 10 ? 2 : 1, "%s, settings %zu: %s", ref_local_films[n], i,
                          ref_error_text(&error));
        }
        cox_session_destroy(&session);
        ref_film_close(&film);
    }
}

DEVICE_TEST(local, gives_video_the_same_bits_on_every_device_in_every_variant_and_split)
{
    const struct cox_video_settings settings = {.detail = 1.3f};
    static const uint32_t films[] = {0, 2, 5, 7, 9};
    for (size_t n = 0; n < COUNT_OF(films); n++) {
        const struct cox_video_shape shape = ref_shape(ref_local_films[films[n]]);
        struct ref_film film, analysed;
        uint8_t *expected = NULL;
        size_t at;
        ref_film_open(&film, runtime, &shape, REF_MAPPING, REF_ALIGNED, NULL);
        ref_film_open(&analysed, runtime, &shape, REF_MAPPING_AND_ANALYSIS, REF_ALIGNED, &film);
        ref_film_fill_patches(&film, 5, 9);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                film_run(&film, REF_MAPPING, &settings, variant, device);
                expect_same(&film.frame, &expected, variant ? "scalars on device" : "vectors on device", device);
            }
        cox_session *session = film_session(&analysed, REF_MAPPING_AND_ANALYSIS, VARIANT_OWN, BITS_ALL_DEVICES);
        for (unsigned i = 0; i < 8; i++) {
            film_run_in(session, &analysed, REF_MAPPING_AND_ANALYSIS, &settings);
            analysed.frame.planes[analysed.histogram].written = false; /* compare the picture only */
            cr_expect(bits_frame_equals(&analysed.frame, expected, &at), "split %u: byte %zu", i, at);
            analysed.frame.planes[analysed.histogram].written = true;
        }
        cox_session_destroy(&session);
        free(expected);
        ref_film_close(&analysed);
        ref_film_close(&film);
    }
}

/* Only noise of 1 % of the signal changes. From the second frame on, which the first one steers, the mean luma of
 * the frame stays the same. So does the mean of each part of it: the base could shift parts against each other
 * without changing the mean of the frame. */
DEVICE_TEST(local, does_not_flicker_on_a_constant_scene_with_noise)
{
    enum { FRAMES = 30, WIDTH = 640, HEIGHT = 360, PARTS = 8 };
    static const char *const texts[] = {"640x360 yuv420p10 to yuv420p8 local fade",
                                        "640x360 yuv420p10 to yuv420p8 local fade hlg"};
    for (int n = 0; n < 2; n++) {
        const struct cox_video_shape shape = ref_shape(texts[n]);
        struct ref_film film;
        ref_film_open(&film, runtime, &shape, REF_MAPPING_AND_ANALYSIS, REF_ALIGNED, NULL);
        cox_session *session = film_session(&film, REF_MAPPING_AND_ANALYSIS, VARIANT_OWN, 0);
        struct cox_video_settings settings = {0};
        struct cox_adaptation_state steer = {0};
        double means[2][PARTS * PARTS + 1], worst = 0;
        for (int i = 0; i < FRAMES; i++) {
            ref_film_fill_patches(&film, 40, 1000 + (uint32_t)i);
            film_run_in(session, &film, REF_MAPPING_AND_ANALYSIS, &settings);
            means[i % 2][PARTS * PARTS] = ref_film_mean_luma(&film, 0, 0, WIDTH, HEIGHT);
            for (uint32_t part = 0; part < PARTS * PARTS; part++)
                means[i % 2][part] = ref_film_mean_luma(&film, part % PARTS * WIDTH / PARTS,
                                                        part / PARTS * HEIGHT / PARTS, WIDTH / PARTS, HEIGHT / PARTS);
            for (int part = 0; part <= PARTS * PARTS && i > 1; part++)
                worst = fmax(worst, fabs(means[0][part] - means[1][part]));
            cox_video_adapt(&steer, &film.shape, ref_film_histogram(&film), &settings);
        }
        cr_expect_leq(worst, 0.5, "%s: a mean changes by %g codes", texts[n], worst);
        cox_session_destroy(&session);
        ref_film_close(&film);
    }
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

Test(local, takes_a_session_and_a_detail_of_its_own)
{
    struct cox_tonemap_shape shape = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
    struct cox_constants params;
    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL};
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_E_INVALID, "the session is for curves");
    shape.local = true;
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_OK);
    settings.op = COX_OPERATOR_HABLE;
    cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_E_INVALID, "the session is for local");

    static const float good[] = {0, 0.25f, 4}, bad[] = {0.2f, 4.1f, -1, NAN, INFINITY};
    struct cox_video_shape film = ref_shape(ref_local_films[0]);
    film.in_pitch_bytes[0] = film.in_pitch_bytes[1] = film.in_pitch_bytes[2] = 2048;
    film.out_pitch_bytes[0] = film.out_pitch_bytes[1] = film.out_pitch_bytes[2] = 2048;
    struct cox_constants film_params;
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
