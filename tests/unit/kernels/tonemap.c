/* The picture kernels through the public interface, on every OpenCL device, against the double-precision reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "devices.h"
#include <math.h>

TestSuite(kernels, .timeout = 1200);

/* Every operator that maps each pixel alone; local.c tests LOCAL. */
enum { CURVES_END = COX_OPERATOR_HDR10PLUS };
static int next_curve(int op)
{
    return op + 1 == COX_OPERATOR_LOCAL ? op + 2 : op + 1;
}
enum { HISTOGRAM_WORDS = COX_TONEMAP_HISTOGRAM_BINS + 2 };

/* Formats 0 .. 3: half or float to 8 or 16 bits. */
static void picture_open(struct ref_picture *picture, uint32_t width, uint32_t height, int format, size_t padding)
{
    const struct cox_tonemap_shape shape = {.width = width,
                                            .height = height,
                                            .in = format & 1 ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF,
                                            .out = format & 2 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8};
    ref_picture_open(picture, runtime, &shape, false, padding, NULL);
}

/* Light over 40 stops around white, sometimes negative, with any alpha. */
static void fill_light(const struct ref_picture *picture, uint32_t seed)
{
    for (uint32_t y = 0; y < picture->shape.height; y++)
        for (uint32_t x = 0; x < picture->shape.width; x++) {
            double rgba[4];
            const double stops = random_short_below(&seed, 25000) / 1000.0 - 16;
            for (int i = 0; i < 3; i++)
                rgba[i] = exp2(stops + random_short_below(&seed, 4000) / 1000.0) *
                          (random_short_below(&seed, 16) ? 1 : -1);
            rgba[3] = random_short_below(&seed, 1400) / 1000.0 - 0.2;
            ref_picture_put(picture, x, y, rgba);
        }
}

/* Random bits. */
static void fill_noise(const struct ref_picture *picture, uint32_t seed)
{
    for (uint32_t y = 0; y < picture->shape.height; y++)
        for (uint32_t x = 0; x < picture->shape.width; x++)
            for (uint32_t i = 0; i < 4; i++)
                ref_picture_put_bits(picture, x, y, i, random_short(&seed) << 16 ^ random_short(&seed));
}

static void analyse(struct ref_picture *counts, enum variant variant, uint32_t device)
{
    picture_run(counts, &(struct cox_tonemap_settings){0}, variant, device);
}

static const uint32_t *histogram_of(const struct ref_picture *counts)
{
    return (const uint32_t *)(const void *)counts->frame.planes[1].data;
}

static void expect_right(const struct ref_picture *picture, const struct cox_tonemap_settings *settings,
                         uint32_t device, struct ref_error *worst)
{
    struct ref_error error = {0};
    const char *op = cox_operator_name(settings->op);
    ref_picture_judge(picture, settings, &error);
    /* The fits of these curves are good to an eighth of a code of 8 bits. */
    const bool fitted = settings->op >= COX_OPERATOR_BT2446A && picture->shape.out == COX_PIXEL_RGBA16;
    cr_expect_leq(error.steps, fitted ? 32 : 1, "%s, %s at %g stops, %ux%u: %s", device_name(device), op,
                  (double)settings->exposure_stops, picture->shape.width, picture->shape.height,
                  ref_error_text(&error));
    cr_expect(bits_frame_intact(&picture->frame), "%s, %s, %ux%u: bytes outside the rows were written",
              device_name(device), op, picture->shape.width, picture->shape.height);
    ref_error_add(worst, &error);
}

/* --- Against the reference ---------------------------------------------------------------------------------------- */

DEVICE_TEST(kernels, stay_within_one_code_of_the_reference)
{
    static const struct {
        uint32_t width, height;
        size_t padding;
    } sizes[] = {{1, 1, 0}, {7, 3, 0}, {16, 2, 5}, {83, 9, 0}, {1279, 721, 1}};
    struct ref_error worst[2] = {{0}}; /* [0] of 8 bits, [1] of 16 bits */
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
        for (int i = 0; i < (int)COUNT_OF(sizes) * 4; i++) {
            const int size = i / 4, format = i % 4;
            struct ref_picture picture;
            if (sizes[size].width > 1000 && format != 0 && format != 3)
                continue; /* half to 8 bits and float to 16 bits cover both formats on each side */
            picture_open(&picture, sizes[size].width, sizes[size].height, format, sizes[size].padding);
            fill_light(&picture, 7 + (uint32_t)format);
            cox_session *session = picture_session(&picture, VARIANT_OWN, device);
            for (int op = 0; op < CURVES_END; op = next_curve(op)) {
                const struct cox_tonemap_settings settings = {
                    .op = op, .exposure_stops = (float)(op - 2), .peak = op & 1 ? 40.0f : 0.0f};
                picture_run_in(session, &picture, &settings);
                expect_right(&picture, &settings, device, &worst[format / 2]);
            }
            cox_session_destroy(&session);
            ref_picture_close(&picture);
        }
    fprintf(stderr, "largest error: %u codes of 8 bits, %u codes of 16 bits\n", worst[0].steps, worst[1].steps);
}

/* With `clip`, the light of each 16-bit code must come back as that code, with an error of at most one. */
DEVICE_TEST(kernels, encode_every_step_of_the_scale)
{
    struct ref_picture picture;
    picture_open(&picture, 256, 256, 3, 0);
    for (uint32_t i = 0; i < 65536; i++) {
        const double v = i / 65535.0;
        const double light = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
        ref_picture_put(&picture, i % 256, i / 256, (double[]){light, light, light, v});
    }
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
        picture_run(&picture, &(struct cox_tonemap_settings){.op = COX_OPERATOR_CLIP}, VARIANT_OWN, device);
        for (uint32_t i = 0; i < 65536; i++) {
            const int off = (int)ref_picture_code(&picture, i % 256, i / 256, 1) - (int)i;
            cr_assert(off >= -1 && off <= 1, "code %u became %d", i, (int)i + off);
            cr_assert_eq(ref_picture_code(&picture, i % 256, i / 256, 3), i);
        }
        cr_assert_eq(ref_picture_code(&picture, 0, 0, 0), 0);
        cr_assert_eq(ref_picture_code(&picture, 255, 255, 0), 65535);
    }
    ref_picture_close(&picture);
}

DEVICE_TEST(kernels, take_the_peak_to_white)
{
    const enum cox_operator scaled[] = {COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,
                                        COX_OPERATOR_EXPOSURE, COX_OPERATOR_LINEAR};
    const float peaks[] = {4, 10, 1000, 12345};
    struct ref_picture picture;
    picture_open(&picture, 3, 1, 1, 0);
    cox_session *session = picture_session(&picture, VARIANT_OWN, 0);
    for (int i = 0; i < 5 * 4; i++) {
        const struct cox_tonemap_settings settings = {.op = scaled[i / 4], .peak = peaks[i % 4]};
        const double peak = (double)settings.peak;
        const char *name = cox_operator_name(settings.op);
        ref_picture_put_grey(&picture, 0, 0, 0.5 * peak);
        ref_picture_put_grey(&picture, 1, 0, peak);
        ref_picture_put_grey(&picture, 2, 0, 3 * peak);
        picture_run_in(session, &picture, &settings);
        if (peak <= 10)
            cr_expect_lt(ref_picture_code(&picture, 0, 0, 0), 255, "%s keeps gradation", name);
        cr_expect_eq(ref_picture_code(&picture, 1, 0, 0), 255, "%s, peak %g", name, peak);
        cr_expect_eq(ref_picture_code(&picture, 2, 0, 0), 255, "%s is limited", name);
    }
    cox_session_destroy(&session);
    ref_picture_close(&picture);
}

/* The reference against published figures. */
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

DEVICE_TEST(kernels, give_the_same_bits_on_every_device_as_scalars_and_as_vectors)
{
    for (int format = 0; format < 4; format++) {
        struct ref_picture picture;
        picture_open(&picture, 257, 256, format, 0);
        fill_noise(&picture, 11);
        for (uint32_t i = 0; i < 65536 * 4 && !(format & 1); i++) /* every half value, in every channel */
            ref_picture_put_bits(&picture, i / 4 % 256, i / 4 / 256, i % 4, (i / 4 + 12345u * (i % 4)) & 0xffff);
        for (int op = 0; op < CURVES_END; op = next_curve(op)) {
            const struct cox_tonemap_settings settings = {
                .op = op, .exposure_stops = op & 1 ? -7.3f : 2.1f, .peak = 17.0f};
            struct ref_error worst = {0};
            uint8_t *expected = NULL;
            size_t at;
            for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
                for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                    picture_run(&picture, &settings, variant, device);
                    if (!expected)
                        expected = bits_frame_result(&picture.frame);
                    cr_expect(bits_frame_equals(&picture.frame, expected, &at), "%s differs: variant %d, %s, format %d",
                              device_name(device), variant, cox_operator_name(op), format);
                }
            expect_right(&picture, &settings, 0, &worst);
            free(expected);
        }
        ref_picture_close(&picture);
    }
}

DEVICE_TEST(kernels, give_the_same_bits_for_every_split)
{
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    struct ref_picture pictures[2]; /* [0] is mapped, [1] is analysed */
    picture_open(&pictures[0], 1021, 97, 0, 3);
    fill_light(&pictures[0], 3);
    ref_picture_open(&pictures[1], runtime, &pictures[0].shape, true, 3, &pictures[0]);
    for (int p = 1; p >= 0; p--) {
        picture_run(&pictures[p], &settings, VARIANT_OWN, 0);
        uint8_t *expected = bits_frame_result(&pictures[p].frame);
        size_t at;
        bands_made = 0;
        cox_session *session = picture_session(&pictures[p], VARIANT_OWN, BITS_ALL_DEVICES);
        for (int i = 0; i < 20; i++) {
            picture_run_in(session, &pictures[p], &settings);
            cr_expect(bits_frame_equals(&pictures[p].frame, expected, &at), "%s, split %d: byte %zu",
                      p ? "histogram" : "picture", i, at);
        }
        cr_expect_geq(bands_made, 40, "there are too few splits: %u bands", bands_made);
        cox_session_destroy(&session);
        free(expected);
        ref_picture_close(&pictures[p]);
    }
}

/* --- Unusual light ------------------------------------------------------------------------------------------------ */

DEVICE_TEST(kernels, define_the_result_of_nan_infinite_negative_denormal_and_huge_light)
{
    const double nan_ = NAN, inf = INFINITY;
    const double light[9][4] = {
        {nan_, nan_, nan_, nan_}, {-nan_, 0.5, -inf, -nan_},  {inf, inf, inf, inf},
        {inf, 0, 0, -inf},        {-1, -1e30, -0.0, -1},      {1e-44, 1e-39, 0, 1e-44},
        {3e38, 3e38, 3e38, 2},    {1e-12, 1e-13, 1e-11, 0.5}, {inf, nan_, -inf, 1},
    };
    static const uint32_t alpha[9] = {255, 255, 255, 0, 0, 0, 255, 128, 255};
    struct ref_picture picture;
    picture_open(&picture, 9, 1, 1, 0);
    for (uint32_t x = 0; x < 9; x++)
        ref_picture_put(&picture, x, 0, light[x]);
    for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
        struct ref_error worst = {0};
        cox_session *session = picture_session(&picture, VARIANT_OWN, device);
        for (int op = 0, i = 0; op < CURVES_END; op = i % 5 == 4 ? next_curve(op) : op, i++) {
            const int stops = i % 5 * 32 - 64;
            const struct cox_tonemap_settings settings = {.op = op, .exposure_stops = (float)stops};
            picture_run_in(session, &picture, &settings);
            expect_right(&picture, &settings, device, &worst);
            for (uint32_t c = 0; c < 3; c++) {
                cr_expect_eq(ref_picture_code(&picture, 0, 0, c), 0, "NaN is black");
                cr_expect_eq(ref_picture_code(&picture, 4, 0, c), 0, "negative light is black");
                cr_expect_eq(ref_picture_code(&picture, 5, 0, c), 0, "light below 2^-40 is black");
                if (stops == 0)
                    cr_expect_eq(ref_picture_code(&picture, 2, 0, c), 255, "infinite light is white");
            }
            for (uint32_t x = 0; x < 9; x++)
                cr_expect_eq(ref_picture_code(&picture, x, 0, 3), alpha[x], "alpha of pixel %u", x);
        }
        cox_session_destroy(&session);
    }
    ref_picture_close(&picture);
}

DEVICE_TEST(kernels, turn_hot_spots_white_and_leave_saturated_colours_their_hue)
{
    struct ref_picture picture;
    picture_open(&picture, 3, 1, 0, 0);
    ref_picture_put(&picture, 0, 0, (double[]){400, 150, 20, 1});  /* a flame */
    ref_picture_put(&picture, 1, 0, (double[]){0.9, 0.2, 0.1, 1}); /* paint */
    ref_picture_put(&picture, 2, 0, (double[]){0.1, 0.1, 6, 1});   /* a blue lamp */
    cox_session *session = picture_session(&picture, VARIANT_OWN, 0);
    for (int op = 0; op < CURVES_END; op = next_curve(op)) {
        const char *name = cox_operator_name(op);
        uint32_t paint[3];
        picture_run_in(session, &picture, &(struct cox_tonemap_settings){.op = op, .peak = 400});
        for (uint32_t i = 0; i < 3; i++) {
            paint[i] = ref_picture_code(&picture, 1, 0, i);
            if (op != COX_OPERATOR_LINEAR) /* to LINEAR, half of the peak is not a hot spot */
                cr_expect_geq(ref_picture_code(&picture, 0, 0, i), 230, "%s: channel %u of the flame", name, i);
        }
        cr_expect_lt(ref_picture_code(&picture, 2, 0, 0) * 2, ref_picture_code(&picture, 2, 0, 2),
                     "%s: the blue lamp stays blue", name);

        picture_run_in(session, &picture, &(struct cox_tonemap_settings){.op = op, .peak = 400, .desaturate = -1});
        for (uint32_t i = 0; i < 3; i++)
            cr_expect_eq(ref_picture_code(&picture, 1, 0, i), paint[i], "%s: paint does not fade", name);
        if (op != COX_OPERATOR_EXPOSURE && op != COX_OPERATOR_CLIP) /* these two operators map each channel alone */
            cr_expect_lt(ref_picture_code(&picture, 0, 0, 2), 100, "%s: no fading by request", name);
    }
    cox_session_destroy(&session);
    ref_picture_close(&picture);
}

/* --- Analysis ----------------------------------------------------------------------------------------------------- */

/* Each pixel counts in its bin, or in the neighbour if it lies within rounding of the boundary. So the cumulated
 * counts differ from the exact ones by at most the number of pixels near the boundary. */
static void expect_counts(const struct ref_picture *picture, const uint32_t *histogram)
{
    static uint32_t exact[COX_TONEMAP_HISTOGRAM_BINS + 1], near[COX_TONEMAP_HISTOGRAM_BINS + 1];
    const uint32_t width = picture->shape.width, height = picture->shape.height;
    double largest = 0;
    memset(exact, 0, sizeof exact);
    memset(near, 0, sizeof near);
    for (uint32_t i = 0; i < width * height; i++) {
        double rgba[4];
        ref_picture_stored(picture, i % width, i / width, rgba);
        for (int c = 0; c < 3; c++)
            rgba[c] = ref_colour(rgba[c], picture->shape.in);
        const double luminance = ref_luminance(rgba);
        largest = fmax(largest, luminance);
        const double place = luminance > 0 ? fmax((log2(luminance) + 16) * 32, -1) : -1;
        exact[(int)fmin(floor(place) + 1, COX_TONEMAP_HISTOGRAM_BINS)]++; /* [0] counts black pixels */
        if (fabs(place - round(place)) < 1e-3 && place > -0.5 && place < COX_TONEMAP_HISTOGRAM_BINS)
            near[(int)round(place)]++;
    }

    uint64_t counted = histogram[COX_TONEMAP_HISTOGRAM_BINS], wanted = exact[0];
    for (int bin = 0; bin < COX_TONEMAP_HISTOGRAM_BINS; bin++) {
        cr_expect_leq(llabs((long long)counted - (long long)wanted), near[bin], "%ux%u: up to bin %d", width, height,
                      bin);
        counted += histogram[bin];
        wanted += exact[bin + 1];
    }
    cr_expect_eq(counted, (uint64_t)width * height);
    float brightest;
    memcpy(&brightest, &histogram[COX_TONEMAP_HISTOGRAM_BINS + 1], 4);
    cr_expect_leq(fabs((double)brightest - largest), 1e-6 * largest);
}

DEVICE_TEST(kernels, count_every_pixel_by_its_luminance)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {33, 19}, {1279, 721}};
    for (int i = 0; i < 8; i++) {
        struct ref_picture picture, counts;
        uint8_t *expected = NULL;
        size_t at;
        picture_open(&picture, sizes[i / 2][0], sizes[i / 2][1], i & 1, 0);
        ref_picture_open(&counts, runtime, &picture.shape, true, 0, &picture);
        if (picture.shape.width == 33)
            fill_noise(&picture, 5);
        else
            fill_light(&picture, 5);
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++)
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                analyse(&counts, variant, device);
                if (!expected)
                    expected = bits_frame_result(&counts.frame);
                cr_expect(bits_frame_equals(&counts.frame, expected, &at), "%s, variant %d, picture %d: byte %zu",
                          device_name(device), variant, i, at);
            }
        expect_counts(&picture, histogram_of(&counts));
        free(expected);
        ref_picture_close(&counts);
        ref_picture_close(&picture);
    }
}

DEVICE_TEST(kernels, expose_a_grey_picture_to_middle_grey_under_every_operator)
{
    static const double lights[] = {0.001, 0.18, 30};
    struct ref_picture picture, counts;
    picture_open(&picture, 64, 48, 0, 0);
    ref_picture_open(&counts, runtime, &picture.shape, true, 0, &picture);
    cox_session *mapping = picture_session(&picture, VARIANT_OWN, 0);
    for (int l = 0; l < 3; l++) {
        struct cox_tonemap_analysis analysis;
        for (uint32_t i = 0; i < 64 * 48; i++)
            ref_picture_put_grey(&picture, i % 64, i / 64, lights[l]);
        analyse(&counts, VARIANT_OWN, 0);
        cox_tonemap_read_analysis(histogram_of(&counts), &analysis);
        cr_expect_float_eq(analysis.log_average / lights[l], 1, 0.02);
        cr_expect_float_eq(analysis.peak / lights[l], 1, 0.02);
        for (int op = 0; op < CURVES_END; op = next_curve(op)) {
            struct cox_tonemap_settings settings = {.op = op};
            cox_tonemap_auto_exposure(&analysis, &settings);
            picture_run_in(mapping, &picture, &settings);
            const uint32_t code = ref_picture_code(&picture, 5, 5, 1);
            cr_expect(abs((int)code - 118) <= 2, "%s: light %g became code %u", cox_operator_name(op), lights[l], code);
        }
    }
    cox_session_destroy(&mapping);
    ref_picture_close(&counts);
    ref_picture_close(&picture);
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
    uint32_t night[HISTOGRAM_WORDS] = {0};
    count(night, 0.001, 700000);
    count(night, 0.5, 299950);
    count(night, 100, 20);
    count(night, 5000, 30);
    struct cox_tonemap_analysis analysis;
    cox_tonemap_read_analysis(night, &analysis);
    cr_expect_float_eq(analysis.highlight, 0.5, 0.02);
    cr_expect_float_eq(analysis.peak, 0.5, 0.02, "50 pixels of a million are ignored, so the lamps are");
    count(night, 100, 1);
    cox_tonemap_read_analysis(night, &analysis);
    cr_expect_float_eq(analysis.peak, 100, 3, "51 pixels of a million count");

    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_CLIP, .exposure_stops = 0.5f};
    cox_tonemap_auto_exposure(&analysis, &settings);
    cr_expect_float_eq(settings.exposure_stops, 1.5f, 0.1, "one stop takes the highlight to white");
    cr_expect_float_eq(settings.peak, analysis.peak * exp2f(settings.exposure_stops), 0.1);
}

Test(kernels, leave_the_settings_alone_for_a_black_picture)
{
    uint32_t black[HISTOGRAM_WORDS] = {[COX_TONEMAP_HISTOGRAM_BINS] = 1000};
    struct cox_tonemap_analysis analysis;
    cox_tonemap_read_analysis(black, &analysis);
    cr_expect_eq(analysis.log_average, 0.0f);
    cr_expect_eq(analysis.peak, 0.0f);
    struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE, .exposure_stops = 2, .peak = 7};
    cox_tonemap_auto_exposure(&analysis, &settings);
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
    const struct cox_tonemap_shape bad[] = {
        {.width = 0, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28},
        {.width = 7, .height = 0, .in_pitch_bytes = 56, .out_pitch_bytes = 28},
        {.width = 65537, .height = 3, .in_pitch_bytes = 1 << 20, .out_pitch_bytes = 1 << 20},
        {.width = 7, .height = 65537, .in_pitch_bytes = 56, .out_pitch_bytes = 28},
        {.width = 7, .height = 3, .in_pitch_bytes = 48, .out_pitch_bytes = 28},
        {.width = 7, .height = 3, .in_pitch_bytes = 60, .out_pitch_bytes = 28},
        {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 24},
        {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 30},
        {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28, .in = (enum cox_pixel_in)2},
        {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28, .out = (enum cox_pixel_out) - 1},
        {.width = 7, .height = 3, .in_pitch_bytes = (size_t)1 << 31, .out_pitch_bytes = 28},
    };
    struct cox__pipeline_storage storage;
    struct cox__session_spec session = {0};
    struct cox_constants params;
    const struct cox_tonemap_settings settings = {0};
    cr_expect_eq(cox__tonemap_mapping(&good, &storage, &session), COX_OK);
    cr_expect_eq(session.rows, 3);
    cr_expect_eq(session.params_bytes, 320);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        cr_expect_eq(cox__tonemap_mapping(&bad[i], &storage, &session), COX_E_INVALID, "shape %zu", i);
        cr_expect_eq(cox__tonemap_analysis_spec(&bad[i], &storage, &session), COX_E_INVALID, "shape %zu", i);
        cr_expect_eq(cox_tonemap_prepare(&bad[i], &settings, &params), COX_E_INVALID, "shape %zu", i);
    }
    const struct cox_tonemap_shape largest = {.width = 65536,
                                              .height = 65536,
                                              .in = COX_PIXEL_RGBA_FLOAT,
                                              .out = COX_PIXEL_RGBA16,
                                              .in_pitch_bytes = 0x7ffffff0,
                                              .out_pitch_bytes = 0x7ffffff8};
    cr_expect_eq(cox__tonemap_mapping(&largest, &storage, &session), COX_OK);
    const char *options = session.stages[0].variants[0].options;
    cr_expect_not_null(strstr(options, "-DCOX_OUT_PITCH=2147483640 "), "%s", options);
    cr_expect_lt(strlen(options), 160);
    cr_expect_eq(cox__tonemap_analysis_spec(&largest, &storage, &session), COX_E_INVALID, "its counts would not fit");
}

Test(kernels, refuse_settings_that_are_none)
{
    const struct cox_tonemap_shape shape = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
    enum { WORDS = 64 }; /* of 4 bytes, in the constants of a picture */
    struct cox_constants params = {0};
    const struct cox_tonemap_settings bad[] = {
        {.op = COX_OPERATOR_COUNT},
        {.op = COX_OPERATOR_HDR10PLUS},
        {.exposure_stops = NAN},
        {.exposure_stops = 64.5f},
        {.exposure_stops = -INFINITY},
        {.peak = -1},
        {.peak = NAN},
        {.desaturate = NAN},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        cr_expect_eq(cox_tonemap_prepare(&shape, &bad[i], &params), COX_E_INVALID, "settings %zu", i);
    const struct cox_tonemap_settings odd[] = {{.peak = 1e-30f}, {.peak = INFINITY}, {.desaturate = 9}};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        for (int op = 0; op < CURVES_END; op = next_curve(op)) {
            struct cox_tonemap_settings settings = odd[i];
            settings.op = op;
            cr_expect_eq(cox_tonemap_prepare(&shape, &settings, &params), COX_OK);
            for (size_t w = 1; w < WORDS; w++) {
                float word;
                memcpy(&word, (const char *)&params + 4 * w, 4);
                cr_expect(isfinite(word), "word %zu of settings %zu, %s", w, i, cox_operator_name(op));
            }
        }
    }
}
