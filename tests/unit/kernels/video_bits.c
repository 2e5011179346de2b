/* The video kernels give the same bits in every layout, on every OpenCL device, as scalars and as vectors, and for
 * every split of a frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"

TestSuite(video_bits, .timeout = 1200);

/* Make a film's output the input of the next. */
static void out_as_in(const struct ref_film *film, struct cox_video_shape *shape,
                      const void *planes[COX_VIDEO_PLANES_MAX])
{
    *shape = film->shape;
    shape->width = film->width;
    shape->height = film->height;
    shape->in = film->shape.out;
    memcpy(shape->in_pitch_bytes, film->shape.out_pitch_bytes, sizeof shape->in_pitch_bytes);
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        planes[p] = p < film->out_count ? film->frame.planes[film->out_first + p].data : NULL;
}

/* The last column or row of one part of a frame. */
static uint32_t last_of(uint32_t side, int part, uint32_t chroma_log2)
{
    return (side - 1) >> (part ? chroma_log2 : 0);
}

static void expect_same_codes(const struct ref_film *a, const struct ref_film *b, const char *device)
{
    struct cox_video_shape a_shape, b_shape;
    const void *a_planes[COX_VIDEO_PLANES_MAX], *b_planes[COX_VIDEO_PLANES_MAX];
    out_as_in(a, &a_shape, a_planes);
    out_as_in(b, &b_shape, b_planes);
    for (int part = 0; part < 3; part++)
        for (uint32_t j = 0; j <= last_of(a_shape.height, part, a_shape.in.chroma_y_log2); j++)
            for (uint32_t i = 0; i <= last_of(a_shape.width, part, a_shape.in.chroma_x_log2); i++)
                cr_assert_eq(ref_video_part(&a_shape, a_planes, part, i, j),
                             ref_video_part(&b_shape, b_planes, part, i, j), "%s: %s and %s: part %d (%u, %u)", device,
                             ref_shape_text(&a->shape), ref_shape_text(&b->shape), part, i, j);
    cr_expect_arr_eq(ref_film_histogram(a), ref_film_histogram(b), COX_VIDEO_HISTOGRAM_BYTES,
                     "%s: histograms of %s and %s", device, ref_shape_text(&a->shape), ref_shape_text(&b->shape));
}

/* Fill a film with the codes of another one, in its own layout. */
static void fill_like(const struct ref_film *to, const struct ref_film *from)
{
    void *to_planes[COX_VIDEO_PLANES_MAX], *from_planes[COX_VIDEO_PLANES_MAX];
    const struct cox_video_shape *shape = &from->shape;
    ref_film_inputs(to, to_planes);
    ref_film_inputs(from, from_planes);
    for (int part = 0; part < 3; part++)
        for (uint32_t j = 0; j <= last_of(shape->height, part, shape->in.chroma_y_log2); j++)
            for (uint32_t i = 0; i <= last_of(shape->width, part, shape->in.chroma_x_log2); i++)
                ref_video_put_part(&to->shape, to_planes, part, i, j,
                                   ref_video_part(shape, (const void *const *)from_planes, part, i, j));
}

/* Pairs of layouts that hold the same codes, for input, output and everything else that is derived from a frame. */
DEVICE_TEST(video_bits, maps_the_same_codes_in_another_layout_to_the_same_bits)
{
    static const struct {
        const char *texts[2];
        bool summed; /* sums several pixels in another way than planes of a colour do */
    } pairs[] = {
        {{"yuv422p10 to yuv422p8", "v210 to yuv422p8"}, false},
        {{"yuv422p10 centre to yuv422p8", "v210 centre to yuv422p8"}, false},
        {{"yuv422p10 to yuv422p10", "p210 to p210"}, false},
        {{"yuv422p8 centre full to rgba16", "nv16 centre full to bgra16"}, false},
        {{"rgba16 to rgba8", "bgra16 to bgra8"}, false},
        {{"rgba8 to rgba8", "bgra8 to gbrp8 full"}, false},
        {{"gbrp16 full to gbrp16 full", "bgra16 to rgba16"}, true},
    };
    const struct cox_video_settings settings = {.peak_nits = 1500};
    for (int i = 0; i < (int)COUNT_OF(pairs) * 4; i++) {
        const bool local = i % 4 == 3;
        struct ref_film films[2];
        uint32_t device = 0;
        if (pairs[i / 4].summed && (local || i % 4 == COX_SCALE_HALF))
            continue;
        for (int which = 0; which < 2; which++) {
            struct cox_video_shape shape = ref_shape(pairs[i / 4].texts[which]);
            shape.width = 196 + (uint32_t)i % 5 * 2;
            shape.height = 66;
            shape.transfer = (enum cox_transfer)(i / 4 % 2);
            shape.op = local ? COX_OPERATOR_LOCAL : COX_OPERATOR_HABLE;
            set_scale(&shape, local ? 0 : i % 4);
            shape.width -= !shape.scale;
            ref_film_open(&films[which], runtime, &shape, REF_MAPPING_AND_ANALYSIS, (size_t)i % 3, NULL);
            if (which)
                fill_like(&films[1], &films[0]);
            else
                ref_film_fill_stripes(&films[0], (uint32_t)i);
            device = next_device();
            film_run(&films[which], REF_MAPPING_AND_ANALYSIS, &settings, VARIANT_OWN, device);
            cr_expect(bits_frame_intact(&films[which].frame), "%s", ref_shape_text(&shape));
        }
        expect_same_codes(&films[0], &films[1], device_name(device));
        ref_film_close(&films[0]);
        ref_film_close(&films[1]);
    }
}

/* Together these cover everything that a kernel may be built for. In those without subsampling, no plane ties rows
 * together into blocks. */
static const char *const telling[] = {
    "128x64 rgba16 full to rgba8 full hable light fade dither compress",
    "259x65 yuv422p16 to yuv420p14 topleft full reinhard hlg fade",
    "128x65 yuv444p8 topleft full to yuv420p8 mobius dither compress",
    "259x64 yuv444p10 to yuv444p10 aces hlg fade dither",
    "128x65 yuv422p10 topleft to yuv420p12 linear bt709 fade",
    "259x65 rgba16 full to yuv420p9 centre full clip light bt709 fade compress",
    "128x64 rgba16 full to yuv444p16 bt2390 fade",
    "259x65 v210 centre to yuv420p10 centre full hable hlg bt709 fade compress",
    "128x65 v210 to rgba8 topleft full reinhard fade",
    "259x64 gbrp10 to gbrp10 mobius hlg bt709 dither compress",
    "128x65 p210 to p210 aces dither compress",
    "259x65 bgra8 full to bgra8 full linear hlg fade compress",
};

static void expect_same(const struct ref_film *film, const uint8_t *expected, const char *how, uint32_t device,
                        int variant)
{
    size_t at;
    cr_expect(bits_frame_equals(&film->frame, expected, &at), "%s: %s, variant %d, %s: byte %zu of the result",
              device_name(device), how, variant, ref_shape_text(&film->shape), at);
    cr_expect(bits_frame_intact(&film->frame), "%s: %s, variant %d, %s: bytes outside the rows were written",
              device_name(device), how, variant, ref_shape_text(&film->shape));
}

/* Rows that a pipeline does not write keep the previous pipeline's contents. */
DEVICE_TEST(video_bits, gives_the_same_bits_on_every_device_as_scalars_and_as_vectors)
{
    const struct cox_video_settings settings = {.peak_nits = 1700};
    for (uint32_t i = 0; i < COUNT_OF(telling); i++) {
        struct cox_video_shape shape = ref_shape(telling[i]);
        struct ref_film film;
        uint8_t *expected = NULL;
        ref_film_open(&film, runtime, &shape, REF_MAPPING_AND_ANALYSIS, 0, NULL);
        ref_film_fill_stripes(&film, i);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                film_run(&film, REF_MAPPING_AND_ANALYSIS, &settings, variant, device);
                if (!expected)
                    expected = bits_frame_result(&film.frame);
                expect_same(&film, expected, "mapping and analysis", device, variant);
                if (i % 3 == 1) {
                    film_run(&film, REF_MAPPING, &settings, variant, device);
                    expect_same(&film, expected, "without analysis", device, variant);
                }
                if (i % 3 == 2 || i == 0) {
                    film_run(&film, REF_ANALYSIS, &settings, variant, device);
                    expect_same(&film, expected, "analysis alone", device, variant);
                }
            }
        free(expected);
        ref_film_close(&film);
    }
}

DEVICE_TEST(video_bits, gives_the_same_bits_for_every_split)
{
    const struct cox_video_settings settings = {0};
    for (uint32_t i = 0; i < COUNT_OF(telling); i++) {
        struct cox_video_shape shape = ref_shape(telling[i]);
        struct ref_film film;
        shape.height = 97 + i % 2;
        ref_film_open(&film, runtime, &shape, REF_MAPPING_AND_ANALYSIS, REF_ALIGNED, NULL);
        ref_film_fill_stripes(&film, i);
        film_run(&film, REF_MAPPING_AND_ANALYSIS, &settings, VARIANT_OWN, 0);
        uint8_t *expected = bits_frame_result(&film.frame);
        bands_made = 0;
        cox_session *session = film_session(&film, REF_MAPPING_AND_ANALYSIS, VARIANT_OWN, BITS_ALL_DEVICES);
        for (int split = 0; split < 20; split++) {
            size_t at;
            film_run_in(session, &film, REF_MAPPING_AND_ANALYSIS, &settings);
            cr_expect(bits_frame_equals(&film.frame, expected, &at), "split %d, %s: byte %zu of the result", split,
                      ref_shape_text(&shape), at);
        }
        cr_expect_geq(bands_made, 30, "there are too few splits: %u bands", bands_made);
        cox_session_destroy(&session);
        free(expected);
        ref_film_close(&film);
    }
}
