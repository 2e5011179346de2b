/* Picture input: pixels are those in the file, and an invalid file only causes an error.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/primaries.h"
#include "unit/programs/decoding.h"
#include "support/folder.h"

#include <math.h>

/* --- Half and primaries ------------------------------------------------------------------------------------------- */

Test(half, every_half_survives_the_way_to_float_and_back)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = half_to_float((uint16_t)bits);
        if (isnan(value))
            cr_assert(isnan(half_to_float(half_from_float(value))));
        else
            cr_assert_eq(half_from_float(value), bits, "%04x", bits);
    }
}

Test(half, has_the_values_of_the_standard)
{
    cr_expect_eq(half_to_float(0x3c00), 1.0f);
    cr_expect_eq(half_to_float(0x7bff), 65504.0f);
    cr_expect_eq(half_to_float(0x0001), 0x1p-24f);
    cr_expect_eq(half_to_float(0x0400), 0x1p-14f);
    cr_expect_eq(half_to_float(0xc000), -2.0f);
    cr_expect_eq(half_to_float(0x7c00), INFINITY);
}

/* The expected result is the nearest half, and in a tie the one with an even last bit. */
Test(half, rounds_to_the_nearest_and_ties_to_even)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        double low = half_to_float((uint16_t)bits), high = half_to_float((uint16_t)(bits + 1));
        float middle = (float)((low + high) / 2); /* exact: it needs only one bit more than a half has */
        cr_assert_eq(half_from_float(middle), bits & 1 ? bits + 1 : bits, "between %04x and the next", bits);
        cr_assert_eq(half_from_float(nextafterf(middle, 0)), bits);
        cr_assert_eq(half_from_float(nextafterf(middle, INFINITY)), bits + 1);
    }
}

Test(half, finite_values_stay_finite)
{
    cr_expect_eq(half_from_float(1e30f), 0x7bff);
    cr_expect_eq(half_from_float(-70000.0f), 0xfbff);
    cr_expect_eq(half_from_float(INFINITY), 0x7c00);
}

static const struct primaries bt709 = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};

Test(primaries, those_of_bt709_need_no_conversion)
{
    float matrix[9];
    cr_expect_eq(primaries_to_bt709(&bt709, matrix), PRIMARIES_SAME);
}

/* The matrix of ITU-R BT.2087. */
Test(primaries, those_of_bt2020_give_the_published_matrix)
{
    const struct primaries p = {{0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}, {0.3127, 0.3290}};
    const double published[9] = {1.66049100,  -0.58764114, -0.07284986, -0.12455047, 1.13289990,
                                 -0.00834942, -0.01815076, -0.10057890, 1.11872966};
    float matrix[9];
    cr_assert_eq(primaries_to_bt709(&p, matrix), PRIMARIES_CONVERT);
    for (int i = 0; i < 9; i++)
        cr_expect_float_eq(matrix[i], published[i], 2e-6, "element %d is %.8f", i, (double)matrix[i]);
}

Test(primaries, white_stays_white_from_another_white_point)
{
    const struct primaries aces = {{0.7347, 0.2653}, {0.0, 1.0}, {0.0001, -0.0770}, {0.32168, 0.33767}};
    float m[9];
    cr_assert_eq(primaries_to_bt709(&aces, m), PRIMARIES_CONVERT);
    for (int row = 0; row < 3; row++)
        cr_expect_float_eq(m[row * 3] + m[row * 3 + 1] + m[row * 3 + 2], 1.0, 1e-4);
}

Test(primaries, impossible_ones_are_told)
{
    const struct primaries line = {{0.3, 0.3}, {0.4, 0.4}, {0.5, 0.5}, {0.3127, 0.3290}};
    struct primaries nothing = bt709, black = bt709;
    float matrix[9];
    nothing.red[0] = NAN;
    black.white[1] = 0;
    cr_expect_eq(primaries_to_bt709(&line, matrix), PRIMARIES_BROKEN);
    cr_expect_eq(primaries_to_bt709(&nothing, matrix), PRIMARIES_BROKEN);
    cr_expect_eq(primaries_to_bt709(&black, matrix), PRIMARIES_BROKEN);
}

/* --- PFM ---------------------------------------------------------------------------------------------------------- */

static void make_pfm(const char *header, bool little, const float *values, size_t count)
{
    make(header, strlen(header));
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        put_u32(&made, little ? bits : __builtin_bswap32(bits));
    }
}

static const float six[6] = {1, 2, 3, -4, 0.5f, 1e9f};

Test(pfm, rows_come_bottom_up_in_either_byte_order)
{
    for (int little = 0; little < 2; little++) {
        make_pfm(little ? "PF\n1 2\n-1.0\n" : "PF\n1 2\n1.0\n", little, six, 6);
        decode_made();
        cr_assert_eq(decoded.format.pixel, COX_PIXEL_RGBA_FLOAT);
        expect_pixel(0, 0, -4, 0.5f, 1e9f, 1);
        expect_pixel(0, 1, 1, 2, 3, 1);
    }
}

Test(pfm, grey_goes_into_all_three_colours)
{
    make_pfm("Pf 3 2 -1\n", true, six, 6);
    decode_made();
    expect_pixel(2, 1, 3, 3, 3, 1);
    expect_pixel(0, 0, -4, -4, -4, 1);
}

Test(pfm, values_that_are_no_numbers_pass_as_they_are)
{
    const float odd[3] = {NAN, INFINITY, -INFINITY};
    make_pfm("PF\r\n1 1\r\n-1\r\n", true, odd, 3);
    decode_made();
    cr_expect(isnan(at(0, 0, 0)));
    cr_expect_eq(at(0, 0, 1), INFINITY);
    cr_expect_eq(at(0, 0, 2), -INFINITY);
}

Test(pfm, a_bad_header_or_a_short_file_is_refused)
{
    static const struct {
        const char *header, *words;
        size_t values;
    } cases[] = {{"PF\n1 3\n-1\n", "truncated", 6},
                 {"PF\n0 2\n-1\n", "no pixels", 6},
                 {"PF\n1 0\n-1\n", "no pixels", 6},
                 {"PF\n65537 1\n-1\n", "too large", 6},
                 {"PF\n65536 65536\n-1\n", "too large", 6},
                 {"PF\n4294967297 1\n-1\n", "too large", 6},
                 {"PF\n99999999999 1\n-1\n", "damaged", 0},
                 {"PF\n-1 2\n-1\n", "damaged", 6},
                 {"PF\n1 2\n0\n", "damaged", 6},
                 {"PF\n1 2\nnan\n", "damaged", 6},
                 {"PF\n1 2\nx\n", "damaged", 6},
                 {"PF\n1 2", "damaged", 0},
                 {"PF\n", "damaged", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_pfm(cases[i].header, true, six, cases[i].values);
        refuse(cases[i].words, cases[i].header);
    }
}

/* --- Radiance ----------------------------------------------------------------------------------------------------- */

static void make_hdr(const char *resolution, const void *data, size_t count)
{
    static const char head[] = "#?RADIANCE\n# made by a test\nFORMAT=32-bit_rle_rgbe\nEXPOSURE=2\n\n";
    make(head, sizeof head - 1);
    put_text(&made, resolution);
    put(&made, data, count);
}

Test(hdr, flat_pixels_are_mantissa_times_a_power_of_two)
{
    const uint8_t data[8] = {128, 64, 32, 129, 0, 0, 0, 0};
    make_hdr("-Y 1 +X 2\n", data, sizeof data);
    decode_made();
    expect_pixel(0, 0, 1.0f, 0.5f, 0.25f, 1);
    expect_pixel(1, 0, 0, 0, 0, 1);
}

Test(hdr, old_runs_repeat_the_pixel_before)
{
    const uint8_t data[] = {128, 0, 0, 129, 1, 1, 1, 3, 0, 128, 0, 129, 1, 1, 1, 2, 1, 1, 1, 1};
    make_hdr("-Y 1 +X 263\n", data, sizeof data); /* 1 + 3 + 1 + 2 + (1 << 8) */
    decode_made();
    expect_pixel(3, 0, 1, 0, 0, 1);
    expect_pixel(4, 0, 0, 1, 0, 1);
    expect_pixel(262, 0, 0, 1, 0, 1);
}

/* One row of eight pixels in the new run-length encoding: red is the literal 0..7, green is one run, blue has both,
 * exponents are one run. */
static const uint8_t new_row[] = {2, 2, 0, 8, 8, 0, 1, 2, 3, 4, 5, 6, 7, 136, 9, 133, 7, 3, 1, 2, 3, 136, 136};

Test(hdr, new_runs_go_component_by_component)
{
    make_hdr("-Y 1 +X 8\n", new_row, sizeof new_row);
    decode_made();
    for (uint32_t x = 0; x < 8; x++)
        expect_pixel(x, 0, (float)x, 9, x < 5 ? 7 : (float)x - 4, 1);
}

Test(hdr, the_four_orientations_in_rows_are_honoured)
{
    static const struct {
        const char *resolution;
        uint32_t x, y; /* where the first stored pixel belongs */
    } cases[] = {{"-Y 2 +X 2\n", 0, 0}, {"+Y 2 +X 2\n", 0, 1}, {"-Y 2 -X 2\n", 1, 0}, {"+Y 2 -X 2\n", 1, 1}};
    const uint8_t data[16] = {128, 128, 128, 129};
    for (int i = 0; i < 4; i++) {
        make_hdr(cases[i].resolution, data, sizeof data);
        decode_made();
        for (uint32_t p = 0; p < 4; p++)
            cr_expect_eq(at(p % 2, p / 2, 0), p % 2 == cases[i].x && p / 2 == cases[i].y ? 1.0f : 0.0f, "%s",
                         cases[i].resolution);
    }
}

Test(hdr, damage_is_refused)
{
    static const struct {
        const char *resolution;
        size_t bytes;
        uint8_t data[16];
        const char *words;
    } cases[] = {
        {"-Y 2 +X 1\n", 4, {1, 2, 3, 129}, "truncated"},
        {"-Y 1 +X 2\n", 7, {1, 2, 3, 129, 1, 2, 3}, "truncated"},
        {"-Y 1 +X 8\n", 6, {2, 2, 0, 8, 8, 1}, "truncated"},
        {"-Y 1 +X 8\n", 6, {2, 2, 0, 8, 137, 1}, "truncated or damaged"},
        {"-Y 1 +X 8\n", 8, {2, 2, 0, 8, 0, 0, 0, 0}, "truncated or damaged"},
        {"-Y 1 +X 8\n", 8, {2, 2, 0, 9, 128, 0, 0, 0}, "9 pixels instead of 8"},
        {"-Y 1 +X 2\n", 8, {9, 9, 9, 129, 1, 1, 1, 9}, "truncated or damaged"},
        {"-Y 1 +X 2\n", 8, {1, 1, 1, 1, 1, 1, 1, 1}, "truncated or damaged"},
        {"-Y 0 +X 2\n", 8, {0}, "no pixels"},
        {"-Y -3 +X 2\n", 8, {0}, "no pixels"},
        {"-Y 1 +X 70000\n", 8, {0}, "too large"},
        {"-Y 99999999999 +X 1\n", 8, {0}, "damaged"},
        {"+X 2 -Y 1\n", 8, {0}, "columns"},
        {"-Z 2 +X 1\n", 8, {0}, "damaged"},
        {"hello\n", 8, {0}, "damaged"},
    };
    static const char *const whole[][2] = {
        {"#?RADIANCE\nFORMAT=32-bit_rle_xyze\n\n-Y 1 +X 1\nabcd", "XYZ"},
        {"#?RADIANCE\n", "damaged"},
        {"#?RGBE\nFORMAT=32-bit_rle_rgbe\nPRIMARIES=0 0 0 0 0 0 0 0\n\n-Y 1 +X 1\nabcd", "primaries"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_hdr(cases[i].resolution, cases[i].data, cases[i].bytes);
        refuse(cases[i].words, cases[i].resolution);
    }
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        make(whole[i][0], strlen(whole[i][0]));
        refuse(whole[i][1], whole[i][0]);
    }
}

Test(hdr, primaries_in_the_header_are_converted_and_white_kept)
{
    static const char head[] = "#?RADIANCE\nPRIMARIES= .708 .292 .170 .797 .131 .046 .3127 .3290\n"
                               "FORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n";
    const uint8_t data[8] = {128, 128, 128, 129, 128, 0, 0, 129};
    make(head, sizeof head - 1);
    put(&made, data, sizeof data);
    decode_made();
    for (int c = 0; c < 3; c++)
        cr_expect_float_eq(at(0, 0, c), 1.0f, 1e-5);
    cr_expect_float_eq(at(1, 0, 0), 1.660491f, 1e-5);
    cr_expect_float_eq(at(1, 0, 1), -0.12455f, 1e-5);
}

/* --- Mutations ---------------------------------------------------------------------------------------------------- */

Test(hdr, mutated_pictures_do_no_harm, .timeout = 600)
{
    static const uint8_t old[] = {128, 0, 0, 129, 1, 1, 1, 3, 0, 128, 0, 129, 1, 1, 1, 2, 9, 9, 9, 9, 1, 1, 1, 7};
    make_hdr("-Y 6 +X 8\n", NULL, 0);
    for (int y = 0; y < 6; y++)
        put(&made, new_row, sizeof new_row);
    mutate_and_decode(made.count, 20000);
    make_hdr("-Y 2 +X 8\n", old, sizeof old);
    mutate_and_decode(made.count, 20000);
}

Test(pfm, mutated_pictures_do_no_harm, .timeout = 600)
{
    make_pfm("PF\n1 2\n-1.0\n", true, six, 6);
    mutate_and_decode(made.count, 20000);
}

/* --- Files that are not pictures ---------------------------------------------------------------------------------- */

TestSuite(picture, .init = make_folder, .fini = remove_folder);

Test(picture, what_is_no_picture_is_named)
{
    static const struct {
        const char *name, *content, *words; /* content NULL: the file does not exist */
    } cases[] = {{"nothing.exr", NULL, "No such file"},
                 {"", NULL, "is a directory"},
                 {"empty.exr", "", "empty"},
                 {"text.exr", "hello, world\n", "not a supported picture"},
                 {"one", "P", "not a supported picture"},
                 {"png.exr", "\x89PNG\r\n\x1a\n", "damaged or truncated PNG"},
                 {"/dev/null", NULL, "empty"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct picture_input *input = (void *)1;
        struct error error = {""};
        const char *path = cases[i].name[0] == '/' ? cases[i].name : in_folder(cases[i].name);
        if (cases[i].content)
            write_file(path, cases[i].content, strlen(cases[i].content));
        cr_expect_not(picture_input_open(&input, path, PICTURE_ALPHA_BLACK, NULL, &error));
        cr_expect(input == NULL);
        cr_expect(strstr(error.text, cases[i].words), "%s: '%s' does not say '%s'", path, error.text, cases[i].words);
    }
}

Test(picture, a_file_is_read_by_its_content_not_its_name)
{
    struct picture_input *input;
    struct error error;
    float pixels[8];
    make_pfm("PF\n1 2\n-1.0\n", true, six, 6);
    write_file(in_folder("wrong.exr"), made.data, made.count);
    cr_assert(picture_input_open(&input, in_folder("wrong.exr"), PICTURE_ALPHA_BLACK, NULL, &error), "%s", error.text);
    cr_assert_eq(picture_input_read(input, pixels, 12, &error), PICTURE_READ_ERROR, "a pitch that is too short");
    cr_assert_eq(picture_input_read(input, pixels, 16, &error), PICTURE_READ_FRAME);
    cr_expect_eq(pixels[4], 1.0f);
    picture_input_close(&input);
}
