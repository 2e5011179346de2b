/* Look-up tables: what a table makes of single colours, and which tables and shapes are refused. video.c compares
 * whole films with the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include <math.h>

TestSuite(video_lut, .timeout = 1200);

enum { SIDE = 5, COUNT = SIDE * SIDE * SIDE };

/* A table of SIDE points. `order`: which colours of the input become red, green and blue. */
static struct cox_video_lut permuted(float colors[3 * COUNT], const int order[3])
{
    for (int i = 0; i < COUNT; i++) {
        const int place[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
        for (int c = 0; c < 3; c++)
            colors[3 * i + c] = (float)place[order[c]] / (SIDE - 1);
    }
    return (struct cox_video_lut){.points = SIDE, .colors = colors};
}

/* Map a film of R', G' and B' through a table, as a vector and as a scalar on every device. Each colour of the
 * output is to be the one of the input that `order` says, within a code. */
static void expect_permuted(const char *text, const int order[3], float least, float most)
{
    static float colors[3 * COUNT];
    struct cox_video_lut lut = permuted(colors, order);
    struct cox_video_shape shape = ref_shape(text);
    struct ref_film film;
    for (int c = 0; c < 3; c++) {
        lut.domain_least[c] = least;
        lut.domain_most[c] = most;
    }
    ref_film_open(&film, runtime, &shape, REF_MAPPING, 0, NULL);
    ref_film_fill_stripes(&film, 3);
    cr_assert_eq(cox_video_lut_table(&lut, film.frame.planes[film.in_count].data), COX_OK);

    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
        for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
            const void *in[COX_VIDEO_PLANES_MAX], *out[COX_VIDEO_PLANES_MAX];
            struct cox_video_shape result = shape;
            film_run(&film, REF_MAPPING, &(struct cox_video_settings){0}, (enum variant)variant, device);
            for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
                in[p] = film.frame.planes[p].data;
                out[p] = film.frame.planes[film.out_first + p].data;
            }
            result.in = shape.out;
            memcpy(result.in_pitch_bytes, film.shape.out_pitch_bytes, sizeof result.in_pitch_bytes);
            for (uint32_t y = 0; y < shape.height; y++)
                for (uint32_t x = 0; x < shape.width; x++)
                    for (int c = 0; c < 3; c++) {
                        const double range = most - least;
                        const double signal = ref_video_part(&film.shape, in, order[c], x, y) / 65535.0;
                        const double wanted = fmin(fmax((signal - (double)least) / range, 0), 1) * 65535;
                        cr_assert_float_eq(ref_video_part(&result, out, c, x, y), wanted, 1.001, "%s: (%u, %u), %d: %g",
                                           device_name(device), x, y, c, wanted);
                    }
        }
    ref_film_close(&film);
}

DEVICE_TEST(video_lut, an_identity_gives_the_signal_back)
{
    expect_permuted("131x35 gbrp16 full to gbrp16 full lut5", (int[]){0, 1, 2}, 0, 1);
    expect_permuted("131x35 gbrp16 full to gbrp16 full hlg lut5", (int[]){0, 1, 2}, 0, 1);
}

DEVICE_TEST(video_lut, a_table_that_exchanges_colours_exchanges_them)
{
    expect_permuted("67x33 gbrp16 full to gbrp16 full lut5", (int[]){2, 1, 0}, 0, 1);
    expect_permuted("67x33 gbrp16 full to gbrp16 full lut5", (int[]){1, 2, 0}, 0, 1);
}

DEVICE_TEST(video_lut, the_domain_stretches_the_signal)
{
    expect_permuted("67x33 gbrp16 full to gbrp16 full lut5", (int[]){0, 1, 2}, 0.25f, 0.75f);
    expect_permuted("67x33 gbrp16 full to gbrp16 full hlg lut5", (int[]){0, 1, 2}, -0.5f, 2);
}

/* What the table replaces has no effect. */
DEVICE_TEST(video_lut, the_look_of_the_options_has_no_effect)
{
    static const char *const texts[] = {"131x35 yuv420p10 to yuv420p8 hable lut17",
                                        "131x35 yuv420p10 to yuv420p8 bt2390 fade compress pq lut17"};
    static const struct cox_video_settings settings[] = {
        {0}, {.sdr_white_nits = 100, .peak_nits = 4000, .gain = 3, .gamut_knee = 0.5f}};
    struct ref_film film;
    uint8_t *expected = NULL;
    size_t at;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        ref_film_open(&film, runtime, &shape, REF_MAPPING, 0, NULL);
        ref_film_fill_stripes(&film, 1);
        film_run(&film, REF_MAPPING, &settings[i], VARIANT_OWN, 0);
        if (!expected)
            expected = bits_frame_result(&film.frame);
        cr_expect(bits_frame_equals(&film.frame, expected, &at), "%s: byte %zu", texts[i], at);
        ref_film_close(&film);
    }
    free(expected);
}

Test(video_lut, a_shape_that_a_table_cannot_be_for_is_refused)
{
    static const char *const texts[] = {
        "64x64 yuv420p10 to yuv420p8 lut1",         "64x64 yuv420p10 to yuv420p8 lut130",
        "64x64 yuv420p10 to yuv420p8 reshape lut5", "64x64 yuv420p10 to yuv420p8 local lut5",
        "64x64 rgba16 to yuv420p8 light lut5",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct cox_video_shape shape = ref_shape(texts[i]);
        cox_pipeline *pipeline = NULL;
        for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++)
            shape.in_pitch_bytes[p] = shape.out_pitch_bytes[p] = 512;
        cr_expect_eq(cox_video_mapping(&shape, false, &pipeline), COX_E_INVALID, "%s", texts[i]);
        cr_expect_null(pipeline);
        shape.lut_points = 0;
        cr_expect_eq(cox_video_mapping(&shape, false, &pipeline), COX_OK, "%s", texts[i]);
        cox_pipeline_destroy(&pipeline);
    }
}

Test(video_lut, a_table_out_of_its_ranges_is_refused)
{
    static float colors[3 * COUNT], table[4 * (COUNT + 2)];
    const struct cox_video_lut good = permuted(colors, (int[]){0, 1, 2});
    static const float bad_colors[] = {NAN, INFINITY, -INFINITY, 65536, -65536};
    static const float bad_domains[][2] = {{1, 1}, {1, 0}, {NAN, 1}, {0, INFINITY}, {0, 65536}, {0.5f, 0.5001f}};
    struct cox_video_lut lut = good;
    cr_expect_eq(cox_video_lut_table(&good, table), COX_OK);
    cr_expect_eq(cox_video_lut_table(NULL, table), COX_E_INVALID);
    cr_expect_eq(cox_video_lut_table(&good, NULL), COX_E_INVALID);
    lut.colors = NULL;
    cr_expect_eq(cox_video_lut_table(&lut, table), COX_E_INVALID);
    for (uint32_t points = 0; points < 2; points++) {
        lut = good;
        lut.points = points ? COX_LUT_POINTS_MAX + 1 : 1;
        cr_expect_eq(cox_video_lut_table(&lut, table), COX_E_INVALID);
        cr_expect_eq(cox_video_lut_bytes(lut.points), 0);
    }
    for (size_t i = 0; i < COUNT_OF(bad_domains); i++) {
        lut = good;
        for (int c = 0; c < 3; c++)
            lut.domain_most[c] = 1;
        lut.domain_least[2] = bad_domains[i][0];
        lut.domain_most[2] = bad_domains[i][1];
        cr_expect_eq(cox_video_lut_table(&lut, table), COX_E_INVALID, "domain %zu", i);
    }
    for (size_t i = 0; i < COUNT_OF(bad_colors); i++) {
        const float before = colors[3 * COUNT - 1];
        colors[3 * COUNT - 1] = bad_colors[i];
        cr_expect_eq(cox_video_lut_table(&good, table), COX_E_INVALID, "colour %zu", i);
        colors[3 * COUNT - 1] = before;
    }
    cr_expect_eq(cox_video_lut_bytes(SIDE), sizeof table);
}
