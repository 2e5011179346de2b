/* Each error of the tone mappers' pure functions that the headers list. Each case makes one field of a valid shape
 * or of valid settings invalid, at the bounds in the headers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include <coxswain/video.h>
#include <criterion/criterion.h>
#include <math.h>

TestSuite(tone_mapping, .timeout = 60);

/* ---- video ---- */

static const struct cox_video_shape film = {
    .width = 32,
    .height = 18,
    .in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
    .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
    .in_pitch_bytes = {64, 32, 32},
    .out_pitch_bytes = {32, 16, 16},
};
static struct cox_video_shape shape;
static struct cox__pipeline_storage storage;
static struct cox_constants block;
static const struct cox_video_settings settings;

static void film_gives(cox_status status, const char *spoiled)
{
    struct cox__session_spec session = {0};
    cr_assert_eq(cox__video_mapping(&shape, false, &storage, &session), status, "%s", spoiled);
    cr_assert_eq(cox__video_mapping(&shape, true, &storage, &session), status, "%s", spoiled);
    cr_assert_eq(cox__video_analysis(&shape, &storage, &session), status, "%s", spoiled);
    cr_assert_eq(cox_video_prepare(&shape, &settings, &block), status, "%s", spoiled);
}

#define FILM(status, ...) (shape = film, __VA_ARGS__, film_gives(status, #__VA_ARGS__))

Test(tone_mapping, video_shapes)
{
    FILM(COX_OK, shape.width = 32);
    FILM(COX_E_INVALID, shape.width = 0);
    FILM(COX_E_INVALID, shape.height = 0);
    FILM(COX_OK, shape.height = 65536);
    FILM(COX_E_INVALID, shape.height = 65537);
    FILM(COX_E_INVALID, shape.width = 65537, shape.in_pitch_bytes[0] = shape.in_pitch_bytes[1] = 1 << 20,
         shape.in_pitch_bytes[2] = shape.out_pitch_bytes[0] = shape.out_pitch_bytes[1] = 1 << 20,
         shape.out_pitch_bytes[2] = 1 << 20);
    FILM(COX_E_INVALID, shape.width = shape.height = 65536, shape.in_pitch_bytes[0] = shape.in_pitch_bytes[1] = 1 << 20,
         shape.in_pitch_bytes[2] = shape.out_pitch_bytes[0] = shape.out_pitch_bytes[1] = 1 << 20,
         shape.out_pitch_bytes[2] = 1 << 20);
    FILM(COX_OK, shape.width = 65535, shape.height = 65536, shape.in_pitch_bytes[0] = shape.in_pitch_bytes[1] = 1 << 20,
         shape.in_pitch_bytes[2] = shape.out_pitch_bytes[0] = shape.out_pitch_bytes[1] = 1 << 20,
         shape.out_pitch_bytes[2] = 1 << 20);
    FILM(COX_E_INVALID, shape.in.depth = 7);
    FILM(COX_E_INVALID, shape.in.depth = 17);
    FILM(COX_OK, shape.in.depth = 16);
    FILM(COX_E_INVALID, shape.in.depth = 16, shape.in.msb_aligned = true);
    FILM(COX_OK, shape.in.depth = 15, shape.in.msb_aligned = true);
    FILM(COX_OK, shape.in.depth = 9, shape.in.msb_aligned = true);
    FILM(COX_E_INVALID, shape.out.msb_aligned = true);
    FILM(COX_E_INVALID, shape.in.layout = (enum cox_video_layout)6);
    FILM(COX_E_INVALID, shape.in.chroma_location = (enum cox_chroma_location)3);
    FILM(COX_E_INVALID, shape.out.range = (enum cox_color_range)2);
    FILM(COX_E_INVALID, shape.in.chroma_x_log2 = 0);
    FILM(COX_E_INVALID, shape.in.chroma_x_log2 = 2);
    FILM(COX_E_INVALID, shape.in.chroma_y_log2 = 2);
    FILM(COX_E_INVALID, shape.out.chroma_y_log2 = 0);
    FILM(COX_OK, shape.in.layout = COX_VIDEO_SEMI_PLANAR, shape.in.chroma_y_log2 = 0, shape.in_pitch_bytes[1] = 64);
    FILM(COX_E_INVALID, shape.in.layout = COX_VIDEO_SEMI_PLANAR, shape.in.chroma_x_log2 = shape.in.chroma_y_log2 = 0,
         shape.out.chroma_x_log2 = shape.out.chroma_y_log2 = 0, shape.in_pitch_bytes[1] = 128,
         shape.out_pitch_bytes[1] = shape.out_pitch_bytes[2] = 64);
    FILM(COX_OK, shape.in.layout = COX_VIDEO_SEMI_PLANAR, shape.in_pitch_bytes[1] = 64);
    FILM(COX_E_INVALID, shape.in_pitch_bytes[0] = 60);
    FILM(COX_E_INVALID, shape.in_pitch_bytes[2] = 34);
    FILM(COX_E_INVALID, shape.in_pitch_bytes[1] = 1ull << 31);
    FILM(COX_OK, shape.in_pitch_bytes[1] = (1ull << 31) - 4);
    FILM(COX_E_INVALID, shape.out_pitch_bytes[1] = 12);
    FILM(COX_E_INVALID, shape.transfer = (enum cox_transfer)4);
    FILM(COX_OK, shape.transfer = COX_TRANSFER_SDR);
    FILM(COX_OK, shape.transfer = COX_TRANSFER_SDR, shape.op = COX_OPERATOR_LOCAL,
         shape.primaries = COX_PRIMARIES_BT709);
    FILM(COX_E_INVALID, shape.transfer = COX_TRANSFER_LINEAR);
    FILM(COX_E_INVALID, shape.primaries = (enum cox_primaries)6);
    FILM(COX_E_INVALID, shape.dither = (enum cox_dither)2);
    FILM(COX_OK, shape.gamut = COX_GAMUT_COMPRESS);
    FILM(COX_OK, shape.gamut = COX_GAMUT_HUE);
    FILM(COX_E_INVALID, shape.gamut = (enum cox_gamut)3);
    FILM(COX_OK, shape.encoding = COX_ENCODING_SRGB);
    FILM(COX_OK, shape.encoding = COX_ENCODING_PQ);
    FILM(COX_E_INVALID, shape.encoding = (enum cox_encoding)3);
    FILM(COX_OK, shape.out_primaries = COX_OUT_BT2020);
    FILM(COX_E_INVALID, shape.out_primaries = (enum cox_out_primaries)2);
    FILM(COX_OK, shape.scale = COX_SCALE_HALF);
    FILM(COX_E_INVALID, shape.scale = (enum cox_video_scale)3);
    FILM(COX_E_INVALID, shape.scale = COX_SCALE_FILTER);
    FILM(COX_E_INVALID, shape.out_width = shape.width, shape.out_height = shape.height);
    FILM(COX_E_INVALID, shape.scale = COX_SCALE_HALF, shape.width--);
    FILM(COX_E_INVALID, shape.scale = COX_SCALE_HALF, shape.height--);
    FILM(COX_E_INVALID, shape.scale = COX_SCALE_HALF, shape.op = COX_OPERATOR_LOCAL);
    FILM(COX_E_INVALID, shape.scale = COX_SCALE_HALF, shape.in_pitch_bytes[0] = (size_t)1 << 30);
    FILM(COX_E_INVALID, shape.op = COX_OPERATOR_EXPOSURE);
    FILM(COX_E_INVALID, shape.op = COX_OPERATOR_COUNT);
}

Test(tone_mapping, video_shapes_of_rgba)
{
    static const struct cox_video_format half = {.layout = COX_VIDEO_RGBA, .depth = 16};
    FILM(COX_OK, shape.in = half, shape.transfer = COX_TRANSFER_LINEAR, shape.in_pitch_bytes[0] = 256);
    FILM(COX_OK, shape.in = half, shape.in_pitch_bytes[0] = 256);
    FILM(COX_OK, shape.in = half, shape.in.depth = 8, shape.in_pitch_bytes[0] = 256);
    FILM(COX_E_INVALID, shape.in = half, shape.in.depth = 8, shape.in_pitch_bytes[0] = 256,
         shape.transfer = COX_TRANSFER_LINEAR);
    FILM(COX_E_INVALID, shape.in = half, shape.in_pitch_bytes[0] = 256, shape.transfer = COX_TRANSFER_LINEAR,
         shape.scale = COX_SCALE_FILTER, shape.out_width = shape.width, shape.out_height = shape.height);
    FILM(COX_OK, shape.in = half, shape.in_pitch_bytes[0] = 256, shape.scale = COX_SCALE_FILTER,
         shape.out_width = shape.width, shape.out_height = shape.height);
    FILM(COX_OK, shape.in = half, shape.in.layout = COX_VIDEO_BGRA, shape.in_pitch_bytes[0] = 256,
         shape.transfer = COX_TRANSFER_LINEAR);
    FILM(COX_E_INVALID, shape.in = half, shape.in.depth = 12, shape.in_pitch_bytes[0] = 256);
    FILM(COX_E_INVALID, shape.in = half, shape.in.chroma_x_log2 = 1, shape.in_pitch_bytes[0] = 256);
    FILM(COX_OK, shape.out = half, shape.out_pitch_bytes[0] = 256);
    FILM(COX_OK, shape.out = half, shape.out.depth = 8, shape.out_pitch_bytes[0] = 128);
    FILM(COX_E_INVALID, shape.out = half, shape.out.depth = 10, shape.out_pitch_bytes[0] = 256);
}

Test(tone_mapping, video_shapes_of_planes_of_colours)
{
    static const struct cox_video_format gbr = {.layout = COX_VIDEO_GBR, .depth = 10, .msb_aligned = true};
    FILM(COX_OK, shape.in = gbr, shape.in_pitch_bytes[1] = shape.in_pitch_bytes[2] = 64);
    FILM(COX_E_INVALID, shape.in = gbr, shape.in_pitch_bytes[1] = 64, shape.in_pitch_bytes[2] = 60);
    FILM(COX_E_INVALID, shape.in = gbr, shape.in_pitch_bytes[1] = shape.in_pitch_bytes[2] = 64,
         shape.transfer = COX_TRANSFER_LINEAR);
    FILM(COX_E_INVALID, shape.in = gbr, shape.in.chroma_x_log2 = 1);
    FILM(COX_OK, shape.out = gbr, shape.out_pitch_bytes[0] = shape.out_pitch_bytes[1] = shape.out_pitch_bytes[2] = 64);
}

Test(tone_mapping, video_shapes_of_v210)
{
    static const struct cox_video_format v210 = {.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1};
    FILM(COX_OK, shape.in = v210, shape.in_pitch_bytes[0] = 96);
    FILM(COX_E_INVALID, shape.in = v210, shape.in_pitch_bytes[0] = 100);
    FILM(COX_E_INVALID, shape.in = v210, shape.in_pitch_bytes[0] = 80);
    FILM(COX_E_INVALID, shape.in = v210, shape.in.depth = 12, shape.in_pitch_bytes[0] = 96);
    FILM(COX_E_INVALID, shape.in = v210, shape.in.msb_aligned = true, shape.in_pitch_bytes[0] = 96);
    FILM(COX_E_INVALID, shape.in = v210, shape.in.chroma_y_log2 = 1, shape.in_pitch_bytes[0] = 96);
    FILM(COX_E_INVALID, shape.in = v210, shape.in_pitch_bytes[0] = 96, shape.transfer = COX_TRANSFER_LINEAR);
    FILM(COX_E_INVALID, shape.out = v210, shape.out_pitch_bytes[0] = 96);
}

Test(tone_mapping, video_null_arguments)
{
    struct cox__session_spec session = {0};
    cr_assert_eq(cox__video_mapping(NULL, false, &storage, &session), COX_E_INVALID);
    cr_assert_eq(cox__video_mapping(&film, false, NULL, &session), COX_E_INVALID);
    cr_assert_eq(cox__video_mapping(&film, false, &storage, NULL), COX_E_INVALID);
    cr_assert_eq(cox__video_analysis(NULL, &storage, &session), COX_E_INVALID);
    cr_assert_eq(cox__video_analysis(&film, NULL, &session), COX_E_INVALID);
    cr_assert_eq(cox__video_analysis(&film, &storage, NULL), COX_E_INVALID);
    cr_assert_eq(cox_video_prepare(NULL, &settings, &block), COX_E_INVALID);
    cr_assert_eq(cox_video_prepare(&film, NULL, &block), COX_E_INVALID);
    cr_assert_eq(cox_video_prepare(&film, &settings, NULL), COX_E_INVALID);
}

static void light_gives(cox_status status, const struct cox_video_settings *given, const char *what)
{
    cr_assert_eq(cox_video_prepare(&film, given, &block), status, "%s", what);
}

#define LIGHT(status, ...) light_gives(status, &(const struct cox_video_settings){__VA_ARGS__}, #__VA_ARGS__)

Test(tone_mapping, video_settings)
{
    LIGHT(COX_OK, .sdr_white_nits = 0);
    LIGHT(COX_OK, .sdr_white_nits = 1);
    LIGHT(COX_OK, .sdr_white_nits = 10000);
    LIGHT(COX_E_INVALID, .sdr_white_nits = 0.99f);
    LIGHT(COX_E_INVALID, .sdr_white_nits = 10001);
    LIGHT(COX_E_INVALID, .sdr_white_nits = NAN);
    LIGHT(COX_OK, .peak_nits = 1);
    LIGHT(COX_OK, .peak_nits = 1e6f);
    LIGHT(COX_E_INVALID, .peak_nits = 0.99f);
    LIGHT(COX_E_INVALID, .peak_nits = 1.1e6f);
    LIGHT(COX_E_INVALID, .peak_nits = NAN);
    LIGHT(COX_OK, .hlg_peak_nits = 100);
    LIGHT(COX_OK, .hlg_peak_nits = 10000);
    LIGHT(COX_E_INVALID, .hlg_peak_nits = 99);
    LIGHT(COX_E_INVALID, .hlg_peak_nits = 10001);
    LIGHT(COX_E_INVALID, .hlg_peak_nits = NAN);
    LIGHT(COX_OK, .gain = 0x1p-32f);
    LIGHT(COX_OK, .gain = 0x1p32f);
    LIGHT(COX_E_INVALID, .gain = 0x1p-33f);
    LIGHT(COX_E_INVALID, .gain = 0x1p33f);
    LIGHT(COX_E_INVALID, .gain = NAN);
    LIGHT(COX_E_INVALID, .desaturate = NAN);
    LIGHT(COX_OK, .desaturate = -INFINITY);
    LIGHT(COX_OK, .gamut_knee = 0.25f);
    LIGHT(COX_OK, .gamut_knee = 0.95f);
    LIGHT(COX_E_INVALID, .gamut_knee = 0.24f);
    LIGHT(COX_E_INVALID, .gamut_knee = 1);
    LIGHT(COX_E_INVALID, .gamut_knee = NAN);
}

/* ---- pictures ---- */

static const struct cox_tonemap_shape photo = {.width = 7, .height = 3, .in_pitch_bytes = 56, .out_pitch_bytes = 28};
static struct cox_tonemap_shape picture;
static struct cox__pipeline_storage room;
static struct cox_constants constants;

static void photo_gives(cox_status status, cox_status analysed, const char *spoiled)
{
    struct cox__session_spec session = {0};
    const struct cox_tonemap_settings plain = {0};
    cr_assert_eq(cox__tonemap_mapping(&picture, &room, &session), status, "%s", spoiled);
    cr_assert_eq(cox__tonemap_analysis_spec(&picture, &room, &session), analysed, "%s", spoiled);
    cr_assert_eq(cox_tonemap_prepare(&picture, &plain, &constants), status, "%s", spoiled);
}

#define PHOTO(status, ...) (picture = photo, __VA_ARGS__, photo_gives(status, status, #__VA_ARGS__))

Test(tone_mapping, picture_shapes)
{
    PHOTO(COX_OK, picture.width = 7);
    PHOTO(COX_E_INVALID, picture.width = 0);
    PHOTO(COX_E_INVALID, picture.height = 0);
    PHOTO(COX_OK, picture.height = 65536);
    PHOTO(COX_E_INVALID, picture.height = 65537);
    PHOTO(COX_OK, picture.width = 65535, picture.in_pitch_bytes = picture.out_pitch_bytes = 1 << 20);
    PHOTO(COX_E_INVALID, picture.width = 65537, picture.in_pitch_bytes = picture.out_pitch_bytes = 1 << 20);
    PHOTO(COX_E_INVALID, picture.in = (enum cox_pixel_in)2);
    PHOTO(COX_E_INVALID, picture.out = (enum cox_pixel_out)2);
    PHOTO(COX_E_INVALID, picture.in_pitch_bytes = 48);
    PHOTO(COX_E_INVALID, picture.in_pitch_bytes = 60);
    PHOTO(COX_E_INVALID, picture.in_pitch_bytes = 1ull << 31);
    PHOTO(COX_OK, picture.in_pitch_bytes = (1ull << 31) - 8);
    PHOTO(COX_E_INVALID, picture.out_pitch_bytes = 24);
    PHOTO(COX_E_INVALID, picture.out_pitch_bytes = 30);
    PHOTO(COX_E_INVALID, picture.out_pitch_bytes = 1ull << 31);
    picture = (struct cox_tonemap_shape){
        .width = 65536, .height = 65536, .in_pitch_bytes = 1 << 20, .out_pitch_bytes = 1 << 20};
    photo_gives(COX_OK, COX_E_INVALID, "2^32 pixels cannot be counted");
}

Test(tone_mapping, picture_null_arguments)
{
    struct cox__session_spec session = {0};
    const struct cox_tonemap_settings plain = {0};
    cr_assert_eq(cox__tonemap_mapping(NULL, &room, &session), COX_E_INVALID);
    cr_assert_eq(cox__tonemap_mapping(&photo, NULL, &session), COX_E_INVALID);
    cr_assert_eq(cox__tonemap_mapping(&photo, &room, NULL), COX_E_INVALID);
    cr_assert_eq(cox__tonemap_analysis_spec(NULL, &room, &session), COX_E_INVALID);
    cr_assert_eq(cox__tonemap_analysis_spec(&photo, NULL, &session), COX_E_INVALID);
    cr_assert_eq(cox__tonemap_analysis_spec(&photo, &room, NULL), COX_E_INVALID);
    cr_assert_eq(cox_tonemap_prepare(NULL, &plain, &constants), COX_E_INVALID);
    cr_assert_eq(cox_tonemap_prepare(&photo, NULL, &constants), COX_E_INVALID);
    cr_assert_eq(cox_tonemap_prepare(&photo, &plain, NULL), COX_E_INVALID);
}

static void tone_gives(cox_status status, const struct cox_tonemap_settings *given, const char *what)
{
    cr_assert_eq(cox_tonemap_prepare(&photo, given, &constants), status, "%s", what);
}

#define TONE(status, ...) tone_gives(status, &(const struct cox_tonemap_settings){__VA_ARGS__}, #__VA_ARGS__)

Test(tone_mapping, picture_settings)
{
    TONE(COX_OK, .op = COX_OPERATOR_EXPOSURE);
    TONE(COX_E_INVALID, .op = COX_OPERATOR_COUNT);
    TONE(COX_OK, .exposure_stops = 64);
    TONE(COX_OK, .exposure_stops = -64);
    TONE(COX_E_INVALID, .exposure_stops = 64.01f);
    TONE(COX_E_INVALID, .exposure_stops = -64.01f);
    TONE(COX_E_INVALID, .exposure_stops = NAN);
    TONE(COX_E_INVALID, .peak = -0.01f);
    TONE(COX_E_INVALID, .peak = NAN);
    TONE(COX_OK, .peak = INFINITY);
    TONE(COX_E_INVALID, .desaturate = NAN);
    TONE(COX_OK, .desaturate = -1);
}
