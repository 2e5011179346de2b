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
    "259x65 p010 to yuv420p10 topleft sdr bt709",
    "128x64 yuv420p8 to p010 centre full sdr dither compress",
    "259x65 yuv422p10 to p210 full sdr bt709 dither",
    "128x65 nv12 full to yuv420p9 sdr bt709",
    "259x64 v210 centre to yuv422p8 centre sdr bt709 dither",
    "129x65 gbrp12 to bgra8 sdr bt709",
    "259x65 yuv420p10 to yuv420p8 dither lut33",
    "131x64 gbrp16 full to gbrp16 full hlg lut6",
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

/* --- Black bars --------------------------------------------------------------------------------------------------- */

/* Put black bars into a film. Codes differ from black by up to a code of 8 bits, and from row to row. */
static void put_bars(const struct ref_film *film, uint32_t top, uint32_t bottom)
{
    const struct cox_video_shape *shape = &film->shape;
    const uint32_t unit = 1u << (shape->in.depth - 8);
    const bool colours = shape->in.layout == COX_VIDEO_GBR;
    void *planes[COX_VIDEO_PLANES_MAX];
    ref_film_inputs(film, planes);
    for (int part = 0; part < 3; part++) {
        const unsigned log2 = part && !colours ? shape->in.chroma_y_log2 : 0;
        const uint32_t last_row = last_of(shape->height, part && !colours, log2);
        const uint32_t last_column = last_of(shape->width, part && !colours, shape->in.chroma_x_log2);
        for (uint32_t j = 0; j <= last_row; j++) {
            const uint32_t first = j << log2;
            const uint32_t last = first + (1u << log2) - 1 < shape->height ? first + (1u << log2) - 1
                                                                           : shape->height - 1;
            uint32_t code = (shape->in.range == COX_RANGE_FULL ? 0 : 16 * unit) + j % 2 * unit;
            if (part && !colours)
                code = (127 + j % 3) * unit;
            for (uint32_t i = 0; i <= last_column && (last < top || first >= shape->height - bottom); i++)
                ref_video_put_part(shape, planes, part, i, j, code);
        }
    }
}

static struct cox_video_settings bars_of(const struct ref_film *film, struct cox_video_settings settings)
{
    void *planes[COX_VIDEO_PLANES_MAX];
    ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    ref_film_inputs(film, planes);
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        pitch_bytes[p] = (ptrdiff_t)film->shape.in_pitch_bytes[p];
    cox_video_find_bars(&film->shape, (const void *const *)planes, pitch_bytes, &settings);
    return settings;
}

/* Blocks between two rows of the output. */
static uint32_t blocks_between(const struct ref_film *film, uint32_t first, uint32_t end)
{
    return (film->width + 1) / 2 * ((end - first + 1) / 2);
}

static uint32_t counted(const struct ref_film *film)
{
    uint32_t sum = 0;
    for (int bin = 0; bin < COX_VIDEO_BINS; bin++)
        sum += ref_film_histogram(film)[bin];
    return sum;
}

/* Map the film with its bars and without knowing of them. */
static void expect_bars_same(struct ref_film *film, uint32_t top, uint32_t bottom)
{
    const char *what = ref_shape_text(&film->shape);
    const struct cox_video_settings plain = {.peak_nits = 700, .gain = 1.5f}, barred = bars_of(film, plain);
    const unsigned halved = film->shape.scale == COX_SCALE_HALF;
    size_t at;
    cr_expect_eq(barred.top_bar_rows, top, "%s: %u rows at the top", what, barred.top_bar_rows);
    cr_expect_eq(barred.bottom_bar_rows, bottom, "%s: %u rows at the bottom", what, barred.bottom_bar_rows);

    film_run(film, REF_MAPPING, &plain, VARIANT_OWN, 0);
    uint8_t *expected = bits_frame_result(&film->frame);
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
        for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
            film_run(film, REF_MAPPING, &barred, variant, device);
            expect_same(film, expected, "bars", device, variant);
        }
    film_run(film, REF_MAPPING, &barred, VARIANT_OWN, BITS_ALL_DEVICES);
    cr_expect(bits_frame_equals(&film->frame, expected, &at), "%s, split: byte %zu", what, at);
    free(expected);

    const uint32_t first = (top >> halved) & ~1u, end = (film->height - (bottom >> halved) + 1) & ~1u;
    const uint32_t blocks = blocks_between(film, first, end < film->height ? end : film->height);
    for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
        film_run(film, REF_ANALYSIS, &barred, variant, 0);
        cr_expect_eq(counted(film), blocks, "%s: %u blocks instead of %u", what, counted(film), blocks);
        expected = bits_frame_result(&film->frame);
        film_run(film, REF_ANALYSIS, &barred, VARIANT_OWN, BITS_ALL_DEVICES);
        cr_expect(bits_frame_equals(&film->frame, expected, &at), "%s, split: byte %zu of the histogram", what, at);
        free(expected);
    }
    film_run(film, REF_MAPPING_AND_ANALYSIS, &barred, VARIANT_OWN, 0);
    cr_expect_eq(counted(film), blocks, "%s, also mapped: %u blocks instead of %u", what, counted(film), blocks);
}

DEVICE_TEST(video_bits, black_bars_do_not_change_a_bit)
{
    static const struct {
        const char *shape;
        uint32_t top, bottom;
    } films[] = {
        {"259x96 yuv420p10 to yuv420p8 hable dither compress fade", 22, 18},
        {"130x97 yuv420p10 centre to yuv420p10 reinhard hlg", 16, 33},
        {"259x96 yuv420p12 topleft to nv12 bt2390 dither", 6, 0},
        {"128x64 p010 to p010 hable fade", 0, 12},
        {"131x96 yuv422p10 to yuv420p8 mobius full dither", 9, 15},
        {"128x65 yuv444p8 full to yuv444p8 aces dither", 11, 20},
        {"259x64 gbrp10 to rgba8 linear bt709 dither", 5, 8},
        {"256x96 yuv420p10 to yuv420p8 hable dither half", 22, 26},
        {"256x96 nv12 to nv12 clip dither half", 16, 48},
        {"128x64 yuv420p10 to yuv420p8 hable", 64, 0},
        {"128x64 yuv420p16 to yuv420p8 hable", 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(films); i++) {
        const struct cox_video_shape shape = ref_shape(films[i].shape);
        struct ref_film film;
        ref_film_open(&film, runtime, &shape, REF_MAPPING_AND_ANALYSIS, REF_ALIGNED, NULL);
        ref_film_fill_stripes(&film, (uint32_t)i);
        put_bars(&film, films[i].top, films[i].bottom);
        expect_bars_same(&film, films[i].top, films[i].bottom);
        ref_film_close(&film);
    }
}

/* One other sample ends a bar. Where rows depend on others, there are none. */
DEVICE_TEST(video_bits, a_row_with_one_other_sample_is_no_bar)
{
    static const char *const shapes[] = {"64x32 yuv420p10 to yuv420p8 hable", "64x32 p010 to nv12 hable",
                                         "64x32 yuv422p8 full to yuv420p8 hable", "64x32 gbrp12 to gbrp8 hable"};
    for (size_t i = 0; i < COUNT_OF(shapes) * 3; i++) {
        struct cox_video_shape shape = ref_shape(shapes[i / 3]);
        const int part = (int)i % 3;
        struct ref_film film;
        void *planes[COX_VIDEO_PLANES_MAX];
        ref_film_open(&film, runtime, &shape, REF_MAPPING_AND_ANALYSIS, 0, NULL);
        put_bars(&film, 32, 0);
        ref_film_inputs(&film, planes);
        const bool chroma = part && shape.in.layout != COX_VIDEO_GBR;
        const uint32_t row = 20 >> (chroma ? shape.in.chroma_y_log2 : 0);
        const uint32_t column = 63 >> (chroma ? shape.in.chroma_x_log2 : 0);
        ref_video_put_part(&film.shape, planes, part, column, row, 0x80u << (shape.in.depth - 8) | 7);
        const struct cox_video_settings found = bars_of(&film, (struct cox_video_settings){0});
        const uint32_t rows = chroma && shape.in.chroma_y_log2 ? 2 : 1;
        cr_expect_eq(found.top_bar_rows, 20, "%s: %u rows", shapes[i / 3], found.top_bar_rows);
        cr_expect_eq(found.bottom_bar_rows, 32 - 20 - rows, "%s: %u rows", shapes[i / 3], found.bottom_bar_rows);

        film.shape.op = COX_OPERATOR_LOCAL;
        cr_expect_eq(bars_of(&film, (struct cox_video_settings){0}).top_bar_rows, 0);
        film.shape.op = COX_OPERATOR_HABLE;
        film.shape.scale = COX_SCALE_FILTER;
        cr_expect_eq(bars_of(&film, (struct cox_video_settings){.top_bar_rows = 5}).top_bar_rows, 0);
        ref_film_close(&film);
    }
}
