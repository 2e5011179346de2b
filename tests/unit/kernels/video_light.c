/* The video kernels with frames of known results: light, histograms, adaptation, and what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "devices.h"
#include "video/scene.h"
#include <math.h>

TestSuite(video_light, .timeout = 1200);

static const enum cox_operator operators[] = {
    COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,  COX_OPERATOR_ACES,    COX_OPERATOR_LINEAR,
    COX_OPERATOR_CLIP,  COX_OPERATOR_BT2390,   COX_OPERATOR_BT2446A, COX_OPERATOR_BT2446C, COX_OPERATOR_SPLINE};
enum { OPERATORS = COUNT_OF(operators) };

/* A film and its session. */
struct show {
    struct ref_film film;
    cox_session *session;
    enum ref_pipeline pipeline;
};

static void show_open(struct show *show, const struct cox_video_shape *shape, enum ref_pipeline pipeline)
{
    ref_film_open(&show->film, runtime, shape, pipeline, 0, NULL);
    show->session = film_session(&show->film, pipeline, VARIANT_OWN, next_device());
    show->pipeline = pipeline;
}

static void show_close(struct show *show)
{
    cox_session_destroy(&show->session);
    ref_film_close(&show->film);
}

static void run_colour(struct show *show, const double rgb[3], const struct cox_video_settings *settings)
{
    const struct cox_video_shape *shape = &show->film.shape;
    for (uint32_t i = 0; i < shape->width * shape->height; i++)
        ref_film_put(&show->film, i % shape->width, i / shape->width, rgb);
    film_run_in(show->session, &show->film, show->pipeline, settings);
}

static void run_grey(struct show *show, double signal, const struct cox_video_settings *settings)
{
    run_colour(show, (double[]){signal, signal, signal}, settings);
}

/* --- The reference ------------------------------------------------------------------------------------------------ */

/* The reference against published figures. */
Test(video_light, reference_agrees_with_published_values)
{
    cr_expect_float_eq(ref_pq_signal(100), 0.5081, 1e-4, "BT.2408, table 1");
    cr_expect_float_eq(ref_pq_signal(203), 0.5807, 1e-4, "BT.2408: 203 cd/m2 are 58 %% PQ");
    cr_expect_float_eq(ref_pq_signal(1000), 0.7518, 1e-4, "BT.2408: 75 %%");
    cr_expect_float_eq(ref_pq_light(1), 10000, 1e-6);
    cr_expect_float_eq(ref_hlg_light(0.5), 1.0 / 12, 1e-12);
    cr_expect_float_eq(ref_hlg_light(1), 1, 1e-6);
    for (double s = 0; s <= 1; s += 1.0 / 64) {
        cr_expect_float_eq(ref_pq_signal(ref_pq_light(s)), s, 1e-6);
        cr_expect_float_eq(ref_hlg_signal(ref_hlg_light(s)), s, 1e-9);
    }

    const struct cox_video_shape shape = {.transfer = COX_TRANSFER_HLG};
    struct ref_video ref;
    ref_video_init(&ref, &shape, &(struct cox_video_settings){.sdr_white_nits = 1});
    double light[3];
    ref_video_light(&ref, (double[]){0.75, 0.75, 0.75}, light);
    cr_expect_float_eq(light[1], 203, 0.5, "BT.2408: 75 %% HLG are 203 cd/m2 on a display of 1000");
    ref_video_light(&ref, (double[]){1, 1, 1}, light);
    cr_expect_float_eq(light[1], 1000, 0.01);

    /* Report BT.2087. */
    const double to_709[3][3] = {{1.66049100, -0.58764114, -0.07284986},
                                 {-0.12455047, 1.13289990, -0.00834942},
                                 {-0.01815076, -0.10057890, 1.11872966}};
    for (int i = 0; i < 9; i++)
        cr_expect_float_eq(ref.primaries[i / 3][i % 3], to_709[i / 3][i % 3], 1e-7);

    /* White of all primaries is the white of BT.709, also if its own differs. */
    for (int p = 0; p <= COX_PRIMARIES_BT601_625; p++) {
        double m[3][3];
        ref_primaries((enum cox_primaries)p, COX_PRIMARIES_BT709, m);
        for (int i = 0; i < 3; i++)
            cr_expect_float_eq(m[i][0] + m[i][1] + m[i][2], 1, 1e-9);
    }

    /* The first rows of the usual matrix. */
    const uint32_t bayer[2][8] = {{0, 32, 8, 40, 2, 34, 10, 42}, {48, 16, 56, 24, 50, 18, 58, 26}};
    for (uint32_t i = 0; i < 16; i++)
        cr_expect_eq(ref_bayer(i % 8, i / 8), bayer[i / 8][i % 8]);
    bool seen[64] = {false};
    for (uint32_t i = 0; i < 64; i++)
        seen[ref_bayer(i % 8, i / 8)] = true;
    for (int i = 0; i < 64; i++)
        cr_expect(seen[i], "%d is missing", i);
}

Test(video_light, reference_operators_take_the_peak_to_white_and_rise)
{
    for (int op = 0; op < OPERATORS; op++) {
        const struct cox_video_shape shape = {.op = operators[op]};
        struct ref_video ref;
        ref_video_init(&ref, &shape, &(struct cox_video_settings){.sdr_white_nits = 100, .peak_nits = 1000});
        double last = 0;
        for (double x = 1.0 / 64; x <= 10; x += 1.0 / 64) {
            const double now = ref_video_operator(&ref, x);
            cr_expect_geq(now, last, "%s at %g", cox_operator_name(operators[op]), x);
            last = now;
        }
        if (operators[op] != COX_OPERATOR_ACES && operators[op] != COX_OPERATOR_CLIP)
            cr_expect_float_eq(last, 1, 1e-6, "%s: %g", cox_operator_name(operators[op]), last);
    }
}

/* --- Known results ------------------------------------------------------------------------------------------------ */

static void expect_all(const struct ref_film *film, uint32_t luma, uint32_t chroma, const char *what)
{
    for (uint32_t p = 0; p < 3; p++) {
        const struct ref_plane plane = ref_video_plane(&film->shape.out, film->width, film->height, p);
        for (uint32_t i = 0; i < plane.width * plane.height; i++) {
            const uint32_t x = i % plane.width, y = i / plane.width, got = ref_film_output(film, p, x, y);
            cr_assert_eq(got, p == 0 ? luma : chroma, "%s: %s, plane %u (%u, %u) is %u", what,
                         ref_shape_text(&film->shape), p, x, y, got);
        }
    }
}

DEVICE_TEST(video_light, leaves_black_black_and_grey_without_colour)
{
    const struct cox_video_settings settings = {0};
    for (int i = 0; i < OPERATORS * 2; i++) {
        const int op = i / 2;
        const uint32_t step = op % 2 ? 4 : 1;
        struct cox_video_shape shape = ref_shape(op % 2 ? "37x5 yuv420p10 to yuv420p10" : "37x5 yuv420p10 to yuv420p8");
        struct show show;
        shape.op = operators[op];
        shape.transfer = i % 2 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;
        show_open(&show, &shape, REF_MAPPING);
        run_grey(&show, 0, &settings);
        expect_all(&show.film, 16 * step, 128 * step, "black");
        for (int grey = 1; grey < 40; grey++) {
            run_grey(&show, grey / 39.0, &settings);
            const uint32_t luma = ref_film_output(&show.film, 0, 0, 0);
            expect_all(&show.film, luma, 128 * step, "grey");
            cr_assert(luma > 16 * step && luma <= 235 * step, "grey %d of 39 is %u", grey, luma);
        }
        show_close(&show);
    }
}

DEVICE_TEST(video_light, takes_sdr_white_and_the_peak_to_the_codes_they_are_for)
{
    enum { ALL = -1, ALL_BUT_ACES = -2 };
    const struct {
        const char *what;
        double signal;
        struct cox_video_settings settings;
        int op; /* the operator that gives this luma */
        uint32_t luma;
    } rows[] = {
        {"SDR white", ref_pq_signal(203), {0}, COX_OPERATOR_CLIP, 235},
        {"SDR white", ref_pq_signal(203), {0}, COX_OPERATOR_LINEAR, 129},             /* (203/1000)^(1/2.4) */
        {"half of SDR white", ref_pq_signal(203 * 0.5), {0}, COX_OPERATOR_CLIP, 180}, /* 0.5^(1/2.4) = 0.7492 */
        {"twice half of SDR white", ref_pq_signal(203 * 0.5), {.gain = 2, .peak_nits = 2000}, COX_OPERATOR_CLIP, 235},
        {"the peak", ref_pq_signal(1000), {0}, ALL_BUT_ACES, 235},
        {"ten times the peak", 1, {0}, ALL, 235},
    };
    for (int op = 0; op < OPERATORS; op++) {
        struct cox_video_shape shape = ref_shape("16x2 yuv420p16 to yuv420p8");
        struct show show;
        shape.op = operators[op];
        show_open(&show, &shape, REF_MAPPING);
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            if (rows[i].op >= 0 && rows[i].op != (int)shape.op)
                continue;
            if (rows[i].op == ALL_BUT_ACES && shape.op == COX_OPERATOR_ACES)
                continue;
            run_grey(&show, rows[i].signal, &rows[i].settings);
            expect_all(&show.film, rows[i].luma, 128, rows[i].what);
        }
        show_close(&show);
    }
}

/* An sRGB viewer shows the light within half a code, from black to SDR white. */
DEVICE_TEST(video_light, shows_a_ramp_of_grey_right_in_srgb)
{
    static const char *const texts[] = {"256x2 yuv444p16 full to rgba8 clip srgb",
                                        "256x2 yuv444p16 full to rgba8 clip hlg srgb"};
    for (size_t t = 0; t < COUNT_OF(texts); t++) {
        const struct cox_video_shape shape = ref_shape(texts[t]);
        struct show show;
        show_open(&show, &shape, REF_MAPPING);
        for (int i = 0; i < 256; i++) {
            const double light = i / 255.0;
            const double signal = shape.transfer == COX_TRANSFER_PQ ? ref_pq_signal(203 * light)
                                                                    : ref_hlg_signal(pow(0.203 * light, 1 / 1.2));
            run_grey(&show, signal, &(struct cox_video_settings){0});
            const double got = ref_film_output(&show.film, 0, 0, 0), right = 255 * ref_srgb(light);
            cr_expect_leq(fabs(got - right), 0.56, "%s: light %.4f is code %.0f, not %.2f", texts[t], light, got,
                          right);
        }
        show_close(&show);
    }
}

DEVICE_TEST(video_light, makes_hot_spots_white_unless_told_not_to)
{
    const double flame[] = {0.98, 0.85, 0.6};
    const struct cox_video_shape shape = ref_shape("16x2 yuv420p10 to yuv420p8 hable fade");
    struct show show;
    show_open(&show, &shape, REF_MAPPING);
    run_colour(&show, flame, &(struct cox_video_settings){.peak_nits = 10000});
    const int faded = abs((int)ref_film_output(&show.film, 1, 3, 0) - 128);
    run_colour(&show, flame, &(struct cox_video_settings){.peak_nits = 10000, .desaturate = -1});
    const int saturated = abs((int)ref_film_output(&show.film, 1, 3, 0) - 128);
    cr_expect_gt(saturated, 2 * faded, "%d and %d from grey", faded, saturated);
    show_close(&show);
}

/* --- The histogram ------------------------------------------------------------------------------------------------ */

DEVICE_TEST(video_light, counts_every_block_by_its_largest_signal)
{
    static const char *const texts[] = {
        "1x1 yuv420p14 centre to p012 centre hable",
        "2x2 yuv422p10 centre to yuv422p9 topleft full hable hlg dither compress",
        "3x5 yuv444p8 full to rgba8 centre full hable compress",
        "33x2 p010 centre full to p016 topleft hable hlg fade",
        "67x35 yuv422p8 centre to yuv422p12 topleft hable fade compress",
        "64x32 yuv444p14 to yuv444p9 topleft hable hlg fade compress",
        "131x33 yuv420p10 topleft full to p010 hable dither",
        "200x40 rgba16 full to p010 hable hlg fade dither compress",
        "1x1 yuv444p9 topleft to yuv420p10 full hable fade dither compress",
        "2x2 yuv420p14 centre to yuv420p12 topleft full hable hlg fade",
        "3x5 yuv422p9 centre full to rgba16 full hable bt709 fade dither compress",
        "33x2 yuv444p16 centre full to yuv420p9 centre hable hlg bt709 fade compress",
        "67x35 yuv420p12 topleft to yuv420p14 centre hable bt709 dither compress",
        "64x32 rgba16 full to rgba16 centre full hable light fade",
        "131x33 yuv444p10 full to p09 centre hable bt709",
        "200x40 yuv420p10 topleft full to p010 topleft full hable hlg bt709 compress",
    };
    const struct cox_video_settings settings = {0};
    for (uint32_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct show show;
        uint32_t bin = 0;
        uint64_t blocks = 0;
        show_open(&show, &shape, REF_ANALYSIS);
        ref_film_fill_stripes(&show.film, i);
        film_run_in(show.session, &show.film, REF_ANALYSIS, &settings);
        cr_expect(ref_film_counted(&show.film, &settings, 1e-3, &bin), "%s: bin %u", texts[i], bin);
        for (int b = 0; b < COX_VIDEO_BINS; b++)
            blocks += ref_film_histogram(&show.film)[b];
        cr_expect_eq(blocks, ((uint64_t)shape.width + 1) / 2 * ((shape.height + 1) / 2));
        show_close(&show);
    }
}

/* The light that a frame of a single grey reads from its own histogram, within a step of the signal. */
DEVICE_TEST(video_light, reads_the_light_of_a_grey_frame_from_its_histogram)
{
    static const char *const texts[] = {"64x36 yuv420p16 to yuv420p8 hable", "64x36 yuv420p16 to yuv420p8 hable hlg",
                                        "64x36 rgba16 to yuv420p8 hable light"};
    const struct cox_video_settings settings = {.sdr_white_nits = 100, .hlg_peak_nits = 600};
    for (size_t n = 0; n < COUNT_OF(texts); n++) {
        const struct cox_video_shape shape = ref_shape(texts[n]);
        const bool linear = shape.transfer == COX_TRANSFER_LINEAR;
        struct show show;
        struct ref_video ref;
        show_open(&show, &shape, REF_ANALYSIS);
        ref_video_init(&ref, &shape, &settings);
        for (int i = 0; i <= 20; i++) {
            const double signal = linear ? exp2(i * 0.6 - 6) : i / 20.0;
            const double next = linear ? signal * 1.05 : signal + 1.5 / COX_VIDEO_BINS;
            double light[3], above[3];
            struct cox__scene scene;
            run_grey(&show, signal, &settings);
            cox__scene_read(&shape, &settings, ref_film_histogram(&show.film), &scene);
            ref_video_light(&ref, (double[]){signal, signal, signal}, light);
            ref_video_light(&ref, (double[]){next, next, next}, above);
            const double nits = 100 * light[0], step = 100 * (above[0] - light[0]) + 1e-3;
            cr_expect_eq(scene.blocks, 32 * 18);
            cr_expect_float_eq(scene.peak_nits, nits, step, "%s: peak %g of light %g", texts[n],
                               (double)scene.peak_nits, nits);
            cr_expect_float_eq(scene.average_nits, nits, step, "%s: average %g of light %g", texts[n],
                               (double)scene.average_nits, nits);
        }
        show_close(&show);
    }
}

Test(video_light, leaves_a_few_bright_blocks_out_of_the_peak)
{
    static uint32_t histogram[COX_VIDEO_BINS];
    const struct cox_video_shape shape = ref_shape("2000x2000 yuv420p10 to yuv420p8 hable");
    const struct cox_video_settings settings = {0};
    struct cox__scene scene;
    cox__scene_read(&shape, &settings, histogram, &scene);
    cr_expect_eq(scene.blocks, 0);
    histogram[0] = 1000000;
    cox__scene_read(&shape, &settings, histogram, &scene);
    cr_expect_eq(scene.blocks, 1000000);
    cr_expect_eq(scene.peak_nits, 0.0f, "black has no peak: %g", (double)scene.peak_nits);
    histogram[0] = 700000;
    histogram[256] = 299950;
    histogram[500] = 50;
    cox__scene_read(&shape, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, ref_pq_light(0.5), 3, "50 of a million are left out: %g",
                       (double)scene.peak_nits);
    histogram[500]++;
    cox__scene_read(&shape, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, ref_pq_light(500.5 / 512), 200, "51 are one too many: %g",
                       (double)scene.peak_nits);
}

/* --- Steering ----------------------------------------------------------------------------------------------------- */

/* A constant picture with noise: a sky, a ground, a lamp. */
static void fill_scene(const struct ref_film *film, double level, double lamp, uint32_t *seed)
{
    const uint32_t width = film->shape.width, height = film->shape.height;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t thousandths = random_short_below(seed, 1000) + random_short_below(seed, 1000) +
                                         random_short_below(seed, 1000);
            double base = level * (0.6 + 0.4 * (height - y) / height) - 0.1 * (x / 16 % 2);
            if (x > width / 2 && x < width / 2 + 20 && y > height / 3 && y < height / 3 + 12)
                base = lamp;
            base = fmax(base + 0.02 * (thousandths / 1500.0 - 1), 0); /* sigma 1/3 */
            ref_film_put(film, x, y, (double[]){fmin(base * 1.05, 1), fmin(base, 1), fmin(base * 0.9, 1)});
        }
}

enum { FILM_FRAMES = 60, FILM_CUT = 30 };

/* A film of two scenes. The frames before each frame set its mapping. Sets the mean output luma of each frame and
 * returns the number of cuts. */
static int run_film(bool hlg, const double levels[2], const double lamps[2], double means[FILM_FRAMES])
{
    struct cox_video_shape shape = ref_shape("320x180 yuv420p10 to yuv420p8 hable");
    struct cox_video_settings settings = {0};
    struct cox_adaptation_state steer = {0};
    struct show show;
    uint32_t seed = 77;
    int cuts = 0;
    shape.transfer = hlg ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;
    show_open(&show, &shape, REF_MAPPING_AND_ANALYSIS);
    for (int i = 0; i < FILM_FRAMES; i++) {
        fill_scene(&show.film, levels[i >= FILM_CUT], lamps[i >= FILM_CUT], &seed);
        film_run_in(show.session, &show.film, REF_MAPPING_AND_ANALYSIS, &settings);
        means[i] = ref_film_mean_luma(&show.film, 0, 0, shape.width, shape.height);
        const bool cut = cox_video_adapt(&steer, &shape, ref_film_histogram(&show.film), &settings);
        cr_expect(i == 0 || cut == (i == FILM_CUT && levels[0] != levels[1]), "frame %d: a cut: %d", i, cut);
        cuts += cut;
    }
    cr_expect_eq(steer.frames, FILM_FRAMES);
    show_close(&show);
    return cuts;
}

/* The first frame is mapped without any measurement. From the second frame on, and two frames after a cut, the
 * brightness is constant. */
DEVICE_TEST(video_light, does_not_flicker_and_settles_within_two_frames_of_a_cut)
{
    static const double films[][2][2] = {
        /* levels, lamps */
        {{0.55, 0.55}, {0.8, 0.8}}, {{0.3, 0.3}, {0.9, 0.9}},    {{0.75, 0.75}, {0.97, 0.97}},
        {{0.3, 0.7}, {0.5, 0.95}},  {{0.75, 0.25}, {0.98, 0.6}}, {{0.35, 0.6}, {0.6, 0.95}},
    };
    for (int i = 0; i < (int)COUNT_OF(films) * 2; i++) {
        const double *levels = films[i / 2][0], *lamps = films[i / 2][1];
        const bool has_cut = levels[0] != levels[1];
        double means[FILM_FRAMES];
        const int cuts = run_film(i % 2, levels, lamps, means);
        const double last = means[FILM_FRAMES - 1];
        if (has_cut)
            cr_expect_geq(cuts, 1, "film %d", i);
        else
            cr_expect_lt(fabs(last - means[2]), 1, "film %d drifts", i);
        for (int f = has_cut ? FILM_CUT + 2 : 2; f < FILM_FRAMES; f++)
            cr_expect_lt(fabs(means[f] - (has_cut ? last : means[f - 1])), 0.5, "film %d, frame %d: %g after %g", i, f,
                         means[f], means[f - 1]);
    }
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

Test(video_light, describes_the_planes_of_a_frame)
{
    static const struct {
        const char *format;
        uint32_t width, height, count;
        struct cox_video_plane planes[3];
    } good[] = {
        {"yuv420p8", 4, 2, 3, {{4, 2, 1, 1}, {2, 1, 2, 1}, {2, 1, 2, 1}}},
        {"yuv420p10", 1917, 1081, 3, {{3834, 1081, 1, 2}, {1918, 541, 2, 2}, {1918, 541, 2, 2}}},
        {"yuv422p12", 5, 3, 3, {{10, 3, 1, 2}, {6, 3, 1, 2}, {6, 3, 1, 2}}},
        {"yuv444p16", 65536, 65536, 3, {{131072, 65536, 1, 2}, {131072, 65536, 1, 2}, {131072, 65536, 1, 2}}},
        {"nv12", 5, 3, 2, {{5, 3, 1, 1}, {6, 2, 2, 1}}},
        {"p010", 1, 1, 2, {{2, 1, 1, 2}, {4, 1, 2, 2}}},
        {"rgba16", 3, 2, 1, {{24, 2, 1, 2}}},
        {"rgba8", 3, 2, 1, {{12, 2, 1, 1}}},
        {"nv16", 5, 3, 2, {{5, 3, 1, 1}, {6, 3, 1, 1}}},
        {"p210", 5, 3, 2, {{10, 3, 1, 2}, {12, 3, 1, 2}}},
        {"bgra16", 3, 2, 1, {{24, 2, 1, 2}}},
        {"bgra8", 3, 2, 1, {{12, 2, 1, 1}}},
        {"gbrp8", 3, 2, 3, {{3, 2, 1, 1}, {3, 2, 1, 1}, {3, 2, 1, 1}}},
        {"gbrp10 full", 3, 2, 3, {{6, 2, 1, 2}, {6, 2, 1, 2}, {6, 2, 1, 2}}},
        {"v210", 1, 3, 1, {{16, 3, 1, 4}}},
        {"v210", 1920, 1080, 1, {{5120, 1080, 1, 4}}},
        {"v210", 1921, 1, 1, {{5136, 1, 1, 4}}},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        const struct cox_video_format format = ref_format(good[i].format);
        cr_expect_eq(cox_video_planes(&format, good[i].width, good[i].height, planes), good[i].count, "%s",
                     good[i].format);
        for (uint32_t p = 0; p < good[i].count; p++) {
            const struct cox_video_plane *want = &good[i].planes[p];
            cr_expect_eq(planes[p].row_bytes, want->row_bytes, "%s, plane %u", good[i].format, p);
            cr_expect_eq(planes[p].rows, want->rows, "%s, plane %u", good[i].format, p);
            cr_expect_eq(planes[p].row_divisor, want->row_divisor, "%s, plane %u", good[i].format, p);
            cr_expect_eq(planes[p].sample_bytes, want->sample_bytes, "%s, plane %u", good[i].format, p);
        }
    }
    static const struct {
        struct cox_video_format format;
        uint32_t width, height;
    } bad[] = {
        {{.depth = 8}, 0, 4},
        {{.depth = 8}, 4, 0},
        {{.depth = 8}, 65537, 4},
        {{.depth = 8}, 4, 65537},
        {{.depth = 7}, 4, 4},
        {{.depth = 17}, 4, 4},
        {{.depth = 0}, 4, 4},
        {{.depth = 8, .chroma_y_log2 = 1}, 4, 4},
        {{.depth = 8, .chroma_x_log2 = 2}, 4, 4},
        {{.depth = 8, .chroma_x_log2 = 2, .chroma_y_log2 = 2}, 4, 4},
        {{.layout = (enum cox_video_layout)6, .depth = 8}, 4, 4},
        {{.layout = (enum cox_video_layout) - 1, .depth = 8}, 4, 4},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8}, 4, 4},
        {{.layout = COX_VIDEO_BGRA, .depth = 10}, 4, 4},
        {{.layout = COX_VIDEO_BGRA, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 17}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10, .msb_aligned = true, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_RGBA, .depth = 10, .range = COX_RANGE_FULL}, 4, 4},
        {{.layout = COX_VIDEO_RGBA, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.depth = 8, .chroma_location = (enum cox_chroma_location)3}, 4, 4},
        {{.depth = 8, .range = (enum cox_color_range)2}, 4, 4},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        cr_expect_eq(cox_video_planes(&bad[i].format, bad[i].width, bad[i].height, planes), 0, "format %zu", i);
    }
}

/* A row has 64 and 32 bytes in the input, and 32 and 16 in the output. */
static struct cox_video_shape good_shape(void)
{
    struct cox_video_shape shape = ref_shape("32x18 yuv420p10 to yuv420p8 hable");
    shape.in_pitch_bytes[0] = 64;
    shape.in_pitch_bytes[1] = shape.in_pitch_bytes[2] = shape.out_pitch_bytes[0] = 32;
    shape.out_pitch_bytes[1] = shape.out_pitch_bytes[2] = 16;
    return shape;
}

static struct cox_video_shape other_formats(const char *text, size_t in_pitch, size_t out_pitch)
{
    struct cox_video_shape shape = ref_shape(text);
    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        shape.in_pitch_bytes[p] = in_pitch;
        shape.out_pitch_bytes[p] = out_pitch;
    }
    return shape;
}

static void expect_refused(const struct cox_video_shape *shape, const char *what)
{
    struct cox__pipeline_storage storage;
    struct cox__session_spec session = {0};
    struct cox_constants params;
    const struct cox_video_settings settings = {0};
    cr_expect_eq(cox__video_mapping(shape, false, &storage, &session), COX_E_INVALID, "%s", what);
    cr_expect_eq(cox__video_mapping(shape, true, &storage, &session), COX_E_INVALID, "%s", what);
    cr_expect_eq(cox_video_prepare(shape, &settings, &params), COX_E_INVALID, "%s", what);
}

#define REFUSED(change)                                \
    do {                                               \
        struct cox_video_shape changed = good_shape(); \
        changed.change;                                \
        expect_refused(&changed, #change);             \
    } while (0)

Test(video_light, refuses_shapes_that_are_none)
{
    const struct cox_video_shape good = good_shape();
    struct cox__pipeline_storage storage;
    struct cox_constants params;
    const struct cox_video_settings settings = {0};
    struct cox__session_spec session = {0};
    for (uint32_t analyse = 0; analyse < 2; analyse++) {
        session = (struct cox__session_spec){.in_flight = 7};
        cr_expect_eq(cox__video_mapping(&good, analyse, &storage, &session), COX_OK);
        cr_expect_eq(session.rows, 18);
        cr_expect_eq(session.binding_count, 6 + analyse);
        cr_expect_eq(session.params_bytes, 512);
        cr_expect_eq(session.in_flight, 7, "the other fields are left alone");
    }
    session = (struct cox__session_spec){0};
    cr_expect_eq(cox__video_analysis(&good, &storage, &session), COX_OK);
    cr_expect_eq(session.binding_count, 4);
    cr_expect_eq(cox_video_prepare(&good, &settings, &params), COX_OK);

    REFUSED(width = 0);
    REFUSED(height = 65537);
    REFUSED(in.depth = 7);
    REFUSED(out.depth = 17);
    REFUSED(out.chroma_y_log2 = 0);
    REFUSED(transfer = COX_TRANSFER_LINEAR); /* RGBA only */
    REFUSED(transfer = (enum cox_transfer)4);
    REFUSED(primaries = (enum cox_primaries)6);
    REFUSED(matrix = (enum cox_matrix)4);
    REFUSED(op = COX_OPERATOR_EXPOSURE);
    REFUSED(op = COX_OPERATOR_COUNT);
    REFUSED(dither = (enum cox_dither)2);
    REFUSED(in_pitch_bytes[0] = 62); /* a row is 64 bytes */
    REFUSED(in_pitch_bytes[1] = 30);
    REFUSED(out_pitch_bytes[2] = 14);
    REFUSED(in_pitch_bytes[2] = 34); /* not a multiple of 4 */
    REFUSED(out_pitch_bytes[0] = (size_t)1 << 31);
    REFUSED(in_pitch_bytes[0] = SIZE_MAX - 3);
    REFUSED(in.chroma_location = (enum cox_chroma_location)3);
    REFUSED(out.range = (enum cox_color_range) - 1);
    REFUSED(gamut = (enum cox_gamut)3);

    static const struct {
        const char *what, *shape;
        size_t in_pitch, out_pitch;
    } bad[] = {
        {"chroma in less detail than it is to have", "32x18 yuv420p10 to yuv444p8 hable", 64, 64},
        {"light in 8 bits", "32x18 rgba8 to yuv420p8 hable light", 256, 32},
        {"a pitch that is no multiple of 16", "32x18 v210 to yuv420p8 hable", 100, 32},
        {"v210 out", "32x18 yuv422p10 to v210 hable", 64, 96},
        {"light in planes", "32x18 gbrp10 to yuv420p8 hable light", 64, 32},
        {"light in any size", "32x18 bgra16 to 32x18 yuv420p8 hable light", 256, 32},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const struct cox_video_shape shape = other_formats(bad[i].shape, bad[i].in_pitch, bad[i].out_pitch);
        expect_refused(&shape, bad[i].what);
    }

    cr_expect_eq(cox__video_mapping(NULL, false, &storage, &session), COX_E_INVALID);
    cr_expect_eq(cox__video_mapping(&good, false, NULL, &session), COX_E_INVALID);
    cr_expect_eq(cox__video_mapping(&good, false, &storage, NULL), COX_E_INVALID);
    cr_expect_eq(cox_video_prepare(&good, NULL, &params), COX_E_INVALID);
    cr_expect_eq(cox_video_prepare(&good, &settings, NULL), COX_E_INVALID);
}

Test(video_light, refuses_settings_that_are_none)
{
    struct cox_video_shape shape = good_shape();
    const struct cox_video_settings bad[] = {
        {.sdr_white_nits = -1}, {.sdr_white_nits = NAN}, {.sdr_white_nits = INFINITY},
        {.peak_nits = -1},      {.peak_nits = NAN},      {.peak_nits = INFINITY},
        {.hlg_peak_nits = -1},  {.hlg_peak_nits = NAN},  {.hlg_peak_nits = INFINITY},
        {.gain = -1},           {.gain = NAN},           {.gain = INFINITY},
        {.desaturate = NAN},    {.gamut_knee = 0.24f},   {.gamut_knee = 1},
        {.gamut_knee = NAN},
    };
    struct cox_constants params;
    for (int op = 0; op < OPERATORS; op++) {
        shape.op = operators[op];
        for (size_t i = 0; i < COUNT_OF(bad); i++)
            cr_expect_eq(cox_video_prepare(&shape, &bad[i], &params), COX_E_INVALID, "settings %zu, %s", i,
                         cox_operator_name(operators[op]));
        const struct cox_video_settings odd[] = {
            {.sdr_white_nits = 80, .peak_nits = 80},
            {.peak_nits = 10000},
            {.peak_nits = 100},
            {.hlg_peak_nits = 4000},
            {.gain = 0x1p-6f},
            {.desaturate = 9},
            {.gamut_knee = 0.25f},
            {.desaturate = -INFINITY},
            {.sdr_white_nits = 1000},
        };
        for (size_t i = 0; i < COUNT_OF(odd); i++)
            cr_expect_eq(cox_video_prepare(&shape, &odd[i], &params), COX_OK, "settings %zu, %s", i,
                         cox_operator_name(operators[op]));
    }
}
