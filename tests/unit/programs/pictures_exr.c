/* OpenEXR pictures: pixels are those in the file, and an invalid file only causes an error. Most files are built
 * here byte by byte and uncompressed, so that the library which the reader uses does not judge itself. Real
 * pictures come from examples/data.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/picture.h"
#include "unit/programs/decoding.h"

#include <math.h>

#if COX_HAVE_OPENEXR
#include <openexr.h>

enum { UINT = 0, HALF = 1, FLOAT = 2, CHANNELS_MAX = 8 };

struct exr_channel {
    const char *name;
    int type;
    int sampling; /* 0 = 1 */
};

struct exr_plan {
    struct exr_channel channels[CHANNELS_MAX]; /* alphabetical, as the format requires; name NULL: end */
    int32_t data[4];                           /* min x, min y, max x, max y */
    int32_t display[4];
    int tile; /* side of a tile; 0: scan lines */
    bool mipmap;
    bool decreasing;
    int compression;
    const float *chromaticities; /* 8, or NULL */
};

static struct exr_plan plan_of(const struct exr_channel *channels, int width, int height)
{
    struct exr_plan plan = {.data = {0, 0, width - 1, height - 1}, .display = {0, 0, width - 1, height - 1}};
    for (int i = 0; i < CHANNELS_MAX && channels[i].name; i++)
        plan.channels[i] = channels[i];
    return plan;
}

/* The value of pixel x, y of a channel. It is exact in half precision. */
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

static void put_attribute(const char *name, const char *type, uint32_t bytes)
{
    put(&made, name, strlen(name) + 1);
    put(&made, type, strlen(type) + 1);
    put_u32(&made, bytes);
}

static void put_byte_attribute(const char *name, const char *type, int value)
{
    put_attribute(name, type, 1);
    put_u8(&made, (uint8_t)value);
}

static void put_box(const char *name, const int32_t box[4])
{
    put_attribute(name, "box2i", 16);
    for (int i = 0; i < 4; i++)
        put_u32(&made, (uint32_t)box[i]);
}

static uint32_t sampling_of(const struct exr_channel *channel)
{
    return channel->sampling ? (uint32_t)channel->sampling : 1;
}

static void put_channels(const struct exr_channel *channels)
{
    put_attribute("channels", "chlist", 0);
    const size_t begin = made.count;
    for (const struct exr_channel *c = channels; c->name; c++) {
        put(&made, c->name, strlen(c->name) + 1);
        put_u32(&made, (uint32_t)c->type);
        put_u32(&made, 0);
        put_u32(&made, sampling_of(c));
        put_u32(&made, sampling_of(c));
    }
    put_u8(&made, 0);
    patch_u32(made.data + begin - 4, (uint32_t)(made.count - begin));
}

/* A chunk, and its entry in the table. The chunk has its place, its size, and the rectangle x0..x1, y0..y1: for
 * each line the samples of each channel. */
static void put_chunk(const struct exr_plan *plan, size_t entry, const uint32_t *place, int places, int x0, int y0,
                      int x1, int y1)
{
    patch_u32(made.data + entry, (uint32_t)made.count);
    while (places--)
        put_u32(&made, *place++);
    put_u32(&made, 0);
    const size_t begin = made.count;
    for (int y = y0; y <= y1; y++)
        for (int c = 0; plan->channels[c].name; c++) {
            const int sampling = (int)sampling_of(&plan->channels[c]);
            if (y % sampling)
                continue;
            for (int x = x0; x <= x1; x++)
                if (x % sampling == 0)
                    put_sample(&made, plan->channels[c].type, sample(c, x, y));
        }
    patch_u32(made.data + begin - 4, (uint32_t)(made.count - begin));
}

static int at_least_one(int n)
{
    return n ? n : 1;
}

/* The table of tiles, then the tiles. Lower levels hold other samples. */
static void put_tiles(const struct exr_plan *plan, int width, int height)
{
    const int side = plan->tile;
    const size_t table = made.count;
    for (int pass = 0; pass < 2; pass++) {
        size_t entry = table;
        for (int level = 0; level == 0 || (plan->mipmap && (width > height ? width : height) >> level); level++) {
            const int w = at_least_one(width >> level), h = at_least_one(height >> level);
            const int left = plan->data[0] + 1000 * (level != 0), top = plan->data[1];
            for (int y = 0; y < h; y += side)
                for (int x = 0; x < w; x += side, entry += 8) {
                    const uint32_t place[] = {(uint32_t)(x / side), (uint32_t)(y / side), (uint32_t)level,
                                              (uint32_t)level};
                    const int x1 = x + side < w ? x + side : w, y1 = y + side < h ? y + side : h;
                    if (pass)
                        put_chunk(plan, entry, place, 4, left + x, top + y, left + x1 - 1, top + y1 - 1);
                    else
                        put_u64(&made, 0);
                }
        }
    }
}

static void make_exr(const struct exr_plan *plan)
{
    const int32_t *data = plan->data;
    const int width = data[2] - data[0] + 1, height = data[3] - data[1] + 1;
    made.count = 0;
    put_u32(&made, 20000630);
    put_u32(&made, 2 | (plan->tile ? 0x200u : 0));
    put_channels(plan->channels);
    if (plan->chromaticities) {
        put_attribute("chromaticities", "chromaticities", 32);
        for (int i = 0; i < 8; i++)
            put_float(&made, plan->chromaticities[i]);
    }
    put_byte_attribute("compression", "compression", plan->compression);
    put_box("dataWindow", data);
    put_box("displayWindow", plan->display);
    put_byte_attribute("lineOrder", "lineOrder", plan->decreasing);
    put_attribute("pixelAspectRatio", "float", 4);
    put_float(&made, 1);
    put_attribute("screenWindowCenter", "v2f", 8);
    put_u64(&made, 0);
    put_attribute("screenWindowWidth", "float", 4);
    put_float(&made, 1);
    if (plan->tile) {
        put_attribute("tiles", "tiledesc", 9);
        put_u32(&made, (uint32_t)plan->tile);
        put_u32(&made, (uint32_t)plan->tile);
        put_u8(&made, plan->mipmap);
    }
    put_u8(&made, 0);
    if (plan->tile) {
        put_tiles(plan, width, height);
        return;
    }
    const size_t table = made.count;
    for (int i = 0; i < height; i++)
        put_u64(&made, 0);
    for (int i = 0; i < height; i++) {
        const int line = plan->decreasing ? height - 1 - i : i, y = data[1] + line;
        put_chunk(plan, table + 8 * (size_t)line, &(uint32_t){(uint32_t)y}, 1, data[0], y, data[2], y);
    }
}

static const struct exr_channel rgba_half[CHANNELS_MAX] = {
    {"A", HALF, 0}, {"B", HALF, 0}, {"G", HALF, 0}, {"R", HALF, 0}};
static const struct exr_channel rgba_float[CHANNELS_MAX] = {
    {"A", FLOAT, 0}, {"B", FLOAT, 0}, {"G", FLOAT, 0}, {"R", FLOAT, 0}};

/* Every pixel inside the data window must be the sample of its channel. -1: 0, -2: 1. */
static void expect_samples(const struct exr_plan *plan, const int channel[4])
{
    const int32_t *display = plan->display, *data = plan->data;
    cr_assert_eq(decoded.format.width, (uint32_t)(display[2] - display[0] + 1));
    cr_assert_eq(decoded.format.height, (uint32_t)(display[3] - display[1] + 1));
    for (int y = display[1]; y <= display[3]; y++)
        for (int x = display[0]; x <= display[2]; x++)
            for (int c = 0; c < 4; c++) {
                const bool inside = x >= data[0] && x <= data[2] && y >= data[1] && y <= data[3];
                float expected = channel[c] == -2 ? 1.0f : channel[c] < 0 || !inside ? 0.0f : sample(channel[c], x, y);
                if (channel[c] >= 0 && inside && plan->channels[channel[c]].type == UINT)
                    expected = (float)(int)fabsf(expected);
                const float got = at((uint32_t)(x - display[0]), (uint32_t)(y - display[1]), c);
                cr_assert_eq(got, expected, "pixel %d, %d, channel %d: %g instead of %g", x, y, c, (double)got,
                             (double)expected);
            }
}

static const int rgb_of_abgr[4] = {3, 2, 1, -2};

static void check_exr(const struct exr_plan *plan)
{
    make_exr(plan);
    decode_made();
    cr_assert_eq(decoded.format.pixel, COX_PIXEL_RGBA_HALF);
    expect_samples(plan, rgb_of_abgr);
}

Test(exr, channels_become_colours)
{
    static const struct {
        const char *what;
        struct exr_channel channels[CHANNELS_MAX];
        int colours[4];
        enum cox_pixel_in pixel;
    } cases[] = {
        {"halves come as halves, alpha is one by default",
         {{"A", HALF, 0}, {"B", HALF, 0}, {"G", HALF, 0}, {"R", HALF, 0}},
         {3, 2, 1, -2},
         COX_PIXEL_RGBA_HALF},
        {"others come as float and may mix",
         {{"B", FLOAT, 0}, {"G", HALF, 0}, {"R", UINT, 0}},
         {2, 1, 0, -2},
         COX_PIXEL_RGBA_FLOAT},
        {"luminance alone is grey", {{"Y", HALF, 0}}, {0, 0, 0, -2}, COX_PIXEL_RGBA_HALF},
        {"a missing colour is black", {{"R", HALF, 0}, {"Z", FLOAT, 0}}, {0, -1, -1, -2}, COX_PIXEL_RGBA_HALF},
        {"a named layer serves where there is no other",
         {{"depth.Z", FLOAT, 0}, {"view.B", HALF, 0}, {"view.G", HALF, 0}, {"view.R", HALF, 0}},
         {3, 2, 1, -2},
         COX_PIXEL_RGBA_HALF},
        {"the unnamed layer goes before a named one",
         {{"B", HALF, 0}, {"G", HALF, 0}, {"R", HALF, 0}, {"a.B", HALF, 0}, {"a.R", HALF, 0}},
         {2, 1, 0, -2},
         COX_PIXEL_RGBA_HALF},
        {"a layer called Combined goes before those that are earlier by their names",
         {{"v.AO.B", HALF, 0}, {"v.AO.G", HALF, 0}, {"v.AO.R", HALF, 0}, {"v.Combined.R", HALF, 0}},
         {3, -1, -1, -2},
         COX_PIXEL_RGBA_HALF},
        {"Y of a direction is no luminance",
         {{"a.X", HALF, 0}, {"a.Y", HALF, 0}, {"a.Z", HALF, 0}, {"b.R", HALF, 0}},
         {3, -1, -1, -2},
         COX_PIXEL_RGBA_HALF},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct exr_plan plan = plan_of(cases[i].channels, 7, 5);
        make_exr(&plan);
        decode_made();
        cr_assert_eq(decoded.format.pixel, cases[i].pixel, "%s", cases[i].what);
        expect_samples(&plan, cases[i].colours);
    }
}

Test(exr, lines_may_be_stored_from_the_bottom)
{
    struct exr_plan plan = plan_of(rgba_half, 3, 6);
    plan.decreasing = true;
    check_exr(&plan);
}

Test(exr, the_display_window_is_what_is_shown)
{
    static const int32_t windows[][8] = {
        {2, 1, 6, 4, 0, 0, 9, 7},           /* data window inside: black around it */
        {-3, -2, 9, 8, 0, 0, 5, 5},         /* overscan is cut off */
        {-3, 2, 3, 9, 0, 0, 6, 6},          /* across a corner */
        {-10, -10, -4, -6, -8, -9, -5, -7}, /* negative coordinates */
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (int tile = 0; tile < 5; tile += 4) {
            struct exr_plan plan = plan_of(rgba_half, 1, 1);
            memcpy(plan.data, windows[i], 16);
            memcpy(plan.display, windows[i] + 4, 16);
            plan.tile = tile;
            check_exr(&plan);
        }
}

Test(exr, where_the_windows_do_not_meet_the_data_is_shown)
{
    struct exr_plan plan = plan_of(rgba_half, 10, 10);
    memcpy(plan.data, (int32_t[4]){20, 20, 23, 22}, 16);
    make_exr(&plan);
    decode_made();
    memcpy(plan.display, plan.data, 16);
    expect_samples(&plan, rgb_of_abgr);
}

Test(exr, tiles_of_every_fit_are_put_together)
{
    static const int sides[] = {1, 3, 4, 16};
    for (size_t i = 0; i < 2 * COUNT_OF(sides); i++) {
        struct exr_plan plan = plan_of(rgba_half, 9, 6);
        plan.tile = sides[i / 2];
        plan.mipmap = i % 2;
        check_exr(&plan);
    }
}

Test(exr, alpha_is_kept_on_request_and_colours_divided_by_it)
{
    const struct exr_plan plan = plan_of(rgba_float, 40, 1);
    make_exr(&plan);
    decode(made.data, made.count, PICTURE_ALPHA_STRAIGHT);
    cr_assert(decoded.read, "%s", decoded.error.text);
    cr_expect(decoded.format.alpha);
    for (uint32_t x = 0; x < 40; x++) {
        float alpha = sample(0, (int)x, 0), red = sample(3, (int)x, 0);
        cr_expect_eq(at(x, 0, 3), alpha);
        cr_expect_eq(at(x, 0, 0), alpha > 0 && alpha < 1 ? red / alpha : red);
    }
}

Test(exr, chromaticities_are_converted)
{
    static const float bt2020[8] = {0.708f, 0.292f, 0.170f, 0.797f, 0.131f, 0.046f, 0.3127f, 0.3290f}, nonsense[8];
    struct exr_plan plan = plan_of(rgba_float + 1, 4, 4); /* without alpha */
    plan.chromaticities = bt2020;
    make_exr(&plan);
    decode_made();
    double blue = sample(0, 2, 3), green = sample(1, 2, 3), red = sample(2, 2, 3);
    cr_expect_float_eq(at(2, 3, 0), 1.66049100 * red - 0.58764114 * green - 0.07284986 * blue, 1e-3);
    cr_expect_float_eq(at(2, 3, 1), -0.12455047 * red + 1.13289990 * green - 0.00834942 * blue, 1e-3);
    plan.chromaticities = nonsense;
    make_exr(&plan);
    refuse("chromaticities", "nonsense");
}

/* Chroma has every second column and row. Its samples are linear here: between them it is exact, and at the right and
 * at the bottom edge the last sample is repeated. */
Test(exr, luminance_and_chroma_become_colours)
{
    static const struct exr_channel channels[CHANNELS_MAX] = {{"BY", FLOAT, 2}, {"RY", FLOAT, 2}, {"Y", FLOAT, 0}};
    for (int left = -2; left <= 0; left += 2) {
        struct exr_plan plan = plan_of(channels, 8, 6);
        plan.data[0] = left; /* what is on the left of the display window is not shown */
        make_exr(&plan);
        decode_made();
        for (int y = 0; y < 6; y++)
            for (int x = 0; x < 8; x++) {
                const int near_x = x < 7 ? x : 6, near_y = y < 5 ? y : 4;
                const double light = sample(2, x, y), red = (sample(1, near_x, near_y) + 1) * light,
                             blue = (sample(0, near_x, near_y) + 1) * light;
                const double green = (light - 0.2126 * red - 0.0722 * blue) / 0.7152;
                cr_expect_float_eq(at((uint32_t)x, (uint32_t)y, 0), red, 1e-3, "red of %d, %d", x, y);
                cr_expect_float_eq(at((uint32_t)x, (uint32_t)y, 1), green, 1e-3, "green of %d, %d", x, y);
                cr_expect_float_eq(at((uint32_t)x, (uint32_t)y, 2), blue, 1e-3, "blue of %d, %d", x, y);
            }
    }
}

Test(exr, what_cannot_be_read_is_named)
{
    static const struct {
        const char *what;
        struct exr_channel channels[CHANNELS_MAX]; /* if empty: R, G, B and A in half precision */
        int compression;
        bool empty;
        const char *words;
    } cases[] = {
        {"DWAA", {{0}}, 8, false, "DWAA compression"},
        {"DWAB", {{0}}, 9, false, "DWAB compression"},
        {"no compression that there is", {{0}}, 77, false, ""},
        {"no colours", {{"N", HALF, 0}, {"Z", FLOAT, 0}}, 0, false, "only N, Z"},
        {"little chroma", {{"BY", HALF, 4}, {"RY", HALF, 4}, {"Y", HALF, 0}}, 0, false, "channel RY is subsampled"},
        {"fewer samples", {{"B", HALF, 2}, {"G", HALF, 0}, {"R", HALF, 0}}, 0, false, "channel B is subsampled"},
        {"an empty window", {{0}}, 0, true, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct exr_plan plan = plan_of(cases[i].channels[0].name ? cases[i].channels : rgba_half, 4, 4);
        plan.compression = cases[i].compression;
        if (cases[i].empty)
            plan.data[2] = -1;
        make_exr(&plan);
        refuse(cases[i].words, cases[i].what);
    }
}

enum { COMPRESSIONS = 8 }; /* the compressions that are read: none, RLE, ZIPS, ZIP, PIZ, PXR24, B44, B44A */

static void set_corner(const char *window, uint32_t x, uint32_t y)
{
    uint8_t *corner = memmem(made.data, made.count, window, strlen(window));
    cr_assert_not_null(corner);
    corner += strlen(window) + 1 + 6 + 4 + 8;
    patch_u32(corner, x);
    patch_u32(corner + 4, y);
}

/* A window of 2^31 pixels per side in a file of a few hundred bytes. */
Test(exr, a_huge_window_is_refused_before_memory_is_asked_for)
{
    static const uint32_t corners[] = {0x7fffffff, 0x3fffffff, 65536, 70000};
    const struct exr_plan plan = plan_of(rgba_half, 4, 4);
    for (size_t i = 0; i < 4; i++)
        for (int which = 0; which < 2; which++) {
            make_exr(&plan);
            set_corner(which ? "displayWindow" : "dataWindow", corners[i], corners[i]);
            decode(made.data, made.count, PICTURE_ALPHA_BLACK);
            cr_expect_not(decoded.opened, "corner %u", corners[i]);
        }
}

/* Half a billion pixels in a file of a few hundred bytes. */
Test(exr, a_short_file_cannot_ask_for_much_memory)
{
    for (int tile = 0; tile < 3; tile += 2)
        for (int compression = 0; compression < COMPRESSIONS; compression++) {
            struct exr_plan plan = plan_of(rgba_half, 4, 4);
            plan.tile = tile;
            plan.compression = compression;
            make_exr(&plan);
            set_corner("dataWindow", 65535, 8191);
            refuse("cannot hold 65536 x 8192 pixels", "data");
            set_corner("displayWindow", 65535, 8191);
            refuse("cannot hold 65536 x 8192 pixels", "data and display");
            set_corner("dataWindow", 3, 3);
            refuse("shows 65536 x 8192 pixels but stores almost none of them", "display");
            set_corner("displayWindow", 7679, 4319);
            decode(made.data, made.count, PICTURE_ALPHA_BLACK);
            cr_expect(decoded.opened, "black all around in 8K: %s", decoded.error.text);
        }
}

static int64_t keep_written(exr_const_context_t context, void *user, const void *data, uint64_t bytes, uint64_t offset,
                            exr_stream_error_func_ptr_t fail)
{
    static const uint8_t none[1 << 12];
    (void)context, (void)user, (void)fail;
    while (made.count < offset + bytes)
        put(&made, none, offset + bytes - made.count < sizeof none ? offset + bytes - made.count : sizeof none);
    memcpy(made.data + offset, data, bytes);
    return (int64_t)bytes;
}

#define OF_EXR(call) cr_assert_eq(call, EXR_ERR_SUCCESS)

/* Let the library write a picture of one value. */
static void make_constant(int compression, exr_pixel_type_t type, int width, int height, const void *row)
{
    exr_context_t context;
    exr_context_initializer_t setup = EXR_DEFAULT_CONTEXT_INITIALIZER;
    exr_encode_pipeline_t encode = EXR_ENCODE_PIPELINE_INITIALIZER;
    exr_chunk_info_t chunk;
    int part, lines;
    made.count = 0;
    setup.write_fn = keep_written;
    OF_EXR(exr_start_write(&context, "picture", EXR_WRITE_FILE_DIRECTLY, &setup));
    OF_EXR(exr_add_part(context, "picture", EXR_STORAGE_SCANLINE, &part));
    OF_EXR(exr_initialize_required_attr_simple(context, part, width, height, (exr_compression_t)compression));
    for (int c = 0; c < 3; c++)
        OF_EXR(exr_add_channel(context, part, &"B\0G\0R"[2 * c], type, EXR_PERCEPTUALLY_LOGARITHMIC, 1, 1));
    OF_EXR(exr_write_header(context));
    OF_EXR(exr_get_scanlines_per_chunk(context, part, &lines));
    for (int y = 0; y < height; y += lines) {
        OF_EXR(exr_write_scanline_chunk_info(context, part, y, &chunk));
        OF_EXR(y ? exr_encoding_update(context, part, &chunk, &encode)
                 : exr_encoding_initialize(context, part, &chunk, &encode));
        for (int c = 0; c < encode.channel_count; c++) {
            encode.channels[c].encode_from_ptr = row;
            encode.channels[c].user_pixel_stride = encode.channels[c].bytes_per_element;
            encode.channels[c].user_line_stride = 0; /* all lines are equal */
        }
        if (y == 0)
            OF_EXR(exr_encoding_choose_default_routines(context, part, &encode));
        OF_EXR(exr_encoding_run(context, part, &encode));
    }
    exr_encoding_destroy(context, &encode);
    OF_EXR(exr_finish(&context));
}

/* Pictures of one value are the shortest possible files. This test finds how much shorter than its pixels a file
 * can be. */
Test(exr, a_picture_of_one_value_is_short_and_is_read)
{
    static const double ratios[COMPRESSIONS] = {0.99, 60, 600, 950, 250, 900, 2.2, 10};
    enum { WIDTH = 16384, HEIGHT = 128 };
    static uint32_t zeros[WIDTH];
    for (int compression = 0; compression < COMPRESSIONS; compression++)
        for (exr_pixel_type_t type = EXR_PIXEL_HALF; type <= EXR_PIXEL_FLOAT; type++) {
            make_constant(compression, type, WIDTH, HEIGHT, zeros);
            double ratio = (double)WIDTH * HEIGHT * 3 * (type == EXR_PIXEL_HALF ? 2 : 4) / (double)made.count;
            if (type == EXR_PIXEL_HALF) /* B44 leaves floats uncompressed */
                cr_expect_gt(ratio, ratios[compression], "compression %d: only %g to 1", compression, ratio);
            decode(made.data, made.count, PICTURE_ALPHA_BLACK);
            cr_assert(decoded.read, "compression %d, %g to 1: %s", compression, ratio, decoded.error.text);
            cr_expect_eq(at(WIDTH - 1, HEIGHT - 1, 1), 0);
            cr_expect_eq(at(WIDTH - 1, HEIGHT - 1, 3), 1);
        }
}

Test(exr, every_truncation_is_refused)
{
    for (int tile = 0; tile < 3; tile += 2) {
        struct exr_plan plan = plan_of(rgba_half, 5, 4);
        plan.tile = tile;
        make_exr(&plan);
        for (size_t bytes = 1; bytes < made.count; bytes++) {
            decode_copy(bytes, 0, NULL, PICTURE_ALPHA_BLACK);
            cr_assert_not(decoded.read, "%zu of %zu bytes", bytes, made.count);
            cr_assert(decoded.error.text[0]);
        }
    }
}

/* --- Real pictures ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint32_t width, height;
    float largest; /* of red, green and blue */
} real[] = {{"StillLife", 1240, 846, 492},
            {"CandleGlass", 1000, 810, 413},
            {"GoldenGate", 1262, 860, 686},
            {"WideColorGamut", 800, 800, 0}};

static void make_real(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/examples/data/%s.exr", COX_TEST_SOURCE_DIR, name);
    const struct bytes *file = load_file(path);
    make(file->data, file->count);
}

Test(exr, the_real_pictures_have_their_known_sizes_and_peaks)
{
    for (int i = 0; i < 4; i++) {
        float largest = -INFINITY, least = INFINITY;
        make_real(real[i].name);
        decode_made();
        cr_expect_eq(decoded.format.width, real[i].width);
        cr_expect_eq(decoded.format.height, real[i].height);
        cr_expect_eq(decoded.format.pixel, COX_PIXEL_RGBA_HALF);
        for (uint32_t y = 0; y < decoded.format.height; y++)
            for (uint32_t x = 0; x < decoded.format.width; x++) {
                for (int c = 0; c < 3; c++) {
                    largest = fmaxf(largest, at(x, y, c));
                    least = fminf(least, at(x, y, c));
                }
                if (at(x, y, 3) != 1.0f)
                    cr_assert_fail("%s: the alpha of %u, %u", real[i].name, x, y);
            }
        if (real[i].largest > 0)
            cr_expect_float_eq(largest, real[i].largest, 1.0, "%s: %g", real[i].name, (double)largest);
        else
            cr_expect_lt(least, 0.0f, "out-of-gamut colours are negative");
    }
}

Test(exr, mutated_pictures_do_no_harm, .timeout = 1200)
{
    for (int variant = 0; variant < 4; variant++) {
        struct exr_plan plan = plan_of(rgba_half, 13, 9);
        plan.tile = variant & 1 ? 4 : 0;
        plan.mipmap = variant == 3;
        plan.decreasing = variant == 2;
        make_exr(&plan);
        mutate_and_decode(400, 2000);
    }
    for (int i = 0; i < 4; i++) {
        make_real(real[i].name);
        mutate_and_decode(40000, 25);
    }
}

#else

Test(exr, cannot_be_read)
{
    cr_skip_test("skipped, because there is no OpenEXR");
}

#endif
