/* The video kernels in every format, through the public interface and on every OpenCL device. The double-precision
 * reference is the judge. video_bits.c checks that a frame's bits do not depend on how it is mapped. video_light.c
 * checks what single colours become.
 *
 * Each film needs its own compiled kernel, so only a part of the drawn films is run. If two build options occur
 * together in any film, they occur together in one that is run. COX_FULL=1 runs all films.
 * SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include <math.h>

TestSuite(video, .timeout = 1200);

static const enum cox_operator operators[] = {
    COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,  COX_OPERATOR_ACES,    COX_OPERATOR_LINEAR,
    COX_OPERATOR_CLIP,  COX_OPERATOR_BT2390,   COX_OPERATOR_BT2446A, COX_OPERATOR_BT2446C, COX_OPERATOR_SPLINE};
enum { OPERATORS = COUNT_OF(operators) };

/* --- What the films show ------------------------------------------------------------------------------------------ */

/* Colours on the edge of BT.709 in a BT.2020 container, such as the saturated colours of an SDR film inside an HDR
 * film. One of their channels is a difference of equal numbers, and the power of 1/2.4 is steepest at 0. */
static void fill_edge(const struct ref_film *film, uint32_t *seed)
{
    double to_2020[3][3];
    ref_primaries(COX_PRIMARIES_BT709, COX_PRIMARIES_BT2020, to_2020);
    for (uint32_t i = 0; i < film->shape.width * film->shape.height; i++) {
        double wanted[3], rgb[3];
        for (int c = 0; c < 3; c++)
            wanted[c] = pow(10, random_short_below(seed, 3000) / 1000.0 - 2.4);
        wanted[random_short_below(seed, 3)] = 0;
        wanted[random_short_below(seed, 3)] = 0;
        for (int c = 0; c < 3; c++) {
            const double light = 203 *
                                 (to_2020[c][0] * wanted[0] + to_2020[c][1] * wanted[1] + to_2020[c][2] * wanted[2]);
            rgb[c] = film->shape.transfer == COX_TRANSFER_PQ ? ref_pq_signal(light)
                                                             : ref_hlg_signal(fmin(light / 1000, 1));
        }
        ref_film_put(film, i % film->shape.width, i / film->shape.width, rgb);
    }
}

/* --- Against the reference ---------------------------------------------------------------------------------------- */

enum { TRIALS_MAX = 80, PICTURES_MAX = 8 };

/* Films that are compared with the reference, and the settings of each picture. */
struct trials {
    uint32_t count;
    struct trial {
        struct cox_video_shape shape;
        size_t words; /* of padding */
        bool edge;    /* shows colours on the edge of the gamut */
        uint32_t first_picture, pictures;
        struct cox_video_settings settings[PICTURES_MAX];
    } trials[TRIALS_MAX];
};

static struct trial *trial_new(struct trials *trials, const struct cox_video_shape *shape, size_t words)
{
    struct trial *trial = &trials->trials[trials->count];
    *trial = (struct trial){.shape = *shape,
                            .words = words,
                            .first_picture = trials->count++,
                            .pictures = 1,
                            .settings = {{.sdr_white_nits = 100}}};
    return trial;
}

/* The build options of a shape's kernel. */
static void choices_of(const struct cox_video_shape *s, uint8_t choices[RANDOM_PAIRS_CHOICES])
{
    const uint32_t values[] = {s->in.layout,
                               s->in.depth - 8,
                               s->in.chroma_x_log2 + s->in.chroma_y_log2,
                               s->in.chroma_location,
                               s->in.range,
                               s->out.layout,
                               s->out.depth - 8,
                               s->out.chroma_x_log2 + s->out.chroma_y_log2,
                               s->out.chroma_location,
                               s->transfer,
                               s->op,
                               s->desaturate_highlights,
                               s->dither,
                               s->gamut,
                               s->encoding * 2 + s->out_primaries,
                               s->scale,
                               s->primaries};
    for (size_t i = 0; i < RANDOM_PAIRS_CHOICES; i++)
        choices[i] = (uint8_t)values[i];
}

/* Keep enough films that every pair of options in any of them remains in one. */
static void thin_out(struct trials *trials)
{
    static struct random_pairs pairs;
    uint8_t choices[TRIALS_MAX][RANDOM_PAIRS_CHOICES];
    struct trials kept = {0};
    if (getenv("COX_FULL"))
        return;
    for (uint32_t i = 0; i < trials->count; i++)
        choices_of(&trials->trials[i].shape, choices[i]);
    for (;;) {
        uint32_t best = 0, most = 0;
        for (uint32_t i = 0; i < trials->count; i++) {
            const uint32_t news = random_pairs_new(&pairs, choices[i], false);
            best = news > most ? i : best;
            most = news > most ? news : most;
        }
        if (most == 0)
            break;
        random_pairs_new(&pairs, choices[best], true);
        kept.trials[kept.count++] = trials->trials[best];
    }
    *trials = kept;
}

/* The documented precision is one code of 8 bits and two codes of 10. For higher depths the bound is two and a half
 * codes of 10 bits. */
static uint32_t promise(uint32_t depth)
{
    return depth < 10 ? 1 : depth == 10 ? 2 : 5u << (depth - 11);
}

/* The bits of a sample below its code are 0. */
static bool low_bits_clear(const struct ref_film *film)
{
    const uint32_t depth = film->shape.out.depth;
    for (uint32_t p = 0; p < film->out_count && film->shape.out.msb_aligned; p++) {
        const struct bits_plane *plane = &film->frame.planes[film->out_first + p];
        for (size_t i = 0; i < plane->rows * plane->row_bytes; i += 2) {
            uint16_t word;
            memcpy(&word, bits_row(plane, (uint32_t)(i / plane->row_bytes)) + i % plane->row_bytes, 2);
            if (word & ((1u << (16 - depth)) - 1))
                return false;
        }
    }
    return true;
}

static void expect_right(const struct ref_film *film, const struct cox_video_settings *settings, const char *device,
                         struct ref_error *worst)
{
    const char *text = ref_shape_text(&film->shape);
    struct ref_error error = {0};
    ref_film_judge(film, settings, &error);
    cr_expect_leq(error.steps, promise(film->shape.out.depth), "%s, %s: %s", device, text, ref_error_text(&error));
    /* With fewer samples a wrong rounding could pass. PQ shows errors of dark light that other encodings hide. */
    if (film->shape.out.depth <= 10 && error.samples >= 1000)
        cr_expect_lt(error.off, (film->shape.encoding == COX_ENCODING_PQ ? 0.1 : 0.06) * error.samples,
                     "%s, %s: %u of %u codes are not the reference's", device, text, error.off, error.samples);
    cr_expect(bits_frame_intact(&film->frame), "%s, %s: bytes outside the rows were written", device, text);
    cr_expect(low_bits_clear(film), "%s, %s: bits below the sample are set", device, text);
    ref_error_add(worst, &error);
}

/* Each trial runs on the next device in rotation. */
static void expect_all_right(struct trials *trials)
{
    struct ref_error worst = {0};
    uint32_t seed = 9;
    for (uint32_t t = 0; t < trials->count; t++) {
        const struct trial *trial = &trials->trials[t];
        const uint32_t device = next_device();
        struct ref_film film;
        ref_film_open(&film, runtime, &trial->shape, REF_MAPPING, trial->words, NULL);
        cox_session *session = film_session(&film, REF_MAPPING, VARIANT_OWN, device);
        for (uint32_t p = 0; p < trial->pictures; p++) {
            if (trial->edge)
                fill_edge(&film, &seed);
            else
                ref_film_fill_stripes(&film, trial->first_picture + p);
            film_run_in(session, &film, REF_MAPPING, &trial->settings[p]);
            expect_right(&film, &trial->settings[p], device_name(device), &worst);
        }
        cox_session_destroy(&session);
        ref_film_close(&film);
    }
    fprintf(stderr, "%u films: %g codes before rounding, %u after\n", trials->count, worst.codes, worst.steps);
}

static const struct {
    uint32_t width, height;
} sizes[] = {{1, 1}, {2, 2}, {3, 5}, {33, 2}, {67, 35}, {64, 32}, {131, 33}, {200, 40}};
enum { SIZES = COUNT_OF(sizes) };

/* The input's format comes from the arguments. Everything else is random. */
static void draw_shape(uint32_t *seed, enum cox_operator op, enum cox_transfer transfer, enum cox_color_range range,
                       int sub, struct cox_video_shape *shape)
{
    static const uint32_t likely[] = {8, 8, 10, 10, 10, 12, 16, 9, 14};
    const uint32_t in_depth = likely[random_short_below(seed, 9)], out_depth = likely[random_short_below(seed, 9)];
    const bool in_semi = sub == REF_420 && random_short_below(seed, 3) == 0;
    /* Chroma of the output is subsampled at least as much as the input's. Most draws are 4:2:0, the most common
     * format. */
    const int out_sub = sub == REF_420 || random_short_below(seed, 2) == 0
                            ? REF_420
                            : (int)random_short_below(seed, (uint32_t)sub + 1);
    enum cox_video_layout out_layout = random_short_below(seed, 4) == 0 ? COX_VIDEO_RGBA : COX_VIDEO_PLANAR;
    if (out_layout == COX_VIDEO_PLANAR && out_sub == REF_420 && random_short_below(seed, 3) == 0)
        out_layout = COX_VIDEO_SEMI_PLANAR;
    const uint32_t size = random_short_below(seed, 3) == 0 ? random_short_below(seed, 4)
                                                           : 4 + random_short_below(seed, SIZES - 4);
    shape->width = sizes[size].width;
    shape->height = sizes[size].height;
    shape->transfer = transfer;
    shape->op = op;
    shape->primaries = random_short_below(seed, 3) == 0 ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020;
    shape->desaturate_highlights = random_short_below(seed, 2) == 0;
    shape->dither = random_short_below(seed, 3) == 0 ? COX_DITHER_ORDERED : COX_DITHER_NONE;
    shape->gamut = (enum cox_gamut)((*seed >> 9 & 255) % 3);
    shape->encoding = *seed >> 12 & 1 ? COX_ENCODING_SRGB : COX_ENCODING_BT1886;
    shape->in = ref_format_of(in_semi ? COX_VIDEO_SEMI_PLANAR : COX_VIDEO_PLANAR, in_depth, sub,
                              (enum cox_chroma_location)random_short_below(seed, 3), range);
    shape->out = ref_format_of(out_layout, out_layout == COX_VIDEO_RGBA ? 8u << random_short_below(seed, 2) : out_depth,
                               out_layout == COX_VIDEO_RGBA ? REF_444 : out_sub,
                               (enum cox_chroma_location)random_short_below(seed, 3),
                               (enum cox_color_range)random_short_below(seed, 2));
}

static void draw_settings(uint32_t *seed, struct cox_video_settings *settings)
{
    static const float whites[] = {0, 100, 203, 80}, peaks[] = {0, 1000, 4000, 300, 10000},
                       gains[] = {0, 0, 0.5f, 1.7f}, desaturations[] = {0, -1, 1, 0.2f},
                       displays[] = {0, 1000, 400, 2000, 100}, knees[] = {0, 0.5f, 0.95f, 0.25f};
    settings->sdr_white_nits = whites[random_short_below(seed, 4)];
    settings->peak_nits = peaks[random_short_below(seed, 5)];
    settings->hlg_peak_nits = displays[random_short_below(seed, 5)];
    settings->gain = gains[random_short_below(seed, 4)];
    settings->desaturate = desaturations[random_short_below(seed, 4)];
    settings->gamut_knee = knees[*seed >> 11 & 3];
}

/* Every operator, range and subsampling with this transfer function. */
static void compare_operators(enum cox_transfer transfer)
{
    static struct trials trials;
    uint32_t seed = 17 + transfer;
    for (int i = 0; i < OPERATORS * 6; i++) {
        struct cox_video_shape shape = {0};
        draw_shape(&seed, operators[i / 6], transfer, (enum cox_color_range)(i % 6 / 3), i % 3, &shape);
        struct trial *trial = trial_new(&trials, &shape, random_short_below(&seed, 3));
        trial->first_picture = 0;
        trial->pictures = PICTURES_MAX;
        for (int p = 0; p < PICTURES_MAX; p++)
            draw_settings(&seed, &trial->settings[p]);
    }
    thin_out(&trials);
    expect_all_right(&trials);
}

DEVICE_TEST(video, stays_within_the_promised_codes_of_the_reference_for_pq)
{
    compare_operators(COX_TRANSFER_PQ);
}

DEVICE_TEST(video, stays_within_the_promised_codes_of_the_reference_for_hlg)
{
    compare_operators(COX_TRANSFER_HLG);
}

DEVICE_TEST(video, keeps_its_promise_on_the_edge_of_the_gamut)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p8 hable",      "320x200 yuv420p10 to yuv420p10 bt2390",
        "320x200 yuv420p10 to yuv420p8 mobius",     "320x200 yuv420p10 to yuv420p10 hable",
        "320x200 yuv420p10 to rgba8 bt2390 srgb",   "320x200 yuv420p10 to yuv420p10 mobius",
        "320x200 yuv420p10 to yuv420p8 hable hlg",  "320x200 yuv420p10 to yuv420p10 bt2390 hlg",
        "320x200 yuv420p10 to yuv420p8 mobius hlg", "320x200 yuv420p10 to yuv420p10 hable hlg",
        "320x200 yuv420p10 to rgba8 bt2390 hlg",    "320x200 yuv420p10 to yuv420p10 mobius hlg",
    };
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, 0);
        trial->edge = true;
        trial->pictures = 3;
        trial->settings[0].sdr_white_nits = 0;
        trial->settings[1].sdr_white_nits = 100;
    }
    expect_all_right(&trials);
}

DEVICE_TEST(video, keeps_its_promise_with_any_primaries_and_matrix)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p8 hable p3",        "320x200 yuv444p10 to rgba16 clip p3 matrix709",
        "320x200 yuv420p10 to yuv420p10 hable p3 hlg",   "320x200 yuv422p12 to yuv422p10 bt2390 dci",
        "320x200 yuv420p10 to rgba8 mobius dci hlg",     "320x200 yuv420p10 to yuv420p8 hable 525",
        "320x200 yuv444p10 to rgba16 hable 625 hlg",     "320x200 gbrp12 to yuv444p10 hable p3 hlg compress",
        "320x200 yuv420p10 to yuv420p8 hable matrix709", "320x200 yuv420p10 to yuv420p8 hable matrix601 hlg",
        "320x200 p010 to nv12 hable bt709 matrix2020",   "320x200 yuv420p10 to yuv420p8 local p3 matrix601",
        "320x200 yuv444p10 to 160x100 rgba16 hable dci",
    };
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        trial_new(&trials, &shape, 0);
    }
    expect_all_right(&trials);
}

/* Every layout of Y'CbCr, both changes of size, the operator `local`, and the histogram's pipeline. Each picture has
 * its own reshaping. */
DEVICE_TEST(video, reshapes_as_the_reference_does)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p8 hable reshape",
        "130x66 yuv420p10 topleft to yuv420p10 bt2390 reshape compress fade",
        "131x67 yuv420p12 centre to rgba8 hable reshape srgb",
        "67x34 yuv444p10 to yuv444p10 mobius reshape",
        "320x200 p010 to nv12 hable reshape dither",
        "96x64 v210 to p210 bt2390 reshape",
        "128x64 yuv422p10 to yuv422p8 hable reshape half",
        "66x34 yuv420p10 to 44x22 yuv420p8 hable reshape",
        "200x120 yuv420p10 to yuv420p8 local reshape",
        "64x64 yuv420p8 to yuv420p8 clip reshape",
    };
    static struct trials trials;
    static struct cox_video_reshape reshapes[COUNT_OF(texts)][PICTURES_MAX];
    uint32_t seed = 31;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, i % 3);
        trial->pictures = 6;
        for (uint32_t p = 0; p < trial->pictures; p++) {
            ref_reshape_draw(&reshapes[i][p], p % 2 ? COX_RESHAPE_PIECES_MAX : 1, &seed);
            trial->settings[p] = (struct cox_video_settings){.sdr_white_nits = 100, .reshape = &reshapes[i][p]};
        }
    }
    expect_all_right(&trials);
}

/* Every layout, both changes of size, and domains other than 0 .. 1. */
DEVICE_TEST(video, looks_up_as_the_reference_does)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p8 lut33",    "130x66 yuv420p10 topleft to yuv420p10 hlg lut17",
        "131x67 yuv420p12 centre to rgba8 lut5",  "320x200 p010 to nv12 dither lut16",
        "96x64 v210 to p210 full lut65",          "128x64 yuv422p10 to yuv422p8 half lut8",
        "66x34 yuv420p10 to 44x22 yuv420p8 lut9", "131x35 gbrp16 full to gbrp16 lut2",
        "67x34 bgra8 to bgra16 hlg p3 lut33",
    };
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        trial_new(&trials, &shape, i % 3)->pictures = 4;
    }
    expect_all_right(&trials);
}

/* A scene may be no brighter than SDR white. */
DEVICE_TEST(video, keeps_light_that_no_curve_has_to_compress)
{
    static const char *const texts[] = {"96x64 yuv420p10 to yuv420p8 bt2390", "96x64 yuv420p10 to yuv420p8 local",
                                        "96x64 yuv420p10 to yuv420p10 bt2390 hlg"};
    static const float peaks[] = {203, 100, 203.1f, 204};
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, 0);
        trial->pictures = COUNT_OF(peaks);
        for (uint32_t p = 0; p < trial->pictures; p++)
            trial->settings[p] = (struct cox_video_settings){.peak_nits = peaks[p]};
    }
    expect_all_right(&trials);
}

DEVICE_TEST(video, maps_to_wide_colours_and_to_darker_hdr_displays)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p10 bt2390 wide pq",
        "130x66 yuv444p12 to yuv444p12 clip wide pq",
        "131x67 yuv420p10 to yuv420p8 hable wide",
        "320x200 yuv420p10 to yuv420p10 full bt2390 pq",
        "96x64 p010 to p010 bt2390 wide pq hlg",
        "320x200 yuv420p10 to yuv420p10 mobius wide p3 fade compress",
        "128x64 yuv422p10 to yuv420p10 hable wide pq 625",
        "96x64 gbrp12 to gbrp12 bt2390 wide pq bt709",
        "66x34 yuv420p10 to 44x22 yuv420p10 bt2390 wide pq",
        "96x64 yuv420p10 to yuv420p10 bt2390 wide pq reshape",
        "200x120 yuv420p10 to yuv420p10 local wide",
        "96x64 yuv420p10 to rgba16 hable wide pq dci",
    };
    static struct trials trials;
    static struct cox_video_reshape reshape;
    uint32_t seed = 41;
    ref_reshape_draw(&reshape, 2, &seed);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, 0);
        trial->pictures = 3;
        for (uint32_t p = 0; p < trial->pictures; p++)
            trial->settings[p] = (struct cox_video_settings){
                .sdr_white_nits = 100.0f + 400 * p, .peak_nits = 4000, .reshape = shape.reshape ? &reshape : NULL};
    }
    expect_all_right(&trials);
}

/* Other primaries, matrices, sizes, curves and places of chroma than the output's. The settings that bend HDR have no
 * effect. */
DEVICE_TEST(video, converts_sdr_as_the_reference_does)
{
    static const char *const texts[] = {
        "320x200 yuv420p10 to yuv420p10 hable sdr",          "320x200 yuv420p8 to yuv420p8 hable sdr compress",
        "320x200 yuv420p8 to yuv420p8 bt2390 sdr 625 fade",  "131x67 yuv422p10 to yuv420p10 mobius sdr 525 dither",
        "96x64 nv12 to p010 local sdr bt709 wide pq",        "320x200 yuv420p10 to yuv420p10 bt2390 sdr wide pq",
        "67x34 yuv444p10 to rgba8 hable sdr bt709 srgb",     "67x34 v210 to bgra16 aces sdr bt709",
        "128x64 yuv420p10 to yuv420p8 hable sdr bt709 half", "66x34 yuv420p10 to 44x22 yuv420p8 hable sdr bt709",
        "96x64 gbrp10 to yuv444p10 hable sdr bt709",         "131x67 yuv420p10 topleft to yuv420p10 hable sdr bt709",
        "67x34 yuv420p8 to yuv420p8 sdr bt709 matrix601",    "67x34 rgba8 to nv12 sdr p3",
        "67x34 yuv420p12 to yuv420p12 local sdr bt709 wide",
    };
    static const struct cox_video_settings settings[] = {
        {.sdr_white_nits = 0},
        {.sdr_white_nits = 100, .peak_nits = 10000, .gain = 4, .desaturate = 1, .detail = 2},
        {.sdr_white_nits = 1000, .peak_nits = 100, .gain = 0.1f, .hlg_peak_nits = 400},
    };
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, i % 3);
        trial->pictures = COUNT_OF(settings);
        memcpy(trial->settings, settings, sizeof settings);
    }
    expect_all_right(&trials);
}

/* Another depth, range, layout: but neither the primaries nor the chroma. */
DEVICE_TEST(video, recodes_sdr_of_the_outputs_colours_as_the_reference_does)
{
    static const char *const texts[] = {
        "131x67 yuv420p10 to yuv420p8 sdr bt709 hable",
        "131x67 yuv420p10 to yuv420p8 sdr bt709 dither",
        "131x67 yuv420p8 to yuv420p10 sdr bt709 local",
        "131x66 p010 full to nv12 sdr bt709 dither",
        "67x34 yuv422p12 to nv16 full sdr bt709",
        "131x67 v210 to p210 full sdr bt709",
        "67x34 yuv444p16 full to yuv444p9 sdr bt709",
        "67x34 gbrp12 full to gbrp8 sdr bt709 dither",
        "67x34 rgba16 to bgra8 sdr bt709",
        "67x34 bgra8 to gbrp10 sdr bt709 matrix601",
        "67x34 yuv420p10 centre to p010 centre sdr wide",
        "1x1 yuv420p8 to yuv420p8 sdr bt709 matrix709",
        "3x5 nv12 topleft to yuv420p10 topleft sdr wide",
    };
    static struct trials trials;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct trial *trial = trial_new(&trials, &shape, i % 3);
        trial->pictures = 2;
        trial->settings[1] = (struct cox_video_settings){.peak_nits = 4000, .gain = 3};
    }
    expect_all_right(&trials);
}

/* Any codes, also outside the nominal range, and chroma as fine as its samples. */
DEVICE_TEST(video, keeps_every_code_of_sdr)
{
    static const char *const texts[] = {
        "yuv420p8 to yuv420p8",
        "yuv420p10 to yuv420p10",
        "yuv422p8 to yuv422p8",
        "yuv422p10 to yuv422p10",
        "yuv444p8 to yuv444p8",
        "yuv444p10 to yuv444p10",
        "nv12 to nv12",
        "p010 to p010",
        "nv16 to nv16",
        "p210 to p210",
        "gbrp8 to gbrp8",
        "gbrp10 to gbrp10",
        "rgba8 to rgba8",
        "bgra8 to bgra8",
        "rgba16 to rgba16",
        "yuv420p10 full to yuv420p10 full",
        "yuv420p8 full to yuv420p8 full",
        "nv12 to yuv420p8",
        "yuv420p10 to p010",
        "v210 to yuv422p10",
        "rgba8 to gbrp8 full",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct cox_video_shape shape = ref_shape(texts[i]);
        struct ref_film film;
        void *in[COX_VIDEO_PLANES_MAX];
        shape.width = 131;
        shape.height = 67;
        shape.transfer = COX_TRANSFER_SDR;
        shape.primaries = COX_PRIMARIES_BT709;
        shape.op = COX_OPERATOR_HABLE;
        shape.dither = (enum cox_dither)(i % 2);
        ref_film_open(&film, runtime, &shape, REF_MAPPING, i % 3, NULL);
        ref_film_fill_stripes(&film, (uint32_t)i);
        film_run(&film, REF_MAPPING, &(struct cox_video_settings){.gain = 2}, VARIANT_OWN, next_device());
        ref_film_inputs(&film, in);

        struct cox_video_shape as_input = {.in = shape.out};
        void *out[COX_VIDEO_PLANES_MAX] = {NULL};
        for (uint32_t p = 0; p < film.out_count; p++) {
            out[p] = film.frame.planes[film.out_first + p].data;
            as_input.in_pitch_bytes[p] = film.frame.planes[film.out_first + p].pitch_bytes;
        }
        uint32_t wrong = 0;
        for (int part = 0; part < 3; part++)
            for (uint32_t y = 0; y <= (shape.height - 1) >> (part ? shape.in.chroma_y_log2 : 0); y++)
                for (uint32_t x = 0; x <= (shape.width - 1) >> (part ? shape.in.chroma_x_log2 : 0); x++)
                    wrong += ref_video_part(&film.shape, (const void *const *)in, part, x, y) !=
                             ref_video_part(&as_input, (const void *const *)out, part, x, y);
        cr_expect_eq(wrong, 0, "%s: %u codes differ", texts[i], wrong);
        ref_film_close(&film);
    }
}

/* The curve is the inverse of the one that encodes the output: every grey returns, black too. */
DEVICE_TEST(video, sdr_light_returns_to_its_code)
{
    static const char *const texts[] = {"1024x4 yuv420p10 topleft to yuv420p10 sdr bt709 full",
                                        "256x4 yuv420p8 topleft to yuv420p8 sdr bt709"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct cox_video_shape shape = ref_shape(texts[i]);
        struct ref_film film;
        uint32_t worst = 0;
        shape.in.range = shape.out.range;
        ref_film_open(&film, runtime, &shape, REF_MAPPING, 0, NULL);
        const uint32_t first = shape.out.range ? 0 : 16, last = shape.out.range ? 1023 : 235;
        for (uint32_t at = 0; at < shape.width * shape.height; at++) {
            const double signal = (double)(at % shape.width) / (shape.width - 1);
            ref_film_put(&film, at % shape.width, at / shape.width, (double[]){signal, signal, signal});
        }
        film_run(&film, REF_MAPPING, &(struct cox_video_settings){0}, VARIANT_OWN, next_device());
        for (uint32_t x = 0; x < shape.width; x++) {
            const uint32_t code = (uint32_t)lrint(first + (double)(last - first) * x / (shape.width - 1));
            const uint32_t got = ref_film_output(&film, 0, x, 1);
            worst = (uint32_t)fmax(worst, fabs((double)got - code));
        }
        cr_expect_leq(worst, shape.out.depth == 10, "%s: %u codes", texts[i], worst);
        ref_film_close(&film);
    }
}

/* Draw a film of any layout, depth, subsampling, site and range; with `rgba` every tenth is RGBA. `shape` already
 * holds the sizes. */
static void draw_scaled(struct cox_video_shape *shape, uint32_t i, bool rgba, uint32_t *seed)
{
    static const uint32_t depths[] = {8, 10, 12, 16};
    const enum cox_video_layout layout = random_short_below(seed, 2) ? COX_VIDEO_SEMI_PLANAR : COX_VIDEO_PLANAR;
    const int sub = layout == COX_VIDEO_PLANAR ? (int)random_short_below(seed, 3) : REF_420;
    const enum cox_chroma_location site = (enum cox_chroma_location)random_short_below(seed, 3);
    shape->op = random_short_below(seed, 2) ? COX_OPERATOR_HABLE : COX_OPERATOR_BT2390;
    shape->gamut = (enum cox_gamut)random_short_below(seed, 3);
    shape->transfer = (enum cox_transfer)random_short_below(seed, 2);
    const uint32_t depth = depths[random_short_below(seed, 4)];
    shape->in = ref_format_of(layout, depth, sub, site, (enum cox_color_range)random_short_below(seed, 2));
    if (rgba && i % 10 == 9) {
        shape->in = ref_format_of(COX_VIDEO_RGBA, 16, REF_444, COX_CHROMA_LEFT, COX_RANGE_FULL);
        shape->transfer = (enum cox_transfer)random_short_below(seed, 3);
    }
    shape->out = i % 8 == 7 ? ref_format_of(COX_VIDEO_RGBA, 8, REF_444, COX_CHROMA_LEFT, COX_RANGE_FULL)
                            : ref_format_of(COX_VIDEO_PLANAR, random_short_below(seed, 2) ? 8 : 10, REF_420, site,
                                            COX_RANGE_LIMITED);
}

/* Compare `count` films of these sizes. */
static void compare_scaled(const char *const *texts, uint32_t text_count, uint32_t count, bool rgba, uint32_t seed)
{
    static struct trials trials;
    for (uint32_t i = 0; i < count; i++) {
        struct cox_video_shape shape = ref_shape(texts[random_short_below(&seed, text_count)]);
        draw_scaled(&shape, i, rgba, &seed);
        trial_new(&trials, &shape, random_short_below(&seed, 3));
    }
    thin_out(&trials);
    expect_all_right(&trials);
}

/* Sizes that are a multiple of the vector width, and others. */
DEVICE_TEST(video, halves_as_the_reference_does)
{
    static const char *const texts[] = {"2x2 half",    "4x2 half",    "66x34 half",
                                        "128x64 half", "130x66 half", "262x38 half"};
    compare_scaled(texts, COUNT_OF(texts), 80, true, 21);
}

DEVICE_TEST(video, takes_the_size_that_the_reference_does)
{
    static const char *const texts[] = {"64x48 to 32x24", "66x34 to 44x22", "33x21 to 50x62",
                                        "130x66 to 17x9", "48x32 to 48x32", "5x3 to 40x24"};
    compare_scaled(texts, COUNT_OF(texts), 60, false, 22);
}

/* Every layout and depth as input and as output, all chroma sites, RGBA codes and halves. */
DEVICE_TEST(video, maps_every_format_to_every_format)
{
    static const uint32_t depths[] = {8, 10, 12, 16, 9, 14};
    static struct trials trials;
    uint32_t seed = 5;
    for (int i = 0; i < 45; i++) {
        const int in = i / 5, out = i % 5, sub = (int)random_short_below(&seed, 3);
        struct cox_video_shape shape = {
            .width = 67, .height = 34 + random_short_below(&seed, 2), .op = COX_OPERATOR_HABLE};
        const enum cox_chroma_location site = (enum cox_chroma_location)random_short_below(&seed, 3);
        const enum cox_color_range range = (enum cox_color_range)random_short_below(&seed, 2);
        shape.transfer = (enum cox_transfer)random_short_below(&seed, 2);
        if (in < 6)
            shape.in = ref_format_of(COX_VIDEO_PLANAR, depths[in], sub, site, range);
        else if (in < 8)
            shape.in = ref_format_of(COX_VIDEO_SEMI_PLANAR, depths[in - 6], REF_420, site, range);
        else
            shape.in = ref_format_of(COX_VIDEO_RGBA, 16, REF_444, COX_CHROMA_LEFT, COX_RANGE_FULL);
        if (in == 8)
            shape.transfer = (enum cox_transfer)(out % 3);
        if (out < 3)
            shape.out = ref_format_of(COX_VIDEO_PLANAR, depths[(in + out) % 6], in < 6 ? sub : REF_420, site,
                                      (enum cox_color_range)random_short_below(&seed, 2));
        else if (out == 3)
            shape.out = ref_format_of(COX_VIDEO_SEMI_PLANAR, depths[in % 3], REF_420,
                                      (enum cox_chroma_location)random_short_below(&seed, 3), COX_RANGE_LIMITED);
        else
            shape.out = ref_format_of(COX_VIDEO_RGBA, in % 2 ? 8 : 16, REF_444, COX_CHROMA_LEFT, COX_RANGE_FULL);
        trial_new(&trials, &shape, 0);
    }
    expect_all_right(&trials);
}

/* The layouts of video cards, decoders, capture cards and encoders: two planes, packed pixels, and RGB. */
DEVICE_TEST(video, maps_the_layouts_of_devices_and_programs_as_the_reference_does)
{
    static const char *const texts[] = {
        "nv16 to nv16",
        "p210 centre to yuv420p10 full hlg",
        "p216 topleft full to p210 centre",
        "yuv444p12 to p216 full",
        "v210 to yuv420p8",
        "v210 centre to p210 hlg",
        "v210 topleft full to bgra8",
        "gbrp8 full to bgra16 hlg",
        "gbrp10 to gbrp10",
        "gbrp12 centre full to yuv444p10",
        "gbrp16 to nv12 hlg",
        "yuv420p10 to gbrp8 full",
        "p010 to bgra8 hlg",
        "rgba8 to rgba8 hlg",
        "rgba16 centre to yuv422p10",
        "bgra8 to nv16 centre",
        "bgra16 to gbrp12 full hlg",
        "bgra16 to bgra8 light",
    };
    static struct trials trials;
    for (int i = 0; i < (int)COUNT_OF(texts) * 3; i++) {
        struct cox_video_shape shape = ref_shape(texts[i / 3]);
        shape.width = 194 + (uint32_t)i % 7 * 2;
        shape.height = 66;
        shape.dither = (enum cox_dither)(i / 3 % 2);
        shape.op = i % 2 ? COX_OPERATOR_HABLE : COX_OPERATOR_BT2390;
        set_scale(&shape, i % 3);
        if (shape.transfer == COX_TRANSFER_LINEAR && shape.scale == COX_SCALE_FILTER)
            continue;
        shape.width -= !shape.scale;
        trial_new(&trials, &shape, (size_t)i % 4)->first_picture = (uint32_t)i;
    }
    thin_out(&trials);
    expect_all_right(&trials);
}

/* --- Gamut -------------------------------------------------------------------------------------------------------- */

/* Hue in degrees by Oklab (B. Ottosson, 2020) and by IC_TC_P (Recommendation ITU-R BT.2100), for light in BT.709's
 * primaries with 1 = 203 cd/m2. */
static double hue_of(const double rgb[3], bool oklab)
{
    static const double cones[2][3][3] = {{{1688 / 4096.0, 2146 / 4096.0, 262 / 4096.0},
                                           {683 / 4096.0, 2951 / 4096.0, 462 / 4096.0},
                                           {99 / 4096.0, 309 / 4096.0, 3688 / 4096.0}},
                                          {{0.4122214708, 0.5363325363, 0.0514459929},
                                           {0.2119034982, 0.6806995451, 0.1073969566},
                                           {0.0883024619, 0.2817188376, 0.6299787005}}};
    static const double axes[2][2][3] = {
        {{6610 / 4096.0, -13613 / 4096.0, 7003 / 4096.0}, {17933 / 4096.0, -17390 / 4096.0, -543 / 4096.0}},
        {{1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}};
    double to_2020[3][3], light[3], lms[3], at[2] = {0, 0};
    ref_primaries(COX_PRIMARIES_BT709, COX_PRIMARIES_BT2020, to_2020);
    for (int i = 0; i < 3; i++)
        light[i] = oklab ? rgb[i] : to_2020[i][0] * rgb[0] + to_2020[i][1] * rgb[1] + to_2020[i][2] * rgb[2];
    for (int i = 0; i < 3; i++) {
        lms[i] = cones[oklab][i][0] * light[0] + cones[oklab][i][1] * light[1] + cones[oklab][i][2] * light[2];
        lms[i] = oklab ? cbrt(lms[i]) : ref_pq_signal(203 * fmax(lms[i], 0));
    }
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; i < 3; i++)
            at[axis] += axes[oklab][axis][i] * lms[i];
    return atan2(at[1], at[0]) * 180 / M_PI;
}

/* Hues of BT.2020 from left to right, saturation and value of the signal from top to bottom. */
static void sweep_colour(uint32_t x, uint32_t y, double rgb[3])
{
    static const double saturations[] = {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1};
    const uint32_t values = y / 8;
    const double value = 0.2 * (1 + values);
    for (int i = 0; i < 3; i++) {
        const double k = fmod(5 - 2 * i + x / 60.0, 6);
        const double level = value * (1 - saturations[y % 8] * fmax(0, fmin(fmin(k, 4 - k), 1)));
        rgb[i] = ref_pq_signal(203 * pow(level, 2.4));
    }
}

/* The mean difference between the output's hue and the input's, over colours that are outside BT.709 and not black. */
static void hue_error(const struct ref_film *film, double degrees[2])
{
    struct ref_video ref;
    double sum[2] = {0, 0};
    uint32_t count = 0;
    ref_video_init(&ref, &film->shape, &(struct cox_video_settings){0});
    for (uint32_t y = 0; y < film->shape.height; y++) {
        for (uint32_t x = 0; x < film->shape.width; x++) {
            double signal[3], light[3], in[3], out[3], largest = 1;
            sweep_colour(x, y, signal);
            ref_video_light(&ref, signal, light);
            for (int i = 0; i < 3; i++) {
                in[i] = ref.primaries[i][0] * light[0] + ref.primaries[i][1] * light[1] +
                        ref.primaries[i][2] * light[2];
                out[i] = pow(ref_film_output(film, 0, 4 * (size_t)x + (size_t)i, y) / 65535.0, 2.4);
                largest = fmax(largest, in[i]);
            }
            if (fmin(in[0], fmin(in[1], in[2])) > -1e-6)
                continue;
            for (int i = 0; i < 3; i++)
                in[i] /= largest; /* as the operator does */
            count++;
            for (int oklab = 0; oklab < 2; oklab++) {
                const double off = fabs(hue_of(in, oklab) - hue_of(out, oklab));
                sum[oklab] += fmin(off, 360 - off);
            }
        }
    }
    cr_assert_gt(count, 10000);
    degrees[0] = sum[0] / count;
    degrees[1] = sum[1] / count;
}

DEVICE_TEST(video, compresses_the_gamut_with_a_third_of_the_hue_error_of_clipping_or_with_none)
{
    static const char *const texts[] = {"360x40 yuv444p16 full to rgba16 clip",
                                        "360x40 yuv444p16 full to rgba16 clip compress",
                                        "360x40 yuv444p16 full to rgba16 clip hue"};
    double degrees[3][2];
    for (int gamut = 0; gamut < 3; gamut++) {
        const struct cox_video_shape shape = ref_shape(texts[gamut]);
        struct ref_film film;
        ref_film_open(&film, runtime, &shape, REF_MAPPING, 0, NULL);
        for (uint32_t i = 0; i < shape.width * shape.height; i++) {
            double rgb[3];
            sweep_colour(i % shape.width, i / shape.width, rgb);
            ref_film_put(&film, i % shape.width, i / shape.width, rgb);
        }
        film_run(&film, REF_MAPPING, &(struct cox_video_settings){0}, VARIANT_OWN, next_device());
        hue_error(&film, degrees[gamut]);
        ref_film_close(&film);
    }
    for (int gamut = 0; gamut < 3; gamut++)
        fprintf(stderr, "hue error of BT.2020, %s, degrees: %.2f (Oklab), %.2f (ICtCp)\n", texts[gamut] + 32,
                degrees[gamut][1], degrees[gamut][0]);
    cr_expect_leq(degrees[1][1], 0.33 * degrees[0][1]);
    cr_expect_leq(degrees[1][0], 0.65 * degrees[0][0]);
    cr_expect_leq(degrees[2][1], 0.05);
}

/* --- Dither ------------------------------------------------------------------------------------------------------- */

/* A slow ramp. In every plane's own coordinates the pattern must be the one in docs/internals/kernels.md, and it
 * must not change the mean. Other tests would take a code that is off by one for rounding. */
DEVICE_TEST(video, dithers_with_the_ordered_pattern_of_each_plane)
{
    static const char *const texts[] = {"203x77 yuv420p16 to yuv420p8 clip dither",
                                        "203x77 yuv420p16 to yuv420p10 clip dither",
                                        "203x77 yuv420p16 to rgba8 clip dither", "203x77 yuv420p16 to yuv420p8 clip"};
    const struct cox_video_settings settings = {0};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct cox_video_shape shape = ref_shape(texts[i]);
        struct ref_film film;
        struct ref_video ref;
        void *in[COX_VIDEO_PLANES_MAX];
        double *real[COX_VIDEO_PLANES_MAX];
        ref_film_open(&film, runtime, &shape, REF_MAPPING, 0, NULL);
        for (uint32_t y = 0; y < shape.height; y++)
            for (uint32_t x = 0; x < shape.width; x++)
                ref_film_put(&film, x, y, (double[]){0.4 + x * 3e-4, 0.42 + y * 3e-4, 0.47 - x * 2e-4});
        film_run(&film, REF_MAPPING, &settings, VARIANT_OWN, next_device());
        ref_video_init(&ref, &film.shape, &settings);
        ref_film_inputs(&film, in);
        cr_assert(ref_video_map(&ref, (const void *const *)in, real), "no memory");
        for (uint32_t p = 0; p < film.out_count; p++) {
            const struct ref_plane plane = ref_video_plane(&shape.out, shape.width, shape.height, p);
            const size_t row = (size_t)plane.width * plane.channels;
            double sum = 0;
            uint32_t same = 0, up = 0;
            for (size_t at = 0; at < row * plane.height; at++) {
                const uint32_t x = (uint32_t)(at % row / plane.channels), y = (uint32_t)(at / row);
                const uint32_t got = ref_film_output(&film, p, at % row, y);
                same += got == ref_video_code(&ref, real[p][at], x, y);
                up += got != (uint32_t)floor(real[p][at] + 0.5);
                sum += got - real[p][at];
            }
            const double samples = (double)row * plane.height;
            cr_expect_gt(same, 0.97 * samples, "%s, plane %u: %u of %g codes", texts[i], p, same, samples);
            cr_expect_lt(fabs(sum / samples), 0.02, "%s, plane %u: %g codes of bias", texts[i], p, sum / samples);
            if (shape.dither)
                cr_expect_gt(up, 0.1 * samples, "%s, plane %u: %u of %g codes are dithered", texts[i], p, up, samples);
            free(real[p]);
        }
        ref_film_close(&film);
    }
}
