/* Pictures in and out: what is read is what is in the file, and no file, however bad, does more than fail.
 *
 * The OpenEXR files here are put together byte by byte (uncompressed), so that the reader is not judged by the library
 * that it uses; the real ones come from examples/data.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/half.h"
#include "common/outfile.h"
#include "common/picture.h"
#include "common/primaries.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <openexr.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

struct bytes {
    uint8_t *data;
    size_t count, capacity;
};

static void put(struct bytes *b, const void *data, size_t count)
{
    if (b->count + count > b->capacity) {
        b->capacity = (b->count + count) * 2;
        b->data = realloc(b->data, b->capacity);
        if (!b->data)
            abort();
    }
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

static void put_text(struct bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static void put_u8(struct bytes *b, uint8_t value)
{
    put(b, &value, 1);
}

static void put_u32(struct bytes *b, uint32_t value)
{
    const uint8_t le[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    put(b, le, 4);
}

static void put_u64(struct bytes *b, uint64_t value)
{
    put_u32(b, (uint32_t)value);
    put_u32(b, (uint32_t)(value >> 32));
}

static void put_float(struct bytes *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    put_u32(b, bits);
}

static void patch_u64(struct bytes *b, size_t at, uint64_t value)
{
    struct bytes tail = {b->data + at, 0, 8};
    put_u64(&tail, value);
}

static struct bytes load_file(const char *path)
{
    struct bytes b = {0};
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s cannot be opened", path);
    uint8_t block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof block, f)))
        put(&b, block, got);
    fclose(f);
    return b;
}

/* --- A decoded picture, in memory with a canary behind every row -------------------------------------------------- */

struct decoded {
    struct picture_format format;
    uint8_t *pixels;
    size_t pitch;
    struct picture_error error;
    bool opened, read;
};

enum { CANARY = 24 };

static struct decoded decode(const void *data, size_t bytes, enum picture_alpha alpha)
{
    struct decoded d = {0};
    struct picture_input *input = NULL;
    d.opened = picture_input_open_memory(&input, data, bytes, alpha, &d.error);
    cr_assert_eq(d.opened, input != NULL);
    if (!d.opened)
        return d;
    d.format = *picture_input_format(input);
    cr_assert(d.format.width > 0 && d.format.height > 0);
    if ((uint64_t)d.format.width * d.format.height > 4000000) { /* a believable lie: not here */
        picture_input_close(&input);
        return d;
    }
    size_t row = (size_t)d.format.width * (d.format.pixel == COX_PIXEL_RGBA_HALF ? 8 : 16);
    d.pitch = row + CANARY;
    d.pixels = malloc(d.pitch * d.format.height);
    cr_assert(d.pixels != NULL);
    memset(d.pixels, 0xa5, d.pitch * d.format.height);
    enum picture_read got = picture_input_read(input, d.pixels, d.pitch, &d.error);
    d.read = got == PICTURE_READ_FRAME;
    if (d.read)
        cr_assert_eq(picture_input_read(input, d.pixels, d.pitch, &d.error), PICTURE_READ_END);
    for (uint32_t y = 0; y < d.format.height; y++)
        for (size_t i = row; i < d.pitch; i++)
            cr_assert_eq(d.pixels[y * d.pitch + i], 0xa5, "row %u was left behind its end", y);
    picture_input_close(&input);
    cr_assert(input == NULL);
    return d;
}

static float at(const struct decoded *d, uint32_t x, uint32_t y, int c)
{
    const uint8_t *row = d->pixels + y * d->pitch;
    if (d->format.pixel == COX_PIXEL_RGBA_HALF)
        return half_to_float(((const uint16_t *)(const void *)row)[4 * x + c]);
    return ((const float *)(const void *)row)[4 * x + c];
}

#define assert_pixel(d, x, y, r, g, b, a)                                     \
    do {                                                                      \
        cr_expect_eq(at(d, x, y, 0), (float)(r), "red %g", at(d, x, y, 0));   \
        cr_expect_eq(at(d, x, y, 1), (float)(g), "green %g", at(d, x, y, 1)); \
        cr_expect_eq(at(d, x, y, 2), (float)(b), "blue %g", at(d, x, y, 2));  \
        cr_expect_eq(at(d, x, y, 3), (float)(a), "alpha %g", at(d, x, y, 3)); \
    } while (0)

static void refuse(const struct bytes *b, const char *words)
{
    struct decoded d = decode(b->data, b->count, PICTURE_ALPHA_BLACK);
    cr_expect_not(d.read, "was read");
    cr_expect(strstr(d.error.text, words) != NULL, "'%s' does not say '%s'", d.error.text, words);
    free(d.pixels);
}

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

/* The judge: of all halves the nearest, on a tie the one with an even last bit. */
Test(half, rounds_to_the_nearest_and_ties_to_even)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        double low = half_to_float((uint16_t)bits), high = half_to_float((uint16_t)(bits + 1));
        float middle = (float)((low + high) / 2); /* exact: one more bit than a half has */
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

Test(primaries, those_of_bt709_need_no_conversion)
{
    const struct primaries p = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};
    float matrix[9];
    cr_expect_eq(primaries_to_bt709(&p, matrix), PRIMARIES_SAME);
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
    const struct primaries nothing = {{NAN, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};
    const struct primaries black = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.0}};
    float matrix[9];
    cr_expect_eq(primaries_to_bt709(&line, matrix), PRIMARIES_BROKEN);
    cr_expect_eq(primaries_to_bt709(&nothing, matrix), PRIMARIES_BROKEN);
    cr_expect_eq(primaries_to_bt709(&black, matrix), PRIMARIES_BROKEN);
}

/* --- PFM ---------------------------------------------------------------------------------------------------------- */

static struct bytes make_pfm(const char *header, bool little, const float *values, size_t count)
{
    struct bytes b = {0};
    put_text(&b, header);
    for (size_t i = 0; i < count; i++) {
        size_t before = b.count;
        put_float(&b, values[i]);
        if (!little)
            for (int k = 0; k < 2; k++) {
                uint8_t swap = b.data[before + k];
                b.data[before + k] = b.data[before + 3 - k];
                b.data[before + 3 - k] = swap;
            }
    }
    return b;
}

static const float six[6] = {1, 2, 3, -4, 0.5f, 1e9f};

Test(pfm, rows_come_bottom_up_in_either_byte_order)
{
    for (int little = 0; little < 2; little++) {
        struct bytes b = make_pfm(little ? "PF\n1 2\n-1.0\n" : "PF\n1 2\n1.0\n", little, six, 6);
        struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
        cr_assert(d.read, "%s", d.error.text);
        cr_assert_eq(d.format.pixel, COX_PIXEL_RGBA_FLOAT);
        assert_pixel(&d, 0, 0, -4, 0.5f, 1e9f, 1);
        assert_pixel(&d, 0, 1, 1, 2, 3, 1);
        free(d.pixels);
        free(b.data);
    }
}

Test(pfm, grey_goes_into_all_three_colours)
{
    struct bytes b = make_pfm("Pf 3 2 -1\n", true, six, 6);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    assert_pixel(&d, 2, 1, 3, 3, 3, 1);
    assert_pixel(&d, 0, 0, -4, -4, -4, 1);
    free(d.pixels);
    free(b.data);
}

Test(pfm, values_that_are_no_numbers_pass_as_they_are)
{
    const float odd[3] = {NAN, INFINITY, -INFINITY};
    struct bytes b = make_pfm("PF\r\n1 1\r\n-1\r\n", true, odd, 3);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    cr_expect(isnan(at(&d, 0, 0, 0)));
    cr_expect_eq(at(&d, 0, 0, 1), INFINITY);
    cr_expect_eq(at(&d, 0, 0, 2), -INFINITY);
    free(d.pixels);
    free(b.data);
}

Test(pfm, a_bad_header_or_a_short_file_is_refused)
{
    static const struct {
        const char *header, *words;
    } cases[] = {{"PF\n1 3\n-1\n", "truncated"},
                 {"PF\n0 2\n-1\n", "no pixels"},
                 {"PF\n1 0\n-1\n", "no pixels"},
                 {"PF\n65537 1\n-1\n", "too large"},
                 {"PF\n65536 65536\n-1\n", "too large"},
                 {"PF\n4294967297 1\n-1\n", "too large"},
                 {"PF\n99999999999 1\n-1\n", "damaged"},
                 {"PF\n-1 2\n-1\n", "damaged"},
                 {"PF\n1 2\n0\n", "damaged"},
                 {"PF\n1 2\nnan\n", "damaged"},
                 {"PF\n1 2\nx\n", "damaged"},
                 {"PF\n1 2", "damaged"},
                 {"PF\n", "damaged"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes b = make_pfm(cases[i].header, true, six, strchr(cases[i].header, '1') ? 6 : 0);
        if (strstr(cases[i].words, "damaged") && cases[i].header[strlen(cases[i].header) - 1] != '\n')
            b.count = strlen(cases[i].header);
        refuse(&b, cases[i].words);
        free(b.data);
    }
}

/* --- Radiance ----------------------------------------------------------------------------------------------------- */

static const char hdr_head[] = "#?RADIANCE\n# made by a test\nFORMAT=32-bit_rle_rgbe\nEXPOSURE=2\n\n";

static struct bytes make_hdr(const char *resolution, const uint8_t *data, size_t count)
{
    struct bytes b = {0};
    put_text(&b, hdr_head);
    put_text(&b, resolution);
    put(&b, data, count);
    return b;
}

Test(hdr, flat_pixels_are_mantissa_times_a_power_of_two)
{
    const uint8_t data[8] = {128, 64, 32, 129, 0, 0, 0, 0};
    struct bytes b = make_hdr("-Y 1 +X 2\n", data, sizeof data);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    assert_pixel(&d, 0, 0, 1.0f, 0.5f, 0.25f, 1);
    assert_pixel(&d, 1, 0, 0, 0, 0, 1);
    free(d.pixels);
    free(b.data);
}

Test(hdr, old_runs_repeat_the_pixel_before)
{
    const uint8_t data[] = {128, 0, 0, 129, 1, 1, 1, 3, 0, 128, 0, 129, 1, 1, 1, 2, 1, 1, 1, 1};
    struct bytes b = make_hdr("-Y 1 +X 263\n", data, sizeof data); /* 1 + 3 + 1 + 2 + (1 << 8) */
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    assert_pixel(&d, 3, 0, 1, 0, 0, 1);
    assert_pixel(&d, 4, 0, 0, 1, 0, 1);
    assert_pixel(&d, 262, 0, 0, 1, 0, 1);
    free(d.pixels);
    free(b.data);
}

/* One row of eight pixels in the new run lengths: red 0..7 in a stretch, green a run, blue both, exponents a run. */
static const uint8_t new_row[] = {2, 2, 0, 8, 8, 0, 1, 2, 3, 4, 5, 6, 7, 136, 9, 133, 7, 3, 1, 2, 3, 136, 136};

Test(hdr, new_runs_go_component_by_component)
{
    struct bytes b = make_hdr("-Y 1 +X 8\n", new_row, sizeof new_row);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    for (uint32_t x = 0; x < 8; x++)
        assert_pixel(&d, x, 0, x, 9, x < 5 ? 7 : x - 4, 1);
    free(d.pixels);
    free(b.data);
}

Test(hdr, the_four_orientations_in_rows_are_honoured)
{
    static const struct {
        const char *resolution;
        uint32_t x, y; /* where the first stored pixel belongs */
    } cases[] = {{"-Y 2 +X 2\n", 0, 0}, {"+Y 2 +X 2\n", 0, 1}, {"-Y 2 -X 2\n", 1, 0}, {"+Y 2 -X 2\n", 1, 1}};
    const uint8_t data[16] = {128, 128, 128, 129};
    for (int i = 0; i < 4; i++) {
        struct bytes b = make_hdr(cases[i].resolution, data, sizeof data);
        struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
        cr_assert(d.read, "%s", d.error.text);
        for (uint32_t p = 0; p < 4; p++)
            cr_expect_eq(at(&d, p % 2, p / 2, 0), p % 2 == cases[i].x && p / 2 == cases[i].y ? 1.0f : 0.0f, "%s",
                         cases[i].resolution);
        free(d.pixels);
        free(b.data);
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
        {"-Y 1 +X 8\n", 8, {2, 2, 0, 9, 128, 0, 0, 0}, "9 pixels wide instead of 8"},
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes b = make_hdr(cases[i].resolution, cases[i].data, cases[i].bytes);
        refuse(&b, cases[i].words);
        free(b.data);
    }
    struct bytes b = {0};
    put_text(&b, "#?RADIANCE\nFORMAT=32-bit_rle_xyze\n\n-Y 1 +X 1\nabcd");
    refuse(&b, "XYZ");
    b.count = 0;
    put_text(&b, "#?RADIANCE\n");
    refuse(&b, "damaged");
    b.count = 0;
    put_text(&b, "#?RGBE\nFORMAT=32-bit_rle_rgbe\nPRIMARIES=0 0 0 0 0 0 0 0\n\n-Y 1 +X 1\nabcd");
    refuse(&b, "primaries");
    free(b.data);
}

Test(hdr, primaries_in_the_header_are_converted_and_white_kept)
{
    struct bytes b = {0};
    put_text(&b,
             "#?RADIANCE\nPRIMARIES= .708 .292 .170 .797 .131 .046 .3127 .3290\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n");
    const uint8_t data[8] = {128, 128, 128, 129, 128, 0, 0, 129};
    put(&b, data, sizeof data);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    for (int c = 0; c < 3; c++)
        cr_expect_float_eq(at(&d, 0, 0, c), 1.0f, 1e-5);
    cr_expect_float_eq(at(&d, 1, 0, 0), 1.660491f, 1e-5);
    cr_expect_float_eq(at(&d, 1, 0, 1), -0.12455f, 1e-5);
    free(d.pixels);
    free(b.data);
}

/* --- OpenEXR, put together by hand -------------------------------------------------------------------------------- */

enum { UINT = 0, HALF = 1, FLOAT = 2 };

struct exr_channel {
    const char *name;
    int type;
    int sampling; /* 0 = 1 */
};

struct exr_plan {
    struct exr_channel channels[8]; /* alphabetical, as the format asks for; name NULL = end */
    int32_t data[4];                /* min x, min y, max x, max y */
    int32_t display[4];             /* all 0 with data not: like data */
    int tile;                       /* tile side; 0 = scanlines */
    bool mipmap;
    bool decreasing;
    int compression;
    const float *chromaticities; /* 8, or NULL */
    uint32_t version;            /* extra flags */
};

/* What pixel x, y of a channel holds: exact in half. */
static float sample(int channel, int x, int y)
{
    return (float)(channel * 64 + y * 8 + x) / 4 - 3;
}

static void put_sample(struct bytes *b, int type, float value)
{
    if (type == HALF) {
        uint16_t half = half_from_float(value);
        put_u8(b, (uint8_t)half);
        put_u8(b, (uint8_t)(half >> 8));
    } else if (type == FLOAT) {
        put_float(b, value);
    } else {
        put_u32(b, (uint32_t)(int32_t)fabsf(value));
    }
}

static void put_attribute(struct bytes *b, const char *name, const char *type, uint32_t bytes)
{
    put(b, name, strlen(name) + 1);
    put(b, type, strlen(type) + 1);
    put_u32(b, bytes);
}

static void put_box(struct bytes *b, const char *name, const int32_t box[4])
{
    put_attribute(b, name, "box2i", 16);
    for (int i = 0; i < 4; i++)
        put_u32(b, (uint32_t)box[i]);
}

/* The rectangle x0..x1, y0..y1 of every channel: for each line, each channel's samples. */
static void put_rows(struct bytes *b, const struct exr_plan *plan, int x0, int y0, int x1, int y1)
{
    for (int y = y0; y <= y1; y++)
        for (int c = 0; plan->channels[c].name; c++) {
            int sampling = plan->channels[c].sampling ? plan->channels[c].sampling : 1;
            if (y % sampling)
                continue;
            for (int x = x0; x <= x1; x++)
                if (x % sampling == 0)
                    put_sample(b, plan->channels[c].type, sample(c, x, y));
        }
}

static struct bytes make_exr(const struct exr_plan *plan)
{
    struct bytes b = {0}, channels = {0};
    const int32_t none[4] = {0};
    const int32_t *data = plan->data, *display = memcmp(plan->display, none, 16) ? plan->display : plan->data;
    int width = data[2] - data[0] + 1, height = data[3] - data[1] + 1;
    for (int c = 0; plan->channels[c].name; c++) {
        put(&channels, plan->channels[c].name, strlen(plan->channels[c].name) + 1);
        put_u32(&channels, (uint32_t)plan->channels[c].type);
        put_u32(&channels, 0);
        int sampling = plan->channels[c].sampling ? plan->channels[c].sampling : 1;
        put_u32(&channels, (uint32_t)sampling);
        put_u32(&channels, (uint32_t)sampling);
    }
    put_u8(&channels, 0);

    put_u32(&b, 20000630);
    put_u32(&b, 2 | (plan->tile ? 0x200u : 0) | plan->version);
    put_attribute(&b, "channels", "chlist", (uint32_t)channels.count);
    put(&b, channels.data, channels.count);
    free(channels.data);
    if (plan->chromaticities) {
        put_attribute(&b, "chromaticities", "chromaticities", 32);
        for (int i = 0; i < 8; i++)
            put_float(&b, plan->chromaticities[i]);
    }
    put_attribute(&b, "compression", "compression", 1);
    put_u8(&b, (uint8_t)plan->compression);
    put_box(&b, "dataWindow", data);
    put_box(&b, "displayWindow", display);
    put_attribute(&b, "lineOrder", "lineOrder", 1);
    put_u8(&b, plan->decreasing);
    put_attribute(&b, "pixelAspectRatio", "float", 4);
    put_float(&b, 1);
    put_attribute(&b, "screenWindowCenter", "v2f", 8);
    put_float(&b, 0);
    put_float(&b, 0);
    put_attribute(&b, "screenWindowWidth", "float", 4);
    put_float(&b, 1);
    if (plan->tile) {
        put_attribute(&b, "tiles", "tiledesc", 9);
        put_u32(&b, (uint32_t)plan->tile);
        put_u32(&b, (uint32_t)plan->tile);
        put_u8(&b, plan->mipmap);
    }
    put_u8(&b, 0);

    size_t table = b.count;
    if (!plan->tile) {
        for (int i = 0; i < height; i++)
            put_u64(&b, 0);
        for (int i = 0; i < height; i++) {
            int line = plan->decreasing ? height - 1 - i : i;
            patch_u64(&b, table + 8 * (size_t)line, b.count);
            put_u32(&b, (uint32_t)(data[1] + line));
            size_t size = b.count;
            put_u32(&b, 0);
            put_rows(&b, plan, data[0], data[1] + line, data[2], data[1] + line);
            struct bytes at_size = {b.data + size, 0, 4};
            put_u32(&at_size, (uint32_t)(b.count - size - 4));
        }
        return b;
    }
    int levels = 1;
    if (plan->mipmap)
        for (int side = width > height ? width : height; side > 1; side /= 2)
            levels++;
    size_t tiles = 0;
    for (int level = 0; level < levels; level++) {
        int w = width >> level, h = height >> level;
        w = w ? w : 1, h = h ? h : 1;
        tiles += (size_t)((w + plan->tile - 1) / plan->tile) * (size_t)((h + plan->tile - 1) / plan->tile);
    }
    for (size_t i = 0; i < tiles; i++)
        put_u64(&b, 0);
    size_t entry = 0;
    for (int level = 0; level < levels; level++) {
        int w = width >> level, h = height >> level;
        w = w ? w : 1, h = h ? h : 1;
        for (int ty = 0; ty * plan->tile < h; ty++)
            for (int tx = 0; tx * plan->tile < w; tx++) {
                int x0 = tx * plan->tile, y0 = ty * plan->tile;
                int x1 = x0 + plan->tile < w ? x0 + plan->tile : w, y1 = y0 + plan->tile < h ? y0 + plan->tile : h;
                patch_u64(&b, table + 8 * entry++, b.count);
                put_u32(&b, (uint32_t)tx);
                put_u32(&b, (uint32_t)ty);
                put_u32(&b, (uint32_t)level);
                put_u32(&b, (uint32_t)level);
                size_t size = b.count;
                put_u32(&b, 0);
                put_rows(&b, plan, data[0] + x0 + 1000 * (level != 0), data[1] + y0,
                         data[0] + x1 - 1 + 1000 * (level != 0), data[1] + y1 - 1);
                struct bytes at_size = {b.data + size, 0, 4};
                put_u32(&at_size, (uint32_t)(b.count - size - 4));
            }
    }
    return b;
}

static const struct exr_channel rgba_half[8] = {{"A", HALF, 0}, {"B", HALF, 0}, {"G", HALF, 0}, {"R", HALF, 0}};

/* Every pixel of `d` that the data window covers must be its channels' samples. -1 = 0, -2 = 1. */
static void expect_samples(const struct decoded *d, const struct exr_plan *plan, const int channel[4])
{
    const int32_t none[4] = {0};
    const int32_t *display = memcmp(plan->display, none, 16) ? plan->display : plan->data;
    cr_assert_eq(d->format.width, (uint32_t)(display[2] - display[0] + 1));
    cr_assert_eq(d->format.height, (uint32_t)(display[3] - display[1] + 1));
    for (int y = display[1]; y <= display[3]; y++)
        for (int x = display[0]; x <= display[2]; x++)
            for (int c = 0; c < 4; c++) {
                bool inside = x >= plan->data[0] && x <= plan->data[2] && y >= plan->data[1] && y <= plan->data[3];
                float expected = channel[c] == -2 ? 1.0f : channel[c] < 0 || !inside ? 0.0f : sample(channel[c], x, y);
                if (channel[c] >= 0 && inside && plan->channels[channel[c]].type == UINT)
                    expected = (float)(int)fabsf(expected);
                float got = at(d, (uint32_t)(x - display[0]), (uint32_t)(y - display[1]), c);
                cr_assert_eq(got, expected, "pixel %d, %d, channel %d: %g instead of %g", x, y, c, (double)got,
                             (double)expected);
            }
}

static void check_exr(const struct exr_plan *plan, const int channel[4], enum cox_pixel_in pixel)
{
    struct bytes b = make_exr(plan);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    cr_assert_eq(d.format.pixel, pixel);
    expect_samples(&d, plan, channel);
    free(d.pixels);
    free(b.data);
}

static const int rgb_of_abgr[4] = {3, 2, 1, -2};

static struct exr_plan plan_of(const struct exr_channel *channels, int width, int height)
{
    struct exr_plan plan = {.data = {0, 0, width - 1, height - 1}};
    for (int i = 0; i < 8 && channels[i].name; i++)
        plan.channels[i] = channels[i];
    return plan;
}

Test(exr, half_colours_come_as_half_and_alpha_is_one_by_default)
{
    struct exr_plan plan = plan_of(rgba_half, 7, 5);
    check_exr(&plan, rgb_of_abgr, COX_PIXEL_RGBA_HALF);
}

Test(exr, float_channels_come_as_float_and_may_mix)
{
    struct exr_plan plan = plan_of((struct exr_channel[8]){{"B", FLOAT, 0}, {"G", HALF, 0}, {"R", UINT, 0}}, 5, 3);
    check_exr(&plan, (int[4]){2, 1, 0, -2}, COX_PIXEL_RGBA_FLOAT);
}

Test(exr, luminance_alone_is_grey_and_a_missing_colour_is_black)
{
    struct exr_plan grey = plan_of((struct exr_channel[8]){{"Y", HALF, 0}}, 4, 4);
    check_exr(&grey, (int[4]){0, 0, 0, -2}, COX_PIXEL_RGBA_HALF);
    struct exr_plan red = plan_of((struct exr_channel[8]){{"R", HALF, 0}, {"Z", FLOAT, 0}}, 4, 4);
    check_exr(&red, (int[4]){0, -1, -1, -2}, COX_PIXEL_RGBA_HALF);
}

Test(exr, the_unnamed_layer_goes_before_the_first_named_one)
{
    struct exr_plan named = plan_of((struct exr_channel[8]){{"depth.Z", FLOAT, 0},
                                                            {"view.B", HALF, 0},
                                                            {"view.G", HALF, 0},
                                                            {"view.R", HALF, 0}},
                                    4, 4);
    check_exr(&named, (int[4]){3, 2, 1, -2}, COX_PIXEL_RGBA_HALF);
    struct exr_plan both = plan_of((struct exr_channel[8]){{"B", HALF, 0},
                                                           {"G", HALF, 0},
                                                           {"R", HALF, 0},
                                                           {"a.B", HALF, 0},
                                                           {"a.R", HALF, 0}},
                                   4, 4);
    check_exr(&both, (int[4]){2, 1, 0, -2}, COX_PIXEL_RGBA_HALF);
}

Test(exr, lines_may_be_stored_from_the_bottom)
{
    struct exr_plan plan = plan_of(rgba_half, 3, 6);
    plan.decreasing = true;
    check_exr(&plan, rgb_of_abgr, COX_PIXEL_RGBA_HALF);
}

Test(exr, the_display_window_is_what_is_shown)
{
    static const int32_t windows[][8] = {
        {2, 1, 6, 4, 0, 0, 9, 7},           /* data inside: black around */
        {-3, -2, 9, 8, 0, 0, 5, 5},         /* overscan: cut off */
        {-3, 2, 3, 9, 0, 0, 6, 6},          /* across a corner */
        {-10, -10, -4, -6, -8, -9, -5, -7}, /* negative coordinates */
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (int tile = 0; tile < 5; tile += 4) {
            struct exr_plan plan = plan_of(rgba_half, 1, 1);
            memcpy(plan.data, windows[i], 16);
            memcpy(plan.display, windows[i] + 4, 16);
            plan.tile = tile;
            check_exr(&plan, rgb_of_abgr, COX_PIXEL_RGBA_HALF);
        }
}

Test(exr, where_the_windows_do_not_meet_the_data_is_shown)
{
    struct exr_plan plan = plan_of(rgba_half, 1, 1);
    memcpy(plan.data, (int32_t[4]){20, 20, 23, 22}, 16);
    memcpy(plan.display, (int32_t[4]){0, 0, 9, 9}, 16);
    struct bytes b = make_exr(&plan);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    memcpy(plan.display, plan.data, 16);
    expect_samples(&d, &plan, rgb_of_abgr);
    free(d.pixels);
    free(b.data);
}

Test(exr, tiles_of_every_fit_are_put_together)
{
    static const int sides[] = {1, 3, 4, 16};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        struct exr_plan plan = plan_of(rgba_half, 9, 6);
        plan.tile = sides[i];
        check_exr(&plan, rgb_of_abgr, COX_PIXEL_RGBA_HALF);
        plan.mipmap = true;
        check_exr(&plan, rgb_of_abgr, COX_PIXEL_RGBA_HALF);
    }
}

Test(exr, alpha_is_kept_on_request_and_colours_divided_by_it)
{
    struct exr_plan plan =
        plan_of((struct exr_channel[8]){{"A", FLOAT, 0}, {"B", FLOAT, 0}, {"G", FLOAT, 0}, {"R", FLOAT, 0}}, 40, 1);
    struct bytes b = make_exr(&plan);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_STRAIGHT);
    cr_assert(d.read, "%s", d.error.text);
    cr_expect(d.format.alpha);
    for (uint32_t x = 0; x < 40; x++) {
        float alpha = sample(0, (int)x, 0), red = sample(3, (int)x, 0);
        cr_expect_eq(at(&d, x, 0, 3), alpha);
        cr_expect_eq(at(&d, x, 0, 0), alpha > 0 && alpha < 1 ? red / alpha : red);
    }
    free(d.pixels);
    free(b.data);
}

Test(exr, chromaticities_are_converted)
{
    static const float bt2020[8] = {0.708f, 0.292f, 0.170f, 0.797f, 0.131f, 0.046f, 0.3127f, 0.3290f};
    struct exr_plan plan = plan_of((struct exr_channel[8]){{"B", FLOAT, 0}, {"G", FLOAT, 0}, {"R", FLOAT, 0}}, 4, 4);
    plan.chromaticities = bt2020;
    struct bytes b = make_exr(&plan);
    struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
    cr_assert(d.read, "%s", d.error.text);
    double blue = sample(0, 2, 3), green = sample(1, 2, 3), red = sample(2, 2, 3);
    cr_expect_float_eq(at(&d, 2, 3, 0), 1.66049100 * red - 0.58764114 * green - 0.07284986 * blue, 1e-3);
    cr_expect_float_eq(at(&d, 2, 3, 1), -0.12455047 * red + 1.13289990 * green - 0.00834942 * blue, 1e-3);
    free(d.pixels);
    free(b.data);
    static const float nonsense[8] = {0};
    plan.chromaticities = nonsense;
    b = make_exr(&plan);
    refuse(&b, "chromaticities");
    free(b.data);
}

Test(exr, what_cannot_be_read_is_named)
{
    struct exr_plan plan = plan_of(rgba_half, 4, 4);
    struct bytes b;
    plan.compression = 8;
    b = make_exr(&plan);
    refuse(&b, "DWAA compression");
    free(b.data);
    plan.compression = 9;
    b = make_exr(&plan);
    refuse(&b, "DWAB compression");
    free(b.data);
    plan.compression = 77;
    b = make_exr(&plan);
    refuse(&b, "");
    free(b.data);

    plan = plan_of((struct exr_channel[8]){{"N", HALF, 0}, {"Z", FLOAT, 0}}, 4, 4);
    b = make_exr(&plan);
    refuse(&b, "only N, Z");
    free(b.data);

    plan = plan_of((struct exr_channel[8]){{"BY", HALF, 2}, {"RY", HALF, 2}, {"Y", HALF, 0}}, 4, 4);
    b = make_exr(&plan);
    refuse(&b, "luminance and chroma");
    free(b.data);

    plan = plan_of((struct exr_channel[8]){{"B", HALF, 2}, {"G", HALF, 0}, {"R", HALF, 0}}, 4, 4);
    b = make_exr(&plan);
    refuse(&b, "channel B is subsampled");
    free(b.data);

    plan = plan_of(rgba_half, 4, 4);
    plan.data[2] = -1;
    plan.display[2] = plan.display[3] = 3;
    b = make_exr(&plan);
    refuse(&b, "");
    free(b.data);
}

/* A window of 2^31 pixels a side in a file of a few hundred bytes. */
Test(exr, a_huge_window_is_refused_before_memory_is_asked_for)
{
    struct exr_plan plan = plan_of(rgba_half, 4, 4);
    struct bytes b = make_exr(&plan);
    static const uint32_t corners[] = {0x7fffffff, 0x3fffffff, 65536, 70000};
    for (size_t i = 0; i < 4; i++)
        for (int which = 0; which < 2; which++) {
            uint8_t *window = memmem(b.data, b.count, which ? "displayWindow" : "dataWindow", which ? 13 : 10);
            window += (which ? 14 : 11) + 6 + 4 + 8;
            uint8_t before[8];
            memcpy(before, window, 8);
            struct bytes at_window = {window, 0, 8};
            put_u32(&at_window, corners[i]);
            put_u32(&at_window, corners[i]);
            struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
            cr_expect_not(d.opened, "corner %u", corners[i]);
            memcpy(window, before, 8);
        }
    free(b.data);
}

enum { COMPRESSIONS = 8 }; /* of OpenEXR that are read: none, RLE, ZIPS, ZIP, PIZ, PXR24, B44, B44A */

static void set_window(const struct bytes *b, const char *name, uint32_t width, uint32_t height)
{
    uint8_t *window = memmem(b->data, b->count, name, strlen(name));
    cr_assert_not_null(window);
    struct bytes corner = {window + strlen(name) + 1 + 6 + 4 + 8, 0, 8};
    put_u32(&corner, width - 1);
    put_u32(&corner, height - 1);
}

/* Half a thousand million pixels in a file of a few hundred bytes. */
Test(exr, a_short_file_cannot_ask_for_much_memory)
{
    for (int tile = 0; tile < 3; tile += 2)
        for (int compression = 0; compression < COMPRESSIONS; compression++) {
            struct exr_plan plan = plan_of(rgba_half, 4, 4);
            plan.tile = tile;
            plan.compression = compression;
            struct bytes b = make_exr(&plan);
            set_window(&b, "dataWindow", 65536, 8192);
            refuse(&b, "cannot hold 65536 x 8192 pixels");
            set_window(&b, "displayWindow", 65536, 8192);
            refuse(&b, "cannot hold 65536 x 8192 pixels");
            set_window(&b, "dataWindow", 4, 4);
            refuse(&b, "shows 65536 x 8192 pixels of which it stores next to none");
            set_window(&b, "displayWindow", 7680, 4320);
            struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
            cr_expect(d.opened, "black all around in 8K: %s", d.error.text);
            free(b.data);
        }
}

static int64_t keep_written(exr_const_context_t context, void *user, const void *data, uint64_t bytes, uint64_t offset,
                            exr_stream_error_func_ptr_t fail)
{
    (void)context, (void)fail;
    struct bytes *b = user;
    static const uint8_t none[1 << 12];
    while (b->count < offset + bytes)
        put(b, none, offset + bytes - b->count < sizeof none ? offset + bytes - b->count : sizeof none);
    memcpy(b->data + offset, data, bytes);
    return (int64_t)bytes;
}

/* A picture of one value, by the library. */
static struct bytes write_constant(int compression, exr_pixel_type_t type, int width, int height, const void *row)
{
    struct bytes b = {0};
    exr_context_t context;
    exr_context_initializer_t setup = EXR_DEFAULT_CONTEXT_INITIALIZER;
    exr_encode_pipeline_t encode = EXR_ENCODE_PIPELINE_INITIALIZER;
    exr_chunk_info_t chunk;
    int part, lines;
    setup.user_data = &b;
    setup.write_fn = keep_written;
    cr_assert_eq(exr_start_write(&context, "picture", EXR_WRITE_FILE_DIRECTLY, &setup), EXR_ERR_SUCCESS);
    cr_assert_eq(exr_add_part(context, "picture", EXR_STORAGE_SCANLINE, &part), EXR_ERR_SUCCESS);
    cr_assert_eq(exr_initialize_required_attr_simple(context, part, width, height, (exr_compression_t)compression),
                 EXR_ERR_SUCCESS);
    for (int c = 0; c < 3; c++)
        cr_assert_eq(exr_add_channel(context, part, &"B\0G\0R"[2 * c], type, EXR_PERCEPTUALLY_LOGARITHMIC, 1, 1),
                     EXR_ERR_SUCCESS);
    cr_assert_eq(exr_write_header(context), EXR_ERR_SUCCESS);
    cr_assert_eq(exr_get_scanlines_per_chunk(context, part, &lines), EXR_ERR_SUCCESS);
    for (int y = 0; y < height; y += lines) {
        cr_assert_eq(exr_write_scanline_chunk_info(context, part, y, &chunk), EXR_ERR_SUCCESS);
        cr_assert_eq(y ? exr_encoding_update(context, part, &chunk, &encode)
                       : exr_encoding_initialize(context, part, &chunk, &encode),
                     EXR_ERR_SUCCESS);
        for (int c = 0; c < encode.channel_count; c++) {
            encode.channels[c].encode_from_ptr = row;
            encode.channels[c].user_pixel_stride = encode.channels[c].bytes_per_element;
            encode.channels[c].user_line_stride = 0; /* every line the same */
        }
        if (y == 0)
            cr_assert_eq(exr_encoding_choose_default_routines(context, part, &encode), EXR_ERR_SUCCESS);
        cr_assert_eq(exr_encoding_run(context, part, &encode), EXR_ERR_SUCCESS);
    }
    exr_encoding_destroy(context, &encode);
    cr_assert_eq(exr_finish(&context), EXR_ERR_SUCCESS);
    return b;
}

/* Pictures of one value are the shortest files that there are: how far below its pixels a file's length may be. */
Test(exr, a_picture_of_one_value_is_short_and_is_read)
{
    static const double ratios[COMPRESSIONS] = {0.99, 60, 600, 950, 250, 900, 2.2, 10};
    enum { WIDTH = 16384, HEIGHT = 128 };
    static uint32_t zeros[WIDTH];
    for (int compression = 0; compression < COMPRESSIONS; compression++)
        for (exr_pixel_type_t type = EXR_PIXEL_HALF; type <= EXR_PIXEL_FLOAT; type++) {
            struct bytes b = write_constant(compression, type, WIDTH, HEIGHT, zeros);
            double ratio = (double)WIDTH * HEIGHT * 3 * (type == EXR_PIXEL_HALF ? 2 : 4) / (double)b.count;
            if (type == EXR_PIXEL_HALF) /* B44 takes floats as they are */
                cr_expect_gt(ratio, ratios[compression], "compression %d: only %g to 1", compression, ratio);
            struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
            cr_assert(d.read, "compression %d, %g to 1: %s", compression, ratio, d.error.text);
            cr_expect_eq(at(&d, WIDTH - 1, HEIGHT - 1, 1), 0);
            cr_expect_eq(at(&d, WIDTH - 1, HEIGHT - 1, 3), 1);
            free(d.pixels);
            free(b.data);
        }
}

Test(exr, every_truncation_is_refused)
{
    for (int tile = 0; tile < 3; tile += 2) {
        struct exr_plan plan = plan_of(rgba_half, 5, 4);
        plan.tile = tile;
        struct bytes b = make_exr(&plan);
        for (size_t bytes = 1; bytes < b.count; bytes++) {
            uint8_t *copy = malloc(bytes); /* exactly as long, for the address sanitizer */
            memcpy(copy, b.data, bytes);
            struct decoded d = decode(copy, bytes, PICTURE_ALPHA_BLACK);
            cr_assert_not(d.read, "%zu of %zu bytes", bytes, b.count);
            cr_assert(d.error.text[0]);
            free(d.pixels);
            free(copy);
        }
        free(b.data);
    }
}

/* --- Real pictures ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint32_t width, height;
    float largest; /* of the red, green and blue */
} real[] = {{"StillLife", 1240, 846, 492},
            {"CandleGlass", 1000, 810, 413},
            {"GoldenGate", 1262, 860, 686},
            {"WideColorGamut", 800, 800, 0}};

static struct bytes load_real(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/examples/data/%s.exr", COX_TEST_SOURCE_DIR, name);
    return load_file(path);
}

Test(exr, the_real_pictures_have_their_known_sizes_and_peaks)
{
    for (int i = 0; i < 4; i++) {
        struct bytes b = load_real(real[i].name);
        struct decoded d = decode(b.data, b.count, PICTURE_ALPHA_BLACK);
        cr_assert(d.read, "%s: %s", real[i].name, d.error.text);
        cr_expect_eq(d.format.width, real[i].width);
        cr_expect_eq(d.format.height, real[i].height);
        cr_expect_eq(d.format.pixel, COX_PIXEL_RGBA_HALF);
        float largest = -INFINITY, least = INFINITY;
        for (uint32_t y = 0; y < d.format.height; y++)
            for (uint32_t x = 0; x < d.format.width; x++) {
                for (int c = 0; c < 3; c++) {
                    largest = fmaxf(largest, at(&d, x, y, c));
                    least = fminf(least, at(&d, x, y, c));
                }
                cr_assert_eq(at(&d, x, y, 3), 1.0f);
            }
        if (real[i].largest > 0)
            cr_expect_float_eq(largest, real[i].largest, 1.0, "%s: %g", real[i].name, (double)largest);
        else
            cr_expect_lt(least, 0.0f, "out-of-gamut colours are negative");
        free(d.pixels);
        free(b.data);
    }
}

/* --- Mutations ---------------------------------------------------------------------------------------------------- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * bound >> 32);
}

/* Change some bytes, more often near the front where the header is; sometimes to extreme values. */
static void mutate(uint8_t *data, size_t bytes, size_t head)
{
    static const uint8_t extreme[] = {0, 1, 0x7f, 0x80, 0xff};
    uint32_t changes = 1 + random_below(4);
    while (changes--) {
        size_t area = random_below(4) && head < bytes ? head : bytes;
        uint8_t *byte = data + random_below((uint32_t)area);
        *byte = random_below(2) ? extreme[random_below(5)] : (uint8_t)random_below(256);
    }
}

/* Whatever comes out, it comes out: an error with words, or pixels within their rows (decode checks). */
static void mutate_and_decode(const struct bytes *original, size_t head, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        size_t bytes = random_below(4) ? original->count : 1 + random_below((uint32_t)original->count);
        uint8_t *copy = malloc(bytes);
        memcpy(copy, original->data, bytes);
        mutate(copy, bytes, head);
        struct decoded d = decode(copy, bytes, random_below(2) ? PICTURE_ALPHA_BLACK : PICTURE_ALPHA_STRAIGHT);
        if (!d.opened)
            cr_assert(d.error.text[0]);
        free(d.pixels);
        free(copy);
    }
}

Test(exr, mutated_small_pictures_do_no_harm, .timeout = 600)
{
    for (int variant = 0; variant < 4; variant++) {
        struct exr_plan plan = plan_of(rgba_half, 13, 9);
        plan.tile = variant & 1 ? 4 : 0;
        plan.mipmap = variant == 3;
        plan.decreasing = variant == 2;
        struct bytes b = make_exr(&plan);
        mutate_and_decode(&b, 400, 2000);
        free(b.data);
    }
}

Test(exr, mutated_real_pictures_do_no_harm, .timeout = 1200)
{
    for (int i = 0; i < 4; i++) {
        struct bytes b = load_real(real[i].name);
        mutate_and_decode(&b, 40000, 25);
        free(b.data);
    }
}

Test(hdr, mutated_pictures_do_no_harm, .timeout = 600)
{
    struct bytes rows = {0};
    for (int y = 0; y < 6; y++)
        put(&rows, new_row, sizeof new_row);
    struct bytes b = make_hdr("-Y 6 +X 8\n", rows.data, rows.count);
    mutate_and_decode(&b, b.count, 20000);
    free(b.data);
    const uint8_t old[] = {128, 0, 0, 129, 1, 1, 1, 3, 0, 128, 0, 129, 1, 1, 1, 2, 9, 9, 9, 9, 1, 1, 1, 7};
    b = make_hdr("-Y 2 +X 8\n", old, sizeof old);
    mutate_and_decode(&b, b.count, 20000);
    free(b.data);
    free(rows.data);
}

Test(pfm, mutated_pictures_do_no_harm, .timeout = 600)
{
    struct bytes b = make_pfm("PF\n1 2\n-1.0\n", true, six, 6);
    mutate_and_decode(&b, b.count, 20000);
    free(b.data);
}

/* --- Files that are no pictures ----------------------------------------------------------------------------------- */

static char scratch[64];

static void make_scratch(void)
{
    strcpy(scratch, "/tmp/coxswain-test-XXXXXX");
    cr_assert(mkdtemp(scratch) != NULL);
}

static void remove_scratch(void)
{
    DIR *directory = opendir(scratch);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(scratch);
}

static const char *in_scratch(const char *name)
{
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL);
    cr_assert_eq(fwrite(data, 1, bytes, f), bytes);
    cr_assert_eq(fclose(f), 0);
}

static void refuse_path(const char *path, const char *words)
{
    struct picture_input *input = (void *)1;
    struct picture_error error = {""};
    cr_expect_not(picture_input_open(&input, path, PICTURE_ALPHA_BLACK, &error));
    cr_expect(input == NULL);
    cr_expect(strstr(error.text, words) != NULL, "'%s' does not say '%s'", error.text, words);
}

Test(picture, what_is_no_picture_is_named, .init = make_scratch, .fini = remove_scratch)
{
    refuse_path(in_scratch("nothing.exr"), "No such file");
    refuse_path(scratch, "is a directory");
    write_file(in_scratch("empty.exr"), "", 0);
    refuse_path(in_scratch("empty.exr"), "empty");
    write_file(in_scratch("text.exr"), "hello, world\n", 13);
    refuse_path(in_scratch("text.exr"), "not a picture");
    write_file(in_scratch("png.exr"), "\x89PNG\r\n\x1a\n", 8);
    refuse_path(in_scratch("png.exr"), "a PNG picture");
    write_file(in_scratch("one"), "P", 1);
    refuse_path(in_scratch("one"), "not a picture");
    refuse_path("/dev/null", "empty");
}

Test(picture, a_file_is_read_by_its_content_not_its_name, .init = make_scratch, .fini = remove_scratch)
{
    struct bytes b = make_pfm("PF\n1 2\n-1.0\n", true, six, 6);
    write_file(in_scratch("wrong.exr"), b.data, b.count);
    struct picture_input *input;
    struct picture_error error;
    cr_assert(picture_input_open(&input, in_scratch("wrong.exr"), PICTURE_ALPHA_BLACK, &error), "%s", error.text);
    float pixels[8];
    cr_assert_eq(picture_input_read(input, pixels, 12, &error), PICTURE_READ_ERROR, "a pitch that is too short");
    cr_assert_eq(picture_input_read(input, pixels, 16, &error), PICTURE_READ_FRAME);
    cr_expect_eq(pixels[4], 1.0f);
    picture_input_close(&input);
    free(b.data);
}

/* --- Files out ---------------------------------------------------------------------------------------------------- */

static int files_in_scratch(void)
{
    int count = 0;
    DIR *directory = opendir(scratch);
    struct dirent *entry;
    while ((entry = readdir(directory)))
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(directory);
    return count;
}

Test(outfile, nothing_stands_under_the_name_until_it_is_finished, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    const char *path = in_scratch("out.txt");
    cr_assert(outfile_open(&file, path, &error), "%s", error.text);
    fputs("content", outfile_stream(file));
    fflush(outfile_stream(file));
    cr_expect_neq(access(path, F_OK), 0);
    cr_expect_leq(files_in_scratch(), 1, "at most a temporary one");
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect(file == NULL);
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(files_in_scratch(), 1, "the temporary file is gone");
}

Test(outfile, where_every_file_has_a_name_it_is_a_hidden_one, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    struct stat about;
    const char *path = in_scratch("out.txt");
    outfile_use_names();
    cr_assert(outfile_open(&file, path, &error), "%s", error.text);
    fputs("content", outfile_stream(file));
    cr_expect_neq(access(path, F_OK), 0);
    cr_expect_eq(files_in_scratch(), 1);
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_size, 7);
    cr_expect_eq(files_in_scratch(), 1, "the temporary file is gone");
}

Test(outfile, two_names_of_one_place_are_told, .init = make_scratch, .fini = remove_scratch)
{
    char other[4096];
    snprintf(other, sizeof other, "%s/./new", scratch);
    cr_expect(outfile_same_place(in_scratch("new"), other), "before it exists");
    write_file(in_scratch("new"), "x", 1);
    cr_expect(outfile_same_place(in_scratch("new"), other));
    cr_expect_not(outfile_same_place(other, in_scratch("newer")));
    cr_assert_eq(symlink("new", in_scratch("link")), 0);
    cr_expect(outfile_same_place(other, in_scratch("link")));
    cr_expect_not(outfile_same_place("/dev/null", "/dev/null"), "a device takes all");
    cr_expect_not(outfile_same_place("-", "-"));
}

Test(outfile, abandoned_it_leaves_what_was_there, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    const char *path = in_scratch("out.txt");
    write_file(path, "before", 6);
    cr_assert(outfile_open(&file, path, &error));
    fputs("after", outfile_stream(file));
    outfile_abandon(&file);
    outfile_abandon(&file);
    struct bytes b = load_file(path);
    cr_expect(b.count == 6 && !memcmp(b.data, "before", 6));
    cr_expect_eq(files_in_scratch(), 1);
    free(b.data);
}

Test(outfile, an_interrupted_program_can_remove_what_it_began, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *one, *two;
    struct picture_error error;
    outfile_use_names();
    cr_assert(outfile_open(&one, in_scratch("one"), &error));
    cr_assert(outfile_open(&two, in_scratch("two"), &error));
    cr_assert_eq(files_in_scratch(), 2);
    outfile_remove_all();
    cr_expect_eq(files_in_scratch(), 0);
    outfile_abandon(&one);
    outfile_abandon(&two);
}

/* A process that is killed while it writes. */
static void write_and_be_killed(const char *path)
{
    struct outfile *file;
    struct picture_error error;
    int status;
    const pid_t child = fork();
    if (!child) {
        if (outfile_open(&file, path, &error) && fputs("half", outfile_stream(file)) >= 0)
            raise(SIGKILL);
        _exit(1);
    }
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFSIGNALED(status));
}

Test(outfile, what_killed_programs_have_left_is_taken_away, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file, *other;
    struct picture_error error;
    const char *path = in_scratch("out.txt");
    outfile_use_names();
    for (int i = 0; i < 30; i++)
        write_and_be_killed(path);
    cr_expect_eq(files_in_scratch(), 1, "%d files", files_in_scratch());
    cr_assert(outfile_open(&file, path, &error), "%s", error.text);
    cr_expect_eq(files_in_scratch(), 1, "in its place");
    write_and_be_killed(path);
    cr_assert(outfile_open(&other, path, &error), "%s", error.text);
    cr_expect_eq(files_in_scratch(), 2, "that of a program that lives is left alone");
    outfile_abandon(&other);
    cr_expect_eq(files_in_scratch(), 1);
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(files_in_scratch(), 1);
}

Test(outfile, programs_that_write_to_one_place_at_once_do_not_disturb_each_other, .init = make_scratch,
     .fini = remove_scratch)
{
    enum { PROGRAMS = 8, TIMES = 200 };
    struct outfile *file;
    struct picture_error error = {""};
    const char *path = in_scratch("out.txt");
    int status;
    outfile_use_names();
    for (int i = 0; i < PROGRAMS; i++) {
        if (fork())
            continue;
        bool good = true;
        for (int n = 0; n < TIMES && good; n++)
            good = outfile_open(&file, path, &error) && fputs("whole", outfile_stream(file)) >= 0 &&
                   outfile_finish(&file, &error);
        if (good && i % 2 && outfile_open(&file, path, &error))
            raise(SIGKILL);
        _exit(!good);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        cr_assert(wait(&status) > 0);
        cr_expect(WIFSIGNALED(status) || !WEXITSTATUS(status));
    }
    cr_expect_leq(files_in_scratch(), 1 + PROGRAMS / 2);
    for (int i = 0; i < PROGRAMS; i++) /* what is left stands under other names than the first, too */
        cr_assert(outfile_open(&file, path, &error) && outfile_finish(&file, &error), "%s", error.text);
    struct bytes b = load_file(path);
    cr_expect_eq(b.count, 0, "the last one was empty");
    free(b.data);
}

Test(outfile, what_a_killed_program_has_left_gives_way_to_a_file_without_a_name, .init = make_scratch,
     .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    const char *path = in_scratch("out.txt");
    write_file(in_scratch(".out.txt.0.tmp"), "half", 4);
    cr_assert(outfile_open(&file, path, &error), "%s", error.text);
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(files_in_scratch(), 1);
}

Test(outfile, a_link_stays_and_permissions_too, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    struct stat about;
    write_file(in_scratch("target"), "x", 1);
    cr_assert_eq(chmod(in_scratch("target"), 0640), 0);
    cr_assert_eq(symlink("target", in_scratch("link")), 0);
    cr_assert(outfile_open(&file, in_scratch("link"), &error), "%s", error.text);
    fputs("new", outfile_stream(file));
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect_eq(lstat(in_scratch("link"), &about), 0);
    cr_expect(S_ISLNK(about.st_mode));
    cr_expect_eq(stat(in_scratch("target"), &about), 0);
    cr_expect_eq(about.st_size, 3);
    cr_expect_eq(about.st_mode & 0777, 0640);
}

Test(outfile, a_device_is_written_not_replaced)
{
    struct outfile *file;
    struct picture_error error;
    struct stat about;
    cr_assert(outfile_open(&file, "/dev/null", &error), "%s", error.text);
    cr_expect(outfile_is_special(file));
    cr_assert(outfile_finish(&file, &error), "%s", error.text);
    cr_expect_eq(stat("/dev/null", &about), 0);
    cr_expect(S_ISCHR(about.st_mode));
}

Test(outfile, a_full_disk_is_told, .init = make_scratch, .fini = remove_scratch)
{
    struct outfile *file;
    struct picture_error error;
    cr_assert(outfile_open(&file, "/dev/full", &error), "%s", error.text);
    fputs("does not fit", outfile_stream(file));
    cr_expect_not(outfile_finish(&file, &error));
    cr_expect(strstr(error.text, "No space left") != NULL, "%s", error.text);
    cr_expect_not(outfile_open(&file, in_scratch("no/such/place"), &error));
    cr_expect(strstr(error.text, "cannot be written") != NULL, "%s", error.text);
    cr_expect_not(outfile_open(&file, scratch, &error));
    cr_expect(strstr(error.text, "is a directory") != NULL, "%s", error.text);
    cr_expect_not(outfile_open(&file, "", &error));
}

static void write_png(const char *path, const void *pixels, uint32_t width, uint32_t height, enum cox_pixel_out pixel,
                      size_t pitch)
{
    struct picture_output *output;
    struct picture_error error = {""};
    cr_assert(picture_output_open(&output, path, width, height, pixel, &error), "%s", error.text);
    cr_assert(picture_output_write(output, pixels, pitch, &error), "%s", error.text);
    cr_assert(picture_output_finish(&output, &error), "%s", error.text);
    cr_assert(output == NULL);
}

/* Reads a PNG back without this project's code: rows of `channels` components of `depth` bits, big-endian. */
static struct bytes read_png(const char *path, int *channels, int *depth, bool *srgb)
{
    struct bytes b = {0};
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL);
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    cr_assert_eq(setjmp(png_jmpbuf(png)), 0, "libpng cannot read it back");
    png_init_io(png, f);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    *channels = png_get_channels(png, info);
    *depth = png_get_bit_depth(png, info);
    *srgb = png_get_valid(png, info, PNG_INFO_sRGB) != 0;
    png_bytepp rows = png_get_rows(png, info);
    for (uint32_t y = 0; y < png_get_image_height(png, info); y++)
        put(&b, rows[y], png_get_rowbytes(png, info));
    png_destroy_read_struct(&png, &info, NULL);
    fclose(f);
    return b;
}

Test(png, eight_bits_come_back_and_alpha_only_where_it_matters, .init = make_scratch, .fini = remove_scratch)
{
    enum { WIDTH = 5, HEIGHT = 3, PITCH = 32 };
    for (int transparent = 0; transparent < 2; transparent++) {
        uint8_t pixels[HEIGHT * PITCH];
        for (int i = 0; i < HEIGHT * PITCH; i++)
            pixels[i] = (uint8_t)(i * 7);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                pixels[y * PITCH + 4 * x + 3] = 255;
        if (transparent)
            pixels[PITCH + 4 * 2 + 3] = 254;
        write_png(in_scratch("a.png"), pixels, WIDTH, HEIGHT, COX_PIXEL_RGBA8, PITCH);
        int channels, depth;
        bool srgb;
        struct bytes b = read_png(in_scratch("a.png"), &channels, &depth, &srgb);
        cr_expect_eq(channels, transparent ? 4 : 3);
        cr_expect_eq(depth, 8);
        cr_expect(srgb);
        cr_assert_eq(b.count, (size_t)(WIDTH * HEIGHT * channels));
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                cr_assert_eq(memcmp(b.data + (y * WIDTH + x) * channels, pixels + y * PITCH + 4 * x, (size_t)channels),
                             0);
        free(b.data);
    }
}

Test(png, sixteen_bits_come_back, .init = make_scratch, .fini = remove_scratch)
{
    enum { WIDTH = 4, HEIGHT = 2 };
    uint16_t pixels[WIDTH * HEIGHT * 4];
    for (int i = 0; i < WIDTH * HEIGHT * 4; i++)
        pixels[i] = i % 4 == 3 ? 65535 : (uint16_t)(i * 1717);
    write_png(in_scratch("a.PNG"), pixels, WIDTH, HEIGHT, COX_PIXEL_RGBA16, WIDTH * 8);
    int channels, depth;
    bool srgb;
    struct bytes b = read_png(in_scratch("a.PNG"), &channels, &depth, &srgb);
    cr_expect_eq(channels, 3);
    cr_expect_eq(depth, 16);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        for (int c = 0; c < 3; c++)
            cr_assert_eq(b.data[(i * 3 + c) * 2] << 8 | b.data[(i * 3 + c) * 2 + 1], pixels[i * 4 + c]);
    free(b.data);
}

Test(png, errors_leave_no_file, .init = make_scratch, .fini = remove_scratch)
{
    struct picture_output *output;
    struct picture_error error = {""};
    uint8_t pixels[4] = {1, 2, 3, 255};
    cr_expect_not(picture_output_open(&output, in_scratch("a.jpg"), 1, 1, COX_PIXEL_RGBA8, &error));
    cr_expect(strstr(error.text, ".png") != NULL, "%s", error.text);
    cr_assert(picture_output_open(&output, in_scratch("b.png"), 1, 1, COX_PIXEL_RGBA8, &error));
    cr_expect(picture_output_write(output, pixels, 4, &error));
    cr_expect_not(picture_output_write(output, pixels, 4, &error), "a PNG holds one picture");
    picture_output_abandon(&output);
    picture_output_abandon(&output);
    cr_expect_eq(files_in_scratch(), 0);
}

Test(png, a_full_disk_is_told)
{
    enum { SIDE = 256 };
    static uint8_t noise[SIDE * SIDE * 4];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    struct picture_output *output;
    struct picture_error error = {""};
    cr_assert(picture_output_open(&output, "/dev/full", SIDE, SIDE, COX_PIXEL_RGBA8, &error));
    cr_expect_not(picture_output_write(output, noise, SIDE * 4, &error));
    cr_expect(strstr(error.text, "No space left") != NULL, "%s", error.text);
    picture_output_abandon(&output);
}
